"""Calls drawn and shrunk by Hypothesis: the native engine compared with the reference."""

from __future__ import annotations

import random

import numpy as np
import pytest
from campaigns.native.cases import (
    DrawnCall,
    Memory,
    Number,
    Shape,
    View,
    bfloat16,
    extent_of,
    source,
)
from campaigns.native.command import public
from campaigns.native.draw import draw
from campaigns.native.judge import judge
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from native_scripts import needs_native

from zerostride.ops import OPS

pytestmark = needs_native
BINARY = [op.name for op in OPS.values() if op.tensors == 2 and op.name != "clip"]
UNARY = [op.name for op in OPS.values() if op.operands == 1 and op.name != "cast"]
DTYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
DTYPES += ["float16", "float32", "float64", *(["bfloat16"] if bfloat16() else [])]
#: What is near the ends of vectors, tiles and blocks.
EXTENTS = st.one_of(st.integers(0, 5), st.sampled_from([7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 513]))
MOST = 20_000

EXAMPLES = settings(
    max_examples=400,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@st.composite
def shapes(draw) -> Shape:
    shape: Shape = ()
    for n in draw(st.lists(EXTENTS, max_size=5)):
        shape = (*shape, n if n * int(np.prod(shape)) <= MOST else 1)
    return shape


@st.composite
def views(draw, memory: int, shape: Shape, dtype: str, own: bool) -> tuple[View, Memory]:
    """An array of any layout in memory of its own; with `own` no two elements share bytes."""
    size = 2 if dtype == "bfloat16" else np.dtype(dtype).itemsize
    order = draw(st.permutations(range(len(shape))))
    step, strides = size, [0] * len(shape)
    for axis in order:
        if not own and draw(st.integers(0, 5)) == 5:
            continue
        stride = step * draw(st.sampled_from([1, 1, 1, 2, 3]))
        step = stride * max(shape[axis], 1)
        strides[axis] = -stride if draw(st.integers(0, 4)) == 4 else stride
    lead = draw(st.sampled_from([0, 0, 0, 1, size]))
    first, end = extent_of(lead, shape, tuple(strides), size)
    offset = lead - min(first, 0) + (lead % size if first < 0 else 0)
    style = draw(st.sampled_from(["small", "plain", "special", "bits"]))
    length = end - min(first, 0) + lead
    own_memory = Memory(length, dtype, style, draw(st.integers(0, 8000)), offset % size)
    return View(memory, dtype, offset, shape, tuple(strides)), own_memory


@st.composite
def elementwise(draw, names: list[str], count: int) -> DrawnCall:
    shape = draw(shapes())
    dtype = draw(st.sampled_from(DTYPES))
    memories: list[Memory] = []
    operands: list[View | Number] = []
    for _ in range(count):
        if draw(st.integers(0, 9)) == 9:
            operands.append(Number(draw(st.sampled_from([0, 1, -1, 2, 0.5, -0.0, True]))))
            continue
        own = dtype if draw(st.integers(0, 3)) else draw(st.sampled_from(DTYPES))
        cut = shape[draw(st.integers(0, len(shape))) :] if draw(st.booleans()) else shape
        cut = tuple(n if draw(st.integers(0, 3)) else 1 for n in cut)
        view, memory = draw(views(len(memories), cut, own, own=False))
        memories.append(memory)
        operands.append(view)
    out = None
    if draw(st.integers(0, 2)) == 2:
        dtypes = [view.dtype for view in operands if isinstance(view, View)]
        view, memory = draw(
            views(
                len(memories), shape, draw(st.sampled_from([*dtypes, "float64", "bool"])), own=True
            )
        )
        out, memories = view, [*memories, memory]
    return DrawnCall(draw(st.sampled_from(names)), tuple(memories), tuple(operands), out, {})


def agree(call: DrawnCall) -> None:
    difference = judge(call, public(call.op)).difference
    assert not difference, f"{difference}\n{source(call)}"


@EXAMPLES
@given(elementwise(BINARY, 2))
def test_two_operands_match_the_reference(call):
    agree(call)


@EXAMPLES
@given(elementwise(UNARY, 1))
def test_one_operand_matches_the_reference(call):
    agree(call)


@EXAMPLES
@given(elementwise(["where"], 3))
def test_three_operands_match_the_reference(call):
    agree(call)


@EXAMPLES
@given(st.integers(0, 2**32))
def test_drawn_calls_match_the_reference(seed):
    agree(draw(random.Random(seed)))


def test_comparison_can_fail():
    @settings(max_examples=500, derandomize=True, database=None, deadline=None)
    @given(elementwise(["add"], 2))
    def wrong(call: DrawnCall) -> None:
        assert not judge(call, lambda a, b, out=None: np.subtract(a, b, out=out)).difference

    with pytest.raises(AssertionError):
        wrong()
