"""Fused expressions against the reference: ``python -m zerostride.measure fuse``.

Seeded random programs (`fuse_draw`) are traced and run as a user's functions are, and their results
compared with the reference's for a graph that was made without tracing (`fuse_graph`), to the bit
or within the intervals of `fuse_bounds`. Processes, blocks and what is told of a crash are those of
`native`; what differs is shrunk and printed as code.

Exit status 0: no difference; 1: at least one; 2: no native engine, or bad input.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table

from ..compute import native
from ..fuse import reference
from ..fuse.graph import Graph
from .fuse_cases import Case, Program, source
from .fuse_draw import cases
from .fuse_judge import Fused, fused_of, judge
from .fuse_shrink import shrink
from .native import SHOWN, Difference, Part, campaign, ended_at, judging, print_wide, run_parts


@dataclass(slots=True)
class Tally:
    """What came of the programs of one family."""

    cases: int = 0
    equal: int = 0
    elements: int = 0
    open: int = 0

    def add(self, other: Tally) -> None:
        """Counts another one's, too."""
        self.cases += other.cases
        self.equal += other.equal
        self.elements += other.elements
        self.open += other.open


@dataclass(slots=True)
class Result:
    """What came of a run: of one instruction set, or of a part of its cases."""

    isa: str
    tallies: dict[str, Tally] = field(default_factory=dict)
    handed_over: int = 0  # calls that the engine left to the reference
    differing: int = 0
    differences: list[Difference] = field(default_factory=list)

    @property
    def cases(self) -> int:
        """How many were judged."""
        return sum(tally.cases for tally in self.tallies.values())

    def add(self, other: Result) -> None:
        """Takes another part's."""
        for family, tally in other.tallies.items():
            self.tallies.setdefault(family, Tally()).add(tally)
        self.handed_over += other.handed_over
        self.differing += other.differing
        self.differences += other.differences[: SHOWN - len(self.differences)]


def judge_all(
    numbered: Iterator[tuple[int, Case]],
    fused: Fused = fused_of,
    seen: Callable[[int], None] = lambda case: None,
    until: float = float("inf"),
) -> Result:
    """Judges cases one after the other, in this process.

    Args:
        numbered: cases and their numbers.
        fused: what makes the function that is held against the reference.
        seen: is told the number of each case before it is run.
        until: the time (of `time.monotonic`) from which no case is begun.
    """
    result = Result(native.backend().removeprefix("native "))
    shown: Program | None = None  # one call of a program is enough
    with _counting(result), warnings.catch_warnings():
        warnings.simplefilter("error")
        for k, case in numbered:
            if time.monotonic() > until:
                break
            seen(k)
            verdict = judge(case, fused)
            tally = result.tallies.setdefault(verdict.family, Tally())
            tally.add(Tally(1, int(verdict.equal), verdict.elements, verdict.open))
            if verdict.difference:
                result.differing += 1
                if len(result.differences) < SHOWN and case.program is not shown:
                    shown = case.program
                    result.differences.append(_explained(k, case, fused, verdict.difference))
    return result


@contextmanager
def _counting(result: Result) -> Iterator[None]:
    """Counts the calls that are evaluated node by node; the judge's own are not among them."""
    evaluated = reference.evaluate

    def counted(graph: Graph, operands: Sequence[Any]) -> list[Any]:
        result.handed_over += 1
        return evaluated(graph, operands)

    reference.evaluate = counted
    try:
        yield
    finally:
        reference.evaluate = evaluated


def _explained(k: int, case: Case, fused: Fused, text: str) -> Difference:
    # A simpler case is to fail in the same way: by its values, or by what is raised.
    small = shrink(case, lambda simpler: _kind(judge(simpler, fused).difference) == _kind(text))
    # A call that fails by chance (threads) may not fail again.
    text = judge(small, fused).difference or f"{text} (the first time only)"
    return Difference(k, text, source(small))


def _kind(difference: str) -> str:
    """What sort of difference: "", "raised TypeError", or that of something else."""
    if difference.startswith("raised"):
        return difference.split("(")[0]
    return "other" if difference else ""


def child(arguments: Sequence[str] | None = None) -> int:
    """Judges a range of cases in a process of its own."""
    return judging(
        lambda first, count, seed, seen, until: judge_all(
            cases(first, count, seed), seen=seen, until=until
        ),
        arguments,
    )


def run(options: argparse.Namespace) -> int:
    """The subcommand; returns the exit status."""
    return campaign(options, _run_isa, _print)


def _run_isa(isa: str, options: argparse.Namespace) -> Result:
    total = Result(isa)
    run_parts(__name__, isa, options, lambda part: total.add(_result_of(part, options.seed)))
    return total


def _result_of(part: Part, seed: int) -> Result:
    if part.process.returncode == 0 and part.last:
        return _from_json(json.loads(part.last))
    k, text = ended_at(part)
    code = ""
    if k >= 0:
        ((_, case),) = cases(k, 1, seed)
        code = source(case)
    return Result(part.isa, differing=1, differences=[Difference(k, text, code)])


def _from_json(data: dict[str, Any]) -> Result:
    tallies = {family: Tally(**tally) for family, tally in data["tallies"].items()}
    differences = [Difference(**difference) for difference in data["differences"]]
    return Result(**{**data, "tallies": tallies, "differences": differences})


def _print(results: Sequence[Result], seed: int) -> None:
    table = Table("instruction set", "programs", "cases", "equal to the bit", "elements", "open")
    for result in results:
        for family, tally in sorted(result.tallies.items()):
            share = f"{tally.open / max(tally.elements, 1):.3%}"
            row = (f"{tally.cases:,}", f"{tally.equal:,}", f"{tally.elements:,}", share)
            table.add_row(result.isa, family, *row)
    print_wide(table)
    for result in results:
        for difference in result.differences:
            print(f"\n# {result.isa}, seed {seed}, case {difference.case}: {difference.text}")
            print(difference.code)
        ours = 1 - result.handed_over / max(result.cases, 1)
        print(
            f"{result.isa}: {result.differing} differences in {result.cases:,} cases "
            f"({ours:.0%} computed natively)"
        )


if __name__ == "__main__":
    sys.exit(child())
