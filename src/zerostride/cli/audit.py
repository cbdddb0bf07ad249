"""audit: what every broadcast of a model would mean on another engine."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import click

from ..engines.table import ENGINES
from ..errors import ZerostrideError
from ..report import finding_text, headline, notes, readable, shown
from . import options, tables

if TYPE_CHECKING:
    from ..models.findings import Finding, Report

#: Fewer nodes than this are done before a progress bar could be read.
BAR_FROM = 2000
#: More findings than this are shown as a table alone: some screens of drawings are read, hundreds
#: are not. --details shows them all the same.
MOST_DETAILS = 20


@click.command(short_help="What a model's broadcasts would mean on another engine.")
@click.argument("models", nargs=-1, required=True, type=click.Path())
@click.option(
    "--target", required=True, type=click.Choice(list(ENGINES)), help="The engine to judge for."
)
@click.option("--via", type=click.Choice(["pnnx"]), help="Judge what this converter makes of it.")
@click.option(
    "--batch-axis",
    help="Batch axis of the model's inputs, for engines that drop it; 'none' if there is none.",
)
@click.option(
    "--set",
    "sizes",
    multiple=True,
    type=options.SizeType(),
    metavar="NAME=NUMBER",
    help="A number for a size that the model names: N=4. May be given again.",
)
@options.facts
@click.option("--full", is_flag=True, help="Show findings that are the same, too.")
@click.option(
    "--details/--summary",
    default=None,
    help=f"Draw each finding, or show the table only; drawn if there are at most {MOST_DETAILS}.",
)
@options.as_json
def audit(
    models: tuple[str, ...],
    target: str,
    via: str | None,
    batch_axis: str | None,
    sizes: tuple[tuple[str, int | str], ...],
    facts: tuple[str, ...],
    full: bool,
    details: bool | None,
    as_json: bool,
) -> int:
    """For every broadcast of MODELS: what it means, and what it would mean on --target.

    Exit status 0: all the same. 1: something is not. 2: a model cannot be read; the others are
    audited all the same.

    \b
    zerostride audit model.onnx --target ncnn
    """
    from ..models.audit import audit as run

    axis = _batch_axis(batch_axis)
    numbers = options.numbers(sizes)
    answers: list[Report | ZerostrideError] = []
    for model in models:
        try:
            with _bar(model) as progress:
                answers.append(
                    run(
                        model,
                        target,
                        via,
                        batch_axis=axis,
                        facts=facts or None,
                        sizes=numbers,
                        progress=progress,
                    )
                )
        except ZerostrideError as error:
            if len(models) == 1:
                raise
            answers.append(error)
    if as_json:
        said = [_as_dict(answer) for answer in answers]
        options.put_json(said[0] if len(said) == 1 else said)
    else:
        for answer in answers:
            _show(answer, full=full, details=details)
    return max(map(_status, answers))


def _as_dict(answer: Report | ZerostrideError) -> dict[str, Any]:
    if isinstance(answer, ZerostrideError):
        return options.error_dict(answer)
    return answer.as_dict()


def _status(answer: Report | ZerostrideError) -> int:
    if isinstance(answer, ZerostrideError):
        return options.BAD_INPUT
    return 0 if answer.ok else options.FOUND


def _batch_axis(text: str | None) -> int | None:
    if text is None:
        return None
    if text == "none":
        return -1
    if not re.fullmatch("[0-9]{1,3}", text):
        raise click.BadParameter(
            f"{text[:80]!r} is not an axis (0, 1, ...) or none", param_hint="--batch-axis"
        )
    return int(text)


def _bar(title: str) -> AbstractContextManager[Callable[[int, int], None] | None]:
    """A progress bar on a terminal, once there is enough to wait for."""
    if not sys.stderr.isatty():
        return nullcontext()
    return _Bar(title)


class _Bar(AbstractContextManager["Callable[[int, int], None] | None"]):
    def __init__(self, title: str) -> None:
        self.title = title
        self.bar: Any = None

    def __enter__(self) -> Callable[[int, int], None]:
        return self.update

    def update(self, done: int, total: int) -> None:
        """Shows that `done` of `total` nodes are judged."""
        if total < BAR_FROM or (done % 256 and done != total):
            return
        if self.bar is None:
            from rich.console import Console
            from rich.markup import escape
            from rich.progress import Progress

            self.bar = Progress(console=Console(stderr=True), transient=True)
            self.bar.start()
            self.task = self.bar.add_task(escape(shown(self.title, 60)), total=total)
        self.bar.update(self.task, completed=done)

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()


def _show(answer: Report | ZerostrideError, *, full: bool, details: bool | None) -> None:
    """The table of findings, then each in full, where they are few."""
    if isinstance(answer, ZerostrideError):
        click.echo(f"zerostride: {shown(answer)}", err=True)
        return
    click.echo(headline(answer))
    for note in notes(answer):
        click.echo(note)
    findings = list(answer.findings if full else answer.worst())
    if not findings:
        return
    _table([readable(finding) for finding in findings])
    if details or (details is None and len(findings) <= MOST_DETAILS):
        for finding in findings:
            click.echo("\n" + finding_text(finding))
    elif details is None:
        click.echo(f"\n{headline(answer)}\n--details draws each of them")


def _table(findings: list[Finding]) -> None:
    """A row a finding; shapes and fixes where there is room, since its drawing has them too."""
    from rich.table import Table
    from rich.text import Text

    from ..models.findings import Verdict
    from ..report import MARKS

    console = tables.console()
    roomy = console.width >= tables.ROOMY
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("verdict", no_wrap=True)
    table.add_column("node", overflow="fold")
    table.add_column("op", no_wrap=True, max_width=24)
    if roomy:
        table.add_column("shapes", overflow="fold")
    table.add_column("reason", overflow="fold", max_width=36)
    if roomy:
        table.add_column("fix", overflow="fold")
    for finding in findings:
        mark, style = MARKS[finding.verdict]
        shapes = " ".join(_shape(shape) for _, shape in finding.operands)
        fix = finding.fix.describe(finding.names) if finding.fix is not None else ""
        reason = str(finding.reason)
        if finding.verdict is Verdict.SAME_HERE and finding.when is not None:
            reason = f"{reason}: {shown(finding.when, 100)}"
        cells = [finding.node, finding.op, shapes, reason, fix]
        kept = cells if roomy else [finding.node, finding.op, reason]
        table.add_row(Text(mark, style), *map(Text, kept))
    tables.put_table(console, table)


def _shape(shape: tuple[Any, ...] | None) -> str:
    if shape is None:
        return "(unknown)"
    return "(" + ",".join("?" if size is None else str(size) for size in shape) + ")"
