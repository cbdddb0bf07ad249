"""The types of the engine table's rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core.alignment import Rule
from ..core.plan import Plan
from ..errors import Reason
from ..sizes import Asker

Rules = Mapping[str, Rule]
#: The Broadcast op among the ops of a row or of a divergence.
BROADCAST = "expand"
#: Up to this size a float type has every whole number.
_WHOLE_IN_FLOATS: Mapping[str | None, int] = {"float32": 2**24, "float16": 2**11}


@dataclass(frozen=True, slots=True)
class Divergence:
    """A departure of a release from its document, or from a sane result.

    Attributes:
        text: the behaviour, in a sentence.
        effect: CRASH, WRONG_RESULT, or the reason for which it refuses.
        source: the source of the fact.
        run: whether it was run (True) or only read.
        strikes: tells whether it affects a given valid plan; it asks about sizes through the Asker.
            None: no shape decides whether it strikes; it is listed, and refuses no plan.
        rank: the least rank of an affected result.
        rules: the rules whose plans it affects; empty: all.
        ops: the ops that it concerns, by canonical name; empty: all.
        dtypes: the dtypes that it concerns; empty: all.
        narrows: the dtype in which it computes those instead; the result is right if every number
            fits.
        most: the largest whole number for which the result is right, where that is not the largest
            that `narrows` holds.
        constants: the numbers of constants alone must fit.
    """

    text: str
    effect: Reason
    source: str
    run: bool = True
    strikes: Callable[[Plan, Asker], bool] | None = None
    rank: int = 0
    rules: frozenset[str] = frozenset()
    ops: frozenset[str] = frozenset()
    dtypes: frozenset[str] = frozenset()
    narrows: str | None = None
    most: int | None = None
    constants: bool = False

    @property
    def held(self) -> tuple[int, int]:
        """The least and the largest whole number that it computes right, if it narrows.

        >>> Divergence("", Reason.WRONG_RESULT, "", narrows="float32").held
        (-16777216, 16777216)
        """
        if self.most is not None:
            return -self.most, self.most
        if self.narrows in _WHOLE_IN_FLOATS:
            return -_WHOLE_IN_FLOATS[self.narrows], _WHOLE_IN_FLOATS[self.narrows]
        kind, _, bits = (self.narrows or "int64").partition("int")
        if kind == "u":
            return 0, 2 ** int(bits) - 1
        return -(2 ** (int(bits) - 1)), 2 ** (int(bits) - 1) - 1

    def may_strike(self, rule: str, most: int | None) -> bool:
        """Whether it may affect a plan of a rule, up to a rank (None: any rank)."""
        by_rule = not self.rules or rule in self.rules
        return self.strikes is not None and by_rule and (most is None or most >= self.rank)

    def concerns(self, op: str | None, dtype: str | None) -> bool:
        """Whether it applies to an op and a dtype.

        One that names dtypes does not apply to an unknown dtype. One that names ops applies to an
        unnamed op if "add" is among them.
        """
        by_op = not self.ops or (op or "add") in self.ops
        return by_op and (not self.dtypes or dtype in self.dtypes)


def always(plan: Plan, asker: Asker) -> bool:
    """The `strikes` of a divergence that affects every plan of its ops and dtypes."""
    return True


@dataclass(frozen=True, slots=True)
class Engine:
    """A row of the engine table.

    Attributes:
        name: the engine's name in this package.
        release: the release that was measured.
        distribution: the package whose installed version is compared with `release`.
        module: the module that is imported to run it.
        elementwise: rule name to the engine's version of the rule; the first is its default.
        to_target: Broadcast mode to the engine's version; the first is its default. Empty: the
            engine has no such op.
        tiles: whether it has an op that repeats a tensor along axes, and none to broadcast it.
        ops: ops that differ from the rest, by canonical name or by the engine's own.
        typed: ops that differ on an element type, by canonical name (or `BROADCAST`) and NumPy's
            name of the type.
        dynamic: ops that differ if a model is compiled before its sizes are known.
        constants: rules for an operand that is a constant of the model: by canonical name of op,
            and one under its own name for the rest; empty: the same rules.
        tensor_rank: the most axes of any tensor; None if only ops have limits.
        keeps: −1 in a target keeps the extent of the data's axis there.
        divergences: see :class:`Divergence`; they include refused and wrong dtypes.
        run: whether its rows were run (True) or only read.
        reads: the column of the op table whose names it uses, if that is not its own: "onnx".
        has: the ops that it has, by canonical name; empty: all of its column.
        also: older releases that were measured and behave like `release`.
        asked: the release in the name by which the row was asked for; see `releases`.
        newest: of the row of another release, the newest measured one. Empty: this is its row.
        why: why the row of another release answers a name without one.
        samples: the source of the fact that its ops see one sample at a time, so that converters
            remove the batch axis from every tensor. Empty: they see the batch.
        leaves: of a delegate, the reasons for which it leaves an op to the CPU; for others it does
            not start at all. Empty: the engine is no delegate.
        older: whole rows of other measured releases; the releases in `changes` are differences.
    """

    name: str
    release: str
    distribution: str
    module: str
    source: str
    elementwise: Rules
    to_target: Rules = field(default_factory=dict)
    ops: Mapping[str, Rules] = field(default_factory=dict)
    typed: Mapping[tuple[str, str], Rules] = field(default_factory=dict)
    dynamic: Mapping[str, Rules] = field(default_factory=dict)
    constants: Rules = field(default_factory=dict)
    tensor_rank: int | None = None
    keeps: bool = False
    divergences: tuple[Divergence, ...] = ()
    run: bool = True
    reads: str = ""
    has: frozenset[str] = frozenset()
    also: tuple[str, ...] = ()
    asked: str = ""
    newest: str = ""
    why: str = ""
    samples: str = ""
    leaves: frozenset[Reason] = frozenset()
    tiles: bool = False
    older: tuple[Engine, ...] = ()

    @property
    def title(self) -> str:
        """The name that finds this row: with a release, if it was asked for by one."""
        return f"{self.name}@{self.asked}" if self.asked else self.name

    @property
    def measured(self) -> tuple[str, ...]:
        """The releases that were measured, newest first."""
        return (self.release, *(() if self.newest else reversed(self.also)))

    def divergences_of(self, op: str | None, dtype: str | None = None) -> tuple[Divergence, ...]:
        """The divergences that concern an op (canonical name) on a dtype."""
        return tuple(row for row in self.divergences if row.concerns(op, dtype))

    @property
    def broadcasts(self) -> bool | None:
        """Whether it has an op that broadcasts to a shape; None if nothing was read about it."""
        if self.to_target:
            return True
        measured = self.run or any(row.effect is Reason.NO_OP for row in self.divergences)
        return False if measured else None

    @property
    def dtypes(self) -> Mapping[str, str]:
        """Dtypes that go wrong for every op, with the effect."""
        return {
            dtype: row.text
            for row in self.divergences
            if not row.ops
            for dtype in sorted(row.dtypes)
        }


@dataclass(frozen=True, slots=True)
class Support:
    """Whether an engine carries an op.

    Attributes:
        ok: True; False if it refuses, crashes or returns wrong results.
        reason: the reason of a refusal, or the check that passed.
        source: the source of the fact.
    """

    ok: bool
    reason: str
    source: str

    def __bool__(self) -> bool:
        return self.ok

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"ok": self.ok, "reason": self.reason, "source": self.source}
