"""Ranges of tensors' numbers, and the tensors whose element type is too narrow for its range."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from .rewriting import Rewriting

#: The least and the largest number.
Range: TypeAlias = tuple[float, float]
#: The range of a node's result, from those of its operands; one that is left out is None.
Rule: TypeAlias = "Callable[..., Range]"

#: The element type of truth values.
_BOOL = 9
_ANY: Range = (-math.inf, math.inf)
#: Ranges of ONNX's element types. Those of 32 and 64 bits are open here: floats do not hold their
#: large numbers exactly, whether they wrap around or not.
_TYPES: Mapping[int, Range] = MappingProxyType(
    {
        2: (0, 2**8 - 1),
        3: (-(2**7), 2**7 - 1),
        4: (0, 2**16 - 1),
        5: (-(2**15), 2**15 - 1),
        _BOOL: (0, 1),
        12: (0, math.inf),
        13: (0, math.inf),
    }
)
#: The largest constant that is looked at.
_MOST_NUMBERS = 1 << 16


def wrapping(graph: Rewriting) -> set[str]:
    """Tensors of whole numbers that may wrap around, which floats do not.

    They are differences of unsigned numbers, results in 8 and 16 bits, and casts to these types,
    unless ranges of constants, types and truth values exclude it.
    """
    known: dict[str, Range] = {}
    wrapped: set[str] = set()

    def range_of(name: str) -> Range | None:
        if name and name not in known:
            known[name] = _of_constant(graph, name) or _TYPES.get(graph.types.get(name, 0), _ANY)
        return known.get(name)

    for node in graph.graph.node:
        for name in node.output:
            kind = graph.types.get(name, 0)
            held = _TYPES.get(kind, _ANY)
            rule = _RULES.get(node.op_type) if kind != _BOOL else None
            low, high = rule(*map(range_of, node.input)) if rule is not None else held
            fits = held[0] <= low and high <= held[1]
            known[name] = (low, high) if fits else held
            if not fits:
                wrapped.add(name)
    return wrapped


def _of_constant(graph: Rewriting, name: str) -> Range | None:
    shape = graph.shape(name)
    array = graph.array(name) if shape is not None and math.prod(shape) <= _MOST_NUMBERS else None
    if array is None or not array.size or array.dtype.kind not in "biuf" or np.isnan(array).any():
        return None
    return float(array.min()), float(array.max())


# --- Ops -----------------------------------------------------------------------------------------


def _product(one: Range, other: Range) -> Range:
    ends = [a * b if a and b else 0 for a in one for b in other]  # 0 times infinity is 0
    return min(ends), max(ends)


def _ends(low: Callable[..., float], high: Callable[..., float]) -> Rule:
    return lambda *ranges: (low(r[0] for r in ranges), high(r[1] for r in ranges))


def _clipped(x: Range, least: Range | None = None, most: Range | None = None) -> Range:
    least, most = least or (-math.inf, -math.inf), most or (math.inf, math.inf)
    low, high = (min(max(a, b), c) for a, b, c in zip(x, least, most, strict=True))
    return low, high


def _rounded(x: Range) -> Range:
    return float(np.floor(x[0])), float(np.ceil(x[1]))


def _size(x: Range) -> Range:
    return max(x[0], -x[1], 0), max(-x[0], x[1])


#: Other ops may have each number of their type.
_RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "Abs": _size,
        "Add": lambda one, other: (one[0] + other[0], one[1] + other[1]),
        "Cast": lambda x: (float(np.trunc(x[0])), float(np.trunc(x[1]))),
        "Clip": _clipped,
        "Concat": _ends(min, max),
        "Max": _ends(max, max),
        "Min": _ends(min, min),
        "Mul": _product,
        "Neg": lambda x: (-x[1], -x[0]),
        "Relu": lambda x: (max(x[0], 0), max(x[1], 0)),
        "Sub": lambda one, other: (one[0] - other[1], one[1] - other[0]),
        "Where": lambda _, one, other: _ends(min, max)(one, other),
        **dict.fromkeys(("Ceil", "Floor", "Round"), _rounded),
        **dict.fromkeys(("Sigmoid", "Softmax"), lambda *_: (0, 1)),
        **dict.fromkeys(("Identity", "Transpose", "Flatten", "Reshape"), lambda x, *_: x),
        **dict.fromkeys(("Slice", "Squeeze", "Unsqueeze", "Expand", "Split"), lambda x, *_: x),
        **dict.fromkeys(("Gather", "Tile", "ReduceMax", "ReduceMin"), lambda x, *_: x),
    }
)

__all__ = ["wrapping"]
