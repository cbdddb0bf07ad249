"""The table of layers: one row for each type of layer, with all facts about it.

To add a layer, write its functions in `shapes` (the sizes of results), `loads` (its weights),
`sites` (what broadcasts in it) and `lowering` (its ONNX nodes), and a row here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from ....errors import ModelError
from ...ir.graph import Node
from ...ir.site import Kind, Site, not_modelled, unjudged
from ..lowering import EVERY, Row, becomes, lower_by, real, whole
from . import loads, sites
from .loads import Load, Loads
from .lowering import elements, products
from .lowering import windows as lower_windows
from .lowering.writer import LayerWriter
from .shapes import formulas, windows
from .shapes.call import LayerCall, Results
from .text import Layer, Params


@dataclass(frozen=True, slots=True)
class LayerType:
    """A row of the table.

    Attributes:
        shapes: the function of the results' shapes; None: only the engine can compute them.
        lower: what it becomes in ONNX; None: ONNX has no equivalent.
        site: finds what broadcasts in it; None: it never broadcasts.
        weights: the weights that it reads from the .bin; None: it reads none.
        rank: the rank that the document requires of the data; None: any.
        keeps: every result has the first operand's shape.
        ranked: every result has as many axes as every operand.
        by_data: the results' sizes depend on data, so no engine can compute them in advance.
        dtype: the element type of results; None: the operand's if it keeps the shape, else float32.
    """

    shapes: Callable[[LayerCall], Results] | None = None
    lower: Row[LayerWriter] | None = None
    site: Callable[[Node], Site | None] | None = None
    weights: Loads | None = None
    rank: int | None = None
    keeps: bool = False
    ranked: bool = False
    by_data: bool = False
    dtype: str | None = None


def _same(
    lower: Row[LayerWriter] | None = None,
    site: Callable[[Node], Site | None] | None = None,
    weights: Loads | None = None,
    dtype: str | None = None,
) -> LayerType:
    """A layer whose results have the shape of the first operand."""
    return LayerType(formulas.same, lower, site, weights, keeps=True, dtype=dtype)


def _rows(row: LayerType, names: str) -> dict[str, LayerType]:
    return dict.fromkeys(names.split(), row)


def _by_rank(name: str, row: LayerType) -> dict[str, LayerType]:
    """The layers of one, two and three axes of space."""
    ranks = (("1D", 2), ("", 3), ("3D", 4))
    return {f"{name}{end}": replace(row, rank=rank) for end, rank in ranks}


_CONVOLUTION = LayerType(windows.convolution, lower_windows.convolution, weights=loads.CONVOLUTION)
_DECONVOLUTION = LayerType(
    windows.deconvolution, lower_windows.deconvolution, weights=loads.DECONVOLUTION
)
_CONVOLUTIONS = {
    **_by_rank("Convolution", _CONVOLUTION),
    **_by_rank("ConvolutionDepthWise", _CONVOLUTION),
    **_by_rank("Deconvolution", _DECONVOLUTION),
    **_by_rank("DeconvolutionDepthWise", _DECONVOLUTION),
}
#: Layers whose weights differ from those of the other ranks.
_OTHER_WEIGHTS = {
    "Convolution": loads.CONVOLUTION_2D,
    "ConvolutionDepthWise": loads.CONVOLUTION_DEPTHWISE,
    **{name: loads.WEIGHTED for name in _CONVOLUTIONS if name.endswith("3D")},
}


def _recurrent(name: str, gates: int, biases: int) -> LayerType:
    weights = loads.recurrent(gates, biases)
    return LayerType(formulas.recurrent, products.recurrent(name), weights=weights, rank=2)


LAYERS: Mapping[str, LayerType] = MappingProxyType(
    {
        **_CONVOLUTIONS,
        **{
            name: replace(_CONVOLUTIONS[name], weights=weights)
            for name, weights in _OTHER_WEIGHTS.items()
        },
        **_by_rank("Pooling", LayerType(windows.pooling, lower_windows.pooling)),
        **_rows(_same(), "Cast CopyTo Packing RotaryEmbed"),
        **_rows(LayerType(formulas.regions, rank=3), "PSROIPooling ROIAlign ROIPooling"),
        **_rows(LayerType(), "ArgMax InverseSpectrogram PriorBox Spectrogram"),
        **_rows(
            LayerType(by_data=True),
            "DetectionOutput Proposal YoloDetectionOutput Yolov3DetectionOutput",
        ),
        "AbsVal": _same("Abs"),
        "BNLL": _same("Softplus"),
        "BatchNorm": _same(
            products.batch_norm,
            sites.norm("BatchNormalization", "slope", "bias", "mean", "variance"),
            loads.vectors("slope mean variance bias", 0),
        ),
        "Bias": _same(elements.bias, sites.bias, loads.vectors("bias", 0)),
        "BinaryOp": LayerType(formulas.binary, elements.binary_with_plan, sites.binary),
        "CELU": _same(becomes("Celu", alpha=real(0, 1.0))),
        "Clip": _same(elements.clip),
        "Concat": LayerType(
            formulas.concat, becomes("Concat", EVERY, axis=whole(0, 0)), ranked=True
        ),
        "Crop": LayerType(formulas.crop, elements.cropped, ranked=True, by_data=True),
        "CumulativeSum": _same(becomes("CumSum", 0, lambda w: w.ints(w.whole(0)))),
        "DeepCopy": _same(elements.identity),
        "DeformableConv2D": LayerType(windows.deformable, weights=loads.WEIGHTED, rank=3),
        "Dequantize": _same(
            None,
            sites.scaled(0, 1),
            loads.several(loads.optional("scale", 0, 1), loads.optional("bias", 1)),
            "float32",
        ),
        "Diag": LayerType(formulas.diag),
        "Dropout": _same(elements.dropout),
        "ELU": _same(becomes("Elu", alpha=real(0, 0.1))),
        "Einsum": LayerType(site=sites.einsum),
        "Eltwise": _same(elements.eltwise, sites.eltwise),
        "Embed": LayerType(formulas.embed, products.embed, weights=loads.EMBED, rank=1),
        "Erf": _same("Erf"),
        "Exp": _same(elements.exponential),
        "ExpandDims": LayerType(formulas.expand_dims, elements.unsqueezed),
        "Flatten": LayerType(formulas.flatten, elements.reshaped),
        "Flip": _same(elements.flipped),
        "Fold": LayerType(windows.fold, rank=2),
        "GELU": _same(elements.gelu),
        "GLU": LayerType(formulas.glu, products.glu, ranked=True),
        "GRU": _recurrent("GRU", 3, 4),
        "Gemm": LayerType(formulas.gemm, products.gemm, sites.gemm, loads.gemm),
        "GridSample": LayerType(formulas.grid_sample),
        "GroupNorm": _same(
            products.group_norm,
            sites.norm("GroupNormalization", "gamma", "beta"),
            loads.vectors("gamma beta", 1, when=3, default=1),
        ),
        "HardSigmoid": _same(becomes("HardSigmoid", alpha=real(0, 0.2), beta=real(1, 0.5))),
        "HardSwish": _same(elements.hard_swish),
        "InnerProduct": LayerType(
            formulas.inner_product, products.inner_product, weights=loads.INNER_PRODUCT
        ),
        "Input": LayerType(formulas.declared),
        # Documented for images; data of fewer axes do not fail, and keep their shape.
        "InstanceNorm": _same(
            products.instance_norm,
            sites.norm("InstanceNormalization", "gamma", "beta"),
            loads.vectors("gamma beta", 0, when=2, default=1),
        ),
        "Interp": LayerType(windows.interp, lower_windows.interp),
        "LRN": _same(elements.lrn),
        "LSTM": _recurrent("LSTM", 4, 4),
        "LayerNorm": _same(
            products.trailing_norm(True),
            sites.trailing("LayerNormalization", "gamma", "beta"),
            loads.vectors("gamma beta", 0, when=2, default=1),
        ),
        "Log": _same(elements.logarithm),
        "MVN": LayerType(formulas.mvn, products.mean_variance),
        "MatMul": LayerType(formulas.matmul, elements.matmul, sites.matmul),
        "MemoryData": LayerType(formulas.declared, elements.memory, weights=loads.memory_data),
        "Mish": _same("Mish"),
        "MultiHeadAttention": LayerType(
            formulas.attention, products.attention, sites.projected, loads.attention
        ),
        "Noop": LayerType(formulas.each, elements.identity),
        "Normalize": _same(None, sites.scaled(3), loads.optional("scale", 3)),
        "PReLU": _same(elements.prelu, sites.prelu, loads.vectors("slope", 0)),
        "Padding": LayerType(
            formulas.padding,
            lower_windows.padding,
            weights=loads.optional("value", 6),
            ranked=True,
            by_data=True,
        ),
        "Permute": LayerType(formulas.permute, elements.permuted, ranked=True),
        "PixelShuffle": LayerType(windows.pixel_shuffle, lower_windows.shuffled, rank=3),
        "Power": _same(elements.power),
        "Quantize": _same(None, sites.scaled(0), loads.optional("scale", 0, 1), "int8"),
        "RMSNorm": _same(
            products.trailing_norm(False),
            sites.trailing("RMSNormalization", "gamma"),
            loads.vectors("gamma", 0, when=2, default=1),
        ),
        "RNN": _recurrent("RNN", 1, 1),
        "ReLU": _same(elements.relu),
        "Reduction": LayerType(formulas.reduction, elements.reduced),
        "Reorg": LayerType(windows.reorg, lower_windows.shuffled, rank=3),
        "Requantize": _same(
            None,
            sites.scaled(0, 1, 2),
            loads.several(
                loads.optional("scale_in", 0, 1),
                loads.optional("scale_out", 1, 1),
                loads.optional("bias", 2),
            ),
            "int8",
        ),
        "Reshape": LayerType(formulas.reshape, elements.reshaped),
        "SDPA": LayerType(formulas.sdpa, products.sdpa, sites.attended, rank=3),
        "SELU": _same(becomes("Selu", alpha=real(0, 1.67326324), gamma=real(1, 1.050700987))),
        "SPP": LayerType(rank=3),
        "Scale": _same(elements.scale, sites.along_channels("Mul", "scale"), loads.scale),
        "Shrink": _same(becomes("Shrink", bias=real(0, 0.0), lambd=real(1, 0.5))),
        "ShuffleChannel": _same(lower_windows.shuffle_channel),  # as InstanceNorm
        "Sigmoid": _same("Sigmoid"),
        "Slice": LayerType(formulas.slice_, elements.sliced, ranked=True),
        "Softmax": LayerType(formulas.softmax, becomes("Softmax", axis=whole(0, 0)), keeps=True),
        "Softplus": _same("Softplus"),
        "Split": _same(elements.split),
        "Squeeze": LayerType(formulas.squeeze, elements.reshaped),
        "StatisticsPooling": LayerType(formulas.statistics),
        "Swish": _same("silu"),
        "TanH": _same("Tanh"),
        "Threshold": _same(elements.threshold),
        "Tile": LayerType(formulas.tile, elements.tiled),
        "UnaryOp": _same(elements.unary),
        "Unfold": LayerType(windows.unfold, lower_windows.unfold, rank=3),
    }
)

#: Functions that pnnx leaves untranslated. They read only blobs; only modules have weights.
FUNCTIONS = re.compile(r"(F|torch|Tensor|pnnx)\..*|(aten|prim)::.*")
#: Functions of PyTorch and ONNX without a layer in ncnn, which pnnx leaves in a file. Their
#: parameters are lost. None of them broadcasts. ncnn refuses the file.
LEFTOVERS: Mapping[str, LayerType] = MappingProxyType(
    {
        **_rows(_same(), "Identity Tensor.clone Tensor.to"),
        **_rows(
            LayerType(formulas.opened, ranked=True),
            "F.pad Pad Slice Tensor.index_select Tensor.slice torch.flip torch.roll",
        ),
        **_rows(
            LayerType(),
            "ArgMax ArgMin ConstantOfShape DFT Expand Gather GatherElements GatherND NonZero Range "
            "ReduceL1 ReduceL2 ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ScatterElements "
            "ScatterND Shape STFT Tensor.expand Tensor.reshape Tensor.unfold Tensor.view TopK "
            "torch.arange torch.full torch.gather torch.ones torch.stft torch.topk torch.zeros",
        ),
    }
)


def loads_of(layer: Layer) -> Sequence[Load]:
    """The weights that a layer reads from the .bin.

    Raises:
        ModelError: a parameter has the wrong type.
    """
    row = LAYERS.get(layer.type)
    return row.weights(Params(layer)) if row is not None and row.weights is not None else ()


def find_site(node: Node) -> Site | None:
    """The site of a layer, or None if nothing broadcasts in it."""
    if node.domain != "ncnn":
        return None
    row = LAYERS.get(node.op)
    if row is None:
        # A function of one blob takes only numbers besides it, and broadcasts nothing.
        alone = FUNCTIONS.fullmatch(node.op) and len(node.inputs) < 2
        return None if node.op in LEFTOVERS or alone else unjudged(node, Kind.CUSTOM)
    try:
        return None if row.site is None else row.site(node)
    except ModelError:
        return not_modelled(node)


def lower(node: Node) -> tuple[Node, ...] | None:
    """The layer as ONNX nodes, or None without an equivalent."""
    row = LAYERS.get(node.op) if node.domain == "ncnn" else None
    if row is None or row.lower is None:
        return None
    sized = all(value is None or value.known for value in node.inputs)
    if node.inputs and sized and any(value.shape is None for value in node.outputs):
        return None  # the layer does not work on these sizes
    return lower_by(row.lower, LayerWriter(node))
