"""Plans and numbers against the engines."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import zerostride as zs
from zerostride.attention.rows import ROWS
from zerostride.attention.rules import AttentionRule, EmptyRow
from zerostride.errors import BadInput

from .draw import Call, draw
from .runners import RUNNERS

#: Differing calls that are printed.
_SHOWN = 10


@dataclass(slots=True)
class Tally:
    """The results of an op: `agree` computed and refused alike; `wrong`, with the calls."""

    rule: AttentionRule
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def judge(rule: AttentionRule, cases: int, first: int, seed: int) -> Tally:
    """Calls of an op on its engine."""
    tally = Tally(rule)
    for number in range(first, first + cases):
        call = draw(rule, number, seed)
        verdict, detail = judged(rule, call)
        tally.counts[verdict] += 1
        if verdict == "wrong":
            how = f"{call.arguments} {call.parts} {sorted(call.beside)}"
            tally.wrong.append(f"case {number}: {call.shapes()} {how}: {detail}")
    return tally


def judged(rule: AttentionRule, call: Call) -> tuple[str, str]:
    """computed, refused, nonsense (it does not say so), unsafe (not run), or wrong; and why."""
    try:
        plan = call.plan()
    except zs.BroadcastError as error:
        if (error.silent and rule.unchecked) or error.reason is zs.Reason.CRASH:
            return "unsafe", ""  # it reads or writes other memory
        return _refused(rule, call, error)
    meant = call.compute(plan)
    try:
        result = RUNNERS[rule.engine](call)
    except Exception as error:  # noqa: BLE001 - whatever an engine raises
        return "wrong", f"refused: {str(error)[:200]}"
    if EmptyRow.UNUSED in dict(plan.empty).values() and meant.shape == result.shape:
        meant, result = (np.where(call.without_key(plan), 0, each) for each in (meant, result))
    return ("computed", "") if alike(meant, result) else ("wrong", _beside(meant, result))


def _refused(rule: AttentionRule, call: Call, error: zs.BroadcastError) -> tuple[str, str]:
    try:
        result = RUNNERS[rule.engine](call)
    except Exception:  # noqa: BLE001 - whatever an engine raises
        return ("wrong", "refused aloud") if error.silent else ("refused", "")
    if not error.silent:
        return "wrong", f"computed {result.shape}, against: {error.detail}"
    return "nonsense", ""


def alike(meant: NDArray[Any], result: NDArray[Any]) -> bool:
    """Whether numbers are the same up to rounding; NaN and NaN are."""
    if meant.shape != result.shape:
        return False
    return bool(np.allclose(meant, result, rtol=2e-3, atol=2e-3, equal_nan=True))


def _beside(meant: NDArray[Any], result: NDArray[Any]) -> str:
    if meant.shape != result.shape:
        return f"shape {result.shape}, against {meant.shape}"
    bad = np.argwhere(~np.isclose(meant, result, rtol=2e-3, atol=2e-3, equal_nan=True))[0]
    where = tuple(map(int, bad))
    return f"result{list(where)} is {result[where]}, against {meant[where]}"


def rules(engines: Sequence[str]) -> Iterator[AttentionRule]:
    """The rows of engines that are run."""
    for engine in engines or RUNNERS:
        if engine not in RUNNERS:
            raise BadInput(f"no attention is run on {engine!r}: one of {', '.join(RUNNERS)}")
        yield from ROWS[engine]


def run(engines: Sequence[str], cases: int, first: int, seed: int, as_json: bool) -> int:
    """Judges every op; prints a table. Exit status 1 if one call is wrong."""
    warnings.filterwarnings("ignore", module="torch")
    tallies = [judge(rule, cases, first, seed) for rule in rules(engines)]
    if as_json:
        rows = [
            {"op": t.rule.name, "source": t.rule.source, **t.counts, "calls": t.wrong}
            for t in tallies
        ]
        click.echo(json.dumps(rows, indent=2))
    else:
        _print(tallies)
    return int(any(tally.wrong for tally in tallies))


def _print(tallies: Sequence[Tally]) -> None:
    kinds = ("computed", "refused", "nonsense", "unsafe", "wrong")
    table = Table("op", *kinds, box=None)
    for tally in tallies:
        table.add_row(tally.rule.name, *(str(tally.counts[kind]) for kind in kinds))
    console = Console(soft_wrap=True)
    console.print(table)
    for tally in tallies:
        for line in tally.wrong[:_SHOWN]:
            console.print(f"{tally.rule.name} {line}", markup=False)
    count = sum(tally.counts.total() for tally in tallies)
    console.print(f"all: {count:,} calls, {sum(tally.counts['wrong'] for tally in tallies)} wrong")
