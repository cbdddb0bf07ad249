"""What a row of the engine table is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..alignment import Rule
from ..dims import Asker
from ..errors import Reason
from ..plan import Plan

Rules = Mapping[str, Rule]


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where a release departs from its document, or from a sane answer.

    Attributes:
        text: what it does, in a sentence.
        effect: CRASH, WRONG_RESULT, or the reason for which it refuses.
        source: where that is known from.
        run: whether it was run (True) or only read.
        strikes: tells whether it strikes a given valid plan, asking of sizes what it must know;
            None where no single plan is hit.
    """

    text: str
    effect: Reason
    source: str
    run: bool = True
    strikes: Callable[[Plan, Asker], bool] | None = None


@dataclass(frozen=True, slots=True)
class Engine:
    """A row of the engine table.

    Attributes:
        name: how the engine is called here.
        release: the release that was measured.
        distribution: the package whose installed version is compared with `release`.
        module: the module that is imported to run it.
        elementwise: rule name to the engine's version of the rule; the first is its default.
        to_target: Broadcast mode to the engine's version; the first is its default. Empty: the
            engine has no such op.
        ops: ops that differ from the rest, by canonical name or by the engine's own.
        dynamic: ops that differ where a model is compiled before its sizes are known.
        keeps: −1 in a target keeps the extent of the data's axis there.
        divergences: see :class:`Divergence`.
        dtypes: dtypes that go wrong, with what happens.
        run: whether its rows were run (True) or only read.
    """

    name: str
    release: str
    distribution: str
    module: str
    source: str
    elementwise: Rules
    to_target: Rules = field(default_factory=dict)
    ops: Mapping[str, Rules] = field(default_factory=dict)
    dynamic: Mapping[str, Rules] = field(default_factory=dict)
    keeps: bool = False
    divergences: tuple[Divergence, ...] = ()
    dtypes: Mapping[str, str] = field(default_factory=dict)
    run: bool = True


@dataclass(frozen=True, slots=True)
class Support:
    """Whether an engine carries an op.

    Attributes:
        ok: True, or False where it refuses, crashes or answers wrongly.
        reason: why not, or what was checked.
        source: where that is known from.
    """

    ok: bool
    reason: str
    source: str

    def __bool__(self) -> bool:
        return self.ok

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"ok": self.ok, "reason": self.reason, "source": self.source}
