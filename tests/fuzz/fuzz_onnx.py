"""Hostile ONNX files: an audit gives a Report or one clear error for any file.

    python tests/fuzz/fuzz_onnx.py --cases 100000 --seed 0
    python tests/fuzz/fuzz_onnx.py --seed 0 --case 4711     # one case again, with its traceback

Files are the examples and the onnx package's own, mutated (see mutate.py), and single nodes of
every operator with attributes that no operator wants. A case fails if it raises anything but the
errors that the package promises, lets a control character through to a terminal, takes longer than
10 s, needs more than a GiB, or kills the process.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import harness
import onnx
from hostile_files import ended, engine_of, outcome_of, scratch
from mutate import Mutator

from zerostride.models.audit.run import audit_graph
from zerostride.models.formats.onnx import reader
from zerostride.models.formats.onnx.reader import read_onnx
from zerostride.models.options import ModelOptions

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


def not_apart(model: object) -> onnx.ModelProto:
    """Stands in for a child process most of the time: starting one takes 300 cases' time."""
    raise RuntimeError("not run apart")


def run_case(seed: int, number: int) -> str:
    """How a case ended."""
    reader.infer_apart = reader_apart if number % APART_EVERY == 0 else not_apart
    path = scratch() / "case.onnx"
    path.write_bytes(mutator().case(seed, number))
    return ended(path, lambda: use(path, number))


def use(path: Path, number: int) -> tuple[str, str]:
    """Audits the file; the outcome, and what it said."""
    engine = engine_of(number)
    via = "pnnx" if engine.name == "ncnn" and number % 2 else None
    report = audit_graph(read_onnx(path), engine, ModelOptions(via or "none"))
    said = str(report)
    report.to_json()
    report.to_html()
    if any("bad_alloc" in note for note in report.notes) and not strange(path):
        return f"{harness.BAD} inference asked this process for more than a GiB", said
    return outcome_of(report), said


def strange(path: Path) -> bool:
    """Whether this file's inference ran apart, where it may ask for all that it wants."""
    from zerostride.models.onnx_ops import validation as soundness

    return soundness.strange(onnx.load_model_from_string(path.read_bytes()))


if __name__ == "__main__":
    sys.exit(harness.main(__file__, run_case, __doc__.splitlines()[0]))
