"""The public reductions, of arrays and of values of a function that is being traced.

For an array they are fused functions of one operand: the engine runs them on all cores, for any
strides.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from ..compute.dtypes import as_dtype
from ..compute.foreign import dispatch, is_foreign
from ..core.alignment import number_meant
from ..errors import BroadcastError, Reason
from ..sizes import brief, whole_numbers
from .trace.reducing import TRACED
from .trace.value import Value

if TYPE_CHECKING:
    from .function import Fused


class Reduction(Protocol):
    """A public reduction."""

    def __call__(self, x: Any, axis: Any = None, keepdims: bool = False, *, out: Any = None) -> Any:
        """Computes it."""
        ...


class TypedReduction(Protocol):
    """A public reduction with a `dtype`."""

    def __call__(
        self,
        x: Any,
        axis: Any = None,
        keepdims: bool = False,
        *,
        dtype: Any = None,
        out: Any = None,
    ) -> Any:
        """Computes it."""
        ...


_DOC = """{summary}.

Args:
    x: an array, a list or a number; or a value of a fused function.
    axis: the axes to reduce: an integer or a tuple of them, negative ones from the end; None for
        all.
    keepdims: whether they stay as axes of extent 1.
{dtype}    out: an array that receives the result and is returned; it may overlap `x`.

Returns:
    An array of the axes that are left; a NumPy scalar if there are none.
    {result}

Raises:
    BroadcastError: an axis that `x` lacks, or the same one twice; `out` has another shape.
    TypeError: `x` has no numbers, or the result does not fit `out`.
    ValueError: {raises}elements of `out` share memory.

The result does not depend on how many threads compute it.

Source: {source}.

>>> import zerostride as zs
>>> zs.{name}({args}).tolist()
{shown}
"""
_DTYPE = "    dtype: what to compute in, and the result's.\n"
_EMPTY = "there are no elements to choose from; "
_SAME = "Its dtype is x's."


def _describe(
    function: Callable[..., Any],
    name: str,
    summary: str,
    result: str,
    args: str,
    shown: str,
    source: str | None = None,
) -> None:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = _DOC.format(
        name=name,
        summary=summary,
        dtype=_DTYPE if name in _TYPED else "",
        result=result,
        raises=_EMPTY if name[-3:] in ("min", "max") else "",
        source=source or f"numpy.{name}",
        args=args,
        shown=shown,
    )


_TYPED = frozenset({"sum", "prod", "mean", "sum_of_squares", "logsumexp"})


@functools.lru_cache(256, typed=True)
def _fused(name: str, **options: Any) -> Fused:
    """A reduction as a fused function of one operand, whose calls the engine can learn."""
    from .function import Fused

    def reduced(x: Value) -> Value:
        return TRACED[name](x, **options)

    reduced.__name__ = reduced.__qualname__ = name
    return Fused(reduced)


def _either(name: str, x: Any, axis: Any, keepdims: bool, out: Any, **options: Any) -> Any:
    """A node of the graph for a traced value, otherwise a call."""
    if is_foreign(x):  # its axes may have names
        all_options = {**options, "axis": axis, "keepdims": bool(keepdims), "out": out}
        return dispatch().reduction(name, x, all_options)
    if x is None:  # a fused function takes it as a setting
        raise TypeError(f"{name} takes an array, a list or a number, not None")
    options |= {"axis": as_axes(axis), "keepdims": bool(keepdims)}
    if isinstance(x, Value):
        return x.reduced(name, out, **options)
    return _fused(name, **options)(x) if out is None else _fused(name, **options)(x, out=out)


def _dtype(x: Any, dtype: Any) -> Any:
    """NumPy's dtype; a foreign array's adapter converts it."""
    return dtype if dtype is None or is_foreign(x) else as_dtype(dtype)


def as_axes(axis: Any) -> int | tuple[int, ...] | None:
    """The axes of a reduction as whole numbers; raises BroadcastError for anything else."""
    if axis is None or type(axis) is int:
        return axis
    several = isinstance(axis, tuple | list)
    places = whole_numbers(axis if several else (axis,))
    if places is None:
        raise BroadcastError(
            f"axis is a whole number or several of them, not {brief(axis)}",
            reason=Reason.ATTRIBUTE,
            hint=_axis_hint(axis),
        )
    return places if several else places[0]


def _axis_hint(axis: Any) -> str:
    """The axis that text or a float stands for, as a number; else how to write one."""
    number = number_meant(axis)
    if number is None:
        return "write axis=0, axis=(0, 1), or axis=None for all"
    return f"write axis={number}"


def _reduction(name: str, *words: str) -> Reduction:
    def function(x: Any, axis: Any = None, keepdims: bool = False, *, out: Any = None) -> Any:
        return _either(name, x, axis, keepdims, out)

    _describe(function, name, *words)
    return function


def _typed_reduction(name: str, *words: str) -> TypedReduction:
    def function(
        x: Any,
        axis: Any = None,
        keepdims: bool = False,
        *,
        dtype: Any = None,
        out: Any = None,
    ) -> Any:
        return _either(name, x, axis, keepdims, out, dtype=_dtype(x, dtype))

    _describe(function, name, *words)
    return function


_PAIRS = "[[1, 2], [3, 5]], axis=1"
_WIDENS = "Integers and truth values give 64 bits, as NumPy's; other dtypes stay."
_REAL = (
    "Integers and truth values give float64, other dtypes stay;\n"
    "    16-bit floats are computed in float32."
)

sum = _typed_reduction("sum", "The sum of the elements along axes", _WIDENS, _PAIRS, "[3, 8]")
prod = _typed_reduction(
    "prod", "The product of the elements along axes", _WIDENS, _PAIRS, "[2, 15]"
)
mean = _typed_reduction("mean", "The mean of the elements along axes", _REAL, _PAIRS, "[1.5, 4.0]")
min = _reduction(
    "min", "The least element along axes; NaN if there is one", _SAME, _PAIRS, "[1, 3]"
)
max = _reduction(
    "max", "The greatest element along axes; NaN if there is one", _SAME, _PAIRS, "[2, 5]"
)
any = _reduction(
    "any",
    "Whether any element along axes is true",
    "Truth values.",
    "[[0, 0], [0, 2]], axis=1",
    "[False, True]",
)
all = _reduction(
    "all",
    "Whether all elements along axes are true",
    "Truth values.",
    "[[1, 0], [1, 2]], axis=1",
    "[False, True]",
)
argmin = _reduction(
    "argmin",
    "Where the first of the least elements along axes is, counted in C order; the first NaN",
    "An int64.",
    _PAIRS,
    "[0, 0]",
)
argmax = _reduction(
    "argmax",
    "Where the first of the greatest elements along axes is, counted in C order; the first NaN",
    "An int64.",
    _PAIRS,
    "[1, 1]",
)
sum_of_squares = _typed_reduction(
    "sum_of_squares",
    "The sum of the squares of the elements along axes",
    _WIDENS,
    _PAIRS,
    "[5, 34]",
    "ONNX, ReduceSumSquare",
)
logsumexp = _typed_reduction(
    "logsumexp",
    "The logarithm of the sum of exponentials along axes, without overflow",
    _REAL,
    "[[1000.0, 1000.0], [0.0, 0.0]], axis=1",
    "[1000.6931471805599, 0.6931471805599453]",
    "ONNX, ReduceLogSumExp",
)
