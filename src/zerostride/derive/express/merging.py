"""Merges neighbouring axes if only a rank limit prevents a plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...core.alignment import Rule, apply
from ...core.plan import Plan, RuleUse
from ...errors import BroadcastError, Reason
from ...sizes import Shape, elements


class _Merged(RuleUse):
    """The rule of a plan whose neighbouring axes were merged, with the groups."""

    __slots__ = ("groups",)
    groups: tuple[tuple[int, ...], ...]


def merges(plan: Plan, rows: Sequence[Rule]) -> Iterator[Plan]:
    """The plan itself; then, if its rank exceeds the limit, plans with fewer axes."""
    yield plan
    if not plan.rank:
        yield _merged(plan, [()])  # for engines whose smallest tensor has one axis
    if over_limit(plan, rows):
        yield from fewer_axes(plan)


def fewer_axes(plan: Plan) -> Iterator[Plan]:
    """The plan with neighbouring axes merged, one more each time, as long as possible."""
    groups: list[tuple[int, ...]] = [(axis,) for axis in range(plan.rank)]
    while True:
        pair = next(
            (i for i in _merge_order(plan, groups) if _mergeable(plan, groups[i] + groups[i + 1])),
            None,
        )
        if pair is None:
            return
        groups[pair : pair + 2] = [groups[pair] + groups[pair + 1]]
        yield _merged(plan, groups)


def groups_of(plan: Plan) -> tuple[tuple[int, ...], ...]:
    """The axes merged into each axis of a plan; empty if none are."""
    return getattr(plan.rule, "groups", ())


def _merge_order(plan: Plan, groups: Sequence[tuple[int, ...]]) -> list[int]:
    """Which neighbours to merge first: those with an extent of 1, then the innermost."""
    ones = [all(plan.shape[axis] == 1 for axis in group) for group in groups]
    return sorted(range(len(groups) - 1), key=lambda i: (not (ones[i] or ones[i + 1]), -i))


def _mergeable(plan: Plan, axes: Sequence[int]) -> bool:
    """Whether every operand fills all of these axes, or none; axes of extent 1 fit either."""
    wide = [axis for axis in axes if plan.shape[axis] != 1]
    if plan.open is not None and any(
        aligned[axis] not in (1, plan.shape[axis]) for aligned in plan.aligned for axis in wide
    ):
        return False  # an operand may stretch along one of them and fill another
    return all(len({axis in stretched for axis in wide}) <= 1 for stretched in plan.stretched)


def _merged(plan: Plan, groups: Sequence[tuple[int, ...]]) -> Plan:
    def fold(shape: Shape) -> Shape:
        return tuple(elements([shape[axis] for axis in group]) for group in groups)

    use = _Merged(plan.rule.name, plan.rule.attributes, plan.rule.engine, plan.rule.op)
    use.groups = tuple(groups)
    aligned = tuple(map(fold, plan.aligned))
    every = (tuple(range(len(groups))),) * len(aligned)
    shape = fold(plan.shape)
    if plan.open is None:
        return Plan(shape, aligned, every, use)
    from ...core.leaves import Open

    leaf = replace(
        plan.open.accepted[0],
        path=plan.open.exists,
        clauses=(),
        shape=shape,
        mapping=every,
        sizes=aligned,
    )
    return Plan(shape, aligned, every, use, Open(plan.open.given, (leaf,), aligned))


def over_limit(plan: Plan, rows: Sequence[Rule]) -> bool:
    """Whether every row refuses the plan for its rank."""
    return all(_refusal(plan, row) == Reason.RANK_LIMIT for row in rows)


def _refusal(plan: Plan, row: Rule) -> Reason | None:
    shapes = (*plan.aligned, plan.shape) if row.to_target else plan.aligned
    every = {"axes_mapping": tuple(range(plan.rank))}
    attributes = every if "axes_mapping" in row.attributes else {}
    try:
        apply(row, shapes, attributes)
    except BroadcastError as error:
        return error.reason
    return None
