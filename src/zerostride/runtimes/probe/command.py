"""Runs engines on cases, each in its own process, and prints the results.

Exit status 0: no disagreement; 1: at least one; 2: bad input, or nothing could be run.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import click
from rich.console import Console
from rich.progress import Progress

from ...engines import find_engine
from ...engines.releases import short, title_of
from ...errors import BadInput
from ..process import Missing, Process, interpreter_for
from .case import Case
from .catalogue import rows_of
from .conformance import EngineReport, run_engine
from .patch import proposal
from .report import agrees, print_reports, reports_to_json

#: Columns of text where there is no terminal to ask.
WIDE = 140

#: Makes the cases of an engine; cases that it cannot judge go into the report.
MakeCases = Callable[[EngineReport], list[Case]]

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
pythons = click.option(
    "--python",
    multiple=True,
    metavar="NAME=PATH",
    help="The interpreter that runs an engine (or ZEROSTRIDE_PYTHON_NAME).",
)


def run_engines(jobs: Mapping[str, MakeCases], pythons: Sequence[str], as_json: bool) -> int:
    """Runs every engine on its cases and prints the reports; returns the exit status.

    Args:
        jobs: the functions that make the cases, by engine.
        pythons: interpreters, as NAME=PATH.
        as_json: print JSON, and no progress.

    Raises:
        BadInput: an engine or a file does not exist.
    """
    chosen = interpreters(pythons)
    for engine in jobs:
        rows_of(engine)
    # Progress and tables use different streams, so that the output can be piped.
    reports = [_run(engine, make, chosen, as_json) for engine, make in jobs.items()]
    if as_json:
        answer = reports_to_json(reports)
        for row, report in zip(answer["engines"], reports, strict=True):
            row["patch"] = "" if report.missing else proposal(report)
        click.echo(json.dumps(answer, indent=1))
    else:
        console = _console()
        print_reports(console, reports)
        for report in reports:
            if not report.missing:
                console.print(_conclusion(report), soft_wrap=True)
                if words := proposal(report):
                    console.print(words, markup=False, highlight=False, soft_wrap=True)
    if all(report.missing for report in reports):
        return 2
    return 0 if agrees(reports) else 1


def interpreters(pairs: Sequence[str]) -> dict[str, str]:
    """Paths of interpreters by engine, from NAME=PATH; raises BadInput."""
    chosen = {}
    for pair in pairs:
        name, equals, path = pair.partition("=")
        if not (equals and path):
            raise BadInput(f"--python takes NAME=PATH, not {pair!r}")
        rows_of(name)
        chosen[name] = path
    return chosen


def _run(engine: str, make: MakeCases, chosen: dict[str, str], quiet: bool) -> EngineReport:
    """One engine's report; `missing` has the reason if it cannot run."""
    prepared = EngineReport(engine)
    cases = make(prepared)
    if not cases:
        prepared.missing = "no cases"
        return prepared
    try:
        with (
            Process(engine, interpreter_for(engine, chosen)) as process,
            _progress(engine, len(cases), quiet) as advance,
        ):
            report = run_engine(process, cases, advance)
    except Missing as error:
        prepared.missing = f"not installed: {error}"
        return prepared
    report.unmodelled, report.findings = prepared.unmodelled, prepared.findings + report.findings
    return report


@contextmanager
def _progress(engine: str, total: int, quiet: bool) -> Iterator[Callable[[], None]]:
    """A progress bar on a terminal; no output elsewhere."""
    console = Console(stderr=True)
    with Progress(console=console, disable=quiet or not console.is_terminal) as progress:
        task = progress.add_task(engine, total=total)
        yield lambda: progress.advance(task)


def _console() -> Console:
    """A console of the terminal's width; wide enough for every column in a file or pipe."""
    console = Console()
    return console if console.is_terminal else Console(width=WIDE)


def _conclusion(report: EngineReport) -> str:
    version = report.version.split("-")[0]
    row = find_engine(title_of(find_engine(report.engine), version))
    verdict = f"{len(report.findings)} disagreements" if report.findings else "the table holds"
    measured = (
        "the measured release"
        if f"{short(version).partition('+')[0]}.".startswith(f"{short(row.release)}.")
        else f"the table was measured on {row.release}"
    )
    distinct = f"{report.cases:,} cases, {report.distinct:,} of them different"
    return f"{report.engine} {version} ({measured}): {verdict}; {distinct}"


def run_command(command: click.Command, name: str, arguments: list[str] | None = None) -> int:
    """Runs a command; returns its exit status. Errors are one line on stderr.

    Args:
        command: a click command that returns its exit status.
        name: its name in usage lines.
        arguments: the command line; the process's own if None.
    """
    try:
        status = command.main(arguments, prog_name=name, standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130
    except BadInput as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what Python flushes at its end
        print(f"{name}: {error.strerror or error}", file=sys.stderr)
        return 2
    return int(status or 0)
