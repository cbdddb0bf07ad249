"""Tensors that MNN holds in packs of channels (NC4HW4) after mnnconvert.

The converter decides for each tensor whether it is packed, and writes conversions where an op needs
the other layout. It writes none for a constant of a binary op. At run time, the result of a binary
op has the layout of the operand of the higher rank, or of the first. An operand of one number is
not broadcast before the op. So if it decides the layout, and the other operand is laid out
otherwise, MNN computes in the order of the one and labels the result with the layout of the other.

Read: alibaba/MNN, AddTensorFormatConverter.cpp, ShapeBinaryOp.cpp, GeometryBinary.cpp. Run for each
op of the tables, MNN 3.6.1: tests/conformance/test_mnn_packing.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...engines.rows import frozen
from ..ir.graph import FileShape, Graph, Node, Value

#: ONNX ops whose result is packed, whatever their operands are.
PACK = frozen(
    "AveragePool BatchNormalization Conv ConvTranspose GlobalAveragePool GlobalMaxPool GridSample "
    "InstanceNormalization LRN MaxPool Resize"
)
#: ONNX ops whose results have the layout of the first operand.
KEEP = frozen(
    "Abs Acos Asin Asinh Atan Cast Ceil Clip Cos Cosh DepthToSpace Dropout Elu Erf Exp Expand "
    "Flatten Floor HardSigmoid HardSwish Identity LeakyRelu Log Neg Not Pad Reciprocal Relu "
    "Reshape Round Selu Sigmoid Sign Sin Sinh Slice Softplus Softsign SpaceToDepth Split Sqrt "
    "Squeeze Tan Tanh Tile Transpose Unsqueeze"
)
#: ONNX ops whose result is not packed.
UNPACK = frozen(
    "ArgMax Celu Compress ConstantOfShape CumSum Einsum Gather GatherElements GatherND Gemm "
    "GlobalLpPool LayerNormalization LogSoftmax LpNormalization MatMul MeanVarianceNormalization "
    "NonZero Range ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum STFT ScatterElements Shape "
    "Size Softmax ThresholdedRelu TopK Trilu Where"
)
#: Binary ops of ONNX. The layout of most operands counts.
BINARY = frozen(
    "Add And Div Equal Greater GreaterOrEqual Less LessOrEqual Max Min Mod Mul Or Pow Sub Sum Xor"
)


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of a tensor.

    Attributes:
        written: whether the converter takes it for packed.
        real: whether MNN packs it.
    """

    written: bool
    real: bool


PLAIN, PACKED = Layout(False, False), Layout(True, True)


class Packing:
    """The layouts of a graph's tensors, by identity; a tensor after an unknown op has none."""

    __slots__ = ("_layouts", "_under")

    def __init__(self, graph: Graph | None = None, under: Packing | None = None) -> None:
        """Starts with the layouts of `under`, if any."""
        self._layouts: dict[int, Layout] = {}
        self._under = under
        if graph is not None:
            self._layouts.update((id(value), PLAIN) for value in graph.inputs)
            for node in graph.nodes:
                self.follow(node)

    def of(self, value: Value | None) -> Layout | None:
        """The layout of a tensor, if it is known."""
        if value is None or value.constant:
            return PLAIN
        layout = self._layouts.get(id(value))
        return self._under.of(value) if layout is None and self._under is not None else layout

    def follow(self, node: Node) -> None:
        """Notes the layouts of a node's results."""
        layout = self._result(node)
        if layout is not None:
            self._layouts.update((id(value), layout) for value in node.outputs)

    def mixed(self, node: Node) -> int | None:
        """The operand of one number whose layout MNN gives to the result in error, or None."""
        read = self._read(node)
        if node.domain != "" or node.op not in BINARY or len(read) != 2:
            return None
        by = _decides(node)
        one, other = node.inputs[by], node.inputs[1 - by]
        if one is None or other is None or other.shape is None or not _is_one(one):
            return None
        outer = len(one.shape or ()) - len(other.shape)
        label = read[by] and _is_moved((*(1,) * outer, *other.shape))
        data = read[1 - by] and _is_moved(other.shape)
        apart = label != data or (label and outer and other.shape[:2] != (1, 1))
        return by if apart else None

    def _result(self, node: Node) -> Layout | None:
        op, inputs = node.op, node.inputs
        if node.domain != "":
            return None
        if op in PACK | UNPACK:
            return PACKED if op in PACK else PLAIN
        if not inputs:
            return None
        if op in KEEP:
            return self.of(inputs[0])
        if op == "PRelu":  # one slope makes a LeakyRelu
            return self.of(inputs[0]) if _is_one(inputs[-1]) else PLAIN
        read = self._read(node)
        if not read:
            return None
        if op in BINARY and len(inputs) != 2:
            return PLAIN if inputs[1:] else self.of(inputs[0])  # a stack of them, reduced
        written = self._vote(node)
        if self.mixed(node) is not None:  # as it is once the fault is mended
            return Layout(written, written)
        return Layout(written, read[0 if op == "Concat" else _decides(node)])

    def _read(self, node: Node) -> tuple[bool, ...]:
        """Whether each operand of a Concat or a binary op is packed as the op reads it.

        Empty: it is another op, or the layout of an operand is not known.
        """
        layouts = [layout for value in node.inputs if (layout := self.of(value)) is not None]
        if node.onnx_op not in BINARY | {"Concat"} or len(layouts) < len(node.inputs):
            return ()
        result = self._vote(node)
        return tuple(
            layout.real if _has_no_vote(node, value) or layout.written == result else result
            for value, layout in zip(node.inputs, layouts, strict=True)
        )

    def _vote(self, node: Node) -> bool:
        """Whether the converter takes a result for packed."""
        voters = [self.of(value) for value in node.inputs if not _has_no_vote(node, value)]
        votes = [layout.written for layout in voters if layout is not None]
        return sum(votes) > len(votes) / 2


def _has_no_vote(node: Node, value: Value | None) -> bool:
    """Whether a tensor is a constant of a binary op, which the converter does not convert."""
    return node.onnx_op in BINARY and value is not None and value.constant


def _decides(node: Node) -> int:
    """The operand whose layout the result gets."""
    one, two = (len(value.shape or ()) if value is not None else 0 for value in node.inputs)
    return int(one < two)


def _is_one(value: Value | None) -> bool:
    return value is not None and value.shape is not None and all(n == 1 for n in value.shape)


def _is_moved(shape: FileShape) -> bool:
    """Whether packing moves the numbers of a tensor: not if it has channels alone, or one axis."""
    sizes = shape or ()
    return len(sizes) > 1 and any(size != 1 for size in (*sizes[:1], *sizes[2:]))
