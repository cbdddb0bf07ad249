"""What a delegate makes of a model: carried, left to the CPU, refused, or silently wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tflite_files import Model, of_one

import zerostride as zs


def outcome(model: Model, folder: Path) -> tuple[str, str]:
    """The outcome of the only finding, and the answer for the model."""
    report = zs.audit(model.write(folder / "m.tflite"), "litert-gpu")
    (finding,) = report.findings
    (clean,) = (note for note in report.notes if "clean" in note)
    return (finding.notes or ("carried",))[-1], clean


@pytest.mark.parametrize(
    ("op", "first", "second", "expected"),
    [
        ("ADD", (1, 4, 4, 3), (1, 4, 4, 3), "carried"),
        ("ADD", (1, 4, 4, 3), (3,), "silently wrong"),
        ("ADD", (1, 4, 4, 3), (4, 4, 3), "silently wrong"),
        ("ADD", (2, 4, 4, 3), (4, 4, 3), "falls back to the CPU"),
        ("ADD", (2, 2, 2, 3), (2, 3), "silently wrong"),
        ("ADD", (2, 4, 4, 3), (4, 3), "falls back to the CPU"),
        ("MUL", (3, 4, 4), (4, 4), "falls back to the CPU"),
        ("SUB", (2, 4, 4, 3), (4, 3), "silently wrong"),
        ("SUB", (1, 2, 4, 4, 3), (1, 2, 4, 4, 3), "falls back to the CPU"),
        ("ATAN2", (2, 3), (2, 3), "falls back to the CPU"),
        ("ADD", (2, 3), (), "refused: the delegate does not start"),
    ],
)
def test_an_op_of_two_tensors(
    op: str, first: tuple[int, ...], second: tuple[int, ...], expected: str, tmp_path: Path
) -> None:
    told, clean = outcome(of_one(op, first, second), tmp_path)
    assert told == expected
    assert (": clean" in clean) == (expected == "carried")
    if expected != "carried":
        assert clean.startswith(f"litert-gpu: not clean; {expected}: {op}_2")


@pytest.mark.parametrize("rank", [1, 2])
def test_a_constant_that_the_check_refuses_is_reshaped(rank: int, tmp_path: Path) -> None:
    """ADD and MUL of rank 4 and 2 stay on the CPU; a vector is taken."""
    model = Model()
    model.main.input("x", 2, 4, 4, 3)
    model.main.constant("c", np.ones((4, 3)[2 - rank :], np.float32))
    model.main.op("ADD", "x c", "y")
    model.main.output("y")
    assert outcome(model, tmp_path)[0] == ("carried" if rank == 1 else "falls back to the CPU")
    report = zs.port(tmp_path / "m.tflite", "litert-gpu", tmp_path / "p.tflite")
    assert report.ok
    assert any(note.startswith("litert-gpu: clean") for note in report.notes)


def test_a_constant_number_is_carried_beside_open_sizes(tmp_path: Path) -> None:
    model = Model()
    model.main.input("x", 1, 5, signature=(-1, 5))
    model.main.constant("c", np.float32(2))
    model.main.op("MUL", "x c", "y")
    model.main.output("y")
    assert outcome(model, tmp_path)[0] == "carried"


@pytest.mark.parametrize(
    ("op", "dtype", "expected"),
    [
        ("ADD", "float16", "carried"),
        ("ADD", "int32", "falls back to the CPU"),
        ("MAXIMUM", "int64", "falls back to the CPU"),
        ("LOGICAL_AND", "bool", "carried"),
        ("SUB", "int8", "falls back to the CPU"),
    ],
)
def test_an_element_type(op: str, dtype: str, expected: str, tmp_path: Path) -> None:
    model = Model()
    model.main.input("x0", 2, 3, dtype=dtype)
    model.main.input("x1", 2, 3, dtype=dtype)
    model.main.add("y", (2, 3), dtype)
    model.main.op(op, "x0 x1", "y")
    model.main.output("y")
    assert outcome(model, tmp_path)[0] == expected


def test_a_misread_constant_is_worse_than_its_element_type(tmp_path: Path) -> None:
    model = Model()
    model.main.input("x", 2, 3, dtype="int32")
    model.main.constant("c", np.arange(3, dtype=np.int32))
    model.main.add("y", (2, 3), "int32")
    model.main.op("SUB", "x c", "y")
    model.main.output("y")
    assert outcome(model, tmp_path)[0] == "silently wrong"


@pytest.mark.parametrize(
    ("dtype", "scales", "expected"),
    [("int8", (0.5,), "carried"), ("int8", (), "falls"), ("int16", (0.5,), "falls")],
)
def test_quantised_tensors_have_eight_bits(
    dtype: str, scales: tuple[float, ...], expected: str, tmp_path: Path
) -> None:
    model = Model()
    for name in ("a", "b"):
        model.main.input(name, 2, 3, dtype=dtype, scales=scales)
    model.main.add("y", (2, 3), dtype, scales=scales)
    model.main.op("SUB", "a b", "y")
    model.main.output("y")
    assert outcome(model, tmp_path)[0].startswith(expected)


@pytest.mark.parametrize("op", ["ADD", "MUL", "SUB", "DIV", "MAXIMUM", "POW"])
def test_one_tensor_as_both_operands(op: str, tmp_path: Path) -> None:
    """google-ai-edge/LiteRT#9192: a square and a double have kernels of their own."""
    model = Model()
    model.main.input("x", 2, 3)
    model.main.op(op, "x x", "y")
    model.main.output("y")
    carried = op in ("ADD", "MUL")
    assert outcome(model, tmp_path)[0] == ("carried" if carried else "falls back to the CPU")
    report = zs.port(tmp_path / "m.tflite", "litert-gpu", tmp_path / "p.tflite")
    assert not report.changes
    (left,) = report.findings
    assert carried == (left.verdict == "same")
    assert carried or any(note.startswith("not ported: ") for note in left.notes)


@pytest.mark.parametrize(
    ("readers", "expected"),
    [
        ("CAST", "carried"),
        ("SELECT_V2", "carried"),
        ("", "falls"),
        ("LOGICAL_NOT", "falls"),
        ("CAST CAST", "falls"),
        ("CAST:int32", "falls"),
    ],
)
def test_the_reader_of_a_comparison(readers: str, expected: str, tmp_path: Path) -> None:
    """tensorflow/tensorflow#62314: "Not supported logical op case"."""
    model = Model()
    graph = model.main
    graph.input("x", 2, 3)
    graph.input("z", 2, 3)
    graph.add("c", (2, 3), "bool")
    graph.op("LESS", "x z", "c")
    for place, reader in enumerate(readers.split()):
        op, _, dtype = reader.partition(":")
        operands = "c x z" if op == "SELECT_V2" else "c"
        graph.add(f"y{place}", (2, 3), dtype or ("bool" if op == "LOGICAL_NOT" else "float32"))
        graph.op(op, operands, f"y{place}")
        graph.output(f"y{place}")
    if not readers:
        graph.output("c")
    report = zs.audit(model.write(tmp_path / "m.tflite"), "litert-gpu")
    finding = report.findings[0]
    assert (finding.notes or ("carried",))[-1].startswith(expected)
    assert (finding.verdict == "same") == (expected == "carried")
    assert zs.audit(tmp_path / "m.tflite", "litert").ok


def test_other_engines_have_no_outcomes(tmp_path: Path) -> None:
    path = of_one("ADD", (2, 3), (2,)).write(tmp_path / "m.tflite")
    report = zs.audit(path, "ncnn")
    assert not any("clean" in note for note in report.notes)


def test_comparison_and_choice_are_both_mended(tmp_path: Path) -> None:
    model = Model()
    graph = model.main
    graph.input("x", 1, 4, 2, 3)
    graph.input("c", 4, 2, 3)
    graph.op("LESS", "x c", "low")
    graph.op("SELECT_V2", "low x c", "y")
    graph.output("y")
    file, ported = model.write(tmp_path / "m.tflite"), tmp_path / "p.tflite"
    report = zs.port(file, "litert-gpu", ported)
    assert [str(finding.verdict) for finding in report.findings] == ["same", "same"]
    assert [change.op for change in report.changes] == ["LESS", "SELECT_V2"]


def test_choice_of_few_axes_stays(tmp_path: Path) -> None:
    """Its condition cannot be reshaped: a comparison's reader is a CAST or a SELECT."""
    model = Model()
    graph = model.main
    graph.input("x", 4, 2)
    graph.constant("c", np.ones((4, 2), np.float32))
    graph.op("LESS", "x c", "low")
    graph.op("SELECT_V2", "low x c", "y")
    graph.output("y")
    report = zs.port(model.write(tmp_path / "m.tflite"), "litert-gpu", tmp_path / "p.tflite")
    assert [str(finding.verdict) for finding in report.findings] == ["same", "refused"]
    assert not report.changes
