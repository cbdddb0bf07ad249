"""The ops of OpenVINO's operation sets 1 to 16, by the names that files give them."""

from __future__ import annotations

#: The newest operation set whose ops are known here.
NEWEST = 16

#: Every op of opset1 to opset16 (run: OpenVINO 2026.4.1 was asked which it makes).
_NAMES = """
Abs Acos Acosh AdaptiveAvgPool AdaptiveMaxPool Add Asin Asinh Assign Atan Atanh AvgPool
BatchNormInference BatchToSpace BinaryConvolution BitwiseAnd BitwiseLeftShift BitwiseNot BitwiseOr
BitwiseRightShift BitwiseXor Broadcast Bucketize CTCGreedyDecoder CTCGreedyDecoderSeqLen CTCLoss
Ceiling Clamp Col2Im Concat Constant Convert ConvertLike ConvertPromoteTypes Convolution
ConvolutionBackpropData Cos Cosh CumSum DFT DeformableConvolution DeformablePSROIPooling
DepthToSpace DetectionOutput Divide Einsum Elu EmbeddingBagOffsets EmbeddingBagOffsetsSum
EmbeddingBagPacked EmbeddingBagPackedSum EmbeddingSegmentsSum Equal Erf Exp
ExperimentalDetectronDetectionOutput ExperimentalDetectronGenerateProposalsSingleImage
ExperimentalDetectronPriorGridGenerator ExperimentalDetectronROIFeatureExtractor
ExperimentalDetectronTopKROIs ExtractImagePatches Eye FakeConvert FakeQuantize Floor FloorMod GRN
GRUCell GRUSequence Gather GatherElements GatherND GatherTree Gelu GenerateProposals Greater
GreaterEqual GridSample GroupConvolution GroupConvolutionBackpropData GroupNormalization HSigmoid
HSwish HardSigmoid I420toBGR I420toRGB IDFT IRDFT ISTFT Identity If Interpolate Inverse IsFinite
IsInf IsNaN LRN LSTMCell LSTMSequence Less LessEqual Log LogSoftmax LogicalAnd LogicalNot
LogicalOr LogicalXor Loop MVN MatMul MatrixNms MaxPool Maximum Minimum Mish Mod MulticlassNms
Multinomial Multiply NMSRotated NV12toBGR NV12toRGB Negative NonMaxSuppression NonZero
NormalizeL2 NotEqual OneHot PRelu PSROIPooling Pad Parameter Power PriorBox PriorBoxClustered
Proposal RDFT RNNCell RNNSequence ROIAlign ROIAlignRotated ROIPooling RandomUniform Range
ReadValue ReduceL1 ReduceL2 ReduceLogicalAnd ReduceLogicalOr ReduceMax ReduceMean ReduceMin
ReduceProd ReduceSum RegionYolo Relu ReorgYolo Reshape Result Reverse ReverseSequence Roll Round
STFT ScaledDotProductAttention ScatterElementsUpdate ScatterNDUpdate ScatterUpdate SearchSorted
SegmentMax Select Selu ShapeOf ShuffleChannels Sigmoid Sign Sin Sinh Slice SliceScatter
SoftPlus SoftSign Softmax SpaceToBatch SpaceToDepth SparseFillEmptyRows Split Sqrt
SquaredDifference Squeeze StridedSlice StringTensorPack StringTensorUnpack Subtract Swish Tan Tanh
TensorIterator Tile TopK Transpose Unique Unsqueeze VariadicSplit Xor
"""
OPS = frozenset(_NAMES.split())
#: OpenVINO's reader ignores the case of types; some types have another spelling.
_CANONICAL = {name.lower(): name for name in OPS} | {"const": "Constant"}

#: Ops whose result changes although their inputs do not.
NONDETERMINISTIC = frozenset({"RandomUniform", "Multinomial", "ReadValue", "Assign"})


def canonical(kind: str) -> str:
    """The op's name in its document; a type of no operation set stays as it is.

    >>> canonical("ReLU"), canonical("SoftMax"), canonical("Const"), canonical("MyOp")
    ('Relu', 'Softmax', 'Constant', 'MyOp')
    """
    return _CANONICAL.get(kind.lower(), kind)
