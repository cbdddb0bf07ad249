"""The public functions of one tensor, made from the op table; `clip` and `cast`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..core.plan import Plan, RuleUse
from ..engines.planning import plan
from ..engines.table import find_engine
from ..errors import BroadcastError, Reason
from ..ops import OPS, Op
from .dtypes import as_dtype
from .foreign import any_foreign, dispatch, is_foreign
from .functions import _run, describe, names_of, tracing
from .native import bind, compute
from .reference import as_operand, shape_of
from .special import is_float


class Unary(Protocol):
    """A public function of one tensor."""

    def __call__(
        self, x: Any, *, engine: str | None = None, out: Any = None, dtype: Any = None
    ) -> Any:
        """Computes the op."""
        ...


class Activation(Protocol):
    """A public function of one tensor and parameters."""

    def __call__(
        self,
        x: Any,
        *parameters: Any,
        engine: str | None = None,
        out: Any = None,
        dtype: Any = None,
        **named: Any,
    ) -> Any:
        """Computes the op."""
        ...


_DOC = """{summary}.

Args:
    x: an array, a list or a Python number.
{parameters}    engine: compute what that engine's measured release does.
    out: an array (or a tuple of one) that receives the result and is returned; it may be x, and may
        overlap it.
    dtype: what to compute in, as for NumPy's ufuncs.

Returns:
    An array of x's shape; a NumPy scalar at rank 0. {dtypes}

Raises:
    BroadcastError: `out` has another shape, or the engine lacks the op or its dtypes.
    TypeError: the op has no meaning for the dtype, or its result does not fit `out`.
    ValueError: elements of `out` share memory.
    MemoryError: the result has more bytes than there are.

Elsewhere: {names}.

Source: {source}.

>>> import zerostride as zs
>>> zs.{name}({args}).tolist()
{result}
"""
_DOC_CAST = """{summary}.

Args:
    x: an array, a list or a Python number.
    dtype: anything NumPy understands as a dtype of numbers.
    out: an array that receives the result, converted once more if it has another dtype of the kind.

Returns:
    An array of x's shape; a NumPy scalar at rank 0. Integers wrap around in fewer bits, what is
    not 0 is true, and floats round to the nearest, ties to even.

Raises:
    TypeError: complex numbers to real ones, or dtypes that are no numbers.

Elsewhere: {names}.

Source: the Python array API's `astype`, which leaves floats beyond an integer's range open; ONNX,
Cast, with the values of its `saturate`.

>>> import zerostride as zs
>>> zs.cast([-300.0, 2.7, float("nan")], "int8").tolist()
{result}
"""
_FLOATS = "Integers give numpy.exp's float."


def _describe(op: Op) -> str:
    lines = [
        f"    {name}: {value!r} if left out; an array broadcasts with x as in NumPy.\n"
        for name, value in op.parameters.items()
    ]
    args, result = op.example
    return _DOC.format(
        summary=op.summary,
        parameters="".join(lines),
        dtypes=_dtypes(op),
        names=names_of(op),
        source=f"numpy.{op.numpy}" if op.numpy else "the operator documents of its engines",
        name=op.name,
        args=args,
        result=result,
    )


def _dtypes(op: Op) -> str:
    if op.numpy:
        return f"Its dtype is that of numpy.{op.numpy}."
    return "Its dtype is x's." if op.name == "relu" else _FLOATS


def _under(op: Op, operands: tuple[Any, ...], engine: str, out: Any, dtype: Any) -> Any:
    """The op under an engine. Parameters are numbers there, so nothing has to be aligned."""
    if tracing(operands) is not None or any_foreign(operands):
        return _run(op, operands, None, None, engine, out, dtype, None)
    row = find_engine(engine)
    arrays = [as_operand(operand, k) for k, operand in enumerate(operands)]
    for name, value in zip(op.parameters, arrays[op.tensors :], strict=True):
        if shape_of(value):
            raise BroadcastError(
                f"{engine} takes {name} as a number, not of shape {shape_of(value)}",
                reason=Reason.ATTRIBUTE,
            )
        if engine in op.fixed and value != op.parameters[name]:
            raise BroadcastError(
                f"{engine}'s {op.name} has {name} = {op.parameters[name]} and no other",
                reason=Reason.ATTRIBUTE,
            )
    shape_plan = plan(*map(shape_of, arrays))
    use = RuleUse(str(shape_plan.rule), engine=row.name, op=op.name)
    op_plan = Plan(shape_plan.shape, shape_plan.operands, shape_plan.axes_mapping, use)
    return compute(op, op_plan, arrays, out, dtype)


def unary(op: Op) -> Unary:
    """The public function of an op of one operand."""

    def function(x: Any, *, engine: str | None = None, out: Any = None, dtype: Any = None) -> Any:
        if engine is not None:
            return _under(op, (x,), engine, out, dtype)
        return _run(op, (x,), None, None, None, out, dtype, None)

    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = _describe(op)
    return bind(op, function, rules=False)


def activation(op: Op) -> Activation:
    """The public function of an op of one tensor and parameters."""

    def function(
        x: Any,
        *parameters: Any,
        engine: str | None = None,
        out: Any = None,
        dtype: Any = None,
        **named: Any,
    ) -> Any:
        operands = (x, *_parameters(op, parameters, named))
        if engine is not None:
            return _under(op, operands, engine, out, dtype)
        return _run(op, operands, None, None, None, out, dtype, None)

    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = _describe(op)
    vars(function)["__signature__"] = _signature(op)
    return bind(op, function, rules=False)


def _signature(op: Op) -> inspect.Signature:
    """The signature of an op's function, with a default for each parameter."""
    parameters = [inspect.Parameter("x", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    for name, value in op.parameters.items():
        parameters.append(
            inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=value)
        )
    for name in ("engine", "out", "dtype"):
        parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None))
    return inspect.Signature(parameters)


def _parameters(op: Op, values_by_place: tuple[Any, ...], named: Mapping[str, Any]) -> list[Any]:
    """The parameters in the table's order, with defaults for those left out."""
    names = list(op.parameters)
    if len(values_by_place) > len(names):
        raise TypeError(
            f"{op.name} takes x and {len(names)} parameters, not {len(values_by_place)}"
        )
    values = {**op.parameters, **dict(zip(names, values_by_place, strict=False))}
    for name, value in named.items():
        if name not in op.parameters or name in names[: len(values_by_place)]:
            what = "was given twice" if name in op.parameters else "is no parameter of it"
            raise TypeError(f"{op.name}: {name} {what}; it takes {', '.join(names)}")
        values[name] = value
    return [values[name] for name in names]


if TYPE_CHECKING:
    # A written type is not read by modules of one import circle.
    def __getattr__(name):  # type: ignore[no-untyped-def]
        """The function of any op of one tensor."""
        ...


#: The functions that are made of rows alone.
FUNCTIONS: dict[str, Unary | Activation] = {
    op.name: activation(op) if op.parameters else unary(op)
    for op in OPS.values()
    if op.tensors == 1 and op.name != "cast"
}
FUNCTIONS["silu"] = FUNCTIONS["swish"]
globals().update(FUNCTIONS)


def clip(
    x: Any,
    low: Any = None,
    high: Any = None,
    rule: str | None = None,
    axis: int | None = None,
    engine: str | None = None,
    out: Any = None,
    dtype: Any = None,
) -> Any:
    """Keeps values within limits."""
    low, high = _within_range(x, low, high)
    if (low is None) != (high is None) and tracing((x,)) is not None and is_float(x.dtype):
        # Same values as maximum or minimum, but clip's slope at the limit: theirs is shared.
        low, high = (-np.inf if low is None else low), (np.inf if high is None else high)
    if engine is not None:
        limits = _limits_of(x)
        operands = (x, limits[0] if low is None else low, limits[1] if high is None else high)
        if rule is None and axis is None and not any(map(np.ndim, operands[1:])):
            return _under(OPS["clip"], operands, engine, out, dtype)
        return _run(OPS["clip"], operands, rule, axis, engine, out, dtype, None)
    if low is not None and high is not None:
        return _run(OPS["clip"], (x, low, high), rule, axis, None, out, dtype, None)
    # NumPy's clip also calls another function where a limit is left out.
    if low is not None:
        return _run(OPS["maximum"], (x, low), rule, axis, None, out, dtype, None)
    if high is not None:
        return _run(OPS["minimum"], (x, high), rule, axis, None, out, dtype, None)
    return _run(OPS["positive"], (x,), rule, axis, None, out, dtype, None)


def _within_range(x: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """The limits without Python integers at or outside the range of x's dtype, as in NumPy."""
    dtype = dispatch().dtype_of(x) if is_foreign(x) else getattr(x, "dtype", None)
    if not isinstance(dtype, np.dtype) or dtype.kind not in "iu":
        return low, high
    smallest, largest = _limits_of(x)
    if type(low) is int and low <= smallest:
        low = None
    return low, None if type(high) is int and high >= largest else high


def _limits_of(x: Any) -> tuple[Any, Any]:
    """The least and greatest values of x's dtype."""
    if is_foreign(x):
        dtype = dispatch().dtype_of(x)
    else:
        dtype = x.dtype if tracing((x,)) is not None else np.asarray(as_operand(x)).dtype
    if dtype.kind not in "iu":
        return -np.inf, np.inf
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def cast(x: Any, dtype: Any, *, out: Any = None) -> Any:
    """Converts the dtype."""
    to = dtype if is_foreign(x) else as_dtype(dtype)
    return _run(OPS["cast"], (x,), None, None, None, out, to, None)


clip.__doc__ = describe(OPS["clip"], "x, low, high").replace(
    "Returns:", "A limit that is None is none; without both the result is a copy.\n\nReturns:", 1
)
cast.__doc__ = _DOC_CAST.format(
    summary=OPS["cast"].summary, names=names_of(OPS["cast"]), result=OPS["cast"].example[1]
)
# A limit that is left out is none, which Python computes.
clip = bind(OPS["clip"], clip, parameters={"low": None, "high": None})
