"""Findings as GitHub's workflow commands: lines of a log that GitHub shows at a file and line.

GitHub shows ten errors and ten warnings of a step. Each model's worst findings are therefore first.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath

from ..models.findings import Finding, Report, Unread, Verdict
from .plain import unread_text
from .sheet import Sheet
from .words import Reports, listed, shapes_text, shown, told, total_line

_COMMANDS: Mapping[Verdict, str] = {
    Verdict.DIFFERENT: "error",
    Verdict.REFUSED: "error",
    Verdict.SAME_HERE: "warning",
    Verdict.UNKNOWN: "notice",
}


def github_log(reports: Reports) -> str:
    """A line for each finding that is neither the same nor accepted, and a line with the counts."""
    every = listed(reports)
    lines = []
    for report in every:
        if isinstance(report, Unread):
            lines.append(_command("error", report.model, 0, "not read", unread_text(report)))
        else:
            lines += [_of_finding(report, finding) for finding in told(report)]
    return "\n".join([*lines, total_line(every)]) + "\n"


def _of_finding(report: Report, finding: Finding) -> str:
    sheet = Sheet(finding, report.target)
    finding = sheet.finding
    words = f"{finding.op} {finding.node} of {shapes_text(finding)}: {finding.message}"
    parts = [words, *(f"{section.label}: {shown(section.text)}" for section in sheet.sections)]
    file, line = report.model, 0
    if finding.origin is not None and finding.origin.file and finding.origin.line > 0:
        file, line = finding.origin.file, finding.origin.line
    title = f"{report.target}: {sheet.mark} [{finding.code} {finding.reason}]"
    return _command(_COMMANDS[finding.verdict], file, line, title, "\n".join(parts))


def _command(name: str, file: str, line: int, title: str, message: str) -> str:
    """A workflow command; `line` 0 is the file as a whole.

    >>> _command("error", "a,b.onnx", 0, "ncnn: different", "100%\\nfix: reshape")
    '::error file=a%2Cb.onnx,title=ncnn%3A different::100%25%0Afix: reshape'
    """
    place = {"file": PurePath(shown(file)).as_posix(), "line": str(line or ""), "title": title}
    properties = ",".join(f"{key}={_escaped(text, ':,')}" for key, text in place.items() if text)
    return f"::{name} {properties}::{_escaped(message)}"


def _escaped(text: str, more: str = "") -> str:
    """The text with the characters that end a message, or a property, as their codes."""
    codes = {ord(mark): f"%{ord(mark):02X}" for mark in f"%\r\n{more}"}
    return text.translate(codes)
