"""Computes a node that broadcasts by its site's plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...compute.reference import compute
from ...core.alignment import apply
from ...core.plan import Plan, RuleUse
from ...core.rules import RULES
from ...errors import BroadcastError
from ...ops import find_op
from ..ir.graph import Array, Node, Value
from ..ir.site import Kind, Site
from ..onnx_ops.kernels.call import NodeCall, Unfit, room
from ..onnx_ops.table import op_row

#: Kinds computed by their plan. The table of ops computes compounds and clamps.
PLANNED = frozenset({Kind.ELEMENTWISE, Kind.WHERE, Kind.PRELU, Kind.EXPAND})
#: Ops whose operands may have different element types.
_MIXED = frozenset({"Pow", "Where"})
#: Integer tensors of at most this many elements are passed to a site as numbers: a target shape.
_MOST_NUMBERS = 64


def can_plan(site: Site) -> bool:
    """Whether the site covers all of the node's work and its op can be computed here."""
    if site.kind not in PLANNED or not site.whole:
        return False
    if site.kind is Kind.EXPAND:
        return True
    if len(site.operands) != sum(value is not None for value in site.node.inputs):
        return False  # the node does more: ncnn's Scale adds a bias aligned like its scale
    if op_row(site.stands_for).values is not None:
        return True
    try:
        find_op(site.stands_for)
    except BroadcastError:
        return False
    return True


def measured(node: Node, arrays: Sequence[Array | None]) -> Node:
    """The node with the shapes and small contents of its actual operands."""
    values = tuple(
        value if array is None or value is None else _measured(value, array)
        for value, array in zip(node.inputs, arrays, strict=True)
    )
    return replace(node, inputs=values)


def _measured(value: Value, array: Array) -> Value:
    content = value.content
    if array.dtype.kind in "iu" and array.ndim <= 1 and array.size <= _MOST_NUMBERS:
        content = tuple(int(number) for number in array.reshape(-1))
    return replace(value, shape=array.shape, content=content)


def in_order(site: Site, arrays: Sequence[Array | None]) -> tuple[Array | None, ...]:
    """The operands of a site's node in the site's order: ncnn has reversed subtractions."""
    if site.kind is Kind.EXPAND or any(part.tensor is None for part in site.operands):
        return tuple(arrays)
    by_value = {id(value): array for value, array in zip(site.node.inputs, arrays, strict=True)}
    return tuple(by_value[id(part.tensor)] for part in site.operands)


def broadcast(site: Site, call: NodeCall, engine: str | None) -> Array:
    """The result of a site.

    Args:
        site: the site of the node after :func:`measured`.
        call: the node, and the operands in the site's order.
        engine: the engine whose values an op has that ONNX lacks.

    Raises:
        Unfit: the operands' element types do not fit together, or the result is too large.
        BroadcastError: the operands' shapes do not fit together.
    """
    arrays = call.operands()
    if site.kind is Kind.EXPAND:
        return _expanded(site, arrays[0])
    shapes = tuple(array.shape for array in arrays)
    plan = site.plan(shapes)
    room(plan.shape, arrays[-1].dtype)
    values = op_row(site.stands_for).values
    if values is None:
        return _by_table(site, plan, arrays, engine)
    _check_types(site, arrays)
    with np.errstate(all="ignore"):
        return values(call, [plan.view(k, array) for k, array in enumerate(arrays)])


def pointwise(site: Site, call: NodeCall, engine: str | None) -> Array:
    """The result of a site's op for operands of one shape; arguments as of :func:`broadcast`."""
    arrays = call.operands()
    values = op_row(site.stands_for).values
    if values is not None:
        return values(call, arrays)
    plan = apply(RULES["numpy"], [array.shape for array in arrays], {})
    return _by_table(site, plan, arrays, engine)


def _expanded(site: Site, data: Array) -> Array:
    target = site.operands[1].shape
    if target is None or not all(isinstance(size, int) for size in target):
        raise Unfit("its target shape is not known")
    sizes = tuple(size for size in target if isinstance(size, int))
    plan = site.plan((data.shape, sizes))
    room(plan.shape, data.dtype)
    return plan.view(0, data)


def _by_table(site: Site, plan: Plan, arrays: Sequence[Array], engine: str | None) -> Array:
    """An op of the op table, with the values of the file's engine."""
    row = find_op(site.stands_for)
    use = RuleUse(str(plan.rule), plan.rule.attributes, engine, row.name)
    engine_plan = Plan(plan.shape, plan.operands, plan.axes_mapping, use)
    try:
        return np.asarray(compute(row, engine_plan, arrays))
    except ZeroDivisionError as error:
        raise Unfit(str(error)) from None


def _check_types(site: Site, arrays: Sequence[Array]) -> None:
    if site.stands_for in _MIXED:
        arrays = arrays[1:]
    kinds: list[Any] = [array.dtype for array in arrays]
    if any(kind != kinds[0] for kind in kinds):
        names = " and ".join(map(str, kinds))
        raise Unfit(f"its operands are {names}; they must be of one element type")
