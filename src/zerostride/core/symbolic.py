"""The plan of open sizes: the leaves of :mod:`.leaves` put together, and questions to it.

The plan consists of all ways that the rule may go: nothing is assumed, and no case is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..errors import Misfit, Reason, default_names
from ..sizes import MAX_RANK, Asker, Shape
from ..sizes.budget import Same, answer_cache
from ..sizes.condition import ALWAYS, Condition, all_of, any_of, eq, ge
from ..sizes.dim import Dim, Number, Symbol, dim, lone_call, lone_symbol, plain
from ..sizes.functions import choose
from ..sizes.parse import read_shape
from ..sizes.shapes import Answer, as_tuple
from ..sizes.simplify import pinned, simplified
from ..sizes.solve import excludes, implies, satisfiable
from ..sizes.system import System
from .alignment import Alignment, Attributes, Mapping_, Rule, check_count, complete
from .branching import conjunction
from .leaves import Leaf, Open, align_operands, leaves_of, mismatch
from .plan import Plan, RuleUse


def build_open(
    rule: Rule,
    shapes: Sequence[Any],
    attributes: Attributes,
    engine: str | None,
    op: str | None,
    facts: Condition | None,
) -> Plan:
    """The Plan that `rule` gives where some sizes are open; raises a Misfit if there is none."""
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
    """The conditions that expressions are not negative: N - 5 is a size from N = 5."""
    signs = dict.fromkeys(ge(size, 0) for shape in sizes for size in shape if isinstance(size, Dim))
    return tuple((None, c) for c in signs if not (c.always or implies(ALWAYS, c)))


def open_leaves(
    rule: Rule, shapes: Sequence[Any], attributes: Attributes, facts: Condition
) -> tuple[Leaf, ...]:
    """Every way the rule may go for these shapes, the refused ones included.

    Raises:
        Misfit: the rule does not accept the attributes or the number of operands, or the sizes are
            too complex (`Reason.UNKNOWN_SIZE`).
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
    """The ways that give a plan; a plan of numbers is its own single way."""
    if plan.open is not None:
        return plan.open.accepted
    rule = Rule(plan.rule.name, _no_align, "", "")
    return (Leaf(ALWAYS, (), plan.shape, plan.axes_mapping, None, None, plan.operands, rule, {}),)


def _no_align(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    raise AssertionError("a plan of numbers is not aligned again")


def open_shape(shape: Any, prefix: str) -> Shape:
    """A shape whose sizes may be text or Dims; raises a Misfit if it is malformed."""
    sizes = read_shape(as_tuple(shape), prefix)
    if len(sizes) > MAX_RANK:
        raise Misfit(
            Reason.RANK_LIMIT, f"more than {MAX_RANK} axes, which is where NumPy's views end"
        )
    return sizes


def assemble(
    use: RuleUse, operands: tuple[Shape, ...], leaves: tuple[Leaf, ...], facts: Condition
) -> Plan:
    """The plan of all leaves; raises a Misfit if no values lead to one, or if they lead to results
    of several ranks.
    """
    accepted = [leaf for leaf in leaves if leaf.misfit is None]
    if not accepted:
        refused = leaves[0].misfit
        assert refused is not None
        raise refused
    exists = any_of(leaf.when for leaf in accepted)
    _check_possible(exists, accepted, facts)
    if not any(isinstance(size, Dim) for shape in operands for size in shape) and not _open(leaves):
        return Plan(accepted[0].shape, operands, accepted[0].mapping, use)
    ranks = sorted({len(leaf.shape) for leaf in accepted})
    if len(ranks) > 1:
        raise Misfit(
            Reason.UNKNOWN_SIZE,
            f"the result has {' or '.join(map(str, ranks))} axes, depending on the sizes; "
            "give some as numbers",
        )
    (rank,) = ranks
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
    """Whether the result depends on values, for example on the target of a Broadcast op."""
    return len(leaves) > 1 or any(
        leaf.clauses or any(isinstance(size, Dim) for size in leaf.shape) for leaf in leaves
    )


def _check_possible(exists: Condition, accepted: Sequence[Leaf], facts: Condition) -> None:
    """Refuses clauses that contradict one another or the caller's facts."""
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
    """Whether the simplest values fulfil it: all ones."""
    ones = {s: max(s.low, 1 if s.high is None else min(1, s.high)) for s in exists.symbols}
    return exists.evaluate(ones)


def _same_places(mappings: Sequence[tuple[Mapping_, ...]]) -> tuple[Mapping_, ...]:
    """The axes' places that are the same for all sizes; Ellipsis where they depend on sizes."""
    return tuple(
        tuple(
            places[0] if len(set(places)) == 1 else ...  # type: ignore[misc]
            for places in zip(*operand, strict=True)
        )
        for operand in zip(*mappings, strict=True)
    )


def _joined(ways: Sequence[tuple[Condition, System]], sizes: Sequence[Number]) -> Number:
    """One size for several cases: the size of one case that is right in all of them."""
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
    """The same for a result size, which must be right only where its leaf has a plan."""
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
    """The size with the equalities of a path substituted."""
    return size if isinstance(size, int) else plain(system.reduced(size))


def _in_context(size: Number, exists: Condition, context: Condition) -> Number:
    """The number, if the conditions leave one; else the size with its remaining interval."""
    if isinstance(size, int):
        return size
    if any(clause.kind == "==" for clause in exists.clauses):
        number = pinned(size, exists)
        if isinstance(number, int):
            return number
    return _one_of(size, context).under(context)


def _one_of(size: Dim, context: Condition) -> Dim:
    """The operand of a broadcast of sizes that equals it wherever the plan exists, if there is one.

    A broadcast of two symbols equals neither, so that is not asked.
    """
    call = lone_call(size)
    if call is None or call.function != "bcast" or all(map(lone_symbol, call.arguments)):
        return size
    simple_first = sorted(call.arguments, key=lambda size: lone_symbol(size) is None)
    return next((a for a in simple_first if implies(context, eq(size, a))), size)


# Questions to a plan.


@answer_cache
def _conditions(where: Same) -> Condition:
    """Cached by plan, not by its condition: conditions are equal in any order."""
    exists: Condition = where.value.exists
    return exists if exists.always else simplified(exists, where.value.given)


def conditions(plan: Plan) -> Condition:
    """The condition under which the plan exists, given the caller's facts; simplified."""
    return ALWAYS if plan.open is None else _conditions(Same(plan.open))


def cases(plan: Plan) -> tuple[Plan, ...]:
    """A plan for each way the axes may land; empty if there is one way only."""
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
    "assemble",
    "build_open",
    "cases",
    "conditions",
    "replaced_shape",
    "substituted",
    "symbols",
]
