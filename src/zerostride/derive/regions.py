"""The open sizes for which two rules mean the same: regions instead of one answer.

For numbers, two plans are equal or not. For symbols the question is *where*: for which values the
target means what the source means, means something else, refuses, or goes wrong without an error.
Each region is a condition, with values that lie in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ..core.branching import explore
from ..core.leaves import Leaf, Open, align_operands, mismatch
from ..core.plan import Plan, RuleUse
from ..core.symbolic import open_leaves, ways_of
from ..engines.model import Divergence
from ..errors import Misfit, Reason
from ..sizes import Answer, Shape
from ..sizes.budget import work
from ..sizes.condition import ALWAYS, NEVER, Condition, all_of, any_of, eq, ge, negation
from ..sizes.dim import Dim, Number, Symbol, dim
from ..sizes.simplify import simplified
from ..sizes.solve import compatible, values_for
from .size_traps import Side

Kind: TypeAlias = Literal["same", "different", "silent", "refused"]


@dataclass(frozen=True, slots=True)
class Region:
    """Values for which the target does one and the same.

    Attributes:
        kind: the target means the same, means something else, goes wrong without an error, or
            refuses.
        condition: where.
        reason: the code of the fault, or None.
        detail: the fault, in a phrase; empty if there is no fault, or if the alignment is at fault.
        aligned: the operands as the target aligns them; () if it refuses.
        divergence: the row of the engine's table behind the fault, if it is one.
    """

    kind: Kind
    condition: Condition
    reason: Reason | None = None
    detail: str = ""
    aligned: tuple[Shape, ...] = ()
    divergence: Divergence | None = None


@dataclass(frozen=True, slots=True)
class Meanings:
    """The regions of one comparison.

    Attributes:
        known: the condition that holds everywhere: the caller's facts, and that the source has a
            plan.
        regions: the regions; they exclude one another.
        symbols: the symbols of all sizes.
    """

    known: Condition
    regions: tuple[Region, ...]
    symbols: tuple[Symbol, ...] = field(default=())

    def where(self, *kinds: Kind) -> Condition:
        """The condition for one of these kinds, not simplified."""
        return any_of(region.condition for region in self.regions if region.kind in kinds)

    def possible(self, *kinds: Kind) -> Answer:
        """Whether there are values with one of these kinds."""
        answers = {self.reached(region) for region in self.regions if region.kind in kinds}
        if Answer.YES in answers:
            return Answer.YES
        return Answer.UNKNOWN if Answer.UNKNOWN in answers else Answer.NO

    def reached(self, region: Region) -> Answer:
        """Whether there are values in a region."""
        return compatible(self.known, region.condition)

    def words(self, *kinds: Kind) -> Condition:
        """The condition for one of these kinds, simplified by the known facts."""
        others = any_of(r.condition for r in self.regions if r.kind not in kinds)
        ways = (simplified(way, self.known) for way in (self.where(*kinds), negation(others)))
        return min(ways, key=lambda way: len(str(way)))

    def example(self, *kinds: Kind) -> tuple[Region, dict[Symbol, int]] | None:
        """A region of one of these kinds with values in it; None if none were found."""
        for region in self.regions:
            if region.kind in kinds:
                values = values_for(all_of([self.known, region.condition]), self.symbols)
                if values is not None:
                    return region, values
        return None


def meanings(
    source: Plan,
    target: Side,
    shapes: Sequence[Shape],
    *,
    known: Condition = ALWAYS,
    divergences: Iterable[Divergence] = (),
) -> Meanings:
    """The regions of `target` for the shapes, against the plan that defines the meaning.

    Args:
        source: the plan that defines the meaning; its sizes may be open.
        target: the rule judged.
        shapes: the target's input: for a Broadcast op the data's shape and the target's.
        known: facts about the symbols, in addition to those of the source.
        divergences: those of the engine, which may affect plans of the target.

    Raises:
        Misfit: the sizes are too complex (`Reason.UNKNOWN_SIZE`).
    """
    facts = all_of([known, source.open.given if source.open is not None else ALWAYS])
    exists = source.open.exists if source.open is not None else ALWAYS
    where = all_of([facts, exists])
    sizes = [size for shape in (*source.operands, *shapes) for size in shape]
    symbols = tuple(dict.fromkeys(s for size in sizes for s in dim(size).symbols))
    regions: list[Region] = []
    try:
        leaves = open_leaves(target.rule, shapes, target.attributes, where)
    except Misfit as misfit:  # the target accepts no such operands, for any sizes
        if misfit.reason is Reason.UNKNOWN_SIZE:
            raise
        return Meanings(where, (Region("refused", ALWAYS, misfit.reason, misfit.detail),), symbols)
    for leaf in leaves:
        for way in ways_of(source):
            work(len(sizes) + len(leaf.clauses))
            here = all_of([leaf.path, way.when])
            if here.never:
                continue
            regions += _regions(leaf, way, source, target, here, where, divergences)
    return Meanings(where, tuple(r for r in regions if not r.condition.never), symbols)


def _regions(
    leaf: Leaf,
    way: Leaf,
    source: Plan,
    target: Side,
    here: Condition,
    facts: Condition,
    divergences: Iterable[Divergence],
) -> Iterator[Region]:
    if leaf.misfit is not None:
        yield _refused(leaf, leaf.misfit, here)
        return
    for axis, clause in leaf.clauses:
        misfit = (
            mismatch(leaf, axis, certain=False)
            if axis is not None
            else Misfit(Reason.WRONG_RESULT, f"not where {negation(clause)}")
        )
        work(len(here) + len(clause))
        yield _refused(leaf, misfit, all_of([here, negation(clause)]))
        here = all_of([here, clause])
    operands = leaf.sizes[: len(leaf.mapping)]
    aligned = align_operands(operands, leaf.mapping, len(leaf.shape))
    intended = align_operands(source.operands, way.mapping, len(way.shape))
    differs = _differs((leaf.shape, *aligned), (way.shape, *intended))
    yield Region("different", all_of([here, differs]), aligned=aligned)
    here = all_of([here, negation(differs)])
    for divergence in divergences:
        struck = _struck(leaf, operands, aligned, target, all_of([facts, here]), divergence)
        if not struck.never:
            kind: Kind = "different" if divergence.effect is Reason.WRONG_RESULT else "refused"
            where = all_of([here, struck])
            yield Region(kind, where, divergence.effect, divergence.text, aligned, divergence)
            here = all_of([here, negation(struck)])
    yield Region("same", here, aligned=aligned)


def _refused(leaf: Leaf, misfit: Misfit, here: Condition) -> Region:
    kind: Kind = "silent" if misfit.reason in leaf.rule.silent else "refused"
    return Region(kind, here, misfit.reason, misfit.detail)


def _differs(a: Sequence[Shape], b: Sequence[Shape]) -> Condition:
    """The condition that the result or an aligned operand differs."""
    if len(a) != len(b) or any(len(x) != len(y) for x, y in zip(a, b, strict=True)):
        return ALWAYS
    return any_of(
        negation(eq(x, y))
        for first, second in zip(a, b, strict=True)
        for x, y in zip(first, second, strict=True)
        if x != y
    )


def _struck(
    leaf: Leaf,
    operands: tuple[Shape, ...],
    aligned: tuple[Shape, ...],
    target: Side,
    facts: Condition,
    divergence: Divergence,
) -> Condition:
    """The condition that a divergence affects the plan of a leaf."""
    strikes = divergence.strikes
    if strikes is None:
        return NEVER
    use = RuleUse(target.rule.name, target.attributes, target.engine, target.op)
    plan = Plan(leaf.shape, operands, leaf.mapping, use, Open(facts, (leaf,), aligned))
    return any_of(
        way.path
        for way in explore(lambda asker: strikes(plan, asker), facts)
        if way.outcome is True
    )


def not_empty(shapes: Iterable[Shape]) -> Condition:
    """The condition that no tensor of these shapes is empty."""
    return all_of(ge(size, 1) for shape in shapes for size in shape if isinstance(size, Dim))


def real_shapes(shapes: Iterable[Shape], values: Mapping[Symbol, int]) -> tuple[Shape, ...]:
    """Shapes of numbers, for given values of the symbols."""

    def number(size: Number) -> int:
        return size if isinstance(size, int) else size.evaluate(values)

    return tuple(tuple(map(number, shape)) for shape in shapes)


__all__ = ["Meanings", "Region", "meanings", "not_empty", "real_shapes"]
