"""How a conversion was done, as the text file beside it: a colleague can do it again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from ..models.findings import Conversion, Report
from ..runtimes.runners import RUNNERS
from ..system.version import __version__
from .next_command import after_convert, call, command, conversion_words
from .terminal import cause_table, causes_of
from .terminal_checks import change_table, check_lines
from .words import shown, told

#: The columns of the file, and of its labels.
_WIDTH, _LABEL = 100, 9


def record(report: Report) -> str:
    """The text: the command, the releases, the sizes, the changes, and how the outputs agree.

    It depends on the report alone, and names files without their folders.

    Args:
        report: of a conversion.
    """
    conversion = report.conversion
    assert conversion is not None, "a report of another command has no conversion"
    lines = [f"{_name(report, conversion)}, converted for {report.target} by zerostride", ""]
    for label, words in _facts(report, conversion):
        lines += [f"{label:{_LABEL}} {shown(words)}".rstrip()]
    for title, part in (
        ("changed", change_table(report.changes, _WIDTH)),
        ("outputs", check_lines(report, _WIDTH)),
        ("left", cause_table(causes_of(told(report)), _WIDTH) if told(report) else []),
    ):
        lines += ["", title, *(f"  {line.text}" for line in part)] if part else []
    return "\n".join([*lines, ""])


def _name(report: Report, conversion: Conversion) -> str:
    """The name of the model: of a file without its folder."""
    return PurePath(report.model).name if conversion.digest else report.model


def _facts(report: Report, conversion: Conversion) -> Iterator[tuple[str, str]]:
    """Labels with their words."""
    model = _name(report, conversion)
    if conversion.digest:
        yield "again", command("convert", conversion_words(report))
        yield "model", f"{model}, SHA-256 {conversion.digest}"
    else:
        yield "again", call("convert", [repr(report.target), "FOLDER"], conversion.options)
        yield "model", f"{model}, in memory"
    yield "by", ", ".join(filter(None, [f"zerostride {__version__}", conversion.converter]))
    yield "engine", f"{report.target} {report.release}".rstrip()
    for note in report.notes:
        yield "note", note
    if report.output is None:
        yield "file", "not converted"
    else:
        yield "file", PurePath(report.output).name
        if conversion.digest and conversion.inputs:
            file = PurePath(report.output).name
            runs = report.target in RUNNERS
            engine = report.target if runs else report.target.removesuffix("-gpu")
            words = [conversion.floats or model, "--target", engine, "--against", file]
            yield "proof", command("verify", [*words, "--input", conversion.inputs[0]])
    yield "inputs", ", ".join(conversion.inputs) or "not written: they have more than 64 MB"
    following = after_convert(report)
    if following:
        yield "next", following
