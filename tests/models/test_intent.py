"""Notes of a strict audit on broadcasts that look accidental."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small
from onnx import TensorProto

import zerostride as zs

BUGS = Path(__file__).parents[2] / "examples" / "bugs"


def notes_of(op: str, *shapes: Any, whole: bool = False, strict: bool = True) -> list[str]:
    """The notes of an audit of one op that have a code."""
    model = small.model([small.node(op, "a b")], dict(zip("ab", shapes, strict=True)))
    for value in model.graph.input if whole else ():
        value.type.tensor_type.elem_type = TensorProto.INT64
    report = small.audit(model, "onnxruntime", strict=strict)
    return [note for note in report.notes if note.startswith("ZS")]


@pytest.mark.parametrize(
    ("op", "shapes", "change"),
    [
        ("Sub", ((8, 1), (8,)), "reshape b to (8, 1)"),
        ("Add", ((8,), (8, 1)), "reshape a to (8, 1)"),
        ("Mul", ((8, 8, 1), (8, 8)), "reshape b to (8, 8, 1)"),
        ("Div", ((8, 1, 3), (8, 3)), "reshape b to (8, 1, 3)"),
        ("Sub", (("N", 1), ("N",)), "reshape b to (N, 1)"),
    ],
)
def test_equal_sizes_are_an_accident(op: str, shapes: Any, change: str) -> None:
    (note,) = notes_of(op, *shapes)
    assert note.startswith(f"ZS118 {op} site: a ")
    assert note.endswith(f"if each number was to meet its own: {change}")
    if all(isinstance(size, int) for shape in shapes for size in shape):
        # Under the change no operand stretches against another one, and nothing grows.
        low, high = sorted(shapes, key=len)
        after = eval(change.partition(" to ")[2])
        result = np.broadcast_shapes(after, high)
        assert result == high
        assert np.broadcast_shapes(low, high) != high
    assert notes_of(op, *shapes, strict=False) == []


@pytest.mark.parametrize(
    ("op", "shapes"),
    [
        ("Sub", ((8, 1), (1, 8))),  # the author inserted both axes
        ("Sub", ((4, 8), (8,))),  # one operand has the result's shape
        ("Sub", ((8, 1), ())),
        ("Mul", ((64, 1), (512,))),  # a product of vectors
        ("Sub", ((4, 1), (5,))),  # little growth
        ("Sub", (("N", 1), ("M",))),
        ("Mul", ((8, 1, 1), (8, 8))),  # a number for each of 8, and a matrix
    ],
)
def test_meant_broadcasts_have_no_note(op: str, shapes: Any) -> None:
    assert notes_of(op, *shapes) == []


def test_masks_of_whole_numbers_have_no_note() -> None:
    assert notes_of("Less", (8, 1), (8,), whole=True) == []
    assert len(notes_of("Less", (8, 1), (8,))) == 1


def test_growth_has_a_code_of_its_own() -> None:
    (note,) = notes_of("Add", (160, 1), (475,))
    assert note == (
        "ZS119 Add site: a (160, 1) and b (475,) stretch against each other to (160, 475); "
        "where it is meant, give both operands one rank"
    )


@pytest.mark.parametrize("name", ["pytorch-16045", "tensorflow-37770"])
def test_public_bugs_have_a_note(name: str) -> None:
    report = zs.audit(BUGS / f"{name}.onnx", "onnxruntime", strict=True)
    assert report.ok, "every engine computes it"
    assert sum(note.startswith("ZS118 Sub") for note in report.notes) == 1
