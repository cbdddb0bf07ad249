"""The command line: every command, every form of a shape, every bad input.

The rule that holds for all: a documented exit status, one clear message, and never a traceback.
"""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

import click
import numpy as np
import pytest
from commandline import Run

import zerostride as zs
from work import calls_of
from zerostride.cli.main import cli
from zerostride.compute import native
from zerostride.engines import ENGINES, versions

EXAMPLES = Path(__file__).parents[2] / "examples"
VISION = str(EXAMPLES / "tiny_vision.onnx")
CLEAN = str(EXAMPLES / "clean.onnx")
COMMANDS = sorted(cli.commands)


# Commands, options and statuses.


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_every_command_has_help(run: Run, name: str, flag: str) -> None:
    answer = run(name, flag)
    assert answer.status == 0
    assert answer.out.startswith(f"Usage: zerostride {name}")
    for option in cli.commands[name].params:
        if isinstance(option, click.Option):
            assert option.help, f"{name} {option.name} does not say what it does"


def test_group_lists_every_command(run: Run) -> None:
    answer = run("--help")
    assert answer.status == 0
    assert all(f"\n  {name} " in answer.out for name in COMMANDS)
    assert "..." not in answer.out.split("Commands:")[1], "a summary is cut off"
    version, computing = run("--version").out.splitlines()
    assert version == f"zerostride, version {zs.__version__}"
    assert computing.startswith(f"backend: {zs.backend()}")
    assert ("without its C++ engine" in computing) is (native.lacking() != "")


def test_missing_command_prints_help_with_status_2(run: Run) -> None:
    answer = run()
    assert answer.status == 2
    assert "Commands:" in answer.out + answer.err


SHAPES = {
    "2,3,4": (2, 3, 4),
    "2, 3, 4": (2, 3, 4),
    "[2,3,4]": (2, 3, 4),
    "(2,3,4)": (2, 3, 4),
    "(3,)": (3,),
    "3": (3,),
    "2x3x4": (2, 3, 4),
    "2×3×4": (2, 3, 4),
    "()": (),
    "[]": (),
    "scalar": (),
    "0,3": (0, 3),
    " 5 ": (5,),
}


@pytest.mark.parametrize(("written", "shape"), SHAPES.items())
def test_shapes_may_be_written_in_several_forms(
    run: Run, written: str, shape: tuple[int, ...]
) -> None:
    answer = run("explain", written, "--json")
    assert answer.status == 0
    assert json.loads(answer.out)["shape"] == list(shape)


def test_shape_may_be_a_file_or_a_tensor(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="tensors are read from ONNX files")
    np.save(tmp_path / "a.npy", np.zeros((4, 1, 1)))
    answer = run("explain", tmp_path / "a.npy", f"{VISION}:stem_column", "--json")
    assert answer.status == 0
    assert json.loads(answer.out)["operands"] == [[4, 1, 1], [8]]


def test_misspelt_tensor_gets_near_names(run: Run) -> None:
    pytest.importorskip("onnx", reason="tensors are read from ONNX files")
    answer = run("explain", f"{VISION}:stem_colum")
    assert answer.status == 2
    assert "did you mean 'stem_column'" in answer.err


def test_missing_option_value_is_one_line(run: Run) -> None:
    answer = run("audit", VISION)
    assert answer.status == 2
    assert answer.err.splitlines()[-1].startswith(
        "Error: Missing option '--target'. Choose from: numpy, torch, "
    )


#: Calls of functions that refusing a text takes at most.
MOST_CALLS = 3_000_000
BAD_SHAPES = [
    "",
    "N x",
    "2,,3",
    "2;3",
    "[2,3",
    "2,3]",
    "(2,3]",
    "2.5",
    "1e3",
    "2N",
    "²",
    "٣",
    "a.npy",
    "nope.onnx:x",
    ".onnx:",
    "\x1b[31m",
    "\x00",
    "２,３",
    "9" * 5000,
    "1" + " " * 100_000 + "!",
    "1," * 100_000 + "!",
    "x" * 1_000_000,
    "(" * 1_000_000,
]


@pytest.mark.parametrize("written", BAD_SHAPES, ids=range(len(BAD_SHAPES)))
def test_invalid_shape_is_bad_input(run: Run, written: str) -> None:
    answers = []
    assert calls_of(lambda: answers.append(run("explain", written, "3"))) < MOST_CALLS
    (answer,) = answers
    assert answer.status == 2
    assert answer.out == ""
    assert len(answer.err) < 4000
    assert all(line.isprintable() for line in answer.err.splitlines())


@pytest.mark.parametrize(
    ("shapes", "status"),
    [
        (["--", "-1,2", "3"], 2),
        (["-1,2", "3"], 2),  # read as an option, and the message says how not to
        (["9223372036854775808", "3"], 2),
        (["9223372036854775807", "1"], 0),
        (["9223372036854775807,9223372036854775807", "1"], 1),
        (["2x" * 64 + "2"], 1),
        (["1x" * 63 + "1", "1"], 0),
        (["2,3", "4"], 1),
        (["--", "--rule", "3"], 2),
    ],
)
def test_extreme_sizes_are_handled(run: Run, shapes: list[str], status: int) -> None:
    answer = run("explain", *shapes)
    assert answer.status == status
    assert (answer.err == "") == (status == 0)


def test_leading_minus_is_explained(run: Run) -> None:
    assert "goes after --" in run("explain", "-1,2", "3").err
    assert "goes after --" not in run("explain", "--nope", "3").err


EXPLAIN = [
    ["2,3,4,5", "3,4", "--rule", "pdpd", "--axis", "1"],
    ["2,3,4,5", "3,4", "--rule", "onnx6", "--axis", "1", "--broadcast", "1"],
    ["3,5", "5", "--engine", "ncnn"],
    ["8,4,4", "8", "--engine", "ncnn", "--op", "prelu"],
    ["16", "--to", "1,16,50,50", "--mode", "explicit", "--axes-mapping", "1"],
    ["16", "--to", "2,16"],
    ["5,5", "5", "--express", "ncnn"],
    ["5,5", "5", "--code", "torch"],
    ["4,3,2", "4,3,2", "--whdc", "--rule", "ncnn"],
]


@pytest.mark.parametrize("arguments", EXPLAIN, ids=lambda words: " ".join(words))
def test_explain_accepts_every_option(run: Run, arguments: list[str]) -> None:
    answer = run("explain", *arguments)
    assert (answer.status, answer.err) == (0, "")
    data = json.loads(run("explain", *arguments, "--json").out)
    keys = {"ok", "shape", "operands", "aligned", "axes_mapping", "stretched", "rule", "growth"}
    assert keys | {"two_sided"} <= data.keys()
    assert data["ok"] is True
    assert ("express" in data) == ("--express" in arguments)
    assert ("code" in data) == ("--code" in arguments)


def test_explain_removes_the_batch_axis(run: Run) -> None:
    """What the audit says of an add in a model, explain says of its shapes."""
    shapes = ("1,16,8,8", "16,1,1", "--engine", "ncnn")
    assert "--batch-axis 0" in run("explain", *shapes).out
    told = run("explain", *shapes, "--batch-axis", "0")
    assert "without axis 0, the batch" in told.out
    assert told.out.startswith(run("explain", "16,8,8", "16,1,1", "--engine", "ncnn").out.rstrip())
    assert run("explain", "1,16", "16", "--batch-axis", "0").status == 2
    assert run("explain", *shapes, "--batch-axis", "4").status == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["2,3", "3", "--mode", "numpy"], "--mode goes with --to"),
        (["2,3", "--to", "3", "--rule", "numpy"], "--rule does not go with --to"),
        (["2,3", "3", "--to", "3"], "--to takes one data shape, not 2"),
        (["2,3", "3", "--rule", "nope"], "'nope'"),
        (["2,3", "3", "--engine", "nope"], "'nope'"),
        (["2,3", "3", "--express", "nope"], "nope"),
        (["2,3", "3", "--code", "nope"], "nope"),
        (["2,3", "3", "--op", "nope", "--engine", "ncnn"], "nope"),
        (["2,3", "3", "--axis", "1"], "axis"),
        (["2,3", "3", "--axis", "x"], "axis"),
        (["2,3", "3", "--axis", "9" * 5000], "axis"),
        (["2,3", "3", "--rule", "pdpd", "--axis", "9" * 40], "axis"),
        (["2", "--to", "2", "--mode", "explicit", "--axes-mapping", "a"], "not a list of axes"),
        (["2,3", "3", "--nope"], "--nope"),
        ([], "SHAPES"),
    ],
)
def test_explain_reports_wrong_calls(run: Run, arguments: list[str], said: str) -> None:
    answer = run("explain", *arguments)
    assert answer.status in (1, 2)
    assert answer.out == ""
    assert said in answer.err


def test_refusal_is_json_with_option_json(run: Run) -> None:
    answer = run("explain", "2,3,4", "3", "--json")
    assert (answer.status, answer.err) == (1, "")
    data = json.loads(answer.out)
    assert data["ok"] is False
    assert data["reason"] == "extent_mismatch"
    assert {"detail", "rule", "shapes", "axis", "silent", "hint"} <= data.keys()
    for arguments in (
        ("compare", "5,5", "5", "--reference", "nope"),
        ("compute", "add", "nope.npy", "nope.npy"),
        ("audit", "nope.onnx", "--target", "ncnn"),
    ):
        answer = run(*arguments, "--json")
        assert answer.status == 2
        assert json.loads(answer.out)["ok"] is False


def test_compare_finds_silent_differences(run: Run) -> None:
    assert run("compare", "5,5", "5").status == 1
    assert run("compare", "3,5", "3,5").status == 0
    data = json.loads(run("compare", "5,5", "5", "--json").out)
    assert data.keys() == {"shapes", "reference", "rows"}
    assert {"kind", "name", "verdict", "silent", "plan", "refusal"} <= data["rows"][0].keys()
    pdpd = ("compare", "3,5", "3", "--reference", "pdpd", "--axis", "0")
    assert run(*pdpd).status == 1  # OpenCV computes nonsense of these shapes
    assert run(*pdpd, "--engine", "openvino").status == 0
    assert run("compare", "5,3", "3", "--whdc").out.startswith("(3, 5) and (3,)")
    assert run("compare", "5,5", "5", "--reference", "nope").status == 2


def test_engines_lists_and_describes(run: Run) -> None:
    assert run("engines").status in (0, 1)  # 1 if another release than the measured one is here
    data = json.loads(run("engines", "--json").out)
    assert [row["name"] for row in data] == list(ENGINES)
    one = json.loads(run("engines", "ncnn", "--json").out)
    keys = "name measured measured_too installed is_measured source rules broadcast_modes max_rank"
    assert {*keys.split(), "divergences", "dtypes", "ops", "package", "run"} == one.keys()
    assert list(one["ops"]["prelu"]) == ["pdpd"]
    assert "ncnn  measured" in run("engines", "ncnn").out
    assert run("engines", "nope").status == 2
    assert run("engines", "--measure").status == 2
    for words in (("--cases", "5"), ("--release", "2.0")):
        assert f"{words[0]} goes with --measure" in run("engines", "numpy", *words).err
    assert "--release goes with --measure" in run("engines", "numpy==2.0").err
    assert run("engines", "nump==2.0", "--measure").status == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(run: Run, shell: str) -> None:
    answer = run("completion", shell)
    assert answer.status == 0
    assert "_ZEROSTRIDE_COMPLETE" in answer.out


def test_completion_without_the_shell_is_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    answer = run("completion", "bash")
    assert answer.status in (0, 2)  # older releases of click do not ask bash for its version
    assert len(answer.err.splitlines()) <= 1


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (
            "zerostride ",
            set(COMMANDS),
        ),
        ("zerostride au", {"audit"}),
        ("zerostride audit --target op", {"opencv", "openvino"}),
        ("zerostride explain --rule pd", {"pdpd"}),
        ("zerostride explain --wh", {"--whdc"}),
        ("zerostride explain 5,5 5 --express te", {"tensorflow", "tensorrt"}),
        ("zerostride explain 5,5 5 --code openv", {"openvino", "openvino-ir"}),
        ("zerostride compare --reference pd", {"pdpd"}),
        ("zerostride compute logical_x", {"logical_xor"}),
    ],
)
def test_completion_offers_candidates(
    run: Run, monkeypatch: pytest.MonkeyPatch, typed: str, offered: set[str]
) -> None:
    monkeypatch.setenv("_ZEROSTRIDE_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(typed.count(" ")))
    answer = run()
    assert answer.status == 0
    assert {line.split(",")[1] for line in answer.out.splitlines()} == offered


# audit.


def test_audit_of_a_clean_model_has_status_0(run: Run) -> None:
    pytest.importorskip("onnx", reason="audits read ONNX files")
    answer = run("audit", CLEAN, "--target", "ncnn")
    assert (answer.status, answer.err) == (0, "")
    assert answer.out.count("\n") == 3  # and a note on pnnx, and the next command
    assert run("audit", CLEAN, "--target", "litert").out.count("\n") == 2
    assert run("audit", CLEAN, "--target", "litert", "--full").out.count("\n") == 10


def test_audit_accepts_every_option(run: Run) -> None:
    pytest.importorskip("onnx", reason="audits read ONNX files")
    plain = run("audit", VISION, "--target", "ncnn")
    assert plain.status == 1
    assert run("audit", VISION, "--target", "ncnn", "--via", "none", "--full").out.count("\n") > 90
    assert run("audit", VISION, "--target", "ncnn", "--via", "none").out != plain.out
    assert run("audit", VISION, "--target", "ncnn", "--via", "pnnx").out == plain.out
    assert run("audit", VISION, "--target", "torch", "--via", "pnnx").status == 2
    assert run("audit", VISION, "--target", "ncnn", "--batch-axis", "none").out != plain.out
    assert run("audit", VISION, "--target", "ncnn", "--batch-axis", "0").status == 1
    for axis in ("x", "-1", "²", "9" * 5000, ""):
        assert run("audit", VISION, "--target", "ncnn", "--batch-axis", axis).status == 2
    assert run("audit", VISION).status == 2
    assert run("audit", "--target", "ncnn").status == 2


def test_strict_audit_needs_no_target(run: Run) -> None:
    answer = run("audit", "--strict", str(EXAMPLES / "bugs" / "pytorch-16045.onnx"))
    assert "on onnxruntime" in answer.out.splitlines()[0]
    assert "\nnote: ZS118 Sub y: " in answer.out
    assert answer.status == 0
    own = run("audit", "--strict", str(EXAMPLES / "square_add.param"))
    assert "on ncnn" in own.out.splitlines()[0]
    assert "'--target'" in run("audit", VISION).err


def test_tables_with_other_releases_fit_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zerostride.cli.engines.installed", lambda _: "1.0.20271231")
    monkeypatch.setattr("zerostride.engines.versions.installed", lambda _: "1.0.20271231")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    answer = run("engines")
    assert answer.status == 1
    plain = re.sub(r"\x1b\[[0-9;]*m", "", answer.out).splitlines()
    assert max(map(len, plain)) <= 80
    assert "! another release than measured" in plain[-1]
    assert all(" ! " in line for line in plain if line.startswith(("numpy", "ncnn", "litert ")))


@pytest.mark.parametrize(
    "arguments",
    [
        ("explain", "5,5", "5"),
        ("explain", "5,5", "5", "--engine", "ncnn"),
        ("compare", "5,5", "5"),
        ("compute", "--help"),
        ("audit", VISION, "--target", "ncnn"),
    ],
)
def test_another_numpy_release_is_noted_only_where_it_matters(
    run: Run, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    pytest.importorskip("onnx", reason="audits read ONNX files")
    real = versions.installed
    monkeypatch.setattr(
        versions, "installed", lambda name: "99.0" if name == "numpy" else real(name)
    )
    versions.warn_if_unmeasured.cache_clear()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            assert "numpy 99.0" not in run(*arguments).err
            told = run("audit", VISION, "--target", "numpy").err
    finally:
        versions.warn_if_unmeasured.cache_clear()
    assert told.count("numpy 99.0 is installed") == 1


def test_audit_json_keeps_its_form(run: Run) -> None:
    pytest.importorskip("onnx", reason="audits read ONNX files")
    data = json.loads(run("audit", VISION, "--target", "ncnn", "--json").out)
    keys = "schema model target via release ok counts findings notes needs command before"
    keys += " changes output checks"
    assert data.keys() == set(keys.split())
    keys = "node op operands source target verdict reason code message fix witness notes"
    keys += " when values origin source_fix"
    assert all(row.keys() == set(keys.split()) for row in data["findings"])
    assert sum(data["counts"].values()) == len(data["findings"])


def test_one_unreadable_model_does_not_hide_the_others(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="audits read ONNX files")
    bad = tmp_path / "bad.onnx"
    bad.write_text("not a model")
    answer = run("audit", bad, CLEAN, "--target", "torch")
    assert answer.status == 2
    assert "bad.onnx" in answer.err
    assert "clean.onnx on torch" in answer.out
    data = json.loads(run("audit", bad, CLEAN, "--target", "torch", "--json").out)
    assert [one["ok"] for one in data] == [False, True]
