"""Every way that a rule may go for open sizes, each with its condition.

An align function asks whether sizes are equal or 1. Where the answer depends on values, the
function is run once for each answer. Each run is a :class:`Leaf`, with the answers as its
condition. Along each result axis of a leaf one clause says when the sizes fit, and one size
results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ..errors import Misfit, Reason
from ..sizes import Asker, Shape
from ..sizes.budget import work
from ..sizes.condition import ALWAYS, Condition, all_of, any_of, eq
from ..sizes.dim import MAX_ARGUMENTS, Dim, Number, plain, weight_of
from ..sizes.functions import broadcast_size
from ..sizes.solve import excludes, implies
from .alignment import Alignment, Attributes, Mapping_, Rule, laid_out
from .branching import explore
from .plan import Plan, RuleUse


@dataclass(frozen=True, slots=True)
class Leaf:
    """One way that a rule may go.

    Attributes:
        path: the answers it needs; paths of different leaves exclude one another.
        clauses: the conditions for the sizes to fit, with their result axis; None as the axis marks
            further conditions. Certain ones are left out.
        shape: the result's sizes; None if refused.
        mapping: where the operands' axes land.
        misfit: why it is refused, or None.
        alignment: the align function's answer, or None where that refused.
        sizes: the aligned shapes, including the target's.
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
        """The condition that the sizes fit along every axis."""
        return all_of(clause for _, clause in self.clauses)

    @property
    def when(self) -> Condition:
        """The condition under which this way gives a plan."""
        return all_of([self.path, self.fits])


@dataclass(frozen=True, slots=True)
class Open:
    """The further fields of a Plan with open sizes.

    Attributes:
        given: the caller's facts.
        leaves: all ways the rule may go, the refused ones included.
        aligned: the operands at the result's rank.
    """

    given: Condition
    leaves: tuple[Leaf, ...]
    aligned: tuple[Shape, ...]

    @property
    def accepted(self) -> tuple[Leaf, ...]:
        """The ways that give a plan."""
        return tuple(leaf for leaf in self.leaves if leaf.misfit is None)

    @property
    def exists(self) -> Condition:
        """The condition under which there is a plan, not simplified."""
        return any_of(leaf.when for leaf in self.accepted)


# The ways.


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
    """The leaf, split where the check accepts some sizes and refuses others."""
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


#: A size that lands on a result axis, and whether it may stretch there.
Landed = tuple[Number, bool]


def _landing(sizes: Sequence[Shape], alignment: Alignment) -> list[list[Landed]]:
    landing: list[list[Landed]] = [[] for _ in range(alignment.rank)]
    for shape, places, stretch in zip(sizes, alignment.mapping, alignment.stretch, strict=True):
        for size, axis in zip(shape, places, strict=True):
            if axis is not None:
                landing[axis].append((size, axis in stretch))
    return landing


def _axis(landed: Sequence[Landed], context: Condition) -> tuple[Condition, Number]:
    """The condition for the sizes on one axis to fit, and the resulting size.

    This is `alignment.resolve` as a formula. Sizes that may not stretch are all equal, and the
    others are equal to them or 1. Where all may stretch, each pair is equal or one of the two is 1.
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
    """The sort key for equal sizes: numbers first, then named sizes, then unnamed ones."""
    if isinstance(size, int):
        return 0
    return 1 if all(symbol.named for symbol in size.symbols) else 2


#: Sizes on one axis that are compared with one another; a sum of thousands is not simplified.
MAX_APART = 8


def _apart(landed: list[Landed], context: Condition) -> list[Landed]:
    """The sizes on an axis, without those known to equal another one that may stretch no less."""
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
    """The Misfit of sizes that fit for no values or, if not certain, only for some."""
    assert leaf.alignment is not None
    landed = _landing(leaf.sizes, leaf.alignment)[axis]
    rows = laid_out(leaf.sizes, leaf.alignment.mapping, leaf.alignment.rank)
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


def align_operands(
    operands: Sequence[Shape], mapping: Sequence[Mapping_], rank: int
) -> tuple[Shape, ...]:
    """Each operand's sizes where its axes land, 1 elsewhere."""
    return tuple(map(tuple, laid_out(operands, mapping, rank, 1)))


__all__ = ["Leaf", "Open", "align_operands", "leaves_of", "mismatch"]
