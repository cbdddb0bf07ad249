"""The learner, on made-up engines and on NumPy."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from campaigns.learn import engine_of, judge

from learnt_row import row_of
from sampled import few
from warm import run
from zerostride.compute.kernels import KERNELS
from zerostride.engines.learnt import FORMS, Deviation, Form, LearntRow, Literal
from zerostride.errors import BadInput
from zerostride.ops import OPS
from zerostride.runtimes.learn.asking import ask
from zerostride.runtimes.learn.engine import TELLING
from zerostride.runtimes.learn.learner import BUDGET, Learner, agrees
from zerostride.runtimes.learn.numbers import joined, numbers_of, pieces
from zerostride.runtimes.learn.operands import functions
from zerostride.runtimes.learn.shapes import draw
from zerostride.runtimes.learn.space import CRASHED, REFUSED, RESULT, Answer, forms_for
from zerostride.runtimes.learn.writing import RunnerFile
from zerostride.runtimes.process import Process
from zerostride.sizes import Asker

RUNNERS = Path(__file__).parents[2] / "examples" / "runners"
NUMPY = """
import numpy as np

NAME = "mynumpy"
DISTRIBUTION = "numpy"
OWN = {"pow": "power", "atan2": "arctan2"}


def run(op, arrays, target=None):
    if op not in ("add", "maximum", "floor_divide", "broadcast_to"):
        raise NotImplementedError(op)  # the engine lacks it
    if op == "broadcast_to":
        return np.broadcast_to(arrays[0], target)
    if max(x.ndim for x in arrays) > 3:
        raise ValueError("too many axes")
    if arrays[0].dtype == np.uint8 and arrays[1].size == 1 and arrays[0].ndim < arrays[1].ndim:
        raise ValueError("a scalar that cannot be")
    if arrays[0].dtype == np.int64 and op == "add":
        return np.add(*[x.astype(np.int32) for x in arrays]).astype(np.int64)
    return getattr(np, OWN.get(op, op))(*arrays)
"""


CORRUPTING = """
import os

NAME = "corrupt"
VERSION = "1"
corrupt = False


def run(op, arrays, target=None):
    global corrupt
    if corrupt or not arrays[0].size:
        os._exit(1)
    corrupt = arrays[0].shape == (7,)
    return arrays[0] + arrays[1]
"""


@pytest.mark.parametrize("seed", few(2, range(6)))
def test_made_up_engines_are_learnt_right_or_not_understood(seed: int) -> None:
    judged = judge(seed)
    assert judged.ok, (judged.truth, judged.learnt, judged.wrong[:3])
    assert judged.questions <= BUDGET


def test_an_empty_operand_that_decides_the_result_is_learnt_in_full() -> None:
    """NumExpr's way: any operand without elements is taken, and the result has its shape."""
    truth = row_of(("operand_is_empty", "answers"), ("empty_unlike_result", "garbles"))
    for count in (2, 3):
        assert _plain(Learner(engine_of(truth), count).learn()) == _plain(truth)


def _plain(row: LearntRow) -> tuple[Form, set[Any]]:
    return row.form, {(deviation.when, deviation.then) for deviation in row.deviations}


@pytest.mark.parametrize(
    "truth",
    few(
        1,
        [
            # A fault hides where the second operand lies.
            row_of(
                ("second_within_first", "garbles"),
                ("second_is_smaller", "garbles"),
                form=Form("channel", "first"),
            ),
            # Two refusals leave little between them.
            row_of(
                ("stretches_last_axis", "refuses"),
                ("second_within_first & stretching_above 0", "refuses"),
                form=Form("right", "one"),
            ),
            # A fault refuses most shapes on which an axis stretches; the few others tell the form.
            row_of(
                ("second_fills_last_axis", "garbles"),
                ("stretches_last_axis", "refuses"),
                ("first_is_lower", "answers"),
                form=Form("left", "absent_second"),
            ),
            # The number of a fault lies behind another fault.
            row_of(
                ("rank_above 2 & stretching_above 0", "crashes"),
                ("elements_above 200", "garbles"),
                ("first_is_lower", "answers"),
                form=Form("channel", "one"),
            ),
        ],
    ),
    ids=lambda row: row.form.place,
)
def test_faults_that_hide_others_are_learnt(truth: LearntRow) -> None:
    row = Learner(engine_of(truth)).learn()
    rng = random.Random(0)
    fresh = [draw(rng, 2) for _ in range(1000)]
    right = [agrees(row.outcome(question), engine_of(truth)(question)) for question in fresh]
    assert right.count(False) <= 1


@pytest.mark.parametrize("form", [FORMS[0], Form("left", "all"), Form("channel", "second")])
def test_a_form_without_faults_is_learnt_in_full(form: Form) -> None:
    row = Learner(engine_of(LearntRow(form))).learn()
    assert not row.deviations
    assert row.form == form


def test_a_limit_of_sizes_is_found_to_the_number() -> None:
    limit = Deviation((Literal("last_extent_above", 100),), "refuses")
    row = Learner(engine_of(LearntRow(FORMS[0], (limit,)))).learn()
    assert [(d.when, d.then) for d in row.deviations] == [(limit.when, "refuses")]


@pytest.mark.parametrize(
    ("words", "effect"),
    few(
        3,
        [
            ("rank_above 3", "refuses"),
            ("rank_above 23", "crashes"),
            ("operand_is_empty", "refuses"),
            ("lower_is_empty", "crashes"),
            ("operands_are_empty", "crashes"),
            ("not one_shape", "crashes"),
            ("stretching_above 1", "crashes"),
            ("first_stretches", "garbles"),
        ],
        unpack=True,
    ),
)
def test_a_fault_is_learnt_in_full(words: str, effect: str) -> None:
    """Shapes that do not fit are refused anyway, and are no evidence for a limit."""
    truth = Deviation((Literal.read(words),), effect)
    row = Learner(engine_of(LearntRow(FORMS[0], (truth,)))).learn()
    assert [(d.when, d.then) for d in row.deviations] == [(truth.when, effect)]


@pytest.mark.slow
def test_noise_is_not_understood() -> None:
    def ask(question: Any) -> Answer:
        return Answer(CRASHED) if hash(question) % 3 else engine_of(LearntRow(FORMS[0]))(question)

    row = Learner(ask).learn()
    assert row.deviations[0].then == "unknown"
    assert not row.deviations[0].when


def test_every_op_has_a_telling_function() -> None:
    for op in OPS.values():
        if op.tensors > 1 and not op.parameters:
            assert list(functions(op, "float32")) or list(functions(op, "int32")), op.name


@pytest.mark.parametrize("path", sorted(RUNNERS.glob("*.py")), ids=lambda path: path.stem)
def test_the_head_of_every_example_can_be_read(path: Path) -> None:
    head = RunnerFile.read(path)
    assert head.ops()
    assert head.name


@pytest.mark.parametrize("path", sorted(RUNNERS.glob("*.py")), ids=lambda path: path.stem)
def test_every_example_says_what_pip_installs(path: Path) -> None:
    head = RunnerFile.read(path)
    if not head.distribution:
        with pytest.raises(BadInput, match="no DISTRIBUTION"):
            head.requirements("newest")
        return
    needs = head.requirements("1.2")
    assert [need for need in needs if need.endswith("==1.2")]
    assert all("==" not in need for need in head.requirements("newest"))
    assert {*head.dependencies, "numpy"} == set(head.requirements("newest"))


@pytest.mark.parametrize("block", ["dependencies = 3", "dependencies = [1]", "dependencies = ["])
def test_malformed_metadata_are_refused(tmp_path: Path, block: str) -> None:
    path = tmp_path / "runner.py"
    path.write_text(f'# /// script\n# {block}\n# ///\nNAME = "a"\ndef run(): ...\n')
    with pytest.raises(BadInput, match="metadata"):
        RunnerFile.read(path)


def test_a_release_that_pip_does_not_have_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    done = run(["engines", "learn", RUNNERS / "mlx.py", "0.1", "-o", tmp_path])
    assert done.returncode == 2
    assert "the environment cannot be made" in done.stderr
    assert not list(tmp_path.iterdir())


def test_the_page_names_every_example() -> None:
    page = RUNNERS.parents[1].joinpath("docs", "learn.md").read_text("utf-8")
    names = {RunnerFile.read(path).name for path in RUNNERS.glob("*.py")}
    assert names <= set(re.findall(r"`([\w-]+)`", page))


def test_numbers_of_another_shape_are_no_error() -> None:
    op = OPS["add"]
    answers: list[tuple[str, Any]] = [(RESULT, None), (RESULT, np.zeros(3)), (REFUSED, None)]
    for kind, result in answers:
        rows = list(numbers_of(op, "float32", KERNELS["add"], lambda _, a=kind, b=result: (a, b)))
        assert {row.aspect for row in rows} == {
            *("negative numbers", "zero", "infinity", "NaN", "large numbers")
        }
        assert {row.does for row in rows} <= {"has another shape", "refuses", ""}


def test_numbers_are_laid_into_tensors_of_one_shape() -> None:
    numbers = np.arange(7)
    laid = [x for (x,) in pieces([numbers], (2, 2))]
    assert [x.shape for x in laid] == [(2, 2), (2, 2)]
    whole = joined(laid, (2, 2), 7)
    assert whole is not None
    assert whole.tolist() == numbers.tolist()
    assert joined([np.zeros((2, 2)), np.zeros(5)], (2, 2), 7) is None


def learn(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs the command, with a folder of its own for learnt engines."""
    environment = {**os.environ, "ZEROSTRIDE_ENGINES": str(folder)}
    command = [sys.executable, "-m", "zerostride", "engines", *words]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def test_the_command_learns_an_engine_that_others_then_know(tmp_path: Path) -> None:
    runner = tmp_path / "mine.py"
    runner.write_text(NUMPY)
    done = learn("learn", str(runner), "--check", "200", "--seconds", "600", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "an operand has more than 3 axes: it refuses" in done.stdout
    assert "200 fresh questions: 0 wrong, 0 not understood" in done.stdout
    assert "next: zerostride audit MODEL.onnx --target mynumpy" in done.stdout
    (path,) = tmp_path.glob("mynumpy@*.json")
    data = json.loads(path.read_text())
    assert ["int64", "large numbers", "in int32"] in [n[:3] for n in data["ops"]["add"]["numbers"]]
    types = data["ops"]["maximum"]["types"]
    assert set(types) >= {"float32", "int8", "uint64", "bool"}
    assert {key for key, letter in types.items() if letter != types["float32"]} == {"uint8"}
    shown = learn("mynumpy", folder=tmp_path)
    assert "learnt by" in shown.stdout
    assert "add does not take" not in shown.stdout


APART = """
import numpy as np

NAME = "apart"
VERSION = "1"


def run(op, arrays, target=None):
    a, b = arrays
    if op not in ("add", "multiply") or a.dtype not in (np.float32, np.float64):
        raise NotImplementedError(op)  # the engine lacks it
    shape = np.broadcast_shapes(a.shape, b.shape)
    if op == "add" and shape not in (a.shape, b.shape):
        raise ValueError("both stretch")
    return getattr(np, op)(a.astype(np.float32), b.astype(np.float32)).astype(a.dtype)
"""


def test_ops_of_one_family_may_have_other_rules(tmp_path: Path) -> None:
    runner = tmp_path / "apart.py"
    runner.write_text(APART)
    done = learn("learn", str(runner), "--check", "500", "--seconds", "600", folder=tmp_path)
    assert "500 fresh questions: 0 wrong, 0 not understood" in done.stdout, done.stderr
    (path,) = tmp_path.glob("apart@*.json")
    ops = json.loads(path.read_text())["ops"]
    assert ops["add"]["types"]["float32"] != ops["multiply"]["types"]["float32"]
    for op in ops.values():
        if op["types"]:
            assert [n[:3] for n in op["numbers"]] == [["float64", "large numbers", "in float32"]]


def test_the_questions_for_the_next_op_get_every_other_form_wrong() -> None:
    """A row learnt before is right for another op if these questions agree."""
    learner = Learner(engine_of(row_of(("rank_above 32", "refuses"), form=Form("right", "one"))))
    row = learner.learn()
    telling = learner.telling(row, TELLING)
    assert len(telling) <= TELLING
    for form in forms_for(2):
        other = LearntRow(form, row.deviations)
        wrong = [q for q in telling if agrees(other.outcome(q), learner.answers[q]) is False]
        assert (len(wrong) >= 2) is (form != row.form), form


@pytest.mark.parametrize("count", [80, 150])
def test_a_row_that_was_not_tested_for_lack_of_time_is_not_trusted(count: int) -> None:
    learner = Learner(engine_of(LearntRow(FORMS[0])), late=lambda: len(learner.answers) >= count)
    row = learner.learn()
    assert [(rest.when, rest.then) for rest in row.deviations] == [((), "unknown")]


def test_a_corner_without_a_rule_is_a_region_that_is_not_understood() -> None:
    """OpenCV's Pow: where a scalar has more axes, the answer depends on its number."""
    usual = engine_of(row_of(("rank_above 10", "refuses"), ("operand_is_empty", "refuses")))
    corner = tuple(map(Literal.read, ("first_is_lower", "second_one_element")))

    def asked(question: tuple[tuple[int, ...], ...]) -> Answer:
        if all(literal.test(question, None, Asker()) for literal in corner):
            kinds = (Answer(RESULT), Answer(REFUSED), usual(question))
            return kinds[zlib.crc32(repr(question).encode()) % 3]
        return usual(question)

    row = Learner(asked).learn()
    assert row.deviations[0].then == "unknown"
    assert set(row.deviations[0].when) == set(corner)
    rng = random.Random(0)
    fresh = [draw(rng, 2) for _ in range(1000)]
    right = [agrees(row.outcome(question), asked(question)) for question in fresh]
    assert right.count(False) <= 1


def test_rivals_that_compute_the_same_are_no_doubt() -> None:
    """Of two numbers np.atleast_1d makes vectors; a few forms do that, and little else."""
    usual, vector = (engine_of(row_of(form=Form(place, "all"))) for place in ("right", "ncnn"))
    learner = Learner(lambda question: (usual if any(question) else vector)(question))
    row = learner.learn()
    assert row.deviations
    assert len(learner.answers) < BUDGET
    rng = random.Random(0)
    fresh = [((), ()), *(draw(rng, 2) for _ in range(300))]
    assert all(agrees(row.outcome(q), (usual if any(q) else vector)(q)) for q in fresh)


def test_a_region_with_many_answers_without_a_rule_is_set_aside() -> None:
    """ncnn: what it computes of tensors without elements depends on much."""
    usual = engine_of(
        row_of(("rank_above 4", "refuses"), ("any", "answers"), form=Form("ncnn", "all"))
    )

    def asked(question: tuple[tuple[int, ...], ...]) -> Answer:
        empty = [0 in shape for shape in question]
        if not any(empty) or max(map(len, question)) > 4:
            return usual(question)
        if all(empty):
            return Answer(RESULT if len(question[0]) < len(question[1]) else REFUSED)
        return Answer(CRASHED if zlib.crc32(repr(question).encode()) % 8 == 0 else RESULT)

    row = Learner(asked).learn()
    assert [str(literal) for literal in row.deviations[0].when] == ["operand_is_empty"]
    rng = random.Random(0)
    fresh = [draw(rng, 2) for _ in range(1000)]
    right = [agrees(row.outcome(question), asked(question)) for question in fresh]
    assert right.count(False) == 0
    assert right.count(True) > 700


CHAOTIC = """
import zlib

import numpy as np

NAME = "chaotic"
VERSION = "1"


def run(op, arrays, target=None):
    shapes = repr([x.shape for x in arrays])
    if op not in ("add", "maximum") or arrays[0].dtype != np.float32:
        raise NotImplementedError(op)  # the engine lacks it
    if op == "add" and arrays[0].shape != arrays[1].shape and zlib.crc32(shapes.encode()) % 2:
        raise ValueError("not today")
    return getattr(np, op)(*arrays)
"""


def test_an_op_that_is_not_understood_says_nothing_of_others(tmp_path: Path) -> None:
    runner = tmp_path / "chaotic.py"
    runner.write_text(CHAOTIC)
    words = ("--name", "chaos", "--check", "100", "--seconds", "600")
    done = learn("learn", str(runner), *words, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.glob("chaos@1.json")
    data = json.loads(path.read_text())
    rows = {op: data["rows"][data["ops"][op]["types"]["float32"]] for op in ("add", "maximum")}
    assert rows["add"]["deviations"][0]["then"] == "unknown"
    assert not rows["maximum"]["deviations"]


def test_too_few_seconds_are_one_clear_line(tmp_path: Path) -> None:
    runner = tmp_path / "mine.py"
    runner.write_text(NUMPY)
    done = learn("learn", str(runner), "--seconds", "0.001", folder=tmp_path)
    assert done.returncode == 2
    assert "too few to learn one op" in done.stderr


def test_a_crash_that_an_earlier_question_caused_is_none_of_these_shapes(tmp_path: Path) -> None:
    runner = tmp_path / "corrupt.py"
    runner.write_text(CORRUPTING)
    function = next(functions(OPS["add"], "float32"))
    with Process(str(runner), sys.executable) as process:
        for shape, kind in (((7,), RESULT), ((3,), RESULT), ((0,), CRASHED), ((0,), CRASHED)):
            answer = ask(process, "add", function, (shape, shape))
            assert answer.kind == kind, shape


@pytest.mark.slow
def test_learning_again_gives_the_same_file(tmp_path: Path) -> None:
    runner = tmp_path / "mine.py"
    runner.write_text(NUMPY)
    files = []
    for hash_seed in ("1", "2"):
        folder = tmp_path / hash_seed
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        words = ["engines", "learn", str(runner), "-o", str(folder), "--seconds", "600"]
        subprocess.run([sys.executable, "-m", "zerostride", *words], check=True, env=environment)
        (path,) = folder.iterdir()
        files.append({**json.loads(path.read_text()), "seconds": 0})
    assert files[0] == files[1]


def test_constants_may_be_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("NAME, VERSION = 'x', '1'\nNAMES: str = 'onnx'\ndef run(op, arrays, t): pass")
    runner = RunnerFile.read(path)
    assert (runner.name, runner.names) == ("x", "onnx")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def run(:", "not a Python file"),
        ("NAME = 'x'", "is no runner"),
        ("def run(op, arrays, target=None): pass", "is no runner"),
        ("NAME = '../x'\ndef run(op, arrays, target): pass", "NAME is"),
        ("NAME = 'x'\nNAMES = 'german'\ndef run(op, arrays, target): pass", "NAMES is"),
    ],
)
def test_a_file_that_is_no_runner_is_refused(tmp_path: Path, source: str, words: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(source)
    with pytest.raises(BadInput, match=words):
        RunnerFile.read(path)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("import nothing_of_this_name\n", "cannot be imported"),
        ("raise SystemExit(3)\n", "does not start"),
        ("DISTRIBUTION = 'nothing-of-this-name'\n", "names no installed DISTRIBUTION"),
        ("VERSION = '1'\n", "computes no op"),
    ],
)
def test_an_engine_that_does_not_run_is_one_clear_line(
    tmp_path: Path, source: str, words: str
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(f"{source}NAME = 'x'\ndef run(op, arrays, target=None):\n    return None\n")
    done = learn("learn", str(path), folder=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.glob("x@*"))
