"""The op table in the functions of an array API namespace, for arrays that the engine cannot read.

A namespace is defined by the array API standard. Ops are its own by name, or composed of its
functions. Where the standard leaves values open, a composition gives NumPy's: integers divided by
zero give 0, shifts beyond the width shift all bits out, NaN propagates as in NumPy.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from ..fusion.trace.graph import Axes, places_of
from ..ops import OPS, ops_with
from .library import ByRow, Reduction, formulas, order_of, saturated

Composition = Callable[..., Any]

#: Ops that have a formula, and that the standard has with NumPy's values.
_IN_STANDARD = frozenset({"sign", "square"})
#: Ops that the standard defines for truth values; others compute truth values as uint8.
_OF_BOOLS = ops_with("logical") | frozenset(
    {"where", "equal", "not_equal", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_invert"}
)
#: Functions of the namespace that a composition needs and the standard lacks.
_NEEDS: Mapping[str, tuple[str, ...]] = MappingProxyType({"gelu": ("erf",)})


class _Functions:
    """A namespace with the names that the formulas use, and with ops that no namespace has."""

    def __init__(self, xp: Any, own: Mapping[str, Composition]) -> None:
        self._xp, self._own = xp, own

    def __getattr__(self, name: str) -> Composition:
        function: Composition = self._own[name] if name in self._own else getattr(self._xp, name)
        return function

    # Functions that formulas need.

    def cast_like(self, x: Any, like: Any) -> Any:
        return self._xp.astype(x, like.dtype)

    def is_real_float(self, x: Any) -> bool:
        return bool(self._xp.isdtype(x.dtype, "real floating"))

    def is_signed(self, x: Any) -> bool:
        return bool(self._xp.isdtype(x.dtype, "signed integer"))

    def bits(self, x: Any) -> int:
        return int(self._xp.iinfo(x.dtype).bits)

    def left_shift(self, a: Any, b: Any) -> Any:
        return self.bitwise_left_shift(a, b)

    def right_shift(self, a: Any, b: Any) -> Any:
        return self.bitwise_right_shift(a, b)

    def fmod(self, a: Any, b: Any) -> Any:
        if not self._xp.isdtype(a.dtype, "integral"):
            # The remainder of the standard loses digits of large quotients.
            if hasattr(self._xp, "fmod"):
                return self._xp.fmod(a, b)
            return self.copysign(self.remainder(abs(a), abs(b)), a)
        rest = self.remainder(a, b)
        return self.where((rest != 0) & ((a < 0) != (b < 0)), rest - b, rest)

    # Ops without a formula, and ops whose formula needs functions that the standard lacks.

    def pow(self, a: Any, b: Any) -> Any:
        if self.is_signed(a) and 0 not in (*a.shape, *b.shape) and self.any(b < 0):
            raise ValueError("Integers to negative integer powers are not allowed.")
        return self._xp.pow(a, b)

    def fmax(self, a: Any, b: Any) -> Any:
        return self._without_nan(self.maximum(a, b), a, b)

    def fmin(self, a: Any, b: Any) -> Any:
        return self._without_nan(self.minimum(a, b), a, b)

    def _without_nan(self, chosen: Any, a: Any, b: Any) -> Any:
        return self.where(self.isnan(a), b, self.where(self.isnan(b), a, chosen))

    def logaddexp2(self, a: Any, b: Any) -> Any:
        most = self.maximum(a, b)
        apart = self.where(a == b, self.zeros_like(a), abs(a - b))  # 0 also for equal infinities
        return most + self.log1p(self.exp(apart * -math.log(2))) * (1 / math.log(2))

    def clip(self, x: Any, low: Any, high: Any) -> Any:
        return self.minimum(self.maximum(x, low), high)

    def sigmoid(self, x: Any) -> Any:
        small = self.exp(-abs(x))
        return self.where(x >= 0, 1 / (1 + small), small / (1 + small))

    def softplus(self, x: Any) -> Any:
        return self.log1p(self.exp(-abs(x))) + self.maximum(x, self.zeros_like(x))

    def mish(self, x: Any) -> Any:
        # tanh(log(1 + e)) is a quotient of polynomials in e; this one is also exact for small e.
        e = self.exp(-abs(x))
        positive = (1 + 2 * e) / (1 + 2 * e + 2 * e * e)
        negative = (e * e + 2 * e) / (e * e + 2 * e + 2)
        return self.where(x >= 0, x * positive, self._limited(x, x * negative))

    def gelu(self, x: Any) -> Any:
        return self._limited(x, x * (0.5 * (1 + self.erf(x * math.sqrt(0.5)))))

    def _limited(self, x: Any, product: Any) -> Any:
        """x times a factor whose limit at minus infinity is 0: -0 there, not -inf * 0."""
        return self.where(x == -math.inf, -self.zeros_like(x), product)


_OWN = ("pow", "fmax", "fmin", "logaddexp2", "clip", "sigmoid", "softplus", "mish", "gelu")


def compositions(
    xp: Any, own: Mapping[str, Composition] = MappingProxyType({})
) -> Mapping[str, Composition]:
    """The ops composed of other functions, by the names of the op table.

    Args:
        xp: an array API namespace.
        own: functions of the library for ops that the namespace lacks, or computes differently.
    """
    standard = _Functions(xp, own)
    composed = {name: f for name, f in formulas(standard).items() if name not in _IN_STANDARD}
    return {**composed, **{name: getattr(standard, name) for name in _OWN}, **own}


_cached_compositions = functools.lru_cache(16)(compositions)


class Standard(ByRow):
    """The functions of an array API namespace, on one device."""

    def __init__(
        self, xp: Any, name: str, device: Any, own: Mapping[str, Composition] | None = None
    ) -> None:
        """
        Args:
            xp: the namespace.
            name: the library's, for messages.
            device: where new arrays are made.
            own: functions of the library for ops that the namespace lacks, or computes differently.
        """
        self.xp, self.name, self.device, self._own = xp, name, device, own or {}

    @property
    def ops(self) -> Mapping[str, Composition]:
        """For each op that is composed of other functions, its function."""
        if self._own or not isinstance(self.xp, Hashable):
            return compositions(self.xp, self._own)
        return _cached_compositions(self.xp)

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        """For each reduction a function of an array, its axes, and keepdims."""
        total = self._total
        return {
            **{name: functools.partial(total, name) for name in ("sum", "prod")},
            **{name: functools.partial(self._chosen, name) for name in ("min", "max")},
            **{name: functools.partial(self._axiswise, name) for name in ("any", "all")},
            **{name: functools.partial(self._chosen, name) for name in ("argmin", "argmax")},
        }

    def dtype(self, name: str) -> Any:
        """The library's dtype of NumPy's name.

        Raises:
            TypeError: the library lacks it.
        """
        dtype = getattr(self.xp, name, None)
        if dtype is None:
            raise TypeError(
                f"a value is {name} by NumPy's promotion, and {self.name} has no {name} here; "
                "convert the operands, or ask for another dtype"
            )
        return dtype

    def number(self, value: Any) -> Any:
        """An array without axes."""
        return self.xp.asarray(value.item(), dtype=self.dtype(value.dtype.name), device=self.device)

    def cast(self, array: Any, dtype: str) -> Any:
        """As :func:`zerostride.cast`."""
        xp, wanted = self.xp, self.dtype(dtype)
        if array.dtype == wanted:
            return array
        if dtype == "bool":  # the standard does not cast complex numbers to bool
            return array != 0
        if np.dtype(dtype).kind not in "iu" or not xp.isdtype(array.dtype, "real floating"):
            return xp.astype(array, wanted)
        if xp.finfo(array.dtype).bits < 32:
            array = xp.astype(array, xp.float32)
        return saturated(xp, array, dtype, lambda x: xp.astype(xp.trunc(x), wanted))

    def laid(self, array: Any, axes: Axes, shape: tuple[int, ...]) -> Any:
        """An array broadcast to a shape, stretched by views where the library has views."""
        if axes == (*range(len(shape) - len(axes), len(shape)),):
            return array if tuple(array.shape) == shape else self.xp.broadcast_to(array, shape)
        places = places_of(axes, len(shape))
        sizes = tuple(1 if axis is None else int(array.shape[axis]) for axis in places)
        array = self.turned(array, places, sizes)
        return array if sizes == shape else self.xp.broadcast_to(array, shape)

    def turned(self, array: Any, axes: Axes, shape: tuple[int, ...]) -> Any:
        """An array with its axes in another order."""
        order = order_of(axes, array.shape)
        if order != (*range(len(order)),):
            array = self.xp.permute_dims(array, order)
        return array if tuple(array.shape) == shape else self.xp.reshape(array, shape)

    def apply(self, op: str, values: Sequence[Any], dtypes: Sequence[str]) -> Any:
        """An op of the table, by the namespace or composed of its functions.

        Raises:
            TypeError: the namespace lacks the op, or has none for these dtypes.
        """
        values = [self._taken(op, value) for value in values]
        try:
            return super().apply(op, values, dtypes)
        except TypeError as error:
            of = " and ".join(dict.fromkeys(dtypes[:-1]))
            raise TypeError(f"{self.name} has no {op} of {of} of its own: {error}") from error

    def _taken(self, op: str, value: Any) -> Any:
        if "logical" in OPS[op].facts:
            return self.cast(value, "bool")
        if value.dtype == self.xp.bool and op not in _OF_BOOLS:
            return self.xp.astype(value, self.xp.uint8)
        return value

    def _row(self, table: Mapping[str, Composition], name: str) -> Composition:
        for needed in (*_NEEDS.get(name, ()), name):
            if needed not in table and not hasattr(self.xp, needed):
                raise TypeError(
                    f"{self.name}'s namespace has no {needed}; move the arrays to this processor's "
                    "memory"
                )
        function: Composition = table[name] if name in table else getattr(self.xp, name)
        return function

    # Reductions

    def _total(self, name: str, x: Any, over: tuple[int, ...], keepdims: bool) -> Any:
        return getattr(self.xp, name)(x, axis=over, keepdims=keepdims, dtype=x.dtype)

    def _axiswise(self, name: str, x: Any, over: tuple[int, ...], keepdims: bool) -> Any:
        return getattr(self.xp, name)(x, axis=over, keepdims=keepdims)

    def _chosen(self, name: str, x: Any, over: tuple[int, ...], keepdims: bool) -> Any:
        """Minima and maxima, and their positions."""
        if self.xp.isdtype(x.dtype, "complex floating"):
            raise TypeError(f"{self.name} has no {name} of {x.dtype}: they have no order there")
        if x.dtype == self.xp.bool:
            x = self.xp.astype(x, self.xp.uint8)
        if not name.startswith("arg"):
            return self._axiswise(name, x, over, keepdims)
        kept = tuple(k for k in range(x.ndim) if k not in over)
        rows = tuple(x.shape[k] for k in kept)
        if 0 in rows:
            places = self.xp.zeros(rows, dtype=self.dtype("int64"), device=self.device)
        else:
            flat = self.xp.reshape(self.xp.permute_dims(x, (*kept, *over)), (*rows, -1))
            places = getattr(self.xp, name)(flat, axis=-1)
        shape = tuple(1 if k in over else n for k, n in enumerate(x.shape))
        return self.xp.reshape(places, shape) if keepdims else places
