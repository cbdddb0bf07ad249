"""Every public function on one hostile file: results, or the package's own errors."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from pathlib import Path

import harness
from hostile_files import audited_with_data, ended, engine_of

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


def run_on(path: Path, number: int) -> str:
    """How the audit of a file ended, and the functions that gave a result for it."""
    warnings.simplefilter("ignore", EngineVersionWarning)
    outcome = ended(path, lambda: audited_with_data(path, number))
    if outcome.startswith(harness.BAD):
        return outcome
    worked = use_every(path, number)
    return worked if worked.startswith(harness.BAD) else f"{outcome} {worked}"


def use_every(path: Path, number: int) -> str:
    """The functions that gave a result."""
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
    output = None if number % 2 else path.with_name(f"ported{path.suffix}")
    zs.port(path, engine_of(number).name, output, dry_run=output is None).to_json()


def shapes(path: Path, number: int) -> None:
    """As JSON, and into a file."""
    zs.shapes(path, output=None if number % 2 else path.with_name(f"shapes{path.suffix}")).as_dict()


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


def kept(script: str, case: Callable[[int, int], str], title: str) -> int:
    """A fuzzer with its engine's process kept from case to case."""
    with engines_kept():
        return harness.main(script, case, title)
