"""Hostile ONNX files through every public function: results, or the package's own errors.

    python tests/fuzz/fuzz_commands.py --cases 200000 --seed 0
    python tests/fuzz/fuzz_commands.py --seed 0 --case 4711     # one case again, with its traceback

The files are those of fuzz_onnx.py. Each is audited, ported (half of them for a file), its shapes
are asked, it is run on random inputs, and some are verified; one after the other, whatever the one
before said. A case fails if any of these raises anything but ZerostrideError or BroadcastError,
takes more than 10 seconds of CPU in all, needs more than a GiB, or kills the process.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import harness
from fuzz_onnx import mutator, not_apart, reader
from hostile_files import engine_of, scratch

import zerostride as zs
from zerostride import BroadcastError, ZerostrideError
from zerostride.errors import EngineVersionWarning
from zerostride.models.execute import execute
from zerostride.models.execute.random_inputs import random_inputs
from zerostride.models.formats import read_model
from zerostride.runtimes.process import engines_kept

#: A verification asks a child process, which takes the time of many audits.
VERIFY_EVERY = 25
#: Elements of all results that are worth a verification.
LARGEST = 2**20
#: Work that a run may be: two seconds, where a user's may be a minute.
RUN_WORK = 10_000


def run_case(seed: int, number: int) -> str:
    """How a case ended: the functions that gave a result."""
    reader.infer_apart = not_apart  # fuzz_onnx.py has it run apart
    path = scratch() / "case.onnx"
    path.write_bytes(mutator().case(seed, number))
    warnings.simplefilter("ignore", EngineVersionWarning)
    functions = {"audit": audit, "port": port, "shapes": shapes, "run": run}
    if number % VERIFY_EVERY == 0:
        functions["verify"] = verify
    worked = []
    for name, function in functions.items():
        try:
            function(path, number)
        except (ZerostrideError, BroadcastError) as error:
            str(error)
        except BaseException as error:  # noqa: BLE001 - what slips through is what is looked for
            return harness.slipped(error).replace(harness.BAD, f"{harness.BAD} {name}:", 1)
        else:
            worked.append(name)
    return " ".join(worked) or "refused"


def audit(path: Path, number: int) -> None:
    """Everything that a report is put out as."""
    name = engine_of(number).name
    report = zs.audit(path, name, via="pnnx" if name == "ncnn" and number % 2 else None)
    str(report)
    report.to_json()
    report.to_html()


def port(path: Path, number: int) -> None:
    """Into a file, or what would be done."""
    output = None if number % 2 else path.with_name("ported.onnx")
    zs.port(path, engine_of(number).name, output, dry_run=output is None).to_json()


def shapes(path: Path, number: int) -> None:
    """As JSON, and into a file."""
    zs.shapes(path, output=None if number % 2 else path.with_name("shapes.onnx")).as_dict()


def run(path: Path, number: int) -> None:
    """On random inputs."""
    graph = read_model(path)
    execute(graph, random_inputs(graph, number, {}), limit=RUN_WORK)


def verify(path: Path, number: int) -> None:
    """Beside NumPy, which every environment has; large operands take the time that they take."""
    plans = [one.source for one in zs.audit(path, "numpy").findings]
    shapes = [plan.shape for plan in plans if isinstance(plan, zs.Plan)]
    if sum(math.prod(n for n in shape if isinstance(n, int)) for shape in shapes) > LARGEST:
        return
    zs.verify(path, "numpy", cache=False, timeout=5).to_json()


def kept(case: Callable[[int, int], str]) -> int:
    """The fuzzer with its engine's process kept from case to case."""
    with engines_kept():
        return harness.main(__file__, case, __doc__.splitlines()[0])


if __name__ == "__main__":
    sys.exit(kept(run_case))
