"""Compares arrays of other libraries with the reference: ``python -m campaigns arrays``.

Seeded calls with each library's arrays (`draw`), under each rule, are to give what the
reference gives for NumPy's: values, dtype and shape, as an array of the library where the operands
lie (`judge`). xarray's are held against its own arithmetic (`xarray_arithmetic`).

Exit status 0: no difference; 1: at least one; 2: bad input, or nothing installed.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
from rich.table import Table

from zerostride.errors import BadInput

from ..seeded import SHOWN, conclude, print_wide
from . import draw as arrays_draw
from . import judge as arrays_judge
from . import xarray_arithmetic as arrays_xarray
from .libraries import Library, installed

RULES = (*arrays_draw.ELEMENTWISE, *arrays_draw.TO_TARGET)


@dataclass(slots=True)
class ArrayTally:
    """The results of the cases of one library under one rule.

    Attributes:
        library: its name.
        rule: the rule's.
        cases: how many were judged.
        refused: of these, what the reference refuses, too.
        lacking: what the library lacks, as the refusal says.
        differing: what is not as it should be.
        shown: the first of these: the case's number and what differs.
    """

    library: str
    rule: str
    cases: int = 0
    refused: int = 0
    lacking: int = 0
    differing: int = 0
    shown: list[tuple[int, str]] = field(default_factory=list)

    def count(self, k: int, difference: str, refused: bool, lacking: bool) -> None:
        """Takes a verdict in."""
        self.cases += 1
        self.refused += refused
        self.lacking += lacking
        self.differing += bool(difference)
        if difference and len(self.shown) < SHOWN:
            self.shown.append((k, difference))


def tallied(
    library: Library, rule: str, first: int, count: int, seed: int, until: float = float("inf")
) -> ArrayTally:
    """Judges the cases of a library under a rule."""
    tally = ArrayTally(library.name, rule)
    numbered = arrays_draw.cases(rule, library.dtypes, first, count, seed, writes=library.writes)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # other libraries'; ours are errors in the tests
        for k, case in numbered:
            if time.monotonic() > until:
                break
            verdict = arrays_judge.judged(case, library)
            text = f"{case.kind} {case.call.op}: {verdict.difference}" if verdict.difference else ""
            tally.count(k, text, verdict.refused, verdict.lacking)
    return tally


def tallied_names(first: int, count: int, seed: int, until: float = float("inf")) -> ArrayTally:
    """The same for xarray, whose dimensions' names are the rule."""
    tally = ArrayTally("xarray", "names")
    for k, case in arrays_xarray.cases(first, count, seed):
        if time.monotonic() > until:
            break
        difference, refused = arrays_xarray.judged(case)
        tally.count(k, f"{case.name}: {difference}" if difference else "", refused, False)
    return tally


def run(options: SimpleNamespace) -> int:
    """The subcommand; returns the exit status."""
    return conclude(options, lambda: _tallies(options), _print)


def _tallies(options: SimpleNamespace) -> Iterator[ArrayTally]:
    rules = options.rule or RULES
    for rule in rules:
        if rule not in RULES:
            raise BadInput(f"there is no rule {rule!r} to draw; there are {', '.join(RULES)}")
    names = tuple(name for name in options.library or () if name != "xarray")
    until = time.monotonic() + options.seconds
    numbers = (options.first, options.cases, options.seed, until)
    if names or not options.library:
        for library in installed(names):
            for rule in rules:
                yield tallied(library, rule, *numbers)
    if "xarray" in (options.library or ("xarray",)):
        try:
            import xarray  # noqa: F401
        except ImportError as error:
            if options.library:
                raise BadInput(f"xarray is not installed: {error}") from error
            return
        yield tallied_names(*numbers)


def _print(tallies: Sequence[ArrayTally], seed: int) -> None:
    table = Table("library", "rule", "cases", "refused by both", "lacking", "different")
    for tally in tallies:
        numbers = (tally.cases, tally.refused, tally.lacking, tally.differing)
        table.add_row(tally.library, tally.rule, *(f"{number:,}" for number in numbers))
    print_wide(table)
    for tally in tallies:
        for k, text in tally.shown:
            print(f"\n# {tally.library}, rule {tally.rule}, seed {seed}, case {k}\n{text}")
    total = sum(tally.cases for tally in tallies)
    print(f"{sum(tally.differing for tally in tallies):,} differences in {total:,} cases")
