"""Finds the least change of the operands after which a rule means what a plan means."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...core.alignment import Rule, apply
from ...core.plan import Plan, RuleUse
from ...core.rules import MODES, RULES, find_rule
from ...engines.planning import rule_row
from ...engines.table import ENGINES, find_engine
from ...errors import BroadcastError, Misfit, NotExpressible, Reason
from ...ops import OPS, column_of
from ...sizes import Shape, elements
from ...sizes.budget import answer_cache
from .explicit import laid_out
from .expression import Expression, text
from .merging import groups_of, merges, over_limit

if TYPE_CHECKING:
    from ...sizes.condition import Condition


def express(
    plan: Plan, rule: str | None, *, engine: str | None = None, op: str | None = None
) -> Expression:
    """How to express `plan` under a rule or on an engine; see :meth:`zerostride.Plan.express`.

    Args:
        plan: the plan to express.
        rule: a rule's name, a Broadcast mode, or an engine's name; None with an engine tries all
            its rules.
        engine: the engine whose version of the rule is used.
        op: the op, where the engine's ops differ.

    Raises:
        NotExpressible: no reshape of the operands gives the plan under the rule.

    >>> import zerostride as zs
    >>> plan = zs.plan(("H", "W"), ("W",))
    >>> express(plan, "ncnn").describe(), express(plan, "none").describe()
    ('reshape y to (1, W)', 'reshape y to (1, W), only if H == 1')
    """
    if isinstance(rule, str) and engine is None and _names_engine(rule, plan):
        rule, engine = None, rule
    # Equal plans may be written differently, so provenance is part of the key.
    where = None if plan.open is None else (plan.open.given, plan.open.exists)
    key = (plan, plan.operands, _is_target(plan), rule, engine, op, where)
    try:
        expression = _cached(*key)
    except TypeError:
        expression = _express(*key)  # not hashable: the tables raise the error
    # A copy: the caller may change the attributes, but not the cached ones.
    return replace(expression, attributes=dict(expression.attributes))


def _names_engine(rule: str, plan: Plan) -> bool:
    """Whether a name that is both a rule's and an engine's means the engine.

    "mnn" and "paddle" are both; their rules are element-wise, and their engines also have Broadcast
    ops.
    """
    if "@" in rule or (rule not in RULES.own and rule in ENGINES.own):
        return True
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
    where: tuple[Condition, Condition] | None,
) -> Expression:
    rows = tuple(_rows(rule, engine, op, to_target))
    orders = _orders(engine, op)
    if where is None:
        tries = (
            _search(m, row, engine, operands, orders) for m in merges(plan, rows) for row in rows
        )
        expression = next(filter(None, tries), None)
    else:
        expression = _search_open(plan, rows, engine, operands, where, orders)
    partial = expression is None or expression.only_if is not None
    if engine is not None and not to_target and partial:
        expression = laid_out(plan, rows[0], find_engine(engine), operands) or expression
    if expression is not None:
        return expression
    result = text(plan.shape)
    raise NotExpressible(
        f"no reshape of the operands makes {engine or 'the rule'} give {result} this way",
        reason=Reason.RANK_LIMIT if over_limit(plan, rows) else Reason.NO_RULE,
        rule=RuleUse(rule or rows[0].name, engine=engine, op=op),
        shapes=plan.operands,
        hint="broadcast the operands to the result's shape first: plan.views, or plan.code",
    )


def _orders(engine: str | None, op: str | None) -> tuple[bool, ...]:
    """As written, then swapped, unless the engine has no swapped form of the op."""
    row = OPS.get(op) if isinstance(op, str) else None
    if row is None or engine is None or row.commutes:
        return (False, True)
    column = column_of(engine)
    turned = column in row.reversed_names or (
        row.swap is not None and column in OPS[row.swap].names
    )
    return (False, True) if turned else (False,)


_cached = answer_cache(_express)


def _is_target(plan: Plan) -> bool:
    """Whether a Broadcast op made the plan: its one operand comes with a target."""
    return plan.rule in RULES and RULES[plan.rule].to_target


def _rows(rule: str | None, engine: str | None, op: str | None, to_target: bool) -> Iterable[Rule]:
    if engine is None:
        # For a Broadcast op, "numpy" is the mode of that name.
        named = rule if isinstance(rule, str) else ""
        listed = RULES.get(named)
        if listed is None and named and named not in MODES:
            raise _no_such(named)
        targeted = listed is not None and listed.to_target
        return (find_rule(rule, to_target=targeted or (to_target and named in MODES)),)
    if rule is not None:
        return (rule_row(rule, engine=engine, op=op, to_target=to_target),)
    row = find_engine(engine)
    by_op = row.ops.get(op, row.elementwise) if isinstance(op, str) else row.elementwise
    rules = row.to_target if to_target else by_op
    # The default is looked up first, because that reports an op that the engine lacks.
    return (rule_row(None, engine=engine, op=op, to_target=to_target), *list(rules.values())[1:])


def _no_such(name: str) -> BroadcastError:
    """The error for a name that is neither a rule's nor an engine's."""
    names = list(dict.fromkeys((*RULES, *MODES, *ENGINES)))
    close = difflib.get_close_matches(name[:80], names, 1)
    return BroadcastError(
        f"there is no rule and no engine {name!r}",
        reason=Reason.UNKNOWN_RULE,
        hint=f"did you mean {close[0]}?" if close else f"one of {', '.join(names)}",
    )


def _search(
    plan: Plan,
    row: Rule,
    engine: str | None,
    operands: tuple[Shape, ...],
    orders: tuple[bool, ...],
) -> Expression | None:
    """The least change of `operands` under which `row` makes the same plan, or None."""
    for shapes, attributes, swapped in _candidates(plan, row, orders):
        try:
            result = apply(row, shapes, attributes, engine=engine)
        except BroadcastError:
            continue
        aligned = result.aligned[::-1] if swapped else result.aligned
        if result.shape == plan.shape and aligned == plan.aligned:
            written = operands[::-1] if swapped else operands
            changed = tuple(a != b for a, b in zip(shapes, written, strict=False))
            groups = groups_of(plan)
            shape, use = result.shape, result.rule
            return Expression(shapes, attributes, swapped, groups, shape, use, changed)
    return None


#: Candidates that mean the same only for some sizes; the one for most sizes is returned.
_MOST_CONDITIONAL = 48


def _search_open(
    plan: Plan,
    rows: Sequence[Rule],
    engine: str | None,
    operands: tuple[Shape, ...],
    where: tuple[Condition, Condition],
    orders: tuple[bool, ...],
) -> Expression | None:
    """The least change that means the same for all sizes, else for most sizes; or None."""
    from ...sizes.condition import all_of
    from ...sizes.simplify import simplified
    from ...sizes.solve import excludes, implies

    facts = all_of(where)
    best: tuple[Condition, Expression] | None = None
    tried = 0
    for merged in merges(plan, rows):
        for row in rows:
            for shapes, attributes, swapped in _candidates(merged, row, orders):
                same = _same_where(merged, row, shapes, attributes, swapped, facts)
                if same.never or tried > _MOST_CONDITIONAL:
                    continue
                always = implies(facts, same)
                tried += 1
                if not always and (
                    excludes(facts, same) or (best and not _weaker(same, best[0], facts))
                ):
                    continue
                written = operands[::-1] if swapped else operands
                changed = tuple(a != b for a, b in zip(shapes, written, strict=False))
                groups = groups_of(merged)
                use = RuleUse(row.name, attributes, engine)
                shape = merged.shape
                expression = Expression(shapes, attributes, swapped, groups, shape, use, changed)
                if always:
                    return expression
                best = same, expression
    if best is None:
        return None
    return replace(best[1], only_if=simplified(best[0], facts))


def _weaker(condition: Condition, other: Condition, facts: Condition) -> bool:
    """Whether a condition holds wherever the other one does, and also elsewhere."""
    from ...sizes.condition import all_of
    from ...sizes.solve import implies

    return implies(all_of([facts, other]), condition) and not implies(
        all_of([facts, condition]), other
    )


def _same_where(
    plan: Plan,
    row: Rule,
    shapes: tuple[Shape, ...],
    attributes: Mapping[str, Any],
    swapped: bool,
    facts: Condition,
) -> Condition:
    """The sizes for which `row` gives these shapes the plan's meaning."""
    from ...core.leaves import align_operands
    from ...core.symbolic import open_leaves, ways_of
    from ...sizes.condition import NEVER, all_of, any_of, eq

    try:
        leaves = open_leaves(row, shapes, attributes, facts)
    except Misfit:
        return NEVER
    ways = []
    for leaf in leaves:
        if leaf.misfit is not None:
            continue
        rank = len(leaf.shape)
        aligned = align_operands(leaf.sizes[: len(leaf.mapping)], leaf.mapping, rank)
        for way in ways_of(plan):
            if len(way.shape) != rank or len(aligned) != len(way.mapping):
                continue
            intended = align_operands(plan.operands, way.mapping, rank)
            pairs = [(leaf.shape, way.shape)]
            pairs += zip(aligned[::-1] if swapped else aligned, intended, strict=True)
            sizes = (both for pair in pairs for both in zip(*pair, strict=True))
            equal = [eq(a, b) for a, b in sizes if a != b]
            ways.append(all_of([leaf.when, way.when, *equal]))
    return any_of(ways)


def _candidates(
    plan: Plan, row: Rule, orders: tuple[bool, ...]
) -> Iterator[tuple[tuple[Shape, ...], Mapping[str, Any], bool]]:
    """Shapes, attributes and order (whether swapped) to try, least change first."""
    if row.to_target:
        if len(plan.operands) == 1:
            for data in _forms(plan, 0):
                for attributes in _attributes(row, plan, data):
                    yield (data, plan.shape), attributes, False
        return
    combinations = sorted(_combinations(plan), key=lambda shapes: _cost(plan, shapes))
    for swapped in orders if len(plan.operands) == 2 else (False,):
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
    yield tuple(_placements(plan, k)[0] for k in range(count))
    yield tuple(options[-1] for options in forms)


def _forms(plan: Plan, k: int) -> list[Shape]:
    """Candidate shapes of operand `k`: as written, aligned, and without outer ones."""
    forms = [plan.operands[k]]
    for aligned in _placements(plan, k):
        filled = [axis for axis, size in enumerate(aligned) if size != 1] or [plan.rank]
        first, last = filled[0], filled[-1] + 1
        forms += (aligned, aligned[first:], aligned[:last], aligned[first:last])
    return list(dict.fromkeys(forms))


def _placements(plan: Plan, k: int) -> tuple[Shape, ...]:
    """Operand `k` at the result's rank; one shape per case if that depends on sizes."""
    if plan.open is None or len(plan.open.accepted) == 1:
        return (plan.aligned[k],)
    from ...core.leaves import align_operands

    ways = {leaf.mapping: None for leaf in plan.open.accepted}
    rows = [align_operands(plan.operands, mapping, plan.rank)[k] for mapping in ways]
    return tuple(dict.fromkeys(rows))


def _cost(plan: Plan, shapes: Sequence[Shape]) -> tuple[int, int, int]:
    """The sort key: fewest reshaped operands, then smaller operands, then fewest axes."""
    changed = [new for new, old in zip(shapes, plan.operands, strict=True) if new != old]
    if plan.open is not None:  # smaller then means fewer axes that may be long
        wide = sum(size != 1 for shape in changed for size in shape)
        return len(changed), wide, sum(map(len, changed))
    return len(changed), sum(map(elements, changed)), sum(map(len, changed))


def _attributes(row: Rule, plan: Plan, last: Shape) -> Iterator[dict[str, Any]]:
    """Attributes of the rule to try; no attributes first."""
    if "axes_mapping" in row.attributes:
        if last == plan.operands[0] and all(isinstance(a, int) for a in plan.axes_mapping[0]):
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
