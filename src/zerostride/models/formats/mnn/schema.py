"""Numbers of MNN's schema for the reader: ops, their parameters, element types.

From MNN's public schema (schema/default/*.fbs of alibaba/MNN, release 3.6). In FlatBuffers the
fields of a table are numbered in the order of declaration. Files of all releases agree, since new
fields are only added at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..schema_fields import Field, counted, fields

#: OpType.
OPS = counted(
    (
        0,
        "AbsVal QuantizedAdd ArgMax AsString InstanceNorm BatchToSpaceND Copy BinaryOp Bnll Cast "
        "Concat Const Convolution ConvolutionDepthwise Crop CropAndResize ImageProcess "
        "Deconvolution DeconvolutionDepthwise Dequantize DetectionOutput Dropout Eltwise ELU "
        "Unique Exp ExpandDims Fill Flatten Im2Col Gather GatherV2 Im2Seq InnerProduct Input "
        "Interp Log LRN LSTM MatMul MoE NonMaxSuppression NonMaxSuppressionV2 Normalize Pack "
        "Padding Permute Pooling Power PReLU PriorBox Proposal QuantizedAvgPool QuantizedBiasAdd "
        "QuantizedConcat QuantizedDepthwiseConv2D QuantizedLogistic RasterAndInterpolate "
        "QuantizedMaxPool Texture RasterDiff QuantizedReshape QuantizedSoftmax QuantizeMaxMin "
        "QuantizeV2 Range Rank ReduceJoin Reduction ReLU ReLU6 RequantizationRange Requantize "
        "Reshape Resize RNN ROIPooling Scale Selu Seq2Out Shape Sigmoid Size Slice SliceTf Softmax "
        "SpaceToBatchND SpatialProduct Col2Im Segment Squeeze StridedSlice CastLike StringSplit "
        "StringToNumber TanH TfQuantizedConv2D Threshold Tile TopKV2 Transpose UnaryOp Unpack "
        "Where Moments RNNSequenceGRU BatchMatMul Unsqueeze CosineSimilarity DepthToSpace "
        "SpaceToDepth ReverseSequence Pooling3D Convolution3D MatrixBandPart GatherND "
        "DetectionPostProcess UnravelIndex ScatterNd OneHot BroadcastTo Dilation2D Interp3D",
    ),
    (
        128,
        "Raster ConvertTensor ArgMin LinSpace RandomUniform TensorArray TensorArraySize "
        "TensorArrayRead TensorArrayWrite TensorArrayGather TensorArrayScatter TensorArraySplit "
        "TensorArrayConcat LSTMBlockCell Reverse ROIAlign RandomNormal TensorArrayInsert "
        "TensorArrayErase EyeLike CumSum Det CumProd ScatterElements GatherElements Svd Histogram "
        "DynamicQuant Stft",
    ),
    (
        256,
        "Plugin Select ZerosLike Broastcast SetDiff1D ReluGrad Identity PoolGrad SoftmaxGrad "
        "Conv2DBackPropFilter TrainableParam BatchNorm ConvTranspose3D ZeroGrad",
    ),
    (
        299,
        "Attention FmhaV2 Fmhca SeqLen2Spatial SplitGeLU GroupNorm LinearAttention RoPE "
        "FusedLinear GatedRMSNorm",
    ),
    (512, "Extra ConvInt8 Int8ToFloat DepthwiseConvInt8"),
    (517, "FloatToInt8 EltwiseInt8"),
    (600, "While If"),
    (603, "LayerNorm GridSample"),
)
#: BinaryOpOperation.
BINARY = counted(
    (
        0,
        "ADD SUB MUL DIV MAX_TEMP MIN_TEMP POW REALDIV MINIMUM MAXIMUM GREATER GREATER_EQUAL LESS "
        "FLOORDIV SquaredDifference EQUAL LESS_EQUAL FLOORMOD",
    ),
    (
        19,
        "MOD ATAN2 LOGICALOR NOTEQUAL BITWISE_AND BITWISE_OR BITWISE_XOR LOGICALXOR LEFTSHIFT "
        "RIGHTSHIFT MUL_SILU",
    ),
)
#: UnaryOpOperation.
UNARY = counted(
    (
        0,
        "ABS NEG FLOOR CEIL SQUARE SQRT RSQRT EXP LOG SIN COS TAN ASIN ACOS ATAN RECIPROCAL LOG1P "
        "BNLL ACOSH SINH ASINH ATANH SIGN ROUND COSH ERF ERFC ERFINV EXPM1 SIGMOID TANH HARDSWISH "
        "GELU GELU_STANDARD SILU",
    )
)
#: ReductionType.
REDUCTIONS = counted((0, "SUM ASUM SUMSQ MEAN MAXIMUM MINIMUM PROD ANY ALL"))
#: EltwiseType.
ELTWISE = counted((0, "PROD SUM MAXIMUM SUB"))
#: MNN_DATA_FORMAT.
FORMATS = counted((0, "NCHW NHWC NC4HW4 NHWC4 UNKNOWN"))
#: NetSource, the framework that a file was converted from.
SOURCES = counted((0, "CAFFE TENSORFLOW TFLITE ONNX TORCH"))
#: PadMode and PoolPadType.
PADDINGS = counted((0, "CAFFE VALID SAME"))

#: DataType, by NumPy's name; a truth value is an int32 in MNN.
DTYPES: Mapping[int, str] = MappingProxyType(
    {1: "float32", 2: "float64", 3: "int32", 4: "uint8", 5: "int16", 6: "int8", 9: "int64"}
    | {10: "int32", 17: "uint16", 19: "float16"}
)


#: OpParameter, the union's members in order from 1.
PARAMETERS = counted(
    (
        1,
        "QuantizedAdd ArgMax AsString Axis BatchNorm BinaryOp Blob CastParam Convolution2D Crop "
        "CropAndResize Dequantize DetectionOutput Eltwise ExpandDims Fill Flatten Gather GatherV2 "
        "InnerProduct Input Interp LRN LSTM MatMul NonMaxSuppressionV2 Normalize PackParam Permute "
        "Plugin Pool PRelu PriorBox Proposal QuantizedAvgPool QuantizedBiasAdd QuantizedConcat "
        "QuantizedLogistic QuantizedMatMul QuantizedMaxPool QuantizedRelu QuantizedRelu6 "
        "QuantizedReshape QuantizedSoftmax QuantizeMaxMin QuantizeV2 Range Rank ReduceJoin "
        "ReductionParam Relu Relu6 RequantizationRange Requantize Reshape Resize RoiParameters "
        "Scale Selu Size Slice SliceTf SpaceBatch SqueezeParam StridedSliceParam TensorConvertInfo "
        "TfQuantizedConv2D TopKV2 Transpose UnaryOp MomentsParam RNNParam BatchMatMulParam "
        "QuantizedFloatParam DepthSpaceParam EltwiseInt8 ReverseSequenceParam Extra Pool3D "
        "Convolution3D ELU DetectionPostProcessParam OneHotParam PadParam WhileParam IfParam "
        "RandomUniform LayerNorm TensorArray LSTMBlockCell GridSample LoopParam ImageProcessParam "
        "CumSum GroupNorm FmhaV2Param FmhcaParam AttentionParam StftParam LinearAttentionParam "
        "ShapeParam RoPEParam FusedLinearParam",
    )
)
#: The fields of parameters that become attributes, under the schema's names.
FIELDS: Mapping[str, tuple[Field, ...]] = MappingProxyType(
    {
        name: fields(words)
        for name, words in {
            "ArgMax": "outMaxVal:0 topK:1 axis:2",
            "AttentionParam": "kv_cache:0:bool:1 output_c4:5:bool",
            "Axis": "axis:0",
            "BatchMatMulParam": "adjX:0:bool adjY:1:bool",
            "BinaryOp": "opType:0 activationType:2",
            "CastParam": "srcT:0 dstT:1",
            "CumSum": "exclusive:0:bool reverse:1:bool",
            "DepthSpaceParam": "blockSize:0 mode:1:int8",
            "ELU": "alpha:0:float32",
            "Eltwise": "type:0:int8 coeff:1:float32s",
            "ExpandDims": "axis:2",
            "Flatten": "axis:0 endAxis:1",
            "Gather": "axis:3",
            "Input": "dims:0:int32s dtype:1:int32:1 dformat:2:int8:2",
            "Interp": "widthScale:0:float32 heightScale:1:float32 outputWidth:2 outputHeight:3 "
            "resizeType:4 alignCorners:5:bool halfPixelCenters:6:bool ctm:10:int8",
            "LayerNorm": "axes:0:int32s epsilon:1:float32 group:4:int32:1 useRMSNorm:6:bool",
            "MatMul": "transposeA:1:bool transposeB:2:bool",
            "OneHotParam": "axis:1:int32:-1",
            "PackParam": "axis:1",
            "PadParam": "mode:0:int8",
            "Permute": "dims:0:int32s",
            "Pool": "padX:0 padY:1 isGlobal:2:bool kernelX:3 kernelY:4 strideX:5 strideY:6 "
            "type:7:int8 padType:8:int8 ceilModel:10:bool:1 pads:11:int32s countType:12:int8",
            "Pool3D": "strides:0:int32s kernels:1:int32s pads:2:int32s type:3:int8 padType:4:int8 "
            "isGlobal:5:bool",
            "ReductionParam": "operation:0:int8 dim:1:int32s keepDims:3:bool",
            "Relu": "slope:0:float32",
            "Relu6": "minValue:0:float32:0 maxValue:1:float32:6",
            "Reshape": "dims:0:int32s dimType:1:int8",
            "ShapeParam": "hasStart:0:bool start:1 hasEnd:2:bool end:3",
            "Slice": "axis:0 slicePoints:1:int32s sourceType:2:int8",
            "SqueezeParam": "squeezeDims:0:int32s",
            "StftParam": "n_fft:0 hop_length:1 abs:2:bool:1",
            "StridedSliceParam": "beginMask:2 endMask:3 ellipsisMask:4 newAxisMask:5 "
            "shrinkAxisMask:6 fromType:7",
            "TensorConvertInfo": "source:0:int8 dest:1:int8",
            "UnaryOp": "opType:0",
        }.items()
    }
)
#: Convolution2DCommon, the first field of Convolution2D.
CONVOLUTION = fields(
    "padX:0 padY:1 kernelX:2:int32:1 kernelY:3:int32:1 strideX:4:int32:1 strideY:5:int32:1 "
    "dilateX:6:int32:1 dilateY:7:int32:1 padMode:8:int8 group:9:int32:1 outputCount:10 "
    "inputCount:11 relu:12:bool relu6:13:bool pads:14:int32s "
    "outPads:15:int32s hasOutputShape:16:bool"
)
#: Attributes whose numbers have names: parameter and field to the names.
NAMES: Mapping[tuple[str, str], Mapping[int, str]] = MappingProxyType(
    {
        ("BinaryOp", "opType"): BINARY,
        ("UnaryOp", "opType"): UNARY,
        ("ReductionParam", "operation"): REDUCTIONS,
        ("Eltwise", "type"): ELTWISE,
        ("Input", "dformat"): FORMATS,
        ("Reshape", "dimType"): FORMATS,
        ("TensorConvertInfo", "source"): FORMATS,
        ("TensorConvertInfo", "dest"): FORMATS,
        ("Slice", "sourceType"): SOURCES,
        ("Convolution2D", "padMode"): PADDINGS,
        ("Pool", "padType"): PADDINGS,
        ("Pool3D", "padType"): PADDINGS,
    }
)
