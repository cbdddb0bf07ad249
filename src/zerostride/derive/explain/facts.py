"""The sentences about a plan, as data for drawings and reports."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...core.alignment import Rule, apply
from ...core.plan import Plan, RuleUse
from ...core.rules import RULES, whdc
from ...engines import ENGINES, Engine, find_engine
from ...errors import BroadcastError, as_names, operand_names, printable
from ...sizes import Shape, elements


class Fact(NamedTuple):
    """One sentence about a plan, and its kind.

    Kinds: ``stretch``, ``identical`` (nothing stretches), ``dropped``, ``growth``, ``order`` (the
    shapes in the engine's own order), ``two_sided`` (a warning). With open sizes also
    ``may_stretch``, ``needs`` (the conditions), ``interval`` (bounds of a result's size),
    ``given``, ``legend``, and ``case``, after which the facts of one case follow.
    """

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Growth:
    """The size of the result against its largest operand.

    Attributes:
        elements: number of elements of the result.
        largest: number of elements of the largest operand.
        operand: the index of that operand; the first of equals.
        factor: elements / largest, a whole number; None if the largest operand is empty.
    """

    elements: int
    largest: int
    operand: int
    factor: int | None


def growth(plan: Plan) -> Growth:
    """The result's size against the largest operand's, for a plan of numbers.

    >>> import zerostride as zs
    >>> growth(zs.plan((5, 1), (5,)))
    Growth(elements=25, largest=5, operand=0, factor=5)
    """
    sizes = [elements(shape) for shape in plan.operands]
    largest = max(sizes)
    total = elements(plan.shape)
    return Growth(total, largest, sizes.index(largest), total // largest if largest else None)


def names_of(plan: Plan, names: Sequence[Any] = ()) -> tuple[str, ...]:
    """Names of the operands and, last, of the result: those given, then defaults.

    >>> import zerostride as zs
    >>> names_of(zs.plan((2, 3), (3,)), ["a"])
    ('a', 'y', 'result')
    """
    names, count = as_names(names), len(plan.operands)
    if broadcasts_to(plan):
        operands: tuple[str, ...] = operand_names(names or ("data",), count)
    else:
        operands = operand_names(names, count)
    # Only mode bidirectional makes a result that differs from the target.
    last = "target" if broadcasts_to(plan) and plan.rule != "bidirectional" else "result"
    return (*operands, printable(names[count]) if len(names) > count else last)


def broadcasts_to(plan: Plan) -> bool:
    """Whether a Broadcast op made the plan (:func:`zerostride.plan_to`)."""
    rule = RULES.get(plan.rule)
    return rule is not None and rule.to_target


def headline(plan: Plan, names: Sequence[Any] = ()) -> str:
    """One line: which rule does what with which operands.

    >>> import zerostride as zs
    >>> headline(zs.plan((2, 3), (3,)))
    "rule 'numpy' combines x and y"
    """
    *operands, _ = names_of(plan, names)
    label = plan.rule.label
    engine = _engine_of(plan.rule)
    if engine is not None and not engine.run:
        label += " (read, not run)"
    if broadcasts_to(plan):
        over = str(plan.shape)
        if plan.open is not None:
            from .open import namer, shape_text

            over = shape_text(plan.shape, namer(plan, names))
        return f"{label} lays {operands[0]} over {over}"
    if len(operands) == 1:
        return f"{label} takes {operands[0]} alone"
    return f"{label} combines {listing(operands)}"


def listing(words: Sequence[str]) -> str:
    """Words as a sentence lists them.

    >>> listing(["x", "y", "z"])
    'x, y and z'
    """
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def cells(plan: Plan, names: Sequence[Any] = ()) -> list[tuple[str | None, ...]]:
    """Each operand's row of a drawing: a size, `1→5` where it stretches, None where nothing lands.

    An open size that may stretch is marked: `N⇢`.

    >>> import zerostride as zs
    >>> cells(zs.plan((2, 3, 5), (3, 1)))[1], cells(zs.plan(("N",), ("M",)))[0]
    ((None, '3', '1→5'), ('N⇢',))
    """
    operands = range(len(plan.operands))
    if plan.open is not None:
        from .open import namer, open_cells

        name = namer(plan, names)
        return [open_cells(plan, k, name) for k in operands]
    return [_closed_cells(plan, k) for k in operands]


def _closed_cells(plan: Plan, k: int) -> tuple[str | None, ...]:
    lands = set(plan.axes_mapping[k])
    return tuple(
        None if axis not in lands else f"1→{full}" if axis in plan.stretched[k] else str(size)
        for axis, (size, full) in enumerate(zip(plan.aligned[k], plan.shape, strict=True))
    )


def axis_names(plan: Plan) -> tuple[str, ...]:
    """The names of the result's axes: their own names if they have any, else their positions.

    >>> import zerostride as zs
    >>> axis_names(zs.plan((2, 3), (3,)))
    ('0', '1')
    """
    named = plan.rule.attributes.get("axes") if plan.rule == "xarray" else None
    return tuple(map(printable, named)) if named else tuple(map(str, range(plan.rank)))


def result_cells(plan: Plan, names: Sequence[Any] = ()) -> tuple[str, ...]:
    """The result's row of a drawing."""
    if plan.open is None:
        return tuple(map(str, plan.shape))
    from .open import namer, shown

    return tuple(shown(size, namer(plan, names)) for size in plan.shape)


def stretching(plan: Plan, k: int) -> Collection[int]:
    """The result axes along which operand k stretches, or may stretch."""
    if plan.open is None:
        return plan.stretched[k]
    from .open import Fate, fate

    return [axis for axis in plan.stretched[k] if fate(plan, k, axis) is not Fate.STAYS]


class Block(NamedTuple):
    """One drawing: its title (the condition of a case, or nothing), the plan, and its facts."""

    title: str
    plan: Plan
    facts: list[Fact]


def blocks(plan: Plan, names: Sequence[Any] = ()) -> tuple[list[Block], list[Fact]]:
    """The drawings, one below the other, and the facts that apply to all of them.

    >>> import zerostride as zs
    >>> [block.title for block in blocks(zs.plan(("H", "W"), ("W",), rule="ncnn"))[0]]
    ['where H == W:', 'where H != W:']
    """
    if plan.open is None:
        return [Block("", plan, facts(plan, names))], []
    from .open import open_blocks

    return open_blocks(plan, names)


def facts(plan: Plan, names: Sequence[Any] = ()) -> list[Fact]:
    """All facts about a plan, in reading order; warnings last.

    Args:
        plan: any plan.
        names: what to call the operands and, after them, the result.

    >>> import zerostride as zs
    >>> for kind, text in facts(zs.plan((3, 4), (4,))):
    ...     print(f"{kind}: {text}")
    stretch: y stretches along result axis 0 (absent→3)
    growth: the result has 12 elements, as many as x
    """
    if plan.open is not None:
        rows = []
        drawings, closing = blocks(plan, names)
        for title, _, of_case in drawings:
            rows += [Fact("case", title)] if title else []
            rows += of_case
        return rows + closing
    *operands, result = names_of(plan, names)
    rows = list(_stretch_facts(plan, operands))
    rows += _dropped_facts(plan, operands)
    rows.append(Fact("growth", _growth_text(plan, operands)))
    if plan.rule == "ncnn":
        rows.append(Fact("order", whdc_text(plan, operands, result)))
    if plan.two_sided:
        rows.append(Fact("two_sided", _two_sided_text(plan, operands)))
    return rows


def _stretch_facts(plan: Plan, names: Sequence[str]) -> Iterator[Fact]:
    if not any(plan.stretched):
        yield Fact("identical", "nothing stretches")
    for name, mapping, axes in zip(names, plan.axes_mapping, plan.stretched, strict=True):
        if axes:
            texts = [run_text(plan, absent, run) for absent, run in runs(axes, mapping)]
            which = f"{plural('axis', 'axes', axes)} {listing(texts)}"
            yield Fact("stretch", f"{name} stretches along result {which}")


def runs(
    axes: Sequence[int], mapping: Collection[int | None]
) -> Iterator[tuple[bool, tuple[int, ...]]]:
    """Runs of neighbouring axes that stretch alike, three or more together; each with: absent or a
    1.
    """
    # Consecutive axes have the same difference to their position.
    alike = itertools.groupby(
        enumerate(axes), key=lambda pair: (pair[1] - pair[0], pair[1] not in mapping)
    )
    for (_, absent), members in alike:
        run = tuple(axis for _, axis in members)
        yield from ((absent, part) for part in ([run] if len(run) > 2 else [(k,) for k in run]))


def run_text(
    plan: Plan, absent: bool, run: tuple[int, ...], written: Callable[[Any], str] = str
) -> str:
    """Axes that stretch alike, with the target extents."""
    names = axis_names(plan)
    axes = names[run[0]] if len(run) == 1 else f"{names[run[0]]}-{names[run[-1]]}"
    sizes = "×".join(written(plan.shape[axis]) for axis in run)
    return f"{axes} ({'absent' if absent else 1}→{sizes})"


def _dropped_facts(plan: Plan, names: Sequence[str]) -> Iterator[Fact]:
    for name, mapping in zip(names, plan.axes_mapping, strict=True):
        dropped = [str(axis) for axis, place in enumerate(mapping) if place is None]
        if dropped:
            yield Fact(
                "dropped",
                f"{plural('axis', 'axes', dropped)} {listing(dropped)} of {name}, of extent 1, "
                f"{plural('is', 'are', dropped)} dropped",
            )


def plural(singular: str, plural_form: str, items: Sequence[Any]) -> str:
    """Singular or plural of a word for that many items."""
    return singular if len(items) == 1 else plural_form


def _growth_text(plan: Plan, names: Sequence[str]) -> str:
    size = growth(plan)
    count = f"{size.elements:,} element{'' if size.elements == 1 else 's'}"
    name = names[size.operand]
    if size.elements == 0:
        inputs = "so are its inputs" if not size.largest else f"{name} has {size.largest:,}"
        return f"the result is empty; {inputs}"
    if size.factor == 1:
        return f"the result has {count}, as many as {name}"
    largest = f"its largest input, {name} ({size.largest:,})" if len(names) > 1 else name
    return f"the result has {count}, {size.factor:,} times {largest}"


def whdc_text(plan: Plan, names: Sequence[str], result: str) -> str:
    """The shapes in ncnn's order."""
    shapes = zip((*names, result), (*plan.operands, plan.shape), strict=True)
    return "in ncnn's order: " + ", ".join(f"{name} {_whdc(shape)}" for name, shape in shapes)


#: ncnn's axes by rank, innermost first (ncnn's Mat: the third axis is c; d exists from rank 4).
_NCNN_AXES = ("w", "w", "wh", "whc", "whdc")


def _whdc(shape: Shape) -> str:
    sizes = whdc(shape or (1,))
    if len(sizes) >= len(_NCNN_AXES):
        return str(list(sizes))
    axes = zip(_NCNN_AXES[len(sizes)], sizes, strict=True)
    return "[" + ", ".join(f"{axis}={size}" for axis, size in axes) + "]"


def _two_sided_text(plan: Plan, names: Sequence[str]) -> str:
    who = [name for name, axes in zip(names, plan.stretched, strict=True) if axes]
    text = (
        f"{listing(who)} {'both' if len(who) == 2 else 'all'} stretch, "
        "each along an axis that another one fills"
    )
    fix = element_by_element(plan)
    if fix is None:
        return f"{text}; right only if an outer combination is meant"
    k, shape = fix
    return f"{text}; to match element by element, reshape {names[k]} to {shape}"


def element_by_element(plan: Plan) -> tuple[int, Shape] | None:
    """For a two-sided plan: an operand, and a shape for it after which one operand does not
    stretch.

    Planned under the same rule before it is proposed; None if there is no such shape.

    >>> import zerostride as zs
    >>> element_by_element(zs.plan((5, 1), (5,)))
    (1, (5, 1))
    """
    row = row_of(plan.rule)
    if row is None or row.to_target:
        return None
    order = sorted(range(len(plan.operands)), key=lambda k: (len(plan.operands[k]), -k))
    for k in order:
        for j in order:
            placed = _placed(plan.operands[k], plan.operands[j])
            if j == k or placed is None:
                continue
            shapes = (*plan.operands[:k], placed, *plan.operands[k + 1 :])
            try:
                changed = apply(row, shapes, plan.rule.attributes)
            except BroadcastError:
                continue
            if not _may_be_two_sided(changed):
                return k, placed
    return None


def _may_be_two_sided(plan: Plan) -> bool:
    if plan.open is None:
        return plan.two_sided
    from .open import two_sided_where

    return not two_sided_where(plan).never


def _placed(shape: Shape, other: Shape) -> Shape | None:
    """`shape`'s sizes other than 1, each under an equal size of `other`; ones elsewhere."""
    extents = [size for size in shape if size != 1]
    row = []
    for size in reversed(other):
        row.append(extents.pop() if extents and extents[-1] == size else 1)
    return None if extents else tuple(reversed(row))


def _engine_of(use: RuleUse) -> Engine | None:
    """The row of the engine that made a plan; None for a plan made by hand."""
    if (use.engine or "").partition("@")[0] not in ENGINES:
        return None
    try:
        return find_engine(use.engine)
    except BroadcastError:
        return None  # a release that was not measured


def row_of(use: RuleUse) -> Rule | None:
    """The row of the rule or engine that made a plan; None for a plan made by hand."""
    if use.engine is None:
        return RULES.get(use.name)
    engine = _engine_of(use)
    if engine is None:
        return None
    tables = [engine.elementwise, engine.to_target]
    if use.op is not None and use.op in engine.ops:
        tables.insert(0, engine.ops[use.op])
    rows = (row for table in tables for row in table.values())
    return next((row for row in rows if row.name == use.name), None)


def as_dict(plan: Plan) -> dict[str, Any]:
    """A plan as plain data, ready for JSON.

    An open size is text, and ``growth`` is then None. In ``axes_mapping`` "depends" marks an axis
    that lands differently in different ``cases``.

    >>> import zerostride as zs
    >>> as_dict(zs.plan((2, 3), (3,)))["stretched"]
    [[], [0]]
    >>> as_dict(zs.plan(("N",), (5,), facts="N != 1"))["conditions"]
    ['N == 5']
    """
    data = _open_fields(plan) if plan.open is not None else _fields(plan)
    data["cases"] = [as_dict(case) for case in plan.cases] if plan.open is not None else []
    plain: dict[str, Any] = _plain(data)
    return plain


def _open_fields(plan: Plan) -> dict[str, Any]:
    from .open import open_dict

    return {**open_dict(plan), "rule": _rule_dict(plan.rule)}


def _fields(plan: Plan) -> dict[str, Any]:
    size = growth(plan)
    return {
        "shape": plan.shape,
        "operands": plan.operands,
        "aligned": plan.aligned,
        "axes_mapping": plan.axes_mapping,
        "stretched": plan.stretched,
        "may_stretch": [[] for _ in plan.operands],
        "rule": _rule_dict(plan.rule),
        "growth": {
            "elements": size.elements,
            "largest": size.largest,
            "operand": size.operand,
            "factor": size.factor,
        },
        "two_sided": plan.two_sided,
        "conditions": [],
        "given": [],
        "symbols": [],
    }


def _rule_dict(use: RuleUse) -> dict[str, Any]:
    return {
        "name": use.name,
        "attributes": use.attributes,
        "engine": use.engine,
        "op": use.op,
    }


def _plain(value: Any) -> Any:
    """The value that JSON would give back: lists for tuples, whole numbers for NumPy's."""
    if hasattr(value, "tolist"):  # an attribute may be a NumPy array or scalar
        return _plain(value.tolist())
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [_plain(item) for item in value]
    return int(value) if hasattr(value, "__index__") else str(value)
