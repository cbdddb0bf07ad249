"""Outputs that cannot be written: one line and exit status 2, for every command."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import warm
from zerostride.cli.main import cli

EXAMPLES = Path(__file__).parents[2] / "examples"
FULL = Path("/dev/full")
pytestmark = pytest.mark.skipif(not FULL.exists(), reason="the system has no /dev/full")
_DRY = "--dry-run"
#: A call of every command; those of MODELS read one. And how it writes files.
CALLS = {
    "audit": ["model.onnx", "--target", "ncnn"],
    "bisect": ["model.onnx", "--other-engine", "openvino"],
    "compare": ["5,5", "5"],
    "completion": ["bash"],
    "compute": ["add", "a.npy", "b.npy"],
    "convert": ["model.onnx", "--to", "openvino", "-o", "out"],
    "engines": ["numpy"],
    "equivalent": ["model.onnx", "model.onnx"],
    "explain": ["2,3", "3"],
    "port": ["model.onnx", "--target", "ncnn", _DRY],
    "run": ["model.onnx", "--random", "0"],
    "shapes": ["model.onnx"],
    "verify": ["model.onnx", "--engine", "numpy"],
}
ENGINES = find_spec("onnxruntime") and find_spec("openvino")
#: The text of these needs ONNX Runtime or OpenVINO.
ON_ENGINES = ("bisect", "convert")
MODELS = ("audit", "bisect", "convert", "equivalent", "port", "run", "shapes", "verify")
_ENDINGS = ("html", "json", "md")
_REPORTING = ("equivalent", "port", "verify")
WRITES = [
    *(("audit", "-o", f"full.{ending}") for ending in _ENDINGS),
    ("audit", "--write-baseline", "full.json"),
    *((command, "--report", f"full.{e}") for command in _REPORTING for e in _ENDINGS),
    *((name, "--report", f"full.{end}") for name in ON_ENGINES for end in _ENDINGS if ENGINES),
    ("compute", "-o", "full.npy"),
    ("explain", "--svg", "full.svg"),
    ("port", "-o", "full.onnx"),
    ("run", "-o", "full.npy"),
    ("shapes", "-o", "full.onnx"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(EXAMPLES / "tiny_vision.onnx", tmp_path / "model.onnx")
    for name, shape in (("a.npy", (2, 3)), ("b.npy", (3,))):
        np.save(tmp_path / name, np.ones(shape, np.float32))
    for ending in (*_ENDINGS, "npy", "svg", "onnx"):
        (tmp_path / f"full.{ending}").symlink_to(FULL)
    return tmp_path


def ended(folder: Path, *words: str, errors: bool = False) -> tuple[int, str]:
    """The status and the error output of a call whose output (and error output) is full."""
    if words[0] in MODELS and find_spec("onnx") is None:
        pytest.skip("the models are ONNX files")
    with FULL.open("wb") as full:
        done = warm.run(words, cwd=folder, stdout=full, stderr=full if errors else None)
    return done.returncode, done.stderr


def test_every_command_has_a_call_in_this_test() -> None:
    assert set(CALLS) == set(cli.commands)


@pytest.mark.parametrize("command", sorted(CALLS))
@pytest.mark.parametrize("form", [[], ["--json"], ["--help"]], ids=["text", "json", "help"])
def test_full_output_is_one_line(command: str, form: list[str], folder: Path) -> None:
    if command == "completion" and form == ["--json"]:
        pytest.skip("a script has no JSON")
    if command in ON_ENGINES and not form and not ENGINES:
        pytest.skip(f"the text of {command} needs ONNX Runtime or OpenVINO")
    status, error = ended(folder, command, *CALLS[command], *form)
    assert (status, error.count("\n")) == (2, 1), error
    assert "No space left on device" in error


@pytest.mark.parametrize("words", [["audit", "no.onnx"], ["explain", "2,3", "4"], ["nothing"]])
def test_refusal_that_cannot_be_printed_keeps_its_status(words: list[str], folder: Path) -> None:
    status, error = ended(folder, *words, "--json")
    assert status == 2
    assert error
    assert "Traceback" not in error
    assert ended(folder, *words, "--json", errors=True)[0] == 2


@pytest.mark.parametrize("words", WRITES, ids=" ".join)
def test_full_file_is_one_line(words: tuple[str, ...], folder: Path) -> None:
    command, option, name = words
    call = [word for word in CALLS[command] if (command, option, word) != ("port", "-o", _DRY)]
    status, error = ended(folder, command, *call, option, name)
    assert (status, error.count("\n")) == (2, 1), error


def test_every_option_that_names_a_file_has_a_call_in_this_test() -> None:
    flags = {"-o", "--report", "--svg", "--write-baseline"}
    called = {(command, option) for command, option, _ in WRITES}
    for name, command in cli.commands.items():
        for option in command.params:
            is_folder = getattr(option.type, "file_okay", True) is False
            if flags & {*option.opts} and not is_folder and (name not in ON_ENGINES or ENGINES):
                assert called & {(name, flag) for flag in option.opts}, (name, option.opts)
