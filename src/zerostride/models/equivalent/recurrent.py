"""Operands of recurrent ops that are the same as none."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .call import Call
from .constants import is_number
from .terms import Shape, Term

#: The operands that are zeros where they are left out, by position
#: (https://onnx.ai/onnx/operators/onnx__LSTM.html, "assumed to be 0 if not specified").
_ZEROS: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {"GRU": (3, 5), "LSTM": (3, 5, 6, 7), "RNN": (3, 5)}
)


def with_few_operands(call: Call) -> list[Term | None]:
    """The operands of an op, those left out that are the zeros that it takes for none."""
    args = list(call.args)
    node = call.node
    if node.op not in _ZEROS or node.domain or call.attribute("layout", 0):
        return args
    shapes = _shapes(call)
    for position in _ZEROS[node.op]:
        arg = args[position] if position < len(args) else None
        if arg is not None and is_number(arg, 0) and arg.shape == shapes.get(position):
            args[position] = None
    return args


def _shapes(call: Call) -> Mapping[int, Shape]:
    """The shapes that bias, states and peepholes have."""
    first = [arg.shape for arg in call.args[:3] if arg is not None and arg.ranked]
    if [len(shape) for shape in first] != [3, 3, 3]:
        return {}
    (_, batch, _), (directions, rows, _), (_, _, hidden) = first
    state = (directions, batch, hidden)
    return {3: (directions, 2 * rows), 5: state, 6: state, 7: (directions, 3 * hidden)}
