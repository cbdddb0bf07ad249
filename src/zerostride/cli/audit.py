"""audit: what every broadcast of a model would mean on another engine."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import click

from ..engines.table import ENGINES
from ..report import finding_text, headline
from . import options

if TYPE_CHECKING:
    from ..models.findings import Report

#: Fewer nodes than this are done before a progress bar could be read.
BAR_FROM = 2000


@click.command()
@click.argument("models", nargs=-1, required=True, type=click.Path(dir_okay=False))
@click.option(
    "--target", required=True, type=click.Choice(list(ENGINES)), help="The engine to judge for."
)
@click.option("--via", type=click.Choice(["pnnx"]), help="Judge what this converter makes of it.")
@click.option(
    "--batch-axis",
    help="Batch axis of the model's inputs, for engines that drop it; 'none' if there is none.",
)
@click.option("--full", is_flag=True, help="Show findings that are the same, too.")
@click.option("--summary", is_flag=True, help="Show the table only.")
@options.as_json
def audit(
    models: tuple[str, ...],
    target: str,
    via: str | None,
    batch_axis: str | None,
    full: bool,
    summary: bool,
    as_json: bool,
) -> int:
    """For every broadcast of MODELS: what it means, and what it would mean on --target.

    Exit status 0: all the same. 1: something is not. 2: a model cannot be read.

    \b
    zerostride audit model.onnx --target ncnn
    """
    from ..models.audit import audit as run

    axis = _batch_axis(batch_axis)
    reports = []
    for model in models:
        with _bar(model) as progress:
            reports.append(run(model, target, via, batch_axis=axis, progress=progress))
    if as_json:
        answers = [report.as_dict() for report in reports]
        options.put_json(answers[0] if len(answers) == 1 else answers)
    else:
        for report in reports:
            _show(report, full=full, summary=summary)
    return 0 if all(report.ok for report in reports) else options.FOUND


def _batch_axis(text: str | None) -> int | None:
    if text is None:
        return None
    if text == "none":
        return -1
    if not text.isdigit():
        raise click.BadParameter(
            f"{text!r} is not an axis (0, 1, ...) or none", param_hint="--batch-axis"
        )
    return int(text)


def _bar(title: str) -> AbstractContextManager[Callable[[int, int], None] | None]:
    """A progress bar on a terminal, once there is enough to wait for."""
    import sys

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
            from rich.progress import Progress

            self.bar = Progress(console=Console(stderr=True), transient=True)
            self.bar.start()
            self.task = self.bar.add_task(self.title, total=total)
        self.bar.update(self.task, completed=done)

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()


def _show(report: Report, *, full: bool, summary: bool) -> None:
    """The table of findings, then each in full."""
    click.echo(headline(report))
    for note in report.notes:
        click.echo(f"note: {note}")
    findings = list(report.findings if full else report.worst())
    if findings:
        _table(findings)
    if not summary:
        for finding in findings:
            click.echo("\n" + finding_text(finding))


def _table(findings: list[Any]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from ..report import MARKS

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("verdict", "node", "op", "shapes", "reason", "fix"):
        table.add_column(column, overflow="fold")
    for finding in findings:
        mark, style = MARKS[finding.verdict]
        shapes = " ".join(_shape(shape) for _, shape in finding.operands)
        fix = finding.fix.describe(finding.names) if finding.fix is not None else ""
        row = [
            Text(mark, style),
            *map(Text, (finding.node, finding.op, shapes, finding.reason, fix)),
        ]
        table.add_row(*row)
    console = Console(soft_wrap=False)
    if not console.is_terminal:
        console.width = 140  # a file or a pipe has no width of its own
    console.print(table)


def _shape(shape: tuple[Any, ...] | None) -> str:
    if shape is None:
        return "(unknown)"
    return "(" + ",".join("?" if size is None else str(size) for size in shape) + ")"
