"""`supports`: whether an engine carries an op on an element type and shapes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.alignment import Rule, apply
from ..core.hooks import dtype_name
from ..errors import BroadcastError, Reason
from ..ops import BROADCAST_OPS, OPS
from ..sizes import Asker, brief, is_array
from .model import BROADCAST, Divergence, Engine, Rules, Support, always
from .planning import (
    NAMELESS,
    canonical_op,
    engine_plan,
    engine_plan_to,
    has_op,
    lacks_op,
    op_row,
    without_broadcast,
    without_op,
)
from .table import find_engine

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
    asked = broadcast_rules(row, dtype) if to_target else rules_of(row, op, dtype)
    if asked.limit is not None:
        return Support(False, asked.limit.text, asked.limit.source)
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
        if asked.typed:
            planned = apply(asked.rules[0], shapes, {}, engine=engine, op=asked.op)
        elif to_target:
            data, target = _data_and_target(shapes)
            planned = engine_plan_to(data, target, engine)
        else:
            planned = engine_plan(*shapes, engine=engine, op=op)
    except BroadcastError as error:
        return Support(False, error.detail, row.source)
    for divergence in row.divergences_of(asked.op, asked.dtype):
        if divergence.strikes is not None and divergence.strikes(planned, Asker()):
            return Support(False, divergence.text, divergence.source)
    return Support(True, f"planned to {planned.shape}", row.source)


@dataclass(frozen=True, slots=True)
class OpRules:
    """How an engine carries an op on an element type.

    Attributes:
        op: the op's canonical name or that of a row of the engine's own, `BROADCAST`, or None: the
            usual rules of element-wise ops.
        dtype: NumPy's name of the element type; None: any.
        rules: its rules, the default first; none where the engine has no Broadcast op.
        typed: whether they are those of this element type alone.
        limit: why the engine carries no shapes, or computes in another type; None: it does not.
    """

    op: str | None
    dtype: str | None
    rules: tuple[Rule, ...]
    typed: bool
    limit: Divergence | None

    @property
    def refusal(self) -> Divergence | None:
        """The limit, if the engine refuses the op or computes something wrong for all shapes."""
        return None if self.limit is None or self.limit.narrows is not None else self.limit


def rules_of(engine: Engine, op: str | None, dtype: Any = None) -> OpRules:
    """The rules of an element-wise op of an engine on an element type, and their limit.

    Args:
        engine: its row.
        op: any engine's name for the op; None: the usual rules.
        dtype: anything NumPy understands as a dtype; None: any.
    """
    name = canonical_op(op, engine)
    limit = None
    if name is not None and engine.name not in NAMELESS and not has_op(engine, op):
        reason = Reason.NO_OP if lacks_op(engine, name) else Reason.NOT_UNDERSTOOD
        limit = Divergence(without_op(engine, name), reason, engine.source)
    return _typed(engine, name, dtype, engine.ops.get(name or "", engine.elementwise), limit)


def broadcast_rules(engine: Engine, dtype: Any = None) -> OpRules:
    """The rules of an engine's Broadcast op on an element type, and their limit.

    Args:
        engine: its row.
        dtype: anything NumPy understands as a dtype; None: any.
    """
    limit = None
    if not engine.to_target:
        limit = Divergence(without_broadcast(engine), Reason.NO_OP, engine.source)
    return _typed(engine, BROADCAST, dtype, engine.to_target, limit)


def _typed(
    engine: Engine, op: str | None, dtype: Any, usual: Rules, limit: Divergence | None
) -> OpRules:
    """The rules of an op on an element type; `usual` are those of every other type."""
    element = None if dtype is None else _dtype_name(dtype)
    if limit is None and element is not None and op is not None:
        limit = dtype_limit(engine, op, element)
    own = typed_rule(engine, op, element)
    rules = tuple(usual.values()) if own is None else (own,)
    return OpRules(op, element, rules, own is not None, limit)


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
