"""Conversions between JAX's arrays in this processor's memory and NumPy's, without a copy."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from .ops import canonical

#: XLA uses NumPy's memory if its address is a multiple of this; otherwise it copies.
_ALIGNMENT = 64
#: A Python number for each kind of array.
NUMBERS: Mapping[str, Any] = {"i": 1, "u": 1, "f": 1.0, "V": 1.0, "c": 1j}
#: Dtypes that JAX narrows without `jax_enable_x64`.
_NARROWED = frozenset(map(np.dtype, ("int64", "uint64", "float64", "complex128")))


def is_here(value: Any) -> bool:
    """Whether the engine may read an operand now: it is wholly in this processor's memory."""
    if isinstance(value, jax.core.Tracer):
        return False
    if not isinstance(value, jax.Array):
        return True
    numeric(value.dtype)
    devices = value.devices()
    return len(devices) == 1 and next(iter(devices)).platform == "cpu"


def all_here(values: Sequence[Any]) -> bool:
    """Whether the engine may read all operands now."""
    return all(map(is_here, values))


@functools.lru_cache(64)
def numeric(dtype: Any) -> np.dtype[Any]:
    """NumPy's dtype; refused where an array holds keys of random numbers."""
    if not isinstance(dtype, np.dtype):
        raise TypeError(f"an array of {dtype} holds no numbers")
    return np.dtype(dtype)


def is_weak(value: Any) -> bool:
    """Whether a value is a number that takes the other operands' dtype in JAX."""
    return (
        isinstance(value, jax.Array)
        and value.ndim == 0
        and value.weak_type
        and value.dtype.kind in NUMBERS
    )


def settled(value: Any) -> Any:
    """A weakly typed JAX number as a Python number, if its value is known."""
    if is_weak(value) and not isinstance(value, jax.core.Tracer):
        return value.item()
    return value


def lowered(values: Sequence[Any]) -> list[Any] | None:
    """Operands for the engine; None if one is traced, or on another device."""
    arrays = []
    for value in values:
        if isinstance(value, jax.Array):
            if not is_here(value):
                return None
            array = np.asarray(value)
            value = value.item() if not array.ndim and is_weak(value) else array
        arrays.append(value)
    return arrays


def aligned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """A new array whose memory JAX can use without a copy."""
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(shape)


def raised(result: Any, like: Any) -> Any:
    """A result as JAX's array, in its dtype, on the device of `like`; no other code writes it."""
    array = np.asarray(result)
    if array.dtype in _NARROWED:
        target = canonical(array.dtype)
        if array.dtype != target:
            with np.errstate(all="ignore"):
                array = array.astype(target)
    placed = _put_beside(array, like)
    if placed is not None:
        return placed
    jax_array = jnp.asarray(array)
    device = None if like is None else _device(like)
    return jax_array if device is None else jax.device_put(jax_array, device)


def _put_beside(array: NDArray[Any], like: Any) -> Any:
    """An array on the device of `like`, by the function that `jax.device_put` finally calls.

    The steps before it take several times as long. None where they are needed: a default device was
    set, arrays are sharded, JAX is another release.
    """
    put = _put()
    if put is None or like is None or isinstance(like, jax.core.Tracer):
        return None
    sharding, committed = like.sharding, like.committed
    if type(sharding) is not jax.sharding.SingleDeviceSharding:
        return None
    (device,) = like.devices()
    if not committed and (jax.config.jax_default_device or device != jax.local_devices()[0]):
        return None
    aval = like.aval
    if aval.weak_type or aval.dtype != array.dtype or aval.shape != array.shape:
        aval = jax.core.ShapedArray(array.shape, array.dtype)
    return put(aval, sharding, [array], [device], committed)


@functools.cache
def _put() -> Callable[..., Any] | None:
    """JAX's internal `batched_device_put`; None where it does not behave as expected."""
    try:
        from jax._src.lib import xla_client

        put: Callable[..., Any] = xla_client.batched_device_put
        sample, device = np.arange(2, dtype=np.float32), jax.local_devices()[0]
        sharding = jax.sharding.SingleDeviceSharding(device)
        moved = put(jax.core.ShapedArray((2,), sample.dtype), sharding, [sample], [device], False)
        as_wanted = (
            isinstance(moved, jax.Array) and not moved.committed and moved.dtype == sample.dtype
        )
        return put if as_wanted and np.array_equal(np.asarray(moved), sample) else None
    except (ImportError, AttributeError, TypeError, ValueError, RuntimeError):
        return None


def _device(like: Any) -> Any:
    """The device for results; None for JAX's default device."""
    if not isinstance(like, jax.Array) or isinstance(like, jax.core.Tracer) or not like.committed:
        return None
    (device,) = like.devices()
    return None if device == jax.local_devices()[0] else device
