"""The next command after a report, ready to paste into a shell."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from ..errors import ModelError, Reason, printable
from ..models.findings import Conversion, Finding, Outcome, Report, Verdict
from ..models.options import command_words
from ..models.reasons import Cause
from ..runtimes.runners import RUNNERS
from .words import WORST

if TYPE_CHECKING:
    from ..models.options import ModelOptions


def after_audit(report: Report, findings: Sequence[Finding], options: ModelOptions) -> str:
    """The command that helps most: a port, the model's shapes or a reason's meaning.

    After a clean audit it is the conversion, or a run on the engine.

    Args:
        report: an audit.
        findings: those that are not the same, the worst first.
        options: the options of the audit, which the next command repeats.
    """
    if not findings:
        return _proof(report, options)
    port = _port(report, findings, options)
    if port:
        return port
    unknown = [finding for finding in findings if finding.verdict is Verdict.UNKNOWN]
    if any(finding.reason == Cause.UNKNOWN_SHAPE for finding in unknown):
        return command("shapes", [report.model])
    by_converter = options.via != "none"
    if by_converter and all(finding.reason == Reason.NO_OP for finding in findings):
        converted = _conversion(report, options)  # it tries other ops
        if converted:
            return converted
    return command("explain", [findings[0].code])


def after_audits(
    reports: Sequence[Report], options: ModelOptions, baseline: str | None = None
) -> str:
    """The audit of the worst of several models alone; empty where all are the same or known.

    Args:
        reports: audits for one target.
        options: their options, which the next command repeats.
        baseline: the file of accepted findings, if there is one.
    """
    worst = max(reports, key=_severity, default=None)
    if worst is None or not worst.fresh:
        return ""
    layout = [] if options.layout is None else ["--layout", options.layout]
    known = [] if baseline is None else ["--baseline", baseline]
    words = [worst.model, "--target", worst.target, *command_words(options), *layout, *known]
    return command("audit", words)


def _severity(report: Report) -> tuple[int, ...]:
    """The number of new findings by verdict, the worst verdict first."""
    tally = Counter(finding.verdict for finding in report.fresh)
    return tuple(tally[verdict] for verdict in WORST)


def after_verify(report: Report, options: ModelOptions, against: str | None = None) -> str:
    """The command that repairs the nodes that differ, finds them, or converts what agrees.

    Args:
        report: a verification.
        options: its options, which the next command repeats.
        against: the conversion that ran, if one did.
    """
    if report.ok:
        return "" if against is not None or _is_whole(report) else _conversion(report, options)
    if against is not None:
        words = [report.model, against, *command_words(replace(options, via=None))]
        return command("bisect", words)
    wrong = {check.node for check in report.checks if check.outcome is Outcome.DIFFERS}
    return _port(report, [finding for finding in report.findings if finding.node in wrong], options)


def _is_whole(report: Report) -> bool:
    """Whether the checks are of the model's outputs, and not of its nodes."""
    return any(not check.node for check in report.checks)


def after_bisect(report: Report, options: ModelOptions) -> str:
    """The command that avoids a culprit: a conversion, which tries other ops; or none."""
    culprit = report.culprit
    if culprit is None or culprit.side != "other":
        return ""
    return _conversion(report, options)


def after_equivalent(
    report: Report, options: ModelOptions, witness: str | None, region: str | None
) -> str:
    """The command that writes the run of a difference or the nodes in question, or bisects."""
    result = report.equivalence
    if result is None or report.ok:
        return ""
    words = [report.model, report.target, *command_words(options)]
    if result.arrays and witness is None:
        return command("equivalent", [*words, "--witness", "witness.npz"])
    if result.regions and region is None:
        return command("equivalent", [*words, "--region", "region"])
    differences = (output.difference for output in result.outputs)
    shown = next(filter(None, differences), None)
    if shown is not None:  # at other sizes they may not differ
        options = replace(options, sizes={**(options.sizes or {}), **shown.sizes})
    return command("bisect", [report.model, report.target, *command_words(options)])


def after_port(report: Report, options: ModelOptions, *, dry_run: bool) -> str:
    """The command that writes what a dry run shows, or that runs the result on its engine."""
    if not report.changes:
        return ""
    if dry_run:
        return _port(report, report.before, options)
    if report.target in RUNNERS and report.output is not None:
        words = [report.output, "--target", report.target]
        return command("verify", [*words, *command_words(options)])
    return ""


def after_convert(report: Report, folder: str = "FOLDER") -> str:
    """The command that finds a difference or explains what is left; empty where all is well.

    Args:
        report: of a conversion.
        folder: where its files are.
    """
    conversion = report.conversion
    if conversion is not None and not conversion.digest:
        return _call_after(report, conversion, folder)
    options = () if conversion is None else conversion.options
    if conversion is not None and conversion.quantised and not report.ok:
        words = [report.model, "--target", report.target, "-o", folder, *options, *_inputs(report)]
        return command("convert", [*words, "--dequantize"])
    if report.output is None:
        words = [report.model, "--target", report.target, *options]
        return command("audit", [*words, "--details"])
    if any(check.outcome is Outcome.DIFFERS for check in report.checks):
        model = (
            report.model
            if conversion is None or not conversion.floats
            else f"{folder}/{conversion.floats}"
        )
        return command("bisect", [model, report.output, *options, *_inputs(report)])
    left = report.fresh
    return command("explain", [left[0].code]) if left else ""


def _call_after(report: Report, conversion: Conversion, folder: str) -> str:
    """The same for a model in memory or a module, as a call in Python."""
    target, options = repr(report.target), conversion.options
    if conversion.quantised and not report.ok:
        return call("convert", [target, repr(folder), "dequantize=True"], options)
    if report.output is None:
        return call("audit", [target], options)
    if any(check.outcome is Outcome.DIFFERS for check in report.checks):
        return call("bisect", [repr(report.output)], options)
    left = report.fresh
    return command("explain", [left[0].code]) if left else ""


def conversion_words(report: Report) -> list[str]:
    """The words of the command that converts again, in the folder of the model."""
    conversion = report.conversion
    options = () if conversion is None else conversion.options
    model = PurePath(report.model).name
    floats = ["--dequantize"] if conversion is not None and conversion.floats else []
    words = [model, "--target", report.target, "-o", "FOLDER", *options]
    return [*words, *_inputs(report), *floats]


def _inputs(report: Report) -> list[str]:
    """The options that give the inputs of a conversion's proof."""
    conversion = report.conversion
    if conversion is None:
        return []
    if conversion.given and conversion.inputs:
        return ["--input", conversion.inputs[0]]
    return ["--seed", str(conversion.seed)] if conversion.seed else []


def _proof(report: Report, options: ModelOptions) -> str:
    """The conversion of a model; where none runs here, the run of its broadcasts."""
    converted = _conversion(report, options)
    if converted or report.target not in RUNNERS:
        return converted
    return command("verify", [report.model, "--target", report.target, *command_words(options)])


def _conversion(report: Report, options: ModelOptions) -> str:
    """The conversion to the target, if its converter reads such files; "" if not."""
    from ..models.formats import format_of
    from ..runtimes.convert.converters import ENGINE_CONVERTERS

    row = ENGINE_CONVERTERS.get(report.target)
    if row is None:
        return ""
    try:
        form = format_of(report.model).name
    except ModelError:
        return ""
    if form not in (*row.reads, row.own):
        return ""
    words = [report.model, "--target", report.target, "-o", PurePath(report.model).stem]
    return command("convert", [*words, *command_words(replace(options, via=None))])


def _port(report: Report, findings: Sequence[Finding], options: ModelOptions) -> str:
    fixable = any(finding.fix is not None for finding in findings)
    if not fixable or options.layout is not None or not _is_writable(report.model):
        return ""
    output = ported_name(report.model, report.target)
    words = [report.model, "--target", report.target, "-o", output, *command_words(options)]
    return command("port", words)


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


def command(name: str, words: Sequence[str]) -> str:
    """A command of this program, ready to paste into a shell."""
    return printable(shlex.join([*_program(), name, *words]))


def call(name: str, arguments: Sequence[str], options: Sequence[str] = ()) -> str:
    """A call of this package for a model that is no file.

    >>> call("audit", ["'ncnn'"], ["--set", "N=4"])
    "zerostride.audit(model, 'ncnn', ...)"
    """
    words = ["model", *arguments, *(["..."] if options else [])]
    return printable(f"zerostride.{name}({', '.join(words)})")


def _program() -> list[str]:
    """How this program was called: by its name, or by a tool that runs it without installing."""
    folders = set(PurePath(sys.prefix).parts)
    if any(folder.startswith(("archive-v", "builds-v")) for folder in folders) and "uv" in folders:
        return ["uvx", "zerostride"]
    if {"pipx", ".cache"} <= folders:
        return ["pipx", "run", "zerostride"]
    return ["zerostride"]
