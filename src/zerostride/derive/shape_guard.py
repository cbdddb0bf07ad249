"""From open sizes to real ones: binds a plan, and checks real shapes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..core.alignment import resolve
from ..core.leaves import Leaf
from ..core.plan import Plan
from ..core.symbolic import assemble, replaced_shape, substituted, symbols
from ..errors import BroadcastError, Misfit, Reason, operand_names
from ..sizes import Asker, as_shape, brief
from ..sizes.condition import Condition, all_of
from ..sizes.dim import Dim, Number, Symbol, dim, of_atom, plain
from ..sizes.parse import as_dim
from ..sizes.shapes import as_tuple, whole_number
from ..sizes.solve import listing
from ..sizes.system import System


def bind(plan: Plan, shapes: Sequence[Any], sizes: Mapping[str, Any]) -> Plan:
    """The plan with open sizes replaced; see :meth:`zerostride.Plan.bind`."""
    named: dict[Any, Any] = dict(sizes)
    if shapes and isinstance(shapes[0], Mapping):
        named = {**shapes[0], **named}
        shapes = shapes[1:]
    shapes = [getattr(shape, "shape", shape) for shape in shapes]  # an array stands for its shape
    if plan.open is None:
        _only_numbers(plan, shapes, named)
        return plan
    try:
        values = _values(plan, named)
        values.update(_matched(plan, shapes, values))
    except Misfit as misfit:
        raise _refused(plan, misfit.detail, misfit.reason) from None
    numbers = {symbol: value for symbol, value in values.items() if isinstance(value, int)}
    for symbol, number in numbers.items():
        if number < symbol.low or (symbol.high is not None and number > symbol.high):
            detail = f"{symbol.name} is {number}, outside its bounds {symbol.text}"
            raise _refused(plan, detail, Reason.BAD_EXTENT)
    missing = [s for s in (*symbols(plan), *plan.open.given.symbols) if s not in numbers]
    if not missing:
        return _concrete(plan, numbers)
    try:
        leaves = tuple(substituted(leaf, values) for leaf in plan.open.leaves)
        operands = tuple(replaced_shape(shape, values) for shape in plan.operands)
        facts = plan.open.given.substitute(values)
        possible = tuple(leaf for leaf in leaves if not leaf.path.never)
        return assemble(plan.rule, operands, possible, facts)
    except Misfit as misfit:
        raise _refused(plan, misfit.detail, misfit.reason, misfit.axis) from None
    except ArithmeticError as fault:  # a size does not exist for these values
        raise _refused(plan, str(fault), Reason.BAD_EXTENT) from None


def _only_numbers(plan: Plan, shapes: Sequence[Any], named: Mapping[Any, Any]) -> None:
    """A plan of numbers is bound to the same shapes only; anything else is refused."""
    if named:
        detail = f"there is no size {brief(next(iter(named)))} to bind: all sizes are numbers"
        raise _refused(plan, detail, Reason.ATTRIBUTE)
    if shapes and tuple(map(_whole, shapes)) != plan.operands:
        detail = f"the plan was made for {', '.join(map(str, plan.operands))}"
        raise _refused(plan, detail, Reason.EXTENT_MISMATCH)


def _whole(shape: Any) -> Any:
    try:
        return as_shape(shape)
    except Misfit:
        return shape


def _refused(plan: Plan, detail: str, reason: Reason, axis: int | None = None) -> BroadcastError:
    return BroadcastError(detail, reason=reason, rule=plan.rule, shapes=plan.operands, axis=axis)


def _values(plan: Plan, named: Mapping[Any, Any]) -> dict[Symbol, Number]:
    """The values given by name (or by Dim or Symbol)."""
    assert plan.open is not None
    by_name = {s.name: s for s in (*symbols(plan), *plan.open.given.symbols)}
    values: dict[Symbol, Number] = {}
    for key, value in named.items():
        name = key.words if isinstance(key, Dim) else getattr(key, "name", key)
        if name not in by_name:
            those = ", ".join(by_name) or "none"
            raise Misfit(
                Reason.ATTRIBUTE, f"there is no size {brief(name)} to bind; there are: {those}"
            )
        if isinstance(value, str | Dim):
            values[by_name[name]] = plain(as_dim(value) if isinstance(value, str) else value)
        else:
            values[by_name[name]] = as_shape((whole_number(value),))[0]
    return values


def _matched(
    plan: Plan, shapes: Sequence[Any], values: Mapping[Symbol, Number]
) -> dict[Symbol, Number]:
    """The values for which the operands' sizes equal those of real shapes."""
    if not shapes:
        return {}
    if len(shapes) != len(plan.operands):
        plural = "" if len(shapes) == 1 else "s"
        detail = f"{len(shapes)} shape{plural} for a plan of {len(plan.operands)} operands"
        raise Misfit(Reason.OPERAND_COUNT, detail)
    names = operand_names((), len(shapes))
    system = System()
    for symbol, value in values.items():
        system.assume("==", of_atom(symbol) - value)
    unknowns: list[Symbol] = []
    for name, shape, operand in zip(names, shapes, plan.operands, strict=True):
        if shape is None:
            continue
        real = as_shape(as_tuple(shape))
        if len(real) != len(operand):
            detail = f"{name} has rank {len(real)}; the plan was made for {len(operand)} axes"
            raise Misfit(Reason.RANK, detail)
        for axis, (size, number) in enumerate(zip(operand, real, strict=True)):
            unknowns += dim(size).symbols
            if not system.assume("==", dim(size) - number):
                words = dim(size).words
                detail = f"axis {axis} of {name} is {number}; the plan was made for {words}"
                raise Misfit(Reason.EXTENT_MISMATCH, detail)
    solved = {s: plain(system.reduced(of_atom(s))) for s in dict.fromkeys(unknowns)}
    return {symbol: value for symbol, value in solved.items() if isinstance(value, int)}


def _concrete(plan: Plan, values: Mapping[Symbol, int]) -> Plan:
    """The plan of numbers: that of the one leaf whose path holds."""
    assert plan.open is not None
    where = listing(values)
    if not plan.open.given.evaluate(values):
        detail = f"{where} contradicts what is given: {plan.open.given}"
        raise _refused(plan, detail, Reason.EXTENT_MISMATCH)
    try:
        operands = tuple(_numbers(shape, values) for shape in plan.operands)
    except ArithmeticError as fault:
        raise _refused(plan, f"for {where} {fault}", Reason.BAD_EXTENT) from None
    for shape in operands:
        if any(size < 0 for size in shape):
            raise _refused(plan, f"for {where} an operand is {shape}", Reason.BAD_EXTENT)
    leaf = next((leaf for leaf in plan.open.leaves if leaf.path.evaluate(values)), None)
    if leaf is None:
        raise _refused(plan, f"there is no plan for {where}", Reason.EXTENT_MISMATCH)
    refused = _fault(leaf, values)
    if refused is not None:
        error = BroadcastError(
            f"for {where}: {refused.detail}",
            reason=refused.reason,
            rule=plan.rule,
            shapes=operands,
            axis=refused.axis,
            rows=refused.rows,
            silent=refused.reason in leaf.rule.silent,
        )
        raise error
    try:
        return Plan(_numbers(leaf.shape, values), operands, leaf.mapping, plan.rule)
    except Misfit as misfit:
        raise _refused(plan, misfit.detail, misfit.reason) from None
    except ArithmeticError as fault:  # the target's size does not exist
        raise _refused(plan, f"for {where} {fault}", Reason.BAD_EXTENT) from None


def _fault(leaf: Leaf, values: Mapping[Symbol, int]) -> Misfit | None:
    """The reason why this leaf has no plan for these values, or None."""
    if leaf.misfit is None and leaf.fits.evaluate(values):
        return None
    sizes = tuple(_numbers(shape, values) for shape in leaf.sizes)
    asker = Asker()
    try:  # for numbers, the rule's own error comes first
        resolve(asker, sizes, leaf.rule.align(asker, sizes, leaf.attributes), leaf.rule)
    except Misfit as misfit:
        return misfit
    return leaf.misfit or Misfit(Reason.EXTENT_MISMATCH, "the sizes do not fit")


def _numbers(shape: Iterable[Number], values: Mapping[Symbol, int]) -> tuple[int, ...]:
    return tuple(size if isinstance(size, int) else size.evaluate(values) for size in shape)


class Guard:
    """A check of real shapes against a plan's conditions.

    Called with arrays or shapes, one for each operand (for a Broadcast op the data; the target's
    sizes are given by name), it returns the plan for them. A BroadcastError names a condition that
    does not hold. `str` is the condition.
    """

    __slots__ = ("plan",)

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def __call__(self, /, *operands: Any, **sizes: Any) -> Plan:
        """The plan for these arrays or shapes; a BroadcastError if there is none."""
        return self.plan.bind(*operands, **sizes)

    @property
    def condition(self) -> Condition:
        """The checked condition: the caller's facts, and the plan's needs."""
        if self.plan.open is None:
            return self.plan.conditions
        return all_of([self.plan.open.given, self.plan.conditions])

    def __str__(self) -> str:
        return str(self.condition)

    def __repr__(self) -> str:
        return f"<Guard {self}>"

    def code(self, names: Sequence[str] = ()) -> str:
        """The check as Python source: symbols read from the operands' shapes, then assertions.

        >>> import zerostride as zs
        >>> print(zs.plan(("N", 3), ("M", 3)).guard().code())
        assert len(x.shape) == 2 and x.shape[1] == 3, "x is not (N, 3)"
        N, _ = x.shape
        assert len(y.shape) == 2 and y.shape[1] == 3, "y is not (M, 3)"
        M, _ = y.shape
        assert M == N or N == 1 or M == 1, "x and y do not broadcast on axis 0"
        """
        from .code import guard_code

        return guard_code(self.plan, names)


__all__ = ["Guard", "bind"]
