"""The driver for sizes that are not known yet: the same rules, all ways they may go.

An align function asks whether sizes are equal or 1. Where the answer depends on values, it is run
once for either answer: each run is a :class:`Leaf`, with the answers as its condition. Along each
result axis of a leaf one clause says when the sizes fit, and one size comes out. All leaves
together are the plan: nothing is assumed, and nothing is left out.
"""

# One driver, each part of which takes what the one before it made: longer than other files.

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..errors import Misfit, Reason, default_names
from ..sizes import MAX_RANK, Asker, Shape
from ..sizes.budget import Same, kept, work
from ..sizes.condition import ALWAYS, Condition, all_of, any_of, eq, ge
from ..sizes.dim import (
    MAX_ARGUMENTS,
    Dim,
    Number,
    Symbol,
    dim,
    lone_call,
    lone_symbol,
    plain,
    weight_of,
)
from ..sizes.functions import broadcast_size, choose
from ..sizes.parse import read_shape
from ..sizes.shapes import Answer, as_tuple
from ..sizes.solve import excludes, implies, pinned, satisfiable, simplified
from ..sizes.system import System
from .alignment import Alignment, Attributes, Mapping_, Rule, check_count, complete, laid_out
from .branching import conjunction, explore
from .plan import Plan, RuleUse


@dataclass(frozen=True, slots=True)
class Leaf:
    """One way that a rule may go.

    Attributes:
        path: the answers it needs; paths of different leaves exclude one another.
        clauses: when the sizes fit, for each result axis where that is not certain; with None for
            the axis, what else must hold.
        shape: the result's sizes; None if refused.
        mapping: where the operands' axes land.
        misfit: why it is refused, or None.
        alignment: the align function's answer, or None where that refused.
        sizes: the shapes that were aligned, the target's included.
        rule: the rule's row.
        attributes: its attributes, defaults filled in.
    """

    path: Condition
    clauses: tuple[tuple[int | None, Condition], ...]
    shape: tuple[Number, ...]
    mapping: tuple[Mapping_, ...]
    misfit: Misfit | None
    alignment: Alignment | None
    sizes: tuple[Shape, ...]
    rule: Rule
    attributes: Attributes

    @property
    def fits(self) -> Condition:
        """That the sizes fit along every axis."""
        return all_of(clause for _, clause in self.clauses)

    @property
    def when(self) -> Condition:
        """When a plan comes of it."""
        return all_of([self.path, self.fits])


@dataclass(frozen=True, slots=True)
class Open:
    """What a Plan of sizes that are not known carries beside its fields.

    Attributes:
        given: what the caller knows.
        leaves: all ways the rule may go, the refused ones included.
        aligned: the operands at the result's rank.
    """

    given: Condition
    leaves: tuple[Leaf, ...]
    aligned: tuple[Shape, ...]

    @property
    def accepted(self) -> tuple[Leaf, ...]:
        """The ways on which there is a plan."""
        return tuple(leaf for leaf in self.leaves if leaf.misfit is None)

    @property
    def exists(self) -> Condition:
        """When there is a plan, not simplified."""
        return any_of(leaf.when for leaf in self.accepted)


# All ways to go.


def leaves_of(
    rule: Rule, sizes: tuple[Shape, ...], attributes: Attributes, facts: Condition
) -> tuple[Leaf, ...]:
    """Every way the rule may go for these sizes."""
    leaves: list[Leaf] = []
    for way in explore(lambda asker: rule.align(asker, sizes, attributes), facts):
        leaf = Leaf(way.path, (), (), (), None, None, sizes, rule, attributes)
        if isinstance(way.outcome, Misfit):
            leaves.append(replace(leaf, misfit=way.outcome))
        else:
            leaves += _resolved(leaf, way.outcome, way.required, facts)
    return tuple(leaves)


def _resolved(
    leaf: Leaf, alignment: Alignment, required: Condition, facts: Condition
) -> Iterator[Leaf]:
    """The leaf of one alignment: its clauses and its sizes; several if the rule's check forks."""
    rule, sizes = leaf.rule, leaf.sizes
    leaf = replace(leaf, alignment=alignment)
    if rule.max_rank is not None and alignment.rank > rule.max_rank:
        detail = f"{alignment.rank} axes; the most it carries is {rule.max_rank}"
        yield replace(leaf, misfit=Misfit(Reason.RANK_LIMIT, detail))
        return
    context = facts if leaf.path.always else all_of([facts, leaf.path])
    clauses: list[tuple[int | None, Condition]] = [(None, clause) for clause in required]
    shape: list[Number] = []
    for axis, landed in enumerate(_landing(sizes, alignment)):
        work(sum(1 + weight_of(size) for size, _ in landed))
        clause, size = _axis(_apart(landed, context), context)
        if clause.never:
            yield replace(leaf, misfit=mismatch(leaf, axis))
            return
        if not clause.always:
            clauses.append((axis, clause))
        shape.append(size)
    mapping = alignment.mapping[: len(sizes) - rule.to_target]
    leaf = replace(leaf, clauses=tuple(clauses), shape=tuple(shape), mapping=mapping)
    if rule.check is None:
        yield leaf
    else:
        yield from _checked(leaf, rule.check, context)


def _checked(
    leaf: Leaf, check: Callable[[Plan, Asker], None], context: Condition
) -> Iterator[Leaf]:
    """The leaf, split where the check says yes to some sizes and no to others."""
    operands = leaf.sizes[: len(leaf.mapping)]
    aligned = align_operands(operands, leaf.mapping, len(leaf.shape))
    use = RuleUse(leaf.rule.name, leaf.attributes)
    plan = Plan(leaf.shape, operands, leaf.mapping, use, Open(context, (leaf,), aligned))
    for way in explore(lambda asker: check(plan, asker), all_of([context, leaf.fits])):
        yield replace(
            leaf,
            path=all_of([leaf.path, way.path]),
            clauses=(*leaf.clauses, *((None, clause) for clause in way.required)),
            misfit=way.outcome,
        )


#: What lands on one result axis: an operand's size, and whether it may stretch there.
Landed = tuple[Number, bool]


def _landing(sizes: Sequence[Shape], alignment: Alignment) -> list[list[Landed]]:
    landing: list[list[Landed]] = [[] for _ in range(alignment.rank)]
    for shape, places, stretch in zip(sizes, alignment.mapping, alignment.stretch, strict=True):
        for size, axis in zip(shape, places, strict=True):
            if axis is not None:
                landing[axis].append((size, axis in stretch))
    return landing


def _axis(landed: Sequence[Landed], context: Condition) -> tuple[Condition, Number]:
    """When the sizes on one axis fit, and what comes out.

    This is `alignment.resolve` as a formula. Sizes that may not stretch are all equal, and what may
    is equal to them or 1; where all may stretch, each pair is equal or one of the two is 1.
    """
    if len(landed) < 2:
        return ALWAYS, landed[0][0] if landed else 1
    fixed = list(dict.fromkeys(size for size, may in landed if not may))
    free = list(dict.fromkeys(size for size, may in landed if may))
    if fixed:
        first = min(fixed, key=_vagueness)
        same = [eq(first, size) for size in fixed if size is not first]
        fit = [any_of([eq(size, first), eq(size, 1)]) for size in free]
        return all_of([*same, *fit]), first
    if len(free) > MAX_ARGUMENTS:
        raise OverflowError(f"{len(free)} different sizes broadcast along one axis")
    work(len(free) * sum(1 + weight_of(size) for size in free))
    pairs = [
        any_of([eq(a, b), eq(a, 1), eq(b, 1)]) for k, a in enumerate(free) for b in free[k + 1 :]
    ]
    clause = all_of(pairs)
    if clause.never:
        return clause, 1
    if clause.always or context.always:
        return clause, plain(broadcast_size(*free))
    numbers_first = sorted(free, key=lambda size: isinstance(size, Dim))
    wide = next((size for size in numbers_first if excludes(context, eq(size, 1))), None)
    return clause, plain(broadcast_size(*free)) if wide is None else wide


def _vagueness(size: Number) -> int:
    """Of equal sizes a number says most, then names, then what has no name."""
    if isinstance(size, int):
        return 0
    return 1 if all(symbol.named for symbol in size.symbols) else 2


#: Sizes on one axis that are compared with one another; a sum of thousands is not made simpler.
MAX_APART = 8


def _apart(landed: list[Landed], context: Condition) -> list[Landed]:
    """What lands, without sizes that are known to equal another one there that does as much."""
    if context.always or not 2 <= len(landed) <= MAX_APART:
        return landed
    apart: list[Landed] = []
    for size, may in landed:
        if not any(
            may >= other_may and implies(context, eq(size, other)) for other, other_may in apart
        ):
            apart.append((size, may))
    return apart


def mismatch(leaf: Leaf, axis: int, *, certain: bool = True) -> Misfit:
    """The fact that sizes do not fit along an axis: whatever they are, or (not certain) some."""
    assert leaf.alignment is not None
    landed = _landing(leaf.sizes, leaf.alignment)[axis]
    rows = laid_out(leaf.sizes, leaf.alignment)
    against = " against ".join(dict.fromkeys(str(size) for size, _ in landed))
    if not any(leaf.alignment.stretch):
        reason, detail = Reason.NOT_IDENTICAL, f"{against}, and nothing may stretch"
    elif any(size == 1 for size, _ in landed):
        reason, detail = Reason.ONE_WAY, f"{against}: {leaf.rule.one_way}"
    else:
        open_ = certain and any(isinstance(size, Dim) for size, _ in landed)
        detail = f"{against} fits for no values" if open_ else f"{against}, and neither is 1"
        reason = Reason.EXTENT_MISMATCH
    return Misfit(reason, detail, axis=axis, rows=rows)


# One plan of all ways.


def build_open(
    rule: Rule,
    shapes: Sequence[Any],
    attributes: Attributes,
    engine: str | None,
    op: str | None,
    facts: Condition | None,
) -> Plan:
    """The Plan that `rule` gives where some sizes are not numbers; a Misfit where there is none."""
    names = ("data", "target") if rule.to_target else default_names(len(shapes))
    sizes = tuple(map(open_shape, shapes, names))
    check_count(rule, sizes)
    full = complete(rule, attributes)
    use = RuleUse(rule.name, {name: full[name] for name in attributes}, engine, op)
    context = ALWAYS if facts is None else facts
    operands = sizes[: len(sizes) - rule.to_target]
    leaves = leaves_of(rule, sizes, full, context)
    real = _sizes_are_real(sizes)
    if real:
        leaves = tuple(replace(leaf, clauses=(*leaf.clauses, *real)) for leaf in leaves)
    return assemble(use, operands, leaves, context)


def _sizes_are_real(sizes: Sequence[Shape]) -> tuple[tuple[None, Condition], ...]:
    """That expressions which may be negative are not: N - 5 is a size from N = 5 on."""
    signs = dict.fromkeys(ge(size, 0) for shape in sizes for size in shape if isinstance(size, Dim))
    return tuple((None, c) for c in signs if not (c.always or implies(ALWAYS, c)))


def open_leaves(
    rule: Rule, shapes: Sequence[Any], attributes: Attributes, facts: Condition
) -> tuple[Leaf, ...]:
    """Every way the rule may go for these shapes, the refused ones included.

    Raises:
        Misfit: the rule is asked what it cannot be, or the sizes are beyond what is worked with
            (`Reason.UNKNOWN_SIZE`).
    """
    names = ("data", "target") if rule.to_target else default_names(len(shapes))
    sizes = tuple(map(open_shape, shapes, names))
    check_count(rule, sizes)
    options = {name: value for name, value in attributes.items() if value is not None}
    try:
        return leaves_of(rule, sizes, complete(rule, options), facts)
    except ArithmeticError as fault:
        raise Misfit(Reason.UNKNOWN_SIZE, f"{fault}; give some sizes as numbers") from None


def ways_of(plan: Plan) -> tuple[Leaf, ...]:
    """The ways on which there is a plan; of a plan of numbers the one that it is."""
    if plan.open is not None:
        return plan.open.accepted
    rule = Rule(plan.rule.name, _no_align, "", "")
    return (Leaf(ALWAYS, (), plan.shape, plan.axes_mapping, None, None, plan.operands, rule, {}),)


def _no_align(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    raise AssertionError("a plan of numbers is not aligned again")


def open_shape(shape: Any, prefix: str) -> Shape:
    """A shape whose sizes may be text or Dims; a Misfit says what is wrong with it."""
    sizes = read_shape(as_tuple(shape), prefix)
    if len(sizes) > MAX_RANK:
        raise Misfit(
            Reason.RANK_LIMIT, f"more than {MAX_RANK} axes, which is where NumPy's views end"
        )
    return sizes


def assemble(
    use: RuleUse, operands: tuple[Shape, ...], leaves: tuple[Leaf, ...], facts: Condition
) -> Plan:
    """The plan of all leaves; a Misfit if no values lead to one."""
    accepted = [leaf for leaf in leaves if leaf.misfit is None]
    if not accepted:
        refused = leaves[0].misfit
        assert refused is not None
        raise refused
    exists = any_of(leaf.when for leaf in accepted)
    _check_possible(exists, accepted, facts)
    if not any(isinstance(size, Dim) for shape in operands for size in shape) and not _open(leaves):
        return Plan(accepted[0].shape, operands, accepted[0].mapping, use)
    rank = len(accepted[0].shape)
    ways = [(leaf.path, conjunction(leaf.path)) for leaf in accepted]
    if all(leaf.mapping == accepted[0].mapping for leaf in accepted):
        mapping = accepted[0].mapping
        aligned = align_operands(operands, mapping, rank)
    else:
        mapping = _same_places([leaf.mapping for leaf in accepted])
        each = [align_operands(operands, leaf.mapping, rank) for leaf in accepted]
        aligned = tuple(
            tuple(_joined(ways, sizes) for sizes in zip(*rows, strict=True))
            for rows in zip(*each, strict=True)
        )
    shape = tuple(
        _result(accepted, ways, sizes)
        for sizes in zip(*(leaf.shape for leaf in accepted), strict=True)
    )
    context = all_of([facts, exists])
    if not context.always:
        shape = tuple(_in_context(size, exists, context) for size in shape)
    return Plan(shape, operands, mapping, use, Open(facts, leaves, aligned))


def _open(leaves: Sequence[Leaf]) -> bool:
    """Whether what comes out depends on values: of the target of a Broadcast op, say."""
    return len(leaves) > 1 or any(
        leaf.clauses or any(isinstance(size, Dim) for size in leaf.shape) for leaf in leaves
    )


def _check_possible(exists: Condition, accepted: Sequence[Leaf], facts: Condition) -> None:
    """Refuses where the clauses contradict one another, or what is known."""
    possible = all_of([facts, exists])
    if possible.always or _plainly_possible(possible):
        return
    if satisfiable(possible) is not Answer.NO:
        return
    if satisfiable(facts) is Answer.NO:
        raise Misfit(Reason.ATTRIBUTE, f"what is given holds for no values: {facts}")
    for leaf in accepted:
        for axis, clause in leaf.clauses:
            if axis is not None and excludes(facts, clause):
                raise mismatch(leaf, axis)
    raise Misfit(
        Reason.EXTENT_MISMATCH,
        f"no values fulfil {exists}" + ("" if facts.always else f", where {facts}"),
    )


def _plainly_possible(exists: Condition) -> bool:
    """Whether the first numbers that come to mind fulfil it: all ones."""
    ones = {s: max(s.low, 1 if s.high is None else min(1, s.high)) for s in exists.symbols}
    return exists.evaluate(ones)


def _same_places(mappings: Sequence[tuple[Mapping_, ...]]) -> tuple[Mapping_, ...]:
    """Where axes land whatever the sizes are; Ellipsis where that depends on them."""
    return tuple(
        tuple(
            places[0] if len(set(places)) == 1 else ...  # type: ignore[misc]
            for places in zip(*operand, strict=True)
        )
        for operand in zip(*mappings, strict=True)
    )


def _joined(ways: Sequence[tuple[Condition, System]], sizes: Sequence[Number]) -> Number:
    """One size for several cases: that of one case, where it is right in all of them."""
    if all(size == sizes[0] for size in sizes):
        return sizes[0]
    for general in reversed(sizes):
        if all(
            size == general or _by(general, system) == _by(size, system)
            for size, (_, system) in zip(sizes, ways, strict=True)
        ):
            return general
    return choose((path, size) for (path, _), size in zip(ways, sizes, strict=True))


def _result(
    leaves: Sequence[Leaf], ways: Sequence[tuple[Condition, System]], sizes: Sequence[Number]
) -> Number:
    """The same for a result size, which also has to be right only where its leaf has a plan."""
    joined = _joined(ways, sizes)
    if any(joined == size for size in sizes):
        return joined
    for general in dict.fromkeys(sizes):
        if all(
            implies(leaf.when, eq(size, general))
            for leaf, size in zip(leaves, sizes, strict=True)
            if size != general
        ):
            return general
    return joined


def _by(size: Number, system: System) -> Number:
    """The size with what a path says put in."""
    return size if isinstance(size, int) else plain(system.reduced(size))


def _in_context(size: Number, exists: Condition, context: Condition) -> Number:
    """A number where the conditions leave one; else the size, with the interval that they leave."""
    if isinstance(size, int):
        return size
    if any(clause.kind == "==" for clause in exists.clauses):
        number = pinned(size, exists)
        if isinstance(number, int):
            return number
    return _one_of(size, context).under(context)


def _one_of(size: Dim, context: Condition) -> Dim:
    """Of a broadcast of sizes the one that it is wherever the plan exists, if there is such a one.

    Of two symbols neither is, so that is not asked.
    """
    call = lone_call(size)
    if call is None or call.function != "bcast" or all(map(lone_symbol, call.arguments)):
        return size
    simple_first = sorted(call.arguments, key=lambda size: lone_symbol(size) is None)
    return next((a for a in simple_first if implies(context, eq(size, a))), size)


def align_operands(
    operands: Sequence[Shape], mapping: Sequence[Mapping_], rank: int
) -> tuple[Shape, ...]:
    """Each operand's sizes where its axes land, 1 wherever nothing does."""
    aligned = []
    for operand, places in zip(operands, mapping, strict=True):
        row: list[Number] = [1] * rank
        for size, axis in zip(operand, places, strict=True):
            if axis is not None:
                row[axis] = size
        aligned.append(tuple(row))
    return tuple(aligned)


# What a plan is asked.


@kept
def _conditions(where: Same) -> Condition:
    """Kept for each plan, not by what must hold: conditions are equal in any order."""
    exists: Condition = where.value.exists
    return exists if exists.always else simplified(exists, where.value.given)


def conditions(plan: Plan) -> Condition:
    """What must hold for the plan to exist, where what the caller knows holds; simplified."""
    return ALWAYS if plan.open is None else _conditions(Same(plan.open))


def cases(plan: Plan) -> tuple[Plan, ...]:
    """A plan for each way the axes may land; none where there is one way only."""
    if plan.open is None:
        return ()
    groups: dict[tuple[Mapping_, ...], list[Leaf]] = {}
    for leaf in plan.open.accepted:
        groups.setdefault(leaf.mapping, []).append(leaf)
    if len(groups) < 2:
        return ()
    plans = []
    for leaves in groups.values():
        if not excludes(plan.open.given, any_of(leaf.when for leaf in leaves)):
            plans.append(assemble(plan.rule, plan.operands, tuple(leaves), plan.open.given))
    return tuple(plans) if len(plans) > 1 else ()


def symbols(plan: Plan) -> tuple[Symbol, ...]:
    """The symbols of the operands, then those of the target of a Broadcast op; each once."""
    if plan.open is None:
        return ()
    sizes = [size for leaf in plan.open.leaves for shape in leaf.sizes for size in shape]
    every = [*(size for shape in plan.operands for size in shape), *sizes]
    return tuple(dict.fromkeys(s for size in every for s in dim(size).symbols))


def substituted(leaf: Leaf, values: Mapping[Symbol, Number]) -> Leaf:
    """The leaf with symbols replaced."""
    clauses = ((axis, clause.substitute(values)) for axis, clause in leaf.clauses)
    return replace(
        leaf,
        path=leaf.path.substitute(values),
        clauses=tuple((axis, clause) for axis, clause in clauses if not clause.always),
        shape=replaced_shape(leaf.shape, values),
        sizes=tuple(replaced_shape(shape, values) for shape in leaf.sizes),
    )


def replaced_shape(shape: Iterable[Number], values: Mapping[Symbol, Number]) -> Shape:
    """Sizes with symbols replaced."""
    return tuple(
        plain(size.substitute(values)) if isinstance(size, Dim) else size for size in shape
    )


__all__ = [
    "Leaf",
    "Open",
    "assemble",
    "build_open",
    "cases",
    "conditions",
    "leaves_of",
    "lone_symbol",
    "mismatch",
    "replaced_shape",
    "substituted",
    "symbols",
]
