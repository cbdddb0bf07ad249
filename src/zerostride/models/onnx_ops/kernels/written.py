"""The numbers of compound ops, by the ops that are written for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ...ir.graph import Array
from ..written.calls import CompoundCall, NotWritten, Shape
from ..written.table import written
from .call import NodeCall, Unfit, room
from .reduction import product


def run_written(call: NodeCall) -> tuple[Array, ...]:
    """The results of an op of `written`. Half floats are computed in float32."""
    writer = _Arrays()
    names = tuple("" if array is None else writer.constant(_wide(array)) for array in call.inputs)
    node = call.node
    outputs = tuple(bool(value.name) for value in node.outputs)
    compound = CompoundCall(node.op, node.domain, names, outputs, node.attributes, writer)
    try:
        results = written(compound)
    except NotWritten as error:
        raise Unfit(str(error)) from error
    kind = call[0].dtype
    arrays = (_narrow(writer.arrays[name], kind) for name in results)
    return tuple(arrays)[: max(1, len(outputs))]


def _narrow(array: Array, kind: np.dtype[Any]) -> Array:
    """Floats in the element type of the first operand; whole numbers stay as they are."""
    return array if array.dtype.kind in "iu" else array.astype(kind, copy=False)


def _wide(array: Array) -> Array:
    half = array.dtype.itemsize == 2 and array.dtype.kind not in "iu"
    return array.astype(np.float32) if half else array


class _Arrays:
    """A writer whose ops are computed as they are added."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}

    def shape(self, name: str) -> Shape:
        """An array's sizes."""
        return self.arrays[name].shape

    def dtype(self, name: str) -> str:
        """An array's element type."""
        return self.arrays[name].dtype.name

    def array(self, name: str) -> Array:
        """An array."""
        return self.arrays[name]

    def constant(self, array: Any) -> str:
        """An array by a new name."""
        name = str(len(self.arrays))
        self.arrays[name] = np.asarray(array)
        return name

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        """The result of an op, which is computed."""
        return self.constant(_OPS[op](*(self.arrays[name] for name in inputs), **attributes))

    def largest(self, name: str) -> str:
        """The largest number of each row, as a row of one."""
        return self.constant(self.arrays[name].max(-1, keepdims=True, initial=-np.inf))

    def as_float(self, name: str) -> str:
        """The same numbers as 32-bit floats."""
        return self.constant(self.arrays[name].astype(np.float32))

    def as_kind(self, name: str, kind: str) -> str:
        """Whole numbers of floats, in another element type."""
        return self.constant(self.arrays[name].astype(kind))


def _pair(function: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    def computed(left: Array, right: Array) -> Array:
        room(np.broadcast_shapes(left.shape, right.shape), left.dtype)
        return np.asarray(function(left, right))

    return computed


def _softmax(scores: Array, axis: int) -> Array:
    powers = np.exp(scores - scores.max(axis, keepdims=True, initial=-np.inf))
    return np.asarray(powers / powers.sum(axis, keepdims=True))


def _gather(data: Array, places: Array, axis: int) -> Array:
    room((*places.shape, *data.shape[1:]), data.dtype)
    return np.asarray(data.take(places, axis))


def _slice(data: Array, start: Array, end: Array, axis: Array) -> Array:
    index = [slice(None)] * data.ndim
    index[int(axis[0])] = slice(int(start[0]), int(end[0]))
    return data[tuple(index)]


#: The ops by which the others are written.
_OPS: Mapping[str, Callable[..., Array]] = MappingProxyType(
    {
        "Abs": np.abs,
        "Add": _pair(np.add),
        "Ceil": np.ceil,
        "Clip": np.clip,
        "Concat": lambda *parts, axis: np.concatenate(parts, axis),
        "Div": _pair(np.divide),
        "Equal": _pair(np.equal),
        "Floor": np.floor,
        "Gather": _gather,
        "MatMul": product,
        "Max": _pair(np.maximum),
        "Mul": _pair(np.multiply),
        "Reshape": lambda data, sizes: data.reshape([int(size) for size in sizes]),
        "Round": np.round,
        "Slice": _slice,
        "Softmax": _softmax,
        "Sub": _pair(np.subtract),
        "Tanh": np.tanh,
        "Transpose": lambda data, perm: data.transpose(perm),
        "Where": np.where,
    }
)
