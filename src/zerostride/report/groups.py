"""Groups of findings that differ in names alone, since models repeat their blocks."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from ..core.plan import Plan
from ..errors import BroadcastError
from ..models.findings import Finding


@dataclass(frozen=True, slots=True)
class Group:
    """Findings of one kind.

    Attributes:
        findings: at least one; they differ in the names of nodes and operands.
        accepted: whether a baseline accepts them.
    """

    findings: tuple[Finding, ...]
    accepted: bool = False

    @property
    def first(self) -> Finding:
        """The one that is shown."""
        return self.findings[0]


def grouped(findings: Iterable[tuple[Finding, bool]]) -> list[Group]:
    """Findings, each with whether it is accepted, in groups, in the order of their first ones."""
    groups: dict[tuple[bool, Hashable], list[Finding]] = {}
    for finding, accepted in findings:
        groups.setdefault((accepted, _key(finding)), []).append(finding)
    return [Group(tuple(group), accepted) for (accepted, _), group in groups.items()]


def _key(finding: Finding) -> Hashable:
    fix, witness = finding.fix, finding.witness
    planned = isinstance(finding.source, Plan) and finding.target is not None
    return (
        finding.verdict,
        finding.reason,
        finding.op,
        tuple(shape and tuple(map(str, shape)) for _, shape in finding.operands),
        _plan_key(finding.source),
        _plan_key(finding.target),
        None if fix is None else (fix.describe(), str(fix.rule)),
        None if witness is None else str(witness),
        str(finding.when),
        # Two plans determine the message, except for names.
        None if planned else _unnamed(finding.message, finding.names),
    )


def _plan_key(plan: object) -> Hashable:
    if isinstance(plan, BroadcastError):
        return (plan.reason, plan.axis, str(plan.rule))
    return (plan, repr(plan))


def _unnamed(words: str, names: Sequence[str]) -> tuple[str | int, ...]:
    """A message in parts, with an operand's position in place of its name."""
    places = {repr(name): k for k, name in reversed([*enumerate(names)]) if name}
    if not places:
        return (words,)
    longest_first = sorted(places, key=len, reverse=True)
    parts = re.split(f"({'|'.join(map(re.escape, longest_first))})", words)
    return tuple(places.get(part, part) for part in parts)
