"""``python -m campaigns blind``: engines with hand-made rows, learnt blind and compared with them.

Each engine is learnt through its built-in runner, from answers alone. Fresh cases are judged by the
learnt row and by the hand-made one. Where these differ the engine is asked: the difference is a
fault of the one or of the other.
"""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from zerostride.core.alignment import apply
from zerostride.core.plan import Plan
from zerostride.engines import find_engine
from zerostride.engines.learnt.file import TO_TARGET, engine_of
from zerostride.engines.model import Engine
from zerostride.engines.releases import title_of
from zerostride.engines.supports import broadcast_rules, rules_of
from zerostride.errors import BroadcastError, Reason
from zerostride.ops import OPS
from zerostride.ops.table import column_of
from zerostride.runtimes.learn.asking import ask
from zerostride.runtimes.learn.engine import DTYPES, EngineLearner
from zerostride.runtimes.learn.learner import agrees
from zerostride.runtimes.learn.operands import functions
from zerostride.runtimes.learn.shapes import Question, draw
from zerostride.runtimes.learn.space import RESULT, Answer
from zerostride.runtimes.learn.writing import RunnerFile, as_data
from zerostride.runtimes.probe.case import Case
from zerostride.runtimes.probe.catalogue import ShapeRoles, row_of, rows_of
from zerostride.runtimes.probe.command import as_json, interpreters, pythons
from zerostride.runtimes.probe.generate import generate
from zerostride.runtimes.process import Missing, Process, interpreter_for
from zerostride.runtimes.task import Array, Form, Reply, ReplyKind, Task
from zerostride.sizes import Asker

from .blind_numbers import other_numbers

Outcome = Plan | BroadcastError
#: Differences of one group that the engine is asked about, the smallest first.
ASKED = 5
#: The share of cases of an op's first element type.
_FIRST_SHARE = 0.4


class BuiltIn(Process):
    """An engine in its built-in runner, which takes the learner's tasks as a user's runner does."""

    def __init__(self, engine: str, python: str) -> None:
        super().__init__(engine, python)
        #: Answers that are bugs of the runner, by their message.
        self.broken: Counter[str] = Counter()

    def ask(self, task: Task, arrays: Sequence[Array], *, again: bool = True) -> Reply:
        """The answer to a task that names an op canonically."""
        reply = super().ask(self._own(task), arrays, again=again)
        if reply.kind is ReplyKind.BROKEN:
            self.broken[f"{task.op}: {reply.message}"] += 1
        return reply

    def _own(self, task: Task) -> Task:
        if task.op == TO_TARGET:
            mode = next(iter(find_engine(self.engine).to_target), "numpy")
            aim = tuple(task.attributes["target"])
            return Task(Form.TO, "expand", {"mode": mode}, target=aim)
        if (self.engine, task.op) == ("ncnn", "prelu"):  # a layer whose slopes are weights
            return Task(Form.CALL, "PReLU")
        return Task(Form.OP, task.op)


@dataclass(slots=True)
class Group:
    """Differences of one op on one element type, of one kind.

    Attributes:
        op, dtype: of the cases.
        learnt, own: the outcomes by the learnt row and by the hand-made one, in words.
        cases: the shapes, the smallest first.
        right: who was right about the cases that were asked.
        answer: the engine's answer to the smallest.
    """

    op: str
    dtype: str
    learnt: str
    own: str
    cases: list[Question] = field(default_factory=list)
    right: Counter[str] = field(default_factory=Counter)
    answer: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        head = {name: getattr(self, name) for name in ("op", "dtype", "learnt", "own", "answer")}
        return {**head, "count": len(self.cases), "right": self.right, "cases": self.cases[:ASKED]}


def names_of(engine: str) -> dict[str, str]:
    """The ops that a built-in runner takes, and that of a target, by their canonical names."""
    column = column_of(engine)
    rows = [op for op in OPS.values() if op.tensors > 1 and not op.parameters]
    named = [op.name for op in rows if (op.numpy if engine == "numpy" else column in op.names)]
    return {name: name for name in (*named, TO_TARGET)}


def outcome(engine: Engine, op: str, dtype: str, question: Question) -> Outcome:
    """The plan, the refusal or the fault that a row predicts for an op on an element type."""
    name = None if op == TO_TARGET else op
    asked = broadcast_rules(engine, dtype) if name is None else rules_of(engine, name, dtype)
    limit = asked.refusal
    if limit is not None:
        silent = limit.effect in (Reason.CRASH, Reason.WRONG_RESULT)
        return BroadcastError(limit.text, reason=limit.effect, silent=silent)
    try:
        plan = apply(asked.rules[0], question, {}, engine=engine.name, op=name)
    except BroadcastError as error:
        return error
    for row in engine.divergences_of(str(plan.rule.op or op), dtype):
        if row.strikes and not row.narrows and row.strikes(plan, Asker()):
            return BroadcastError(row.text, reason=row.effect, silent=True)
    return plan


def words(said: Outcome) -> str:
    """The kind of an outcome; a fault is one, whatever it is."""
    if isinstance(said, Plan):
        return "result"
    if said.reason is Reason.NOT_UNDERSTOOD:
        return "not understood"
    return f"{'fault' if said.silent else 'refusal'} ({said.reason})"


def differ(a: Outcome, b: Outcome) -> bool:
    """Whether two outcomes say different things of an engine."""
    if isinstance(a, Plan) and isinstance(b, Plan):
        return a.shape != b.shape or (0 not in a.shape and a.aligned != b.aligned)
    return words(a).partition(" (")[0] != words(b).partition(" (")[0]


def cases_of(
    engine: str, ops: Mapping[str, Any], count: int, seed: int
) -> Iterator[tuple[str, str, Question]]:
    """Fresh cases: an op, an element type, shapes as the learner and as the probe draw them."""
    rng = random.Random(f"blind:{engine}:{seed}")
    pools: dict[tuple[int, bool], list[Question]] = {}
    for case in generate(engine, count, seed):
        pools.setdefault(_roles(case), []).append(case.shapes)
    for _ in range(count):
        op = rng.choice(list(ops))
        tensors = 2 if op == TO_TARGET else OPS[op].tensors
        first = next(iter(ops[op]["types"]), "float32")
        dtype = first if rng.random() < _FIRST_SHARE else rng.choice(DTYPES)
        pool = pools.get((tensors, op == TO_TARGET), [])
        plain = draw(rng, tensors)
        drawn = rng.choice(pool) if pool and rng.random() < 0.4 else plain
        yield op, dtype, plain if any(-1 in shape for shape in drawn) else drawn


def _roles(case: Case) -> tuple[int, bool]:
    return len(case.shapes), row_of(case).roles is ShapeRoles.TO


def answers(process: BuiltIn, op: str, dtype: str, question: Question) -> Iterator[Answer]:
    """The engine's answers, with the operands of each function that the op may compute."""
    for function in functions(OPS.get(op), dtype):
        answer = ask(process, op, function, question)
        yield answer
        if answer.kind != RESULT:
            return


def judge(learnt: Outcome, own: Outcome, every: Sequence[Answer]) -> str:
    """Who is right. A fault is not right where the other one's plan has the result."""
    holds = [any(agrees(said, answer) for answer in every) for said in (learnt, own)]
    plans = [isinstance(said, Plan) for said in (learnt, own)]
    if all(holds) and plans[0] != plans[1]:
        holds = plans
    return {(True, True): "both", (True, False): "learnt", (False, True): "hand-made"}.get(
        (holds[0], holds[1]), "neither"
    )


def compared(process: BuiltIn, cases: int, seconds: float, seed: int) -> dict[str, Any]:
    """Learns an engine in its process, and compares."""
    name = process.engine
    own = find_engine(title_of(find_engine(name), process.version))
    learnt = EngineLearner(process, names_of(name), seed, seconds).learn()
    head = RunnerFile(Path("built-in"), f"blind-{name}", "", "")
    data = as_data(head, learnt)
    row = engine_of(data)
    groups: dict[tuple[str, str, str, str], Group] = {}
    unasked = 0
    # A type that no op takes is one that the runner does not make.
    taken = {t for entry in data["ops"].values() for t in (*entry["types"], *entry["strange"])}
    for op, dtype, question in cases_of(name, data["ops"], cases, seed + 1):
        unknown = dtype not in taken or dtype in data["ops"][op]["unasked"]
        if unknown or not process.takes(question):
            unasked += 1
            continue
        said = outcome(row, op, dtype, question), outcome(own, op, dtype, question)
        if differ(*said):
            key = (op, dtype, words(said[0]), words(said[1]))
            groups.setdefault(key, Group(*key)).cases.append(question)
    for group in groups.values():
        group.cases.sort(key=lambda q: (sum(map(len, q)), sum(map(math.prod, q))))
        for question in group.cases[:ASKED]:
            every = list(answers(process, group.op, group.dtype, question))
            said = (
                outcome(row, group.op, group.dtype, question),
                outcome(own, group.op, group.dtype, question),
            )
            group.right[judge(*said, every)] += 1
            group.answer = group.answer or "/".join(sorted({answer.kind for answer in every}))
    return {
        "engine": name,
        "version": process.version,
        "questions": learnt.questions,
        "seconds": round(learnt.seconds, 1),
        "cases": cases - unasked,
        "unasked": unasked,
        "groups": [group.as_dict() for group in sorted(groups.values(), key=_order)],
        "numbers": list(other_numbers(name, data["ops"])),
        "broken": process.broken,
        "row": data,
    }


def _order(group: Group) -> tuple[str, str, int]:
    return group.learnt, group.own, -len(group.cases)


def _lines(report: Mapping[str, Any]) -> Iterator[str]:
    """A report, for people."""
    yield (
        f"{report['engine']} {report['version']}: {report['questions']} questions, "
        f"{report['seconds']:g} s, {report['cases']} cases, "
        f"{sum(group['count'] for group in report['groups'])} differences"
    )
    lines: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for group in report["groups"]:
        key = group["learnt"], group["own"], group["op"], group["answer"], " ".join(group["right"])
        lines.setdefault(key, []).append(group)
    for (learnt, own, op, answer, who), alike in lines.items():
        smallest = " and ".join(map(str, alike[0]["cases"][0]))
        types = ", ".join(group["dtype"] for group in alike)
        count = sum(group["count"] for group in alike)
        yield f"  learnt {learnt}, hand-made {own}: {op} of {types}; {count} cases"
        yield f"    {smallest}: {answer}; right: {who}"
    for op, dtype, aspect, does, name, *example in report["numbers"]:
        yield f"  {op} of {dtype}, {aspect}: learnt {does}, table {name}: {' '.join(example)}"
    for message, count in report["broken"].items():
        yield f"  {count} answers are bugs of the runner: {message}"


@click.command()
@click.argument("engines", nargs=-1, required=True, metavar="ENGINE...")
@click.option("--cases", type=click.IntRange(1), default=3000, show_default=True)
@click.option("--seconds", type=float, default=120.0, show_default=True, help="To learn each.")
@click.option("--seed", type=int, default=0, show_default=True)
@pythons
@as_json
def blind(
    engines: tuple[str, ...],
    cases: int,
    seconds: float,
    seed: int,
    python: tuple[str, ...],
    as_json: bool,
) -> int:
    """Learn engines with hand-made rows through their built-in runners, and compare the rows."""
    reports = []
    for name in engines:
        rows_of(name)
        try:
            process = BuiltIn(name, interpreter_for(name, interpreters(python)))
            with process:
                report = compared(process, cases, seconds, seed)
        except Missing as error:
            click.echo(f"{name}: not installed: {error}", err=True)
            continue
        reports.append(report)
        if not as_json:
            click.echo("\n".join(_lines(report)))
    if as_json:
        click.echo(json.dumps(reports))
    return 1 if any(report["groups"] for report in reports) else 0
