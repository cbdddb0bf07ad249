"""The last resort for an expression: a Broadcast op before each operand that would stretch."""

from __future__ import annotations

from ...core.alignment import Rule, apply
from ...core.plan import Plan
from ...engines.model import Engine
from ...errors import BroadcastError
from ...sizes import Shape
from .expression import Expression

#: The mode in which a Broadcast op gets the target axis of every data axis.
_MODE = "explicit"


def laid_out(
    plan: Plan, row: Rule, engine: Engine, operands: tuple[Shape, ...]
) -> Expression | None:
    """Every operand broadcast to the result's shape first, for an engine that stretches nothing.

    Args:
        plan: the plan to express.
        row: the engine's element-wise rule.
        engine: the engine; it must have a Broadcast op with the mode explicit.
        operands: the operands' shapes as written.

    Returns:
        None if the engine has no such op or stretches by itself, or if open sizes leave the need
        uncertain.
    """
    broadcast = engine.to_target.get(_MODE)
    if broadcast is None or any(rule.name != "none" for rule in engine.elementwise.values()):
        return None
    mapping: list[tuple[int, ...] | None] = []
    for k, shape in enumerate(operands):
        axes = plan.axes_mapping[k]
        if shape == plan.shape and plan.aligned[k] == plan.shape:
            mapping.append(None)
            continue
        places = tuple(axis for axis in axes if axis is not None)
        if len(places) < len(axes) or not _lands(plan, k, broadcast, places):
            return None
        mapping.append(places)
    shapes = (plan.shape,) * len(operands)
    try:
        result = apply(row, shapes, {}, engine=engine.name)
    except BroadcastError:
        return None
    changed = tuple(axes is not None for axes in mapping)
    return Expression(
        shapes, {}, False, (), result.shape, result.rule, changed, explicit=tuple(mapping)
    )


def _lands(plan: Plan, k: int, broadcast: Rule, axes: tuple[int, ...]) -> bool:
    """Whether the Broadcast op with these axes lays operand `k` as the plan does."""
    facts = plan.open.given if plan.open is not None else None
    try:
        shapes = (plan.operands[k], plan.shape)
        landed = apply(broadcast, shapes, {"axes_mapping": axes}, facts=facts)
    except BroadcastError:
        return False
    decided = landed.open is None or not len(landed.conditions)
    return decided and landed.shape == plan.shape and landed.aligned[0] == plan.aligned[k]
