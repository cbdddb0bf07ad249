"""The measuring machinery with NumPy alone: the comparison must be able to fail."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from campaigns.__main__ import main
from campaigns.recorded import read_cases

import zerostride as zs
from sampled import few
from zerostride.core.plan import Plan
from zerostride.errors import BadInput, Reason
from zerostride.runtimes.probe.__main__ import probe
from zerostride.runtimes.probe.case import Case
from zerostride.runtimes.probe.catalogue import CATALOGUE, ShapeRoles, row_of
from zerostride.runtimes.probe.command import run_command
from zerostride.runtimes.probe.conformance import Judged, ask, judge, run_engine
from zerostride.runtimes.probe.generate import generate
from zerostride.runtimes.probe.kinds import KINDS
from zerostride.runtimes.probe.ladder import ladder
from zerostride.runtimes.probe.predict import expected_values, predict, shapes_of
from zerostride.runtimes.process import Missing, NotStarted, Process, interpreter_for
from zerostride.runtimes.runners import RUNNERS
from zerostride.runtimes.task import Form, Reply, ReplyKind, Task

MOVES: tuple[Callable[[Any], Any], ...] = (
    np.transpose,
    np.flipud,
    np.fliplr,
    lambda x: np.roll(x, 1),
)
CASE = Case("numpy", "subtract", (2, 3), (3,))


def right_answer(case: Case) -> Reply:
    plan = predict(case)
    assert isinstance(plan, Plan)
    return Reply(ReplyKind.RESULT, arrays=tuple(expected_values(case, plan)))


def test_right_result_is_equal() -> None:
    assert judge(CASE, predict(CASE), right_answer(CASE)) is Judged.EQUAL


@pytest.mark.parametrize("element", range(6))
def test_wrong_element_is_a_disagreement(element: int) -> None:
    array = right_answer(CASE).arrays[0].copy()
    array.reshape(-1)[element] += 1
    wrong = Reply(ReplyKind.RESULT, arrays=(array,))
    assert judge(CASE, predict(CASE), wrong) is Judged.DISAGREE


def test_right_values_in_another_shape_are_a_disagreement() -> None:
    (right,) = right_answer(CASE).arrays
    turned = Reply(ReplyKind.RESULT, arrays=(right.reshape(3, 2),))
    assert judge(CASE, predict(CASE), turned) is Judged.DISAGREE


def test_results_of_too_few_passes_are_a_disagreement() -> None:
    case = Case("numpy", "where", (2,), (2,), (2,))
    right = right_answer(case)
    assert judge(case, predict(case), right) is Judged.EQUAL
    fewer = Reply(ReplyKind.RESULT, arrays=right.arrays[:-1])
    assert judge(case, predict(case), fewer) is Judged.DISAGREE


@pytest.mark.parametrize("kind", [kind for kind in ReplyKind if kind is not ReplyKind.RESULT])
def test_missing_answer_to_a_valid_plan_is_a_disagreement(kind: ReplyKind) -> None:
    assert judge(CASE, predict(CASE), Reply(kind)) is Judged.DISAGREE


def test_result_instead_of_a_predicted_refusal_is_a_disagreement() -> None:
    case = Case("numpy", "subtract", (2,), (3,))
    result = Reply(ReplyKind.RESULT, arrays=(np.zeros(3),))
    assert judge(case, predict(case), result) is Judged.DISAGREE
    assert judge(case, predict(case), Reply(ReplyKind.REFUSED)) is Judged.REFUSE


def test_refusal_instead_of_a_predicted_silent_error_is_a_disagreement() -> None:
    case = Case("ncnn", "BinaryOp", (2, 3), (4, 5), attrs={"op_type": 0})
    predicted = predict(case)
    assert isinstance(predicted, zs.BroadcastError)
    assert predicted.silent
    assert judge(case, predicted, Reply(ReplyKind.REFUSED)) is Judged.DISAGREE
    assert judge(case, predicted, Reply(ReplyKind.CRASHED)) is Judged.SILENT


def test_predicted_silent_error_with_numpys_result_is_a_disagreement() -> None:
    claim = zs.BroadcastError("claimed", reason=Reason.WRONG_RESULT, silent=True)
    assert judge(CASE, claim, right_answer(CASE)) is Judged.DISAGREE


@pytest.mark.parametrize("name", KINDS)
def test_operands_distinguish_every_misplacement(name: str) -> None:
    """Rolling, reversing or transposing an operand changes the values of every kind."""
    kind = KINDS[name]
    if name == "where":
        shapes = [(4, 4), (4, 4), (4, 4)]
    else:
        shapes = [(4, 4)] if name == "broadcast" else [(4, 4), (4, 4)]
    passes = kind.operands(shapes, "float64")
    right = [np.asarray(kind.function(*operands), np.float64) for operands in passes]
    assert kind.matches(right, right)
    for k in range(len(shapes)):
        for move in MOVES:
            moved = [
                np.asarray(
                    kind.function(*(move(x) if j == k else x for j, x in enumerate(operands))),
                    np.float64,
                )
                for operands in passes
            ]
            assert not kind.matches(moved, right)


@pytest.mark.parametrize("name", KINDS)
def test_operands_are_distinct_up_to_the_limit(name: str) -> None:
    kind = KINDS[name]
    count = min(kind.limit, 1024)
    operands = 3 if name == "where" else 1 if name == "broadcast" else 2
    for k in range(operands):
        shapes = [(count,) if j == k else () for j in range(operands)]
        rows = np.stack(
            [
                np.broadcast_to(np.asarray(kind.function(*x), np.float64), (count,))
                for x in kind.operands(shapes, "float32")
            ]
        )
        assert len(np.unique(rows, axis=1).T) == count
        if kind.tolerance:
            apart = np.abs(np.diff(rows, axis=1)) > kind.tolerance * np.abs(rows[:, 1:])
            assert apart.any(axis=0).all()


@pytest.mark.parametrize("engine", CATALOGUE)
def test_generated_cases_are_seeded_and_of_every_kind(engine: str) -> None:
    cases = list(generate(engine, 600, 3))
    assert cases == list(generate(engine, 600, 3))
    assert cases != list(generate(engine, 600, 4))
    assert {case.op for case in cases} == {row.op for row in CATALOGUE[engine]}
    planned = Counter(isinstance(predict(case), Plan) for case in cases)
    assert planned[True] > 240
    assert planned[False] > 60
    for case in cases:
        row = row_of(case)
        assert all(np.prod(s) <= KINDS[row.kind].limit for s in shapes_of(case, row))
        if row.roles is not ShapeRoles.TO:
            assert min((*case.a, *case.b), default=0) >= 0


def test_every_engine_has_a_runner() -> None:
    assert set(CATALOGUE) == set(RUNNERS)


def test_ladder_reaches_the_highest_rank() -> None:
    assert max(len(case.a) for case in ladder("numpy")) == 64


@pytest.mark.parametrize("ranks", few(1, [12, 65]))
def test_numpy_in_a_worker_agrees(ranks: int) -> None:
    with Process("numpy") as process:
        assert process.version == np.__version__
        low = [case for case in ladder("numpy") if len(case.a) < ranks]  # then results are large
        report = run_engine(process, [*low, *generate("numpy", 500, 1)])
    assert not report.findings
    assert report.count(Judged.EQUAL) > 500
    assert report.count(Judged.REFUSE) > 50


def test_crashed_worker_is_an_outcome_and_the_next_case_runs() -> None:
    with Process("numpy") as process:
        assert process._child is not None
        process._child.kill()
        reply = ask(process, CASE, again=False)
        assert reply == Reply(ReplyKind.CRASHED, "the engine's process ended: SIGKILL")
        assert ask(process, CASE).kind is ReplyKind.RESULT


def test_late_worker_is_an_outcome() -> None:
    with Process("numpy", seconds=0.0) as process:
        assert ask(process, CASE).kind is ReplyKind.CRASHED


def test_a_call_without_a_function_is_broken_not_refused() -> None:
    with Process("numpy") as process:
        reply = process.ask(Task(Form.CALL, "no such op"), [np.ones(2)] * 2)
    assert reply.kind is ReplyKind.BROKEN


def test_missing_engine_is_reported_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # A package of the engine's name that cannot be imported stands for one that is not installed.
    (tmp_path / "torch.py").write_text("raise ImportError('no torch here')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(Missing, match="no torch here"):
        Process("torch").start()
    assert main(["conformance", "--engine", "torch", "--cases", "5"]) == 2
    assert "not run: torch: not installed: no torch here" in capsys.readouterr().out


def test_worker_that_cannot_start_gives_the_reason() -> None:
    with pytest.raises(NotStarted, match="numpy does not start"):
        Process("numpy", "/bin/false").start()


def test_worker_imports_nothing_from_beside_zerostride(tmp_path: Path) -> None:
    """Another interpreter's worker is not to get this one's NumPy, protobuf or engines."""
    package = Path(zs.__file__).parent
    shutil.copytree(package, tmp_path / "zerostride", ignore=shutil.ignore_patterns("*.so"))
    (tmp_path / "neighbour.py").touch()
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "sys.meta_path[:] = [f for f in sys.meta_path if isinstance(f, type)]\n"
        "import neighbour, zerostride\n"
        "assert zerostride.__file__.startswith(sys.argv[1]), zerostride.__file__\n"
        "from zerostride.runtimes.process import Process\n"
        "child = Process('numpy', sys.argv[2]); child.module = 'neighbour'; child.start()\n"
    )
    folder, name = os.path.split(sys.executable)
    other = os.path.join(folder, "..", os.path.basename(folder), name)  # another by its name alone
    here = [sys.executable, "-c", script, str(tmp_path), other]
    done = subprocess.run(here, capture_output=True, text=True, cwd="/", check=False)
    assert "numpy does not start" in done.stderr
    assert "No module named neighbour" in done.stderr


def test_interpreter_comes_from_the_option_then_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert interpreter_for("paddle") == sys.executable
    monkeypatch.setenv("ZEROSTRIDE_PYTHON_PADDLE", "/bin/true")
    assert interpreter_for("paddle") == "/bin/true"
    assert interpreter_for("paddle", {"paddle": "/bin/false"}) == "/bin/false"
    with pytest.raises(BadInput, match="not a program"):
        interpreter_for("paddle", {"paddle": "/nowhere/python"})


def test_command_line_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conformance", "--engine", "numpy", "--cases", "60", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is True
    assert report["engines"][0]["cases"] == 60


def test_command_line_exits_with_1_if_a_file_contradicts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"engine": "numpy", "op": "add", "attrs": {}, "a": [2, 3], "b": [3]}
    path = tmp_path / "cases.jsonl"
    path.write_text(json.dumps(row | {"result": None, "map_a": None, "map_b": None}))
    assert main(["conformance", "--engine", "numpy", "--cases-file", str(path)]) == 1
    assert "line 1 of the file" in capsys.readouterr().out
    good = {"result": [2, 3], "map_a": [0, 1], "map_b": [1]}
    path.write_text(json.dumps(row | good))
    assert main(["conformance", "--engine", "numpy", "--cases-file", str(path)]) == 0
    path.write_text(json.dumps(row | good | {"map_b": [0]}))
    assert main(["conformance", "--engine", "numpy", "--cases-file", str(path)]) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["conformance", "--engine", "nmupy"], "no engine 'nmupy'"),
        (["conformance", "--engine", "numpy", "--cases-file", "absent.jsonl"], "absent.jsonl"),
        (["conformance", "--engine", "numpy", "--python", "numpy"], "NAME=PATH"),
        (["conformance", "--engine", "numpy", "--python", "numpy=/nowhere"], "/nowhere"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_probe_of_no_engine_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(probe, "probe", ["nothing"]) == 2
    error = capsys.readouterr().err
    assert "no engine 'nothing'" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("line", ["not json", "[1]", '{"engine": "numpy"}'])
def test_malformed_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text("\n" + line)
    with pytest.raises(BadInput, match=r"cases\.jsonl:2 is not a case"):
        list(read_cases(path))
