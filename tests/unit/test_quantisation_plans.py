"""Where scales and zero points lie on a tensor: the value, its text, its refusals."""

from __future__ import annotations

import itertools
import math
import pickle
from typing import Any

import pytest

import zerostride as zs
from zerostride.quantisation import QUANTIZERS, STANDARD
from zerostride.quantisation.model import Placement

Shape = tuple[int, ...]


def scale_of(x: Shape, scale: Shape, index: Shape, axis: int | None, block: int | None) -> Shape:
    """The place of the scale of an element: ONNX's document, one index at a time."""
    if block is not None:
        k = 1 if axis is None else axis % len(x)
        return tuple(i // block if j == k else i for j, i in enumerate(index))
    if len(scale) == len(x) and scale != (1,) and axis is None and len(x) != 1:
        return tuple(0 if n == 1 else i for n, i in zip(scale, index, strict=True))
    return (0,) * len(scale) if math.prod(scale) == 1 else (index[1 if axis is None else axis],)


def planned_scale(plan: zs.QuantizationPlan, index: Shape) -> Shape:
    """The same by the plan over split axes."""
    split: list[int] = []
    for i, n, b in zip(index, plan.shape, plan.blocks, strict=True):
        split += [i // b, i % b] if 1 < b < n else [i]
    places = [0] * len(plan.plan.operands[1])
    for own, axis in enumerate(plan.plan.axes_mapping[1]):
        if axis is not None and axis not in plan.plan.stretched[1]:
            places[own] = split[axis]
    return tuple(places)


def cases() -> list[tuple[Shape, Shape, int | None, int | None]]:
    found: list[tuple[Shape, Shape, int | None, int | None]] = []
    for x in ((6,), (2, 6), (4, 3), (2, 3, 4), (1, 5), (3, 1, 2)):
        found += [(x, (), None, None), (x, (1,), None, None)]
        for axis in range(-len(x), len(x)):
            found.append((x, (x[axis],), axis, None))
            for block in (1, 2, 3, 5, 8):
                scale = tuple(-(-n // block) if k == axis % len(x) else n for k, n in enumerate(x))
                found.append((x, scale, axis, block))
        if len(x) > 1:
            found += [
                (x, tuple(n if bit else 1 for n, bit in zip(x, bits, strict=True)), None, None)
                for bits in itertools.product((0, 1), repeat=len(x))
            ]
    return found


@pytest.mark.parametrize(("x", "scale", "axis", "block"), cases())
def test_each_element_has_the_scale_of_the_document(
    x: Shape, scale: Shape, axis: int | None, block: int | None
) -> None:
    plan = zs.plan_quantization(x, scale, scale, axis=axis, block=block)
    for index in itertools.product(*map(range, x)):
        expected = scale_of(x, scale, index, axis, block)
        if scale == (1,):
            expected = (0,)
        assert planned_scale(plan, index) == expected, index
    assert plan.operands == (x, scale, scale)


def test_equality_is_meaning() -> None:
    by_axis = zs.plan_quantization((2, 3), (3,), axis=1)
    assert by_axis == zs.plan_quantization((2, 3), (3,), axis=-1)
    assert by_axis == zs.plan_quantization((2, 3), (1, 3))
    assert hash(by_axis) == hash(zs.plan_quantization((2, 3), (1, 3)))
    assert by_axis != zs.plan_quantization((2, 3), (2,), axis=0)
    # A block of one element is an index; one of all elements is a scale that repeats.
    assert zs.plan_quantization((2, 3), (2, 3), block=1) == zs.plan_quantization((2, 3), (2, 3))
    assert zs.plan_quantization((2, 3), (2, 1), block=9) == zs.plan_quantization((2, 3), (2, 1))
    assert zs.plan_quantization((2, 5), (2, 2), block=3) != zs.plan_quantization(
        (2, 6), (2, 2), block=3
    )
    assert by_axis != (2, 3)


def test_square_tensor_shows_the_axis() -> None:
    rows = zs.plan_quantization((4, 4), (4,), axis=0)
    assert rows != zs.plan_quantization((4, 4), (4,))
    assert rows.axes == (0,)
    assert "axis 0" in str(rows)


def test_text_has_the_drawing_and_the_cut_block() -> None:
    text = zs.plan_quantization((4, 50), (4, 2), (4, 2), axis=1, block=32).explain()
    assert text.splitlines() == [
        "rule 'quantization' axis=1 block=32: a scale for each block of 32 along axis 1",
        "  x           4 2 32",
        "  scale       4 2  .",
        "  zero point  4 2  .",
        "axis 1: 50 elements in blocks of 32; the last block has 18",
        "8 scales for 200 elements",
    ]


def test_blocks_of_two_axes() -> None:
    plan = zs.plan_quantization((256, 384), (2, 3), axis=(0, 1), block=(128, 128))
    assert plan.split == (2, 128, 3, 128)
    assert plan.plan.aligned[1] == (2, 1, 3, 1)
    assert plan.plan.strides(1, (12, 4)) == (12, 0, 4, 0)


def test_values_are_frozen_and_pickled() -> None:
    plan = zs.plan_quantization((4, 64), (4, 2), block=32)
    assert pickle.loads(pickle.dumps(plan)) == plan
    with pytest.raises(AttributeError):
        plan.shape = (1,)  # type: ignore[misc]


REFUSED: tuple[tuple[tuple[Any, ...], dict[str, Any], str, str], ...] = (
    (((2, 3), (2,)), {}, "extent_mismatch", "write axis=0"),
    (((6,), (6,)), {}, "axis_range", "write axis=0"),
    (((2, 3), (3,)), {"axis": 2}, "axis_range", ""),
    (((2, 3), (3,)), {"axis": True}, "attribute", "write axis=1"),
    (((2, 6), (2, 3)), {}, "extent_mismatch", "write axis=1, block=2"),
    (((2, 6), (2, 3)), {"block": 2, "axis": 0}, "extent_mismatch", "write axis=1"),
    (((2, 6), (2, 3)), {"block": 0}, "attribute", "write axis=1, block=32"),
    (((2, 6), (2, 3)), {"block": (2, 2)}, "attribute", "axis=(0, 1)"),
    (((2, 6), (2, 3)), {"block": 2, "opset": 13}, "no_rule", "write opset=21"),
    (((2, 6), (6,)), {"opset": 10}, "no_rule", "write opset=13"),
    (((2, 6), (6,)), {"opset": 9}, "attribute", ""),
    (((2, 3), (1, 3)), {"opset": 21}, "no_rule", "leave out opset="),
    (((2, 3), (1, 3)), {"engine": "onnxruntime"}, "no_rule", "it takes"),
    (((2, 3), (3,)), {"engine": "torch"}, "attribute", "name the axis"),
    (((2, 3), ()), {"engine": "torch", "opset": 13}, "attribute", "leave out opset="),
    (((2, 5), (2, 3), (2, 3)), {"block": 2, "engine": "openvino"}, "extent_mismatch", "pad x"),
    (((2, 6), (2, 3)), {"block": 2, "engine": "openvino"}, "attribute", "pass zeros"),
    (((2, 5), (2,), (2,)), {"engine": "ncnn"}, "attribute", "leave it out"),
    (((2, 5), (5,)), {"axis": 1, "engine": "ncnn"}, "axis_range", "write axis=0"),
    (((5,), (5,)), {"engine": "ncnn"}, "wrong_result", "add an axis of 1 behind"),
    (((5,), ()), {"engine": "mnn"}, "crash", "2 axes"),
    (((2, 9), (9,)), {"engine": "mnn"}, "wrong_result", "one sample"),
    (((7,), (1,)), {"axis": 0, "block": 8, "engine": "onnxruntime"}, "no_rule", "leave out block="),
    (((2, 5), (5,), ()), {"engine": "onnxruntime"}, "extent_mismatch", "np.full((5,), "),
    (((2, 3), (3,), (2,)), {}, "extent_mismatch", ""),
    (((2, 3, 4), (3, 4)), {}, "rank", "reshape it to (1, 3, 4)"),
    ((("N", 3), (3,)), {}, "unknown_size", ""),
    (((2, 3), (3,)), {"engine": "nobody"}, "unknown_engine", "onnxruntime"),
    (((2, -3), (3,)), {}, "bad_extent", ""),
)


@pytest.mark.parametrize(("shapes", "asked", "reason", "hint"), REFUSED)
def test_refusals_say_what_to_do(
    shapes: tuple[Any, ...], asked: dict[str, Any], reason: str, hint: str
) -> None:
    with pytest.raises(zs.BroadcastError) as caught:
        zs.plan_quantization(*shapes, **asked)
    assert caught.value.reason == reason
    assert hint in (caught.value.hint or "")
    assert str(caught.value)


def test_openvino_takes_a_scale_of_one_element_for_one_number() -> None:
    plan = zs.plan_quantization((15,), (1,), (1,), axis=0, block=16, engine="openvino")
    assert plan == zs.plan_quantization((15,), (1,), (1,), axis=0, block=16)


def test_a_wrong_result_that_the_engine_does_not_report_is_silent() -> None:
    with pytest.raises(zs.BroadcastError) as caught:
        zs.plan_quantization((5,), (5,), engine="ncnn")
    assert caught.value.silent


def test_hints_that_name_an_axis_and_a_block_are_right() -> None:
    for x, scale, axis, block in cases():
        if block is None or block == 1 or 1 in x or axis is None or x[axis] % block:
            continue
        try:
            zs.plan_quantization(x, scale)
        except zs.BroadcastError as error:
            hint = error.hint or ""
            if hint.startswith("write axis=") and "block" in hint:
                named = dict(part.split("=") for part in hint.removeprefix("write ").split(", "))
                asked = {name: int(value) for name, value in named.items()}
                assert zs.plan_quantization(x, scale, **asked) == zs.plan_quantization(
                    x, scale, axis=axis, block=block
                )


def test_rows_state_their_source_and_whether_they_were_run() -> None:
    for name, row in QUANTIZERS.items():
        assert row.name == name
        assert row.run == row.source.startswith("run: ")
        assert row.release in row.source
        assert row.stores
        assert set(row.placements) <= set(Placement)
        assert row.rounding.sentence()
    assert STANDARD.placements[Placement.BLOCK] == 21
