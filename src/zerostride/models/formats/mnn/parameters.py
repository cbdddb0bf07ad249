"""The parameter of an op: attributes, weights, and the data format of its results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...ir.graph import Body, Value
from ..flatbuffer import Table, Vector
from ..schema_fields import Field, read_fields
from . import weights
from .schema import CONVOLUTION, DTYPES, FIELDS, NAMES, PARAMETERS

#: Parameters with lists of floats that become constant operands, one number per channel: the
#: fields, and the field of their position in the file beside the model.
_VECTORS: Mapping[str, tuple[tuple[tuple[int, str], ...], int | None]] = {
    "Scale": (((1, "scale"), (2, "bias")), 3),
    "PRelu": (((1, "slope"),), None),
    "BatchNorm": (((1, "scale"), (4, "bias"), (2, "mean"), (3, "variance")), None),
    "LayerNorm": (((2, "scale"), (3, "bias")), 5),
    "GroupNorm": (((2, "scale"), (3, "bias")), 6),
    "MatMul": (((3, "weight"), (4, "bias")), None),
    "InnerProduct": (((3, "weight"), (4, "bias")), None),
    "Normalize": (((3, "scale"),), None),
}
_FLOAT_BYTES = 4


def read(name: str, table: Table | None) -> dict[str, Any]:
    """The attributes of a parameter; defaults for fields that the file leaves out."""
    return _fields(name, FIELDS.get(name, ()), table)


def _fields(name: str, declared: Sequence[Field], table: Table | None) -> dict[str, Any]:
    """The values of fields; a number that has a name becomes the name."""
    values = read_fields(declared, table)
    for key, value in values.items():
        words = NAMES.get((name, key))
        if words is not None:
            values[key] = words.get(value, str(value))
    return values


def of_op(
    file: Path, op: str, kind: str, table: Table, operands: Sequence[Value | None]
) -> tuple[dict[str, Any], tuple[Value, ...]]:
    """An op's attributes and the weights inside its parameter.

    Args:
        file: the model file.
        op: the op's name.
        kind: its type.
        table: the op.
        operands: its operands.
    """
    name = PARAMETERS.get(table.number(1, "uint8"), "")
    parameter = table.table(2)
    if parameter is None:
        name = ""
    if name == "Convolution2D" and parameter is not None:
        common = parameter.table(0)
        attributes = _fields(name, CONVOLUTION, common)
        return attributes, _kernel(file, op, kind, parameter, attributes, operands)
    attributes = read(name, parameter)
    attributes["parameter"] = name
    if name == "LayerNorm":
        # As in ONNX: the first axis, counted from the last.
        attributes["axis"] = -len(attributes["axes"])
    if name not in _VECTORS or parameter is None:
        return attributes, ()
    fields, beside = _VECTORS[name]
    external = parameter.numbers(beside, "int64") if beside is not None else ()
    offset = external[0] if external else None
    parts = []
    for position, (field, word) in enumerate(fields):
        vector = parameter.vector(field, "float32")
        title = f"{op}.{word}"
        if vector is not None and vector.count:
            parts.append(weights.constant(file, title, (vector.count,), "float32", vector))
        elif offset is not None and position + 1 < len(external) and external[position + 1] > 0:
            count = external[position + 1] // _FLOAT_BYTES
            parts.append(weights.constant(file, title, (count,), "float32", None, (offset,)))
            offset += external[position + 1]
    return attributes, tuple(parts)


def _kernel(
    file: Path,
    op: str,
    kind: str,
    parameter: Table,
    attributes: Mapping[str, Any],
    operands: Sequence[Value | None],
) -> tuple[Value, ...]:
    """The weights of a convolution as (output, input of a group, rows, columns), and its bias."""
    if sum(value is not None for value in operands) > 1:
        return ()
    window = (attributes["kernelY"], attributes["kernelX"])
    count, group = attributes["outputCount"], attributes["group"]
    vector, bias = parameter.vector(1, "float32"), parameter.vector(2, "float32")
    external = parameter.numbers(6, "int64")
    if min(*window, count, group) < 1:
        return ()
    depth = _depth(kind, attributes, vector, count * math.prod(window))
    if kind.startswith("Deconvolution"):
        shape = (depth * group, count // group, *window)
    else:
        shape = (count, depth, *window)
    why = ""
    packed = parameter.table(3) is not None or parameter.table(4) is not None
    if packed and (vector is None or not vector.count):
        why = "they are quantised or compressed, which is not read here"
        vector = None
    elif vector is not None and vector.count != math.prod(shape):
        why = f"the file has {vector.count} numbers"
    if vector is not None and not vector.count:
        vector = None
    inside = () if why else external[:1]
    kernel = [weights.constant(file, f"{op}.weight", shape, "float32", vector, inside, why)]
    if bias is not None and bias.count:
        kernel.append(weights.constant(file, f"{op}.bias", (bias.count,), "float32", bias))
    elif len(external) > 2 and external[2] > 0:
        start = external[0] + external[1]
        length = external[2] // _FLOAT_BYTES
        kernel.append(weights.constant(file, f"{op}.bias", (length,), "float32", None, (start,)))
    return tuple(kernel)


def _depth(kind: str, attributes: Mapping[str, Any], vector: Vector | None, area: int) -> int:
    """The number of input channels that a filter of a group reads."""
    if kind.endswith("Depthwise"):
        return 1
    if vector is not None and vector.count and vector.count % area == 0:
        return vector.count // area
    return max(int(attributes["inputCount"]) // max(int(attributes["group"]), 1), 1)


def layout_of(
    kind: str,
    own: str,
    attributes: Mapping[str, Any],
    operands: Sequence[Value | None],
    layouts: Sequence[str],
) -> str:
    """The data format of an op's results, as in MNN's shape inference.

    Most ops keep the first operand's. A BinaryOp takes that of the operand with more axes.
    """
    if kind == "ConvertTensor":
        return str(attributes.get("dest", "UNKNOWN"))
    if kind in ("Shape", "Rank", "Size"):
        return own
    if not layouts:
        return own
    if kind == "BinaryOp" and len(layouts) > 1:
        ranks = [len(v.shape) if v is not None and v.shape is not None else 0 for v in operands[:2]]
        return layouts[1] if ranks[0] < ranks[1] else layouts[0]
    if kind in ("Select", "Fill") and len(layouts) > 1:
        return layouts[1]
    return layouts[0]


#: Ops that count: their results are always int32.
_COUNTS = frozenset(
    {
        *("Shape", "Rank", "Size", "ArgMax", "ArgMin", "Where", "UnravelIndex"),
        *("NonMaxSuppression", "NonMaxSuppressionV2"),
    }
)
_COMPARISONS = frozenset({"GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "EQUAL", "NOTEQUAL"})
#: Ops whose operand at this position has the type of their result.
_TYPED_BY = {"Select": 1, "Fill": 1, "OneHot": 2}


def dtype_of(
    kind: str, attributes: Mapping[str, Any], operands: Sequence[Value | None], position: int
) -> str | None:
    """The type of a result, as in MNN's shape inference; None if it is unknown."""
    if kind in _COUNTS or (kind == "TopKV2" and position == 1):
        return "int32"
    if kind == "BinaryOp" and attributes.get("opType") in _COMPARISONS:
        return "int32"
    if kind == "Cast":
        # MNN computes with int32 for an int64 of the file.
        dtype = DTYPES.get(attributes.get("dstT", 0))
        return "int32" if dtype == "int64" else dtype
    place = _TYPED_BY.get(kind, 0)
    value = operands[place] if place < len(operands) else None
    if value is None:
        return None
    return "int32" if value.dtype == "int64" else value.dtype


def dtype_of_bodies(
    kind: str, operands: Sequence[Value | None], bodies: Sequence[Body], position: int
) -> str | None:
    """The type of a result of an If or a While, if all values that it may have share it."""
    if kind == "If":
        values = [_at(body.outputs, position) for body in bodies]
    elif len(bodies) > 1:
        return None  # the graph of its condition has results in another order
    else:
        # The first result of a Loop's body is the condition.
        values = [_at(bodies[-1].outputs, position + 1)]
        if position + 2 < len(operands):
            values.append(operands[position + 2])
    types = {None if value is None else value.dtype for value in values}
    return types.pop() if len(types) == 1 else None


def _at(values: Sequence[Value | None], position: int) -> Value | None:
    return values[position] if position < len(values) else None
