"""JAX's arrays: read where they lie, or, while JAX traces them, lowered to its own functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ..compute.reference import as_operand
from ..compute.semantics import WEAK
from ..errors import BroadcastError, Reason
from ..fuse.run import run_into
from ..ops import Op
from ..plan import Plan
from . import programs
from .direct import call
from .generic import Generic
from .jax_ops import Jax as Library
from .jax_ops import canonical
from .model import Fusion, Options
from .replay import replay

#: XLA takes NumPy's memory as its own where it begins at a multiple of this; else it copies.
_ALIGNMENT = 64
#: Operands from which a result is made in such memory: a copy takes longer than that by then.
_LARGE = 1 << 18
_NUMBERS: Mapping[str, Any] = {"i": 1, "u": 1, "f": 1.0, "V": 1.0, "c": 1j}


class Jax(Generic):
    """The adapter of JAX."""

    # What the generic adapter asks.

    def is_here(self, array: Any) -> bool:
        """Whether the engine may read an array now."""
        return _is_here(array)

    def to_numpy(self, array: Any) -> NDArray[Any]:
        """The array of the same memory, which is not to be written to."""
        return np.asarray(array)

    def writable(self, array: Any) -> NDArray[Any]:
        """Refuses: no array of JAX's is written to."""
        _refuse_out()

    def from_numpy(self, result: NDArray[Any], like: Any) -> Any:
        """The array of an answer, in the dtype that JAX has for it, on the device of `like`."""
        return _raised(result, like)

    def dtype_of(self, array: Any) -> np.dtype[Any]:
        """NumPy's dtype of an array."""
        found: np.dtype[Any] = _numeric(array.dtype)
        return found

    def as_dtype(self, dtype: Any) -> np.dtype[Any]:
        """NumPy's dtype of what JAX, or NumPy, takes as one."""
        found: np.dtype[Any] = np.dtype(dtype)
        return found

    # The protocol.

    def elementwise(self, op: Op, operands: Sequence[Any], options: Options) -> Any:
        """An op of the table."""
        _check_out(options.out)
        dtype = None if options.dtype is None else self.as_dtype(options.dtype)
        if _all_here(operands) and (options.engine is not None or _size(operands) < _LARGE):
            arrays = [_lowered(operand) for operand in operands]
            return _raised(call(op, arrays, options, dtype), _first(operands))
        return self._computed(programs.fused_op(op, options, dtype), operands, {})

    def broadcast(self, data: Any, made: Plan, copy: bool, out: Any) -> Any:
        """`lax.broadcast_in_dim`; JAX has no views with stride 0."""
        _check_out(out)
        (view,) = self.views(made, (data,))
        return view

    def views(self, made: Plan, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """The operands laid over the plan's shape."""
        return tuple(_laid(made, k, array) for k, array in enumerate(arrays))

    def unbroadcast(self, made: Plan, grad: Any, k: int) -> Any:
        """`grad` summed to the shape of operand `k`."""
        if _is_here(grad):
            return super().unbroadcast(made, grad, k)
        if tuple(grad.shape) != made.shape or not 0 <= k < len(made.operands):
            return made.unbroadcast(programs.stand_in(tuple(grad.shape), self.dtype_of(grad)), k)
        function = programs.fused_adjoint(made.operands[k], made.stretched[k])
        return self._computed(function, (grad,), {})

    def reduction(self, name: str, x: Any, options: Mapping[str, Any]) -> Any:
        """A reduction by name."""
        _check_out(options.get("out"))
        if _is_here(x):
            return super().reduction(name, x, options)
        dtype = options.get("dtype")
        function = programs.fused_reduction(
            name,
            options.get("axis"),
            options.get("keepdims", False),
            None if dtype is None else self.as_dtype(dtype),
        )
        return self._computed(function, (x,), {})

    def fused(
        self,
        function: Fusion,
        operands: Sequence[Any],
        settings: Mapping[str, Any],
        out: Any,
        progress: Any,
    ) -> Any:
        """A call of a fused function."""
        _check_out(out)
        _check_settings(settings)
        given = (*operands, *settings.values())
        if _all_here(given) and (progress is not None or _size(given) < _LARGE):
            return super().fused(
                function,
                [_settled(one) for one in operands],
                {name: _settled(one) for name, one in settings.items()},
                out,
                progress,
            )
        if progress is not None:
            raise TypeError(
                "progress= is told of arrays whose numbers are known; leave it out here"
            )
        return self._computed(function, operands, settings)

    def vjp(
        self, function: Fusion, operands: Sequence[Any], settings: Mapping[str, Any]
    ) -> tuple[Any, Callable[..., Any]]:
        """A fused function's result, and the function of cotangents that gives gradients."""
        _check_settings(settings)
        made = self._prepared(function, operands, settings)
        if not made.program.is_real:
            raise TypeError("gradients are of real numbers; use jax.vjp for complex ones")
        values = (*made.values, *made.compiled.captured)
        like = _first(values)
        results = _run(made.program, values, like)
        wanted = tuple(k < len(operands) for k in range(len(values)))
        gradients = made.program.gradients(wanted)

        def pull(cotangents: Any) -> tuple[Any, ...]:
            leaves = made.compiled.structure.unpack(cotangents, "a cotangent")
            given = [
                _cotangent(leaf, node, k)
                for k, (leaf, node) in enumerate(zip(leaves, made.program.outputs, strict=True))
            ]
            found = []
            if gradients.program is not None:
                found = _run(gradients.program, (*values, *given), like)
            return tuple(
                _zero(operand) if place is None else found[place]
                for operand, place in zip(operands, gradients.places, strict=False)
            )

        return made.compiled.structure.pack(results), pull

    # Programs.

    def _prepared(
        self, function: Any, operands: Sequence[Any], settings: Mapping[str, Any]
    ) -> programs.Prepared:
        given = [_settled(one) for one in operands]
        more = {name: _settled(one) for name, one in settings.items()}
        return programs.prepared(function, given, more, _shown)

    def _computed(self, function: Any, operands: Sequence[Any], settings: Mapping[str, Any]) -> Any:
        """A fused function's results: by the engine if all numbers are known here, else JAX's."""
        made = self._prepared(function, operands, settings)
        values = (*made.values, *made.compiled.captured)
        results = _run(made.program, values, _first((*operands, *settings.values())))
        return made.compiled.structure.pack(results)


ADAPTER = Jax()


def _run(program: programs.Program, values: Sequence[Any], like: Any) -> list[Any]:
    """The results of a program as JAX's arrays."""
    if _all_here(values):
        arrays = [_lowered(one) for one in values]
        outs = [_aligned(node.shape, np.dtype(node.dtype)) for node in program.outputs]
        return [_raised(one, like) for one in run_into(program.ready, arrays, outs)]
    return replay(program.graph, [_traced(one) for one in values], _LIBRARY)


_LIBRARY = Library()


def _traced(value: Any) -> Any:
    """A NumPy array as JAX has it."""
    if isinstance(value, np.ndarray | np.generic):
        return jnp.asarray(value, canonical(value.dtype))
    return value


def _aligned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """A new array whose memory JAX takes as its own."""
    size = int(np.prod(shape, dtype=object)) * dtype.itemsize
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(shape)


def _raised(result: Any, like: Any) -> Any:
    array = np.asarray(result)
    target = canonical(array.dtype)
    if array.dtype != target:
        with np.errstate(all="ignore"):
            array = array.astype(target)
    device = None if like is None else _device(like)
    plain = array.dtype.kind in "iufc" and array.flags.c_contiguous and array.flags.writeable
    if plain and array.nbytes >= _LARGE and not array.ctypes.data % _ALIGNMENT and device is None:
        return jax.dlpack.from_dlpack(array)
    made = jnp.asarray(array)
    return made if device is None else jax.device_put(made, device)


def _device(like: Any) -> Any:
    """The device that answers go to; None for the one where JAX makes arrays anyhow."""
    if not isinstance(like, jax.Array) or isinstance(like, jax.core.Tracer) or not like.committed:
        return None
    (device,) = like.devices()
    return None if device == jax.local_devices()[0] else device


# What is known of operands


def _is_here(value: Any) -> bool:
    """Whether the engine may read an operand now: all of it is in this processor's memory."""
    if isinstance(value, jax.core.Tracer):
        return False
    if not isinstance(value, jax.Array):
        return True
    _numeric(value.dtype)
    devices = value.devices()
    return len(devices) == 1 and next(iter(devices)).platform == "cpu"


def _all_here(values: Sequence[Any]) -> bool:
    return all(map(_is_here, values))


def _size(values: Sequence[Any]) -> int:
    """The bytes of the largest."""
    return max((getattr(value, "nbytes", 0) for value in values), default=0)


def _first(values: Sequence[Any]) -> Any:
    return next((value for value in values if isinstance(value, jax.Array)), None)


@functools.lru_cache(64)
def _numeric(dtype: Any) -> np.dtype[Any]:
    """NumPy's dtype; refused where an array holds keys of random numbers."""
    if not isinstance(dtype, np.dtype):
        raise TypeError(f"an array of {dtype} holds no numbers")
    return np.dtype(dtype)


def _settled(value: Any) -> Any:
    """A weakly typed number of JAX's as Python's, where it is known."""
    if _is_weak(value) and not isinstance(value, jax.core.Tracer):
        return value.item()
    return value


def _lowered(value: Any) -> Any:
    """An operand as the engine takes it."""
    value = _settled(value)
    return np.asarray(value) if isinstance(value, jax.Array) else value


def _is_weak(value: Any) -> bool:
    """Whether it is a number whose dtype JAX leaves to what it meets."""
    return (
        isinstance(value, jax.Array)
        and value.ndim == 0
        and value.weak_type
        and value.dtype.kind in _NUMBERS
    )


def _shown(value: Any) -> Any:
    """An operand as what tells its signature."""
    if _is_weak(value):
        return _NUMBERS[value.dtype.kind]
    if isinstance(value, jax.Array):
        return programs.stand_in(tuple(map(int, value.shape)), _numeric(value.dtype))
    return value


def _laid(made: Plan, k: int, array: Any) -> Any:
    if _is_here(array):  # nothing is compiled for this shape
        return _raised(made.view(k, as_operand(_lowered(array))), _first((array,)))
    given = array if isinstance(array, jax.Array) else jnp.asarray(as_operand(array))
    if tuple(given.shape) != made.operands[k]:
        made.view(k, programs.stand_in(tuple(given.shape), np.dtype(bool)))  # says what is wrong
    return _LIBRARY.laid(given, made.axes_mapping[k], made.shape)


def _cotangent(given: Any, node: Any, k: int) -> Any:
    dtype = canonical(node.dtype)
    if given is None:
        return jnp.zeros(node.shape, dtype)
    if dtype.kind in "biu":
        raise TypeError(f"result {k} is of {dtype}, which has no gradient: its cotangent is None")
    array = given if isinstance(given, jax.Array) else jnp.asarray(as_operand(given))
    if tuple(array.shape) != node.shape:
        raise BroadcastError(
            f"the cotangent of result {k} has shape {tuple(array.shape)}; the result has "
            f"{node.shape}",
            reason=Reason.EXTENT_MISMATCH,
        )
    return array.astype(dtype)


def _zero(operand: Any) -> Any:
    if type(operand) in WEAK:
        return jnp.zeros(()) if type(operand) is float else None
    array = jnp.asarray(operand)
    return jnp.zeros_like(array) if jnp.issubdtype(array.dtype, jnp.floating) else None


# What is refused


def _check_out(out: Any) -> None:
    if out is not None:
        _refuse_out()


def _refuse_out() -> NoReturn:
    raise TypeError("JAX's arrays are not written to: leave out= out, and take what is returned")


def _check_settings(settings: Mapping[str, Any]) -> None:
    """Refuses arrays within tuples, lists and dicts, which would stay what they are."""
    for name, value in settings.items():
        if isinstance(value, tuple | list | dict):
            for leaf in jax.tree_util.tree_leaves(value):
                if isinstance(leaf, jax.Array):
                    raise TypeError(
                        f"{name}= holds arrays in a {type(value).__name__}; pass each as an operand"
                    )
