"""The campaigns that draw cases: their options and functions."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import click

from zerostride.engines import find_engine
from zerostride.errors import BadInput, BroadcastError
from zerostride.runtimes.probe.case import Case
from zerostride.runtimes.probe.catalogue import CATALOGUE
from zerostride.runtimes.probe.command import (
    MakeCases,
    as_json,
    interpreters,
    pythons,
    run_engines,
)
from zerostride.runtimes.probe.conformance import EngineReport
from zerostride.runtimes.probe.generate import generate

from .recorded import Recorded, check_recorded, read_cases

Command = Callable[..., Any]
_COUNT = click.IntRange(1)

seed = click.option("--seed", type=int, default=0, show_default=True)
first = click.option("--first", type=int, default=0, help="Number of the first case.")
seconds = click.option(
    "--seconds", type=float, default=1e9, help="Time after which no case begins."
)


def cases(default: int, of: str = "") -> Callable[[Command], Command]:
    """The option that says how many cases are drawn."""
    return click.option("--cases", type=_COUNT, default=default, show_default=True, help=of or None)


@click.command()
@click.option("--engine", multiple=True, metavar="NAME", help="One of " + ", ".join(CATALOGUE))
@click.option("--all", "every", is_flag=True, help="Every engine.")
@cases(20_000, "Of an engine.")
@click.option("--cases-file", metavar="FILE", help="Verified cases, one JSON object per line.")
@seed
@pythons
@as_json
def conformance(
    engine: tuple[str, ...],
    every: bool,
    cases: int,
    cases_file: str | None,
    seed: int,
    python: tuple[str, ...],
    as_json: bool,
) -> int:
    """Run real engines on generated or recorded cases, against zerostride's predictions."""
    if every == bool(engine):
        raise click.UsageError("give --engine NAME, or --all")
    names = list(CATALOGUE) if every else list(dict.fromkeys(engine))
    if cases_file is None:
        make: MakeCases = lambda report: list(generate(report.engine, cases, seed))  # noqa: E731
    else:
        make = _recorded(cases_file)
    return run_engines(dict.fromkeys(names, make), python, as_json)


def _recorded(path: str) -> MakeCases:
    """Reads the cases of each engine from a file; prints the engines without a judge."""
    by_engine: dict[str, list[Recorded]] = {}
    for recorded in read_cases(path):
        by_engine.setdefault(recorded.case.engine, []).append(recorded)
    for name in sorted(set(by_engine) - set(CATALOGUE)):
        click.echo(f"not judged: {len(by_engine[name])} cases of {name}", err=True)

    def make(report: EngineReport) -> list[Case]:
        return check_recorded(report, by_engine.get(report.engine, []))

    return make


@click.command()
@click.option("--rank", type=click.IntRange(0, 3), default=2, show_default=True)
@click.option(
    "--samples", type=int, default=100_000, show_default=True, help="Samples of rank 3 and 4."
)
@click.option("--jobs", type=_COUNT, default=os.cpu_count() or 1, show_default=True)
@seed
@as_json
def exhaustion(rank: int, samples: int, jobs: int, seed: int, as_json: bool) -> int:
    """Compare symbolic plans with concrete ones: all small cases, and samples."""
    from .shapes.exhaustion import run_all

    return run_all(rank, samples, seed, jobs, as_json)


@click.command()
@cases(5000)
@seed
@as_json
def inference(cases: int, seed: int, as_json: bool) -> int:
    """Judge the shape inference of zerostride and other tools by brute force."""
    from .shapes.inference_report import run

    return run(cases, seed, as_json)


@click.command()
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@as_json
def coverage(models: tuple[str, ...], as_json: bool) -> int:
    """Count the sizes of ONNX models that each tool infers, and whether they are right."""
    from .shapes.coverage_report import run

    return run(models, as_json)


@click.command()
@click.option("--graphs", type=_COUNT, default=1000, show_default=True)
@click.option("--target", multiple=True, metavar="ENGINE", help="Default: all.")
@first
@seed
@as_json
def port(graphs: int, target: tuple[str, ...], first: int, seed: int, as_json: bool) -> int:
    """Port random graphs; count the remaining findings and compare the results."""
    from .models.ports import run

    return run(graphs, seed, target, first, as_json)


@click.command()
@click.argument("places", nargs=-1, metavar="PLACE...")
@click.option("--target", multiple=True, metavar="ENGINE", help="Default: all.")
@click.option("--batch-axis", type=int, help="The models' batch axis; -1 for none.")
@click.option("--here", is_flag=True, help="Run all pairs in this process.")
@pythons
@as_json
def models(
    places: tuple[str, ...],
    target: tuple[str, ...],
    batch_axis: int | None,
    here: bool,
    python: tuple[str, ...],
    as_json: bool,
) -> int:
    """Audit, verify, port and verify model files (files, folders) for every engine."""
    from .models.command import run

    try:
        for name in target:
            find_engine(name)
    except BroadcastError as error:
        raise BadInput(str(error)) from error
    return run(places, target, interpreters(python), batch_axis, as_json, apart=not here)


@click.command()
@click.option("--nodes", type=_COUNT, default=1000, show_default=True, help="Nodes per format.")
@click.option("--format", "formats", multiple=True, metavar="NAME", help="Default: all.")
@click.option("--engine", multiple=True, metavar="NAME", help="Default: all.")
@seed
@pythons
@as_json
def verdicts(
    nodes: int,
    formats: Sequence[str],
    engine: tuple[str, ...],
    seed: int,
    python: tuple[str, ...],
    as_json: bool,
) -> int:
    """Hold the audit's verdicts about random nodes of every format against the engines."""
    from .models.verdicts import run

    return run(formats, engine, nodes, seed, interpreters(python), as_json)


@click.command("litert-graphs")
@cases(20_000)
@first
@seed
@as_json
def litert_graphs(cases: int, first: int, seed: int, as_json: bool) -> int:
    """Run random .tflite graphs on LiteRT: sizes and numbers of every tensor, and refusals."""
    from .models.litert_graphs import run

    return run(cases, seed, first, as_json)


def _seeded(command: Command) -> Command:
    """The options of campaigns of seeded cases by instruction set."""
    for option in (
        cases(100_000, "Of an instruction set."),
        first,
        seed,
        click.option("--isa", metavar="NAME", help="An instruction set, or all."),
        click.option("--threads", type=int, default=0, help="Threads of a call; 0: the default."),
        seconds,
        click.option("--jobs", type=_COUNT, default=1, help="Processes at once."),
        as_json,
    ):
        command = option(command)
    return command


@click.command()
@cases(200, "Networks with a fault, and as many without.")
@first
@seed
@seconds
@as_json
def bisect(**options: Any) -> int:
    """Bisect networks with one broadcast read another way, and untouched ones."""
    from .models.bisections import run

    return run(SimpleNamespace(**options))


@click.command()
@_seeded
def native(**options: Any) -> int:
    """Compare the native engine with the reference backend on random calls."""
    from .native.command import run

    return run(SimpleNamespace(**options))


@click.command()
@_seeded
def fuse(**options: Any) -> int:
    """Compare random fused programs with the reference."""
    from .fuse.command import run

    return run(SimpleNamespace(**options))


@click.command()
@cases(20_000)
@first
@seed
@seconds
@as_json
def gradients(**options: Any) -> int:
    """Compare gradients of fused expressions with torch.autograd in float64."""
    from .gradients.command import run

    return run(SimpleNamespace(**options))


@click.command()
@click.option("--library", multiple=True, metavar="NAME", help="Default: all.")
@click.option("--rule", multiple=True, metavar="NAME", help="Default: all.")
@cases(5000, "Of a library under a rule.")
@first
@seed
@seconds
@as_json
def arrays(**options: Any) -> int:
    """Compare arrays of other libraries with the reference."""
    from .arrays.command import run

    return run(SimpleNamespace(**options))


@click.command()
@click.option("--engine", multiple=True, metavar="NAME", help="Default: all.")
@cases(1000, "Of an engine.")
@first
@seed
@as_json
def quantisation(engine: tuple[str, ...], cases: int, first: int, seed: int, as_json: bool) -> int:
    """Compare quantisation under the engines' rows with the engines, value by value."""
    from .quantisation.command import run

    return run(engine, cases, first, seed, as_json)


@click.command("front-doors")
@click.option("--engine", multiple=True, metavar="NAME", help="Default: openvino, mnn, ncnn.")
@click.option("--op", metavar="NAME", help="Models of one node of this op.")
@cases(5000, "Of an engine.")
@first
@seed
@as_json
def front_doors(
    engine: tuple[str, ...], op: str | None, cases: int, first: int, seed: int, as_json: bool
) -> int:
    """Compare verdicts on small models with what users' own converters make of them.

    To litert the models are modules of PyTorch, which litert-torch converts.
    """
    from .front_doors.judge import run

    return run(engine or ("openvino", "mnn", "ncnn"), first, cases, seed, op, as_json)


@click.command()
@click.option("--engine", multiple=True, metavar="NAME", help="Default: all.")
@cases(500, "Of an op.")
@first
@seed
@as_json
def attention(engine: tuple[str, ...], cases: int, first: int, seed: int, as_json: bool) -> int:
    """Run attention on real engines, against its plans: what is refused, and every number."""
    from .attention.judge import run

    return run(engine, cases, first, seed, as_json)


#: The commands, in the order in which help lists them.
COMMANDS = (
    conformance,
    attention,
    verdicts,
    front_doors,
    models,
    port,
    litert_graphs,
    bisect,
    exhaustion,
    inference,
    coverage,
    native,
    fuse,
    gradients,
    arrays,
    quantisation,
)
