"""Compares the native engine with the reference: ``python -m campaigns native``.

Seeded calls of the public functions (`draw`) are computed by both and compared
(`judge`), in processes of their own (`campaigns.seeded`).

Exit status 0: no difference; 1: at least one; 2: no native engine, or bad input.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from rich.table import Table

from zerostride.compute import functions, native, reference, unary
from zerostride.errors import EngineVersionWarning

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
from .cases import DrawnCall, source
from .draw import calls
from .judge import BOUND, FAMILIES, judge
from .shrink import shrink


@dataclass(slots=True)
class NativeTally:
    """The results of the cases of one family of ops."""

    cases: int = 0
    refused: int = 0
    ulp: float = 0.0

    def add(self, other: NativeTally) -> None:
        """Counts another one's cases, too."""
        self.cases += other.cases
        self.refused += other.refused
        self.ulp = max(self.ulp, other.ulp)


Functions = Callable[[str], Callable[..., Any]]


def public(op: str) -> Callable[..., Any]:
    """The public function of an op."""
    function: Callable[..., Any] = getattr(functions, op, None) or getattr(unary, op)
    return function


def judge_all(
    cases: Iterator[tuple[int, DrawnCall]],
    function_of: Functions = public,
    seen: Callable[[int], None] = lambda case: None,
    until: float = float("inf"),
) -> Result[NativeTally]:
    """Judges cases one after the other, in this process.

    Args:
        cases: calls and their numbers.
        function_of: what is held against the reference.
        seen: is told the number of each case before it is run.
        until: the time (of `time.monotonic`) from which no case is begun.
    """
    result: Result[NativeTally] = Result(native.backend().removeprefix("native "))
    with counting(result, reference, "compute"), warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", EngineVersionWarning)  # of a release, not of a case
        for k, call in cases:
            if time.monotonic() > until:
                break
            seen(k)
            function = function_of(call.op)
            verdict = judge(call, function)
            ulp = verdict.ulp if not verdict.difference else 0
            result.count(FAMILIES[call.op], NativeTally(1, int(verdict.refused), ulp))
            if verdict.difference:
                result.differing += 1
                if len(result.differences) < SHOWN:
                    result.differences.append(_explained(k, call, function, verdict.difference))
    return result


def _explained(k: int, call: DrawnCall, function: Callable[..., Any], text: str) -> Difference:
    small = shrink(call, lambda simpler: bool(judge(simpler, function).difference))
    # A call that fails by chance (threads) may not fail again.
    text = judge(small, function).difference or f"{text} (the first time only)"
    return Difference(k, f"{call.op}: {text}", source(small))


def child(arguments: Sequence[str] | None = None) -> int:
    """Judges a range of cases; see `judging`."""
    return judging(
        lambda first, count, seed, seen, until: judge_all(
            calls(first, count, seed), seen=seen, until=until
        ),
        arguments,
    )


def run(options: SimpleNamespace) -> int:
    """The subcommand; returns the exit status."""
    return campaign(options, _run_isa, _print)


def _run_isa(isa: str, options: SimpleNamespace) -> Result[NativeTally]:
    total: Result[NativeTally] = Result(isa)
    run_parts(__name__, isa, options, lambda part: total.add(_result_of(part, options.seed)))
    return total


def _result_of(part: Part, seed: int) -> Result[NativeTally]:
    def told(case: int) -> tuple[str, str]:
        ((_, call),) = calls(case, 1, seed)
        return f"{call.op}: ", source(call)

    return result_of(part, NativeTally, told)


def _print(results: Sequence[Result[NativeTally]], seed: int) -> None:
    table = Table("instruction set", "ops", "cases", "refused by both", "worst ulp")
    for result in results:
        for family, tally in sorted(result.tallies.items()):
            worst = f"{tally.ulp:.3g}" if family == "functions" else "exact"
            table.add_row(result.isa, family, f"{tally.cases:,}", f"{tally.refused:,}", worst)
    print_wide(table)
    for result in results:
        print_differences(result, seed, f"bound {BOUND:g} ulp; ")


if __name__ == "__main__":
    sys.exit(child())
