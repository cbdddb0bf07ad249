"""The next command after a report, ready to paste into a shell."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from ..errors import ModelError, printable
from ..models.findings import Finding, Outcome, Report, Verdict
from ..models.reasons import Cause
from ..runtimes.runners import RUNNERS

if TYPE_CHECKING:
    from ..models.options import ModelOptions


def after_audit(report: Report, findings: Sequence[Finding], given: ModelOptions) -> str:
    """The command that helps most: a port, the model's shapes or a reason's meaning.

    Args:
        report: an audit.
        findings: those that are not the same, the worst first; at least one.
        given: the options of the audit, which the next command repeats.
    """
    port = _port(report, findings, given)
    if port:
        return port
    unknown = [finding for finding in findings if finding.verdict is Verdict.UNKNOWN]
    if any(finding.reason == Cause.UNKNOWN_SHAPE for finding in unknown):
        return _command("shapes", [report.model])
    return _command("explain", [findings[0].code])


def after_verify(report: Report, given: ModelOptions) -> str:
    """The command that repairs what differs; nothing where there is none."""
    wrong = {check.node for check in report.checks if check.outcome is Outcome.DIFFERS}
    return _port(report, [one for one in report.findings if one.node in wrong], given)


def after_port(report: Report, given: ModelOptions, *, dry_run: bool) -> str:
    """The command that writes what a dry run shows, or that runs the result on its engine."""
    if not report.changes:
        return ""
    if dry_run:
        return _port(report, report.before, given)
    if report.target in RUNNERS and report.output is not None:
        words = [report.output, "--engine", report.target]
        return _command("verify", [*words, *_words_of(replace(given, via=None))])
    return ""


def _port(report: Report, findings: Sequence[Finding], given: ModelOptions) -> str:
    fixable = any(finding.fix is not None for finding in findings)
    if not fixable or given.layout is not None or not _is_writable(report.model):
        return ""
    output = ported_name(report.model, report.target)
    words = [report.model, "--target", report.target, "-o", output, *_words_of(given)]
    return _command("port", words)


def ported_name(model: str, target: str) -> str:
    """The file name of a port: the model's own, with the target before its end.

    >>> ported_name("models/a.onnx", "ncnn")
    'a.ncnn.onnx'
    """
    path = PurePath(model)
    return f"{path.stem}.{target}{path.suffix}"


def _is_writable(model: str) -> bool:
    from ..models.formats import format_of

    try:
        return format_of(model).writable
    except ModelError:
        return False


def _command(name: str, words: Sequence[str]) -> str:
    return printable(shlex.join(["zerostride", name, *words]))


def _words_of(given: ModelOptions) -> Iterator[str]:
    """The options of a port that say the same of the model."""
    if given.via is not None:
        yield from ("--via", given.via)
    if given.batch_axis is not None:
        yield from ("--batch-axis", "none" if given.batch_axis < 0 else str(given.batch_axis))
    for fact in given.facts or ():
        yield from ("--given", str(fact))
    for name, size in (given.sizes or {}).items():
        yield from ("--set", f"{name}={size}")
    shapes = given.input_shapes or {}
    for key, shape in shapes.items() if isinstance(shapes, Mapping) else enumerate(shapes):
        sizes = ",".join("?" if size is None else str(size) for size in shape) or "scalar"
        yield from ("--input-shape", f"{key}={sizes}" if isinstance(key, str) else sizes)
