"""Ops that reduce, multiply or normalise."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ...ir.graph import Array
from .call import Kernel, NodeCall, Unfit, axes_of, axis_of, effort, room
from .pointwise import rounded

Reducer = Callable[[Array, tuple[int, ...]], Any]


def _log_sum_exp(x: Array, axes: tuple[int, ...]) -> Any:
    largest = np.max(x, axes, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(largest), largest, 0).astype(x.dtype)
    return np.log(np.sum(np.exp(x - shift), axes, keepdims=True)) + shift


def _extreme(largest: bool) -> Reducer:
    def reduce(x: Array, axes: tuple[int, ...]) -> Any:
        # The result for no elements, which any element replaces.
        edge: Any
        if x.dtype.kind in "iu":
            info = np.iinfo(x.dtype)
            edge = info.min if largest else info.max
        else:
            edge = (not largest) if x.dtype.kind == "b" else -np.inf if largest else np.inf
        function = np.max if largest else np.min
        return function(x, axes, keepdims=True, initial=edge)

    return reduce


def _reduce(function: Reducer) -> Kernel:
    """Axes are an attribute up to opset 17 (ReduceSum: 12), later an operand."""

    def kernel(call: NodeCall) -> Array:
        x = call[0]
        listed = call.integers("axes", 1)
        if not listed and call.flag("noop_with_empty_axes"):
            axes: tuple[int, ...] = ()
        else:
            axes = axes_of(listed, x.ndim) if listed else tuple(range(x.ndim))
        reduced = rounded(function)(x, axes)
        return reduced if call.flag("keepdims", 1) else reduced.squeeze(axes)

    return kernel


def _sum(x: Array, axes: tuple[int, ...]) -> Any:
    return np.sum(x, axes, dtype=x.dtype, keepdims=True)


def _mean(x: Array, axes: tuple[int, ...]) -> Any:
    count = math.prod(x.shape[axis] for axis in axes)
    if x.dtype.kind not in "iu":
        # The mean of no numbers is NaN, for which NumPy warns.
        total = _sum(x, axes)
        return np.mean(x, axes, keepdims=True) if count else np.full_like(total, np.nan)
    if not count:
        raise Unfit("the mean of no integers")
    total = _sum(x, axes)
    return (total - np.fmod(total, count)) // count


def _picked(function: Callable[..., Any]) -> Kernel:
    def kernel(call: NodeCall) -> Array:
        x = call[0]
        axis = axis_of(call.attribute("axis", 0), x.ndim)
        if not x.shape[axis]:
            raise Unfit(f"axis {axis} has no elements")
        if call.flag("select_last_index"):
            indices = x.shape[axis] - 1 - function(np.flip(x, axis), axis)
        else:
            indices = function(x, axis)
        kept = call.flag("keepdims", 1)
        return np.asarray(np.expand_dims(indices, axis) if kept else indices, np.int64)

    return kernel


def _running(function: Callable[..., Any], first: int) -> Kernel:
    """Running sums or products; `first` precedes the first element if exclusive."""

    def kernel(call: NodeCall) -> Array:
        x = call[0]
        axis = axis_of(call.number(1), x.ndim)
        x = np.flip(x, axis) if call.flag("reverse") else x
        if call.flag("exclusive") and x.shape[axis]:
            rest = [slice(None)] * x.ndim
            rest[axis] = slice(0, -1)
            edge = list(x.shape)
            edge[axis] = 1
            x = np.concatenate([np.full(edge, first, x.dtype), x[tuple(rest)]], axis)
        running = function(x, axis, dtype=x.dtype)
        return np.flip(running, axis) if call.flag("reverse") else running

    return kernel


def _softmax(finish: Callable[[Array, Array, int], Any]) -> Kernel:
    """Up to opset 12 all axes from `axis` on are one axis; from 13 on only `axis` is used."""

    def kernel(call: NodeCall) -> Array:
        x = call[0]
        if call.node.version >= 13:
            axis = axis_of(call.attribute("axis", -1), x.ndim)
            return rounded(lambda wide: _normalised(wide, axis, finish))(x)
        axis = axis_of(call.attribute("axis", 1), x.ndim) if x.ndim > 1 else 0
        flat = x.reshape(math.prod(x.shape[:axis]), -1) if x.size else x.reshape(0, 1)
        return rounded(lambda wide: _normalised(wide, 1, finish))(flat).reshape(x.shape)

    return kernel


def _normalised(x: Array, axis: int, finish: Callable[[Array, Array, int], Any]) -> Array:
    if not x.size:
        return x
    shifted = x - x.max(axis, keepdims=True)
    return np.asarray(finish(shifted, np.exp(shifted), axis))


def run_hardmax(call: NodeCall) -> Array:
    """Hardmax: 1 for the first largest element, 0 elsewhere."""
    x = call[0]
    old = call.node.version < 13
    axis = axis_of(call.attribute("axis", 1 if old else -1), x.ndim)
    flat = x.reshape(math.prod(x.shape[:axis]), -1) if old else np.moveaxis(x, axis, -1)
    chosen = np.arange(flat.shape[-1]) == flat.argmax(-1)[..., None]
    result = chosen.astype(x.dtype)
    return result.reshape(x.shape) if old else np.moveaxis(result, -1, axis)


def product(a: Array, b: Array) -> Array:
    """A matrix product; its size is checked before the computation."""
    if not a.ndim or not b.ndim:
        raise Unfit(f"operands of shapes {a.shape} and {b.shape}; it takes vectors and matrices")
    outer = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shape = room((*outer, *a.shape[-2:-1], *b.shape[-1:]), a.dtype)
    effort(*shape, a.shape[-1])
    return np.asarray(rounded(lambda wide: np.matmul(wide, b.astype(wide.dtype)))(a))


def run_gemm(call: NodeCall) -> Array:
    """Gemm: a product of two matrices, and C."""
    a, b, c = call[0], call[1], call.maybe(2)
    if a.ndim != 2 or b.ndim != 2:
        raise Unfit(f"operands of shapes {a.shape} and {b.shape}; it takes matrices")
    a = a.T if call.flag("transA") else a
    b = b.T if call.flag("transB") else b
    kind = a.dtype.type if a.dtype.kind in "f" and a.dtype.itemsize >= 4 else np.float32
    alpha, beta = kind(call.attribute("alpha", 1.0)), kind(call.attribute("beta", 1.0))
    result = product(a, b) * (alpha if a.dtype.kind not in "iu" else 1)
    if c is not None:
        if np.broadcast_shapes(result.shape, c.shape) != result.shape:
            raise Unfit(f"C of shape {c.shape} does not go to the product's {result.shape}")
        result = result + c * (beta if a.dtype.kind not in "iu" else 1)
    return np.asarray(result).astype(a.dtype)


def run_einsum(call: NodeCall) -> Array:
    """Einsum by NumPy, within the limit of work."""
    equation = str(call.attribute("equation", "")).replace(" ", "")
    operands = call.operands()
    terms = equation.split("->")[0].split(",")
    if len(terms) != len(operands):
        raise Unfit(f"{equation!r} names {len(terms)} operands, and there are {len(operands)}")
    sizes: dict[str, int] = {}
    rest = 1  # the axes that an ellipsis stands for
    for term, x in zip(terms, operands, strict=True):
        before, dots, after = term.partition("...")
        last = x.ndim - len(after)
        ends = (*zip(before, x.shape, strict=False), *zip(after, x.shape[last:], strict=False))
        for letter, size in ends:
            sizes[letter] = max(sizes.get(letter, 1), size)
        rest = max(rest, math.prod(x.shape[len(before) : last])) if dots else rest
    effort(rest, *sizes.values())
    if any(not letter.isalpha() for letter in sizes):
        raise Unfit(f"{equation!r} is no equation")
    wide = [x.astype(np.float32) if x.dtype.itemsize < 4 else x for x in operands]
    return np.asarray(np.einsum(equation, *wide)).astype(operands[0].dtype)


def run_det(call: NodeCall) -> Array:
    """Det: the determinants of square matrices."""
    x = call[0]
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise Unfit(f"data of shape {x.shape}; it takes square matrices")
    effort(*x.shape, x.shape[-1])
    return rounded(np.linalg.det)(x)


def _stats(x: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
    mean = _averaged(x, axes)
    return mean, _averaged(np.square(x - mean), axes)


def _averaged(x: Array, axes: tuple[int, ...]) -> Array:
    """The mean along axes; NaN for no elements, without NumPy's warning."""
    if x.size:
        return np.asarray(x.mean(axes, keepdims=True))
    return np.full_like(x.sum(axes, keepdims=True), np.nan)


def _channels(x: Array, vector: Array) -> Array:
    """A vector along axis 1."""
    if vector.ndim != 1 or (x.ndim < 2 and vector.size != 1):
        raise Unfit(f"a vector of shape {vector.shape} for data of shape {x.shape}")
    if x.ndim > 1 and vector.shape[0] != x.shape[1]:
        raise Unfit(f"a vector of {vector.shape[0]} for {x.shape[1]} channels")
    return vector.astype(np.float32 if vector.dtype.itemsize < 4 else vector.dtype).reshape(
        [-1 if axis == 1 else 1 for axis in range(max(2, x.ndim))][: x.ndim]
    )


def run_batch_norm(call: NodeCall) -> Array | tuple[Array, ...]:
    """In training mode uses the batch's mean and variance, and updates the running ones."""
    if call.attribute("spatial", 1) == 0:
        raise Unfit("spatial=0 is not executed")
    x, outputs = call[0], len([value for value in call.node.outputs if value.name])
    scale, bias, mean, variance = (_channels(x, call[k]) for k in range(1, 5))
    epsilon = call.attribute("epsilon", 1e-5)

    def normed(mean: Array, variance: Array) -> Array:
        return rounded(
            lambda wide: (wide - mean) / np.sqrt(variance + wide.dtype.type(epsilon)) * scale + bias
        )(x)

    if not call.flag("training_mode"):
        if outputs > 1:
            raise Unfit("it hands out statistics, and is not in training mode")
        return normed(mean, variance)
    if not x.size or x.ndim < 2:
        raise Unfit(f"training mode with data of shape {x.shape}")
    own = _stats(x.astype(mean.dtype), (0, *range(2, x.ndim)))
    kept = mean.dtype.type(call.attribute("momentum", 0.9))
    moved = (
        (running * kept + new * (1 - kept)).reshape(-1).astype(initial.dtype)
        for running, new, initial in zip((mean, variance), own, (call[3], call[4]), strict=True)
    )
    return (normed(*own), *moved)[: max(1, outputs)]


def run_instance_norm(call: NodeCall) -> Array:
    """InstanceNormalization: each plane by its own statistics."""
    x, epsilon = call[0], call.attribute("epsilon", 1e-5)

    def compute(wide: Array) -> Array:
        mean, variance = _stats(wide, tuple(range(2, x.ndim)))
        normalised = (wide - mean) / np.sqrt(variance + wide.dtype.type(epsilon))
        return np.asarray(normalised * _channels(x, call[1]) + _channels(x, call[2]))

    return rounded(compute)(x)


def run_group_norm(call: NodeCall) -> Array:
    """GroupNormalization: groups of channels by their statistics."""
    x, groups = call[0], call.attribute("num_groups", 0)
    epsilon = call.attribute("epsilon", 1e-5)
    if x.ndim < 2 or groups < 1 or x.shape[1] % groups:
        raise Unfit(f"{groups} groups of data of shape {x.shape}")
    vectors = [call[1], call[2]]
    if call.node.version < 21 and vectors[0].shape == (groups,):
        # One number a group, up to opset 20.
        vectors = [np.repeat(vector, x.shape[1] // groups) for vector in vectors]

    def compute(wide: Array) -> Array:
        parts = wide.reshape(x.shape[0], groups, -1)
        mean, variance = _stats(parts, (2,))
        normalised = (parts - mean) / np.sqrt(variance + wide.dtype.type(epsilon))
        normalised = normalised.reshape(x.shape)
        return np.asarray(normalised * _channels(x, vectors[0]) + _channels(x, vectors[1]))

    return rounded(compute)(x)


def run_layer_norm(call: NodeCall) -> tuple[Array, ...]:
    """LayerNormalization: the axes from `axis` on."""
    x, bias = call[0], call.maybe(2)
    axes = tuple(range(axis_of(call.attribute("axis", -1), x.ndim), x.ndim))
    wide = x.astype(np.float32) if x.dtype.itemsize < 4 else x
    centred, inverse = _centred(wide, axes, call.attribute("epsilon", 1e-5))
    normalised = centred * inverse * call[1]
    if bias is not None:
        normalised = normalised + bias
    _not_larger(normalised, x)
    mean = _averaged(wide, axes)
    return (normalised.astype(x.dtype), mean, inverse)[: max(1, len(call.node.outputs))]


def _centred(x: Array, axes: tuple[int, ...], epsilon: float) -> tuple[Array, Array]:
    mean, variance = _stats(x, axes)
    return x - mean, np.asarray(1 / np.sqrt(variance + x.dtype.type(epsilon)))


def run_rms_norm(call: NodeCall) -> Array:
    """RMSNormalization: divided by the root of the mean square."""
    x = call[0]
    axes = tuple(range(axis_of(call.attribute("axis", -1), x.ndim), x.ndim))
    wide = x.astype(np.float32) if x.dtype.itemsize < 4 else x
    square = _averaged(np.square(wide), axes)
    normalised = wide / np.sqrt(square + wide.dtype.type(call.attribute("epsilon", 1e-5)))
    normalised = normalised.astype(x.dtype) * call[1]
    _not_larger(normalised, x)
    return np.asarray(normalised).astype(x.dtype)


def _not_larger(result: Array, x: Array) -> None:
    if result.shape != x.shape:
        raise Unfit(f"its scale and bias would stretch the data, {x.shape}, to {result.shape}")


def run_lp_norm(call: NodeCall) -> Array:
    """LpNormalization: divided by the norm along one axis; 0 stays 0."""
    x, p = call[0], call.attribute("p", 2)
    axis = axis_of(call.attribute("axis", -1), x.ndim)
    norm = np.linalg.norm(x, p, axis, keepdims=True).astype(x.dtype)
    return np.where(norm == 0, 0, x / np.where(norm == 0, 1, norm)).astype(x.dtype)


def _largest(x: Array, axes: tuple[int, ...]) -> Array:
    return np.asarray(np.max(x, axes, keepdims=True))


def _pooled(function: Reducer) -> Kernel:
    def kernel(call: NodeCall) -> Array:
        x = call[0]
        if x.ndim < 3:
            raise Unfit(f"data of rank {x.ndim} have no axis to pool along")
        return rounded(lambda w: function(w, tuple(range(2, x.ndim))))(x)

    return kernel


#: The reductions by their name after "Reduce".
_REDUCERS: Mapping[str, Reducer] = MappingProxyType(
    {
        "Sum": _sum,
        "Mean": _mean,
        "Max": _extreme(True),
        "Min": _extreme(False),
        "Prod": lambda x, axes: np.prod(x, axes, dtype=x.dtype, keepdims=True),
        "L1": lambda x, axes: _sum(np.abs(x), axes),
        "L2": lambda x, axes: np.sqrt(_sum(np.square(x), axes)),
        "LogSum": lambda x, axes: np.log(_sum(x, axes)),
        "LogSumExp": _log_sum_exp,
        "SumSquare": lambda x, axes: _sum(np.square(x), axes),
    }
)


def reduction(name: str) -> Kernel:
    """The kernel of a reduction: "Sum" for ReduceSum."""
    return _reduce(_REDUCERS[name])


run_arg_max, run_arg_min = _picked(np.argmax), _picked(np.argmin)
run_cum_sum, run_cum_prod = _running(np.cumsum, 0), _running(np.cumprod, 1)
run_softmax = _softmax(lambda _, e, axis: e / e.sum(axis, keepdims=True))
run_log_softmax = _softmax(lambda x, e, axis: x - np.log(e.sum(axis, keepdims=True)))
run_global_average, run_global_max = _pooled(_averaged), _pooled(_largest)


def run_matmul(call: NodeCall) -> Array:
    """MatMul: a matrix product."""
    return product(call[0], call[1])
