"""Rules with their own alignment, on every pair of small shapes, compared with the documents.

Each oracle below says for two shapes whether a document (for `paddle`: a measurement) allows them,
what the result is, and which element goes where. It knows nothing of the package.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import oracles
import pytest

import zerostride as zs
from zerostride.core.rules import RULES, align_none, align_numpy, align_unidirectional

Shape = tuple[int, ...]
#: The result's shape and where each operand's elements come from; None where refused.
Verdict = tuple[Shape, tuple[oracles.Where, ...]] | None

SHAPES = [s for rank in range(4) for s in itertools.product((0, 1, 2), repeat=rank)]
SHAPES += [(3,), (3, 2), (2, 3), (1, 3), (3, 1), (3, 3), (2, 3, 2), (3, 3, 3), (1, 2, 3)]


def joined(shapes: list[Shape], starts: list[int], rank: int) -> Shape | None:
    """The result when operands lie at `starts` and any of them may stretch."""
    result = []
    for axis in range(rank):
        sizes = {
            shape[axis - start]
            for shape, start in zip(shapes, starts, strict=True)
            if 0 <= axis - start < len(shape)
        } - {1}
        if len(sizes) > 1:
            return None
        result.append(sizes.pop() if sizes else 1)
    return tuple(result)


def at(start: int, shape: Shape) -> oracles.Where:
    return partial(oracles.placed_at(range(start, start + len(shape))), shape)


def pdpd(a: Shape, b: Shape, axis: int | None = None) -> Verdict:
    if len(b) > len(a) or (axis is not None and axis < -1):
        return None
    start = len(a) - len(b) if axis in (None, -1) else axis
    assert start is not None
    kept = list(b)
    while kept and kept[-1] == 1:
        kept.pop()
    if start + len(kept) > len(a):
        return None
    for j, size in enumerate(kept):
        if size not in (1, a[start + j]):
            return None
    return a, (at(0, a), partial(oracles.starting_at(axis, len(a)), b))


def paddle(a: Shape, b: Shape, axis: int | None = None) -> Verdict:
    rank = max(len(a), len(b))
    axis = -1 if axis is None else axis
    if len(a) == len(b):
        if a != b and axis not in (-1, 0):
            return None
        start = 0
    else:
        if not -rank <= axis < rank:
            return None
        start = axis if axis >= 0 else abs(len(a) - len(b)) + axis + 1
        if start < 0 or start + min(len(a), len(b)) > rank:
            return None
    starts = [0 if len(shape) == rank else start for shape in (a, b)]
    result = joined([a, b], starts, rank)
    return None if result is None else (result, (at(starts[0], a), at(starts[1], b)))


def ncnn(a: Shape, b: Shape) -> Verdict:
    # A scalar is a vector of one element.
    a_, b_ = a or (1,), b or (1,)
    rank = max(len(a_), len(b_))
    if rank > 4:
        return None

    def start(own: Shape, other: Shape) -> int:
        return rank - 1 if len(own) == 1 < len(other) and own[0] != other[0] else 0

    starts = [start(a_, b_), start(b_, a_)]
    result = joined([a_, b_], starts, rank)
    if result is None:
        return None
    return result, tuple(at(first, shape) for first, shape in zip(starts, (a, b), strict=True))


def onnx6(a: Shape, b: Shape, axis: int | None = None, broadcast: int = 0) -> Verdict:
    if not broadcast:
        return (a, (at(0, a), at(0, b))) if a == b and axis is None else None
    if len(b) > len(a):
        return None
    if set(b) <= {1}:
        return a, (at(0, a), at(len(a) - len(b), b))
    start = len(a) - len(b) if axis is None else axis
    if start < 0 or a[start : start + len(b)] != b:
        return None
    return a, (at(0, a), at(start, b))


def with_axis(a: Shape, b: Shape) -> Iterator[dict[str, Any]]:
    yield {}
    for axis in range(-3, 4):
        yield {"axis": axis}


def with_broadcast(a: Shape, b: Shape) -> Iterator[dict[str, Any]]:
    for asked in with_axis(a, b):
        yield {**asked, "broadcast": 1}
    yield {}
    yield {"axis": 0}


def nothing(a: Shape, b: Shape) -> Iterator[dict[str, Any]]:
    yield {}


#: The oracle of each element-wise rule with its own alignment, and the attributes to try.
ORACLES: dict[str, tuple[Callable[..., Verdict], Callable[..., Iterator[dict[str, Any]]]]] = {
    "pdpd": (pdpd, with_axis),
    "paddle": (paddle, with_axis),
    "ncnn": (ncnn, nothing),
    "onnx6": (onnx6, with_broadcast),
}
#: Alignments that `test_rules.py` compares with NumPy.
COMPARED_WITH_NUMPY = {align_none, align_numpy, align_unidirectional}


def test_every_rule_with_its_own_alignment_has_an_oracle() -> None:
    aligned = {name for name, rule in RULES.own.items() if rule.align not in COMPARED_WITH_NUMPY}
    assert aligned == {*ORACLES, "explicit"}


@pytest.mark.parametrize("rule", ORACLES)
def test_elementwise_rules_match_their_oracle(rule: str) -> None:
    oracle, attributes = ORACLES[rule]
    accepted = refused = 0
    for a, b in itertools.product(SHAPES, repeat=2):
        for asked in attributes(a, b):
            wanted = oracle(a, b, **asked)
            try:
                plan = zs.plan(a, b, rule=rule, **asked)
            except zs.BroadcastError:
                assert wanted is None, (a, b, asked)
                refused += 1
                continue
            assert wanted is not None, plan
            oracles.check_values(plan, *wanted)
            accepted += 1
    assert accepted > 300
    assert refused > 300


def test_explicit_matches_its_oracle() -> None:
    accepted = refused = 0
    for data, target in itertools.product(SHAPES, repeat=2):
        for axes in itertools.product(range(-1, len(target) + 1), repeat=min(len(data), 2)):
            fine = (
                len(axes) == len(data)
                and all(0 <= axis < len(target) for axis in axes)
                and all(one < next_ for one, next_ in itertools.pairwise(axes))
                and all(size in (1, target[axis]) for size, axis in zip(data, axes, strict=True))
            )
            try:
                plan = zs.plan_to(data, target, mode="explicit", axes_mapping=axes)
            except zs.BroadcastError:
                assert not fine, (data, target, axes)
                refused += 1
                continue
            assert fine, plan
            oracles.check_values(plan, target, (partial(oracles.placed_at(axes), data),))
            accepted += 1
    assert accepted > 300
    assert refused > 300
