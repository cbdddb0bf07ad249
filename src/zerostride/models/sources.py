"""The sources of the rules behind findings, as the rows of the tables name them."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core.plan import Plan, RuleUse
from ..core.rules import RULES
from ..derive.explain.facts import row_of
from ..engines.table import ENGINES

if TYPE_CHECKING:
    from .findings import Finding


@dataclass(frozen=True, slots=True)
class Evidence:
    """A source.

    Attributes:
        what: the rule, or the behaviour of a release, that it documents.
        source: the document, or the run that showed it.
        run: whether it was run (True) or only read.
    """

    what: str
    source: str
    run: bool

    @property
    def how(self) -> str:
        """The same in a word."""
        return "run" if self.run else "read"


def evidence(use: object) -> Evidence | None:
    """The source of the rule that made a plan; None where the rule is in no table.

    >>> import zerostride as zs
    >>> evidence(zs.plan((5, 5), (5,), engine="ncnn").rule).run
    True
    """
    if not isinstance(use, RuleUse):
        return None
    return _evidence(use.name, use.engine, use.op)


@functools.lru_cache(maxsize=1024)
def _evidence(name: str, engine: str | None, op: str | None) -> Evidence | None:
    use = RuleUse(name, None, engine, op)
    row = row_of(use) or RULES.get(name)
    if row is None or not row.source:
        return None
    row_of_engine = ENGINES.get((engine or "").partition("@")[0])
    run = row_of_engine is not None and row_of_engine.run
    return Evidence(use.label, row.source, run)


def sources_of(finding: Finding, target: str) -> list[Evidence]:
    """The sources behind a finding, without repetition: the engine's row first, as it is in doubt.

    Args:
        finding: the finding.
        target: the engine.
    """
    rows = [Evidence(f"{target}: {row.text}", row.source, row.run) for row in finding.divergences]
    sides = [getattr(side, "rule", None) for side in (finding.source, finding.target)]
    if isinstance(finding.source, Plan) and finding.source.rule.engine is None:
        sides.reverse()
    sources = [source for source in map(evidence, sides) if source is not None]
    return list(dict.fromkeys([*rows, *sources]))
