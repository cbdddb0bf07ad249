"""The sources of the rules behind findings, as the rows of the tables name them."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from ..core.plan import RuleUse
from ..core.rules import RULES
from ..derive.explain.facts import row_of
from ..engines.table import ENGINES


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
    run = engine is not None and engine in ENGINES and ENGINES[engine].run
    return Evidence(use.label, row.source, run)


def divergences(target: str, message: str) -> tuple[Evidence, ...]:
    """The sources of the engine's divergences that a finding's message quotes."""
    engine = ENGINES.get(target)
    if engine is None:
        return ()
    return tuple(
        Evidence(f"{target}: {row.text}", row.source, row.run)
        for row in engine.divergences
        if row.text in message
    )
