"""An op in the versions of ONNX: its attributes, and from which version on it means the same."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.graph import Node

if TYPE_CHECKING:
    from onnx.defs import OpSchema

#: Versions that mean what the version before meant, though their documents have other words: they
#: take more element types, or an attribute more, whose default is the older meaning. (Not
#: RoiAlign 16, whose default moves the boxes by half a pixel, nor OneHot 11, which counts negative
#: indices from the end.)
_AS_BEFORE: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {
        **dict.fromkeys(("LSTM", "GRU", "RNN"), (14,)),  # layout
        **dict.fromkeys(("ArgMax", "ArgMin"), (12, 13)),  # select_last_index
        **dict.fromkeys(("ScatterElements", "ScatterND"), (13, 16, 18)),  # reduction
        "BatchNormalization": (9, 14, 15),  # training_mode
        "Cast": (9, 13, 19, 24),  # saturate, round_mode
        "CastLike": (19, 24),
        "DepthToSpace": (11, 13),  # mode
        "DequantizeLinear": (13, 19, 21, 23),  # axis, block_size, output_dtype
        "Gather": (11, 13),
        "GatherElements": (13,),
        "GatherND": (12, 13),  # batch_dims
        "MaxPool": (10, 11, 12, 22),  # ceil_mode, dilations
        "Pad": (13, 18, 19),  # axes
        "QuantizeLinear": (13, 19, 21, 23, 25),  # axis, saturate, block_size, precision
        "Resize": (13, 18, 19),  # antialias, axes, keep_aspect_ratio_policy
        "TopK": (11,),  # largest, sorted
    }
)
#: Attributes of ops with windows, and the number in each axis that changes nothing.
_WINDOW = {"dilations": 1, "pads": 0, "strides": 1}
#: Attributes of Resize that have a meaning only beside another attribute of one value.
_ONLY_WITH = {
    "cubic_coeff_a": ("mode", "cubic"),
    "extrapolation_value": ("coordinate_transformation_mode", "tf_crop_and_resize"),
    "nearest_mode": ("mode", "nearest"),
}


@functools.lru_cache(4096)
def document(op: str, domain: str, version: int) -> tuple[Mapping[str, Any], int]:
    """The defaults of an op's attributes, and the first version that means the same.

    Empty and 0 for an op that ONNX has no document of.
    """
    import onnx.helper

    rows = _history().get((domain, op), ())
    here = sum(row.since_version <= version for row in rows) - 1
    if here < 0 or rows[here].deprecated:
        return {}, 0
    first = last = here
    while first and _as_before(rows[first - 1], rows[first]):
        first -= 1
    while last + 1 < len(rows) and _as_before(rows[last], rows[last + 1]):
        last += 1
    defaults = {
        name: _text(onnx.helper.get_attribute_value(attribute.default_value))
        for row in (rows[last], rows[here])
        for name, attribute in row.attributes.items()
        if attribute.default_value.name
    }
    return MappingProxyType(defaults), rows[first].since_version


@functools.cache
def _history() -> Mapping[tuple[str, str], Sequence[OpSchema]]:
    """The documents of every op, the oldest first."""
    import onnx.defs

    rows: dict[tuple[str, str], list[OpSchema]] = {}
    every = onnx.defs.get_all_schemas_with_history()
    for row in sorted(every, key=lambda row: row.since_version):
        rows.setdefault((row.domain, row.name), []).append(row)
    return rows


def _as_before(row: OpSchema, after: OpSchema) -> bool:
    """Whether an op means the same in its next version."""
    if after.since_version in _AS_BEFORE.get(after.name, ()):
        return not after.domain
    return not after.deprecated and _written(row) == _written(after)


def _written(row: OpSchema) -> tuple[object, ...]:
    """The parts of a document that give an op its meaning: all but element types."""
    attributes = {
        name: (str(attribute.type), attribute.default_value.SerializeToString())
        for name, attribute in row.attributes.items()
    }
    operands = [(operand.name, str(operand.option)) for operand in (*row.inputs, *row.outputs)]
    return (row.doc or "").split(), operands, attributes


def _text(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return tuple(value) if isinstance(value, list) else value


def attributes_of(node: Node) -> tuple[Any, ...]:
    """A node's attributes with their defaults, in order."""
    values = {**document(node.op, node.domain, node.version)[0], **node.attributes}
    every = {name: frozen(value) for name, value in values.items()}
    return tuple(sorted(row for row in every.items() if _has_meaning(node.op, *row, every)))


def _has_meaning(op: str, name: str, value: object, every: Mapping[str, object]) -> bool:
    if op == "Resize" and name in _ONLY_WITH:
        other, wanted = _ONLY_WITH[name]
        return every.get(other) == wanted
    return name not in _WINDOW or not isinstance(value, tuple) or set(value) != {_WINDOW[name]}


def frozen(value: Any) -> Any:
    """An attribute as something that can be compared."""
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tobytes()
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return tuple(map(frozen, value))
    return value


__all__ = ["attributes_of", "document", "frozen"]
