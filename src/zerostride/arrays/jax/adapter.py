"""JAX's arrays: read without a copy, or, while JAX traces them, lowered to its own functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ...compute.foreign import NotPlain
from ...compute.reference import as_operand
from ...core.plan import Plan
from ...errors import BroadcastError, Reason
from ...fusion.evaluate import Library, evaluate
from ...fusion.grad.vjp import GraphProgram
from ...fusion.run import run_into
from .. import programs
from ..generic import Generic
from ..model import FusedCall
from .data import NUMBERS, aligned, is_here, is_weak, lowered, numeric, raised, settled
from .ops import Jax as JaxLibrary
from .ops import canonical

#: The size of operands from which a result is allocated aligned, because a copy would cost more.
_LARGE = 1 << 18


class Jax(Generic):
    """The adapter of JAX."""

    promotes = has_engines = True

    # Methods of the generic adapter.

    def is_here(self, array: Any) -> bool:
        """Whether the engine may read an array now."""
        return is_here(array)

    def to_numpy(self, array: Any) -> NDArray[Any]:
        """NumPy's array of the same memory, which must not be written to."""
        return np.asarray(array)

    def writable(self, array: Any) -> NDArray[Any]:
        """Refuses: JAX's arrays are immutable."""
        _refuse_out()

    def from_numpy(self, result: NDArray[Any], operands: Sequence[Any]) -> Any:
        """A result as JAX's array, in JAX's dtype for it, on the operands' device."""
        return raised(result, self.first(operands))

    def dtype_of(self, array: Any) -> np.dtype[Any]:
        """NumPy's dtype of an array."""
        dtype: np.dtype[Any] = numeric(array.dtype)
        return dtype

    def data_of(self, array: Any) -> Any:
        """NumPy's array, or a number, for an array that a fused function captures."""
        if isinstance(array, jax.core.Tracer):
            raise NotPlain("is traced by JAX (jit, grad, vmap)")
        if array.is_deleted():
            raise NotPlain(
                "was deleted, or donated to a computation", "pass an array that is there"
            )
        arrays = lowered((array,))
        if arrays is None:
            raise NotPlain(f"lies on {' and '.join(sorted(map(str, array.devices())))}")
        return arrays[0]

    def as_dtype(self, dtype: Any) -> np.dtype[Any]:
        """NumPy's dtype of a dtype of JAX or of NumPy."""
        numpy_dtype: np.dtype[Any] = np.dtype(dtype)
        return numpy_dtype

    def library(self, like: Any) -> Library:
        """JAX's functions."""
        return _LIBRARY

    def readable(self, values: Sequence[Any], out: Any) -> Sequence[Any] | None:
        """Operands for the engine; None where one is traced, or on another device."""
        return lowered(values)

    def is_large(self, arrays: Sequence[Any]) -> bool:
        """Whether results should be allocated aligned, as programs do."""
        sizes = (value.nbytes for value in arrays if isinstance(value, np.ndarray))
        return max(sizes, default=0) >= _LARGE

    def shown(self, value: Any) -> Any:
        """What stands for an operand in a signature."""
        if is_weak(value):
            return NUMBERS[value.dtype.kind]
        if isinstance(value, jax.Array):
            return programs.stand_in(_sizes(value), numeric(value.dtype))
        return value

    def array_of(self, value: Any, like: Any) -> Any:
        """An array of what a caller gave."""
        return value if isinstance(value, jax.Array) else jnp.asarray(as_operand(value))

    def zeros(self, shape: tuple[int, ...], dtype: str, like: Any) -> Any:
        """An array of zeros."""
        return jnp.zeros(shape, canonical(dtype))

    def check_call(self, call: FusedCall) -> None:
        """Refuses arrays within tuples, lists and dicts, which would not become operands."""
        for name, value in call.settings.items():
            if isinstance(value, tuple | list | dict):
                for leaf in jax.tree_util.tree_leaves(value):
                    if isinstance(leaf, jax.Array):
                        raise TypeError(
                            f"{name}= holds arrays in a {type(value).__name__}; pass each as an "
                            "operand"
                        )

    def check_out(self, out: Any) -> None:
        """Refuses any: JAX's arrays are immutable."""
        if out is not None:
            _refuse_out()

    def first(self, values: Sequence[Any]) -> Any:
        """The first array of JAX's; None without one."""
        return next((value for value in values if isinstance(value, jax.Array)), None)

    # The protocol.

    def broadcast(self, data: Any, plan: Plan, copy: bool, out: Any) -> Any:
        """`lax.broadcast_in_dim`; JAX has no views with stride 0."""
        self.check_out(out)
        (view,) = self.views(plan, (data,))
        return view

    def views(self, plan: Plan, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """The operands laid over the plan's shape."""
        return tuple(_laid(plan, k, array) for k, array in enumerate(arrays))

    # Programs.

    def prepared(self, call: FusedCall, *, own: bool | None = None) -> programs.Prepared:
        """A fused function for the signature of a call; weak numbers are Python's if known."""
        operands = [settled(value) for value in call.operands]
        settings = {name: settled(value) for name, value in call.settings.items()}
        return super().prepared(call._replace(operands=operands, settings=settings), own=own)

    def run(self, program: GraphProgram, values: Sequence[Any]) -> list[Any]:
        """The results of a program: by the engine if it can read all operands, else by JAX."""
        arrays, like = lowered(values), self.first(values)
        if arrays is not None:
            outs = [aligned(node.shape, np.dtype(node.dtype)) for node in program.outputs]
            return [raised(result, like) for result in run_into(program.ready, arrays, outs)]
        return evaluate(program.graph, [_traced(value) for value in values], _LIBRARY)


ADAPTER = Jax()


_LIBRARY = JaxLibrary()


def _traced(value: Any) -> Any:
    """A NumPy array as JAX's array."""
    if isinstance(value, np.ndarray | np.generic):
        return jnp.asarray(value, canonical(value.dtype))
    return value


# Operands


def _sizes(array: Any) -> tuple[int, ...]:
    """A shape in numbers.

    Raises:
        BroadcastError: JAX traces for sizes that are not known (shape polymorphism).
    """
    if not all(isinstance(size, int | np.integer) for size in array.shape):
        raise BroadcastError(
            f"an array of JAX has shape ({', '.join(map(str, array.shape))}), whose sizes are not "
            "all known",
            reason=Reason.UNKNOWN_SIZE,
            hint="export for each of the sizes that are wanted; plans are made of numbers",
        )
    return tuple(map(int, array.shape))


def _laid(plan: Plan, k: int, array: Any) -> Any:
    here = lowered((array,))
    if here is not None:  # nothing is compiled for this shape
        # Objects other than JAX's arrays are mutable: without a JAX array beside them, copy.
        return raised(plan.view(k, as_operand(here[0])), ADAPTER.first((array,)))
    source = array if isinstance(array, jax.Array) else jnp.asarray(as_operand(array))
    if tuple(source.shape) != plan.operands[k]:
        plan.view(k, programs.stand_in(tuple(source.shape), np.dtype(bool)))  # says what is wrong
    return _LIBRARY.laid(source, plan.axes_mapping[k], plan.shape)


# Refusals


def _refuse_out() -> NoReturn:
    raise TypeError("JAX's arrays are not written to: leave out= out, and take what is returned")
