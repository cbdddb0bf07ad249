"""Gradients of fused functions: ``python -m campaigns gradients``.

Random programs (`gradients_draw`) in float64: what `fused.vjp` gives beside torch.autograd on the
same expression with the broadcasts written out as views (`gradients_torch`). And each
differentiable op alone beside finite differences.

Rounding errors are in proportion to the largest cotangent and value on the way, so differences are
measured by their product (`gradients_torch.Judged.scale`): at most `BOUND` of that.

Exit status 0: no difference; 1: at least one; 2: bad input, or no PyTorch.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
from rich.console import Console

import zerostride as zs
from zerostride.fusion.grad.table import RULES
from zerostride.ops import OPS

from ..seeded import progress
from .draw import MOST_STEPS, REDUCTIONS, draw
from .program import SMOOTH, Array, Element, Reduction, SmoothProgram, apply, source

#: The largest difference, in units of the scale: some thousand roundings of float64. Over 20,000
#: programs the largest one was 1.1e-13.
BOUND = 1e-12
#: The same for finite differences: four points at this distance leave some 1e-11.
BOUND_OF_DIFFERENCES, STEP = 1e-8, 2.5e-4
#: Differences that are printed; more than these are counted.
SHOWN = 10

#: What is judged: gradients of a program for cotangents, after its results.
Gradients = Callable[[SmoothProgram, Sequence[Array]], tuple[Sequence[Any], Sequence[Any]]]


@dataclass(frozen=True, slots=True)
class Difference:
    """A program whose gradients differ, and how."""

    case: str
    text: str
    code: str


@dataclass(slots=True)
class Result:
    """The result of a run.

    Attributes:
        cases: how many programs were judged.
        worst: the largest difference from PyTorch, in units of the scale.
        worst_of_differences: the same from finite differences, over the ops alone.
        steps: how many programs have how many steps.
        ops: how often each op and reduction was a step.
        differing: how many programs and ops differ.
        differences: the first of them.
    """

    cases: int = 0
    worst: float = 0.0
    worst_of_differences: float = 0.0
    steps: Counter[int] = field(default_factory=Counter)
    ops: Counter[str] = field(default_factory=Counter)
    differing: int = 0
    differences: list[Difference] = field(default_factory=list)

    def differs(self, case: str, text: str, code: str) -> None:
        """Counts a difference, and keeps it if it is one of the first."""
        self.differing += 1
        if len(self.differences) < SHOWN:
            self.differences.append(Difference(case, text, code))


def own_results(
    program: SmoothProgram, cotangents: Sequence[Array]
) -> tuple[Sequence[Any], Sequence[Any]]:
    """The results of a program and its operands' gradients, by `fused.vjp`."""
    result, pullback = zs.fuse(lambda *operands: program(*operands)).vjp(*program.operands)
    single = len(program.outputs) == 1
    gradients = pullback(cotangents[0] if single else tuple(cotangents))
    return ([result] if single else result), gradients


def judge(program: SmoothProgram, case: str, result: Result, of: Gradients = own_results) -> None:
    """One program beside PyTorch's autograd."""
    from .in_torch import Judged

    numbers = np.random.default_rng(list(case.encode()))
    shapes = [np.shape(value) for value in Judged(program).results]
    cotangents = [np.asarray(numbers.normal(size=shape)) for shape in shapes]
    expected = Judged(program, cotangents)
    result.cases += 1
    result.steps[len(program.steps)] += 1
    result.ops.update(getattr(step, "op", "view") for step in program.steps)
    try:
        results, gradients = of(program, cotangents)
        pairs = [
            *_pairs("result", results, expected.results),
            *_pairs("gradient", gradients, expected.gradients),
        ]
        for what, mine, theirs in pairs:
            error = _error(mine, theirs) / expected.scale
            if not error <= BOUND:
                raise AssertionError(f"{what}: off by {error:.3g}\n  {mine}\n  {theirs}")
            result.worst = max(result.worst, error)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong is a finding
        result.differs(case, f"{type(error).__name__}: {error}", source(program))


def _pairs(
    what: str, mine: Sequence[Any], theirs: Sequence[Any]
) -> Iterator[tuple[str, Array, Array]]:
    """Arrays to compare; shapes, dtypes and what is None have to be the same."""
    if len(mine) != len(theirs):
        raise AssertionError(f"{len(mine)} {what}s, not {len(theirs)}")
    for k, (one, other) in enumerate(zip(mine, theirs, strict=True)):
        if one is None and other is None:
            continue
        if one is None or other is None:
            raise AssertionError(f"{what} {k} is {one}, not {other}")
        if np.shape(one) != np.shape(other) or one.dtype != other.dtype:
            raise AssertionError(
                f"{what} {k} is {np.shape(one)} of {one.dtype}, "
                f"not {np.shape(other)} of {other.dtype}"
            )
        yield f"{what} {k}", one, other


def _error(mine: Array, theirs: Array) -> float:
    return float(np.max(np.abs(mine - theirs), initial=0.0))


# Finite differences


def check_ops(seed: int, result: Result, of: Gradients = own_results) -> None:
    """Every op that has a derivative, and every reduction, beside finite differences."""
    for name in [*RULES, *dict.fromkeys(REDUCTIONS)]:
        program = _alone(name, seed)
        value = _computed(program, program.operands)
        cotangent = np.asarray(np.random.default_rng(seed).normal(size=np.shape(value)))
        try:
            _, gradients = of(program, [cotangent])
            for k, gradient in enumerate(gradients):
                if gradient is None:
                    continue
                expected = _differences(program, k, cotangent)
                error = _error(gradient, expected) / max(1.0, float(np.max(np.abs(expected))))
                if not error <= BOUND_OF_DIFFERENCES:
                    raise AssertionError(f"operand {k}: off by {error:.3g}")
                result.worst_of_differences = max(result.worst_of_differences, error)
        except Exception as error:  # noqa: BLE001 - whatever goes wrong is a finding
            result.differs(name, f"{type(error).__name__}: {error}", source(program))


def _alone(name: str, seed: int) -> SmoothProgram:
    """A program of one op, at arguments where it is smooth."""
    numbers = np.random.default_rng([seed, *name.encode()])
    if name not in RULES:
        return SmoothProgram(
            (numbers.uniform(0.5, 2.0, (3, 4)),), (Reduction(name, 0, (1,), False),), (1,)
        )
    count = OPS[name].operands
    smooth = SMOOTH.get(name)
    columns: list[list[float]] = []
    while len(columns) < 24:  # each element by itself: domains of three arguments are small
        low, high = (-2.0, 2.0) if numbers.random() < 0.7 else (1.2, 3.0)
        column = numbers.uniform(low, high, count).tolist()
        if smooth is None or smooth(*column):
            columns.append(column)
    operands = [np.array(row).reshape(4, 6) for row in zip(*columns, strict=True)]
    if name == "where":
        operands[0] = operands[0] > 0
    step = Element(name, tuple(range(count)))
    return SmoothProgram(tuple(operands), (step,), (count,))


def _computed(program: SmoothProgram, operands: Sequence[Array]) -> Any:
    return apply(program.steps[0], [*operands])


def _differences(program: SmoothProgram, k: int, cotangent: Array) -> Array:
    """The gradient of an operand, by moving each element of it a little both ways."""
    array = np.empty_like(program.operands[k])
    for place in np.ndindex(array.shape):

        def at(offset: float, place: tuple[int, ...] = place) -> float:
            moved = [x.copy() for x in program.operands]
            moved[k][place] += offset
            return float(np.sum(_computed(program, moved) * cotangent))

        near, far = at(STEP) - at(-STEP), at(2 * STEP) - at(-2 * STEP)
        array[place] = (8 * near - far) / (12 * STEP)
    return array


# The command


def measure(
    cases: int,
    seed: int,
    first: int = 0,
    seconds: float = float("inf"),
    seen: Callable[[], None] = lambda: None,
    of: Gradients = own_results,
) -> Result:
    """Programs number `first` and on of a seed, and every op alone."""
    result = Result()
    until = time.monotonic() + seconds
    check_ops(seed, result, of)
    for case in range(first, first + cases):
        if time.monotonic() > until:
            break
        judge(draw(seed, case), f"{seed}:{case}", result, of)
        seen()
    return result


def run(options: SimpleNamespace) -> int:
    """The command; see the module."""
    if importlib.util.find_spec("torch") is None:
        print("error: PyTorch is not installed: pip install zerostride[torch]", file=sys.stderr)
        return 2
    with progress("gradients", options.cases, options.as_json) as advance:
        result = measure(options.cases, options.seed, options.first, options.seconds, advance)
    if options.as_json:
        print(json.dumps(_as_json(result), indent=1))
    else:
        _print(Console(soft_wrap=True), result)
    return 1 if result.differing else 0


def _as_json(result: Result) -> dict[str, Any]:
    # Not asdict(result): it makes nonsense of a Counter.
    by_name = {name: getattr(result, name) for name in Result.__dataclass_fields__}
    return {**by_name, "bound": BOUND, "differences": [*map(asdict, result.differences)]}


def _print(console: Console, result: Result) -> None:
    for difference in result.differences:
        console.print(f"\n{difference.case}: {difference.text}\n{difference.code}", markup=False)
    console.print(
        f"{result.cases:,} programs of up to {MOST_STEPS} steps, {sum(result.ops.values()):,} "
        f"steps of {len(result.ops)} kinds, beside torch.autograd in float64: "
        f"{result.differing} differ; largest error {result.worst:.2g} of the largest cotangent "
        f"times the largest value (bound {BOUND:g})\n"
        f"{len(RULES)} ops and the reductions beside finite differences: largest error "
        f"{result.worst_of_differences:.2g} (bound {BOUND_OF_DIFFERENCES:g})",
        markup=False,
    )


__all__ = ["BOUND", "Difference", "Result", "judge", "measure", "own_results", "run"]
