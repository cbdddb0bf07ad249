"""engines learn: a runner's file in, the row of its engine out."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..core.plugins import PLUGINS
from ..engines.learnt.file import folder as own_folder
from ..errors import BadInput
from ..runtimes.environment import make_environment
from . import options
from .engines import engines
from .tables import put_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..runtimes.learn.writing import RunnerFile

#: Wrong answers that are shown.
_SHOWN = 3
#: Seconds for one answer.
_SECONDS = 20.0


@engines.command(short_help="Learn an engine from a runner, a file of about twenty lines.")
@click.argument("runner", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("release", required=False)
@click.option("--python", help="The interpreter that has the engine.")
@click.option(
    *("-o", "--output"),
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder for the file; not given: the one where all commands find it.",
)
@click.option("--name", help="The engine's name, where a runner has several settings.")
@click.option("--seed", type=click.IntRange(0), default=0, help="Of the random questions.")
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=_SECONDS,
    help="Seconds for one answer; an engine that takes longer has crashed.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    help="Seconds for all questions; a slow engine needs more.",
)
@click.option("--check", "cases", type=click.IntRange(1), help="Compare with fresh questions.")
@options.as_json
def learn(
    runner: Path,
    release: str | None,
    python: str | None,
    output: Path | None,
    name: str | None,
    seed: int,
    timeout: float,
    seconds: float,
    cases: int | None,
    as_json: bool,
) -> int:
    """Learn what an engine does with broadcasts, from answers alone.

    RUNNER is a Python file with NAME, DISTRIBUTION and a function run(op, arrays, target) that
    computes one op on NumPy arrays. RELEASE is the folder of an environment that has a release of
    the engine, or a version (or "newest"), which pip installs into an environment of its own; not
    given: the installed one.

    Each op is asked on each element type, at most 300 times in full. The row that explains every
    answer is written to a file, and the engine's name works in all commands. Answers that fit no
    rule are "not understood"; they are never guessed.

    \b
    zerostride engines learn examples/runners/opencv.py newest
    zerostride audit model.onnx --target opencv
    """
    from ..runtimes.learn.writing import RunnerFile, learn_engine, write

    head = RunnerFile.read(runner, name)
    with _interpreter(head, python, release) as path, _told(head.ops(), as_json) as advance:
        data = learn_engine(
            head,
            path,
            seed=seed,
            timeout=timeout,
            seconds=seconds,
            cases=cases or 0,
            advance=advance,
        )
    file = write(data, output or own_folder())
    PLUGINS.forget()
    if as_json:
        options.put_json({**data, "file": str(file)})
    else:
        _show(data, file, seconds, kept=output is not None)
    return 0


@contextmanager
def _interpreter(head: RunnerFile, python: str | None, release: str | None) -> Iterator[str]:
    """The interpreter that was named, that of a release's environment, or this one."""
    path = python or sys.executable
    if release is not None and python is None:
        if re.fullmatch(r"newest|\d[\w.+!-]*", release) and not Path(release).exists():
            with tempfile.TemporaryDirectory() as folder:
                yield make_environment(Path(folder), head.requirements(release))
            return
        path = str(Path(release) / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    if not os.access(path, os.X_OK) or Path(path).is_dir():
        raise BadInput(f"{path} is not an interpreter that can be run")
    yield path


@contextmanager
def _told(ops: Mapping[str, str], quiet: bool) -> Iterator[Callable[[str], None]]:
    """A bar on a terminal that moves with each op."""
    from .progress import bar

    done = Counter[str]()
    with bar("ops") as move:

        def advance(name: str) -> None:
            done["ops"] += 1
            if move is not None and not quiet:
                move(min(done["ops"], len(ops)), len(ops))

        yield advance


def _show(data: Mapping[str, Any], path: Path, seconds: float, *, kept: bool) -> None:
    """Prints what was learnt, and the next command."""
    from ..engines.learnt.file import engine_of

    engine = engine_of(data)
    ops = data["ops"]
    present = [name for name, op in ops.items() if op["types"] or op["strange"] or op["crashed"]]
    put_text(
        f"{engine.name} {engine.release}: {len(present)} ops, {data['questions']} questions, "
        f"{data['seconds']:g} s"
    )
    for letter, row in data["rows"].items():
        users = [name for name in present if letter in ops[name]["types"].values()]
        put_text(f"  {', '.join(users)}")
        for line in _lines(row):
            put_text(f"    {line}")
    late = [name for name, op in ops.items() if op["unasked"]]
    if late:
        put_text(f"  no time was left for some types of {', '.join(late)}")
    absent = [name for name in ops if name not in present and name not in late]
    if absent:
        put_text(f"  lacks {', '.join(absent)}")
    other = {name: len(op["numbers"]) for name, op in ops.items() if op["numbers"]}
    if other:
        words = ", ".join(f"{name} ({count})" for name, count in other.items())
        put_text(f"  numbers that are not NumPy's: {words}; zerostride engines {engine.name}")
    if "checked" in data:
        _show_checked(data["checked"])
    put_text(f"written to {path}")
    if late:
        put_text(f"next: the same command with --seconds {10 * seconds:g}")
    elif kept:
        put_text(f"to use it: ZEROSTRIDE_ENGINES={path.parent} zerostride engines {engine.name}")
    else:
        put_text(f"next: zerostride audit MODEL.onnx --target {engine.name}")


def _show_checked(checked: Mapping[str, Any]) -> None:
    wrong = checked["wrong"]
    put_text(
        f"  {checked['asked']:,} fresh questions: {len(wrong)} wrong, "
        f"{checked['not_understood']} not understood"
    )
    for op, dtype, *shapes in wrong[:_SHOWN]:
        put_text(f"    {op} of {dtype}: {' and '.join(str(tuple(shape)) for shape in shapes)}")


def _lines(row: Mapping[str, Any]) -> Iterator[str]:
    """A row in sentences."""
    from ..engines.learnt import LearntRow

    learnt = LearntRow.read(row)
    whole = next((e for e in learnt.deviations if not e.when), None)
    if whole is not None:
        yield f"not understood; for example {' and '.join(map(str, whole.example))}"
        return
    yield learnt.form.words
    for deviation in learnt.deviations:
        yield f"! {deviation.words}; for example {' and '.join(map(str, deviation.example))}"
