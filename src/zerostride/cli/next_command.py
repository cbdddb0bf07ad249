"""The next command after a report, ready to paste into a shell."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from ..errors import ModelError, printable
from ..models.findings import Finding, Report, Verdict
from ..models.reasons import Cause

if TYPE_CHECKING:
    from ..models.options import ModelOptions


def after_audit(report: Report, findings: Sequence[Finding], given: ModelOptions) -> str:
    """The command that helps most: a port, the model's shapes or a reason's meaning.

    Args:
        report: an audit.
        findings: those that are not the same, the worst first; at least one.
        given: the options of the audit, which the next command repeats.
    """
    fixable = any(finding.fix is not None for finding in findings)
    if fixable and given.layout is None and _is_writable(report.model):
        output = ported_name(report.model, report.target)
        words = [report.model, "--target", report.target, "-o", output, *_words_of(given)]
        return _command("port", words)
    unknown = [finding for finding in findings if finding.verdict is Verdict.UNKNOWN]
    if any(finding.reason == Cause.UNKNOWN_SHAPE for finding in unknown):
        return _command("shapes", [report.model])
    return _command("explain", [findings[0].code])


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
