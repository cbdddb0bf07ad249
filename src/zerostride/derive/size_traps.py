"""The sizes at which a rule that agrees with another one here would mean something else.

Some rules use sizes to decide where axes land. Two rules may then agree on the given shapes and
differ on others: on ncnn (3, 5) + (5,) means the same as in NumPy, and (5, 5) + (5,) does not. A
:class:`Trap` names the condition and carries shapes that fulfil it, planned under both rules.

The search runs the align functions again with sizes that record their axis. Each question that a
rule then asks ("is axis 0 of x equal to axis 0 of y?") may have another answer at other sizes. For
each question, the search changes extents of result axes until the answer changes. Everything else
stays the same: stretched axes still stretch, and equal axes stay equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..core.alignment import Attributes, Rule, apply, complete
from ..core.plan import Plan
from ..core.rules import RULES
from ..errors import BroadcastError, Misfit, operand_names
from ..sizes import Asker, Shape, as_shape


@dataclass(frozen=True, slots=True)
class Side:
    """A rule with the other arguments of `apply`: one side of a comparison."""

    rule: Rule
    attributes: Attributes = field(default_factory=dict)
    engine: str | None = None
    op: str | None = None

    def plan(self, shapes: Sequence[Shape]) -> Plan | BroadcastError:
        """The plan for `shapes`, or the error that refuses them."""
        try:
            return apply(self.rule, shapes, self.attributes, engine=self.engine, op=self.op)
        except BroadcastError as error:
            # The error is kept as an answer, so its traceback is removed with all frames.
            return error.with_traceback(None)


@dataclass(frozen=True, slots=True)
class Trap:
    """Sizes at which two rules differ that agree on the given shapes.

    Attributes:
        question: the question of a rule that has the other answer there.
        shapes: the witness: the same operands (and target) at such sizes.
        reference: the reference's plan for the witness.
        target: the other rule's plan for it, or its error. The error is then `silent`: the engine
            would continue with a wrong result.
        names: what the operands are called.
    """

    question: Question
    shapes: tuple[Shape, ...]
    reference: Plan
    target: Plan | BroadcastError
    names: tuple[str, ...]

    def named(self, names: Sequence[Any]) -> Trap:
        """The same with other names of the operands."""
        return replace(self, names=operand_names(names, len(self.shapes)))

    @property
    def condition(self) -> str:
        """The sizes at which the rules differ, in words."""
        return self.question.condition(self.names)

    @property
    def words(self) -> str:
        """One sentence."""
        parting = _parting(self.reference, self.target, self.names)
        return f"{self.condition}, for example {_listing(self.shapes)}: {parting}"

    def __str__(self) -> str:
        return self.words

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        got = self.target.aligned if isinstance(self.target, Plan) else None
        return {
            "condition": self.condition,
            "shapes": [list(shape) for shape in self.shapes],
            "reference": [list(shape) for shape in self.reference.aligned],
            "target": None if got is None else [list(shape) for shape in got],
            "words": self.words,
        }


def size_traps(
    target: Side | Rule,
    shapes: Sequence[Any],
    reference: Side | Rule = RULES["numpy"],
    names: Sequence[Any] = (),
) -> tuple[Trap, ...]:
    """The sizes at which `target` would no longer mean the same as `reference`.

    Args:
        target: the rule judged; a :class:`Side` if it has attributes or belongs to an engine.
        shapes: the given shapes; for Broadcast rules the data's and the target shape.
        reference: the rule that defines the meaning.
        names: what to call the operands.

    Returns:
        One trap per condition. Empty if the two rules do not agree on `shapes`, if one refuses
        them, or if they differ at no other sizes. A witness that the target refuses counts only if
        the engine would not refuse it (`error.silent`).

    >>> import zerostride as zs
    >>> from zerostride.core.rules import RULES
    >>> for trap in size_traps(RULES["ncnn"], [(3, 5), (5,)]):
    ...     print(trap)
    where axis 0 of x is as long as axis 0 of y, for example (5, 5) and (5,): rule 'numpy' \
reads y as (1, 5), rule 'ncnn' as (5, 1)
    >>> size_traps(RULES["mnn"], [(3, 5), (5,)])
    ()
    """
    target, reference = _side(target), _side(reference)
    sizes = tuple(map(as_shape, shapes))
    intended = reference.plan(sizes)
    if isinstance(intended, BroadcastError) or target.plan(sizes) != intended:
        return ()
    called = tuple(operand_names(names, len(sizes)))
    holders = _holders(intended, sizes)
    traps: dict[str, Trap] = {}
    for question in (*_questions(target, sizes), *_questions(reference, sizes)):
        condition = question.condition(called)
        if condition not in traps:
            witness = _first_trap(question, holders, sizes, target, reference)
            if witness is not None:
                traps[condition] = Trap(question, *witness, called)
    return tuple(traps.values())


def _side(rule: Side | Rule) -> Side:
    return rule if isinstance(rule, Side) else Side(rule)


# The axes that a rule asks about.


class _Located(int):
    """A size that records its operand and axis."""

    place: tuple[int, int]

    def __new__(cls, size: int, operand: int, axis: int) -> _Located:
        self = super().__new__(cls, size)
        self.place = (operand, axis)
        return self


@dataclass(frozen=True, slots=True)
class Question:
    """A question of an align function: is the size at `place` equal to `other`?

    Attributes:
        place: operand and axis.
        other: operand and axis, or a number.
        answer: yes or no, for the given shapes.
    """

    place: tuple[int, int]
    other: tuple[int, int] | int
    answer: bool

    def at(self, shapes: Sequence[Shape]) -> bool:
        """The answer at other sizes."""
        operand, axis = self.place
        return bool(shapes[operand][axis] == _value(self.other, shapes))

    def condition(self, names: Sequence[str]) -> str:
        """The condition for the other answer, in words."""
        who, axis = names[self.place[0]], self.place[1]
        if isinstance(self.other, int):
            return f"where axis {axis} of {who} is {'not ' if self.answer else ''}{self.other}"
        against = f"axis {self.other[1]} of {names[self.other[0]]}"
        turned = f"is not as long as {against}" if self.answer else f"is as long as {against}"
        return f"where axis {axis} of {who} {turned}"


def _value(other: tuple[int, int] | int, shapes: Sequence[Shape]) -> Any:
    return other if isinstance(other, int) else shapes[other[0]][other[1]]


def _questions(side: Side, shapes: Sequence[Shape]) -> Iterator[Question]:
    """The questions of the rule's align function for these shapes."""
    located = tuple(
        tuple(_Located(size, operand, axis) for axis, size in enumerate(shape))
        for operand, shape in enumerate(shapes)
    )
    asker = Asker()
    try:
        side.rule.align(asker, located, complete(side.rule, side.attributes))
    except Misfit:
        return
    for pair, answer in asker.asked:
        # Operands in order read better, whichever the rule compared first.
        places = sorted(size.place for size in pair if isinstance(size, _Located))
        if not places or len(set(places)) == 1 < len(places):
            continue
        plain = next((size for size in pair if type(size) is int), None)
        if plain == 0:
            continue  # known sizes that are not 0 will not become 0
        yield Question(places[0], places[1] if plain is None else plain, answer)


# Other sizes for the same broadcast.


def _holders(plan: Plan, shapes: Sequence[Shape]) -> Mapping[int, list[tuple[int, int]]]:
    """For each result axis that may change: the operand axes that have its extent.

    If two operands both have extent 1, one of them may be there to stretch. Such an axis is
    skipped, because another extent would be another broadcast.
    """
    mapping: list[Sequence[int | None]] = list(plan.axes_mapping)
    if len(shapes) > len(mapping):  # the target of a Broadcast op is right-aligned
        mapping.append(range(plan.rank - len(shapes[-1]), plan.rank))
    holders: dict[int, list[tuple[int, int]]] = {}
    for operand, places in enumerate(mapping):
        for axis, place in enumerate(places):
            if place is not None and shapes[operand][axis] == plan.shape[place]:
                holders.setdefault(place, []).append((operand, axis))
    return {
        place: axes for place, axes in holders.items() if plan.shape[place] != 1 or len(axes) == 1
    }


def _first_trap(
    question: Question,
    holders: Mapping[int, list[tuple[int, int]]],
    shapes: tuple[Shape, ...],
    target: Side,
    reference: Side,
) -> tuple[tuple[Shape, ...], Plan, Plan | BroadcastError] | None:
    """The witness nearest to the given shapes that turns the question and separates the rules.

    With the plans of both rules for it.
    """
    for witness in _witnesses(question, holders, shapes):
        intended = reference.plan(witness)
        if isinstance(intended, BroadcastError):
            continue
        got = target.plan(witness)
        if isinstance(got, BroadcastError) and not got.silent:
            continue
        if got != intended:
            return witness, intended, got
    return None


def _witnesses(
    question: Question, holders: Mapping[int, list[tuple[int, int]]], shapes: tuple[Shape, ...]
) -> Iterator[tuple[Shape, ...]]:
    """Shapes that turn the question, with another extent of one result axis; least change first."""
    places = [question.place] + ([] if isinstance(question.other, int) else [question.other])
    groups = [axes for axes in holders.values() if any(place in axes for place in places)]
    extents = {size for shape in shapes for size in shape}
    fresh = next(size for size in range(2, len(extents) + 3) if size not in extents)
    values = [*(_value(place, shapes) for place in places), 1, fresh]
    if isinstance(question.other, int):
        values.append(question.other)
    for axes in sorted(groups, key=len):
        for value in dict.fromkeys(values):
            changed = [list(shape) for shape in shapes]
            for operand, axis in axes:
                changed[operand][axis] = value
            witness = tuple(map(tuple, changed))
            if witness != shapes and question.at(witness) != question.answer:
                yield witness


def _listing(shapes: Sequence[Shape]) -> str:
    return " and ".join(filter(None, (", ".join(map(str, shapes[:-1])), str(shapes[-1]))))


def _parting(intended: Plan, got: Plan | BroadcastError, names: Sequence[str]) -> str:
    if isinstance(got, BroadcastError):
        label = getattr(got.rule, "label", f"rule {str(got.rule)!r}")
        return f"{label} goes silently wrong ({got.detail})"
    for name, reads, other in zip(names, intended.aligned, got.aligned, strict=False):
        if reads != other:
            return f"{intended.rule.label} reads {name} as {reads}, {got.rule.label} as {other}"
    return f"{intended.rule.label} gives {intended.shape}, {got.rule.label} {got.shape}"
