"""`zerostride convert` as a user types it, on one file and engine: its end, time and memory."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: The engines, in the order of the page's columns.
ENGINES = ("openvino", "mnn", "ncnn", "litert")
_SECONDS = 600
#: Runs a command, and says its memory at most in KiB on the last line of the error output.
_MEASURED = """
import resource, subprocess, sys
status = subprocess.call(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
sys.exit(status)
"""


@dataclass(frozen=True, slots=True)
class Conversion:
    """How one conversion ended.

    Attributes:
        model, engine: what was converted, and to what.
        status: the exit status; 0: converted and proven.
        end: "proven", "differs", "refused" or "left".
        reason: why it is not proven, in a line.
        others: how the outputs differ on other inputs, if they do; None: not tried.
        how: what was done to the model, if anything.
        seconds, mebibytes: time, and memory at most of the largest process.
    """

    model: str
    engine: str
    status: int
    end: str
    reason: str
    how: str
    seconds: float
    mebibytes: int
    others: str | None = None


def conversion(model: Path, engine: str, seed: int = 0) -> Conversion:
    """Converts a file with no option but the engine, in a process of its own."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        words = ["convert", str(model), "--to", engine, "-o", folder, "--json"]
        command = [sys.executable, "-m", "zerostride", *words, "--seed", str(seed)]
        try:
            done = subprocess.run(
                [sys.executable, "-c", _MEASURED, *command],
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Conversion(model.name, engine, 124, "refused", "too long", "", _SECONDS, 0)
        seconds = time.monotonic() - began
        others = _others(model, engine, done.stdout) if done.returncode == 0 else None
    errors = done.stderr.strip().splitlines()
    memory = int(errors[-1]) // 1024 if errors and errors[-1].isdigit() else 0
    end, reason, how = _end(done.stdout, done.returncode)
    return Conversion(
        model.name, engine, done.returncode, end, reason, how, round(seconds, 1), memory, others
    )


def _others(model: Path, engine: str, report: str) -> str:
    """How a proven file differs on other inputs; "" if it does not."""
    file = json.loads(report)["output"]
    words = [sys.executable, "-m", "campaigns.architectures.others", str(model), engine, file]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["no answer"])[-1][:200]
    return str(json.loads(done.stdout))


def _end(text: str, status: int) -> tuple[str, str, str]:
    try:
        report: Mapping[str, Any] = json.loads(text)
    except ValueError:
        return "refused", "no answer", ""
    notes = report.get("notes", ())
    how = next((note for note in notes if ": converted with fixed sizes" in note), "")
    if status == 0:
        return "proven", "", how
    if "checks" not in report:
        return "refused", str(report.get("detail", ""))[:200], how
    for outcome in ("crashed", "refused", "differs"):
        for check in report["checks"]:
            if check["outcome"] == outcome:
                where = f"{check['op']} {check['node']}: ".lstrip()
                end = "differs" if outcome == "differs" else "refused"
                return end, f"{where if end == 'differs' else ''}{check['detail']}"[:200], how
    left = [finding for finding in report["findings"] if finding["verdict"] != "same"]
    reasons = sorted({f"{finding['op']}: {finding['reason']}" for finding in left})
    return "left", "; ".join(reasons)[:200], how
