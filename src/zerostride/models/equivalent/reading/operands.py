"""Operands of ops that are not taken apart, where several are the same to the op."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType

import numpy as np

from ...onnx_ops.sizes.facts import SURPRISES
from ..terms.axes import places_of
from ..terms.constants import is_number
from ..terms.term import SIZES, SUM, Shape, Term, numbers_of
from .call import Call, Opaque, axis_of

#: The operands of recurrent ops that are zeros where they are left out, by position
#: (https://onnx.ai/onnx/operators/onnx__LSTM.html, "assumed to be 0 if not specified").
_ZEROS: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {"GRU": (3, 5), "LSTM": (3, 5, 6, 7), "RNN": (3, 5)}
)
#: The operand of Resize that has sizes.
_NEW_SIZES = 3


def operands_of(call: Call) -> list[Term | None]:
    """The operands of an op in one form; None for one that is left out."""
    row = None if call.node.domain else _ROWS.get(call.node.op)
    if row is not None:
        with suppress(Opaque, *SURPRISES):  # an axis that is not there, say
            return row(call)
    return list(call.args)


def _recurrent(call: Call) -> list[Term | None]:
    """Zeros that the op takes where it is handed none are left out."""
    args = list(call.args)
    if call.attribute("layout", 0):
        return args
    shapes = _recurrent_shapes(call)
    for position in _ZEROS[call.node.op]:
        arg = args[position] if position < len(args) else None
        if arg is not None and is_number(arg, 0) and arg.shape == shapes.get(position):
            args[position] = None
    return args


def _recurrent_shapes(call: Call) -> Mapping[int, Shape]:
    """The shapes that bias, states and peepholes have."""
    first = [arg.shape for arg in call.args[:3] if arg is not None and arg.ranked]
    if [len(shape) for shape in first] != [3, 3, 3]:
        return {}
    (_, batch, _), (directions, rows, _), (_, _, hidden) = first
    state = (directions, batch, hidden)
    return {3: (directions, 2 * rows), 5: state, 6: state, 7: (directions, 3 * hidden)}


def _resized(call: Call) -> list[Term | None]:
    """Sizes are int64, also where the file of another format has others."""
    args = list(call.args)
    sizes = args[_NEW_SIZES] if len(args) > _NEW_SIZES else None
    if sizes is not None:
        numbers = numbers_of(sizes)
        if numbers is not None and numbers.dtype.kind == "i":
            args[_NEW_SIZES] = call.builder.terms.constant(numbers.astype("int64"))
        elif sizes.op == SIZES and sizes.dtype == "int32":
            content = (*sizes.attributes[:-1], "int64")
            args[_NEW_SIZES] = call.builder.terms.get(
                SIZES, (), sizes.shape, content, dtype="int64"
            )
    return args


def _gathered(call: Call) -> list[Term | None]:
    """Indices without the remainder by the axis's size: Gather itself counts from the end."""
    data, indices, *others = call.args
    if data is None or indices is None or not (data.ranked and indices.ranked):
        return list(call.args)
    size = data.shape[axis_of(call.attribute("axis", 0), len(data.shape))]
    base, builder = indices.base, call.builder
    if not isinstance(size, int) or base.op != "Mod" or not is_number(base.args[1], size):
        return list(call.args)
    inner = base.args[0]
    if inner.op == SUM:
        numbers = [part.number_of for part in inner.args]
        rest = [
            part
            for part, number in zip(inner.args, numbers, strict=True)
            if not isinstance(number, np.integer) or number % size
        ]
        inner = builder.total(rest, inner.shape) if rest else inner
    return [data, builder.view(inner, indices.shape, places_of(indices)), *others]


def _padded(call: Call) -> list[Term | None]:
    """Without the value 0, which is the one that is taken for none."""
    args = list(call.args)
    value = args[2] if len(args) > 2 else None
    if value is not None and is_number(value, 0):
        args[2] = None
    return args


_ROWS: Mapping[str, Callable[[Call], list[Term | None]]] = MappingProxyType(
    {**dict.fromkeys(_ZEROS, _recurrent), "Resize": _resized, "Gather": _gathered, "Pad": _padded}
)


__all__ = ["operands_of"]
