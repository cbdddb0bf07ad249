"""Floor 3: saying a plan in another rule.

A plan can be expressed under a rule if the operands can be reshaped (ones put in or taken out, the
data untouched) so that the rule makes the same plan of them. The few shapes worth trying are tried,
least change first, and each is planned: what is returned has been checked, not derived.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .alignment import Rule, apply
from .dims import Shape, elements
from .engines.table import ENGINES, find_engine
from .errors import BroadcastError, NotExpressible, Reason, operand_names
from .plan import Plan, RuleUse
from .planner import rule_row
from .rules import MODES, RULES, find_rule


@dataclass(frozen=True, slots=True)
class Expression:
    """A plan in another rule's words.

    Attributes:
        shapes: what to reshape the operands to, in the order in which the rule takes them; for a
            Broadcast op the data's shape and the target shape.
        attributes: the rule's attributes (axis, broadcast, axes_mapping).
        swapped: the rule takes the operands the other way round.
        merged_axes: for each axis of `result_shape` the result axes of the plan merged into it;
            empty where nothing is merged.
        result_shape: what the rule then gives; reshape it to the plan's shape if axes are merged.
        rule: the rule that was asked for, and the engine.
        changed: which operands are reshaped; for a Broadcast op of a model also whether the target
            shape is another one.
    """

    shapes: tuple[Shape, ...]
    attributes: Mapping[str, Any]
    swapped: bool
    merged_axes: tuple[tuple[int, ...], ...]
    result_shape: Shape
    rule: RuleUse
    changed: tuple[bool, ...]

    def describe(self, names: Sequence[Any] = ()) -> str:
        """The change in a line, operands by these names; x, y, z ... otherwise.

        >>> import zerostride as zs
        >>> zs.plan((5, 5), (5,)).express("ncnn").describe()
        'reshape y to (1, 5)'
        """
        named = operand_names(names, len(self.shapes))
        order = named[::-1] if self.swapped else named
        to_target = self.rule in RULES and RULES[self.rule].to_target
        # The target of a Broadcast op is a list of sizes, not a tensor to reshape.
        verbs = ("reshape", "set") if to_target else ("reshape",) * len(self.shapes)
        steps = [
            f"{verb} {name} to {shape}"
            for verb, name, shape, changed in zip(
                verbs, order, self.shapes, self.changed, strict=False
            )
            if changed
        ]
        if self.swapped:
            steps.append("swap the operands")
        steps += [
            f"set {key}={list(value) if isinstance(value, tuple) else value}"
            for key, value in self.attributes.items()
        ]
        if self.merged_axes:
            steps.append(f"the result has shape {self.result_shape} then: reshape it back")
        return ", ".join(steps) or "nothing to change"

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "shapes": self.shapes,
            "attributes": dict(self.attributes),
            "swapped": self.swapped,
            "merged_axes": self.merged_axes,
            "result_shape": self.result_shape,
            "rule": self.rule.name,
            "engine": self.rule.engine,
        }


def express(
    plan: Plan, rule: str | None, *, engine: str | None = None, op: str | None = None
) -> Expression:
    """How to say `plan` under a rule or on an engine; see :meth:`zerostride.Plan.express`.

    Args:
        plan: what is to be said.
        rule: a rule's name, a Broadcast mode, or an engine's name; None with an engine tries all
            its rules.
        engine: whose version of the rule is meant.
        op: the op, where the engine's ops differ.

    Raises:
        NotExpressible: no reshape of the operands makes the rule mean this.
    """
    if isinstance(rule, str) and engine is None and _names_engine(rule, plan):
        rule, engine = None, rule
    # Equal plans are written differently, so provenance is part of the key.
    asked = (plan, plan.operands, _is_target(plan), rule, engine, op)
    try:
        found = _cached(*asked)
    except TypeError:
        found = _express(*asked)  # not hashable: the tables say what is wrong with it
    # The attributes are the caller's to change; what is cached is not.
    return replace(found, attributes=dict(found.attributes))


def _names_engine(rule: str, plan: Plan) -> bool:
    """Whether a name that may be a rule's and an engine's is the engine's.

    "mnn" and "paddle" are both; their rules are element-wise, their engines have Broadcast ops too.
    """
    if rule not in RULES:
        return rule in ENGINES
    broadcasts = rule in ENGINES and bool(ENGINES[rule].to_target)
    return broadcasts and _is_target(plan) and rule not in MODES


def _express(
    plan: Plan,
    operands: tuple[Shape, ...],
    to_target: bool,
    rule: str | None,
    engine: str | None,
    op: str | None,
) -> Expression:
    rows = tuple(_rows(rule, engine, op, to_target))
    for said in _merges(plan, rows):
        for row in rows:
            found = _search(said, row, engine, operands)
            if found is not None:
                return found
    raise NotExpressible(
        f"no reshape of the operands makes {engine or 'the rule'} give {plan.shape} this way",
        reason=Reason.RANK_LIMIT if _over_limit(plan, rows) else Reason.NO_RULE,
        rule=RuleUse(rule or rows[0].name, engine=engine, op=op),
        shapes=plan.operands,
        hint="broadcast the operands to the result's shape first: plan.views, or plan.code",
    )


_cached = functools.lru_cache(1024)(_express)


def _is_target(plan: Plan) -> bool:
    """Whether the plan is that of a Broadcast op, whose one operand has the target beside it."""
    return plan.rule in RULES and RULES[plan.rule].to_target


def _rows(rule: str | None, engine: str | None, op: str | None, to_target: bool) -> Iterable[Rule]:
    if engine is None:
        # Said of a Broadcast op, "numpy" is the mode of that name.
        names = [row.name for row in RULES.values() if row.to_target] + list(MODES) * to_target
        return (find_rule(rule, to_target=rule in names),)
    if rule is not None:
        return (rule_row(rule, engine=engine, op=op, to_target=to_target),)
    row = find_engine(engine)
    by_op = row.ops.get(op, row.elementwise) if isinstance(op, str) else row.elementwise
    rules = row.to_target if to_target else by_op
    # Asking for the default first also reports what the engine lacks.
    return (rule_row(None, engine=engine, op=op, to_target=to_target), *list(rules.values())[1:])


def _search(
    plan: Plan, row: Rule, engine: str | None, operands: tuple[Shape, ...]
) -> Expression | None:
    """The least change of `operands` under which `row` makes the same plan, or None."""
    for shapes, attributes, swapped in _candidates(plan, row):
        try:
            made = apply(row, shapes, attributes, engine=engine)
        except BroadcastError:
            continue
        aligned = made.aligned[::-1] if swapped else made.aligned
        if made.shape == plan.shape and aligned == plan.aligned:
            written = operands[::-1] if swapped else operands
            changed = tuple(a != b for a, b in zip(shapes, written, strict=False))
            groups = getattr(plan.rule, "groups", ())
            return Expression(shapes, attributes, swapped, groups, made.shape, made.rule, changed)
    return None


def _candidates(
    plan: Plan, row: Rule
) -> Iterator[tuple[tuple[Shape, ...], Mapping[str, Any], bool]]:
    """Shapes, attributes and order to try, least change first."""
    if row.to_target:
        if len(plan.operands) == 1:
            for data in _forms(plan, 0):
                for attributes in _attributes(row, plan, data):
                    yield (data, plan.shape), attributes, False
        return
    combinations = sorted(_combinations(plan), key=lambda shapes: _cost(plan, shapes))
    for swapped in (False, True) if len(plan.operands) == 2 else (False,):
        for shapes in combinations:
            ordered = shapes[::-1] if swapped else shapes
            for attributes in _attributes(row, plan, ordered[-1]):
                yield ordered, attributes, swapped


def _combinations(plan: Plan) -> Iterator[tuple[Shape, ...]]:
    count = len(plan.operands)
    forms = [_forms(plan, k) for k in range(count)]
    if count <= 3:
        yield from itertools.product(*forms)
        return
    # Any number of operands: all as written, or all in the same form.
    yield plan.operands
    yield plan.aligned
    yield tuple(options[-1] for options in forms)


def _forms(plan: Plan, k: int) -> list[Shape]:
    """Shapes that operand `k` may be given: as written, aligned, and without outer ones."""
    aligned = plan.aligned[k]
    filled = [axis for axis, size in enumerate(aligned) if size != 1] or [plan.rank]
    first, last = filled[0], filled[-1] + 1
    forms = (plan.operands[k], aligned, aligned[first:], aligned[:last], aligned[first:last])
    return list(dict.fromkeys(forms))


def _cost(plan: Plan, shapes: Sequence[Shape]) -> tuple[int, int, int]:
    """Fewest operands reshaped, then the smaller ones, then as few axes as can be."""
    changed = [new for new, old in zip(shapes, plan.operands, strict=True) if new != old]
    return len(changed), sum(map(elements, changed)), sum(map(len, changed))


def _attributes(row: Rule, plan: Plan, last: Shape) -> Iterator[dict[str, Any]]:
    """The rule's attributes to try, none first."""
    if "axes_mapping" in row.attributes:
        if last == plan.operands[0] and None not in plan.axes_mapping[0]:
            yield {"axes_mapping": plan.axes_mapping[0]}
        for axes in itertools.islice(itertools.combinations(range(plan.rank), len(last)), 256):
            yield {"axes_mapping": axes}
        return
    yield {}
    switch = {"broadcast": 1} if "broadcast" in row.attributes else {}
    if switch:
        yield switch
    if "axis" in row.attributes:
        for axis in range(plan.rank):
            yield {"axis": axis, **switch}


# Merging neighbouring axes, where a rank limit alone stands in the way.


class _Merged(RuleUse):
    """The rule of a plan whose neighbouring axes were merged, with the groups."""

    __slots__ = ("groups",)
    groups: tuple[tuple[int, ...], ...]


def _merges(plan: Plan, rows: Sequence[Rule]) -> Iterator[Plan]:
    """The plan itself; then, while the rank is over the limit, the plan with fewer axes."""
    yield plan
    if not plan.rank:
        yield _merged(plan, [()])  # for engines whose smallest tensor has one axis
    groups: list[tuple[int, ...]] = [(axis,) for axis in range(plan.rank)]
    while _over_limit(plan, rows):
        pair = next(
            (i for i in _merge_order(plan, groups) if _mergeable(plan, groups[i] + groups[i + 1])),
            None,
        )
        if pair is None:
            return
        groups[pair : pair + 2] = [groups[pair] + groups[pair + 1]]
        yield _merged(plan, groups)


def _merge_order(plan: Plan, groups: Sequence[tuple[int, ...]]) -> list[int]:
    """Which neighbours to merge first: those with an extent of 1, then the innermost."""
    ones = [all(plan.shape[axis] == 1 for axis in group) for group in groups]
    return sorted(range(len(groups) - 1), key=lambda i: (not (ones[i] or ones[i + 1]), -i))


def _mergeable(plan: Plan, axes: Sequence[int]) -> bool:
    """Whether every operand fills all of these axes, or none; axes of extent 1 go with any."""
    wide = [axis for axis in axes if plan.shape[axis] != 1]
    return all(len({axis in stretched for axis in wide}) <= 1 for stretched in plan.stretched)


def _merged(plan: Plan, groups: Sequence[tuple[int, ...]]) -> Plan:
    def fold(shape: Shape) -> Shape:
        return tuple(elements([shape[axis] for axis in group]) for group in groups)

    use = _Merged(plan.rule.name, plan.rule.attributes, plan.rule.engine, plan.rule.op)
    use.groups = tuple(groups)
    aligned = tuple(map(fold, plan.aligned))
    every = tuple(range(len(groups)))
    return Plan(fold(plan.shape), aligned, (every,) * len(aligned), use)


def _over_limit(plan: Plan, rows: Sequence[Rule]) -> bool:
    """Whether a rank limit is what every row says of the plan."""
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
