"""audit: what every broadcast of a model would mean on another engine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from ..errors import ZerostrideError
from ..models.findings import Report, Unread
from ..report import (
    FORMS,
    finding_text,
    github_log,
    headline,
    json_text,
    node_data,
    notes,
    overview,
    shown,
    told,
    unread_text,
)
from ..report.next_command import after_audit, after_audits
from ..report.plain import stale_lines
from ..report.table import wrapped
from ..report.terminal import MOST_DRAWN, brief, cause_table, causes_of, meaning, summary, worst_of
from ..system.spelling import meant
from . import options, progress, reporting
from .files import write_whole
from .tables import put_lines, put_text, width

if TYPE_CHECKING:
    from ..models.audit.baseline import Baseline
    from ..models.options import ModelOptions


#: The values of --format.
_PRINTED = {
    "github": github_log,
    "markdown": FORMS[".md"],
    "model-explorer": node_data,
    "sarif": FORMS[".sarif"],
}


@click.command(short_help="What a model's broadcasts would mean on another engine.")
@click.argument("models", nargs=-1, required=True, type=click.Path())
@options.target(
    type=options.release_name,
    help="The engine to judge for; with --strict it may be left out: the format's own.",
)
@options.of_model("via", "batch_axis", "facts", "layout", "strict")
@click.option(
    "--full", is_flag=True, help="List every node, those that are the same or known, too."
)
@click.option("--summary", is_flag=True, help="Answer in a few lines: is it clean, which ops not.")
@click.option("--details", is_flag=True, help="Draw every finding, not the worst three.")
@click.option(
    "--finding", "nodes", multiple=True, metavar="NODE", help="Draw this node's finding alone."
)
@reporting.audit_reports
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
@click.option(
    "--format",
    "form",
    type=click.Choice(sorted(_PRINTED)),
    help="Print annotations of GitHub's logs, Markdown, for pull requests, node data of Model "
    "Explorer, or SARIF, for code hosts and editors.",
)
@click.option("--markdown", "form", flag_value="markdown", help="The same as --format markdown.")
@options.as_json
def audit(
    models: tuple[str, ...],
    target: str | None,
    given: ModelOptions,
    full: bool,
    summary: bool,
    details: bool,
    nodes: tuple[str, ...],
    reports: tuple[str, ...],
    baseline: str | None,
    write_baseline: str | None,
    fail_on: frozenset[str],
    jobs: int | None,
    form: str | None,
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
    target = target or _own_engine(models, given)
    if as_json and form is not None:
        raise click.UsageError(f"--json and --format {form} are two forms of one output")
    if summary and (details or nodes or full):
        raise click.UsageError("--summary goes without --details, --finding and --full")
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
    reporting.save(reports, shown)
    if as_json:
        click.echo(json_text(shown), nl=False)
    elif form is not None:
        click.echo(_PRINTED[form](shown), nl=False)
    else:
        known = baseline or write_baseline
        layout = _Form(
            given=given, full=full, summary=summary, details=details, nodes=nodes, baseline=known
        )
        layout.put(answers)
    return reporting.status(answers, frozenset() if write_baseline else fail_on)


def _own_engine(words: Sequence[str], options: ModelOptions) -> str:
    """The engine of the models' format, for one who only asks what looks accidental in them."""
    if not options.strict:
        context = click.get_current_context()
        (option,) = (param for param in context.command.params if param.name == "target")
        raise click.MissingParameter(ctx=context, param=option)
    from ..models.formats import format_of
    from ..models.formats.file_search import is_single

    return (format_of(words[0]).engine if is_single(words) else "") or "onnxruntime"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """The options of the command that decide how an audit is printed."""

    given: ModelOptions
    full: bool
    summary: bool
    details: bool
    nodes: Sequence[str]
    baseline: str | None

    def put(self, answers: Sequence[Report | Unread]) -> None:
        """Prints the report of every model, and a table of all models if there are several."""
        for answer in answers:
            if isinstance(answer, Unread):
                put_text(f"zerostride: {unread_text(answer)}", err=True)
        reports = [answer for answer in answers if isinstance(answer, Report)]
        if self.nodes:
            self._put_findings(reports)
            return
        for report in reports:
            self._put_report(report, alone=len(answers) == 1)
        if len(answers) > 1:
            put_text("\n" + overview(answers))
            command = "" if self.summary else after_audits(reports, self.given, self.baseline)
            put_lines(["", f"next: {command}"] if command else [])

    def _put_report(self, report: Report, *, alone: bool) -> None:
        """Prints the table of causes, the worst findings, and what to do next."""
        findings = list(report.findings if self.full else told(report))
        lines = ["", headline(report)] if findings and not alone else [headline(report)]
        if self.summary:
            answer = summary(report, findings, width()) if findings or alone else []
            put_lines([*lines, *answer])
            if alone and told(report):
                self._put_next(report)
            return
        put_lines([*lines, *notes(report), *stale_lines(report)])
        if not findings:
            goes_on = alone and report.baseline is None
            command = after_audit(report, (), self.given) if goes_on else ""
            put_lines([f"next: {command}"] if command else [])
            return
        causes = causes_of(findings)
        put_lines(cause_table(causes, width(), full=self.full))
        if self.details:
            for finding in findings:
                put_text("\n" + finding_text(finding))
        elif alone:
            for finding in worst_of(causes_of(told(report))):
                put_lines(["", *brief(finding, report.target, width())])
        if alone and told(report):
            self._put_end(report)

    def _put_end(self, report: Report) -> None:
        """Prints what the findings mean, and the next command."""
        findings = told(report)
        words = meaning(report, causes_of(findings))
        if not self.details and len(findings) > MOST_DRAWN:
            words += "  (--details draws all, --finding NODE one)"
        put_lines(["", *wrapped(words, width())])
        self._put_next(report)

    def _put_next(self, report: Report) -> None:
        put_text(f"next: {after_audit(report, told(report), self.given)}")

    def _put_findings(self, reports: Sequence[Report]) -> None:
        """Prints the findings of nodes in full.

        Raises:
            ZerostrideError: no model has a node of this name.
        """
        every = [finding for report in reports for finding in report.findings]
        for node in self.nodes:
            findings = [finding for finding in every if finding.node == node]
            if not findings:
                hint = meant(node, [shown(one.node) for one in every])
                raise ZerostrideError(f"no broadcast is called {node!r}{hint}")
            for finding in findings:
                put_text(finding_text(finding))
