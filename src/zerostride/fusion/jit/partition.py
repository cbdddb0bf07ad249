"""Splits a phase's steps into compiled loops and calls of kernels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..schedule.program import Phase, Step, value_dtype
from .ops import EMITTERS, Emitter


@dataclass(frozen=True, slots=True)
class KernelCall:
    """A step that a kernel computes, on a block (or once, of splats)."""

    step: int


@dataclass(frozen=True, slots=True)
class Loop:
    """Steps that a loop computes in registers, and the values that it stores."""

    steps: tuple[int, ...]
    leaves: tuple[int, ...]


@dataclass(slots=True)
class Body:
    """The facts about a phase that writing its code needs.

    Attributes:
        phase: its loads are the inputs.
        results: values, one for each output.
        splats: bit k is set if load k is one element.
        emitters: the ops that are written, by name and dtype; others are called.
        uniform: for each value, whether it is the same for a whole row.
        needed: the values that the results depend on.
    """

    phase: Phase
    results: tuple[int, ...]
    splats: int
    emitters: Mapping[tuple[str, str], Emitter] = field(default_factory=lambda: EMITTERS)
    uniform: list[bool] = field(default_factory=list)
    needed: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        loads, literals = len(self.phase.loads), len(self.phase.literals)
        self.uniform = [bool(self.splats >> k & 1) for k in range(loads)] + [True] * literals
        for step in self.phase.steps:
            self.uniform.append(all(self.uniform[arg] for arg in step.args))
        self.needed = set(self.results)
        for value in reversed(range(self.first, len(self.uniform))):
            if value in self.needed:
                self.needed.update(self.step(value).args)

    @property
    def first(self) -> int:
        """The first step's value."""
        return len(self.phase.loads) + len(self.phase.literals)

    def step(self, value: int) -> Step:
        """The step that makes a value."""
        return self.phase.steps[value - self.first]

    def is_written(self, value: int) -> bool:
        """Whether a step is written in a loop; others are kernels' calls."""
        step = self.step(value)
        return step.op == "convert" or (step.op, step.dtypes[-2]) in self.emitters

    def is_function(self, value: int) -> bool:
        """Whether a step takes many instructions."""
        key = (self.step(value).op, self.step(value).dtypes[-2])
        return key in self.emitters and key not in EMITTERS

    def dtype(self, value: int) -> str:
        """A value's dtype."""
        return value_dtype(self.phase, value)

    def rows(self) -> Iterator[int]:
        """The needed values of steps that differ along a row."""
        for value in range(self.first, len(self.uniform)):
            if value in self.needed and not self.uniform[value]:
                yield value


def pieces(body: Body) -> list[Loop | KernelCall]:
    """Loops and kernels' calls, in an order in which they can run.

    Loop number k runs before the kernels of turn k. No function of a loop reads another one of it:
    a processor overlaps a loop's rounds only if a round has fewer instructions than it looks ahead
    (three nested tanh in one loop took 1.6 times the kernels' time). Other steps are computed in
    the first turn that needs them, so that few values are stored between loops.
    """
    rows = [*body.rows()]
    turn: dict[int, int] = {}  # of functions and kernels
    ready: dict[int, int] = {}  # the first loop in which a value can be read
    behind: dict[int, int] = {}  # the last loop with a function that it needs
    for value in rows:
        args = body.step(value).args
        soonest = max((ready.get(arg, 1) for arg in args), default=1)
        behind[value] = max((behind.get(arg, 0) for arg in args), default=0)
        ready[value] = soonest
        if body.is_function(value):
            turn[value] = ready[value] = behind[value] = max(soonest, behind[value] + 1)
        elif not body.is_written(value):
            turn[value], ready[value] = soonest, soonest + 1
    last = max(ready.values(), default=1)
    due = dict(turn)  # the turn in which a value is computed
    for value in reversed(rows):
        reader = due.setdefault(value, last)
        for arg in body.step(value).args:
            if arg not in turn:
                due[arg] = min(due.get(arg, last), reader)
    order: list[Loop | KernelCall] = []
    for number in range(1, last + 1):
        now = [value for value in rows if due[value] == number]
        written = [value for value in now if body.is_written(value)]
        order.append(Loop(tuple(written), _left(body, written, rows)))
        order.extend(KernelCall(value) for value in now if not body.is_written(value))
    return [piece for piece in order if isinstance(piece, KernelCall) or piece.leaves]


def _left(body: Body, steps: Sequence[int], rows: Sequence[int]) -> tuple[int, ...]:
    """The values of a loop that other pieces read."""
    inside = set(steps)
    read = set(body.results)
    for value in rows:
        if value not in inside or not body.is_written(value):
            read.update(body.step(value).args)
    return tuple(value for value in steps if value in read)
