"""``python -m campaigns releases``: conformance of every measured release of engines."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import click

from zerostride.engines.releases import releases_of
from zerostride.engines.table import find_engine

from . import evidence

_ENGINES = ("ncnn", "mnn", "openvino", "onnxruntime")
_PATHS = tuple(f"src/zerostride/{room}" for room in ("core", "engines", "ops", "runtimes/probe"))


@click.command("releases")
@click.option("--engine", multiple=True, help=f"Default: {', '.join(_ENGINES)}.")
@click.option("--cases", default=20_000, show_default=True, help="Generated cases of a release.")
@click.option("--write", is_flag=True, help="Keep each result in docs/evidence.md.")
def releases(engine: tuple[str, ...], cases: int, write: bool) -> int:
    """Run generated cases on every measured release of engines; pip installs each.

    A release whose row of docs/evidence.md holds of the files as they are does not run again, so
    that a run that was stopped goes on where it was.
    """
    wrong = 0
    for row in map(find_engine, engine or _ENGINES):
        for release in reversed(releases_of(row)):
            name = f"conformance of {row.name} {release}"
            if evidence.holds(name, _PATHS):
                click.echo(f"{row.name} {release}: measured")
                continue
            start = time.monotonic()
            words = ["engines", f"{row.name}=={release}", "--measure", "--cases", str(cases)]
            command = [sys.executable, "-m", "zerostride", *words, "--json"]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
            if done.returncode not in (0, 1):
                click.echo(f"{row.name} {release}: could not be measured")
                wrong += 1
                continue
            (report,) = json.loads(done.stdout)["engines"]
            count = len(report["disagreements"])
            wrong += count
            result = f"{count} of {report['cases']:,} cases otherwise"
            click.echo(f"{row.name} {release}: {result}, {time.monotonic() - start:.0f} s")
            if write and not count:
                again = f"zerostride {' '.join(words)}"
                seconds = time.monotonic() - start
                evidence.record("campaign", name, again, result, _PATHS, seconds)
                evidence.write()
    return int(bool(wrong))
