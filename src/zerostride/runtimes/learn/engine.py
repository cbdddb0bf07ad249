"""Learns the rows of an engine: each op, on each element type."""

from __future__ import annotations

import functools
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.plan import Plan
from ...engines.learnt import FORMS, LearntRow
from ...errors import BadInput
from ...ops import OPS
from ..process import Process
from ..task import Array
from .asking import ask, computer
from .learner import Learner, agrees
from .numbers import Numbers, numbers_of
from .operands import Function, functions
from .shapes import Question, draw
from .space import CRASHED, REFUSED, RESULT, Answer, Planner

#: The element types that are tried, in this order; the first that an op takes is learnt in full.
DTYPES = (
    *("float32", "int32", "bool", "float16", "float64"),
    *("int64", "int16", "int8", "uint8", "uint16", "uint32", "uint64"),
)
#: The op that broadcasts to a target.
TO_TARGET = "broadcast_to"
#: Ops that are learnt in full; the others are compared with the row of their first.
FAMILIES: tuple[tuple[str, ...], ...] = (
    (
        *("add", "subtract", "multiply", "divide", "maximum", "minimum", "pow", "remainder"),
        *("fmod", "floor_divide", "fmax", "fmin", "atan2", "hypot", "copysign", "nextafter"),
        *("heaviside", "logaddexp", "logaddexp2", "squared_difference"),
    ),
    ("greater", "greater_equal", "less", "less_equal", "equal", "not_equal"),
    ("logical_and", "logical_or", "logical_xor"),
    ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"),
    ("where",),
    ("prelu",),
    (TO_TARGET,),
)
#: Shapes at which an op is asked whether it exists.
_FIRST: tuple[tuple[int, ...], ...] = ((6, 10), (60,), (2, 3, 2, 5))
#: Slopes of an op that takes no operands of one shape, beside data of `_FIRST`.
_SLOPES: tuple[tuple[int, ...], ...] = ((1,), (10,))
#: The time for an engine, in seconds.
SECONDS = 60.0
#: The share of the time that is left which the first row may take, and each other one.
_FIRST_SHARE, _SHARE = 0.8, 0.5
#: Questions that compare an op, or another element type, with a row.
TELLING, FEW_TELLING = 48, 12


@dataclass(slots=True)
class LearntOp:
    """A learnt op.

    Attributes:
        name: canonical.
        rows: the row by element type.
        refused: the element types that it does not take.
        crashed: the element types on which its process ends, whatever the shapes.
        strange: the element types on which it takes operands, and computes no function that is
            known.
        numbers: the aspects in which its numbers are not NumPy's.
        unasked: the element types for which no time was left.
        questions: how many were asked.
    """

    name: str
    rows: dict[str, LearntRow] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    crashed: list[str] = field(default_factory=list)
    strange: list[str] = field(default_factory=list)
    numbers: list[Numbers] = field(default_factory=list)
    unasked: list[str] = field(default_factory=list)
    questions: int = 0

    @property
    def exists(self) -> bool:
        """Whether the engine computes it on any element type that was asked."""
        return bool(self.rows or self.strange or self.crashed)

    def has_asked(self, dtype: str) -> bool:
        """Whether an element type was asked."""
        lists = (self.rows, self.refused, self.crashed, self.strange, self.unasked)
        return any(dtype in listed for listed in lists)


@dataclass(slots=True)
class LearntEngine:
    """A learnt engine.

    Attributes:
        version: the release that ran.
        ops: in the order of `FAMILIES`.
        first_refusal: the message of the first refused question, for an engine that refuses all.
        seconds: how long it took.
    """

    version: str
    ops: list[LearntOp] = field(default_factory=list)
    first_refusal: str = ""
    seconds: float = 0.0

    @property
    def questions(self) -> int:
        """How many questions were asked."""
        return sum(op.questions for op in self.ops)


@dataclass(slots=True)
class Checked:
    """Fresh questions compared with a learnt row.

    Attributes:
        asked: how many.
        not_understood: those for which the row predicts no answer.
        wrong: op, element type and shapes of those whose answers differ.
    """

    asked: int = 0
    not_understood: int = 0
    wrong: list[tuple[str, str, Question]] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """For a file."""
        return {
            "asked": self.asked,
            "not_understood": self.not_understood,
            "wrong": [[op, dtype, *map(list, question)] for op, dtype, question in self.wrong],
        }


@dataclass(slots=True)
class _Family:
    """The row of the first op of a family that was understood, and the questions that show it."""

    row: LearntRow | None = None
    telling: Sequence[Question] = ()


class EngineLearner:
    """Asks an engine in its process.

    Args:
        process: started.
        names: canonical name to the engine's own.
        seed: of random questions.
        seconds: the time for all questions; element types that are left then are not asked.
    """

    def __init__(
        self,
        process: Process,
        names: Mapping[str, str],
        seed: int = 0,
        seconds: float = SECONDS,
    ) -> None:
        self._process = process
        self._names = names
        self._seed = seed
        self._seconds = seconds
        self._end = math.inf
        self._result = LearntEngine(process.version)
        self._asked: Counter[str] = Counter()
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._function_of: dict[tuple[str, str], Function] = {}
        self._planners = {aims: Planner(to_target=aims) for aims in (False, True)}

    def learn(self, advance: Callable[[str], None] = lambda name: None) -> LearntEngine:
        """Learns every op: first on one element type each, then on the others.

        Args:
            advance: is called with the name of each op that begins.

        Raises:
            BadInput: the engine refuses every question, or the time is too short for one op.
        """
        start = time.monotonic()
        self._end = start + self._seconds
        families = self._first_types(advance)
        if not any(op.exists for op in self._result.ops):
            raise BadInput(self._nothing())
        self._other_types(families)
        for op in self._result.ops:
            op.questions = self._asked[op.name]
        self._result.seconds = time.monotonic() - start
        return self._result

    def _nothing(self) -> str:
        """Why nothing was learnt."""
        if any(op.unasked for op in self._result.ops):
            return f"{self._seconds:g} seconds are too few to learn one op; give more --seconds"
        return f"the runner computes no op; the first refusal: {self._result.first_refusal}"

    def _first_types(self, advance: Callable[[str], None]) -> dict[str, _Family]:
        """Learns each op on the first element type that it takes; the family of each op."""
        families: dict[str, _Family] = {}
        for names in FAMILIES:
            family = _Family()
            for name in names:
                if name in self._names:
                    advance(name)
                    families[name] = family
                    self._result.ops.append(LearntOp(name))
                    self._first_type(self._result.ops[-1], family)
        return families

    def _other_types(self, families: Mapping[str, _Family]) -> None:
        """Learns each op on the element types that are left."""
        for dtype in DTYPES:
            for op in self._result.ops:
                if op.exists and not op.has_asked(dtype):
                    self._type(op, dtype, families[op.name])

    def check(self, count: int, seed: int) -> Checked:
        """Compares what was learnt with fresh random questions, over all ops and types.

        It takes no longer than learning did, or a third of the time for an engine.

        Args:
            count: the most questions.
            seed: other than that of the learner.
        """
        end = time.monotonic() + max(self._result.seconds, self._seconds / 3)
        rng = random.Random(f"check:{seed}")
        pairs = [(op, dtype) for op in self._result.ops for dtype in op.rows]
        checked = Checked()
        while checked.asked < count and pairs and time.monotonic() < end:
            op, dtype = rng.choice(pairs)
            question = draw(rng, len(_question(op.name, ())))
            function = self._function_of[op.name, dtype]
            outcome = op.rows[dtype].outcome(question, to_target=op.name == TO_TARGET)
            agreed = agrees(outcome, self._asker(op.name, function)(question))
            checked.asked += 1
            checked.not_understood += agreed is None
            if agreed is False:
                checked.wrong.append((op.name, dtype, question))
        return checked

    def _first_type(self, op: LearntOp, family: _Family) -> None:
        """Asks types until the op takes one, or no time is left for one that it takes."""
        for dtype in DTYPES:
            self._type(op, dtype, family)
            if op.rows or op.unasked:
                return

    def _type(self, op: LearntOp, dtype: str, family: _Family) -> None:
        """Asks an op on an element type: compares it with a row, or learns its own."""
        if self._late():
            op.unasked.append(dtype)
            return
        function = self._function(op.name, dtype)
        if isinstance(function, str):
            lists = {REFUSED: op.refused, CRASHED: op.crashed, RESULT: op.strange}
            lists[function].append(dtype)
            return
        self._function_of[op.name, dtype] = function
        op.numbers += self._numbers(op.name, dtype, function)
        asker = functools.cache(self._asker(op.name, function))
        known = list(dict.fromkeys(op.rows.values())) or list(filter(None, [family.row]))
        telling = family.telling[:FEW_TELLING] if op.rows else family.telling
        for row in known:
            if self._agree(row, asker, telling, op.name):
                op.rows[dtype] = row
                return
        count = len(_question(op.name, ()))
        part = _SHARE if any(other.rows for other in self._result.ops) else _FIRST_SHARE
        share = time.monotonic() + (self._end - time.monotonic()) * part
        learner = Learner(
            *(asker, count),
            planner=self._planners[op.name == TO_TARGET],
            seed=self._seed,
            late=lambda: time.monotonic() > share,
        )
        row = learner.learn()
        if time.monotonic() > share and any(not rest.when for rest in row.deviations):
            op.unasked.append(dtype)
            return
        op.rows[dtype] = row
        if family.row is None and all(rest.then != "unknown" for rest in row.deviations):
            family.row = row
            family.telling = learner.telling(row, TELLING)

    def _late(self) -> bool:
        return time.monotonic() > self._end

    def _agree(
        self,
        row: LearntRow,
        asker: Callable[[Question], Answer],
        asked: Sequence[Question],
        name: str,
    ) -> bool:
        """Whether an op gives the answers of a row to these questions."""
        to_target = name == TO_TARGET
        return all(
            agrees(row.outcome(question, to_target=to_target), asker(question)) is not False
            for question in asked
        )

    def _function(self, name: str, dtype: str) -> Function | str:
        """The function of an op on a type; or the kind of the answers where none is known."""
        kinds = set()
        for question in _first_questions(name):
            for function in functions(OPS.get(name), dtype):
                answer = self._asker(name, function)(question)
                kinds.add(answer.kind)
                if answer.kind != RESULT:
                    break
                if answer.matches(_plan(question, name)):
                    if len(set(question)) == 1:
                        self._shapes[name] = question[0]
                    return function
        return next(kind for kind in (RESULT, CRASHED, REFUSED) if kind in kinds)

    def _numbers(self, name: str, dtype: str, function: Function) -> list[Numbers]:
        """The aspects in which an op of two operands has other numbers than NumPy's."""
        op = OPS.get(name)
        if op is None or op.operands != 2 or op.conditions or name not in self._shapes:
            return []
        compute = computer(self._process, self._names[name], self._shapes[name])

        def counted(operands: tuple[Array, ...]) -> tuple[str, Array | None]:
            self._asked[name] += 1
            return compute(operands)

        return list(numbers_of(op, dtype, function.kernel, counted))

    def _asker(self, name: str, function: Function) -> Callable[[Question], Answer]:
        """Asks one op with the values of its function."""

        def counted(question: Question) -> Answer:
            self._asked[name] += 1
            answer = ask(self._process, self._names[name], function, question)
            self._result.first_refusal = self._result.first_refusal or answer.message
            return answer

        return counted


def _question(name: str, shape: tuple[int, ...]) -> Question:
    """Operands of one shape."""
    op = OPS.get(name)
    return (shape,) * (2 if op is None else op.tensors)


def _first_questions(name: str) -> list[Question]:
    """Questions that an op answers, if the engine has it."""
    same = [_question(name, shape) for shape in _FIRST]
    return same + [(_FIRST[0], slope) for slope in _SLOPES] if name == "prelu" else same


def _plan(question: Question, name: str) -> Plan:
    """The plan of a first question."""
    outcome = LearntRow(FORMS[0]).outcome(question, to_target=name == TO_TARGET)
    assert isinstance(outcome, Plan)
    return outcome


__all__ = [
    "DTYPES",
    "FAMILIES",
    "Checked",
    "EngineLearner",
    "LearntEngine",
    "LearntOp",
]
