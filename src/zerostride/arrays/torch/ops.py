"""The op table in PyTorch's own functions, for tensors that the native engine cannot read."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from ...fusion.trace.graph import Axes, places_of
from ...ops import ops_with
from ..library import ByRow, Reduction, Renamed, formulas, in_rows, named, order_of, saturated
from .data import as_torch

#: Integers that PyTorch has few functions for: computed in another dtype, and wrapped around.
_WIDER = {torch.uint16: torch.int32, torch.uint32: torch.int64, torch.uint64: torch.int64}
#: Ops and reductions that give the same bits in int64 as in uint64, and those that do once the
#: order is the same.
_MODULAR = ops_with("modular") | {"sum", "prod", "any", "all"}
_ORDERED = ops_with("ordered") | {"min", "max", "argmin", "argmax"}
_LEAST = -(2**63)
#: Ops whose kernels on a GPU take a number faster than a stretched tensor, with the same values. A
#: quotient by a number is a product with its inverse there, and not rounded as a quotient.
_WITH_A_NUMBER = ops_with("comparison") | {"add", "subtract", "multiply", "maximum", "minimum"}


class _Namespace(Renamed):
    """Functions of the formulas that PyTorch names differently."""

    def cast_like(self, x: Tensor, like: Tensor) -> Tensor:
        return x.to(like.dtype)

    def is_real_float(self, x: Tensor) -> bool:
        return bool(x.is_floating_point())

    def is_signed(self, x: Tensor) -> bool:
        return bool(x.dtype.is_signed)

    def floor_divide(self, a: Tensor, b: Tensor) -> Tensor:
        return torch.div(a, b, rounding_mode="floor")

    def left_shift(self, a: Tensor, b: Tensor) -> Tensor:
        return torch.bitwise_left_shift(a, b)

    def right_shift(self, a: Tensor, b: Tensor) -> Tensor:
        return torch.bitwise_right_shift(a, b)

    def erfc(self, x: Tensor) -> Tensor:
        result: Tensor = torch.special.erfc(x)
        return result

    def sign(self, x: Tensor) -> Tensor:
        return torch.sgn(x)


def _of_floats(name: str) -> Callable[[Tensor], Tensor]:
    """A rounding function; complex numbers are rounded by parts, integers are unchanged."""
    function = getattr(torch, name)

    def rounded(x: Tensor) -> Tensor:
        if x.is_complex():  # each part, as NumPy
            return torch.view_as_complex(function(torch.view_as_real(x.resolve_conj())))
        result: Tensor = function(x) if x.is_floating_point() else x.clone()
        return result

    return rounded


def _of_numbers(name: str, otherwise: str) -> Callable[[Tensor, Tensor], Tensor]:
    of_floats, of_others = getattr(torch, name), getattr(torch, otherwise)

    def chosen(a: Tensor, b: Tensor) -> Tensor:
        result: Tensor = of_floats(a, b) if a.is_floating_point() else of_others(a, b)
        return result

    return chosen


def _widened(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The function with unsigned integers computed in signed ones; PyTorch lacks most of them."""

    def called(*args: Any) -> Tensor:
        dtype = next((x.dtype for x in args if isinstance(x, Tensor) and x.dtype in _WIDER), None)
        if dtype is None or (dtype == torch.uint64 and name not in _MODULAR | _ORDERED):
            result: Tensor = function(*args)
            return result
        turned = dtype == torch.uint64 and name in _ORDERED
        wide = _WIDER[dtype]
        result = function(*(_signed(x, wide, turned) for x in args))
        if result.dtype != wide or name.startswith("arg"):
            return result
        return (result ^ _LEAST if turned else result).to(dtype)

    return called


def _signed(x: Any, wide: torch.dtype, turned: bool) -> Any:
    """An unsigned integer as a signed one, with the same low bits, or in the same order."""
    if not isinstance(x, Tensor) or x.dtype not in _WIDER:
        return x
    return x.to(wide) ^ _LEAST if turned else x.to(wide)


def _absolute(x: Tensor) -> Tensor:
    return x.clone() if x.dtype == torch.bool else torch.abs(x)


@functools.cache
def _ops() -> Mapping[str, Callable[..., Tensor]]:
    by_name: dict[str, Callable[..., Any]] = {
        **named(torch, "torch"),
        **{name: _of_floats(name) for name in ("floor", "ceil", "round", "trunc")},
        **formulas(_Namespace(torch)),
        "fmax": _of_numbers("fmax", "maximum"),
        "fmin": _of_numbers("fmin", "minimum"),
        "abs": _absolute,
        "positive": torch.clone,
    }
    return {name: _widened(function, name) for name, function in by_name.items()}


def _prod(x: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
    for axis in sorted(axes, reverse=True):
        x = torch.prod(x, axis, keepdim=keep)
    return x


def _place(name: str) -> Reduction:
    """The position of the first minimum or maximum, in C order over all the axes."""
    function = getattr(torch, name)

    def position(x: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
        if x.dtype == torch.bool:
            x = x.to(torch.uint8)
        rows, kept = in_rows(torch.permute, x, axes)
        result: Tensor = function(rows, -1)
        return result.reshape(kept) if keep else result

    return position


def _truth(name: str) -> Reduction:
    function = getattr(torch, name)
    return lambda x, axes, keep: function(x, axes, keepdim=keep)


_REDUCTIONS: Mapping[str, Reduction] = {
    name: _widened(function, name)
    for name, function in {
        "sum": lambda x, axes, keep: torch.sum(x, axes, keepdim=keep, dtype=x.dtype),
        "prod": _prod,
        "min": _truth("amin"),
        "max": _truth("amax"),
        "any": _truth("any"),
        "all": _truth("all"),
        "argmin": _place("argmin"),
        "argmax": _place("argmax"),
    }.items()
}


class Torch(ByRow):
    """PyTorch as the library of an evaluation; numbers are created on one device."""

    def __init__(self, device: Any) -> None:
        self._device = device

    @property
    def ops(self) -> Mapping[str, Callable[..., Tensor]]:
        """For each op of the table but "cast", a function of tensors of one dtype."""
        return _ops()

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        """For each reduction a function of a tensor, its axes, and keepdims."""
        return _REDUCTIONS

    def number(self, value: Any) -> Tensor:
        """A tensor without axes."""
        dtype = as_torch(value.dtype)
        return torch.full((), value.item(), dtype=dtype, device=self._device)

    def beside(self, op: str, value: Any, shape: tuple[int, ...]) -> Any:
        """A tensor of the shape, or on a GPU one without axes that the op's kernel takes so."""
        if self._device.type == "cuda" and op in _WITH_A_NUMBER:
            return torch.tensor(value.item(), dtype=as_torch(value.dtype))
        return super().beside(op, value, shape)

    def cast(self, array: Tensor, dtype: str) -> Tensor:
        """As :func:`zerostride.cast`."""
        target = as_torch(dtype)
        if array.dtype == target:
            return array
        if target == torch.bool:
            return array != 0
        if not array.is_floating_point() or target.is_floating_point or target.is_complex:
            return array.to(target)
        wide, name = array.to(torch.float64), str(target).removeprefix("torch.")
        return saturated(torch, wide, name, lambda x: x.to(target))

    def laid(self, array: Tensor, axes: Axes, shape: tuple[int, ...]) -> Tensor:
        """A view with stride 0 where it stretches."""
        if axes != (*range(len(shape) - len(axes), len(shape)),):
            places = places_of(axes, len(shape))
            array = array.reshape([1 if axis is None else array.shape[axis] for axis in places])
        return array if tuple(array.shape) == shape else array.expand(shape)

    def turned(self, array: Tensor, axes: Axes, shape: tuple[int, ...]) -> Tensor:
        """A view with the axes in another order."""
        return array.permute(order_of(axes, array.shape)).reshape(shape)
