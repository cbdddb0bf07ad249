"""Places, margins and steps that are counted from an axis's end, as others from its start."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from models.prepared_models import Array, compared, random, saved
from zerostride.models.formats.onnx.prepared import rewritten, with_shapes

SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=3)
DTYPES = st.sampled_from([np.int32, np.int64])


def distinct(shape: list[int], axis: int, count: int, seed: int) -> Array:
    """Distinct places along an axis, from its start and its end by turns."""
    line = random(*shape).argsort(axis).take(range(count), axis)
    return line - shape[axis] * (np.random.default_rng(seed).random(line.shape) < 0.5)


@settings(deadline=None, max_examples=60)
@given(shape=SHAPES, dtype=DTYPES, data=st.data())
def test_places_of_elements(
    tmp_path_factory: pytest.TempPathFactory,
    shape: list[int],
    dtype: type[np.signedinteger],
    data: st.DataObject,
) -> None:
    folder = tmp_path_factory.mktemp("models")
    axis = data.draw(st.integers(0, len(shape) - 1))  # onnx's evaluator takes no other
    count = data.draw(st.integers(1, shape[axis]))
    places = distinct(shape, axis, count, data.draw(st.integers(0, 99))).astype(dtype)
    fixed = data.draw(st.booleans())
    if fixed:
        places.flat[0] -= shape[axis] * (places.flat[0] >= 0)  # one of them is below 0
    x, held = random(*shape), {"i": places} if fixed else {}
    inputs = {"x": x} if fixed else {"x": x, "i": places}
    node = helper.make_node("GatherElements", ["x", "i"], ["y"], axis=axis)
    path = saved(folder / "m.onnx", [node], inputs, ["y"], held)
    expected = np.take_along_axis(x, places, axis)
    ops = compared(path, inputs, {"GatherElements"}, folder / "new.onnx", expected)
    assert ("Where" in ops) is not fixed

    inputs["u"] = random(*places.shape) + 5
    node = helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], axis=axis)
    path = saved(folder / "s.onnx", [node], inputs, ["y"], held)
    expected = x.copy()
    np.put_along_axis(expected, places, inputs["u"], axis)
    compared(path, inputs, {"ScatterElements"}, folder / "new.onnx", expected)


@settings(deadline=None, max_examples=40)
@given(shape=SHAPES, data=st.data())
def test_places_of_slices(
    tmp_path_factory: pytest.TempPathFactory, shape: list[int], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("models")
    count = data.draw(st.integers(1, len(shape)))
    rows = [data.draw(st.integers(-n, n - 1)) for n in shape[:count] for _ in range(3)]
    places = np.array(rows).reshape(count, 3).T
    x = random(*shape)
    node = helper.make_node("GatherND", ["x", "i"], ["y"])
    path = saved(folder / "m.onnx", [node], {"x": x, "i": places}, ["y"])
    expected = x[tuple(places.T)]
    compared(path, {"x": x, "i": places}, {"GatherND"}, folder / "new.onnx", expected)


@pytest.mark.parametrize("op", ["GatherElements", "ScatterElements"])
def test_places_from_the_start_stay(tmp_path: Path, op: str) -> None:
    x = random(4, 3)
    names = ["x", "i", "x"][: 3 if op.startswith("S") else 2]
    node = helper.make_node(op, names, ["y"])
    places = np.zeros((4, 3), np.int64)
    path = saved(tmp_path / "m.onnx", [node], {"x": x}, ["y"], {"i": places})
    with_shapes(path, tmp_path / "new.onnx", {"x": x.shape})
    assert not rewritten(tmp_path / "new.onnx", frozenset({op}))


@settings(deadline=None, max_examples=60)
@given(shape=st.lists(st.integers(2, 5), min_size=1, max_size=3), data=st.data())
def test_margins_below_0(
    tmp_path_factory: pytest.TempPathFactory, shape: list[int], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("models")
    first = [data.draw(st.integers(-(n // 2), 2)) for n in shape]
    last = [data.draw(st.integers(-(n // 2) + 1, 2)) for n in shape]
    first[0] = -1
    x = random(*shape)
    value = np.array(data.draw(st.sampled_from([0, 7])), np.float32)
    held = {"pads": np.array([*first, *last]), "value": value}
    path = saved(
        folder / "m.onnx",
        [helper.make_node("Pad", ["x", "pads", "value"], ["y"])],
        *({"x": x}, ["y"], held),
    )
    pairs = zip(first, last, shape, strict=True)
    cut = x[tuple(slice(max(-a, 0), n + min(b, 0)) for a, b, n in pairs)]
    margins = [(max(a, 0), max(b, 0)) for a, b in zip(first, last, strict=True)]
    expected = np.pad(cut, margins, constant_values=value)
    assert "Slice" in compared(path, {"x": x}, {"Pad"}, folder / "new.onnx", expected)


@settings(deadline=None, max_examples=60)
@given(shape=SHAPES, data=st.data())
def test_slices_backwards(
    tmp_path_factory: pytest.TempPathFactory, shape: list[int], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("models")
    axis = data.draw(st.integers(0, len(shape) - 1))
    shape[axis] += 1
    start = data.draw(st.integers(-shape[axis] + 1, -1))
    step = data.draw(st.integers(-3, -1))
    x = random(*shape)
    bounds = {"a": [start], "b": [-(2**31)], "c": [axis], "d": [step]}
    held = {name: np.array(bound, np.int64) for name, bound in bounds.items()}
    node = helper.make_node("Slice", ["x", *held], ["y"])
    path = saved(folder / "m.onnx", [node], {"x": x}, ["y"], held)
    cut = (*(slice(None) for _ in range(axis)), slice(start, None, step))
    assert "Concat" in compared(path, {"x": x}, {"Slice"}, folder / "new.onnx", x[cut])
