"""The table of layers: the shapes of their results, and the rank of their data.

To add a layer, write its formula in `shapes` or `windows`, its weights in `weights`, and a row
here. `sites` holds its broadcasts, `lower` its translation to ONNX.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from . import shapes, windows
from .sizes import LayerCall, Results

Shapes = Callable[[LayerCall], Results]


@dataclass(frozen=True, slots=True)
class LayerType:
    """A row of the table.

    Attributes:
        shapes: the function of the results' shapes; None: only the engine can compute them.
        rank: the rank that the document requires of the data; None: any.
        keeps: every result has the first operand's shape.
        ranked: every result has as many axes as every operand.
        by_data: the results' sizes depend on data, so no engine can compute them in advance.
    """

    shapes: Shapes | None = None
    rank: int | None = None
    keeps: bool = False
    ranked: bool = False
    by_data: bool = False


def _rows(row: LayerType, names: str) -> dict[str, LayerType]:
    return dict.fromkeys(names.split(), row)


LAYERS: Mapping[str, LayerType] = MappingProxyType(
    {
        **_rows(
            LayerType(shapes.same, keeps=True),
            "AbsVal BNLL BatchNorm Bias CELU Cast Clip CopyTo CumulativeSum DeepCopy Dequantize "
            "Dropout ELU Eltwise Erf Exp Flip GELU GroupNorm HardSigmoid HardSwish LRN LayerNorm "
            "Log Mish Normalize PReLU Packing Power Quantize RMSNorm ReLU Requantize "
            "RotaryEmbed SELU Scale Shrink Sigmoid Softplus Split Swish TanH Threshold "
            "UnaryOp",
        ),
        # Documented for images; data of fewer axes do not fail, and keep their shape.
        **_rows(LayerType(shapes.same, keeps=True), "InstanceNorm ShuffleChannel"),
        "MVN": LayerType(shapes.mvn),
        "Softmax": LayerType(shapes.softmax, keeps=True),
        "Noop": LayerType(shapes.each),
        **_rows(LayerType(shapes.declared), "Input MemoryData"),
        "BinaryOp": LayerType(shapes.binary),
        "Reshape": LayerType(shapes.reshape),
        "ExpandDims": LayerType(shapes.expand_dims),
        "Squeeze": LayerType(shapes.squeeze),
        "Permute": LayerType(shapes.permute, ranked=True),
        "Flatten": LayerType(shapes.flatten),
        "Concat": LayerType(shapes.concat, ranked=True),
        "Slice": LayerType(shapes.slice_, ranked=True),
        "Crop": LayerType(shapes.crop, ranked=True, by_data=True),
        "Padding": LayerType(shapes.padding, ranked=True, by_data=True),
        "Tile": LayerType(shapes.tile),
        "Reduction": LayerType(shapes.reduction),
        "GLU": LayerType(shapes.glu, ranked=True),
        "InnerProduct": LayerType(shapes.inner_product),
        "Gemm": LayerType(shapes.gemm),
        "MatMul": LayerType(shapes.matmul),
        "Embed": LayerType(shapes.embed, rank=1),
        "MultiHeadAttention": LayerType(shapes.attention),
        "SDPA": LayerType(shapes.sdpa, rank=3),
        **_rows(LayerType(shapes.recurrent, rank=2), "RNN GRU LSTM"),
        **_rows(
            LayerType(windows.convolution, rank=3),
            "Convolution ConvolutionDepthWise",
        ),
        **_rows(LayerType(windows.convolution, rank=2), "Convolution1D ConvolutionDepthWise1D"),
        **_rows(LayerType(windows.convolution, rank=4), "Convolution3D ConvolutionDepthWise3D"),
        **_rows(LayerType(windows.deconvolution, rank=3), "Deconvolution DeconvolutionDepthWise"),
        **_rows(
            LayerType(windows.deconvolution, rank=2), "Deconvolution1D DeconvolutionDepthWise1D"
        ),
        **_rows(
            LayerType(windows.deconvolution, rank=4), "Deconvolution3D DeconvolutionDepthWise3D"
        ),
        "Pooling": LayerType(windows.pooling, rank=3),
        "Pooling1D": LayerType(windows.pooling, rank=2),
        "Pooling3D": LayerType(windows.pooling, rank=4),
        "Interp": LayerType(windows.interp),
        "Unfold": LayerType(windows.unfold, rank=3),
        "Reorg": LayerType(windows.reorg, rank=3),
        "PixelShuffle": LayerType(windows.pixel_shuffle, rank=3),
        "DeformableConv2D": LayerType(windows.deformable, rank=3),
        **_rows(LayerType(shapes.regions, rank=3), "PSROIPooling ROIAlign ROIPooling"),
        "Diag": LayerType(shapes.diag),
        "Fold": LayerType(windows.fold, rank=2),
        "GridSample": LayerType(shapes.grid_sample),
        "StatisticsPooling": LayerType(shapes.statistics),
        "SPP": LayerType(rank=3),
        **_rows(LayerType(), "ArgMax Einsum InverseSpectrogram PriorBox Spectrogram"),
        **_rows(
            LayerType(by_data=True),
            "DetectionOutput Proposal YoloDetectionOutput Yolov3DetectionOutput",
        ),
    }
)

#: Functions of PyTorch and ONNX without a layer in ncnn, which pnnx leaves in a file. Their
#: parameters are lost. None of them broadcasts. ncnn refuses the file.
LEFTOVERS: Mapping[str, LayerType] = MappingProxyType(
    {
        **_rows(LayerType(shapes.same, keeps=True), "Identity Tensor.clone Tensor.to"),
        **_rows(
            LayerType(shapes.opened, ranked=True),
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

__all__ = ["LAYERS", "LEFTOVERS", "LayerType"]
