"""Plans a computation: its steps in order, and the nodes that cannot be computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from ...errors import ModelError, ZerostrideError
from ...system.spelling import meant
from ..format_table import FormatModule, module_of
from ..ir.graph import MALFORMED, Body, Graph, Node, Value
from ..ir.site import Site, input_at
from ..onnx_ops.sites import find_site as onnx_site
from ..onnx_ops.table import op_row
from ..onnx_ops.written.table import not_written
from .broadcasts import can_plan

#: Ops that run bodies.
CONTROL = frozenset({"If", "Loop", "Scan"})
#: Ops that make truth values in ONNX, and may make numbers in other formats.
_TRUTHS = frozenset(
    ["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "not_equal", "And", "Or", "Xor"]
)
#: Most nodes that a message names; it counts the rest.
_MOST_NAMED = 20

Finder = Callable[[Node], "Site | None"]


@dataclass(frozen=True, slots=True)
class NodeStep:
    """One node to compute.

    Attributes:
        node: the node of the file, or an ONNX node for it.
        find: finds the node's site; None for an op of the table.
        bodies: the programs of the bodies that the node runs.
    """

    node: Node
    find: Finder | None = None
    bodies: tuple[Execution, ...] = ()


@dataclass(frozen=True, slots=True)
class Execution:
    """Steps in order.

    Attributes:
        inputs: the inputs of the graph or body.
        outputs: the values that it returns.
        steps: the steps between.
    """

    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    steps: tuple[NodeStep, ...]

    def reads(self) -> set[int]:
        """Identities of every value that is read, including values of outer graphs."""
        keys = {id(value) for value in self.outputs}
        for step in self.steps:
            keys |= reads(step)
        return keys


def reads(step: NodeStep) -> set[int]:
    """Identities of the values that a step and its bodies read."""
    keys = {id(value) for value in step.node.inputs if value is not None}
    for body in step.bodies:
        keys |= body.reads()
    return keys


@dataclass(frozen=True, slots=True)
class NotExecuted:
    """A node that cannot be computed."""

    node: str
    op: str
    why: str = ""


def not_executed(graph: Graph, outputs: Sequence[str] | None = None) -> tuple[NotExecuted, ...]:
    """The nodes that `outputs` need and that are not executed here."""
    return _prepare(graph, outputs)[1]


def prepare(graph: Graph, outputs: Sequence[str] | None = None) -> Execution:
    """The program that computes `outputs`.

    Raises:
        ModelError: ops are not executed here; names all of them with their nodes.
        ZerostrideError: the model has no such output.
    """
    program, refused = _prepare(graph, outputs)
    if refused:
        by_op: dict[str, list[str]] = {}
        for node in refused:
            by_op.setdefault(node.op + (f" ({node.why})" if node.why else ""), []).append(node.node)
        words = "; ".join(f"{op}: {_listed(nodes)}" for op, nodes in by_op.items())
        raise ModelError(
            f"{graph.path}: {len(refused)} of its nodes are not executed here: {words}"
        )
    return program


def _listed(nodes: Sequence[str]) -> str:
    named = ", ".join(nodes[:_MOST_NAMED])
    return f"{named} and {len(nodes) - _MOST_NAMED} more" if len(nodes) > _MOST_NAMED else named


def _prepare(
    graph: Graph, outputs: Sequence[str] | None
) -> tuple[Execution, tuple[NotExecuted, ...]]:
    module = module_of(graph)
    wanted = graph.outputs if outputs is None else _named(graph, outputs)
    main = [node for node in graph.nodes if not node.scope]
    refused: list[NotExecuted] = []
    steps = _needed(main, wanted, module, refused)
    return Execution(graph.inputs, tuple(wanted), steps), tuple(refused)


def prepare_part(graph: Graph, nodes: Sequence[Node], wanted: Sequence[Value]) -> Execution:
    """The program that computes values of the main graph from the values that `nodes` read.

    Raises:
        ModelError: ops are not executed here.
    """
    refused: list[NotExecuted] = []
    steps = _needed(nodes, wanted, module_of(graph), refused)
    if refused:
        raise ModelError(", ".join(f"{node.op} is not executed here" for node in refused))
    return Execution((), tuple(wanted), steps)


def _named(graph: Graph, names: Sequence[str]) -> tuple[Value, ...]:
    values = {value.name: value for value in graph.inputs}
    for node in graph.nodes:
        if not node.scope:
            values.update((value.name, value) for value in node.outputs if value.name)
    values.update((value.name, value) for value in graph.outputs)
    for name in names:
        if name not in values:
            raise ZerostrideError(f"{graph.path}: it makes no {name!r}{meant(name, values)}")
    return tuple(values[name] for name in names)


def _needed(
    nodes: Sequence[Node], wanted: Iterable[Value], module: FormatModule, refused: list[NotExecuted]
) -> tuple[NodeStep, ...]:
    """The steps that `wanted` depends on; nodes that cannot be computed go to `refused`."""
    needed = {id(value) for value in wanted}
    kept: list[NodeStep] = []
    missing: list[NotExecuted] = []
    for node in reversed(nodes):
        if not any(id(value) in needed for value in node.outputs):
            continue
        if all(readable(value) for value in node.outputs if id(value) in needed):
            continue
        inner: list[NotExecuted] = []
        steps = _steps(_read_of(node, needed), module, inner)
        missing += reversed(inner)
        kept += reversed(steps)
        for step in steps:
            needed |= reads(step)
        if not steps:
            needed |= {id(value) for value in node.inputs if value is not None}
    refused += reversed(missing)
    return tuple(reversed(kept))


def _read_of(node: Node, needed: set[int]) -> Node:
    """The node without unread outputs; IR files name the indices of every MaxPool."""
    if node.op == "MaxPool" and not any(id(value) in needed for value in node.outputs[1:]):
        return replace(node, outputs=node.outputs[:1])
    return node


def readable(value: Value) -> bool:
    """Whether the file has the value's numbers."""
    listed = value.content is not None or value.reals is not None
    return value.source is not None or (value.constant and listed)


def _steps(node: Node, module: FormatModule, refused: list[NotExecuted]) -> tuple[NodeStep, ...]:
    site = module.find_site(node)
    if site is not None and can_plan(site) and not _counts_truths(node, site):
        return (NodeStep(node, module.find_site),)
    lowered = module.lower(node)
    if lowered is None:
        refused.append(NotExecuted(node.path, _op_name(node)))
        return ()
    return tuple(step for one in lowered for step in _steps_of(one, module, refused))


def _counts_truths(node: Node, site: Site) -> bool:
    """Whether a node of the format makes numbers where ONNX makes truth values, as in MNN."""
    number = any((value.dtype or "bool") != "bool" for value in node.outputs)
    return number and site.stands_for in _TRUTHS


def _steps_of(node: Node, module: FormatModule, refused: list[NotExecuted]) -> tuple[NodeStep, ...]:
    """The step of an ONNX node."""
    site = onnx_site(node) if node.domain == "" else None
    if site is not None and can_plan(site):
        return (NodeStep(node, onnx_site),)
    why = (_limit(node) if node.domain == "" else None) or not_written(node)
    if why is not None:
        refused.append(NotExecuted(node.path, _op_name(node), why))
        return ()
    if op_row(node.op, node.domain).kernel is not None:
        return (NodeStep(node),)
    if node.domain == "" and node.op in CONTROL:
        return (NodeStep(node, None, tuple(_body(body, module, refused) for body in node.bodies)),)
    if node.domain == "" and node.op == "Constant":
        refused.append(NotExecuted(node.path, node.op, "no tensor of numbers"))
    else:
        refused.append(NotExecuted(node.path, _op_name(node)))
    return ()


def _limit(node: Node) -> str | None:
    """The part of a node's op that is not executed, if the node shows it."""
    if node.op == "MaxPool" and len([value for value in node.outputs if value.name]) > 1:
        return "its indices"
    if node.op == "Scan" and node.version < 9:
        return "of op set 8, which scans batches"
    if node.op == "Attention":
        return _attention_limit(node)
    return None


#: The element types by which an Attention may ask for a softmax that rounds more.
_HALVES = MappingProxyType({10: "float16", 16: "bfloat16"})


def _attention_limit(node: Node) -> str | None:
    """The same of Attention, which is computed in the query's type, or float32 if that is wider."""
    query, mask = input_at(node, 0), input_at(node, 3)
    precision = node.attributes.get("softmax_precision")
    half = _HALVES.get(precision) if isinstance(precision, int) else None
    if half and (query is None or query.dtype not in _HALVES.values()):
        return f"its softmax in {half}"
    if mask is not None and "int" in (mask.dtype or ""):
        return f"a mask of {mask.dtype}"
    return None


def _op_name(node: Node) -> str:
    if node.domain == MALFORMED:
        return f"{node.op} (malformed)"
    return f"{node.domain}:{node.op}" if node.domain else node.op


def _body(body: Body, module: FormatModule, refused: list[NotExecuted]) -> Execution:
    outputs = tuple(value for value in body.outputs if value is not None)
    if len(outputs) != len(body.outputs):
        refused.append(NotExecuted(body.name, "(body)", "an output of it is made nowhere"))
    return Execution(body.inputs, outputs, _needed(body.nodes, outputs, module, refused))
