"""The type of a rule, and the one driver that turns a rule and shapes into a Plan.

A rule places axes (`align`). :func:`resolve` then computes each result size: along each result axis
it asks whether sizes are equal, and whether one of them is 1 and may stretch. :func:`apply` is the
driver: validate, align, resolve, make the Plan. Inner functions raise a small Misfit; `apply` turns
it into a BroadcastError, once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from ..errors import BroadcastError, Misfit, Reason, operand_names
from ..sizes import Asker, Shape, Size, as_shape, brief, is_array, is_open, whole_numbers
from .plan import Plan, RuleUse

if TYPE_CHECKING:
    from ..sizes.condition import Condition

Attributes = Mapping[str, Any]
Mapping_ = tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Alignment:
    """Where axes land: the result of a rule's align function.

    Attributes:
        rank: number of result axes.
        mapping: for each operand, the result axis of each axis, or None where it is dropped.
        stretch: for each operand, the result axes along which it may stretch. It may always stretch
            along an axis on which none of its own axes lands.
    """

    rank: int
    mapping: tuple[Mapping_, ...]
    stretch: tuple[Collection[int], ...]


AlignFunction = Callable[[Asker, tuple[Shape, ...], Attributes], Alignment]


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of a rule: its default (None: none) and whether it must be given."""

    default: Any = None
    required: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """A row of the rule table: one way to broadcast, with its source.

    Attributes:
        name: the rule's name.
        align: places the operands' axes.
        summary: one sentence.
        source: document and section, or the release it was measured on.
        attributes: the attributes it takes.
        to_target: the second shape is the target of a Broadcast op, not an operand.
        operands: least and most number of operands (for `to_target`: data and target).
        max_rank: most axes of the result, or None.
        one_way: the message for an operand that would have to stretch and may not.
        silent: the reasons at which an engine does not refuse but computes a wrong result or
            crashes.
        check: raises Misfit for plans that the engine cannot carry. It asks about sizes through the
            Asker.
        advise: returns a fix for a refusal of `check`, planned before it is proposed, or None.
            Takes the row, the shapes, the use of the rule and the reason.
    """

    name: str
    align: AlignFunction
    summary: str
    source: str
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    to_target: bool = False
    operands: tuple[int, int] = (2, 2)
    max_rank: int | None = None
    one_way: str = "it may not stretch"
    silent: frozenset[Reason] = frozenset()
    check: Callable[[Plan, Asker], None] | None = None
    advise: Callable[[Rule, Sequence[Any], RuleUse, Reason], str | None] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        values = [getattr(self, row.name) for row in fields(self)]
        # A view of the table's attributes cannot be pickled; a copy of them can.
        return Rule, tuple(dict(v) if isinstance(v, Mapping) else v for v in values)


def apply(
    rule: Rule,
    shapes: Sequence[Any],
    attributes: Attributes,
    *,
    engine: str | None = None,
    op: str | None = None,
    facts: Condition | None = None,
) -> Plan:
    """The Plan that `rule` gives for `shapes`. A BroadcastError explains why there is none.

    Args:
        rule: the row of the table.
        shapes: the operands' shapes; for a Broadcast op the data's shape and the target shape.
        attributes: the attributes given (None counts as not given).
        engine: whose version of the rule this is, for messages.
        op: the op asked about, for messages.
        facts: known conditions on open sizes.
    """
    options = {name: value for name, value in attributes.items() if value is not None}
    try:
        if facts is None:
            return _build(rule, shapes, options, engine, op)
        return _build_open(rule, shapes, options, engine, op, facts)
    except Misfit as misfit:
        problem = misfit
    if facts is None and problem.reason is Reason.BAD_EXTENT and any(map(is_open, shapes)):
        # Open sizes are detected only after the failure, so plans of numbers pay nothing for them.
        try:
            return _build_open(rule, shapes, options, engine, op, facts)
        except Misfit as misfit:
            problem = misfit
    raise _enrich(problem, rule, shapes, RuleUse(rule.name, options, engine, op))


def _build_open(
    rule: Rule,
    shapes: Sequence[Any],
    options: Attributes,
    engine: str | None,
    op: str | None,
    facts: Condition | None,
) -> Plan:
    from .symbolic import build_open

    try:
        return build_open(rule, shapes, options, engine, op, facts)
    except ArithmeticError as fault:  # an expression that is too large
        raise Misfit(Reason.UNKNOWN_SIZE, f"{fault}; give some sizes as numbers") from None


def _build(
    rule: Rule,
    shapes: Sequence[Any],
    options: Attributes,
    engine: str | None = None,
    op: str | None = None,
) -> Plan:
    sizes = tuple(map(as_shape, shapes))
    check_count(rule, sizes)
    full = complete(rule, options)
    asker = Asker()
    alignment = rule.align(asker, sizes, full)
    if rule.max_rank is not None and alignment.rank > rule.max_rank:
        raise Misfit(
            Reason.RANK_LIMIT, f"{alignment.rank} axes; the most it carries is {rule.max_rank}"
        )
    result = resolve(asker, sizes, alignment, rule)
    last = len(sizes) - rule.to_target
    # `full` has the validated attributes; a caller's own list may change later.
    use = RuleUse(rule.name, {name: full[name] for name in options}, engine, op)
    plan = Plan(result, sizes[:last], alignment.mapping[:last], use)
    if rule.check is not None:
        rule.check(plan, asker)
    return plan


def check_count(rule: Rule, sizes: Sequence[Shape]) -> None:
    """Refuses more operands, or fewer, than the rule takes."""
    least, most = rule.operands
    if not least <= len(sizes) <= most:
        count = f"{least}" if least == most else f"{least} or more"
        raise Misfit(
            Reason.OPERAND_COUNT,
            f"{len(sizes)} shape{'' if len(sizes) == 1 else 's'} given; it takes {count}",
        )


def complete(rule: Rule, options: Attributes) -> Attributes:
    """The attributes with defaults filled in. Raises Misfit for unknown, missing and malformed
    ones.
    """
    if not options and not rule.attributes:
        return options
    for name in options:
        if name not in rule.attributes:
            raise Misfit(Reason.ATTRIBUTE, f"rule {rule.name!r} has no attribute {name!r}")
    full = {name: row.default for name, row in rule.attributes.items()}
    full.update((name, _well_formed(name, value)) for name, value in options.items())
    for name, row in rule.attributes.items():
        if row.required and name not in options:
            raise Misfit(Reason.ATTRIBUTE, f"rule {rule.name!r} needs the attribute {name!r}")
    return full


def _well_formed(name: str, value: Any) -> Any:
    """An attribute as a whole number, or (axes_mapping) a tuple of them."""
    listed = name == "axes_mapping"
    whole = whole_numbers(value if listed else (value,))
    if whole is None:
        expected = "a list of whole numbers" if listed else "a whole number"
        raise Misfit(Reason.ATTRIBUTE, f"{name} is {expected}, not {brief(value)}")
    return whole if listed else whole[0]


def resolve(
    asker: Asker, shapes: Sequence[Shape], alignment: Alignment, rule: Rule
) -> tuple[Size, ...]:
    """The result's sizes: along each axis the equal size, or the one to which every 1 stretches."""
    landing: list[list[tuple[int, Size]]] = [[] for _ in range(alignment.rank)]
    for k, (shape, mapping) in enumerate(zip(shapes, alignment.mapping, strict=True)):
        for size, axis in zip(shape, mapping, strict=True):
            if axis is not None:
                landing[axis].append((k, size))
    result: list[Size] = []
    for axis, sizes in enumerate(landing):
        out: Size = 1
        holders: list[int] = []  # operands whose size here is `out`
        for k, size in sizes:
            if not holders or asker.equal(out, size):
                out = out if holders else size
                holders.append(k)
            elif axis in alignment.stretch[k] and asker.is_one(size):
                continue
            elif all(axis in alignment.stretch[h] for h in holders) and asker.is_one(out):
                out, holders = size, [k]
            else:
                raise _mismatch(asker, rule, shapes, alignment, axis, (out, size))
        result.append(out)
    return tuple(result)


def _mismatch(
    asker: Asker,
    rule: Rule,
    shapes: Sequence[Shape],
    alignment: Alignment,
    axis: int,
    pair: tuple[Size, Size],
) -> Misfit:
    out, size = pair
    against = f"{out} against {size}"
    rows = laid_out(shapes, alignment.mapping, alignment.rank)
    if not any(alignment.stretch):
        return Misfit(
            Reason.NOT_IDENTICAL, f"{against}, and nothing may stretch", axis=axis, rows=rows
        )
    if asker.is_one(out) or asker.is_one(size):
        return Misfit(Reason.ONE_WAY, f"{against}: {rule.one_way}", axis=axis, rows=rows)
    return Misfit(Reason.EXTENT_MISMATCH, f"{against}, and neither is 1", axis=axis, rows=rows)


def laid_out(
    shapes: Sequence[Shape], mapping: Sequence[Mapping_], rank: int, absent: int | None = None
) -> list[list[Any]]:
    """Each operand's sizes at the result's rank, `absent` where no axis certainly lands."""
    rows = []
    for shape, places in zip(shapes, mapping, strict=True):
        row: list[Any] = [absent] * rank
        for size, axis in zip(shape, places, strict=True):
            if isinstance(axis, int):
                row[axis] = size
        rows.append(row)
    return rows


def _enrich(misfit: Misfit, rule: Rule, shapes: Sequence[Any], use: RuleUse) -> BroadcastError:
    """The BroadcastError for a small fact, with rule, shapes and hint."""
    arrays_given(shapes, rule=use, names=("data", "target") if rule.to_target else ())
    written = tuple(map(_as_written, shapes))
    reason = misfit.reason  # the hint keeps this alone: the misfit would keep all of its frames
    unknown = reason is Reason.NOT_UNDERSTOOD
    return BroadcastError(
        misfit.detail,
        headline=f"{use.engine or rule.name} was run, and was not understood here"
        if unknown
        else "",
        reason=reason,
        rule=use,
        shapes=written,
        axis=misfit.axis,
        silent=reason in rule.silent,
        rows=misfit.rows,
        names=("data", "target") if rule.to_target else (),
        hint=lambda: suggest(rule, written, use, reason),
    )


def arrays_given(shapes: Sequence[Any], *, rule: str = "", names: Sequence[str] = ()) -> None:
    """Refuses arrays that are passed in the place of shapes.

    Raises:
        BroadcastError: with the arrays' shapes in the place of the arrays.
    """
    called = operand_names(names, len(shapes))
    arrays = [name for name, shape in zip(called, shapes, strict=True) if is_array(shape)]
    if not arrays:
        return
    are = "is an array" if len(arrays) == 1 else "are arrays"
    raise BroadcastError(
        f"{' and '.join(arrays)} {are}, where shapes are expected",
        headline="zerostride plans shapes, not arrays",
        reason=Reason.BAD_EXTENT,
        rule=rule,
        shapes=tuple(tuple(s.shape) if is_array(s) else _as_written(s) for s in shapes),
        names=names,
        hint=f"pass {' and '.join(f'{name}.shape' for name in arrays)}",
    )


def _as_written(shape: Any) -> Any:
    """A well-formed shape as a tuple; a malformed one as it is, for the message."""
    try:
        return as_shape(shape)
    except Misfit:
        return tuple(shape) if isinstance(shape, (list, tuple)) else shape


def _is_shape(shape: Any) -> bool:
    try:
        return is_open(shape) or as_shape(shape) is shape
    except Misfit:
        return False


# Proposals.


def suggest(rule: Rule, shapes: Sequence[Any], use: RuleUse, reason: Reason) -> str | None:
    """A change after which the rule accepts the shapes; planned before it is proposed.

    If no change helps, another rule that accepts the shapes as they are.
    """
    if reason is Reason.UNKNOWN_SIZE:
        return None  # the message says which sizes to give
    if rule.advise is not None and (advice := rule.advise(rule, shapes, use, reason)):
        return advice
    for proposal, words in _proposals(rule, shapes, use.attributes, reason):
        if plan_or_none(rule, *proposal):
            return words
    if reason is Reason.BAD_EXTENT:
        return _sizes_meant(shapes)
    if reason in _ADVICE:
        return _ADVICE[reason]
    return None if use.engine else _other_rule(rule, shapes, use.attributes)


def _other_rule(rule: Rule, shapes: Sequence[Any], attributes: Attributes) -> str | None:
    from .rules import RULES  # the table is made of what is defined here

    for other in RULES.values():
        if other.to_target != rule.to_target or other.name == rule.name:
            continue
        if plan := plan_or_none(other, shapes, attributes):
            return f"{RuleUse(other.name, attributes).label} gives {text(plan.shape)}"
    return None


def number_meant(value: Any) -> int | None:
    """The whole number for which text or a float stands; None if it stands for none.

    >>> number_meant("1"), number_meant(2.0), number_meant(2.5), number_meant(1)
    (1, 2, None, None)
    """
    if not isinstance(value, str | float):
        return None
    try:
        number = int(value)
    except (ValueError, OverflowError):
        return None
    return number if number == float(value) else None


def _sizes_meant(shapes: Sequence[Any]) -> str:
    """A fix for the first malformed shape."""
    for shape in shapes:
        if type(shape) is int and shape >= 0:
            return f"write a shape of one axis with a comma: ({shape},)"
        sizes = shape if isinstance(shape, tuple | list) else ()
        if any(size is None or isinstance(size, str) for size in sizes):
            return "an open size is a name such as 'N', or '?' for one without a name"
    return "give sizes as whole numbers from 0, for example 2,3,4"


_ADVICE = {
    Reason.TOO_LARGE: "check the sizes for a mistake, or split the computation",
    Reason.NOT_IDENTICAL: "make the shapes equal, or name a rule that broadcasts",
}

#: Placements tried for one operand; C(8, 4) = 70 covers every model in practice.
_MOST_PLACEMENTS = 70


def _proposals(
    rule: Rule, shapes: Sequence[Any], attributes: Attributes, reason: Reason
) -> Iterator[tuple[tuple[Sequence[Any], Attributes], str]]:
    if reason in (Reason.BAD_EXTENT, Reason.TOO_LARGE) or len(shapes) != 2:
        return
    if not all(map(_is_shape, shapes)):
        return  # not shapes, so there is nothing to change
    first, second = shapes
    rank = max(len(first), len(second))
    if reason in (Reason.ATTRIBUTE, Reason.AXIS_RANGE):
        for name, value in attributes.items():
            if (number := number_meant(value)) is not None:
                yield ((shapes, {**attributes, name: number}), f"use {name}={number}")
            without = {key: value for key, value in attributes.items() if key != name}
            row = rule.attributes.get(name)
            then = f" (it is {row.default} then)" if row and row.default is not None else ""
            yield ((shapes, without), f"leave out {name}{then}")
    if "axis" in rule.attributes:
        for axis in range(rank + 1):
            yield ((shapes, {**attributes, "axis": axis}), f"use axis={axis}")
    if "broadcast" in rule.attributes:
        yield ((shapes, {**attributes, "broadcast": 1}), "set broadcast=1")
    if "axes_mapping" in rule.attributes and len(first) <= len(second):
        mappings = itertools.combinations(range(len(second)), len(first))
        for mapping in itertools.islice(mappings, _MOST_PLACEMENTS):
            changed = {**attributes, "axes_mapping": mapping}
            yield ((shapes, changed), f"use axes_mapping={list(mapping)}")
    small = 0 if rule.to_target or len(first) < len(second) else 1
    if len(shapes[small]) < len(shapes[1 - small]):
        name = "data" if rule.to_target else "xy"[small]
        for placed in placements(shapes[small], rank):
            pair = (placed, second) if small == 0 else (first, placed)
            yield ((pair, attributes), f"reshape {name} to {text(placed)}")
    if not rule.to_target and rule.operands == (2, 2):
        yield (((second, first), attributes), "swap the operands")


def placements(shape: Sequence[int], rank: int) -> Iterator[Shape]:
    """`shape` with ones inserted, fewest first, without useless leading ones."""
    placed = set()
    places = itertools.combinations(range(rank), len(shape))
    for axes in itertools.islice(places, _MOST_PLACEMENTS):
        row = [1] * rank
        for size, axis in zip(shape, axes, strict=True):
            row[axis] = size
        lead = axes[0] if axes else rank
        for short in (tuple(row[lead:]), tuple(row)):
            placed.add(short)
    yield from sorted(placed - {tuple(shape)}, key=_placement_order)


def _placement_order(placed: Shape) -> tuple[int, list[int]]:
    # Open sizes have no order; they sort like numbers from 2.
    return len(placed), [size if type(size) is int else 2 for size in placed]


def text(shape: Shape) -> str:
    """A shape as Python prints one; open sizes by their names."""
    sizes = ", ".join(map(str, shape))
    return f"({sizes},)" if len(shape) == 1 else f"({sizes})"


def plan_or_none(rule: Rule, shapes: Sequence[Any], attributes: Attributes) -> Plan | None:
    """The plan if the rule accepts the shapes for all values of open sizes; else None."""
    try:
        if any(map(is_open, shapes)):
            from .symbolic import build_open

            open_plan = build_open(rule, shapes, attributes, None, None, None)
            return None if len(open_plan.conditions) else open_plan
        return _build(rule, shapes, attributes)
    except Misfit:
        return None
