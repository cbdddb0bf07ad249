"""Methods of arrays that values have: views, conversions, reductions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ...compute.special import is_added_float
from .source import no_out, refuse
from .views import indexed, one_axis, ordered, reshaped, squeezed

if TYPE_CHECKING:
    from .tracer import Tracer
    from .value import Value

_OUTSIDE = "do that outside of the fused function, on its operands or its results"
_INSTEAD = "leave it out"
_NOTHING: Mapping[str, Any] = MappingProxyType({})
#: Replacements for options that reductions lack in a fused function.
_WITHOUT = {
    "where": "choose before: zs.sum(zs.where(condition, x, 0), axis)",
    "initial": "combine it with the result: zs.sum(x, axis) + initial",
    "mean": "leave it out: equal means are computed once",
    "dim": "write axis=, and keepdims= where they stay",
    "keepdim": "write keepdims=",
}


# Reductions, with the parameters of NumPy's methods.


def _typed(name: str) -> Callable[..., Value]:
    def method(
        self: Methods,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        keepdims: bool = False,
        **more: Any,
    ) -> Value:
        return self.reduced(name, out, more, axis=axis, keepdims=keepdims, dtype=dtype)

    return method


def _spread(name: str) -> Callable[..., Value]:
    def method(
        self: Methods,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        correction: float | None = None,
        **more: Any,
    ) -> Value:
        ddof = ddof if correction is None else correction
        return self.reduced(name, out, more, axis=axis, keepdims=keepdims, dtype=dtype, ddof=ddof)

    return method


def _chosen(name: str) -> Callable[..., Value]:
    def method(
        self: Methods, axis: Any = None, out: Any = None, keepdims: bool = False, **more: Any
    ) -> Value:
        return self.reduced(name, out, more, axis=axis, keepdims=keepdims)

    return method


def _place(name: str) -> Callable[..., Value]:
    def method(
        self: Methods, axis: Any = None, out: Any = None, *, keepdims: bool = False
    ) -> Value:
        return self.reduced(name, out, axis=axis, keepdims=keepdims)

    return method


class Methods:
    """The methods that a value shares with arrays."""

    __slots__ = ()
    if TYPE_CHECKING:
        tracer: Tracer
        node: int

        @property
        def shape(self) -> tuple[int, ...]:
            """The value's shape."""
            ...

        @property
        def dtype(self) -> np.dtype[Any]:
            """The value's dtype."""
            ...

        @property
        def ndim(self) -> int:
            """The number of axes."""
            ...

        def again(self, view: bool = False) -> Value:
            """The same elements as another array."""
            ...

    def __getitem__(self, key: Any) -> Value:
        return self._viewed(indexed(self.shape, key))

    def _viewed(self, axes: tuple[int | None, ...]) -> Value:
        own = cast("Value", self)
        own.shared = True
        return own.tracer.view(own, axes)

    @property
    def T(self) -> Value:  # noqa: N802 - an array's name for it
        """The axes in reverse order."""
        return self.transpose()

    @property
    def mT(self) -> Value:  # noqa: N802 - an array's name for it
        """The last two axes exchanged."""
        if self.ndim < 2:
            raise ValueError("matrix transpose with ndim < 2 is undefined")
        return self.swapaxes(-1, -2)

    def transpose(self, *axes: Any) -> Value:
        """The axes in another order; without an argument reversed."""
        order = axes[0] if len(axes) == 1 and not hasattr(axes[0], "__index__") else axes
        return self._viewed(ordered(self.ndim, order or None))

    def swapaxes(self, axis1: int, axis2: int) -> Value:
        """Two axes exchanged."""
        order: list[int | None] = [*range(self.ndim)]
        first, second = one_axis(axis1, self.ndim), one_axis(axis2, self.ndim)
        order[first], order[second] = second, first
        return self._viewed(tuple(order))

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> Value:
        """Another shape that differs by axes of extent 1."""
        sizes = shape[0] if len(shape) == 1 and not hasattr(shape[0], "__index__") else shape
        return self._viewed(reshaped(self.shape, sizes))

    def squeeze(self, axis: Any = None) -> Value:
        """Without axes of extent 1: all, or those named."""
        return self._viewed(squeezed(self.shape, axis))

    def ravel(self, order: str = "C") -> Value:
        """The elements along one axis; allowed if at most one axis has several."""
        return self.reshape(-1)

    flatten = ravel

    # Methods of arrays

    @property
    def real(self) -> Value:
        """The real part: the value itself."""
        if self.dtype.kind == "c":
            refuse("the real part of complex numbers cannot be fused", _OUTSIDE)
        return self.again(view=True)

    @property
    def imag(self) -> Value:
        """The imaginary part, 0 for real numbers."""
        if self.dtype.kind == "c":
            refuse("the imaginary part of complex numbers cannot be fused", _OUTSIDE)
        zero = self.tracer.cast(self.tracer.lift(0), self.dtype)
        return self.tracer.laid(zero, self.shape, ())

    def conj(self) -> Value:
        """The complex conjugate: the value itself for real numbers."""
        if self.dtype.kind == "c":
            refuse("numpy.conjugate of complex numbers cannot be fused", _OUTSIDE)
        return self.again()

    conjugate = conj

    def astype(
        self,
        dtype: Any,
        order: str = "K",
        casting: str = "unsafe",
        subok: bool = True,
        copy: bool = True,
    ) -> Value:
        """In another dtype, as by `zerostride.cast`."""
        target = np.dtype(dtype)
        if not np.can_cast(self.dtype, target, casting):  # type: ignore[arg-type]
            raise TypeError(f"cannot cast {self.dtype} to {target} (casting is {casting!r})")
        own = cast("Value", self)
        if not copy and not own.weak and target == self.dtype and target.itemsize > 2:
            return own  # as NumPy: the same array; of 16-bit floats a cast is a rounding
        return self.tracer.cast(own, target)

    def copy(self, order: str = "C") -> Value:
        """The same elements."""
        return self.again()

    def square(self) -> Value:
        """Each element times itself."""
        return self.tracer.apply("square", (self,))

    def clip(self, min: Any = None, max: Any = None, out: Any = None) -> Value:
        """The values within limits. One limit or both may be None."""
        from ...compute.unary import clip

        result: Value = clip(self, min, max, out=out)
        return result

    def round(self, decimals: int = 0, out: Any = None) -> Value:
        """The nearest whole number, ties to even."""
        no_out(out)
        places = operator.index(decimals)
        if self.dtype.kind in "iu":
            if places < 0:
                refuse("integers are rounded to tens", f"write x // {10**-places} * {10**-places}")
            return self.again()
        if not places:
            return self.tracer.apply("round", (self,))
        own, by = cast("Value", self), 10.0 ** abs(places)
        if own.tracer.own and is_added_float(self.dtype):  # which hold few powers of ten
            return own.astype(np.float32).round(places).astype(self.dtype)
        scaled = own * by if places > 0 else own / by
        whole = self.tracer.apply("round", (scaled,))
        return self.tracer.apply("divide" if places > 0 else "multiply", (whole, by))

    sum, prod, mean = _typed("sum"), _typed("prod"), _typed("mean")
    var, std = _spread("var"), _spread("std")
    max, min, any, all = _chosen("max"), _chosen("min"), _chosen("any"), _chosen("all")
    argmax, argmin = _place("argmax"), _place("argmin")

    def reduced(
        self, name: str, out: Any, more: Mapping[str, Any] = _NOTHING, **options: Any
    ) -> Value:
        """A reduction of `reducing.TRACED`; `more` holds options that it lacks."""
        from .reducing import COUNTED, TRACED

        no_out(out)
        for option, setting in more.items():
            if option != "where" or setting is not True:
                refuse(f"{name} with {option}= cannot be fused", _WITHOUT.get(option, _INSTEAD))
        own = cast("Value", self)
        if name in COUNTED and options.get("dtype") is None:
            own = self.tracer.counted(own)
        return TRACED[name](own, **options)
