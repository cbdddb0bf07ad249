"""The op table in JAX's own functions, for jit, grad and vmap."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...fusion.trace.graph import Axes
from ..library import ByRow, Reduction, Renamed, formulas, in_rows, named, order_of, saturated

Array = Any


class _Namespace(Renamed):
    """Functions of the formulas that JAX names differently."""

    def cast_like(self, x: Array, like: Array) -> Array:
        return x.astype(like.dtype)

    def is_real_float(self, x: Array) -> bool:
        return bool(jnp.issubdtype(x.dtype, jnp.floating))

    def is_signed(self, x: Array) -> bool:
        return bool(jnp.issubdtype(x.dtype, jnp.signedinteger))

    def erfc(self, x: Array) -> Array:
        return jax.scipy.special.erfc(x)

    def sigmoid(self, x: Array) -> Array:
        return jax.nn.sigmoid(x)

    def floor_divide(self, a: Array, b: Array) -> Array:
        if not self.is_real_float(a):
            return jnp.floor_divide(a, b)
        # JAX gives NaN for a division by 0.
        zero = b == 0
        whole = jnp.floor_divide(a, jnp.where(zero, jnp.ones_like(b), b))
        return jnp.where(zero, lax.stop_gradient(a / b), whole)


def _power(a: Array, b: Array) -> Array:
    if jnp.issubdtype(a.dtype, jnp.inexact):
        return jnp.power(a, b)
    return _whole_power(a, b)


def _whole_power(a: Array, b: Array) -> Array:
    """Integer powers by repeated squaring, wrapping around; JAX's reads six bits of the exponent.

    A negative exponent cannot be refused while values are traced. It gives 0, except for the bases
    1 and -1.
    """

    def step(k: Any, held: tuple[Array, Array]) -> tuple[Array, Array]:
        result, square = held
        odd = (b >> k.astype(b.dtype)) & 1 == 1
        return jnp.where(odd, result * square, result), square * square

    bits = 8 * a.dtype.itemsize
    start = (jnp.ones_like(a + b), a + jnp.zeros_like(b))
    result, _ = lax.fori_loop(0, bits, step, start)
    if not jnp.issubdtype(a.dtype, jnp.signedinteger):
        return result
    unit_power = jnp.where(b % 2 == 1, a, a * a)
    return jnp.where(b >= 0, result, jnp.where(abs(a) == 1, unit_power, jnp.zeros_like(a)))


def _of_floats(name: str) -> Callable[[Array], Array]:
    """A rounding function; complex numbers are rounded by parts, integers are unchanged."""
    function = getattr(jnp, name)
    return lambda x: function(x) if jnp.issubdtype(x.dtype, jnp.inexact) else x


def _clip(x: Array, low: Array, high: Array) -> Array:
    return jnp.minimum(jnp.maximum(x, low), high)


@functools.cache
def _ops() -> Mapping[str, Callable[..., Array]]:
    return {
        **named(jnp, "jax"),
        **{name: _of_floats(name) for name in ("floor", "ceil", "round", "trunc")},
        **formulas(_Namespace(jnp)),
        "abs": lambda x: x if x.dtype == bool else jnp.abs(x),
        "clip": _clip,
        "erf": jax.scipy.special.erf,
        "pow": _power,
        "sigmoid": jax.nn.sigmoid,
    }


def _axiswise(name: str, **more: Any) -> Reduction:
    function = getattr(jnp, name)

    def reduced(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
        return function(x, axis=axes, keepdims=keep, **more)

    return reduced


def _total(name: str) -> Reduction:
    function = getattr(jnp, name)
    return lambda x, axes, keep: function(x, axis=axes, keepdims=keep, dtype=x.dtype)


def _place(name: str) -> Reduction:
    """The position of the first minimum or maximum, in C order over all the axes."""
    function = getattr(jnp, name)

    extreme = getattr(jnp, name.removeprefix("arg"))

    def position(x: Array, axes: tuple[int, ...], keep: bool) -> Array:
        if jnp.iscomplexobj(x):  # ordered by the real part, then by the imaginary one
            best = extreme(x, axis=axes, keepdims=True)
            return _FIRST((x == best) | (x != x), axes, keep)
        if len(axes) == 1:
            return function(x, axis=axes[0], keepdims=keep)
        rows, kept = in_rows(jnp.transpose, x, axes)
        result = function(rows, axis=-1)
        return result.reshape(kept) if keep else result

    return position


_FIRST = _place("argmax")


_REDUCTIONS: Mapping[str, Reduction] = {
    "sum": _total("sum"),
    "prod": _total("prod"),
    "min": _axiswise("min"),
    "max": _axiswise("max"),
    "any": _axiswise("any"),
    "all": _axiswise("all"),
    "argmin": _place("argmin"),
    "argmax": _FIRST,
}


class Jax(ByRow):
    """JAX as the library of an evaluation."""

    @property
    def ops(self) -> Mapping[str, Callable[..., Array]]:
        """For each op of the table but "cast", a function of arrays of one dtype."""
        return _ops()

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        """For each reduction a function of an array, its axes, and keepdims."""
        return _REDUCTIONS

    def number(self, value: Any) -> Array:
        """An array without axes."""
        return jnp.asarray(value, canonical(value.dtype))

    def cast(self, array: Array, dtype: str) -> Array:
        """As :func:`zerostride.cast`, in JAX's dtype."""
        target = canonical(np.dtype(dtype))
        source = canonical(array.dtype)
        if source == target:
            # Makes a weak dtype strong.
            return lax.convert_element_type(array, target)
        if target == np.bool_:
            return array != 0
        if target.kind not in "iu" or not jnp.issubdtype(source, jnp.floating):
            return lax.convert_element_type(array, target)
        wide = array if array.dtype.itemsize > 2 else array.astype(jnp.float32)
        return saturated(jnp, wide, target.name, lambda x: x.astype(target))

    def laid(self, array: Array, axes: Axes, shape: tuple[int, ...]) -> Array:
        """By `lax.broadcast_in_dim`, which moves nothing; dropped axes go first."""
        dropped = tuple(axis for axis, to in enumerate(axes) if to is None)
        if dropped:
            array = lax.squeeze(array, dropped)
        places = tuple(to for to in axes if to is not None)
        if array.shape == shape and places == (*range(len(shape)),):
            return array
        return lax.broadcast_in_dim(array, shape, places)

    def turned(self, array: Array, axes: Axes, shape: tuple[int, ...]) -> Array:
        """An array with its axes in another order."""
        order = order_of(axes, array.shape)
        if order != (*range(len(order)),):
            array = lax.transpose(array, order)
        return array if array.shape == shape else lax.reshape(array, shape)


def canonical(dtype: Any) -> np.dtype[Any]:
    """JAX's dtype for NumPy's: without `jax_enable_x64` JAX has no 64-bit dtypes."""
    jax_dtype: np.dtype[Any] = np.dtype(jax.dtypes.canonicalize_dtype(np.dtype(dtype)))
    return jax_dtype
