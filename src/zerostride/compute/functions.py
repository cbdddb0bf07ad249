"""The public functions, one an op of the table, all made by one factory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..engines.planning import plan, plan_to
from ..ops import OPS, Op
from .foreign import any_foreign, dispatch, is_foreign
from .labels import check_labels
from .native import bind, compute, copied
from .outputs import as_target
from .reference import as_operand, shape_of
from .views import laid_over


class Elementwise(Protocol):
    """A public function of two operands."""

    def __call__(
        self,
        a: Any,
        b: Any,
        rule: str | None = None,
        axis: int | None = None,
        engine: str | None = None,
        out: Any = None,
        dtype: Any = None,
        broadcast: int | None = None,
    ) -> Any:
        """Computes the op."""
        ...


def _run(
    op: Op,
    operands: Sequence[Any],
    rule: str | None,
    axis: int | None,
    engine: str | None,
    out: Any,
    dtype: Any,
    broadcast: int | None,
) -> Any:
    """Plans the operands' shapes and computes."""
    traced = tracing(operands)
    if traced is not None:
        return traced.__zerostride_trace__(
            op,
            operands,
            rule=rule,
            axis=axis,
            broadcast=broadcast,
            engine=engine,
            out=out,
            dtype=dtype,
        )
    if any_foreign(operands):
        foreign = dispatch()
        options = foreign.Options(rule, axis, engine, out, dtype, broadcast)
        return foreign.elementwise(op, operands, options)
    if rule is None and engine is None:
        check_labels(operands)
    arrays = [as_operand(operand, k) for k, operand in enumerate(operands)]
    op_plan = plan(
        *map(shape_of, arrays),
        rule=rule,
        axis=axis,
        broadcast=broadcast,
        engine=engine,
        op=op.name if engine is not None else None,
    )
    return compute(op, op_plan, arrays, out, dtype)


def tracing(operands: Sequence[Any]) -> Any:
    """The type of an operand that stands for an array while a function is traced, or None.

    It has the method `__zerostride_trace__`, which records the op.
    """
    for operand in operands:
        if hasattr(type(operand), "__zerostride_trace__"):
            return type(operand)
    return None


_DOC = """{summary}; under any rule.

Args:
    {operands}: arrays, lists or Python numbers; Python numbers promote as in NumPy (NEP 50)
        and have rank 0.
    rule: name of an element-wise rule; None is "numpy", or the engine's default under an engine.
    axis: where the smaller operand starts, under the rules that have it (pdpd, paddle, onnx6).
    engine: compute what that engine's measured release does: its alignment, its dtypes and its
        values where they were measured.
    out: an array (or a tuple of one) that receives the result and is returned; it may overlap the
        operands.
    dtype: what to compute in, as for NumPy's ufuncs.
    broadcast: onnx6's attribute; 1 allows broadcasting.

Returns:
    An array of the plan's shape; a NumPy scalar at rank 0.

Raises:
    BroadcastError: the shapes do not combine under the rule, `out` has another shape, or the engine
        lacks the op or its dtypes.
    TypeError: the op has no meaning for the dtypes, or its result does not fit `out`.
    MemoryError: the result has more bytes than there are.
    ValueError: an integer to a negative integer power; elements of `out` that share memory.
    ZeroDivisionError: integers divided by zero under an engine that refuses that.

No floating-point warning is given, whatever `numpy.errstate` says: infinity and NaN are answers.

Elsewhere: {names}.

Source: {source}.

>>> import zerostride as zs
>>> zs.{name}({args}).tolist()
{result}
"""


def names_of(op: Op) -> str:
    """The names of an op on the engines that have their own; or the engines that share its name."""
    named = [
        f"{column} {'/'.join(map(str, names))}"
        for column, names in op.names.items()
        if names != (op.name,)
    ]
    if named:
        return ", ".join(named)
    return f"the same name on {', '.join(op.names)}" if op.names else "no engine has it"


def describe(op: Op, operands: str) -> str:
    """The docstring of an op's function, from its row."""
    args, result = op.example
    return _DOC.format(
        summary=op.summary,
        operands=operands,
        names=names_of(op),
        source=f"numpy.{op.numpy}" if op.numpy else "the operator documents of its engines",
        name=op.name,
        args=args,
        result=result,
    )


def elementwise(op: Op) -> Elementwise:
    """The public function of an op of two operands."""

    def function(
        a: Any,
        b: Any,
        rule: str | None = None,
        axis: int | None = None,
        engine: str | None = None,
        out: Any = None,
        dtype: Any = None,
        broadcast: int | None = None,
    ) -> Any:
        return _run(op, (a, b), rule, axis, engine, out, dtype, broadcast)

    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = describe(op, "a, b")
    return bind(op, function)


if TYPE_CHECKING:
    # A written type is not read by modules of one import circle.
    def __getattr__(name):  # type: ignore[no-untyped-def]
        """The function of any op of two operands."""
        ...


#: The functions that are made of rows alone.
FUNCTIONS: dict[str, Elementwise] = {
    op.name: elementwise(op)
    for op in OPS.values()
    if op.tensors == op.operands == 2 and op.name != "prelu"
}
FUNCTIONS["power"] = FUNCTIONS["pow"]
globals().update(FUNCTIONS)


def where(
    c: Any,
    a: Any,
    b: Any,
    rule: str | None = None,
    axis: int | None = None,
    engine: str | None = None,
    out: Any = None,
    dtype: Any = None,
) -> Any:
    """Selects by a condition."""
    return _run(OPS["where"], (c, a, b), rule, axis, engine, out, dtype, None)


def prelu(
    x: Any,
    slope: Any,
    rule: str | None = None,
    axis: int | None = None,
    engine: str | None = None,
    out: Any = None,
    dtype: Any = None,
    broadcast: int | None = None,
) -> Any:
    """Scales what is negative."""
    return _run(OPS["prelu"], (x, slope), rule, axis, engine, out, dtype, broadcast)


def broadcast(
    data: Any,
    target_shape: Any,
    mode: str | None = None,
    axes_mapping: Sequence[int] | None = None,
    copy: bool = False,
    engine: str | None = None,
    out: Any = None,
) -> Any:
    """A Broadcast (Expand, broadcast_to) op: data laid over a target shape.

    Args:
        data: an array, a list or a number.
        target_shape: the target; under mode "bidirectional" the result may be larger.
        mode: "numpy" (one way; the default), "bidirectional" or "explicit"; with an engine its own
            default.
        axes_mapping: for mode "explicit", the target axis of each data axis, rising.
        copy: make an array that can be written to.
        engine: do what that engine's measured release does.
        out: an array (or a tuple of one) that receives the result and is returned; it may overlap
            the data.

    Returns:
        A read-only view of the data, with stride 0 where it stretches; with `copy` a new array.

    Raises:
        BroadcastError: as :func:`zerostride.plan_to`; `out` has another shape.
        TypeError: the data's dtype does not become `out`'s within its kind.
        ValueError: elements of `out` share memory.

    Source: OpenVINO operation specification, 'Broadcast-3'.

    >>> broadcast([1, 2], (2, 3), mode="explicit", axes_mapping=[0])
    array([[1, 1, 1],
           [2, 2, 2]])
    """
    # Short, for plain arrays: the threads of a copy wait while Python runs.
    traced = None if type(data) is np.ndarray else tracing((data,))
    if is_foreign(data):
        target_plan = plan_to(tuple(data.shape), target_shape, mode, axes_mapping, engine)
        return dispatch().broadcast(data, target_plan, copy, out)
    array = data if traced is not None else np.asarray(as_operand(data))
    target_plan = plan_to(array.shape, target_shape, mode, axes_mapping, engine)
    if traced is not None:
        return traced.__zerostride_broadcast__(
            data, target_plan.shape, target_plan.axes_mapping[0], out
        )
    view = laid_over(target_plan, 0, array)
    target = as_target(out, target_plan.shape, target_plan)
    return copied(view, target) if copy or target is not None else view


where.__doc__ = describe(OPS["where"], "c, a, b")
prelu.__doc__ = describe(OPS["prelu"], "x, slope")
where, prelu = bind(OPS["where"], where), bind(OPS["prelu"], prelu)
