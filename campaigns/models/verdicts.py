"""``python -m campaigns verdicts``: verdicts on random nodes compared with the engines.

A *contradiction* is a verdict that the engine's own answer denies: what is called the same and
differs, is refused or kills the engine; what is called different or refused and agrees. Either the
verdict is wrong (a row of the engine table) or the way in which the engine was asked. What means
something else may give the same numbers by chance, so it is asked again with other numbers.
"""

from __future__ import annotations

import json
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import zerostride as zs
from zerostride.errors import BroadcastError, EngineVersionWarning, ZerostrideError
from zerostride.models.findings import Check, Finding, Outcome, Report, Verdict
from zerostride.models.reasons import Cause

from ..seeded import progress
from .measure import AGAINST, targets

#: Nodes of one file, for which an engine is loaded once.
NODES = 200
#: Random operands that a surprising agreement is tried on.
_CASES = 12
#: Why something different may give the right numbers whatever they are: what is read beyond an
#: operand's end is often a copy of it, and small numbers do not reach the ends of their type.
_BY_LUCK = frozenset({Cause.SILENT, Cause.OTHER_VALUES})


def way(engine: str) -> str | None:
    """Op for op where the usual way is a converter, whose own campaign is `front-doors`."""
    return "none" if engine in ("ncnn", "mnn") else None


@dataclass
class VerdictTally:
    """The results of the nodes of one format on one engine.

    Attributes:
        format, engine: which.
        release: the engine's.
        counts: nodes by verdict and outcome.
        not_run: why nodes were not run, by reason.
        contradictions: each with its file's number and node.
        missing: why nothing was run.
    """

    format: str
    engine: str
    release: str = ""
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    not_run: Counter[str] = field(default_factory=Counter)
    contradictions: list[str] = field(default_factory=list)
    missing: str = ""

    def add(self, file: Path, report: Report, number: int) -> None:
        """Counts the nodes of a report."""
        self.release = report.release
        for finding, check in zip(report.findings, report.checks, strict=True):
            self.counts[str(finding.verdict), str(check.outcome)] += 1
            if check.outcome is Outcome.NOT_RUN:
                self.not_run[check.detail] += 1
            if denied(finding, check) and not self._by_chance(file, finding):
                self.contradictions.append(f"file {number}: {_words(finding, check)}")

    def _by_chance(self, file: Path, finding: Finding) -> bool:
        """Whether an agreement that was not expected is none with other numbers."""
        if finding.verdict not in (Verdict.DIFFERENT, Verdict.REFUSED):
            return False
        how: dict[str, Any] = {
            "node": finding.node,
            "cases": _CASES,
            "seed": 1,
            "via": way(self.engine),
        }
        again = zs.verify(file, self.engine, **how)
        return not any(map(denied, again.findings, again.checks))

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "format": self.format,
            "engine": self.engine,
            "release": self.release,
            "counts": {f"{a}, {b}": n for (a, b), n in sorted(self.counts.items())},
            "not_run": dict(self.not_run.most_common()),
            "contradictions": self.contradictions,
            "missing": self.missing,
        }


def denied(finding: Finding, check: Check) -> bool:
    """Whether an engine's answer contradicts a verdict."""
    if finding.verdict in (Verdict.SAME, Verdict.SAME_HERE):
        return check.outcome in AGAINST
    if finding.verdict is Verdict.REFUSED:
        return check.outcome is Outcome.AGREES
    different = finding.verdict is Verdict.DIFFERENT and finding.reason not in _BY_LUCK
    return different and check.outcome is Outcome.AGREES


def _words(finding: Finding, check: Check) -> str:
    shapes = " ".join(str(shape) for _, shape in finding.operands)
    return (
        f"{finding.node} {finding.op} {shapes}: {finding.verdict} ({finding.message}), and "
        f"{check.outcome} {check.detail}".rstrip()
    )


def measure(
    format_name: str, engines: Sequence[str], nodes: int, seed: int, pythons: Mapping[str, str]
) -> Iterator[tuple[int, VerdictTally]]:
    """The tallies of a format, each after each file."""
    from .random_files import FORMATS

    tallies = [VerdictTally(format_name, engine) for engine in engines]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", EngineVersionWarning)
        for number in range(-(-nodes // NODES)):
            rng = np.random.default_rng([seed, number])
            count = min(NODES, nodes - number * NODES)
            file = FORMATS[format_name](Path(folder), rng, count)
            for tally in tallies:
                if not tally.missing:
                    try:
                        how: dict[str, Any] = {"pythons": dict(pythons), "via": way(tally.engine)}
                        report = zs.verify(file, tally.engine, cache=False, **how)
                        tally.add(file, report, number)
                    except ZerostrideError as error:
                        tally.missing = str(error)
                yield count, tally


def run(
    formats: Sequence[str],
    engines: Sequence[str],
    nodes: int,
    seed: int,
    pythons: Mapping[str, str],
    as_json: bool,
) -> int:
    """Measures and prints; 0 where nothing is contradicted, 1 otherwise, 2 for bad input."""
    try:
        from .random_files import FORMATS

        unknown = sorted({*formats} - {*FORMATS})
        for name in engines:
            zs.plan((1,), (1,), engine=name)
    except (ImportError, BroadcastError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if unknown:
        print(f"error: no such format: {', '.join(unknown)}", file=sys.stderr)
        return 2
    chosen, asked = tuple(formats or FORMATS), tuple(engines or targets())
    table: dict[tuple[str, str], VerdictTally] = {}
    with progress("nodes", nodes * len(chosen) * len(asked), as_json) as advance:
        for name in chosen:
            for count, tally in measure(name, asked, nodes, seed, pythons):
                table[name, tally.engine] = tally
                advance(count)
    if as_json:
        print(json.dumps([tally.as_dict() for tally in table.values()], indent=1))
    else:
        _print(table.values())
    if all(tally.missing for tally in table.values()):
        return 2
    return 1 if any(tally.contradictions for tally in table.values()) else 0


def _print(tallies: Any) -> None:
    for tally in tallies:
        if tally.missing:
            print(f"{tally.format} on {tally.engine}: {tally.missing}")
            continue
        total = sum(tally.counts.values())
        counts = ", ".join(f"{a}/{b} {n}" for (a, b), n in sorted(tally.counts.items()))
        print(
            f"{tally.format} on {tally.engine} {tally.release}: {total} nodes, "
            f"{len(tally.contradictions)} contradictions ({counts})"
        )
        for words in tally.contradictions:
            print(f"  CONTRADICTION {words}")
    contradictions = sum(len(tally.contradictions) for tally in tallies)
    judged = sum(tally.counts.total() for tally in tallies)
    print(f"{judged:,} verdicts: {contradictions} contradictions")
