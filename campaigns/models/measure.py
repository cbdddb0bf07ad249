"""Models on every engine: audited, verified, ported, and verified again, file by file.

Two numbers have to be 0. A *wrong same* is a broadcast that the audit calls the same and of which
the engine gives other numbers, or none. A *wrong rewrite* is a node that the port touched and that
the engine, given the ported file, still computes otherwise; or a ported file that gives other
results than the model itself on the engine whose meaning it has.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import zerostride as zs
from zerostride.engines.table import ENGINES
from zerostride.errors import BadInput, EngineVersionWarning, ZerostrideError
from zerostride.models.findings import Check, Finding, Outcome, Report, Verdict
from zerostride.models.format_table import FORMATS
from zerostride.models.formats import format_of, read_model

#: What an engine says against a verdict of `same`.
AGAINST = frozenset({Outcome.DIFFERS, Outcome.REFUSED, Outcome.CRASHED})
#: For one answer: the products of a large network take more than a verification waits by itself.
SECONDS = 120.0
#: Engines that run whole files of a format, where no row of `FORMATS` names one.
_RUNS_FILES: Mapping[str, str] = {"onnx": "onnxruntime"}

Made = TypeVar("Made")


@dataclass
class Pair:
    """A model file and an engine.

    Attributes:
        file, format, target: which.
        nodes: of the file, those of bodies included.
        verdicts: findings by verdict.
        outcomes: checks of the model as it is, by outcome.
        rewrites: nodes that the port changed.
        left: findings that are not `same` after it.
        after: checks of the ported model, by outcome.
        whole: how the ported file's results compare with the model's own, on its own engine.
        wrong_same, wrong_rewrites: nodes, each with what the engine says.
        seconds: all of it.
        missing: what could not be done, with the reason, by step.
        faults: what ended with an exception that no user should see.
    """

    file: str
    format: str
    target: str
    nodes: int = 0
    verdicts: dict[str, int] = field(default_factory=dict)
    outcomes: dict[str, int] = field(default_factory=dict)
    rewrites: int = 0
    left: int = 0
    after: dict[str, int] = field(default_factory=dict)
    whole: str = ""
    wrong_same: list[str] = field(default_factory=list)
    wrong_rewrites: list[str] = field(default_factory=list)
    seconds: float = 0.0
    missing: dict[str, str] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)

    @property
    def broadcasts(self) -> int:
        """Nodes that may broadcast."""
        return sum(self.verdicts.values())

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.wrong_same or self.wrong_rewrites or self.faults)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "broadcasts": self.broadcasts, "ok": self.ok}


def targets() -> tuple[str, ...]:
    """The engines whose rows were measured by running them."""
    return tuple(name for name, row in ENGINES.items() if row.run)


def light_models() -> list[Path]:
    """The models without weights that come with the onnx package."""
    try:
        import onnx.backend.test
    except ImportError:
        raise BadInput("the onnx package is not installed; name models: --models FOLDER") from None
    folder = Path(onnx.backend.test.__file__).parent / "data" / "light"
    return sorted(folder.glob("*.onnx"))


def files_in(places: Iterable[str | Path]) -> list[Path]:
    """Model files: those that are named, and those in folders, at any depth."""
    suffixes = tuple(suffix for row in FORMATS.values() for suffix in row.suffixes)
    entries: list[Path] = []
    for place in map(Path, places):
        if place.is_dir():
            inside = (file for file in place.rglob("*") if file.name.lower().endswith(suffixes))
            entries += sorted(inside)
        elif place.is_file():
            entries.append(place)
        else:
            raise BadInput(f"{place}: no such file or folder")
    return list(dict.fromkeys(entries))


def measure(
    file: Path,
    engines: Sequence[str],
    *,
    pythons: Mapping[str, str] | None = None,
    batch_axis: int | None = None,
) -> Iterator[Pair]:
    """A model against each of the engines."""
    for target in engines:
        start = time.perf_counter()
        pair = Pair(str(file), format_of(file).name, target)
        with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
            # Which releases are installed is in the report.
            warnings.simplefilter("ignore", EngineVersionWarning)
            _Work(pair, file, Path(folder), dict(pythons or {}), batch_axis).all()
        pair.seconds = time.perf_counter() - start
        yield pair


@dataclass
class _Work:
    """The steps of a pair."""

    pair: Pair
    file: Path
    folder: Path
    pythons: dict[str, str]
    batch_axis: int | None

    def all(self) -> None:
        """Audit, verify, port, verify, compare."""
        graph = self._step("read", lambda: read_model(self.file))
        if graph is None:
            return
        self.pair.nodes = len(graph.nodes)
        verified = self._step("verify", lambda: self._verify(self.file))
        report = verified or self._step("audit", self._audit)
        if report is None:
            return
        self.pair.verdicts = _counted(finding.verdict for finding in report.findings)
        self.pair.left = sum(finding.verdict is not Verdict.SAME for finding in report.findings)
        if verified is not None:
            self.pair.outcomes = _counted(check.outcome for check in verified.checks)
            self.pair.wrong_same += wrong_same(verified.findings, verified.checks)
        if self.pair.left:
            self._port(verified is not None)

    def _port(self, verified: bool) -> None:
        goal = self.folder / self.file.name
        report = self._step("port", lambda: self._ported(goal))
        if report is None:
            return
        self.pair.rewrites = len(report.changes)
        self.pair.left = sum(finding.verdict is not Verdict.SAME for finding in report.findings)
        if not report.changes:
            return
        if verified:
            again = self._step("verify again", lambda: self._verify(goal))
            if again is not None:
                self.pair.after = _counted(check.outcome for check in again.checks)
                touched = {change.node for change in report.changes}
                self.pair.wrong_rewrites += wrong_rewrites(again.checks, touched)
                self.pair.wrong_same += [
                    f"ported: {words}" for words in wrong_same(again.findings, again.checks)
                ]
        self._compare(goal)

    def _compare(self, goal: Path) -> None:
        """The ported file against the model, whole, on the engine whose meaning it has."""
        row = format_of(self.file)
        engine = row.engine or _RUNS_FILES.get(row.name)
        if engine is None:
            self.pair.missing["whole"] = f"nothing here runs whole files of {row.name}"
            return
        report = self._step("whole", lambda: self._whole(engine, goal))
        if report is None:
            return
        self.pair.whole = " ".join(sorted({check.outcome for check in report.checks}))
        details = "; ".join(check.detail for check in report.checks if check.outcome in AGAINST)
        if not details:
            return
        # An engine may refuse the model itself, or compute it so that it differs everywhere.
        own = self._step("whole", lambda: self._whole(engine, self.file))
        if own is not None and all(check.outcome is Outcome.AGREES for check in own.checks):
            self.pair.wrong_rewrites.append(f"the whole file on {engine}: {details}")
        elif own is not None:
            self.pair.whole += " as the model"

    def _step(self, name: str, do: Callable[[], Made]) -> Made | None:
        """The result of a step, or None with a noted reason."""
        try:
            return do()
        except ZerostrideError as error:
            self.pair.missing[name] = _line(error)
        except ImportError as error:
            self.pair.missing[name] = f"not installed: {_line(error)}"
        except Exception as error:  # noqa: BLE001 - counted and shown: none should come this far
            self.pair.faults[name] = f"{type(error).__name__}: {_line(error)}"
        return None

    def _audit(self) -> Report:
        return zs.audit(self.file, self.pair.target, via=self._way(), batch_axis=self.batch_axis)

    def _way(self) -> str | None:
        """Op for op for ncnn, as `verify` runs it there."""
        return "none" if self.pair.target == "ncnn" else None

    def _verify(self, file: Path) -> Report:
        return zs.verify(
            file,
            self.pair.target,
            timeout=SECONDS,
            batch_axis=self.batch_axis,
            pythons=self.pythons,
        )

    def _whole(self, engine: str, file: Path) -> Report:
        return zs.verify(
            self.file, engine, against=file, batch_axis=self.batch_axis, pythons=self.pythons
        )

    def _ported(self, goal: Path) -> Report:
        return zs.port(
            self.file, self.pair.target, goal, via=self._way(), batch_axis=self.batch_axis
        )


def wrong_same(findings: Sequence[Finding], checks: Sequence[Check]) -> list[str]:
    """Nodes that are called the same, and are not."""
    return [
        f"{finding.node} ({finding.op}): {check.outcome} {check.detail}".rstrip()
        for finding, check in zip(findings, checks, strict=True)
        if finding.verdict is Verdict.SAME and check.outcome in AGAINST
    ]


def wrong_rewrites(checks: Sequence[Check], touched: set[str]) -> list[str]:
    """Nodes that a port touched, and that are still other than they should be."""
    return [
        f"{check.node} ({check.op}): {check.outcome} {check.detail}".rstrip()
        for check in checks
        if check.node in touched and check.outcome in AGAINST
    ]


def _counted(words: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(map(str, words)).items()))


def _line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
