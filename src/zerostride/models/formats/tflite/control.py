"""Rows of :mod:`.lowering`: ops that run subgraphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...ir.graph import Body, Node, Value
from ..lowering import VERSION, NoEquivalent, becomes, table
from .node_writer import OperatorWriter


def _inlined(writer: OperatorWriter) -> None:
    """An op that runs one body once: its nodes, then the results under the op's own names."""
    if len(writer.node.bodies) != 1:
        raise NoEquivalent
    (body,) = writer.node.bodies
    outputs = writer.node.outputs
    if len(body.outputs) < len(outputs) or None in body.outputs:
        raise NoEquivalent
    writer.nodes += _outside(writer.node, body.nodes)
    writer.nodes += _identities(writer.node, body.outputs, outputs)


def _while(writer: OperatorWriter) -> None:
    """A Loop whose body ends with the condition; before it the condition is computed once."""
    node = writer.node
    bodies = {body.name: body for body in node.bodies}
    if set(bodies) != {"cond", "body"}:
        raise NoEquivalent
    condition, body = bodies["cond"], bodies["body"]
    count = len(node.inputs)
    sizes = {len(condition.inputs), len(body.inputs), len(body.outputs), len(node.outputs)}
    if sizes != {count} or len(condition.outputs) != 1 or None in (*node.inputs, *body.outputs):
        raise NoEquivalent
    before, (first,) = copied(condition, node.inputs)
    if condition.outputs[0] is None or first is None:
        raise NoEquivalent
    turn, going = Value("turn", (), dtype="int64"), Value("going", (), dtype="bool")
    handed = _identities(node, body.outputs, condition.inputs)
    loop = Body(
        "body",
        (turn, going, *body.inputs),
        (*condition.outputs, *body.outputs),
        (*body.nodes, *handed, *condition.nodes),
    )
    writer.nodes += _outside(node, before)
    carried = (None, first, *node.inputs)
    writer.nodes.append(
        Node(node.name, "Loop", "", VERSION, carried, node.outputs, {}, node.scope, (loop,))
    )


def copied(
    body: Body, inputs: Sequence[Value | None]
) -> tuple[tuple[Node, ...], tuple[Value | None, ...]]:
    """The nodes and outputs of a body on other inputs; its own values are new."""
    new: dict[int, Value | None] = {
        id(old): value for old, value in zip(body.inputs, inputs, strict=True)
    }

    def value(old: Value | None) -> Value | None:
        return new.get(id(old), old)

    def made(old: Value) -> Value:
        fresh = replace(old, name=f"{old.name}'")
        new[id(old)] = fresh
        return fresh

    def node(old: Node) -> Node:
        operands = tuple(map(value, old.inputs))
        bodies = tuple(map(inner, old.bodies))
        return replace(old, inputs=operands, outputs=tuple(map(made, old.outputs)), bodies=bodies)

    def inner(old: Body) -> Body:
        own = tuple(map(made, old.inputs))
        nodes = tuple(map(node, old.nodes))
        return replace(old, inputs=own, nodes=nodes, outputs=tuple(map(value, old.outputs)))

    nodes = tuple(map(node, body.nodes))
    return nodes, tuple(map(value, body.outputs))


def _outside(node: Node, inner: Sequence[Node]) -> tuple[Node, ...]:
    """Nodes of a body in the place of the node that runs it."""
    return tuple(replace(entry, scope=node.scope) for entry in inner)


def _identities(
    node: Node, values: Sequence[Value | None], names: Sequence[Value]
) -> tuple[Node, ...]:
    """Nodes that give values other names."""
    return tuple(
        Node(node.name, "Identity", "", VERSION, (value,), (name,), scope=node.scope)
        for value, name in zip(values, names, strict=False)
    )


#: Builtin op to row.
ROWS = table(
    {"IF": becomes("If"), "WHILE": _while},
    ("CALL CALL_ONCE STABLEHLO_COMPOSITE", _inlined),
)
