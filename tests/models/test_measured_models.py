"""The command that measures models: its counts of errors and its reports."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import small
from campaigns.__main__ import main
from campaigns.models.command import counts
from campaigns.models.measure import (
    Pair,
    files_in,
    light_models,
    measure,
    targets,
    wrong_rewrites,
    wrong_same,
)

from zerostride.errors import BadInput
from zerostride.models.findings import Check, Finding, Outcome, Verdict

EXAMPLES = Path(__file__).parents[2] / "examples"
FINDING = Finding("a", "Add", (), None, None, Verdict.SAME, "same_plan", "means the same")
CHECK = Check("a", "Add", (), Outcome.DIFFERS, "3 numbers differ")


def test_wrong_same_verdict_is_counted() -> None:
    for outcome in Outcome:
        check = replace(CHECK, outcome=outcome)
        wrong = outcome in (Outcome.DIFFERS, Outcome.REFUSED, Outcome.CRASHED)
        assert bool(wrong_same([FINDING], [check])) == wrong
    assert wrong_same([FINDING], [CHECK]) == ["a (Add): differs 3 numbers differ"]
    for verdict in set(Verdict) - {Verdict.SAME}:
        assert wrong_same([replace(FINDING, verdict=verdict)], [CHECK]) == []


def test_wrong_rewrite_is_counted() -> None:
    assert wrong_rewrites([CHECK], {"a"}) == ["a (Add): differs 3 numbers differ"]
    assert wrong_rewrites([CHECK], {"b"}) == []
    assert wrong_rewrites([replace(CHECK, outcome=Outcome.AGREES)], {"a"}) == []


def test_pair_with_an_error_is_not_ok() -> None:
    pair = Pair("m.onnx", "onnx", "ncnn")
    assert pair.ok
    assert not replace(pair, wrong_same=["a"]).ok
    assert not replace(pair, wrong_rewrites=["a"]).ok
    assert not replace(pair, faults={"port": "TypeError: no"}).ok
    assert counts({"agrees": 3, "differs": 1, "crashed": 1, "not_run": 4}) == (3, 2)


def test_model_is_audited_verified_ported_and_verified_again(tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    nodes = [small.node("Add", "x b", "s", name="sum"), small.node("Mul", "s b", name="product")]
    file.write_bytes(small.model(nodes, {"x": (5, 5)}, {"b": (5,)}).SerializeToString())
    (pair,) = measure(file, ["numpy"])
    assert (pair.nodes, pair.verdicts, pair.outcomes) == (2, {"same": 2}, {"agrees": 2})
    assert (pair.rewrites, pair.left, pair.missing, pair.faults) == (0, 0, {}, {})
    # What cannot be run is audited and ported all the same.
    (pair,) = measure(file, ["tosa"])
    assert pair.verdicts == {"refused": 2}
    assert "tosa does not run here" in pair.missing["verify"]
    assert (pair.rewrites, pair.left, pair.ok) == (2, 0, True)


def test_unreadable_file_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "m.onnx"
    file.write_bytes(b"nothing of the kind")
    (pair,) = measure(file, ["numpy"])
    assert "not a readable ONNX model" in pair.missing["read"]
    assert pair.ok
    assert main(["models", str(tmp_path), "--target", "numpy", "--here"]) == 0
    output = capsys.readouterr().out
    assert "not read" in output
    assert "0 wrong same, 0 wrong rewrites, 0 faults" in output


def test_model_files_are_found_in_folders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a").mkdir()
    for name in ("a/m.onnx", "n.xml", "n.bin", "o.txt"):
        (tmp_path / name).write_bytes(b"")
    listed = [path.relative_to(tmp_path).as_posix() for path in files_in([tmp_path])]
    assert listed == ["a/m.onnx", "n.xml"]
    assert files_in([tmp_path / "o.txt"]) == [tmp_path / "o.txt"]
    with pytest.raises(BadInput, match="no such file"):
        files_in([tmp_path / "p"])
    assert main(["models", str(tmp_path / "p")]) == 2
    assert main(["models", "--target", "nobody"]) == 2
    assert "there is no engine 'nobody'" in capsys.readouterr().err
    assert {"numpy", "ncnn", "litert"} <= set(targets())
    assert len(light_models()) > 5


def test_json_has_a_row_for_each_pair(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(EXAMPLES / "clean.onnx")
    status = main(["models", file, "--target", "numpy", "--target", "stablehlo", "--json"])
    report = json.loads(capsys.readouterr().out)
    assert status == 0
    assert [pair["target"] for pair in report["pairs"]] == ["numpy", "stablehlo"]
    assert report["pairs"][0]["outcomes"] == {"agrees": report["pairs"][0]["broadcasts"]}
