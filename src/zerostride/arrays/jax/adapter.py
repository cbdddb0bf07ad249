"""JAX's arrays: read without a copy, or, while JAX traces them, lowered to its own functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ...compute.foreign import NotPlain
from ...compute.reference import as_operand
from ...compute.semantics import WEAK
from ...core.plan import Plan
from ...errors import BroadcastError, Reason
from ...fusion.run import run_into
from ...ops import Op
from .. import programs
from ..direct import call, reduced
from ..generic import Generic
from ..model import Fusion, Options
from ..packing import mapped
from ..replay import replay
from .data import NUMBERS, aligned, is_here, is_weak, lowered, numeric, raised, settled
from .ops import Jax as Library
from .ops import canonical

#: The size of operands from which a result is allocated aligned, because a copy would cost more.
_LARGE = 1 << 18


class Jax(Generic):
    """The adapter of JAX."""

    promotes = True

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

    def from_numpy(self, result: NDArray[Any], like: Any) -> Any:
        """A result as JAX's array, in JAX's dtype for it, on the device of `like`."""
        return raised(result, like)

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

    # The protocol.

    def elementwise(self, op: Op, operands: Sequence[Any], options: Options) -> Any:
        """An op of the table."""
        _check_out(options.out)
        dtype = None if options.dtype is None else self.as_dtype(options.dtype)
        arrays = lowered(operands)
        if arrays is not None and (options.engine is not None or _size(arrays) < _LARGE):
            return raised(call(op, arrays, options, dtype), _first(operands))
        function = programs.fused_op(op, options, dtype)
        return _finished(self._prepared(function, operands, {}, own=options.engine != "numpy"))

    def broadcast(self, data: Any, plan: Plan, copy: bool, out: Any) -> Any:
        """`lax.broadcast_in_dim`; JAX has no views with stride 0."""
        _check_out(out)
        (view,) = self.views(plan, (data,))
        return view

    def views(self, plan: Plan, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """The operands laid over the plan's shape."""
        return tuple(_laid(plan, k, array) for k, array in enumerate(arrays))

    def unbroadcast(self, plan: Plan, grad: Any, k: int) -> Any:
        """`grad` summed to the shape of operand `k`."""
        if is_here(grad):
            return super().unbroadcast(plan, grad, k)
        if tuple(grad.shape) != plan.shape or not 0 <= k < len(plan.operands):
            return plan.unbroadcast(programs.stand_in(tuple(grad.shape), self.dtype_of(grad)), k)
        function = programs.fused_adjoint(plan.operands[k], plan.stretched[k])
        return self._computed(function, (grad,), {})

    def reduction(self, name: str, x: Any, options: Mapping[str, Any]) -> Any:
        """A reduction by name."""
        _check_out(options.get("out"))
        arrays = lowered((x,))
        if arrays is not None:
            return raised(reduced(name, np.asarray(arrays[0]), options, self.as_dtype), x)
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
        inputs = (*operands, *settings.values())
        arrays = lowered(inputs)
        if arrays is not None and (progress is not None or _size(arrays) < _LARGE):
            more = dict(zip(settings, arrays[len(operands) :], strict=True))
            if progress is not None:
                more["progress"] = progress
            result = function.of_library(*arrays[: len(operands)], **more)
            like = _first(inputs)
            return mapped(result, lambda part: raised(part, like))
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
        prepared = self._prepared(function, operands, settings)
        if not prepared.program.is_real:
            raise TypeError("gradients are of real numbers; use jax.vjp for complex ones")
        values = (*prepared.values, *prepared.compiled.captured)
        like = _first(values)
        results = _run(prepared.program, values, like)
        wanted = tuple(k < len(operands) for k in range(len(values)))
        gradients = prepared.program.gradients(wanted)

        def pull(cotangents: Any) -> tuple[Any, ...]:
            leaves = prepared.compiled.structure.unpack(cotangents, "a cotangent")
            cotangent_arrays = [
                _cotangent(leaf, node, k)
                for k, (leaf, node) in enumerate(zip(leaves, prepared.program.outputs, strict=True))
            ]
            gradient_arrays = []
            if gradients.program is not None:
                gradient_arrays = _run(gradients.program, (*values, *cotangent_arrays), like)
            return tuple(
                _zero(operand) if place is None else gradient_arrays[place]
                for operand, place in zip(operands, gradients.places, strict=False)
            )

        return prepared.compiled.structure.pack(results), pull

    # Programs.

    def _prepared(
        self,
        function: Any,
        operands: Sequence[Any],
        settings: Mapping[str, Any],
        *,
        own: bool = True,
    ) -> programs.Prepared:
        settled_operands = [settled(value) for value in operands]
        more = {name: settled(value) for name, value in settings.items()}
        return programs.prepared(function, settled_operands, more, _shown, own=own)

    def _computed(self, function: Any, operands: Sequence[Any], settings: Mapping[str, Any]) -> Any:
        """A fused function's results: by the engine if it can read all operands, else by JAX."""
        return _finished(self._prepared(function, operands, settings))


ADAPTER = Jax()


def _finished(prepared: programs.Prepared) -> Any:
    """A prepared call's results, packed as the function returns them."""
    values = (*prepared.values, *prepared.compiled.captured)
    results = _run(prepared.program, values, _first(values))
    return prepared.compiled.structure.pack(results)


def _run(program: programs.LibraryProgram, values: Sequence[Any], like: Any) -> list[Any]:
    """The results of a program as JAX's arrays."""
    arrays = lowered(values)
    if arrays is not None:
        outs = [aligned(node.shape, np.dtype(node.dtype)) for node in program.outputs]
        return [raised(result, like) for result in run_into(program.ready, arrays, outs)]
    return replay(program.graph, [_traced(value) for value in values], _LIBRARY)


_LIBRARY = Library()


def _traced(value: Any) -> Any:
    """A NumPy array as JAX's array."""
    if isinstance(value, np.ndarray | np.generic):
        return jnp.asarray(value, canonical(value.dtype))
    return value


# Operands


def _size(values: Sequence[Any]) -> int:
    """The bytes of the largest operand."""
    return max((value.nbytes for value in values if isinstance(value, np.ndarray)), default=0)


def _first(values: Sequence[Any]) -> Any:
    return next((value for value in values if isinstance(value, jax.Array)), None)


def _shown(value: Any) -> Any:
    """An operand's stand-in for the signature."""
    if is_weak(value):
        return NUMBERS[value.dtype.kind]
    if isinstance(value, jax.Array):
        return programs.stand_in(_sizes(value), numeric(value.dtype))
    return value


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
        return raised(plan.view(k, as_operand(here[0])), _first((array,)))
    source = array if isinstance(array, jax.Array) else jnp.asarray(as_operand(array))
    if tuple(source.shape) != plan.operands[k]:
        plan.view(k, programs.stand_in(tuple(source.shape), np.dtype(bool)))  # says what is wrong
    return _LIBRARY.laid(source, plan.axes_mapping[k], plan.shape)


def _cotangent(cotangent: Any, node: Any, k: int) -> Any:
    dtype = canonical(node.dtype)
    if cotangent is None:
        return jnp.zeros(node.shape, dtype)
    if dtype.kind in "biu":
        raise TypeError(f"result {k} is of {dtype}, which has no gradient: its cotangent is None")
    array = cotangent if isinstance(cotangent, jax.Array) else jnp.asarray(as_operand(cotangent))
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


# Refusals


def _check_out(out: Any) -> None:
    if out is not None:
        _refuse_out()


def _refuse_out() -> NoReturn:
    raise TypeError("JAX's arrays are not written to: leave out= out, and take what is returned")


def _check_settings(settings: Mapping[str, Any]) -> None:
    """Refuses arrays within tuples, lists and dicts, which would not become operands."""
    for name, value in settings.items():
        if isinstance(value, tuple | list | dict):
            for leaf in jax.tree_util.tree_leaves(value):
                if isinstance(leaf, jax.Array):
                    raise TypeError(
                        f"{name}= holds arrays in a {type(value).__name__}; pass each as an operand"
                    )
