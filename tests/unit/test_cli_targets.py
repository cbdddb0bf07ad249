"""One name for the engine, in three spellings; and what -o names."""

from __future__ import annotations

from pathlib import Path

import pytest

import warm

VISION = str(Path(__file__).parents[2] / "examples" / "tiny_vision.onnx")
COMMANDS = {
    "audit": ["audit", VISION, "--summary"],
    "port": ["port", VISION, "--dry-run"],
}


@pytest.fixture(autouse=True)
def _onnx() -> None:
    pytest.importorskip("onnx", reason="audits read ONNX files")


@pytest.mark.parametrize("words", COMMANDS.values(), ids=[*COMMANDS])
def test_three_spellings_and_the_old_name_of_litert(words: list[str]) -> None:
    pairs = ("--target", "litert"), ("--to", "litert"), ("--engine", "tflite")
    answers = [warm.run([*words, *pair]) for pair in pairs]
    assert answers[0].stdout
    assert len({(answer.returncode, answer.stdout) for answer in answers}) == 1


@pytest.mark.parametrize("name", ["audit", "port", "convert", "verify"])
def test_help_and_errors_show_one_spelling(name: str) -> None:
    text = warm.run([name, "--help"]).stdout
    assert "  --target " in text
    assert "--to" not in text.replace("--tolerance", "")
    assert "--engine" not in text
    if name != "verify":
        error = warm.run([name, VISION, "-o", "x.json" if name == "audit" else "x"]).stderr
        assert "Missing option '--target'" in error


def test_a_question_about_shapes_takes_the_target_too() -> None:
    by_engine = warm.run(["explain", "3,1", "3", "--engine", "ncnn"])
    assert by_engine.stdout
    assert warm.run(["explain", "3,1", "3", "--target", "ncnn"]).stdout == by_engine.stdout


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["convert", "-o", "r.html"], "-o names the folder, which gets a report.html; another"),
        (["convert", "-o", "m.ncnn.param"], "-o names the folder, not a file"),
        (["convert", "-o", VISION], "-o names the folder, not a file"),
        (["port", "-o", "r.html"], "-o names the ported model; a report: --report FILE"),
        (["port", "-o", "."], ". is a folder; -o names the file of the ported model"),
        (["audit", "-o", "."], ". is a folder; name the report's file, such as report.html"),
        (["audit", "-o", "m.onnx"], "a report's name ends in one of"),
    ],
)
def test_output_of_a_wrong_kind_names_the_right_option(words: list[str], error: str) -> None:
    done = warm.run([words[0], VISION, "--target", "ncnn", *words[1:]])
    assert done.returncode == 2
    assert error in " ".join(done.stderr.split())
