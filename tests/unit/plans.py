"""Plans of every kind for tests: made by a rule, by hand with dropped axes, or refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import strategies as st

import zerostride as zs
from zerostride.core.plan import Plan, RuleUse

NAMES = ("numpy", "pdpd", "ncnn", "explicit", "bidirectional", "by hand")


@st.composite
def any_plan(draw: st.DrawFn, max_rank: int = 8, largest: int = 10**6) -> Plan:
    """Any valid plan: 1 to 5 operands, rank 0 to 8, ones, zeros, large sizes, dropped axes."""
    size = st.one_of(st.integers(0, 3), st.integers(0, largest))
    sizes = st.lists(size, max_size=max_rank)
    shape = tuple(draw(sizes))
    if _product(shape) >= 2**63:
        shape = shape[:3]
    operands, mappings = [], []
    for _ in range(draw(st.integers(1, 5))):
        operand: list[int] = []
        mapping: list[int | None] = []
        for axis, full in enumerate(shape):
            match draw(st.sampled_from(["full", "one", "absent", "dropped"])):
                case "full":
                    operand, mapping = [*operand, full], [*mapping, axis]
                case "one":
                    operand, mapping = [*operand, 1], [*mapping, axis]
                case "dropped":
                    operand, mapping = [*operand, 1], [*mapping, None]
        operands.append(tuple(operand))
        mappings.append(tuple(mapping))
    use = RuleUse(draw(st.sampled_from(NAMES)), {}, draw(st.sampled_from([None, "ncnn", "else"])))
    return Plan(shape, tuple(operands), tuple(mappings), use)


def refusal(call: Callable[..., Any], *args: Any, **named: Any) -> zs.BroadcastError | None:
    """The error that refuses a call; None if it is not refused."""
    try:
        call(*args, **named)
    except zs.BroadcastError as error:
        return error
    return None


def refused(*shapes: Any, **asked: Any) -> zs.BroadcastError:
    """The error that refuses a plan; asserts that there is one."""
    with pytest.raises(zs.BroadcastError) as caught:
        zs.plan(*shapes, **asked)
    return caught.value


def reason_of(*shapes: Any, **asked: Any) -> str:
    """The reason why a plan is refused."""
    return refused(*shapes, **asked).reason


def _product(shape: tuple[int, ...]) -> int:
    total = 1
    for size in shape:
        total *= size or 1
    return total
