"""The table of a campaign over real models, on screen and as a page of the documentation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from .measure import Measured, Target

PAGE = Path(__file__).resolve().parents[2] / "docs" / "real_models.md"
_VERDICTS = ("same", "same_here", "different", "refused", "unknown")
_PACKAGES = ("onnxruntime", "openvino", "ncnn", "pnnx", "MNN", "ai-edge-litert", "torch", "numpy")


#: Audits of fewer seconds count as this long in a ratio: the clock and the disk decide below it.
_LEAST = 0.05


@dataclass
class Totals:
    """Sums over all files, of one target or of all.

    Attributes:
        files: how many files were audited.
        counts: findings by verdict.
        rewrites: nodes that ports changed.
        checks: nodes that the engine was asked about.
        contradictions: nodes of which the audit and the engine say opposite things.
        unstable: questions that got more than one answer.
        audit, port: the longest, in seconds.
        ratio: the largest port for its file's longest audit. Later audits of a process reuse
            results of the first.
    """

    files: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    rewrites: int = 0
    checks: int = 0
    contradictions: int = 0
    unstable: int = 0
    audit: float = 0.0
    port: float = 0.0
    ratio: float = 0.0

    @property
    def findings(self) -> int:
        """Number of findings."""
        return sum(self.counts.values())

    @property
    def ok(self) -> bool:
        """Whether each question has one answer, and no engine contradicts it."""
        return not self.contradictions and not self.unstable

    def add(self, target: Target, longest: float) -> None:
        """Counts what was measured of one file and one target; `longest`: the file's audit."""
        self.files += 1
        self.counts.update(target.counts)
        self.rewrites += target.rewrites
        self.checks += sum(n for outcome, n in target.outcomes.items() if outcome != "not_run")
        self.contradictions += len(target.contradictions)
        self.unstable += target.answers > 1
        self.audit = max(self.audit, target.audit)
        self.port = max(self.port, target.port)
        self.ratio = max(self.ratio, target.port / max(longest, _LEAST))


def totals(results: Sequence[Measured], name: str | None = None) -> Totals:
    """The sums of one target, or of all."""
    total = Totals()
    for measured in results:
        longest = max((target.audit for target in measured.targets.values()), default=0.0)
        for target_name, target in measured.targets.items():
            if name in (None, target_name):
                total.add(target, longest)
    return total


def _by_target(results: Sequence[Measured]) -> Iterator[tuple[str, ...]]:
    names = dict.fromkeys(name for measured in results for name in measured.targets)
    for name in names:
        total = totals(results, name)
        unknown = 100 * total.counts["unknown"] / max(1, total.findings)
        yield (
            name,
            str(total.files),
            *(str(total.counts[verdict]) for verdict in _VERDICTS),
            f"{unknown:.1f} %",
            str(total.rewrites),
            str(total.checks),
            str(total.contradictions),
            str(total.unstable),
            f"{total.audit:.1f}",
            f"{total.port:.1f}",
            f"{total.ratio:.1f}",
        )


_BY_TARGET = (
    *("target", "files", *_VERDICTS, "unknown share", "rewrites", "run on the engine"),
    *("contradictions", "unstable", "longest audit, s", "longest port, s", "port / audit"),
)
_BY_FILE = (
    "file",
    "made by",
    "findings",
    "unknown",
    "audit, s",
    "port, s",
    "port / audit",
    "whole model",
)


def _by_file(results: Sequence[Measured]) -> Iterator[tuple[str, ...]]:
    for measured in results:
        total = totals([measured])
        missing = "; ".join(measured.missing.values())
        yield (
            measured.file,
            measured.converter,
            str(total.findings),
            str(total.counts["unknown"]),
            f"{total.audit:.1f}",
            f"{total.port:.1f}",
            f"{total.ratio:.1f}",
            (measured.whole or missing)[:120],
        )


def print_table(console: Console, results: Sequence[Measured]) -> None:
    """Prints the sums by target and by file, then every fault in a line."""
    for headings, rows in ((_BY_TARGET, _by_target(results)), (_BY_FILE, _by_file(results))):
        table = Table(box=box.SIMPLE_HEAD)
        for place, heading in enumerate(headings):
            table.add_column(heading, justify="left" if place == 0 else "right", overflow="fold")
        for row in rows:
            table.add_row(*row)
        console.print(table)
    for line in _faults(results):
        console.print(line, markup=False, soft_wrap=True)
    reasons: Counter[str] = Counter()
    for measured in results:
        for target in measured.targets.values():
            reasons.update(target.unknown)
    for reason, count in reasons.most_common(20):
        console.print(f"{count} unknown: {reason}", markup=False, soft_wrap=True)


def _faults(results: Sequence[Measured]) -> Iterator[str]:
    for measured in results:
        yield from (f"{measured.file}: {step}: {why}" for step, why in measured.missing.items())
        for name, target in measured.targets.items():
            if target.answers > 1:
                yield f"{measured.file} to {name}: {target.answers} answers to one question"
            yield from (f"{measured.file} to {name}: {note}" for note in target.contradictions)
            for step, why in target.missing.items():
                yield f"{measured.file} to {name}: {step}: {why}"


def write_page(results: Sequence[Measured]) -> None:
    """Writes `docs/real_models.md`."""
    total = totals(results)
    fetched = sum(not measured.converter for measured in results)
    lines = [
        "# Real models",
        "",
        "Generated by `python -m campaigns real-models --write`; do not edit by hand.",
        "",
        f"{fetched} model files out of public packages, and {len(results) - fetched} files that "
        "OpenVINO, pnnx and mnnconvert made of them, were audited for every target with no sizes "
        "given. Each audit ran in three processes with other hash seeds and another order of "
        "targets, and twice in one of them. Engines that are installed ran every broadcast.",
        "",
        f"In all: {total.findings} findings, {total.counts['unknown']} unknown, {total.checks} "
        f"checks on real engines, {total.contradictions} contradictions between audit and engine, "
        f"{total.unstable} questions with more than one answer.",
        "",
        'Times are CPU seconds beyond loading. "port / audit" is the largest port for the '
        f"longest audit of its file; an audit below {_LEAST} s counts as that.",
        "",
        f"Measured with {', '.join(_installed())}.",
        "",
        "## By target",
        "",
        *_markdown(_BY_TARGET, _by_target(results)),
        "",
        "## By file",
        "",
        *_markdown(_BY_FILE, _by_file(results)),
        "",
    ]
    PAGE.write_text("\n".join(lines))


def _installed() -> Iterator[str]:
    for package in _PACKAGES:
        try:
            yield f"{package} {version(package)}"
        except PackageNotFoundError:
            continue


def _markdown(headings: Sequence[str], rows: Iterator[tuple[str, ...]]) -> list[str]:
    lines = [f"| {' | '.join(headings)} |", f"|{'---|' * len(headings)}"]
    for row in rows:
        cells = [cell.replace("|", "\\|").replace("\n", " ") for cell in row]
        lines.append(f"| {' | '.join(cells)} |")
    return lines
