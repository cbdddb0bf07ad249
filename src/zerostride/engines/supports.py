"""`supports`: whether an engine carries an op on an element type and shapes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ..core.alignment import Alignment, Attributes, Rule, apply
from ..core.hooks import dtype_name
from ..errors import BroadcastError, Misfit, Reason
from ..ops import OPS
from ..sizes import Asker, Shape, brief, is_array
from .model import BROADCAST, Divergence, Engine, Rules, Support, always
from .planning import (
    NAMELESS,
    canonical_op,
    engine_plan,
    engine_plan_to,
    has_op,
    lacks_op,
    op_row,
    without_op,
)
from .table import find_engine

#: Names of the Broadcast op in the engines.
BROADCAST_OPS = frozenset({BROADCAST, "broadcast", "broadcast_to", "broadcastto", "expand_v2"})
#: Dtype names that are recognised without NumPy.
_DTYPES = {
    *("bool", "float16", "float32", "float64", "complex64", "complex128"),
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
}


def supports(
    engine: str, op: str = "add", dtype: Any = None, shapes: Sequence[Any] = ()
) -> Support:
    """Whether an engine's measured release carries an op on a dtype and shapes.

    Args:
        engine: the engine's name.
        op: any engine's name for the op; "expand" (or "broadcast") asks for the Broadcast op, whose
            two shapes are the data's and the target.
        dtype: anything NumPy understands as a dtype, or None to leave it out.
        shapes: the operands' shapes, or none to ask for the op alone.

    >>> import zerostride as zs
    >>> zs.supports("ncnn", "Add", "float32", [(2, 3, 4, 5, 6), (6,)]).ok
    False
    """
    row = find_engine(engine)
    to_target = str(op).lower() in BROADCAST_OPS
    if not to_target and not has_op(row, op):
        return Support(False, without_op(row, op_row(op, row).name), row.source)
    name = BROADCAST if to_target else canonical_op(op, row)
    element = None if dtype is None else _dtype_name(dtype)
    if element is not None and (limit := dtype_limit(row, name, element)):
        return Support(False, limit.text, limit.source)
    if is_array(shapes) or not isinstance(shapes, Iterable):
        raise BroadcastError(
            f"shapes is a list of shapes, not {brief(shapes)}",
            reason=Reason.ATTRIBUTE,
            hint="write shapes=[(2, 3), (3,)]",
        )
    shapes = tuple(shapes)
    if not shapes:
        return Support(True, f"{engine} has the op", row.source)
    try:
        own = typed_rule(row, name, element)
        if own is not None:
            planned = apply(own, shapes, {}, engine=engine, op=name)
        elif to_target:
            data, target = _data_and_target(shapes)
            planned = engine_plan_to(data, target, engine)
        else:
            planned = engine_plan(*shapes, engine=engine, op=op)
    except BroadcastError as error:
        return Support(False, error.detail, row.source)
    for divergence in row.divergences_of(name, element):
        if divergence.strikes is not None and divergence.strikes(planned, Asker()):
            return Support(False, divergence.text, divergence.source)
    return Support(True, f"planned to {planned.shape}", row.source)


def rules_of(
    engine: Engine, op: str | None, dtype: Any = None
) -> tuple[tuple[Rule, ...], str | None]:
    """The rules of an engine's op on an element type, the default first; and the op's own name.

    Of an op or a type that the engine lacks, or about which nothing was read, one rule that refuses
    all shapes.

    Args:
        engine: its row.
        op: any engine's name for the op; None: the usual rules of element-wise ops.
        dtype: anything NumPy understands as a dtype; None: any.
    """
    name, element = canonical_op(op, engine), None if dtype is None else _dtype_name(dtype)
    usual = engine.elementwise
    limit = None if element is None else dtype_limit(engine, name, element)
    if name is not None and engine.name not in NAMELESS and not has_op(engine, op):
        reason = Reason.NO_OP if lacks_op(engine, name) else Reason.NOT_UNDERSTOOD
        return (_refusing(usual, reason, without_op(engine, name)),), name
    if limit is not None and limit.narrows is None:
        return (_refusing(usual, limit.effect, limit.text),), name
    own = typed_rule(engine, name, element)
    rules = engine.ops.get(name or "", usual).values()
    return (tuple(rules) if own is None else (own,)), name


def _refusing(rules: Rules, reason: Reason, words: str) -> Rule:
    """The first rule, as one that refuses all shapes."""

    def align(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
        raise Misfit(reason, words)

    return replace(next(iter(rules.values())), align=align)


def typed_rule(engine: Engine, op: str | None, dtype: str | None) -> Rule | None:
    """The engine's rule for an op on an element type; None where it is that of every type.

    Args:
        engine: its row.
        op: the op's canonical name, or `BROADCAST`.
        dtype: NumPy's name of it.
    """
    rules = engine.typed.get((op or "", dtype or ""))
    return next(iter(rules.values())) if rules else None


def dtype_limit(engine: Engine, op: str | None, dtype: str) -> Divergence | None:
    """The reason why an engine does not carry an op on a dtype, for any shapes; None if it does.

    Args:
        engine: its row.
        op: the op's canonical name; `BROADCAST`, or None, for the Broadcast op. A divergence of all
            ops is not about that one.
        dtype: NumPy's name of it.
    """
    if op is not None and op in OPS and OPS[op].refuses(engine.name, dtype):
        detail = f"{engine.name}'s {op} does not take {dtype}"
        return Divergence(detail, Reason.DTYPE, engine.source, strikes=always)
    broadcasts = op in (None, BROADCAST)
    for row in engine.divergences:
        named = bool(row.ops) or not broadcasts
        if named and row.dtypes and row.strikes is always and row.concerns(op or BROADCAST, dtype):
            return row
    return None


def _data_and_target(shapes: Sequence[Any]) -> tuple[Any, Any]:
    if len(shapes) == 2:
        return shapes[0], shapes[1]
    raise BroadcastError(
        f"{len(shapes)} shapes given; it takes the data's and the target",
        reason=Reason.OPERAND_COUNT,
        shapes=shapes,
    )


def _dtype_name(dtype: Any) -> str:
    if isinstance(dtype, str) and dtype in _DTYPES:
        return dtype
    try:
        return dtype_name(dtype)
    except TypeError:
        raise BroadcastError(f"there is no dtype {dtype!r}", reason=Reason.DTYPE) from None
