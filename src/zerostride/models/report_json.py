"""A report as JSON text, put together finding by finding: a large model has a hundred thousand.

As one tree of Python objects they would take ten times the memory of their text. Models repeat
their blocks, so what many findings share is written once.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, Any

from ..attention.plan import AttentionPlan
from ..core.plan import Plan
from ..errors import BroadcastError
from .sources import evidence

if TYPE_CHECKING:
    from .findings import Finding, Report

#: The parts of a finding that do not depend on its names: similar findings share them.
_SHARED = frozenset({"source", "target", "witness", "when"})

_WORDS = {None: "null", True: "true", False: "false"}


def json_text(report: Report, indent: int | None = 2) -> str:
    """The report's data as `json.dumps` writes it."""
    writer = _Writer(indent)
    lists = {"findings": report.findings, "before": report.before}
    items = (
        (key, writer.list(lists[key]) if key in lists else [writer.value(value, 1)])
        for key, value in report.fields().items()
    )
    return "".join(writer.object(items, 0))


def plain(value: Any) -> Any:
    """Data in which numbers that JSON lacks are "NaN", "Infinity" and "-Infinity"."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return json_number(value)


def json_number(value: Any) -> Any:
    """A value for JSON: numbers that JSON lacks become their names.

    >>> json_number(float("-inf")), json_number(2.5)
    ('-Infinity', 2.5)
    """
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def plan_dict(plan: Plan | AttentionPlan | BroadcastError | None) -> dict[str, Any] | None:
    """A plan or a refusal, for JSON."""
    if plan is None:
        return None
    if isinstance(plan, BroadcastError):
        return {
            "error": plan.reason,
            "detail": plan.detail,
            "silent": plan.silent,
            "shapes": plan.shapes,
            "axis": plan.axis,
        }
    if isinstance(plan, AttentionPlan):
        return dict(plan.as_dict())
    source = evidence(plan.rule)
    return {
        "shape": plan.shape,
        "operands": plan.operands,
        "aligned": plan.aligned,
        "rule": plan.rule.name,
        "attributes": dict(plan.rule.attributes),
        "engine": plan.rule.engine,
        "evidence": None if source is None else {"source": source.source, "run": source.run},
    }


class _Writer:
    """Writes JSON with the separators of one indent; keeps what shared values are written as."""

    def __init__(self, indent: int | None) -> None:
        self.indent = indent
        self.kept: dict[tuple[str, int], str] = {}

    def value(self, value: Any, depth: int) -> str:
        """Data at a depth of the tree; json's own encoder takes twice as long with an indent."""
        kind = type(value)
        if kind is str:
            return encode_basestring_ascii(value)
        if kind is int:
            return repr(value)
        if value is None or value is True or value is False:
            return _WORDS[value]
        if isinstance(value, dict):
            parts = [
                f"{encode_basestring_ascii(key)}: {self.value(item, depth + 1)}"
                for key, item in value.items()
            ]
            return self._joined("{", parts, "}", depth)
        if isinstance(value, list | tuple):
            return self._joined("[", [self.value(item, depth + 1) for item in value], "]", depth)
        if isinstance(value, float):
            value = json_number(value)
            return repr(value) if isinstance(value, float) else f'"{value}"'
        return encode_basestring_ascii(str(value))

    def _joined(self, begin: str, parts: Sequence[str], end: str, depth: int) -> str:
        if not parts:
            return begin + end
        if self.indent is None:
            return f"{begin}{', '.join(parts)}{end}"
        line = self._line(depth + 1)
        return f"{begin}{line}{(',' + line).join(parts)}{self._line(depth)}{end}"

    def list(self, findings: Iterable[Finding]) -> Iterator[str]:
        """The findings, which the report has as one of its fields."""
        # One string each: the many pieces of all of them take more memory than the text.
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
        return self._joined("{", parts, "}", 2)

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
