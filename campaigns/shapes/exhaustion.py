"""Symbolic plans compared with concrete ones: all small cases, and samples of larger ones.

For a pair of symbolic shapes and every assignment of small numbers: the condition is true exactly
where a concrete plan exists, the bound plan is that plan, one case holds where there are cases, and
the interval of each result size is the least one that has all its values.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Console
from rich.progress import Progress

from zerostride.core.plan import Plan
from zerostride.engines.planning import plan, plan_to
from zerostride.errors import BroadcastError, default_names
from zerostride.sizes.condition import Condition
from zerostride.sizes.dim import Dim, Symbol, dim
from zerostride.sizes.parse import read_shape
from zerostride.sizes.solve import listing

#: The sizes of the exhaustive run.
SIZES: tuple[Any, ...] = (1, 2, "N", "M", "?", "0..1", "1..3", "2*N")
#: Sizes that samples of higher rank have beside them.
MORE: tuple[Any, ...] = (0, 3, "K", "2..", "N + 1", "4")
#: Numbers for a symbol without bounds.
VALUES = range(5)
#: Assignments looked at where no smaller number can show the end of an interval.
WIDER = range(9)
#: Assignments of one pair, at most.
MOST = 10_000

Sizes = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """A rule with its attributes, for element-wise ops or (`to`) a Broadcast op."""

    rule: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    engine: str | None = None
    to: bool = False

    def __str__(self) -> str:
        values = "".join(f" {name}={value}" for name, value in self.attributes.items())
        return f"{self.engine + ' ' if self.engine else ''}{self.rule}{values}"

    def plan(self, first: Sequence[Any], second: Sequence[Any]) -> Plan:
        """The plan of a pair of shapes."""
        if self.to:
            return plan_to(first, second, self.rule, engine=self.engine, **self.attributes)
        return plan(first, second, rule=self.rule, engine=self.engine, **self.attributes)


def rules(rank: int) -> list[Asked]:
    """Every rule with every attribute that makes sense for shapes up to this rank."""
    axes = range(rank)
    return [
        Asked("none"),
        Asked("numpy"),
        Asked("mnn"),
        Asked("ncnn"),
        *(Asked("pdpd", {"axis": axis}) for axis in (-1, *axes)),
        *(Asked("paddle", {"axis": axis}) for axis in (*range(-rank, 0), *axes)),
        Asked("onnx6"),
        Asked("onnx6", {"broadcast": 1}),
        *(Asked("onnx6", {"broadcast": 1, "axis": axis}) for axis in axes),
        Asked("numpy", to=True),
        Asked("bidirectional", to=True),
        *(
            Asked("explicit", {"axes_mapping": mapping}, to=True)
            for count in range(rank + 1)
            for mapping in itertools.combinations(axes, count)
        ),
        Asked("ncnn", engine="ncnn"),
        Asked("pdpd", engine="openvino"),
        Asked("pdpd", {"axis": -1}, engine="openvino"),
        Asked("bidirectional", engine="openvino", to=True),
        Asked("paddle", engine="paddle"),
    ]


@dataclass(slots=True)
class PlanTally:
    """The checked cases and the failures."""

    pairs: int = 0
    plans: int = 0
    assignments: int = 0
    exceptions: list[str] = field(default_factory=list)

    def add(self, other: PlanTally) -> None:
        """Adds another tally to this one."""
        self.pairs += other.pairs
        self.plans += other.plans
        self.assignments += other.assignments
        self.exceptions += other.exceptions


def exhaust(asked: Asked, rank: int = 2) -> PlanTally:
    """Every pair of shapes up to `rank` over SIZES, under one rule."""
    shapes = [s for r in range(rank + 1) for s in itertools.product(SIZES, repeat=r)]
    tally = PlanTally()
    for first, second in itertools.product(shapes, repeat=2):
        _check(asked, first, second, tally)
    return tally


def sample(count: int, seed: int, ranks: Sequence[int] = (3, 4), each: int = 4) -> PlanTally:
    """`count` assignments of random pairs under random rules, `each` of one pair."""
    random_ = random.Random(seed)
    tally = PlanTally()
    by_rank = {rank: rules(rank) for rank in ranks}
    while tally.assignments < count:
        rank = random_.choice(ranks)
        first = tuple(random_.choice(SIZES + MORE) for _ in range(rank))
        second = [
            # Sizes that have something to do with the first's: others nearly never fit.
            random_.choice((first[-1 - axis], 1, random_.choice(SIZES + MORE)))
            for axis in range(random_.randint(0, rank))
        ][::-1]
        pair = [first, tuple(second)]
        random_.shuffle(pair)
        _check(random_.choice(by_rank[rank]), pair[0], pair[1], tally, random_, each)
    return tally


def _check(
    asked: Asked,
    first: Sizes,
    second: Sizes,
    tally: PlanTally,
    random_: random.Random | None = None,
    each: int = 0,
) -> None:
    tally.pairs += 1
    names = ("data", "target") if asked.to else default_names(2)
    pair = read_shape(first, names[0]), read_shape(second, names[1])
    symbols = tuple(dict.fromkeys(s for shape in pair for size in shape for s in dim(size).symbols))
    plan: Plan | BroadcastError
    try:
        plan = asked.plan(*pair)
    except BroadcastError as error:
        plan = error
    values = _assignments(symbols, VALUES, random_, each)
    report = _Report(asked, first, second, tally)
    seen = []
    cases = [case.conditions for case in plan.cases] if isinstance(plan, Plan) else []
    for value in values:
        tally.assignments += 1
        bound = _against_numbers(asked, pair, plan, cases, value, report)
        if bound is not None:
            seen.append(bound.shape)
    if isinstance(plan, Plan):
        tally.plans += 1
        if random_ is None:
            _tightness(asked, pair, plan, symbols, seen, report)
        else:
            _within(plan, seen, report)


def _assignments(
    symbols: Sequence[Symbol], values: range, random_: random.Random | None, each: int
) -> Iterator[dict[Symbol, int]]:
    """All assignments of numbers in bounds, or `each` random ones."""
    domains = [
        [n for n in values if n >= s.low and (s.high is None or n <= s.high)] for s in symbols
    ]
    if random_ is not None:
        for _ in range(each):
            yield {s: random_.choice(domain) for s, domain in zip(symbols, domains, strict=True)}
        return
    for point in itertools.islice(itertools.product(*domains), MOST):
        yield dict(zip(symbols, point, strict=True))


@dataclass(frozen=True, slots=True)
class _Report:
    """Notes what does not hold, with all that is needed to see it again."""

    asked: Asked
    first: Sizes
    second: Sizes
    tally: PlanTally

    def __call__(self, words: str, values: Mapping[Symbol, int] | None = None) -> None:
        where = f" at {listing(values)}" if values else ""
        self.tally.exceptions.append(f"{self.asked}: {self.first} {self.second}{where}: {words}")


def _numbers(shape: Sequence[Any], values: Mapping[Symbol, int]) -> tuple[int, ...]:
    return tuple(size.evaluate(values) if isinstance(size, Dim) else size for size in shape)


def _against_numbers(
    asked: Asked,
    pair: tuple[Any, Any],
    answer: Plan | BroadcastError,
    cases: Sequence[Condition],
    values: Mapping[Symbol, int],
    report: _Report,
) -> Plan | None:
    """The concrete plan, after comparing it with what the symbolic one says; None if refused."""
    try:
        meant: Plan | BroadcastError = asked.plan(*(_numbers(shape, values) for shape in pair))
    except BroadcastError as error:
        meant = error
    exists = isinstance(meant, Plan)
    if not isinstance(answer, Plan):
        if exists:
            report("refused, though there is a plan", values)
        return None
    if answer.open is None:
        if answer != meant:
            report("a plan of numbers that is not the concrete one", values)
        return answer
    if answer.conditions.evaluate(values) is not exists:
        report(f"the condition {answer.conditions} is {not exists}", values)
    holding = sum(case.evaluate(values) for case in cases)
    if cases and holding != exists:
        report(f"{holding} cases hold", values)
    try:
        bound = answer.bind({symbol.name: number for symbol, number in values.items()})
    except BroadcastError as error:
        if isinstance(meant, Plan):
            report(f"not bound: {error.detail}", values)
        elif error.reason != meant.reason:
            report(f"refused for {error.reason}, not {meant.reason}", values)
        return None
    if not isinstance(meant, Plan):
        report("bound, though there is no plan", values)
        return None
    if bound != meant or bound.axes_mapping != meant.axes_mapping:
        report(f"bound to {bound!r}, not {meant!r}", values)
    if bound.operands != meant.operands or bound.stretched != meant.stretched:
        report(f"bound operands {bound.operands}, stretched {bound.stretched}", values)
    return meant


def _tightness(
    asked: Asked,
    pair: tuple[Any, Any],
    plan: Plan,
    symbols: Sequence[Symbol],
    seen: Sequence[tuple[int, ...]],
    report: _Report,
) -> None:
    """Whether each interval is the least one: both ends are taken on, or there is no end."""
    intervals = [dim(size).interval for size in plan.shape]
    last = VALUES[-1]
    if not seen or any(
        high > last if high is not None else max(shape[axis] for shape in seen) < last
        for axis, (_, high) in enumerate(intervals)
    ):
        # Small numbers do not reach the end: look further.
        seen = [
            value.shape
            for values in _assignments(symbols, WIDER, None, 0)
            if (value := _concrete(asked, pair, values)) is not None
        ]
    if not seen:
        report("a plan that exists for no numbers")
        return
    for axis, (low, high) in enumerate(intervals):
        sizes = [shape[axis] for shape in seen]
        if min(sizes) != low:
            report(f"axis {axis} is at least {low}, found {min(sizes)}")
        if high is not None and max(sizes) != high:
            report(f"axis {axis} is at most {high}, found {max(sizes)}")
        if high is None and max(sizes) < last:
            report(f"axis {axis} has no end, found {max(sizes)} at most")


def _concrete(asked: Asked, pair: tuple[Any, Any], values: Mapping[Symbol, int]) -> Plan | None:
    try:
        return asked.plan(*(_numbers(shape, values) for shape in pair))
    except BroadcastError:
        return None


def _within(plan: Plan, seen: Sequence[tuple[int, ...]], report: _Report) -> None:
    """Whether every size found lies in its interval."""
    for axis, size in enumerate(plan.shape):
        low, high = dim(size).interval
        for shape in seen:
            if (low is not None and shape[axis] < low) or (high is not None and shape[axis] > high):
                report(f"axis {axis} is in {low}..{high}, found {shape[axis]}")


# The command.

#: Samples that are taken with one seed.
CHUNK = 20_000


def run_all(rank: int, samples: int, seed: int, jobs: int, as_json: bool) -> int:
    """Everything, in several processes; prints a table, and returns the exit status."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    work: list[tuple[str, Callable[..., PlanTally], tuple[Any, ...]]] = [
        (f"{asked}, all pairs up to rank {rank}", exhaust, (asked, rank)) for asked in rules(rank)
    ]
    for chunk in range(-(-samples // CHUNK)):
        count = min(CHUNK, samples - chunk * CHUNK)
        work.append(("samples of rank 3 and 4", sample, (count, seed + chunk)))
    tallies: dict[str, PlanTally] = {}
    console = Console(stderr=True)
    with (
        ProcessPoolExecutor(jobs, multiprocessing.get_context("fork")) as pool,
        Progress(console=console, disable=as_json or not console.is_terminal) as progress,
    ):
        task = progress.add_task("exhaustion", total=len(work))
        waiting = [(name, pool.submit(run, *arguments)) for name, run, arguments in work]
        for name, future in waiting:
            tallies.setdefault(name, PlanTally()).add(future.result())
            progress.advance(task)
    total = PlanTally()
    for tally in tallies.values():
        total.add(tally)
    if as_json:
        print(json.dumps({name: asdict(tally) for name, tally in tallies.items()}, indent=1))
    else:
        _show({**tallies, "all": total})
    return 1 if total.exceptions else 0


def _show(tallies: Mapping[str, PlanTally]) -> None:
    width = max(map(len, tallies))
    print(f"{'':<{width}}  {'pairs':>9} {'plans':>9} {'assignments':>12} exceptions")
    for name, tally in tallies.items():
        print(
            f"{name:<{width}}  {tally.pairs:>9,} {tally.plans:>9,} {tally.assignments:>12,} "
            f"{len(tally.exceptions)}"
        )
    for message in tallies["all"].exceptions[:20]:
        print("  " + message)


__all__ = ["Asked", "PlanTally", "exhaust", "rules", "run_all", "sample"]
