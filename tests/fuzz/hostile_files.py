"""Shared parts of the fuzzers of model files: the place of a case, and its outcome."""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import harness

from zerostride import BroadcastError, ZerostrideError
from zerostride.engines import ENGINES
from zerostride.engines.model import Engine
from zerostride.models.audit.run import audit_graph
from zerostride.models.findings import Report
from zerostride.models.format_table import lowered
from zerostride.models.formats import read_model
from zerostride.models.ir.graph import Graph


@functools.cache
def scratch() -> Path:
    """This process's folder, in memory where the system has such a place."""
    shared = Path("/dev/shm")
    folder = shared if os.access(shared, os.W_OK) else None
    temporary = tempfile.TemporaryDirectory(dir=folder, prefix="zerostride-fuzz-")
    globals()["_keep"] = temporary  # its folder goes when the process does
    return Path(temporary.name)


def engine_of(number: int) -> Engine:
    """The engine that a case is audited for: one after the other."""
    return ENGINES[sorted(ENGINES)[number % len(ENGINES)]]


def audited(path: Path, number: int) -> tuple[Graph, str, str]:
    """The graph of a file, lowered and audited; how that ended, and the report's text."""
    graph = read_model(path)
    lowered(graph)
    report = audit_graph(graph, engine_of(number))
    report.to_json()
    return graph, outcome_of(report), str(report)


def audited_with_data(path: Path, number: int) -> tuple[str, str]:
    """Audits a file and reads its numbers; how that ended, and the report's text."""
    graph, outcome, text = audited(path, number)
    for constant in graph.values():
        if constant.source is not None:
            try:
                constant.data()
            except ZerostrideError as error:
                text += f"\n{error}"
                if "\n" in str(error):
                    return f"{harness.BAD} more than one line: {error}", text
    return outcome, text


def outcome_of(report: Report) -> str:
    """How an audit ended."""
    return "Report" + (" with findings" if report.findings else "")


def ended(named: Path, use: Callable[[], tuple[str, str]]) -> str:
    """How a case ended.

    Args:
        named: what an error has to name: the file, or its folder.
        use: reads the file; gives the outcome, and all that a terminal would be shown.
    """
    try:
        outcome, text = use()
    except ZerostrideError as error:
        outcome, text = type(error).__name__, str(error)
        if str(named) not in text or "\n" in text:
            return f"{harness.BAD} not one line naming the file: {text!r}"
    except BroadcastError as error:
        outcome, text = "BroadcastError", str(error)
    except BaseException as error:  # noqa: BLE001 - what slips through is what is looked for
        return harness.slipped(error)
    if not text.replace("\n", "").isprintable():
        bad = next(c for c in text if c != "\n" and not c.isprintable())
        return f"{harness.BAD} {bad!r} would reach the terminal"
    return outcome
