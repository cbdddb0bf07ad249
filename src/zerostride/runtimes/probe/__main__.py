"""``python -m zerostride.runtimes.probe ENGINE``: measures the installed release again."""

from __future__ import annotations

import sys

import click

from .case import Case
from .command import as_json, pythons, run_command, run_engines
from .conformance import EngineReport
from .generate import generate
from .ladder import ladder

#: The number of cases of a probe, in addition to the ladder of ranks.
PROBE_CASES = 4000


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("engine")
@click.option("--seed", type=int, default=0, show_default=True)
@pythons
@as_json
def probe(engine: str, seed: int, python: tuple[str, ...], as_json: bool) -> int:
    """Run ENGINE's installed release in its own process, against zerostride's predictions."""

    def cases(report: EngineReport) -> list[Case]:
        return [*ladder(report.engine), *generate(report.engine, PROBE_CASES, seed)]

    return run_engines({engine: cases}, python, as_json)


if __name__ == "__main__":
    sys.exit(run_command(probe, "python -m zerostride.runtimes.probe"))
