"""``python -m campaigns port``: random graphs ported to every engine with limits.

Of each graph is asked: does the port say of everything that is left why it is; does the result
compute what the model computed, bit for bit with NumPy and where ONNX Runtime is installed there
too; does a port of the result change nothing.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from zerostride.engines.table import ENGINES
from zerostride.errors import BroadcastError, EngineVersionWarning, ZerostrideError

from ..seeded import progress

if TYPE_CHECKING:
    from zerostride.models.findings import Report

Arrays = Mapping[str, "np.ndarray[Any, Any]"]
#: Columns of text where there is no terminal to ask.
_WIDE = 140
#: What ONNX Runtime's kernels may differ by where operands are laid out otherwise, by element type.
_TOLERANCE: Mapping[str, float] = {"float16": 2e-2, "float32": 1e-5, "float64": 1e-12}
#: It computes float16 in float32 and rounds where kinds of nodes meet, so a Reshape between two
#: nodes is a rounding more, and what cancels differs at random; of misplaced numbers most differ.
_CANCELLED = 0.1
#: Failures that are told in full.
_MOST_TOLD = 20


@dataclass
class PortTally:
    """The results of porting many graphs to one engine.

    Attributes:
        target: the engine.
        graphs: how many were ported.
        findings: broadcasts that did not mean the same before.
        rewrites: nodes that were rewritten, by the name of the pass.
        left: what is left, by the finding's reason and why it was not ported.
        wrong: what went wrong: another result, a second change, a failed check.
        seconds: what porting took.
    """

    target: str
    graphs: int = 0
    findings: int = 0
    rewrites: Counter[str] = field(default_factory=Counter)
    left: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "target": self.target,
            "graphs": self.graphs,
            "findings": self.findings,
            "rewrites": dict(self.rewrites),
            "left": {f"{reason}: {why}": count for (reason, why), count in self.left.items()},
            "wrong": self.wrong,
            "seconds": round(self.seconds, 3),
        }


def run(graphs: int, seed: int, targets: Sequence[str], first: int, as_json: bool) -> int:
    """Measures and prints; 0 where nothing is wrong, 1 otherwise, 2 for bad input."""
    try:
        from .port_graphs import random_model
    except ImportError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    unknown = set(targets) - set(ENGINES)
    if unknown:
        print(f"error: no such engine: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    tallies = {name: PortTally(name) for name in (targets or ENGINES)}
    with progress("graphs", graphs, as_json) as advance, warnings.catch_warnings():
        warnings.simplefilter("ignore", EngineVersionWarning)
        for turn in range(first, first + graphs):
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder, "model.onnx")
                file.write_bytes(random_model(seed, turn).SerializeToString())
                _port_all(file, turn, tallies.values())
            advance()
    if as_json:
        print(json.dumps([tally.as_dict() for tally in tallies.values()], indent=1))
    else:
        _print(list(tallies.values()))
    return 1 if any(tally.wrong for tally in tallies.values()) else 0


def _port_all(file: Path, turn: int, tallies: Sequence[PortTally] | Any) -> None:
    inputs = _inputs(file, turn)
    before, runtime = _executed(file, inputs), _run(file, inputs)
    for tally in tallies:
        name = f"graph {turn} on {tally.target}"
        path = file.with_name("ported.onnx")
        path.unlink(missing_ok=True)
        try:
            _port_one(file, path, tally)
            if not path.exists():
                continue
            told = _differs(before, _executed(path, inputs), exact=True)
            if not told:
                half = any(array.dtype == np.float16 for array in inputs.values())
                told = _differs(runtime, _run(path, inputs), exact=False, half=half)
                told = told and f"ONNX Runtime: {told}"
            if told:
                tally.wrong.append(f"{name}: {told}")
        except (ZerostrideError, BroadcastError) as error:
            tally.wrong.append(f"{name}: {error}")
        except Exception as error:  # noqa: BLE001 - a campaign tells every fault, and goes on
            tally.wrong.append(f"{name}: {type(error).__name__}: {error}")


def _port_one(file: Path, path: Path, tally: PortTally) -> None:
    """Ports once and once more; the second time must change nothing."""
    from zerostride.models.port import port

    start = time.perf_counter()
    via = "none" if tally.target == "ncnn" else None  # pnnx leaves little to rewrite
    report = port(file, tally.target, path, via=via)
    tally.seconds += time.perf_counter() - start
    tally.graphs += 1
    tally.findings += sum(finding.verdict != "same" for finding in report.before)
    tally.rewrites.update(change.by for change in report.changes)
    _count_left(report, tally)
    if report.changes:
        again = port(path, tally.target, path.with_name("again.onnx"), via=via)
        if again.changes:
            tally.wrong.append(f"{file.name}: a second port changes {again.changes[0].words}")


def _count_left(report: Report, tally: PortTally) -> None:
    for finding in report.findings:
        if finding.verdict == "same":
            continue
        why = [note for note in finding.notes if note.startswith("not ported: ")]
        if not why:
            tally.wrong.append(f"{finding.node}: left without a reason: {finding.message}")
        tally.left[finding.reason, why[-1].removeprefix("not ported: ") if why else ""] += 1


def _inputs(file: Path, turn: int) -> Arrays:
    """Numbers for a model's inputs."""
    from zerostride.models.formats import read_model

    rng = np.random.default_rng(turn)
    table = {}
    for value in read_model(file).inputs:
        shape = tuple(size for size in value.shape or () if isinstance(size, int))
        kind = np.dtype(value.dtype or "float32")
        if kind.kind == "f":
            table[value.name] = np.asarray(rng.standard_normal(shape)).astype(kind)
        else:
            table[value.name] = np.asarray(rng.integers(0, 2 if kind.kind == "b" else 7, shape))
            table[value.name] = table[value.name].astype(kind)
    return table


def _executed(file: Path, inputs: Arrays) -> Arrays:
    """The model's results by the rules of its file."""
    from zerostride.models.execute import execute
    from zerostride.models.formats import read_model

    with np.errstate(all="ignore"):
        return execute(read_model(file), inputs)


def _run(file: Path, inputs: Arrays) -> Arrays | None:
    """ONNX Runtime's results; None if it is not installed or refuses the model."""
    try:
        import onnxruntime
    except ImportError:
        return None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    # Its own rewrites are not what is looked at.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(str(file), options, ["CPUExecutionProvider"])
        names = [entry.name for entry in session.get_outputs()]
        taken = {entry.name for entry in session.get_inputs()}
        fed = {name: array for name, array in inputs.items() if name in taken}
        return dict(zip(names, session.run(names, fed), strict=True))
    except Exception:  # noqa: BLE001 - its errors have no common class
        return None


def _differs(
    before: Arrays | None, after: Arrays | None, *, exact: bool, half: bool = False
) -> str:
    """The difference, or ""; `half`: the compared numbers come from float16."""
    if before is None:
        return ""
    if after is None:
        return "ONNX Runtime took the model and does not take the result"
    if list(before) != list(after):
        return f"outputs {list(before)} became {list(after)}"
    for name, a in before.items():
        b = after[name]
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{name}: {a.dtype}{a.shape} became {b.dtype}{b.shape}"
        same = np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        if not same and not (not exact and _near(a, b, half=half)):
            return f"{name}: other numbers"
    return ""


def _near(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any], *, half: bool) -> bool:
    half = half or a.dtype == np.float16
    if a.dtype.kind == "f":
        near = _TOLERANCE.get(str(a.dtype), 0.0)
        differs = ~np.isclose(a, b, near, near, equal_nan=True)
    elif a.dtype.kind == "b" and half:
        differs = a != b  # a comparison of numbers that differ in their last place
    else:
        return False
    most = max(1, int(_CANCELLED * a.size)) if half else 0
    return bool(differs.sum() <= most)


def _print(tallies: Sequence[PortTally]) -> None:
    console = Console()
    console = console if console.is_terminal else Console(width=_WIDE)
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("target")
    for heading in ("graphs", "findings", "rewrites", "left", "wrong", "s"):
        table.add_column(heading, justify="right")
    table.add_column("by pass")
    for tally in tallies:
        by = ", ".join(f"{name} {count:,}" for name, count in tally.rewrites.most_common())
        table.add_row(
            tally.target,
            f"{tally.graphs:,}",
            f"{tally.findings:,}",
            f"{tally.rewrites.total():,}",
            f"{tally.left.total():,}",
            f"{len(tally.wrong):,}",
            f"{tally.seconds:.1f}",
            by,
        )
    console.print(table)
    for tally in tallies:
        for (reason, why), count in tally.left.most_common():
            console.print(f"left on {tally.target}: {count:,} {reason}: {why}", soft_wrap=True)
    for tally in tallies:
        for told in tally.wrong[:_MOST_TOLD]:
            console.print(f"wrong: {told}", soft_wrap=True, markup=False)
    wrong = sum(len(tally.wrong) for tally in tallies)
    rewrites = sum(tally.rewrites.total() for tally in tallies)
    graphs = sum(tally.graphs for tally in tallies)
    console.print(f"{graphs:,} ports, {rewrites:,} rewrites: {wrong:,} wrong", highlight=False)


__all__ = ["PortTally", "run"]
