"""A baseline: accepted findings, so that only new findings fail.

A finding is identified by its model's file name without folders, target, converter, node, op,
shapes, axis, verdict and reason. It stays the same when the model moves to another folder, when
other nodes are renamed, or with another release of the target. It becomes another finding when its
meaning changes. A node without a name is called by its position (`Add_12`); the number is left out,
because a node inserted before it would change it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

from ...core.plan import Plan
from ...errors import ZerostrideError, printable
from ..findings import Finding, Known, Report, Unread, Verdict

#: Version of the file format.
VERSION = 1
#: The most bytes and findings of a baseline that is read; 100,000 findings have some 25 MB.
LARGEST, MOST = 1 << 28, 1_000_000
_LONGEST_TEXT = 100_000
_FIELDS = ("model", "target", "via", "node", "op", "shapes", "verdict", "reason")


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """The identity of a finding, all of it text, so that entries can be compared and sorted.

    Attributes:
        model: the name of the file, without folders.
        target, via: the engine, and the converter or "".
        node, op: the node's path and its op type.
        shapes: the operands' shapes, "(5,5) (5)", a size without a number as the file has it; then
            the attributes of the model's rule, "axis=1", which say where they lie.
        verdict, reason: the finding's.
    """

    model: str
    target: str
    via: str
    node: str
    op: str
    shapes: str
    verdict: str
    reason: str

    @property
    def fingerprint(self) -> str:
        """The entry as 16 hexadecimal digits."""
        words = json.dumps([getattr(self, name) for name in _FIELDS]).encode()
        return hashlib.sha256(words).hexdigest()[:16]

    def __str__(self) -> str:
        via = f" via {self.via}" if self.via else ""
        return (
            f"{self.model} on {self.target}{via}: {self.verdict} {self.op} {self.node} "
            f"{self.shapes} [{self.reason}]"
        )


def entry_of(finding: Finding, report: Report) -> Entry:
    """The identity of a finding of a report."""
    shapes = " ".join((*shapes_of(finding.operands), *_attributes(finding)))
    verdict, reason = str(finding.verdict), finding.reason
    return entry_of_node(report, finding.node, finding.op, shapes, verdict, reason)


def entry_of_node(
    report: Report, node: str, op: str, shapes: str, verdict: str, reason: str
) -> Entry:
    """The identity of any result of a report that names a node."""
    return Entry(
        model=PurePath(report.model).name,
        target=report.target,
        via=report.via or "",
        node=_without_position(node, op),
        op=op,
        shapes=shapes,
        verdict=verdict,
        reason=reason,
    )


def _without_position(path: str, op: str) -> str:
    """A path whose last name is `Add_12` ends with `Add_*`.

    >>> _without_position("body/Add_12", "Add"), _without_position("add_12", "Add")
    ('body/Add_*', 'add_12')
    """
    scope, slash, name = path.rpartition("/")
    if re.fullmatch(re.escape(op) + r"_[0-9]+", name):
        name = f"{op}_*"
    return f"{scope}{slash}{name}"


def _attributes(finding: Finding) -> list[str]:
    """The attributes of the model's rule: with another axis it is another finding."""
    source = finding.source
    if not isinstance(source, Plan):
        return []
    attributes = source.rule.attributes.items()
    return [f"{name}={value}" for name, value in attributes if value is not None]


def shapes_of(operands: Sequence[tuple[str, Sequence[Any] | None]]) -> Iterator[str]:
    """The shapes of operands in an entry's words."""
    return (_shape(shape) for _, shape in operands)


def _shape(shape: Sequence[Any] | None) -> str:
    if shape is None:
        return "?"
    return "(" + ",".join("?" if size is None else str(size) for size in shape) + ")"


@dataclass(frozen=True, slots=True)
class Baseline:
    """Entries, each with the number of findings that have this identity."""

    entries: Mapping[Entry, int]

    def judged(self, reports: Sequence[Report | Unread]) -> list[Report | Unread]:
        """The reports, each with the findings that the baseline accepts and its stale entries.

        An entry is stale only if its model was audited now, for its target: one baseline serves
        many models and targets, and a run may audit only some of them.
        """
        left = Counter(dict(self.entries))
        accepted: list[frozenset[int]] = []
        for report in reports:
            matched = set()
            for k, finding in enumerate(getattr(report, "findings", ())):
                if finding.verdict is Verdict.SAME:
                    continue
                entry = entry_of(finding, report)  # type: ignore[arg-type]
                if left[entry] > 0:
                    left[entry] -= 1
                    matched.add(k)
            accepted.append(frozenset(matched))
        gone: dict[tuple[str, str, str], list[str]] = {}
        for entry, count in sorted(left.items()):
            if count > 0:
                times = f" ({count} times)" if count > 1 else ""
                where = (entry.model, entry.target, entry.via)
                gone.setdefault(where, []).append(f"{entry}{times}")
        unread = {PurePath(report.model).name for report in reports if isinstance(report, Unread)}
        answers: list[Report | Unread] = []
        for report, known_here in zip(reports, accepted, strict=True):
            if isinstance(report, Report):
                name = PurePath(report.model).name
                stale = gone.pop((name, report.target, report.via or ""), [])
                # Another model of this name could not be read: the entries may be its findings.
                stale = [] if name in unread else stale
                report = replace(report, baseline=Known(known_here, tuple(stale)))
            answers.append(report)
        return answers

    def updated(self, reports: Sequence[Report | Unread]) -> Baseline:
        """The baseline with these reports' findings, and its old entries of other models."""
        read = [report for report in reports if isinstance(report, Report)]
        seen = {(PurePath(report.model).name, report.target, report.via or "") for report in read}
        unread = {PurePath(report.model).name for report in reports if isinstance(report, Unread)}
        kept: Counter[Entry] = Counter()
        for entry, count in self.entries.items():
            if (entry.model, entry.target, entry.via) not in seen or entry.model in unread:
                kept[entry] = count
        counts = Counter(
            entry_of(finding, report)
            for report in read
            for finding in report.findings
            if finding.verdict is not Verdict.SAME
        )
        return Baseline({**kept, **counts})

    def to_json(self) -> str:
        """The file's text: one entry per line, sorted, so that a diff shows the changes."""
        lines = []
        for entry, count in sorted(self.entries.items()):
            fields: dict[str, Any] = {name: getattr(entry, name) for name in _FIELDS}
            if count > 1:
                fields["count"] = count
            lines.append(json.dumps({"fingerprint": entry.fingerprint, **fields}))
        inner = ",\n    ".join(lines)
        body = f"[\n    {inner}\n  ]" if lines else "[]"
        return f'{{\n  "baseline": {VERSION},\n  "findings": {body}\n}}\n'


def read_baseline(path: str | Path) -> Baseline:
    """The baseline of a file.

    Raises:
        ZerostrideError: the file cannot be read or is not a baseline; says where and why.
    """
    file = Path(path)
    try:
        with file.open("rb") as opened:
            content = opened.read(LARGEST + 1)
    except FileNotFoundError:
        raise ZerostrideError(
            f"{path}: there is no such baseline yet; --write-baseline {path} makes one"
        ) from None
    except OSError as error:
        raise ZerostrideError(f"{path}: {error.strerror or error}") from None
    if len(content) > LARGEST:
        raise ZerostrideError(f"{path}: larger than a baseline can be ({LARGEST >> 20} MiB)")
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        problem = "nested too deep" if isinstance(error, RecursionError) else printable(str(error))
        raise ZerostrideError(f"{path}: not a baseline: {problem[:200]}") from None
    if not isinstance(data, dict) or not isinstance(data.get("findings"), list):
        raise ZerostrideError(f'{path}: not a baseline: it has no list "findings"')
    version = data.get("baseline")
    if type(version) is not int or version != VERSION:
        raise ZerostrideError(
            f"{path}: a baseline of version {printable(repr(version))[:40]}; "
            f"this release reads version {VERSION}: write it again (--write-baseline)"
        )
    if len(data["findings"]) > MOST:
        raise ZerostrideError(f"{path}: more than {MOST:,} findings")
    entries: Counter[Entry] = Counter()
    for number, row in enumerate(data["findings"], 1):
        entry, count = _entry(row, f"{path}: finding {number}")
        entries[entry] += count
    return Baseline(dict(entries))


def _entry(row: Any, where: str) -> tuple[Entry, int]:
    """One finding of the file; its fingerprint is for people, and not believed."""
    if not isinstance(row, dict):
        raise ZerostrideError(f"{where} is no object")
    values = []
    for name in _FIELDS:
        value = row.get(name)
        if not isinstance(value, str) or len(value) > _LONGEST_TEXT:
            raise ZerostrideError(f'{where}: "{name}" has to be text')
        values.append(value)
    count = row.get("count", 1)
    if type(count) is not int or not 1 <= count <= MOST:
        raise ZerostrideError(f'{where}: "count" has to be a whole number from 1 on')
    if values[_FIELDS.index("verdict")] not in set(Verdict):
        raise ZerostrideError(f'{where}: "verdict" has to be one of {", ".join(Verdict)}')
    return Entry(*values), count
