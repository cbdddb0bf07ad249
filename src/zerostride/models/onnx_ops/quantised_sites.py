"""The sites of quantised and fused ops: scales, zero points, biases.

These are ops of ai.onnx and com.microsoft with scales and zero points of their operands. A single
number broadcasts to any shape; a vector goes along one axis of the tensor that it belongs to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from ...core.alignment import Alignment, Attributes
from ...errors import Misfit, Reason
from ...sizes import Asker, Shape
from ..ir.graph import Node
from ..ir.site import (
    AT_AXIS,
    BOTH_WAYS,
    ONE_NUMBER,
    ONE_WAY,
    Kind,
    Operand,
    Site,
    batches,
    input_at,
    not_modelled,
    operand_of,
    present_operands,
)
from .sites import gemm


def _align_numbers_or_vectors(
    asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes
) -> Alignment:
    """Each operand after the first is one number, or a vector along `axis`."""
    rank, axis = len(shapes[0]), attributes["axis"]
    if not 0 <= axis < rank:
        raise Misfit(Reason.AXIS_RANGE, f"axis {axis} of data of rank {rank}")
    every = tuple(range(rank))
    places: list[tuple[int | None, ...]] = [every]
    for k, shape in enumerate(shapes[1:], start=1):
        if len(shape) > 1:
            raise Misfit(Reason.RANK, f"operand {k} has rank {len(shape)}; it must be a vector")
        number = all(map(asker.is_one, shape))
        places.append((None,) * len(shape) if number else (axis,))
    return Alignment(rank, tuple(places), ((), *[every] * (len(shapes) - 1)))


def _align_gates(asker: Asker, shapes: tuple[Shape, ...], _: Attributes) -> Alignment:
    """One number per direction, or per direction and gate: weights are (D, inputs, gates)."""
    if len(shapes[0]) != 3:
        raise Misfit(Reason.RANK, f"weights of rank {len(shapes[0])}; they have 3 axes")
    places: list[tuple[int | None, ...]] = [(0, 1, 2)]
    for k, shape in enumerate(shapes[1:], start=1):
        if len(shape) not in (1, 2):
            raise Misfit(Reason.RANK, f"operand {k} has rank {len(shape)}; it must be 1 or 2")
        places.append((0, 2)[: len(shape)])
    return Alignment(3, tuple(places), ((),) * len(shapes))


#: One number, or a vector along an axis.
NUMBER_OR_AXIS = replace(
    AT_AXIS,
    name="number_or_axis",
    align=_align_numbers_or_vectors,
    summary="Every operand after the first is one number, or a vector along an axis.",
    source="ONNX operator documents: per tensor, or per axis",
)
GATES = replace(
    AT_AXIS,
    name="gates",
    attributes=MappingProxyType({}),
    align=_align_gates,
    summary="One number a direction, or one a direction and gate.",
    source="ONNX Runtime, ContribOperators.md, DynamicQuantizeLSTM",
)


@dataclass(frozen=True, slots=True)
class Parts:
    """The positions of a tensor and of its parameters.

    Attributes:
        data: the tensor's position.
        belong: positions of its scale, zero point, bias.
        axis: the axis of vectors, counted from the end if it is below 0.
    """

    data: int
    belong: tuple[int, ...]
    axis: int


def _number(part: Operand) -> bool:
    return part.shape in ((), (1,))


def _operands(node: Node, positions: tuple[int, ...]) -> list[Operand]:
    values = [input_at(node, position) for position in positions]
    return [operand_of(value) for value in values if value is not None]


def _belonging(node: Node, *parts: Parts) -> Site | None:
    """The site of scales and zero points; of the one tensor with vectors, if any has."""
    every = [part for group in parts for part in _operands(node, group.belong)]
    if not every:
        return None
    if any(part.shape is None for part in every):
        return Site(node, Kind.PER_AXIS, tuple(every), ONE_NUMBER, {})
    long = [group for group in parts if not all(map(_number, _operands(node, group.belong)))]
    base = long[0] if long else parts[-1]
    data = input_at(node, base.data)
    if len(long) > 1 or data is None:
        return not_modelled(node)
    others = every if not long else _operands(node, base.belong)
    operands = (operand_of(data), *others)
    if not long:
        return Site(node, Kind.PER_AXIS, operands, ONE_NUMBER, {})
    axis = base.axis if base.axis >= 0 or data.shape is None else base.axis + len(data.shape)
    return Site(node, Kind.PER_AXIS, operands, NUMBER_OR_AXIS, {"axis": axis})


def _product(*parts: Parts) -> Callable[[Node], Site | None]:
    """A row for products: the batch axes if both factors have some, else scales and zero points.

    Vectors with two batches are not modelled.
    """

    def build(node: Node) -> Site | None:
        factors = [input_at(node, part.data) for part in parts]
        if any(value is None for value in factors):
            return not_modelled(node)
        batch = batches([operand_of(value) for value in factors if value is not None])
        operands = _belonging(node, *parts)
        if batch is None or (operands is not None and batch[1].shape == ()):
            return operands
        if operands is not None and operands.rule is not ONE_NUMBER:
            return not_modelled(node)
        return Site(node, Kind.MATMUL, batch, BOTH_WAYS, {})

    return build


def _convolution(*parts: Parts) -> Callable[[Node], Site | None]:
    """A row for convolutions: scales and zero points of data and weights."""
    return lambda node: _belonging(node, *parts)


def _pair(node: Node) -> Site:
    """Two tensors by NumPy's rule; their scales and zero points are numbers."""
    operands = _operands(node, (0, 3))
    return Site(node, Kind.ELEMENTWISE, tuple(operands), BOTH_WAYS, {})


def _gates(node: Node) -> Site:
    """DynamicQuantizeLSTM: scales and zero points of the two tensors of weights."""
    return Site(node, Kind.PER_AXIS, tuple(_operands(node, (1, 8, 9, 10, 11))), GATES, {})


def _bias(node: Node) -> Site | None:
    """A vector along the last axis."""
    operands = present_operands(node)
    if len(operands) < 2:
        return None
    axis = max(len(operands[0].shape or ()) - 1, 0)
    return Site(node, Kind.CHANNEL, operands, AT_AXIS, {"axis": axis})


def _trailing(node: Node) -> Site | None:
    """The other operands broadcast one way to the first."""
    operands = present_operands(node)
    return Site(node, Kind.TRAILING, operands, ONE_WAY, {}) if len(operands) > 1 else None


def _fused_product(node: Node) -> Site | None:
    """FusedMatMul: the batch axes, if it does not transpose them."""
    if node.attributes.get("transBatchA") or node.attributes.get("transBatchB"):
        return not_modelled(node)
    batch = batches(present_operands(node)[:2])
    return None if batch is None else Site(node, Kind.MATMUL, batch, BOTH_WAYS, {})


def _nothing(node: Node) -> None:
    """An op of one tensor, or of tensors of one shape."""
    return


Builder = Callable[[Node], "Site | None"]

#: Ops of ai.onnx.
ROWS: Mapping[str, Builder] = MappingProxyType(
    {
        "ConvInteger": _convolution(Parts(0, (2,), 1), Parts(1, (3,), 0)),
        "QLinearConv": _convolution(Parts(0, (1, 2, 6, 7), 1), Parts(3, (4, 5, 8), 0)),
        "MatMulInteger": _product(Parts(0, (2,), -2), Parts(1, (3,), -1)),
        "QLinearMatMul": _product(Parts(0, (1, 2, 6, 7), -2), Parts(3, (4, 5), -1)),
    }
)

#: Ops of com.microsoft, ONNX Runtime's own (ContribOperators.md).
CONTRIB: Mapping[str, Builder] = MappingProxyType(
    {
        "DynamicQuantizeLSTM": _gates,
        "QLinearAdd": _pair,
        "QLinearMul": _pair,
        "DynamicQuantizeMatMul": _product(Parts(0, (), -2), Parts(1, (2, 3, 4), -1)),
        "MatMulIntegerToFloat": _product(Parts(0, (2, 4), -2), Parts(1, (3, 5, 6), -1)),
        "QGemm": _product(Parts(0, (1, 2), -2), Parts(3, (4, 5), -1)),
        "FusedMatMul": _fused_product,
        "FusedGemm": gemm,
        **dict.fromkeys(("BiasGelu", "FastGelu"), _bias),
        **dict.fromkeys(
            (
                "SimplifiedLayerNormalization",
                "SkipLayerNormalization",
                "SkipSimplifiedLayerNormalization",
            ),
            _trailing,
        ),
        **dict.fromkeys(
            (
                "FusedConv",
                "Gelu",
                "NhwcMaxPool",
                "QLinearAveragePool",
                "QLinearConcat",
                "QLinearGlobalAveragePool",
                "QLinearLeakyRelu",
                "QLinearSigmoid",
                "QLinearSoftmax",
                "QuickGelu",
            ),
            _nothing,
        ),
    }
)
