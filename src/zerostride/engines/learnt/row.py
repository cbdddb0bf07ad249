"""A learnt row of one op: a form of broadcasting, with deviations. It becomes a Rule.

A deviation says under which traits an engine does something else: it refuses, its process ends, it
computes nonsense, another form holds, or nothing is known; or that it does not refuse shapes that
do not fit.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ...core.alignment import Alignment, Attributes, Rule, apply, resolve
from ...core.plan import Plan
from ...errors import BroadcastError, Misfit, Reason
from ...sizes import Asker, Shape
from .forms import PLACES, STRETCHES, Form
from .traits import Literal

#: Effects of a deviation, with the reason of the refusal and words for people.
EFFECTS: Mapping[str, tuple[Reason, str]] = MappingProxyType(
    {
        "refuses": (Reason.LIMIT, "it refuses"),
        "crashes": (Reason.CRASH, "its process ends"),
        "garbles": (Reason.WRONG_RESULT, "it computes nonsense"),
        "answers": (Reason.WRONG_RESULT, "shapes that do not fit are not refused"),
        "unknown": (Reason.NOT_UNDERSTOOD, "it was not understood"),
    }
)
#: The effect of deviations that concern only shapes that do not fit.
ANSWERS = "answers"


@dataclass(frozen=True, slots=True)
class Deviation:
    """A deviation: where all literals hold, the engine has this effect or form.

    Attributes:
        when: the literals; none: always.
        then: a name of `EFFECTS`, or a form.
        example: shapes for which it was seen.
    """

    when: tuple[Literal, ...]
    then: str | Form
    example: tuple[Shape, ...] = ()

    def holds(self, shapes: tuple[Shape, ...], plan: Plan | None, asker: Asker) -> bool:
        """Whether all literals hold."""
        return all(literal.test(shapes, plan, asker) for literal in self.when)

    @property
    def words(self) -> str:
        """A sentence for people."""
        effect = EFFECTS[self.then][1] if isinstance(self.then, str) else self.then.words
        held = [literal.words for literal in self.when if literal.holds and literal.name != "any"]
        barred = [literal.words for literal in self.when if not literal.holds]
        where = [f"where {' and '.join(held)}"] if held else []
        unless = [f"unless {' or '.join(barred)}"] if barred else []
        return f"{', '.join(where + unless)}: {effect}" if where + unless else effect


@dataclass(frozen=True, slots=True)
class LearntRow:
    """A form with deviations.

    Attributes:
        form: what holds in general.
        deviations: the first that holds decides.
    """

    form: Form
    deviations: tuple[Deviation, ...] = ()

    def rule(self, source: str, *, to_target: bool = False, count: int = 2) -> Rule:
        """The rule of the row.

        Args:
            source: where the facts are from.
            to_target: the second operand is the target of an op that broadcasts to one.
            count: the number of operands.
        """
        return Rule(
            self.form.rule_name,
            functools.partial(_align, self),
            self.words,
            source,
            to_target=to_target,
            operands=(count, count),
            silent=frozenset({Reason.CRASH, Reason.WRONG_RESULT}),
            check=functools.partial(_check, self),
        )

    @property
    def words(self) -> str:
        """The form and its deviations, in sentences."""
        if any(not row.when for row in self.deviations):
            return "It was not understood."
        deviations = (f"{row.words[:1].upper()}{row.words[1:]}." for row in self.deviations)
        return " ".join([self.form.words, *deviations])

    def outcome(
        self, shapes: tuple[Shape, ...], *, to_target: bool = False
    ) -> Plan | BroadcastError:
        """The plan of shapes by this row, or its refusal."""
        rule = self.rule("", to_target=to_target, count=len(shapes))
        try:
            return apply(rule, shapes, {})
        except BroadcastError as error:
            return error

    def decides(self, shapes: tuple[Shape, ...], plan: Plan | None) -> bool:
        """Whether a deviation holds for shapes and their plan by the form."""
        return any(deviation.holds(shapes, plan, Asker()) for deviation in self.deviations)

    def as_dict(self) -> dict[str, Any]:
        """For a file."""
        rows = [
            {
                "when": [str(literal) for literal in row.when],
                "then": row.then if isinstance(row.then, str) else _written(row.then),
                "example": [list(shape) for shape in row.example],
            }
            for row in self.deviations
        ]
        return {"form": _written(self.form), "deviations": rows}

    @staticmethod
    def read(data: Mapping[str, Any]) -> LearntRow:
        """The row of a file; raises KeyError, TypeError or ValueError where it is malformed."""
        deviations = tuple(
            Deviation(
                tuple(map(Literal.read, row["when"])),
                _effect(row["then"]),
                tuple(tuple(map(int, shape)) for shape in row.get("example", ())),
            )
            for row in data.get("deviations", ())
        )
        return LearntRow(_form(data["form"]), deviations)


def _written(form: Form) -> dict[str, str]:
    return {"place": form.place, "stretch": form.stretch}


def _form(data: Mapping[str, str]) -> Form:
    place, stretch = data["place"], data["stretch"]
    if place not in PLACES or stretch not in STRETCHES:
        raise ValueError(f"there is no form {place!r} with {stretch!r}")
    return Form(place, stretch)


def _effect(data: Any) -> str | Form:
    if isinstance(data, str):
        if data not in EFFECTS:
            raise ValueError(f"there is no effect {data!r}")
        return data
    return _form(data)


def _form_of(row: LearntRow, asker: Asker, shapes: tuple[Shape, ...]) -> Form:
    """The form for these shapes: that of the first deviation with one, or the general one."""
    for deviation in row.deviations:
        if isinstance(deviation.then, Form) and deviation.holds(shapes, None, asker):
            return deviation.then
    return row.form


def _align(
    row: LearntRow, asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes
) -> Alignment:
    try:
        alignment = _form_of(row, asker, shapes).align(asker, shapes)
        resolve(asker, shapes, alignment, _BARE)
    except Misfit as misfit:
        _decide(row, shapes, None, asker, misfit)
        raise
    return alignment


#: A rule for `resolve`, which reads its words alone.
_BARE = Rule("learnt", lambda *_: Alignment(0, (), ()), "", "")


def _check(row: LearntRow, plan: Plan, asker: Asker) -> None:
    shapes = plan.operands if len(plan.operands) > 1 else (*plan.operands, plan.shape)
    try:
        _form_of(row, asker, shapes).check(plan, asker)
    except Misfit as misfit:
        _decide(row, shapes, None, asker, misfit)
        raise
    _decide(row, shapes, plan, asker, None)


def _decide(
    row: LearntRow,
    shapes: tuple[Shape, ...],
    plan: Plan | None,
    asker: Asker,
    misfit: Misfit | None,
) -> None:
    """Raises Misfit for the first deviation that holds; one of `ANSWERS` is for a misfit."""
    for deviation in row.deviations:
        effect = deviation.then
        if isinstance(effect, Form) or (effect == ANSWERS and misfit is None):
            continue
        if not deviation.holds(shapes, plan, asker):
            continue
        if effect == ANSWERS and misfit is not None:
            detail = f"{misfit.detail}, which it does not refuse"
            raise Misfit(Reason.WRONG_RESULT, detail, axis=misfit.axis, rows=misfit.rows) from None
        raise Misfit(_reason(deviation, EFFECTS[effect][0]), deviation.words) from None


def _reason(deviation: Deviation, reason: Reason) -> Reason:
    """A refusal for the number of axes has the reason that says so."""
    ranks = any(x.name in ("rank_above", "runs_above") and x.holds for x in deviation.when)
    return Reason.RANK_LIMIT if ranks and reason is Reason.LIMIT else reason


__all__ = ["ANSWERS", "EFFECTS", "Deviation", "LearntRow"]
