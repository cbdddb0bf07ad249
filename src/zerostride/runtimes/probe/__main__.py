"""``python -m zerostride.runtimes.probe ENGINE``: measures the installed release again."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import click

from ...engines.table import find_engine
from .case import Case
from .catalogue import rows_of
from .command import as_json, pythons, run_command, run_engines
from .conformance import EngineReport
from .generate import generate
from .ladder import ladder
from .release import environment

#: The number of cases of a probe, in addition to the ladder of ranks.
PROBE_CASES = 4000


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("engine")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--cases", type=click.IntRange(1), default=PROBE_CASES, show_default=True)
@click.option("--release", help="Install this release in an environment of its own; measure it.")
@pythons
@as_json
def probe(
    engine: str,
    seed: int,
    cases: int,
    release: str | None,
    python: tuple[str, ...],
    as_json: bool,
) -> int:
    """Run ENGINE's installed release in its own process, against zerostride's predictions."""

    def make(report: EngineReport) -> list[Case]:
        return [*ladder(report.engine), *generate(report.engine, cases, seed)]

    if release is None:
        return run_engines({engine: make}, python, as_json)
    row = find_engine(engine)
    rows_of(row.name)  # raises if it cannot be run
    with tempfile.TemporaryDirectory() as folder:
        interpreter = environment(row, release, Path(folder))
        return run_engines({engine: make}, [f"{engine}={interpreter}"], as_json)


if __name__ == "__main__":
    sys.exit(run_command(probe, "python -m zerostride.runtimes.probe"))
