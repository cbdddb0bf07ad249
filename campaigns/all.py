"""``python -m campaigns all``: every campaign at its full size, and the rows of the results."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click

from zerostride.errors import BadInput
from zerostride.runtimes.probe.catalogue import CATALOGUE
from zerostride.runtimes.probe.command import pythons

from . import evidence

_CORE = tuple(f"src/zerostride/{name}" for name in ("core", "derive", "engines", "ops", "sizes"))
_MODELS = (*_CORE, "src/zerostride/models", "campaigns/models")
_COMPUTE = ("native", "src/zerostride/compute", "src/zerostride/ops")


@dataclass(frozen=True, slots=True)
class Campaign:
    """A campaign at its full size.

    Attributes:
        name: the name of its row.
        words: the words after ``python -m campaigns``.
        paths: the files that it proves something about.
        shows: a pattern; the last line of the output that has it is the result.
        engines: whether it asks engines, and takes ``--python``.
    """

    name: str
    words: str
    paths: tuple[str, ...]
    shows: str = r"\d"
    engines: bool = False


def campaigns() -> Iterator[Campaign]:
    """All of them, the short ones first."""
    runners = "src/zerostride/runtimes"
    yield Campaign("leaks", "leaks", ("src/zerostride", "native", "campaigns/leaks.py"))
    yield Campaign("hostile files", "hostile", (*_MODELS, "campaigns/hostile"), r"\d uses, ")
    shapes = (*_CORE, "campaigns/shapes")
    yield Campaign("inference", "inference --cases 5000", shapes, "^zerostride: ")
    yield Campaign("LiteRT graphs", "litert-graphs", _MODELS)
    yield Campaign("networks bisected", "bisect --cases 200", (*_MODELS, runners))
    yield Campaign("arrays", "arrays", ("src/zerostride/arrays", *_COMPUTE, "campaigns/arrays"))
    fused = (*_COMPUTE, "src/zerostride/fusion")
    yield Campaign("forks", "forks", (*fused, "src/zerostride/system", "campaigns/forks.py"))
    yield Campaign("gradients", "gradients --cases 20000", (*fused, "campaigns/gradients"))
    quantised = ("src/zerostride/quantisation", *fused, "campaigns/quantisation")
    attention = ("src/zerostride/attention", "campaigns/attention")
    yield Campaign("attention", "attention --cases 1000", attention, "^all: ")
    yield Campaign("quantisation", "quantisation --cases 1000", quantised, "^all: ")
    yield Campaign("fused programs", "fuse --cases 100000", (*fused, "campaigns/fuse"))
    learnt = (*_CORE, f"{runners}/learn", "campaigns/learn.py")
    yield Campaign("made-up engines", "learn --engines 100", learnt, "engines are wrong")
    compared = (*_MODELS, f"{runners}/equivalent", "campaigns/equivalent")
    yield Campaign("optimisers", "equivalent --cases 500 --mutants 8", compared, " pairs, ")
    for engine in CATALOGUE:
        yield Campaign(
            f"conformance of {engine}",
            f"conformance --engine {engine} --cases 20000",
            (*_CORE, runners, "campaigns/commands.py"),
            rf"^{engine} \S+ \(",
            engines=True,
        )
    yield Campaign("sizes of rank 2", "exhaustion", shapes, "^all ")
    judged = (*_MODELS, runners)
    yield Campaign("verdicts", "verdicts --nodes 2000", judged, engines=True)
    doors = (*judged, "campaigns/front_doors")
    for engine in ("openvino", "mnn"):
        words = f"front-doors --engine {engine} --cases 5000"
        yield Campaign(f"front door of {engine}", words, doors, f"^{engine}: ")
    yield Campaign("mutants", "mutants", (*judged, "campaigns/real_models"), "^[0-9,]+ faults of")
    yield Campaign("ports", "port --graphs 10000", _MODELS)
    native = (*_COMPUTE, "campaigns/native")
    yield Campaign("native engine", "native --cases 1000000 --isa all", native)


def measure(campaign: Campaign, interpreters: Sequence[str]) -> int:
    """Runs a campaign; if it found no disagreement, writes its row. Returns its exit status."""
    words = campaign.words.split()
    if campaign.engines:
        words += [word for given in interpreters for word in ("--python", given)]
    start = time.monotonic()
    lines = []
    with subprocess.Popen(
        [sys.executable, "-m", "campaigns", *words],
        cwd=evidence.ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            click.echo(line, nl=False)
            lines += [line.strip()] if re.search(campaign.shows, line) else []
    if child.returncode == 0:
        command = f"python -m campaigns {campaign.words}"
        result = lines[-1] if lines else "no disagreement"
        seconds = time.monotonic() - start
        evidence.record("campaign", campaign.name, command, result, campaign.paths, seconds)
        evidence.write()
    return child.returncode


@click.command(name="all")
@click.option("--write", is_flag=True, help="Run those whose row is stale or missing.")
@click.option("--only", metavar="TEXT", default="", help="Campaigns with this text in their name.")
@pythons
def every(write: bool, only: str, python: tuple[str, ...]) -> int:
    """Run every campaign at its full size; keep the results in docs/evidence.md.

    Campaigns whose row holds of the files as they are do not run again, so that a run that was
    stopped goes on where it was. Without --write the command lists the rows. All of them take
    hours.
    """
    chosen = [one for one in campaigns() if only in one.name]
    if not chosen:
        names = ", ".join(one.name for one in campaigns())
        raise BadInput(f"no campaign has {only!r} in its name; there are: {names}")
    failed = []
    for one in chosen:
        if evidence.holds(one.name, one.paths):
            click.echo(f"{one.name}: measured")
        elif not write:
            state = "stale" if one.name in evidence.read() else "not measured"
            click.echo(f"{one.name}: {state}; python -m campaigns {one.words}")
        else:
            click.echo(f"{one.name}: python -m campaigns {one.words}")
            failed += [one.name] if measure(one, python) else []
    if failed:
        click.echo(f"without a row: {', '.join(failed)}", err=True)
    return int(bool(failed))
