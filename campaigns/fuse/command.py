"""Compares fused functions with the reference: ``python -m campaigns fuse``.

Seeded random programs (`draw`) are traced and run as a user's functions are, and their results
compared with the reference's for a graph that was made without tracing (`graph`), to the bit
or within the intervals of `bounds`, in processes of their own (`campaigns.seeded`). What differs is
shrunk and printed as code.

Exit status 0: no difference; 1: at least one; 2: no native engine, or bad input.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace

from rich.table import Table

from zerostride.compute import native
from zerostride.fusion import reference

from ..seeded import (
    SHOWN,
    Difference,
    Part,
    Result,
    campaign,
    counting,
    judging,
    print_differences,
    print_wide,
    result_of,
    run_parts,
)
from .cases import FuseCase, FuseProgram, source
from .draw import cases
from .judge import Fused, fused_of, judge
from .shrink import shrink


@dataclass(slots=True)
class FuseTally:
    """The results of the programs of one family."""

    cases: int = 0
    equal: int = 0
    elements: int = 0
    open: int = 0

    def add(self, other: FuseTally) -> None:
        """Counts another one's, too."""
        self.cases += other.cases
        self.equal += other.equal
        self.elements += other.elements
        self.open += other.open


def judge_all(
    numbered: Iterator[tuple[int, FuseCase]],
    fused: Fused = fused_of,
    seen: Callable[[int], None] = lambda case: None,
    until: float = float("inf"),
) -> Result[FuseTally]:
    """Judges cases one after the other, in this process.

    Args:
        numbered: cases and their numbers.
        fused: what makes the function that is held against the reference.
        seen: is told the number of each case before it is run.
        until: the time (of `time.monotonic`) from which no case is begun.
    """
    result: Result[FuseTally] = Result(native.backend().removeprefix("native "))
    shown: FuseProgram | None = None  # one call of a program is enough
    # The judge's own evaluations are not among those that are counted.
    with counting(result, reference, "evaluate"), warnings.catch_warnings():
        warnings.simplefilter("error")
        for k, case in numbered:
            if time.monotonic() > until:
                break
            seen(k)
            verdict = judge(case, fused)
            equal = int(verdict.equal)
            result.count(verdict.family, FuseTally(1, equal, verdict.elements, verdict.open))
            if verdict.difference:
                result.differing += 1
                if len(result.differences) < SHOWN and case.program is not shown:
                    shown = case.program
                    result.differences.append(_explained(k, case, fused, verdict.difference))
    return result


def _explained(k: int, case: FuseCase, fused: Fused, text: str) -> Difference:
    # A simpler case is to fail in the same way: by its values, or by what is raised.
    small = shrink(case, lambda simpler: _kind(judge(simpler, fused).difference) == _kind(text))
    # A call that fails by chance (threads) may not fail again.
    text = judge(small, fused).difference or f"{text} (the first time only)"
    return Difference(k, text, source(small))


def _kind(difference: str) -> str:
    """The kind of a difference: "", "raised TypeError", or another."""
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


def run(options: SimpleNamespace) -> int:
    """The subcommand; returns the exit status."""
    return campaign(options, _run_isa, _print)


def _run_isa(isa: str, options: SimpleNamespace) -> Result[FuseTally]:
    total: Result[FuseTally] = Result(isa)
    run_parts(__name__, isa, options, lambda part: total.add(_result_of(part, options.seed)))
    return total


def _result_of(part: Part, seed: int) -> Result[FuseTally]:
    def told(k: int) -> tuple[str, str]:
        ((_, case),) = cases(k, 1, seed)
        return "", source(case)

    return result_of(part, FuseTally, told)


def _print(results: Sequence[Result[FuseTally]], seed: int) -> None:
    table = Table("instruction set", "programs", "cases", "equal to the bit", "elements", "open")
    for result in results:
        for family, tally in sorted(result.tallies.items()):
            share = f"{tally.open / max(tally.elements, 1):.3%}"
            row = (f"{tally.cases:,}", f"{tally.equal:,}", f"{tally.elements:,}", share)
            table.add_row(result.isa, family, *row)
    print_wide(table)
    for result in results:
        print_differences(result, seed)


if __name__ == "__main__":
    sys.exit(child())
