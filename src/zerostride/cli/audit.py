"""audit: what every broadcast of a model would mean on another engine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ..models.findings import Finding, Report, Unread, Verdict
from ..report import (
    MARKS,
    finding_text,
    headline,
    json_text,
    markdown,
    notes,
    overview,
    shown,
    told,
    unread_text,
)
from ..report.plain import stale_lines
from ..report.sheet import Sheet
from . import options, progress, reporting
from .files import write_whole
from .tables import Column, put_table

if TYPE_CHECKING:
    from ..models.audit.baseline import Baseline
    from ..models.options import ModelOptions

#: More findings than this are shown as a table without drawings, since hundreds of drawings are
#: too many to read. --details draws them anyway.
MOST_DETAILS = 20


@click.command(short_help="What a model's broadcasts would mean on another engine.")
@click.argument("models", nargs=-1, required=True, type=click.Path())
@click.option("--target", required=True, type=options.engine_name, help="The engine to judge for.")
@options.of_model("via", "batch_axis", "facts", "layout")
@click.option("--full", is_flag=True, help="Show findings that are the same or known, too.")
@click.option(
    "--details/--summary",
    default=None,
    help=f"Draw each finding, or show the table only; drawn if there are at most {MOST_DETAILS}.",
)
@reporting.outputs
@click.option(
    "--baseline",
    type=click.Path(),
    metavar="FILE",
    help="Findings that are known: only others count.",
)
@click.option(
    "--write-baseline",
    type=click.Path(),
    metavar="FILE",
    help="Write the findings to FILE as known; what it has of other models stays.",
)
@reporting.fail_on
@click.option(
    "--jobs",
    type=click.IntRange(1, 1024),
    metavar="N",
    help="Models read at once, each in a process of its own; as many as there are cores.",
)
@click.option("--markdown", "as_markdown", is_flag=True, help="Print Markdown, for pull requests.")
@options.as_json
def audit(
    models: tuple[str, ...],
    target: str,
    given: ModelOptions,
    full: bool,
    details: bool | None,
    outputs: tuple[str, ...],
    baseline: str | None,
    write_baseline: str | None,
    fail_on: frozenset[str],
    jobs: int | None,
    as_markdown: bool,
    as_json: bool,
) -> int:
    """For every broadcast of MODELS: what it means, and what it would mean on --target.

    MODELS are files, folders (searched for model files) and quoted patterns.

    Exit status 0: nothing that --fail-on names is new. 1: something is. 2: a model cannot be read;
    the others are audited all the same.

    \b
    zerostride audit model.onnx --target ncnn
    zerostride audit models/ --target openvino -o report.html --baseline known.json
    """
    if as_json and as_markdown:
        raise click.UsageError("--json and --markdown are two forms of one output")
    accepted, updated = _baselines(baseline, write_baseline)
    many, answers = _answers(models, target, jobs, given)
    if updated is not None and write_baseline is not None:
        updated = updated.updated(answers)
        write_whole(write_baseline, updated.to_json().encode())
        accepted = accepted or updated
    if accepted is not None:
        answers = accepted.judged(answers)
    first = answers[0]
    shown = answers if many or isinstance(first, Unread) else first
    reporting.save(outputs, shown)
    if as_json:
        click.echo(json_text(shown), nl=False)
    elif as_markdown:
        click.echo(markdown(shown), nl=False)
    else:
        _put(answers, full=full, details=details)
    return reporting.status(answers, frozenset() if write_baseline else fail_on)


def _baselines(baseline: str | None, write: str | None) -> tuple[Baseline | None, Baseline | None]:
    """The baseline to compare with and the one to update; both are read before hours of work."""
    if baseline is None and write is None:
        return None, None
    from ..models.audit.baseline import Baseline, read_baseline

    accepted = None if baseline is None else read_baseline(baseline)
    if write is None:
        return accepted, None
    return accepted, read_baseline(write) if os.path.lexists(write) else Baseline({})


def _answers(
    words: Sequence[str], target: str, jobs: int | None, given: ModelOptions
) -> tuple[bool, list[Report | Unread]]:
    """Whether the words may name many models, and the report of each."""
    from ..models.formats.file_search import find_models, is_single

    if is_single(words):
        from ..models.audit.run import audit_model

        with progress.of_nodes(words[0]) as moved:
            return False, [audit_model(words[0], target, given, moved)]
    from ..models.audit.many import audit_many

    with progress.bar("models", 2) as moved:
        files = find_models(words)
        return True, audit_many(files, target, given, jobs=jobs, progress=moved)


def _put(answers: Sequence[Report | Unread], *, full: bool, details: bool | None) -> None:
    """Prints the report of every model, and a table of all models if there are several."""
    if details is None and len(answers) > 1:
        reports = [report for report in answers if isinstance(report, Report)]
        count = sum(len(report.findings if full else report.fresh) for report in reports)
        if count > MOST_DETAILS:
            details = False
    for answer in answers:
        _show(answer, full=full, details=details)
    if len(answers) > 1:
        click.echo("\n" + overview(answers))


def _show(answer: Report | Unread, *, full: bool, details: bool | None) -> None:
    """Prints the table of findings, then each finding in full if they are few."""
    if isinstance(answer, Unread):
        click.echo(f"zerostride: {unread_text(answer)}", err=True)
        return
    click.echo(headline(answer))
    for line in (*notes(answer), *stale_lines(answer)):
        click.echo(line)
    findings = list(answer.findings if full else told(answer))
    if not findings:
        return
    put_table(_COLUMNS, map(_row, findings), (MARKS[one.verdict][1] for one in findings))
    if details or (details is None and len(findings) <= MOST_DETAILS):
        for finding in findings:
            click.echo("\n" + finding_text(finding))
    elif details is None:
        click.echo(f"\n{headline(answer)}\n--details draws each of them")


#: Shapes and fixes only if there is room: drawings have them too.
_COLUMNS = (
    Column("verdict", folds=False),
    Column("node"),
    Column("op", 24, folds=False),
    Column("shapes", roomy=True),
    Column("reason", 36),
    Column("fix", roomy=True),
)


def _row(finding: Finding) -> list[str]:
    sheet = Sheet(finding)
    reason = str(finding.reason)
    if finding.verdict is Verdict.SAME_HERE and finding.when is not None:
        reason = f"{reason}: {shown(finding.when, 100)}"
    mark, _ = MARKS[finding.verdict]
    return [mark, sheet.finding.node, sheet.finding.op, sheet.shapes, reason, sheet.fix]
