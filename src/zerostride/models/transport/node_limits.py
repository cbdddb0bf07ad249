"""Limits of engines on compound ops, apart from broadcasting: on a node, or on its types.

The rows of `compound_engines` name these functions. Each returns the reason in words, or None.
"""

from __future__ import annotations

from collections.abc import Callable

from ...errors import ModelError
from ...sizes import Shape
from ..ir.graph import FileSize, Node


class NotJudged(Exception):  # noqa: N818 - an answer, not a fault
    """Nothing is known about this kind of site on this engine."""


def one_type(kinds: tuple[str, ...]) -> str | None:
    """All operands have one element type."""
    return "operands of several element types" if len(set(kinds)) > 1 else None


def no_double(kinds: tuple[str, ...]) -> str | None:
    """No float64."""
    return "operands of float64" if "float64" in kinds else None


def double_alone(kinds: tuple[str, ...]) -> str | None:
    """float64 in all operands or in no operand."""
    return "float64 beside other element types" if {"float64"} < set(kinds) else None


def half_beside(kinds: tuple[str, ...]) -> str | None:
    """PyTorch: one element type, or half data beside float32."""
    data, *others = kinds
    return None if data == "float16" and {*others} == {"float32"} else one_type(kinds)


def quantised_data(node: Node) -> str | None:
    """ONNX Runtime: data and scale are floats, of one type before op set 23."""
    kinds = tuple(str(value.dtype) for value in node.inputs[:2] if value and value.dtype)
    if any(kind.startswith("int") for kind in kinds):
        return "data of whole numbers"
    return one_type(kinds) if node.version < 23 else None


def without_kernels(lacking: str) -> Callable[[tuple[str, ...]], str | None]:
    """Refuses element types for which there is no kernel."""
    names = frozenset(lacking.split())
    return lambda kinds: next((f"operands of {kind}" for kind in kinds if kind in names), None)


def matrices(node: Node) -> str | None:
    """Operands of at least two axes."""
    ranks = [len(value.shape or ()) for value in node.inputs if value is not None]
    return f"an operand has rank {min(ranks)}; it takes matrices" if min(ranks) < 2 else None


def gpu_weights(node: Node) -> str | None:
    """LiteRT's GPU delegate: a constant second factor becomes the filter of a convolution."""
    rank = len(node.inputs[1].shape or ()) if node.inputs[1] is not None else 2
    problem = f"a constant second factor of rank {rank}; it takes a matrix" if rank != 2 else None
    return problem or matrices(node)


def gpu_filter(node: Node) -> str | None:
    """LiteRT's GPU delegate: a constant first factor cannot become a filter."""
    first = node.inputs[0]
    return "a constant first factor" if first is not None and first.constant else None


def gpu_factors(node: Node) -> str | None:
    """Both factors of a product are made at run time, and are matrices."""
    return gpu_filter(node) or matrices(node)


def spatial(node: Node) -> str | None:
    """Data with axes beside batch and channels."""
    rank = len(node.inputs[0].shape or ()) if node.inputs and node.inputs[0] else 0
    return f"data of rank {rank} have no axis to normalise along" if rank < 3 else None


def several(node: Node) -> str | None:
    """PyTorch: more than one element to normalise."""
    shape = node.inputs[0].shape if node.inputs and node.inputs[0] else None
    return spatial(node) or ("one element a channel" if set((shape or ())[2:]) == {1} else None)


#: The change that keeps a constant vector right on MNN.
_AS_COLUMN = "store the vector as a matrix of one column, and Squeeze after the product"


def dot_product(node: Node) -> str | None:
    """MNN ends the process when it multiplies two vectors, unless its memory is warm."""
    ranks = [len(value.shape or ()) for value in node.inputs[:2] if value is not None]
    words = "a product of two vectors ends the process; make the first a matrix of one row"
    return words if ranks == [1, 1] else None


def fixed_vector(node: Node) -> str | None:
    """MNN's converter: axis 1 of data times a constant vector is dropped, whatever its size."""
    shape = _times_vector(node)
    if shape is None or shape[1] == 1:
        return None
    return f"its converter drops axis 1 of the product, of size {shape[1]}; {_AS_COLUMN}"


def dropped_axis(node: Node) -> str | None:
    """MNN's converter: the result of data times a constant vector keeps its last axis, of 1."""
    shape = _times_vector(node)
    if shape is None or (shape[0], *shape[2:-1], 1) == shape[:-1]:
        return None
    return f"its converter drops axis 1 of the product, and not the last axis; {_AS_COLUMN}"


def _times_vector(node: Node) -> Shape | None:
    """The shape of stacked matrices that are multiplied by a constant vector."""
    data, vector = node.inputs[:2]
    shape = data.shape if data is not None else None
    flat = vector is not None and len(vector.shape or ()) == 1
    return shape if shape is not None and len(shape) > 2 and flat else None


def one_number(*positions: int, as_vector: bool = True) -> Callable[[Node], str | None]:
    """Refuses nodes with more than one number at these inputs, or with one as a vector."""
    taken = (None, (), (1,)) if as_vector else (None, ())

    def problem(node: Node) -> str | None:
        for position in positions:
            value = node.inputs[position] if position < len(node.inputs) else None
            if value is not None and value.shape not in taken:
                return f"input {position} has shape {value.shape}; it takes one number"
        return None

    return problem


def offset_of_zero(node: Node) -> str | None:
    """TensorRT's ONNX parser takes zero points that are 0, and not of uint8."""
    point = node.inputs[2] if len(node.inputs) > 2 else None
    if point is not None and point.dtype == "uint8":
        return "a zero point of uint8"
    return "the zero point is not 0" if has_offset(node) else None


def tied(node: Node) -> bool:
    """Whether a quotient of whole numbers may be a tie beside an odd zero point, or not known.

    A quotient ends in one half only if the scale is even. With zero points of 16 bits, float32
    rounds the quotient itself, so every zero point counts as odd.
    """
    point = node.inputs[2] if len(node.inputs) > 2 else None
    scale = node.inputs[1]
    if point is None:
        return False
    wide = str(point.dtype).endswith("16")
    points, scales = (value.content if value is not None else None for value in (point, scale))
    count = max(len(points or ()), len(scales or ()), 1)
    return any(
        (wide or not isinstance(zero, int) or zero % 2)
        and (not isinstance(size, int) or size % 2 == 0)
        for zero, size in zip(points or (None,) * count, scales or (None,) * count, strict=False)
    )


def has_offset(node: Node) -> bool:
    """Whether the zero point of a quantisation is known and is not 0."""
    point = node.inputs[2] if len(node.inputs) > 2 else None
    if point is None or not point.constant:
        return False
    if point.content is not None:
        return any(point.content)
    try:
        return bool(point.data().any())
    except ModelError:  # computed from constants, or missing
        return False


def one_batch(second: int, *numbers: int) -> Callable[[Node], str | None]:
    """TOSA's MATMUL: zero points of one number, factors that both have the same one batch axis.

    Args:
        second: the position of the second factor.
        numbers: the positions that take one number.
    """

    def problem(node: Node) -> str | None:
        factors = [node.inputs[k] for k in (0, second)]
        a, b = ((() if value is None else value.shape or ()) for value in factors)
        fits = len(a) == len(b) == 2 or (len(a) == len(b) == 3 and a[:1] == b[:1])
        return one_number(*numbers)(node) or (None if fits else f"factors of shapes {a} and {b}")

    return problem


#: Element types without a kernel of LiteRT's: of all its ops, and of products.
LITERT_NONE = without_kernels("float64 uint16 uint32 uint64")
LITERT_FEW = without_kernels("bool float64 uint8 uint16 int32 uint32 int64 uint64")

_WHOLE = "int8 uint8 int16 uint16 int32 uint32 int64 uint64"
#: Whole slopes at run time, for which MNN gives no result.
MNN_SLOPES = without_kernels(_WHOLE)

#: Element types that quantising ops do not take: data and scales are float32, the rest 8 bits wide.
_WIDER = "float16 bfloat16 float64 int16 uint16 int4 uint4 int2 uint2 float8e4m3fn float8e5m2"
FLOAT_EIGHT = without_kernels(_WIDER)
TENSORFLOW_EIGHT = without_kernels(f"{_WIDER} uint8")
COREML_EIGHT = without_kernels(f"{_WIDER.removeprefix('float16 ')} int32")


def first_axes(node: Node) -> str | None:
    """Paddle: a vector of scales goes along axis 0 or 1."""
    data, scale = node.inputs[:2]
    axis = int(node.attributes.get("axis", 1))
    if scale is None or scale.shape in (None, (), (1,)) or axis in (0, 1):
        return None
    rank = len(data.shape) if data is not None and data.shape is not None else None
    inside = rank is not None and axis + rank in (0, 1)
    return None if inside else f"scales along axis {axis}; it takes axis 0 or 1"


def attention_ranks(node: Node) -> str | None:
    """OpenVINO's CPU plugin decomposes an attention, and fails on a value or sink of other axes."""
    query, key, value, *more = [() if part is None else part.shape or () for part in node.inputs]
    mask = [] if node.attributes.get("causal") is True else more[:1]  # not read beside it
    scores = query, key, *mask
    stacked = any(size != 1 for shape in scores for size in shape[:-2])
    more_axes = stacked and len(value) > max(map(len, scores))
    if len(more) > 2:
        fewer = len(more[2]) < max(map(len, scores))
        return "a sink of fewer axes than the scores have" if fewer else None
    return "a value of more axes than the scores have" if more_axes else None


def mnn_quantised(node: Node) -> str | None:
    """MNN's converter writes FloatToInt8 for every QuantizeLinear, whatever its types."""
    data, scale, *point = node.inputs
    floats = all(value is not None and "float" in str(value.dtype) for value in (data, scale))
    unsigned = [str(value.dtype) for value in point if value is not None] == ["uint8"]
    if floats and unsigned and scale is not None and scale.shape in ((), (1,)):
        return None  # the right bits, as int8: a row of `NARROWED`
    return (
        "its converter's FloatToInt8 hands out numbers that are 128 off; where they are "
        "dequantised again, axes 0 and 1 are exchanged, or the file does not load"
    )


#: Types that MNN dequantises as it multiplies: a scale that does not fit gives no result.
_MULTIPLIED = frozenset({"int16", "uint16", "int32"})


def mnn_scale_fits(node: Node) -> str | None:
    """MNN's converter puts the scale of an axis along the last axis, where it may not fit."""
    data, scale = node.inputs[:2]
    if data is None or scale is None or data.constant or data.dtype not in _MULTIPLIED:
        return None
    count, last = (scale.shape or (1,))[0], (data.shape or (1,))[-1]
    if len({count, last, 1}) < 3 or not (isinstance(count, int) and isinstance(last, int)):
        return None
    return f"its converter lays {count} scales along the last axis, of {last}"


def mnn_whole_slopes(node: Node) -> str | None:
    """MNN computes whole slopes of one number a channel, and gives no result for others.

    It looks for the channels on the slopes' own axis 1.
    """
    data, slope = node.inputs[:2]
    if (
        data is None
        or slope is None
        or slope.dtype not in _WHOLE.split()
        or len(slope.shape or ()) < 2
    ):
        return None
    axes = [axis for axis, size in enumerate(slope.shape or ()) if size != 1]
    return None if axes in ([], [1]) else "whole slopes that are not along their axis 1 alone"


def mnn_dequantised(node: Node) -> str | None:
    """MNN's converter folds constants only, and puts the scale of an axis along the last axis.

    Raises:
        NotJudged: constants of more axes, which are right only as weights of a convolution.
    """
    data, scale = node.inputs[:2]
    if node.attributes.get("block_size"):
        return "its converter lays scales of blocks out as scales of one axis"
    if (
        data is not None
        and scale is not None
        and data.dtype == "uint8"
        and {*(data.shape or (0,)), *(scale.shape or ())} <= {1}
    ):
        return None
    if data is None or scale is None or not (data.constant or data.dtype == "int32"):
        return "its converter exchanges axes 0 and 1, or writes a file that does not load"
    rank, axis = len(data.shape or ()), int(node.attributes.get("axis", 1))
    if scale.shape in ((), (1,)) or axis in (-1, rank - 1):
        return None
    if not data.constant:
        return (
            "its converter lays the scale along the last axis, or writes a file that does not load"
        )
    if rank > 2:
        raise NotJudged("right on mnn as the weights of a convolution, and wrong elsewhere")
    return "its converter lays the scale along the last axis"


def mnn_epsilon(node: Node) -> str | None:
    """MNN's converter has a default of its own; a single number becomes 0, whatever it is."""
    explicit = "epsilon" in node.attributes or node.domain != ""
    shape = node.inputs[0].shape if node.inputs and node.inputs[0] is not None else None
    explicit |= shape is not None and set(shape[2:]) <= {1}
    return (
        None if explicit else "its converter takes 1e-10 for an epsilon that is left out, not 1e-5"
    )


def mnn_transposed(node: Node) -> str | None:
    """MNN's converter makes a fully connected layer of a constant second factor."""
    data, weights = node.inputs[:2]
    rows = data.shape[1] if data is not None and data.shape and len(data.shape) == 2 else None
    if not node.attributes.get("transA") or weights is None or not weights.constant or rows == 1:
        return None
    if weights.shape and weights.shape[0 if node.attributes.get("transB") else -1] == 1:
        return None  # a column has one order
    return "beside a constant second factor its converter leaves transA out"


def mnn_axis_zero(node: Node) -> str | None:
    """MNN's converter takes an axis of 0 for one that is left out."""
    zero = node.attributes.get("axis", -1) == 0
    return "its converter reads an axis of 0 as the last axis" if zero else None


def mnn_slopes(node: Node) -> str | None:
    """MNN takes a list of whole slopes for floats; unsigned data have nothing below 0."""
    slopes = node.inputs[1]
    kind = str(slopes.dtype) if slopes is not None else ""
    return "slopes of whole numbers are read as floats" if kind.startswith("int") else None


def openvino_ties(node: Node) -> str | None:
    """OpenVINO's ONNX frontend makes a FakeQuantize of a QuantizeLinear.

    Only a quotient of whole numbers is often halfway between two; of floats hardly ever.
    """
    whole = all(value is not None and "int" in str(value.dtype) for value in node.inputs[:2])
    if not whole or not tied(node):
        return None
    return "it rounds a tie to an even number after the zero point is added, not before"


def blocks_along(*axes: int, most: int = 99) -> Callable[[Node], str | None]:
    """An engine that takes scales of blocks along these axes of tensors of at most so many axes."""

    def check(node: Node) -> str | None:
        data = node.inputs[0].shape if node.inputs and node.inputs[0] is not None else None
        if not node.attributes.get("block_size"):
            return None
        if data is not None and len(data) > most:
            return f"scales of blocks have at most {most} axes"
        axis = node.attributes.get("axis", 1)
        if axis not in axes:
            able = " or ".join(map(str, axes))
            return f"blocks lie along axis {able}, not {axis}" if axes else "it has no blocks"
        return None

    return check


def interleaved_blocks(node: Node) -> str | None:
    """OpenVINO's frontend took elements that lie apart for a block; right where there is one."""
    block = node.attributes.get("block_size", 0)
    data = node.inputs[0].shape if node.inputs and node.inputs[0] is not None else None
    if block < 2 or node.attributes.get("axis", 1) != 1 or (data and data[1:2] == (block,)):
        return None
    return f"a block is elements that lie apart along axis 1, not {block} side by side"


def blocks_with_zero_points(least: int) -> Callable[[Node], str | None]:
    """OpenVINO's frontend takes no blocks of at least this size without a zero point."""

    def check(node: Node) -> str | None:
        bare = len(node.inputs) < 3 or node.inputs[2] is None
        if node.attributes.get("block_size", 0) >= least and bare:
            return "scales of blocks need zero points"
        return None

    return check


def whole_blocks(node: Node) -> str | None:
    """OpenVINO's frontend takes no last block that is cut off.

    Raises:
        NotJudged: the size of the axis is open.
    """
    block, size = node.attributes.get("block_size", 0), _blocked_size(node)
    if not block or (isinstance(size, int) and not size % block):
        return None
    if not isinstance(size, int):
        raise NotJudged(f"right on openvino if blocks of {block} divide their axis")
    return f"blocks of {block} divide their axis, and this one has {size} elements"


def _blocked_size(node: Node) -> FileSize:
    """The size of the axis that blocks lie along."""
    data, axis = node.inputs[0] if node.inputs else None, node.attributes.get("axis", 1)
    shape = () if data is None or data.shape is None else data.shape
    return shape[axis] if -len(shape) <= axis < len(shape) else None


def blocks_that_stretch(node: Node) -> str | None:
    """Scales that NumPy's rule stretches: a block is one element, or the whole axis."""
    block, size = node.attributes.get("block_size", 0), _blocked_size(node)
    if block < 2 or (isinstance(size, int) and size <= block):
        return None
    return f"a block is one element or the whole axis, not {block} of {size}"


def first_of(*checks: Callable[[Node], str | None]) -> Callable[[Node], str | None]:
    """The first reason of several checks."""
    return lambda node: next(filter(None, (check(node) for check in checks)), None)
