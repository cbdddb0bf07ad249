"""Truth values of which sizes decide: the condition under which each is true."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from ...sizes.condition import Condition, all_of, any_of, eq, ge
from ...sizes.dim import Number
from ..ir.graph import Node
from ..onnx_ops.sizes.facts import Fact, Real

#: Ops of two sizes.
_COMPARED: Mapping[str, Callable[[Number, Number], Condition]] = MappingProxyType(
    {
        "Equal": eq,
        "Less": lambda a, b: ge(b, a + 1),
        "Greater": lambda a, b: ge(a, b + 1),
        "LessOrEqual": lambda a, b: ge(b, a),
        "GreaterOrEqual": ge,
    }
)
#: Ops that hand a truth value on.
_SAME = frozenset(["Identity", "Cast", "Squeeze", "Unsqueeze", "Reshape"])


def truth_of(
    node: Node, facts: Sequence[Fact | None], known: Mapping[int, Condition]
) -> Condition | None:
    """The condition under which a node's one truth value is true; None if it is not of sizes.

    Args:
        node: the node.
        facts: of its operands.
        known: the conditions of truth values before it, by the identity of their tensor.
    """
    if node.domain or not node.inputs:
        return None
    before = [known.get(id(value)) for value in node.inputs]
    if node.op in _COMPARED and len(facts) == 2:
        a, b = map(_size, facts)
        return None if a is None or b is None else _COMPARED[node.op](a, b)
    if node.op in _SAME and before[0] is not None:
        return before[0]
    if node.op == "Cast" and node.attributes.get("to") == 9:
        size = _size(facts[0])
        return None if size is None else ~eq(size, 0)
    if node.op == "Not" and before[0] is not None:
        return ~before[0]
    if node.op in ("And", "Or"):
        parts = [part for part in before if part is not None]
        if len(parts) == 2:
            return all_of(parts) if node.op == "And" else any_of(parts)
    return None


def _size(fact: Fact | None) -> Number | None:
    """The one whole number of a tensor; None where it has others, or it is not known."""
    content = None if fact is None else fact.content
    if content is None or len(content) != 1 or content[0] is None or isinstance(content[0], Real):
        return None
    return content[0]


__all__ = ["truth_of"]
