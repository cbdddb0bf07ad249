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


def test_other_engines_have_no_outcomes(tmp_path: Path) -> None:
    path = of_one("ADD", (2, 3), (2,)).write(tmp_path / "m.tflite")
    report = zs.audit(path, "ncnn")
    assert not any("clean" in note for note in report.notes)
