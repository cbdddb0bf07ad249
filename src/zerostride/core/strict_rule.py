"""A rule's row with limits: its refusals in strict mode, and its proposals.

A strict rule is the rule's row with a further `check` and its own hints. So it works wherever rules
do: with open sizes, engines and comparisons.
"""

from __future__ import annotations

import functools
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ..errors import (
    STRICT,
    AccidentalBroadcastWarning,
    BroadcastError,
    Misfit,
    Reason,
    default_names,
)
from ..sizes import Asker, Shape, as_shape, is_open
from .alignment import Attributes, Rule, laid_out, placements, plan_or_none, text
from .plan import Plan, RuleUse
from .strict_mode import Strict

if TYPE_CHECKING:
    from types import FrameType

    from ..sizes.condition import Condition


#: The folder of the package.
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def strict_row(row: Rule, limits: Strict, target: Any = None) -> Rule:
    """A rule's row with refusals beyond the limits.

    Args:
        row: the rule.
        limits: the limits.
        target: of a Broadcast op, the target's shape.
    """
    return replace(
        row,
        check=functools.partial(_check, row, limits, target),
        advise=functools.partial(_advise, row, limits),
    )


def limited(plan: Callable[[Rule], Plan], row: Rule, limits: Strict, target: Any = None) -> Plan:
    """The plan under limits, which refuse or warn.

    Args:
        plan: plans with a rule's row.
        row, limits, target: as for :func:`strict_row`.
    """
    strict = strict_row(row, limits, target)
    if limits.level == "error":
        return plan(strict)
    result = plan(row)
    try:
        plan(strict)
    except BroadcastError as refusal:
        if refusal.reason in STRICT and limits.level == "log":
            _log(refusal)
        elif refusal.reason in STRICT:
            warnings.warn(str(refusal), AccidentalBroadcastWarning, stacklevel=_users_level())
    return result


def _log(refusal: BroadcastError) -> None:
    """Logs a refusal; the text begins with the user's line."""
    import logging  # most programs log no broadcasts

    level = _users_level()
    frame = sys._getframe(level - 1)
    place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
    logging.getLogger("zerostride.strict").warning("%s: %s", place, refusal, stacklevel=level)


def _users_level() -> int:
    """The `stacklevel` of the caller's caller's line outside of this package."""
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    return level


def _check(row: Rule, limits: Strict, target: Any, plan: Plan, asker: Asker) -> None:
    """Raises a Misfit for a plan beyond the limits. The rule's own refusals come first."""
    if row.check is not None:
        row.check(plan, asker)
    rows = list(plan.aligned)
    names = ("data", "target") if row.to_target else default_names(len(rows))
    if row.to_target and row.name == "bidirectional":  # the target may stretch, too
        sizes = _target_sizes(target)
        rows.append((1,) * (plan.rank - len(sizes)) + sizes)
    if not limits.two_sided:
        _check_sides(plan, asker, rows, names)
    if not (limits.new_axes or row.to_target):
        _check_axes(plan, names)
    if limits.max_growth is not None:
        _check_growth(plan, asker, rows, limits.max_growth)


def _target_sizes(target: Any) -> Shape:
    if is_open(target):
        from .symbolic import open_shape

        return open_shape(target, "target")
    return as_shape(target)


def _check_sides(plan: Plan, asker: Asker, rows: Sequence[Shape], names: Sequence[str]) -> None:
    """Refuses operands that each stretch along an axis that another one fills."""
    stretched = _stretched(asker, rows)
    if not all(stretched):
        return
    first, second = _two_sides(stretched)
    here, there = stretched[first][-1], stretched[second][0]
    detail = f"{names[first]} stretches here and {names[second]} along axis {there}"
    raise Misfit(
        Reason.TWO_SIDED, detail + _size_said(plan, rows), axis=here, rows=_drawn(plan, rows)
    )


def _stretched(asker: Asker, rows: Sequence[Shape]) -> list[list[int]]:
    """For each operand, the axes along which it has extent 1 and another operand has not."""
    is_one: dict[Any, bool] = {}
    for size in (size for row in rows for size in row):
        if size not in is_one:
            is_one[size] = asker.is_one(size)
    axes = [k for k, sizes in enumerate(zip(*rows, strict=True)) if not all(map(is_one.get, sizes))]
    return [[k for k in axes if is_one[row[k]]] for row in rows]


def _two_sides(stretched: Sequence[Sequence[int]]) -> tuple[int, int]:
    """Two operands, each of which stretches along an axis where the other does not."""
    for first, axes in enumerate(stretched):
        for second, others in enumerate(stretched):
            if set(axes) - set(others) and set(others) - set(axes):
                return first, second
    return 0, len(stretched) - 1  # three or more, no two of which stretch against each other


def _size_said(plan: Plan, rows: Sequence[Shape]) -> str:
    """The size of the result as a phrase, if it is known."""
    if plan.open is not None:
        return ""
    size, largest = math.prod(plan.shape), max(map(math.prod, rows))
    times = f", {_times(size, largest)} the largest operand's" if size > largest > 0 else ""
    return f", so the result has {size} elements{times}"


def _times(size: int, largest: int) -> str:
    times = f"{size / largest:.1f}".removesuffix(".0")
    return f"{times} times"


def _check_axes(plan: Plan, names: Sequence[str]) -> None:
    """Refuses operands of fewer axes than the result, unless they have none."""
    for name, operand, mapping in zip(names, plan.operands, plan.axes_mapping, strict=True):
        missing = [axis for axis in range(plan.rank) if axis not in mapping]
        if not operand or len(operand) >= plan.rank:
            continue
        detail = f"{name} has {len(operand)} of the {plan.rank} axes, and not this one"
        raise Misfit(Reason.NEW_AXES, detail, axis=missing[-1], rows=_drawn(plan, ()))


def _check_growth(plan: Plan, asker: Asker, rows: Sequence[Shape], most: float) -> None:
    """Refuses a result of more elements than `most` times those of the largest operand."""
    if plan.open is not None:
        _require_growth(plan, asker, rows, most)
        return
    size, largest = math.prod(plan.shape), max(map(math.prod, rows))
    if size <= Fraction(most) * largest:
        return
    k = max(range(len(rows)), key=lambda k: math.prod(rows[k]))
    axis = next((a for a, n in enumerate(rows[k]) if n != plan.shape[a]), None)
    detail = f"{size} elements, {_times(size, largest)} the largest operand's; max_growth is {most}"
    raise Misfit(Reason.GROWTH, detail, axis=axis, rows=_drawn(plan, rows))


def _require_growth(plan: Plan, asker: Asker, rows: Sequence[Shape], most: float) -> None:
    """Adds the limit on growth as a condition of a plan with open sizes."""
    from ..sizes.condition import any_of, ge
    from ..sizes.dim import dim
    from .branching import Forks

    limit = Fraction(most)

    def elements(shape: Shape) -> Any:
        return functools.reduce(lambda a, b: a * b, map(dim, shape), dim(1))

    size = elements(plan.shape) * limit.denominator
    fits: Condition = any_of(ge(elements(row) * limit.numerator, size) for row in rows)
    if fits.never:
        raise Misfit(Reason.GROWTH, f"the result grows more than {most} times, whatever the sizes")
    if not fits.always and isinstance(asker, Forks):
        asker.required.append(fits)


def _drawn(plan: Plan, rows: Sequence[Shape]) -> list[list[Any]]:
    """The operands at the result's rank, None where no axis lands; then further rows."""
    drawn = laid_out(plan.operands, plan.axes_mapping, plan.rank)
    return drawn + [list(row) for row in rows[len(drawn) :]]


# Proposals.


def _advise(
    row: Rule, limits: Strict, rule: Rule, shapes: Sequence[Any], use: RuleUse, reason: Reason
) -> str | None:
    """Fixes for a refusal by the limits, each planned before it is proposed; None for other
    refusals.
    """
    if reason not in STRICT:
        return None
    allowed = _allowance(row, limits, shapes, use.attributes)
    advice = [
        next(_reshapes(row, rule, shapes, use.attributes), None),
        None if allowed is None else f"allow it: {allowed}",
    ]
    return "; or ".join(words for words in advice if words is not None) or None


def _reshapes(
    row: Rule, rule: Rule, shapes: Sequence[Any], attributes: Attributes
) -> Iterator[str]:
    """Reshapes of operands that the strict rule accepts: all operands at the result's rank, which
    keeps the meaning, or one operand elsewhere.
    """
    if row.to_target:
        return
    names = default_names(len(shapes))
    plan = plan_or_none(row, shapes, attributes)
    for options in ({}, attributes) if attributes else (attributes,):
        left_out = "" if options == attributes else f" and leave out {' and '.join(attributes)}"
        if plan is not None and plan.open is None:
            written = [a if len(o) else o for o, a in zip(shapes, plan.aligned, strict=True)]
            if plan_or_none(rule, written, options) == plan:
                yield _listed(names, shapes, written) + left_out
    for k in sorted(range(len(shapes)), key=lambda k: (len(shapes[k]), -k)):
        rank = max(map(len, shapes))
        extents = tuple(size for size in shapes[k] if not (type(size) is int and size == 1))
        for placed in (extents, *placements(extents, rank)):
            changed = [*shapes[:k], placed, *shapes[k + 1 :]]
            if placed != tuple(shapes[k]) and plan_or_none(rule, changed, attributes):
                yield f"reshape {names[k]} to {text(placed)}"


def _listed(names: Sequence[str], shapes: Sequence[Any], written: Sequence[Any]) -> str:
    changed = [
        f"{name} to {text(to)}"
        for name, shape, to in zip(names, shapes, written, strict=True)
        if tuple(shape) != tuple(to)
    ]
    return f"reshape {' and '.join(changed)}"


def _allowance(
    row: Rule, limits: Strict, shapes: Sequence[Any], attributes: Attributes
) -> str | None:
    """The limits that accept the shapes as they are, with as few further allowances as possible."""
    target = shapes[1] if row.to_target else None
    plan = plan_or_none(row, shapes, attributes)
    if plan is None or plan.open is not None:
        return None
    operands = shapes if row.to_target else plan.operands
    largest = max(map(math.prod, operands if row.name != "unidirectional" else plan.operands))
    growth = math.ceil(Fraction(math.prod(plan.shape), largest)) if largest else 1
    for _ in STRICT:
        try:
            _check(row, limits, target, plan, Asker())
        except Misfit as misfit:
            limits = limits.allowing(misfit.reason, growth)
        else:
            break
    fits = plan_or_none(strict_row(row, limits, target), shapes, attributes)
    return str(limits) if fits == plan else None


__all__ = ["strict_row"]
