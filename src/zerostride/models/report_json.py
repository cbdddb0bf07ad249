"""A report as JSON text, written finding by finding.

A large model has a hundred thousand findings. One tree of Python objects would take ten times the
memory of their text. Models repeat their blocks, so a part that many findings share is formatted
once.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .findings import Finding, Report

#: The parts of a finding that do not depend on its names: similar findings share them.
_SHARED = frozenset({"source", "target", "witness", "when"})

#: The number of indented texts that are kept, of some hundred bytes each.
_MOST_LAID = 1 << 12


def json_text(report: Report, indent: int | None = 2) -> str:
    """The same text as `json.dumps` of the report's data."""
    writer = _Writer(indent)
    lists = {"findings": report.findings, "before": report.before}
    items = (
        (key, writer.list(lists[key]) if key in lists else [writer.value(value, 1)])
        for key, value in report.fields().items()
    )
    return "".join(writer.object(items, 0))


class _Writer:
    """Writes JSON with one indent, and keeps the text of shared values."""

    def __init__(self, indent: int | None) -> None:
        self.indent = indent
        self.kept: dict[tuple[str, int], str] = {}
        self.laid: dict[str, str] = {}

    def value(self, value: Any, depth: int) -> str:
        """Data at a depth of the tree."""
        from .findings import plain

        if value is None or type(value) is str:
            return "null" if value is None else encode_basestring_ascii(value)
        data = plain(value)
        text = json.dumps(data, default=str, allow_nan=False)
        if self.indent is None or text in ("[]", "{}", "true", "false"):
            return text
        # Indenting takes ten times as long as writing one line, and findings repeat their data.
        key = f"{depth} {text}"
        if key not in self.laid:
            if len(self.laid) == _MOST_LAID:
                self.laid.clear()
            lines = json.dumps(data, indent=self.indent, default=str, allow_nan=False)
            # JSON escapes line ends within strings, so every line end here separates lines of data.
            self.laid[key] = lines.replace("\n", self._line(depth))
        return self.laid[key]

    def list(self, findings: Iterable[Finding]) -> Iterator[str]:
        """A list of findings, a field of the report."""
        # One string each: the pieces of all findings would take more memory than the text.
        texts = ([self._finding(finding)] for finding in findings)
        return self._around("[", texts, "]", 1)

    def object(self, items: Iterable[tuple[str, Iterable[str]]], depth: int) -> Iterator[str]:
        """An object of keys and pieces of text."""
        parts = (itertools.chain([f"{json.dumps(key)}: "], pieces) for key, pieces in items)
        return self._around("{", parts, "}", depth)

    def _finding(self, finding: Finding) -> str:
        parts = [
            f"{encode_basestring_ascii(key)}: {self._part(finding, key, part)}"
            for key, part in finding.parts().items()
        ]
        between = ", " if self.indent is None else "," + self._line(3)
        return "{" + self._line(3) + between.join(parts) + self._line(2) + "}"

    def _part(self, finding: Finding, key: str, part: Any) -> str:
        if key not in _SHARED:
            return self.value(part(), 3)
        place = key, id(getattr(finding, key))
        if place not in self.kept:
            self.kept[place] = self.value(part(), 3)
        return self.kept[place]

    def _around(
        self, begin: str, parts: Iterable[Iterable[str]], end: str, depth: int
    ) -> Iterator[str]:
        before = begin + self._line(depth + 1)
        for pieces in parts:
            yield before
            yield from pieces
            before = ", " if self.indent is None else "," + self._line(depth + 1)
        yield f"{begin}{end}" if before[0] == begin else self._line(depth) + end

    def _line(self, depth: int) -> str:
        return "" if self.indent is None else "\n" + " " * (self.indent * depth)


__all__ = ["json_text"]
