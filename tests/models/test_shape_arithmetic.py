"""Arithmetic of shapes is the same on every target; arithmetic read by data is judged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import small

import zerostride as zs


def report(*nodes: Any, outputs: tuple[str, ...] = ("y",), **weights: Any) -> Any:
    inputs = {"x": ("N", 4, 6), "z": (3,)}
    constants = {name: np.asarray(value) for name, value in weights.items()}
    return small.audit(small.model(nodes, inputs, constants, outputs=outputs), "mnn", via="none")


SIZES = (
    small.node("Shape", "x", "s", name="shape"),
    small.node("Gather", "s first", "n", name="gather"),
    small.node("Mul", "n two", "m", name="mul"),
    small.node("Concat", "m rest", "t", name="concat", axis=0),
)
NUMBERS = {"first": [0], "two": [2], "rest": [-1]}


def names(answer: Any) -> list[str]:
    """The nodes that are judged, and not only counted."""
    return [finding.node for finding in answer.findings if finding.reason != "folded"]


def test_shape_arithmetic_is_only_counted() -> None:
    text = report(*SIZES, small.node("Reshape", "x t", "y", name="reshape"), **NUMBERS)
    assert [(f.node, f.reason) for f in text.findings] == [("mul", "folded")]
    assert [note for note in text.notes if note.startswith("1 broadcast computes sizes")]
    assert text.ok


@pytest.mark.parametrize("reader", ["Cast", "output"])
def test_arithmetic_read_by_data_is_judged(reader: str) -> None:
    reshape = small.node("Reshape", "x t", "r", name="reshape")
    last = [small.node("Cast", "m", "y", name="cast", to=1)] if reader == "Cast" else []
    outputs = ("y", "r") if reader == "Cast" else ("m", "r")
    text = report(*SIZES, reshape, *last, outputs=outputs, **NUMBERS)
    assert names(text) == ["mul"]
    assert not [note for note in text.notes if "sizes from sizes" in note]


def test_sizes_in_data_are_judged() -> None:
    float_ = small.node("Cast", "n", "f", name="cast", to=1)
    add = small.node("Add", "z f", "y", name="add")
    (finding,) = report(*SIZES[:2], float_, add, first=[0]).findings
    assert finding.reason == "same_plan"


def test_matrix_is_no_shape() -> None:
    wide = small.node("Mul", "n grid", "m", name="mul")
    tile = small.node("Reshape", "m flat", "f", name="flatten")
    last = small.node("Reshape", "x f", "y", name="reshape")
    text = report(*SIZES[:2], wide, tile, last, first=[0], grid=[[2, 1]], flat=[-1])
    assert names(text) == ["mul"]


def test_failing_arithmetic_is_judged() -> None:
    wrong = small.node("Add", "s two", "m", name="add")
    last = small.node("Reshape", "x m", "y", name="reshape")
    text = report(SIZES[0], wrong, last, two=[2, 2])
    assert [(f.node, f.reason) for f in text.findings] == [("add", "invalid_source")]


def test_port_leaves_shape_arithmetic(tmp_path: Any) -> None:
    nodes = (*SIZES, small.node("Reshape", "x t", "y", name="reshape"))
    constants = {name: np.asarray(value) for name, value in NUMBERS.items()}
    file = tmp_path / "m.onnx"
    model = small.model(nodes, {"x": ("N", 4, 6)}, constants)
    file.write_bytes(model.SerializeToString())
    done = zs.port(file, "ncnn", dry_run=True)
    assert done.changes == ()
    assert done.ok
