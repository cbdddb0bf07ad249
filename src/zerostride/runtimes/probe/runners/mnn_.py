"""MNN on the CPU, through its expression API.

MNN.tools is never imported: importing it runs ``pip install`` for a logging package.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any

import numpy as np

from ..case import Array, Shape
from . import Attrs, Perform, Refused, Runner


def load() -> Runner:
    """Imports MNN."""
    expr: Any = importlib.import_module("MNN.expr")

    def variable(array: Array) -> Any:
        flat = np.ascontiguousarray(array, np.float32).ravel().tolist()
        return expr.const(flat, list(array.shape), expr.NCHW, expr.float)

    def read(result: Any) -> Array:
        shape = result.shape if result.valid else None
        if shape is None:
            raise Refused("the result is an invalid variable")
        if 0 in shape:  # reading it raises, though its shape is right
            return np.empty(shape, np.float32)
        try:
            values = result.read()
        except SystemError as error:
            raise Refused("the result cannot be read") from error
        return np.array(values, np.float32).reshape(shape)

    def variables(function: Callable[..., Any]) -> Perform:
        def perform(attrs: Attrs, operands: Sequence[Array], target: Shape) -> Array:
            return read(function(*map(variable, operands)))

        return perform

    def target_of(target: Shape) -> Any:
        return expr.const(list(target), [len(target)], expr.NCHW, expr.int)

    def broadcast_op(attrs: Attrs, operands: Sequence[Array], target: Shape) -> Array:
        # The op itself: `expr.broadcast_to` demands target % size == 0 before it gets there.
        return read(expr._F.broadcast_to(variable(operands[0]), target_of(target)))

    def prelu(attrs: Attrs, operands: Sequence[Array], target: Shape) -> Array:
        data, slope = operands
        if slope.ndim > 1:
            raise Refused("the slopes are a flat list")
        packed = expr.convert(variable(data), expr.NC4HW4)
        return read(expr.convert(expr.prelu(packed, slope.ravel().tolist()), expr.NCHW))

    return Runner(
        metadata.version("MNN"),
        {
            "Add": variables(expr.add),
            "Subtract": variables(expr.subtract),
            "BroadcastTo(op)": broadcast_op,
            "PReLU": prelu,
        },
        (ValueError,),
    )
