"""The command line: ``python -m zerostride.runtimes.probe conformance``, ``... probe ENGINE``, and others.

``exhaustion`` asks symbolic plans beside concrete ones; ``inference`` and ``coverage`` ask other
tools' shape inference beside ours, for generated cases and through whole models; ``models`` audits,
ports and verifies model files for every engine; ``verdicts`` draws nodes of every op, element type
and mode and holds verdicts against engines; ``native`` holds the C++ engine against the
reference backend, ``fuse`` fused expressions, and ``arrays`` the arrays of other libraries.

Exit status 0: no disagreement; 1: at least one; 2: bad input, or nothing could be run.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress

from ...engines import find_engine
from ...errors import BroadcastError
from .case import BadInput, Case, Recorded, read_cases
from .catalogue import CATALOGUE, rows_of
from .conformance import EngineReport, check_recorded, run_engine
from .generate import generate
from .isolation import Missing, Worker, interpreter_for
from .ladder import ladder
from .report import agrees, print_reports, reports_to_json

#: Cases of a probe besides the ladder of ranks.
PROBE_CASES = 4000

#: Columns of text where there is no terminal to ask.
WIDE = 140

MakeCases = Callable[[EngineReport], list[Case]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    options = _parser().parse_args(arguments)
    if options.command == "exhaustion":
        from campaigns.shapes.exhaustion import run_all

        return run_all(options.rank, options.samples, options.seed, options.jobs, options.json)
    if options.command == "inference":
        from campaigns.shapes.inference_report import run

        return run(options.cases, options.seed, options.json)
    if options.command == "coverage":
        from campaigns.shapes.coverage_report import run as cover

        return cover(options.models, options.json)
    if options.command == "port":
        from campaigns.models.ports import run as port_graphs

        targets = options.target or ()
        return port_graphs(options.graphs, options.seed, targets, options.first, options.json)
    if options.command == "models":
        return _models(options)
    if options.command == "verdicts":
        return _verdicts(options)
    if options.command == "native":
        from campaigns.native.command import run as compare_backends

        return compare_backends(options)
    if options.command == "fuse":
        from campaigns.fuse.command import run as compare_fused

        return compare_fused(options)
    if options.command == "gradients":
        from campaigns.gradients.command import run as compare_gradients

        return compare_gradients(options)
    if options.command == "arrays":
        from campaigns.arrays.command import run as compare_arrays

        return compare_arrays(options)
    try:
        chosen = _interpreters(options.python)
        jobs: dict[str, MakeCases]
        if options.command == "probe":
            jobs = {options.engine: lambda report: _probe_cases(report.engine, options.seed)}
            rows_of(options.engine)
        else:
            jobs = _conformance_jobs(options)
        # Progress and tables go apart, so that the output can be piped.
        reports = [_run(engine, make, chosen, options.json) for engine, make in jobs.items()]
    except BadInput as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    if options.json:
        print(json.dumps(reports_to_json(reports), indent=1))
    else:
        console = _console()
        print_reports(console, reports)
        for report in reports:
            if not report.missing:
                console.print(_conclusion(report), soft_wrap=True)
    if all(report.missing for report in reports):
        return 2
    return 0 if agrees(reports) else 1


def _models(options: argparse.Namespace) -> int:
    from campaigns.models.command import run

    try:
        for name in options.target:
            find_engine(name)
        chosen = _interpreters(options.python)
    except (BadInput, BroadcastError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return run(
        options.models,
        options.target,
        chosen,
        options.batch_axis,
        options.json,
        apart=not options.here,
    )


def _verdicts(options: argparse.Namespace) -> int:
    from campaigns.models.verdicts import run

    try:
        chosen = _interpreters(options.python)
    except BadInput as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    engines, formats = options.engine or (), options.format or ()
    return run(formats, engines, options.nodes, options.seed, chosen, options.json)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m zerostride.runtimes.probe",
        description="Run real engines, each in its own process, against zerostride's predictions.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    conformance = commands.add_parser("conformance", help="generated or recorded cases")
    which = conformance.add_mutually_exclusive_group(required=True)
    which.add_argument("--engine", action="append", help="one of " + ", ".join(CATALOGUE))
    which.add_argument("--all", action="store_true", help="every engine")
    conformance.add_argument("--cases", type=_count, default=20_000, help="cases an engine")
    conformance.add_argument("--cases-file", help="verified cases, one JSON object a line")
    probe = commands.add_parser("probe", help="measure the installed release again")
    probe.add_argument("engine", metavar="ENGINE")
    exhaustion = commands.add_parser(
        "exhaustion", help="symbolic plans against concrete ones: all small cases, and samples"
    )
    exhaustion.add_argument("--rank", type=int, choices=range(4), default=2, help="of all cases")
    exhaustion.add_argument("--samples", type=int, default=100_000, help="of rank 3 and 4")
    exhaustion.add_argument("--jobs", type=_count, default=os.cpu_count() or 1)
    exhaustion.add_argument("--seed", type=int, default=0)
    exhaustion.add_argument("--json", action="store_true", help="print JSON")
    inference = commands.add_parser(
        "inference", help="other tools' shape inference and ours, judged by numbers put in"
    )
    inference.add_argument("--cases", type=_count, default=5000)
    inference.add_argument("--seed", type=int, default=0)
    inference.add_argument("--json", action="store_true", help="print JSON")
    coverage = commands.add_parser(
        "coverage", help="sizes through ONNX models: how much each tool says, and whether it is so"
    )
    coverage.add_argument("models", nargs="+", metavar="MODEL")
    coverage.add_argument("--json", action="store_true", help="print JSON")
    port = commands.add_parser(
        "port", help="random graphs ported: what is left, and whether the results are equal"
    )
    port.add_argument("--graphs", type=_count, default=1000)
    port.add_argument("--target", action="append", metavar="ENGINE", help="all if not given")
    port.add_argument("--first", type=int, default=0, help="number of the first graph")
    port.add_argument("--seed", type=int, default=0)
    port.add_argument("--json", action="store_true", help="print JSON")
    models = commands.add_parser(
        "models", help="model files beside every engine: audit, verify, port, verify"
    )
    models.add_argument("--models", nargs="+", default=[], metavar="PLACE", help="files, folders")
    models.add_argument("--target", nargs="+", default=[], metavar="ENGINE", help="default: all")
    models.add_argument("--batch-axis", type=int, help="the models' batch axis; -1 for none")
    models.add_argument("--here", action="store_true", help="no process of its own for each pair")
    verdicts = commands.add_parser(
        "verdicts", help="random nodes of every format: the audit's verdicts and the engines"
    )
    verdicts.add_argument("--nodes", type=_count, default=1000, help="of a format")
    verdicts.add_argument("--format", action="append", metavar="NAME", help="all if not given")
    verdicts.add_argument("--engine", action="append", metavar="NAME", help="all if not given")
    native = commands.add_parser("native", help="the native engine against the reference backend")
    fuse = commands.add_parser("fuse", help="random fused programs against the reference")
    for campaign in (native, fuse):
        campaign.add_argument("--cases", type=_count, default=100_000, help="of an instruction set")
        campaign.add_argument("--first", type=int, default=0, help="number of the first case")
        campaign.add_argument("--seed", type=int, default=0)
        campaign.add_argument("--isa", metavar="NAME", help="an instruction set, or all")
        campaign.add_argument("--threads", type=int, default=0, help="of a call; 0: the default")
        campaign.add_argument("--seconds", type=float, default=1e9, help="an end, at any rate")
        campaign.add_argument("--jobs", type=_count, default=1, help="processes at a time")
        campaign.add_argument("--json", action="store_true", help="print JSON")
    gradients = commands.add_parser(
        "gradients", help="gradients of fused expressions beside torch.autograd in float64"
    )
    gradients.add_argument("--cases", type=_count, default=20_000)
    gradients.add_argument("--first", type=int, default=0, help="number of the first case")
    gradients.add_argument("--seed", type=int, default=0)
    gradients.add_argument("--seconds", type=float, default=1e9, help="an end, whatever is left")
    gradients.add_argument("--json", action="store_true", help="print JSON")
    arrays = commands.add_parser("arrays", help="arrays of other libraries against the reference")
    arrays.add_argument("--library", action="append", metavar="NAME", help="all if not given")
    arrays.add_argument("--rule", action="append", metavar="NAME", help="all if not given")
    arrays.add_argument("--cases", type=_count, default=5000, help="of a library under a rule")
    arrays.add_argument("--first", type=int, default=0, help="number of the first case")
    arrays.add_argument("--seed", type=int, default=0)
    arrays.add_argument("--seconds", type=float, default=1e9, help="an end, whatever is left")
    arrays.add_argument("--json", action="store_true", help="print JSON")
    for command in (conformance, probe, verdicts):
        command.add_argument("--seed", type=int, default=0)
    for command in (conformance, probe, models, verdicts):
        command.add_argument("--json", action="store_true", help="print JSON")
        command.add_argument(
            "--python",
            action="append",
            default=[],
            metavar="NAME=PATH",
            help="the interpreter that runs an engine (or ZEROSTRIDE_PYTHON_NAME)",
        )
    return parser


def _count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return count


def _interpreters(pairs: Sequence[str]) -> dict[str, str]:
    chosen = {}
    for pair in pairs:
        name, equals, path = pair.partition("=")
        if not (equals and path):
            raise BadInput(f"--python takes NAME=PATH, not {pair!r}")
        rows_of(name)
        chosen[name] = path
    return chosen


def _conformance_jobs(options: argparse.Namespace) -> dict[str, MakeCases]:
    """For each engine, what makes its cases."""
    names = list(CATALOGUE) if options.all else list(dict.fromkeys(options.engine))
    for name in names:
        rows_of(name)
    if options.cases_file is None:
        return dict.fromkeys(
            names, lambda report: list(generate(report.engine, options.cases, options.seed))
        )
    by_engine: dict[str, list[Recorded]] = {}
    for recorded in read_cases(options.cases_file):
        by_engine.setdefault(recorded.case.engine, []).append(recorded)
    for name in sorted(set(by_engine) - set(CATALOGUE)):
        print(f"not judged: {len(by_engine[name])} cases of {name}", file=sys.stderr)
    return dict.fromkeys(
        names, lambda report: check_recorded(report, by_engine.get(report.engine, []))
    )


def _probe_cases(engine: str, seed: int) -> list[Case]:
    return [*ladder(engine), *generate(engine, PROBE_CASES, seed)]


def _run(engine: str, make: MakeCases, chosen: dict[str, str], quiet: bool) -> EngineReport:
    """One engine's report; `missing` says why where it cannot be run."""
    prepared = EngineReport(engine)
    cases = make(prepared)
    if not cases:
        prepared.missing = "no cases"
        return prepared
    try:
        with (
            Worker(engine, interpreter_for(engine, chosen)) as worker,
            _progress(engine, len(cases), quiet) as advance,
        ):
            report = run_engine(worker, cases, advance)
    except Missing as error:
        prepared.missing = f"not installed: {error}"
        return prepared
    report.unmodelled, report.findings = prepared.unmodelled, prepared.findings + report.findings
    return report


@contextmanager
def _progress(engine: str, total: int, quiet: bool) -> Iterator[Callable[[], None]]:
    """A bar on a terminal; nothing elsewhere."""
    console = Console(stderr=True)
    with Progress(console=console, disable=quiet or not console.is_terminal) as progress:
        task = progress.add_task(engine, total=total)
        yield lambda: progress.advance(task)


def _console() -> Console:
    """The terminal as wide as it is; a file or pipe wide enough for every column."""
    console = Console()
    return console if console.is_terminal else Console(width=WIDE)


def _conclusion(report: EngineReport) -> str:
    row = find_engine(report.engine)
    version = report.version.split("-")[0]
    verdict = f"{len(report.findings)} disagreements" if report.findings else "the table holds"
    measured = (
        "the measured release"
        if f"{version.partition('+')[0]}.".startswith(row.release + ".")
        else f"the table was measured on {row.release}"
    )
    distinct = f"{report.cases:,} cases, {report.distinct:,} of them different"
    return f"{report.engine} {version} ({measured}): {verdict}; {distinct}"


def _ended() -> int:
    """The exit status of the command; an output that takes nothing more is one line and 2."""
    try:
        status = main()
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what Python flushes at its end
        print(f"zerostride.runtimes.probe: {error.strerror or error}", file=sys.stderr)
        return 2
    return status


if __name__ == "__main__":
    sys.exit(_ended())
