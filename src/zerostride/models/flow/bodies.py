"""Sizes through the bodies of If, Loop and Scan.

A body's needs are known to hold only in the body, and its unnamed sizes do not leave it. The facts
of a loop's carried tensors are a fixed point: sizes that a pass through the body changes become
unknown, until a pass changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...sizes.condition import ALWAYS, Condition, ge
from ...sizes.dim import Number, Symbol, dim, of_atom, plain
from ...sizes.functions import maximum
from ..ir.graph import Body, Node
from ..onnx_ops.sizes.facts import (
    UNKNOWN,
    Fact,
    NoSizes,
    Open,
    Size,
    Unclear,
    bounds_of,
    is_number,
    place,
)

if TYPE_CHECKING:
    from .walk import Walk

#: Passes through a loop's body before all its carried facts become unknown. Two passes show what
#: changes; each step of dependence on a change needs one more.
MAX_PASSES = 4


def run(walk: Walk, node: Node, facts: tuple[Fact | None, ...]) -> tuple[Fact, ...]:
    """The results of a node with bodies."""
    if walk.steps < 0:
        raise Unclear("the bodies within bodies are too many to follow")
    if node.domain == "" and node.op == "If":
        return _if(walk, node, facts)
    if node.domain == "" and node.op == "Loop" and len(node.bodies) == 1:
        return _loop(walk, node, facts)
    if node.domain == "" and node.op == "Scan" and node.version >= 9 and len(node.bodies) == 1:
        return _scan(walk, node, facts)
    for body in node.bodies:
        enter(walk, node, body, [UNKNOWN] * len(body.inputs))
    return (UNKNOWN,) * len(node.outputs)


def enter(
    walk: Walk,
    node: Node,
    body: Body,
    inputs: Sequence[Fact],
    *,
    quiet: bool = False,
    certain: bool = False,
    holds: Condition = ALWAYS,
) -> list[Fact]:
    """Walks through a body; its outputs' facts.

    Args:
        walk: the walk.
        node: the node that runs the body.
        body: the graph.
        inputs: the facts of the body's inputs.
        quiet: only facts are recorded.
        certain: the body runs whenever the node does.
        holds: what is known of sizes where the body runs.
    """
    mark, aliases = walk.ledger.mark(), walk.aliases.copy()
    walk.ledger.learn(holds.clauses)
    walk.quiet += quiet
    walk.unsure += not certain
    for value, fact in zip(body.inputs, inputs, strict=False):
        closed = walk.close(fact, value.name, {})
        walk.facts[id(value)] = walk.claimed(node, value, closed, set())
    for inner in body.nodes:
        if walk.steps < 0:
            break
        walk.node(inner)
    walk.quiet -= quiet
    walk.unsure -= not certain
    walk.ledger.forget(mark)
    walk.aliases = aliases
    return [walk.fact(value) for value in body.outputs]


def outward(fact: Fact, own: set[Symbol]) -> Fact:
    """A fact of a body outside of it: the body's own sizes become unknown."""
    if fact.shape is None:
        return UNKNOWN
    shape = tuple(_without(size, own) for size in fact.shape)
    content = fact.content
    if content is not None:
        content = tuple(None if is_number(item) and _has(item, own) else item for item in content)
    return Fact(shape, content)


def _has(size: Number, own: set[Symbol]) -> bool:
    return not own.isdisjoint(dim(size).symbols)


def _without(size: Size, own: set[Symbol]) -> Size:
    if isinstance(size, (int, Open)) or not _has(size, own):
        return size
    low, high = bounds_of(size)
    return Open(max(low or 0, 0), high)


def joined(a: Fact, b: Fact) -> Fact:
    """The fact of a tensor that has one of two facts."""
    if a.shape is None or b.shape is None or len(a.shape) != len(b.shape):
        return UNKNOWN
    shape = tuple(_either(x, y) for x, y in zip(a.shape, b.shape, strict=True))
    content = None
    if a.content is not None and b.content is not None and len(a.content) == len(b.content):
        pairs = zip(a.content, b.content, strict=True)
        content = tuple(x if x == y else None for x, y in pairs)
    return Fact(shape, content)


def _either(a: Size, b: Size) -> Size:
    if a is b or (not isinstance(a, Open) and a == b):
        return a
    (low_a, high_a), (low_b, high_b) = bounds_of(a), bounds_of(b)
    high = None if high_a is None or high_b is None else max(high_a, high_b)
    return Open(max(min(low_a or 0, low_b or 0), 0), high)


def _if(walk: Walk, node: Node, facts: tuple[Fact | None, ...]) -> tuple[Fact, ...]:
    """The results of the branch that is taken, or of both joined if the condition is unknown."""
    taken, truth = _decided(walk, node, facts)
    before = len(walk.unnamed_sizes)
    branches = []
    for body in node.bodies:
        dead = taken is not None and body.name != taken
        holds = ALWAYS
        if truth is not None and taken is None:
            holds = truth if body.name == "then_branch" else ~truth
        results = enter(walk, node, body, (), quiet=dead, certain=body.name == taken, holds=holds)
        if not dead:
            branches.append(results)
    own = set(walk.unnamed_sizes[before:])
    results = [outward(fact, own) for fact in branches[0]] if branches else []
    for more in branches[1:]:
        pairs = zip(results, more, strict=False)
        results = [joined(a, outward(b, own)) for a, b in pairs]
    return tuple(results)


def _decided(
    walk: Walk, node: Node, facts: tuple[Fact | None, ...]
) -> tuple[str | None, Condition | None]:
    """The branch of an If that is taken, if that is known; else when the first is, if sizes say."""
    fact = facts[0] if facts else None
    content = None if fact is None else fact.content
    truth = walk.truths.get(id(node.inputs[0])) if node.inputs else None
    if content is not None and len(content) == 1 and isinstance(content[0], int):
        return "then_branch" if content[0] else "else_branch", truth
    if truth is None or fact is None:
        return None, None
    for holds, condition in ((1, truth), (0, ~truth)):
        if walk.ledger.implies(condition):
            walk.facts[id(node.inputs[0])] = Fact(fact.shape, (holds,))
            return "then_branch" if holds else "else_branch", truth
    walk.branches[truth] = None
    return None, truth


class _State:
    """The facts of a loop's carried tensors that passes through its body do not change.

    Attributes:
        facts: one for each carried tensor.
    """

    def __init__(self, walk: Walk, node: Node, facts: Sequence[Fact]) -> None:
        self.walk = walk
        self.names = [value.name for value in node.bodies[0].inputs]
        self.facts = list(facts)
        self.wide: set[Symbol] = set()

    def widen(self, outputs: Sequence[Fact], first: int) -> bool:
        """Makes changed sizes unknown; returns whether the pass changed any."""
        changed = False
        for position, out in enumerate(outputs[: len(self.facts)]):
            fact = self.facts[position]
            merged = self._merged(fact, out, self._name(position + first))
            changed = changed or merged != fact
            self.facts[position] = merged
        return changed

    def _name(self, position: int) -> str:
        return self.names[position] if position < len(self.names) else f"carried {position}"

    def _merged(self, fact: Fact, out: Fact, name: str) -> Fact:
        if fact.shape is None or out.shape is None or len(fact.shape) != len(out.shape):
            return UNKNOWN
        sizes: list[Number] = []
        for axis, (a, b) in enumerate(zip(fact.shape, out.shape, strict=True)):
            if a == b or (not isinstance(a, int) and not self.wide.isdisjoint(dim(a).symbols)):
                sizes.append(a)
                continue
            symbol = self.walk.unnamed(f"{name}[{axis}]")
            self.wide.add(symbol)
            sizes.append(of_atom(symbol))
        return Fact(tuple(sizes), fact.content if fact.content == out.content else None)


def _settle(
    walk: Walk, node: Node, state: _State, before: Sequence[Fact], after: Sequence[Fact], first: int
) -> list[Fact]:
    """Passes through the body until its state stays; the outputs of the last pass."""
    body = node.bodies[0]
    for _ in range(MAX_PASSES):
        outputs = enter(walk, node, body, [*before, *state.facts, *after], quiet=True)
        if not state.widen(outputs, first):
            break
    else:
        state.facts = [UNKNOWN] * len(state.facts)
    return enter(walk, node, body, [*before, *state.facts, *after])


def _loop(walk: Walk, node: Node, facts: tuple[Fact | None, ...]) -> tuple[Fact, ...]:
    """Carried tensors keep unchanged sizes; collected ones get an axis as long as the trips."""
    begin = len(walk.unnamed_sizes)
    going = facts[1] if len(facts) > 1 else None
    initial = [going or Fact((), (1,)), *(fact or UNKNOWN for fact in facts[2:])]
    state = _State(walk, node, initial)
    outputs = _settle(walk, node, state, [Fact(())], (), 1)
    own = set(walk.unnamed_sizes[begin:])
    trips: Size = Open()
    limit = facts[0].content if facts and facts[0] is not None else None
    if state.facts[0].content == (1,) and limit is not None and len(limit) == 1:
        number = limit[0]
        if is_number(number):
            trips = plain(maximum(number, 0))
    carried = [outward(fact, own) for fact in state.facts[1:]]
    collected = [
        _collected(walk, outward(fact, own), trips, 0) for fact in outputs[len(state.facts) :]
    ]
    return (*carried, *collected)


def _collected(walk: Walk, fact: Fact, trips: Size, axis: int) -> Fact:
    """The fact of a collected tensor: one more axis, as long as the number of passes."""
    if fact.shape is None:
        return UNKNOWN
    shape = fact.shape
    if isinstance(trips, Open) or not walk.ledger.implies(ge(trips, 1)):
        # Without a pass the body makes no tensor, so its sizes are unknown.
        shape = tuple(size if isinstance(size, int) else Open() for size in shape)
    axis = place(axis, len(shape) + 1)
    return Fact((*shape[:axis], trips, *shape[axis:]))


def _scan(walk: Walk, node: Node, facts: tuple[Fact | None, ...]) -> tuple[Fact, ...]:
    """A Scan runs its body once per index of an axis of its last operands."""
    begin = len(walk.unnamed_sizes)
    count = int(node.attributes.get("num_scan_inputs", 0))
    if not 1 <= count <= len(facts):
        raise NoSizes(f"{count} scanned operands of {len(facts)}")
    operands = [fact or UNKNOWN for fact in facts]
    axes = tuple(node.attributes.get("scan_input_axes", ())) or (0,) * count
    trips: Size = Open()
    slices = []
    for fact, axis in zip(operands[-count:], axes, strict=True):
        if fact.shape is None:
            slices.append(UNKNOWN)
            continue
        axis = place(axis, len(fact.shape))
        size = fact.shape[axis]
        if isinstance(trips, Open):
            trips = size
        else:
            walk.need(node, dim(trips).equals(size), "a Scan's operands are as long as each other")
        slices.append(Fact((*fact.shape[:axis], *fact.shape[axis + 1 :])))
    state = _State(walk, node, operands[:-count])
    outputs = _settle(walk, node, state, (), slices, 0)
    own = set(walk.unnamed_sizes[begin:])
    carried = [outward(fact, own) for fact in state.facts]
    rest = outputs[len(carried) :]
    places = tuple(node.attributes.get("scan_output_axes", ())) or (0,) * len(rest)
    collected = [
        _collected(walk, outward(fact, own), trips, axis)
        for fact, axis in zip(rest, places, strict=True)
    ]
    return (*carried, *collected)
