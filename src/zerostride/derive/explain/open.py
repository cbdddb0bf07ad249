"""The sentences about a plan with open sizes: possible results, and their conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

from ...core.plan import Plan
from ...core.symbolic import symbols as symbols_of
from ...errors import default_names
from ...sizes import Shape
from ...sizes.budget import Same, answer_cache
from ...sizes.condition import ALWAYS, NEVER, Condition, all_of, any_of, eq, ne
from ...sizes.dim import Dim, Number, Symbol, calls, dim, lone_symbol, name_of
from ...sizes.simplify import simplified
from ...sizes.solve import bounds_under, excludes, implies
from .facts import Block, Fact, broadcasts_to, listing, names_of, plural, run_text, runs, whdc_text

#: Marks a size that may stretch.
MAY = "⇢"
_LEGEND = f"{MAY} marks a size that may stretch: it does where it is 1 and the result is not"
#: Characters of a product or condition in text; a longer one is left out.
_LONGEST = 300
_LONGEST_PRODUCT = 60

#: Comparisons in a condition up to which it is simplified, and up to which its possibility is
#: checked: a warning must not take seconds.
_MOST_COMPARISONS, _MOST_ASKED = 16, 24
#: Characters of a condition in a warning.
_LONGEST_WARNING = 120
#: Marks an axis, in a mapping, that lands elsewhere in another case.
_DEPENDS: Any = ...

Namer = Callable[[Symbol], str]


class Fate(Enum):
    """The way of a size to the result."""

    STAYS = "stays"
    STRETCHES = "stretches"
    MAY_STRETCH = "may stretch"


# Words for sizes.


def namer(plan: Plan, names: Sequence[Any] = ()) -> Namer:
    """A function that writes symbols: it calls a size without a name by its operand, ``x[0]``."""
    defaults = ("data", "target") if broadcasts_to(plan) else default_names(len(plan.operands))
    called = dict(zip(defaults, names_of(plan, names), strict=False))

    def name(symbol: Symbol) -> str:
        operand, bracket, rest = symbol.name.partition("[")
        if symbol.named or not bracket:
            return name_of(symbol)
        return called.get(operand, operand) + bracket + rest

    return name


def shown(size: Number, name: Namer) -> str:
    """A size in a drawing: ``?`` and bounds as written, expressions with the names of their
    symbols.
    """
    if not isinstance(size, Dim) or lone_symbol(size) is not None:
        return str(size)
    return size.write(name)


def shape_text(shape: Shape, name: Namer = name_of) -> str:
    """A shape as Python prints one, with sizes as drawings show them.

    >>> shape_text((Dim("N"), 1)), shape_text((Dim("?"),))
    ('(N, 1)', '(?,)')
    """
    sizes = ", ".join(shown(size, name) for size in shape)
    return f"({sizes},)" if len(shape) == 1 else f"({sizes})"


# The fate of sizes.


def plan_facts(plan: Plan) -> Condition:
    """The condition that holds wherever the plan exists: the caller's facts and its needs."""
    if plan.open is None:
        return ALWAYS
    return all_of([plan.open.given, plan.conditions])


def fate(plan: Plan, k: int, axis: int) -> Fate:
    """Whether operand `k` stretches along a result axis; an absent axis counts as a 1."""
    return _fates(plan)[k][axis]


def _fates(plan: Plan) -> tuple[tuple[Fate, ...], ...]:
    """The fate of every size of every operand."""
    return _all_fates(Same(plan))


@answer_cache
def _all_fates(where: Same) -> tuple[tuple[Fate, ...], ...]:
    plan: Plan = where.value
    premises = plan_facts(plan)
    return tuple(
        tuple(
            _fate(dim(size), dim(full), premises) if axis in stretched else Fate.STAYS
            for axis, (size, full) in enumerate(zip(aligned, plan.shape, strict=True))
        )
        for aligned, stretched in zip(plan.aligned, map(frozenset, plan.stretched), strict=True)
    )


@answer_cache
def _fate(size: Dim, full: Dim, where: Condition) -> Fate:
    if size == 1:
        return Fate.STRETCHES
    if implies(where, eq(size, full)):
        return Fate.STAYS
    return Fate.STRETCHES if implies(where, eq(size, 1)) else Fate.MAY_STRETCH


def open_cells(plan: Plan, k: int, name: Namer = name_of) -> tuple[str | None, ...]:
    """Operand k's row of a drawing: `1→C`, `N⇢` where it may stretch, None where nothing lands."""
    lands = _lands(plan, k)
    row: list[str | None] = []
    for axis, (size, full) in enumerate(zip(plan.aligned[k], plan.shape, strict=True)):
        text = shown(size, name)
        match fate(plan, k, axis):
            case Fate.STRETCHES:
                text = f"{text}→{shown(full, name)}"
            case Fate.MAY_STRETCH:
                text += MAY
        row.append(text if axis in lands else None)
    return tuple(row)


def _lands(plan: Plan, k: int) -> set[int | None]:
    """The result axes on which an axis of operand k lands in at least one case."""
    assert plan.open is not None
    return {axis for leaf in plan.open.accepted for axis in leaf.mapping[k]}


def ways(plan: Plan) -> tuple[Plan, ...]:
    """The cases that need a drawing each; the plan alone if one drawing covers all.

    >>> import zerostride as zs
    >>> len(ways(zs.plan(("H", "W"), ("W",), rule="ncnn")))
    2
    """
    if any(_chosen(size) for shape in (plan.shape, *plan.aligned) for size in shape):
        return plan.cases or (plan,)
    return (plan,)


def _chosen(size: Number) -> bool:
    return isinstance(size, Dim) and any(call.function == "choose" for call in calls(size))


def two_sided_where(plan: Plan) -> Condition:
    """The condition that every operand stretches, each along an axis that another one fills.

    >>> import zerostride as zs
    >>> print(two_sided_where(zs.plan(("N", 1), ("M",))))
    M != 1 and N != 1
    """
    if len(plan.operands) < 2 or not all(plan.stretched):
        return NEVER
    if plan.open is None:
        return ALWAYS
    each = []
    for aligned in plan.aligned:
        each.append(any_of(_stretch_where(plan, aligned, axis) for axis in range(plan.rank)))
    return _simplified(all_of(each), plan_facts(plan))


def _stretch_where(plan: Plan, aligned: Shape, axis: int) -> Condition:
    """The condition that a size is 1 and the result's is not, in terms of operands."""
    size, full = aligned[axis], plan.shape[axis]
    if size == full:
        return NEVER
    wide = ne(full, 1)
    if isinstance(full, Dim) and next(calls(full), None) is not None:
        wide = any_of(ne(other[axis], 1) for other in plan.aligned if other is not aligned)
    return all_of([eq(size, 1), wide])


def _simplified(condition: Condition, facts: Condition) -> Condition:
    return _in_words(condition, facts, str(condition))


@answer_cache
def _in_words(condition: Condition, facts: Condition, written: str) -> Condition:
    comparisons = sum(1 for _ in condition.sizes())
    if comparisons <= _MOST_COMPARISONS:
        return simplified(condition, facts)
    if comparisons > _MOST_ASKED:
        return condition
    return NEVER if excludes(facts, condition) else condition


# Sentences.


def open_blocks(plan: Plan, names: Sequence[Any] = ()) -> tuple[list[Block], list[Fact]]:
    """One drawing, or one for each case; then the facts common to all."""
    name = namer(plan, names)
    cases = ways(plan)
    if len(cases) < 2:
        return [Block("", plan, _facts(plan, names, _once(plan, cases, name)))], []
    drawings = [
        Block(f"where {condition_text(case.conditions, name)}:", case, _facts(case, names, []))
        for case in cases
    ]
    return drawings, _once(plan, cases, name)


def _once(plan: Plan, cases: Sequence[Plan], name: Namer) -> list[Fact]:
    """The common facts: the conditions, unless the cases show them, and the caller's facts."""
    assert plan.open is not None
    rows = []
    if len(cases) < 2 and len(plan.conditions):
        rows.append(Fact("needs", f"needs: {condition_text(plan.conditions, name)}"))
    if not plan.open.given.always:
        rows.append(Fact("given", f"given: {condition_text(plan.open.given, name)}"))
    if any(Fate.MAY_STRETCH in row for case in cases for row in _fates(case)):
        rows.append(Fact("legend", _LEGEND))
    return rows


def _facts(plan: Plan, names: Sequence[Any], once: Sequence[Fact]) -> list[Fact]:
    """The facts of one drawing, with the common facts `once` in their place."""
    name = namer(plan, names)
    *operands, result = names_of(plan, names)
    rows = [*_stretch_facts(plan, operands, name), *once]
    rows += _interval_facts(plan, result, name)
    growth = _growth_text(plan, operands, result, name)
    if growth:
        rows.append(Fact("growth", growth))
    if plan.rule == "ncnn":
        rows.append(Fact("order", whdc_text(plan, operands, result)))
    warned = _two_sided_text(plan, operands, name)
    if warned:
        rows.append(Fact("two_sided", warned))
    return rows


def condition_text(condition: Condition, name: Namer = name_of) -> str:
    """A condition in words, cut off if it is long."""
    text = condition.write(name)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _stretch_facts(plan: Plan, names: Sequence[str], name: Namer) -> Iterator[Fact]:
    fates = _fates(plan)
    if all(each is Fate.STAYS for row in fates for each in row):
        yield Fact("identical", "nothing stretches")
    for k, (called, row) in enumerate(zip(names, fates, strict=True)):
        certain = [axis for axis, each in enumerate(row) if each is Fate.STRETCHES]
        if certain:
            text = [
                run_text(plan, absent, run, lambda size: shown(size, name))
                for absent, run in runs(certain, _lands(plan, k))
            ]
            axes = plural("axis", "axes", certain)
            yield Fact("stretch", f"{called} stretches along result {axes} {listing(text)}")
        maybe = [axis for axis, each in enumerate(row) if each is Fate.MAY_STRETCH]
        if maybe:
            text = [
                f"{axis} (where {condition_text(eq(plan.aligned[k][axis], 1), name)})"
                for axis in maybe
            ]
            axes = plural("axis", "axes", maybe)
            yield Fact("may_stretch", f"{called} may stretch along result {axes} {listing(text)}")
    for called, mapping in zip(names, plan.axes_mapping, strict=True):
        dropped = [str(axis) for axis, place in enumerate(mapping) if place is None]
        if dropped:
            axes, are = plural("axis", "axes", dropped), plural("is", "are", dropped)
            text_ = f"{axes} {listing(dropped)} of {called}, of extent 1, {are} dropped"
            yield Fact("dropped", text_)


def _interval_facts(plan: Plan, result: str, name: Namer) -> Iterator[Fact]:
    """Bounds of result sizes that neither the drawing nor the caller's facts show."""
    assert plan.open is not None
    where, facts = plan_facts(plan), plan.open.given
    for axis, size in enumerate(plan.shape):
        if not isinstance(size, Dim):
            continue
        low, high = bounds_under(size, where)
        # The needs already state the lower bound of a symbol.
        if lone_symbol(size) is not None and (high is None or high == bounds_under(size, facts)[1]):
            continue
        if high is None and not low:
            continue
        ends = f"from {low} up" if high is None else f"{low}..{high}" if low != high else str(low)
        yield Fact("interval", f"axis {axis} of the {result}, {shown(size, name)}, is {ends}")


def _growth_text(plan: Plan, names: Sequence[str], result: str, name: Namer) -> str:
    """The number of elements, if it can be expressed."""
    for called, row in zip(names, _fates(plan), strict=True):
        if all(each is Fate.STAYS for each in row):
            return f"the {result} has as many elements as {called}"
    texts = [_product(shape, name) for shape in (plan.shape, *plan.operands)]
    if any(map(_opaque, plan.shape)) or sum(map(len, texts)) > _LONGEST_PRODUCT:
        return ""
    inputs = listing([f"{called} {text}" for called, text in zip(names, texts[1:], strict=True)])
    return f"the {result} has {texts[0]} elements, {inputs}"


def _product(shape: Shape, name: Namer) -> str:
    """The number of elements as a product, outermost size first."""
    if 0 in shape:
        return "0"
    sizes = [shown(size, name) for size in shape if size != 1]
    if len(sizes) > 1:
        sizes = [f"({size})" if " " in size or size.startswith("-") else size for size in sizes]
    return "*".join(sizes) or "1"


def _opaque(size: Number) -> bool:
    return isinstance(size, Dim) and next(calls(size), None) is not None


def _two_sided_text(plan: Plan, names: Sequence[str], name: Namer) -> str:
    from .facts import element_by_element

    where = two_sided_where(plan)
    if where.never:
        return ""
    condition = where.write(name)
    there = f"where {condition}, " if len(condition) <= _LONGEST_WARNING else "at some sizes "
    there = "" if where.always else there
    text = (
        f"{there}{listing(names)} {'both' if len(names) == 2 else 'all'} stretch, "
        "each along an axis that another one fills"
    )
    fix = element_by_element(plan)
    if fix is None:
        return f"{text}; right only if an outer combination is meant"
    k, shape = fix
    fitted = shape_text(shape, name)
    return f"{text}; to match element by element, reshape {names[k]} to {fitted}"


# Data.


def open_dict(plan: Plan) -> dict[str, Any]:
    """The further fields of a plan with open sizes, ready for JSON."""
    name = namer(plan)

    def sizes(shape: Shape) -> list[int | str]:
        return [size if isinstance(size, int) else shown(size, name) for size in shape]

    assert plan.open is not None
    where = two_sided_where(plan)
    fates = _fates(plan)
    return {
        "shape": sizes(plan.shape),
        "operands": [sizes(shape) for shape in plan.operands],
        "aligned": [sizes(shape) for shape in plan.aligned],
        "axes_mapping": [["depends" if a is _DEPENDS else a for a in m] for m in plan.axes_mapping],
        "stretched": _axes(fates, Fate.STRETCHES),
        "may_stretch": _axes(fates, Fate.MAY_STRETCH),
        "growth": None,
        "two_sided": where.always,
        "two_sided_where": None if where.never else where.write(name),
        "conditions": [clause.write(name) for clause in plan.conditions],
        "given": [clause.write(name) for clause in plan.open.given],
        "symbols": [_symbol_dict(symbol, name) for symbol in symbols_of(plan)],
    }


def _axes(fates: Sequence[Sequence[Fate]], fate: Fate) -> list[list[int]]:
    return [[axis for axis, each in enumerate(row) if each is fate] for row in fates]


def _symbol_dict(symbol: Symbol, name: Namer) -> Mapping[str, Any]:
    return {
        "name": name(symbol),
        "low": symbol.low,
        "high": symbol.high,
        "named": symbol.named,
    }
