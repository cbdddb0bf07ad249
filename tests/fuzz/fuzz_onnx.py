"""Hostile ONNX files: whatever a file holds, an audit answers a Report or one clear error.

    python tests/fuzz/fuzz_onnx.py --cases 100000 --seed 0
    python tests/fuzz/fuzz_onnx.py --seed 0 --case 4711     # one case again, with its traceback

Files are the examples and the onnx package's own, mutated (see mutate.py), and single nodes of
every operator with attributes that no operator wants. A case fails if it raises anything but the
errors that the package promises, lets a control character through to a terminal, takes longer than
10 s, needs more than a GiB, or kills the process.
"""

from __future__ import annotations

import functools
import os
import sys
import tempfile
import traceback
from pathlib import Path

import harness
import onnx
from mutate import Mutator

from zerostride import BroadcastError, ZerostrideError
from zerostride.engines import ENGINES
from zerostride.models import onnx as reader
from zerostride.models.audit import audit_graph
from zerostride.models.onnx import read_onnx

EXAMPLES = Path(__file__).parents[2] / "examples"
PACKAGE = Path(onnx.__file__).parent / "backend" / "test" / "data"
#: Larger files are slower to mutate and hold nothing that smaller ones do not.
LARGEST = 30_000
#: One of so many cases has its inference run apart, if it is to run apart.
APART_EVERY = 50
reader_apart = reader.infer_apart


@functools.cache
def mutator() -> Mutator:
    """The mutator of all small files there are, in a fixed order."""
    files = [*sorted(EXAMPLES.rglob("*.onnx")), *sorted(PACKAGE.rglob("*.onnx"))]
    return Mutator([f.read_bytes() for f in files if f.stat().st_size < LARGEST])


@functools.cache
def scratch() -> Path:
    """This process's file, in memory where the system has such a place."""
    shared = Path("/dev/shm")
    folder = shared if os.access(shared, os.W_OK) else None
    made = tempfile.TemporaryDirectory(dir=folder, prefix="zerostride-fuzz-")
    globals()["_keep"] = made  # its folder goes when the process does
    return Path(made.name) / "case.onnx"


def not_apart(model: object) -> onnx.ModelProto:
    """Stands in for a child process most of the time: starting one takes 300 cases' time."""
    raise RuntimeError("not run apart")


def run_case(seed: int, number: int) -> str:
    """How a case ended."""
    reader.infer_apart = reader_apart if number % APART_EVERY == 0 else not_apart
    path = scratch()
    path.write_bytes(mutator().case(seed, number))
    engine = ENGINES[sorted(ENGINES)[number % len(ENGINES)]]
    via = "pnnx" if engine.name == "ncnn" and number % 2 else None
    try:
        report = audit_graph(read_onnx(path), engine, via)
        said = str(report)
        report.to_json()
        report.to_html()
    except ZerostrideError as error:
        said = str(error)
        if str(path) not in said or "\n" in said:
            return f"{harness.BAD} not one line naming the file: {said!r}"
        outcome = type(error).__name__
    except BroadcastError as error:
        said = str(error)
        outcome = "BroadcastError"
    except BaseException as error:  # noqa: BLE001 - what slips through is what is looked for
        if "--case" in sys.argv:
            traceback.print_exc()
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.lineno}"
        return f"{harness.BAD} {type(error).__name__} at {where}: {str(error)[:200]!r}"
    else:
        outcome = "Report" + (" with findings" if report.findings else "")
        if any("bad_alloc" in note for note in report.notes) and not strange(path):
            return f"{harness.BAD} inference asked this process for more than a GiB"
    if not said.replace("\n", "").isprintable():
        bad = next(c for c in said if c != "\n" and not c.isprintable())
        return f"{harness.BAD} {bad!r} would reach the terminal"
    return outcome


def strange(path: Path) -> bool:
    """Whether this file's inference ran apart, where it may ask for all that it wants."""
    from zerostride.models import soundness

    return soundness.strange(onnx.load_model_from_string(path.read_bytes()))


if __name__ == "__main__":
    sys.exit(harness.main(__file__, run_case, __doc__.splitlines()[0]))
