"""Numbers of LiteRT's schema for the reader: ops, their options, element types.

From LiteRT's public schema (tflite/schema/schema.fbs of google-ai-edge/LiteRT, release 2.3). In
FlatBuffers the fields of a table are numbered in the order of declaration. Files of all releases
agree, since new fields and ops are only added at the end. tests/conformance/test_tflite_schema.py
compares every number with the schema of the package ai-edge-litert.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..flatbuffer import Table
from ..schema_fields import Field, counted, fields

#: BuiltinOperator, in order from 0.
BUILTINS = counted(
    (
        0,
        "ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE "
        "EMBEDDING_LOOKUP FLOOR FULLY_CONNECTED HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D "
        "LOCAL_RESPONSE_NORMALIZATION LOGISTIC LSH_PROJECTION LSTM MAX_POOL_2D MUL RELU "
        "RELU_N1_TO_1 RELU6 RESHAPE RESIZE_BILINEAR RNN SOFTMAX SPACE_TO_DEPTH SVDF TANH "
        "CONCAT_EMBEDDINGS SKIP_GRAM CALL CUSTOM EMBEDDING_LOOKUP_SPARSE PAD "
        "UNIDIRECTIONAL_SEQUENCE_RNN GATHER BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND TRANSPOSE MEAN "
        "SUB DIV SQUEEZE UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE BIDIRECTIONAL_SEQUENCE_RNN "
        "EXP TOPK_V2 SPLIT LOG_SOFTMAX DELEGATE BIDIRECTIONAL_SEQUENCE_LSTM CAST PRELU MAXIMUM "
        "ARG_MAX MINIMUM LESS NEG PADV2 GREATER GREATER_EQUAL LESS_EQUAL SELECT SLICE SIN "
        "TRANSPOSE_CONV SPARSE_TO_DENSE TILE EXPAND_DIMS EQUAL NOT_EQUAL LOG SUM SQRT RSQRT "
        "SHAPE POW ARG_MIN FAKE_QUANT REDUCE_PROD REDUCE_MAX PACK LOGICAL_OR ONE_HOT LOGICAL_AND "
        "LOGICAL_NOT UNPACK REDUCE_MIN FLOOR_DIV REDUCE_ANY SQUARE ZEROS_LIKE FILL FLOOR_MOD "
        "RANGE RESIZE_NEAREST_NEIGHBOR LEAKY_RELU SQUARED_DIFFERENCE MIRROR_PAD ABS SPLIT_V "
        "UNIQUE CEIL REVERSE_V2 ADD_N GATHER_ND COS WHERE RANK ELU REVERSE_SEQUENCE MATRIX_DIAG "
        "QUANTIZE MATRIX_SET_DIAG ROUND HARD_SWISH IF WHILE NON_MAX_SUPPRESSION_V4 "
        "NON_MAX_SUPPRESSION_V5 SCATTER_ND SELECT_V2 DENSIFY SEGMENT_SUM BATCH_MATMUL "
        "PLACEHOLDER_FOR_GREATER_OP_CODES CUMSUM CALL_ONCE BROADCAST_TO RFFT2D CONV_3D IMAG REAL "
        "COMPLEX_ABS HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE REDUCE_ALL "
        "CONV_3D_TRANSPOSE VAR_HANDLE READ_VARIABLE ASSIGN_VARIABLE BROADCAST_ARGS "
        "RANDOM_STANDARD_NORMAL BUCKETIZE RANDOM_UNIFORM MULTINOMIAL GELU DYNAMIC_UPDATE_SLICE "
        "RELU_0_TO_1 UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_SUM ATAN2 "
        "UNSORTED_SEGMENT_MIN SIGN BITCAST BITWISE_XOR RIGHT_SHIFT STABLEHLO_LOGISTIC "
        "STABLEHLO_ADD STABLEHLO_DIVIDE STABLEHLO_MULTIPLY STABLEHLO_MAXIMUM STABLEHLO_RESHAPE "
        "STABLEHLO_CLAMP STABLEHLO_CONCATENATE STABLEHLO_BROADCAST_IN_DIM STABLEHLO_CONVOLUTION "
        "STABLEHLO_SLICE STABLEHLO_CUSTOM_CALL STABLEHLO_REDUCE STABLEHLO_ABS STABLEHLO_AND "
        "STABLEHLO_COSINE STABLEHLO_EXPONENTIAL STABLEHLO_FLOOR STABLEHLO_LOG STABLEHLO_MINIMUM "
        "STABLEHLO_NEGATE STABLEHLO_OR STABLEHLO_POWER STABLEHLO_REMAINDER STABLEHLO_RSQRT "
        "STABLEHLO_SELECT STABLEHLO_SUBTRACT STABLEHLO_TANH STABLEHLO_SCATTER STABLEHLO_COMPARE "
        "STABLEHLO_CONVERT STABLEHLO_DYNAMIC_SLICE STABLEHLO_DYNAMIC_UPDATE_SLICE STABLEHLO_PAD "
        "STABLEHLO_IOTA STABLEHLO_DOT_GENERAL STABLEHLO_REDUCE_WINDOW STABLEHLO_SORT "
        "STABLEHLO_WHILE STABLEHLO_GATHER STABLEHLO_TRANSPOSE DILATE STABLEHLO_RNG_BIT_GENERATOR "
        "REDUCE_WINDOW STABLEHLO_COMPOSITE STABLEHLO_SHIFT_LEFT STABLEHLO_CBRT STABLEHLO_CASE",
    )
)
#: Builtin op to its number.
NUMBERS: Mapping[str, int] = MappingProxyType({name: number for number, name in BUILTINS.items()})
#: The op of an operator code with a name of its own.
CUSTOM = "CUSTOM"
#: BuiltinOptions and BuiltinOptions2, unions: the members in order from 1.
UNION, UNION2 = (
    counted(
        (
            1,
            "Conv2DOptions DepthwiseConv2DOptions ConcatEmbeddingsOptions LSHProjectionOptions "
            "Pool2DOptions SVDFOptions RNNOptions FullyConnectedOptions SoftmaxOptions "
            "ConcatenationOptions AddOptions L2NormOptions LocalResponseNormalizationOptions "
            "LSTMOptions ResizeBilinearOptions CallOptions ReshapeOptions SkipGramOptions "
            "SpaceToDepthOptions EmbeddingLookupSparseOptions MulOptions PadOptions "
            "GatherOptions BatchToSpaceNDOptions SpaceToBatchNDOptions TransposeOptions "
            "ReducerOptions SubOptions DivOptions SqueezeOptions SequenceRNNOptions "
            "StridedSliceOptions ExpOptions TopKV2Options SplitOptions LogSoftmaxOptions "
            "CastOptions DequantizeOptions MaximumMinimumOptions ArgMaxOptions LessOptions "
            "NegOptions PadV2Options GreaterOptions GreaterEqualOptions LessEqualOptions "
            "SelectOptions SliceOptions TransposeConvOptions SparseToDenseOptions TileOptions "
            "ExpandDimsOptions EqualOptions NotEqualOptions ShapeOptions PowOptions "
            "ArgMinOptions FakeQuantOptions PackOptions LogicalOrOptions OneHotOptions "
            "LogicalAndOptions LogicalNotOptions UnpackOptions FloorDivOptions SquareOptions "
            "ZerosLikeOptions FillOptions BidirectionalSequenceLSTMOptions "
            "BidirectionalSequenceRNNOptions UnidirectionalSequenceLSTMOptions FloorModOptions "
            "RangeOptions ResizeNearestNeighborOptions LeakyReluOptions SquaredDifferenceOptions "
            "MirrorPadOptions AbsOptions SplitVOptions UniqueOptions ReverseV2Options "
            "AddNOptions GatherNdOptions CosOptions WhereOptions RankOptions "
            "ReverseSequenceOptions MatrixDiagOptions QuantizeOptions MatrixSetDiagOptions "
            "HardSwishOptions IfOptions WhileOptions DepthToSpaceOptions "
            "NonMaxSuppressionV4Options NonMaxSuppressionV5Options ScatterNdOptions "
            "SelectV2Options DensifyOptions SegmentSumOptions BatchMatMulOptions CumsumOptions "
            "CallOnceOptions BroadcastToOptions Rfft2dOptions Conv3DOptions HashtableOptions "
            "HashtableFindOptions HashtableImportOptions HashtableSizeOptions VarHandleOptions "
            "ReadVariableOptions AssignVariableOptions RandomOptions BucketizeOptions "
            "GeluOptions DynamicUpdateSliceOptions UnsortedSegmentProdOptions "
            "UnsortedSegmentMaxOptions UnsortedSegmentMinOptions UnsortedSegmentSumOptions "
            "ATan2Options SignOptions BitcastOptions BitwiseXorOptions RightShiftOptions",
        )
    ),
    counted(
        (
            1,
            "StablehloConcatenateOptions StablehloBroadcastInDimOptions StablehloSliceOptions "
            "StablehloConvolutionOptions StablehloCustomCallOptions StablehloReduceOptions "
            "StablehloScatterOptions StablehloCompareOptions StablehloDynamicSliceOptions "
            "StablehloPadOptions StablehloIotaOptions StablehloDotGeneralOptions "
            "StablehloReduceWindowOptions StablehloSortOptions StablehloWhileOptions "
            "StablehloGatherOptions StablehloTransposeOptions DilateOptions "
            "StablehloRngBitGeneratorOptions ReduceWindowOptions StableHLOCompositeOptions "
            "StablehloShiftLeftOptions StablehloCaseOptions",
        )
    ),
)
#: TensorType, by NumPy's name. Strings, resources and variants have no numbers.
DTYPES: Mapping[int, str] = MappingProxyType(
    {0: "float32", 1: "float16", 2: "int32", 3: "uint8", 4: "int64", 6: "bool", 7: "int16"}
    | {8: "complex64", 9: "int8", 10: "float64", 11: "complex128", 12: "uint64", 15: "uint32"}
    | {16: "uint16", 17: "int4", 18: "bfloat16", 19: "int2", 20: "uint4"}
    | {21: "float8_e4m3fn", 22: "float8_e5m2"}
)
#: ActivationFunctionType, the activation inside an op.
ACTIVATIONS = counted((0, "NONE RELU RELU_N1_TO_1 RELU6 TANH SIGN_BIT"))
#: Padding.
PADDINGS = counted((0, "SAME VALID"))

#: The options whose fields become attributes, under the schema's names: the fields, by number.
OPTIONS: Mapping[str, tuple[Field, ...]] = MappingProxyType(
    {
        name: fields(words)
        for name, words in {
            "Conv2DOptions": (
                "padding:0:int8 stride_w:1 stride_h:2 fused_activation_function:3:int8 "
                "dilation_w_factor:4:int32:1 dilation_h_factor:5:int32:1"
            ),
            "DepthwiseConv2DOptions": (
                "padding:0:int8 stride_w:1 stride_h:2 depth_multiplier:3 "
                "fused_activation_function:4:int8 dilation_w_factor:5:int32:1 "
                "dilation_h_factor:6:int32:1"
            ),
            "Pool2DOptions": (
                "padding:0:int8 stride_w:1 stride_h:2 filter_width:3 filter_height:4 "
                "fused_activation_function:5:int8"
            ),
            "FullyConnectedOptions": (
                "fused_activation_function:0:int8 weights_format:1:int8 keep_num_dims:2:bool"
            ),
            "SoftmaxOptions": "beta:0:float32",
            "ConcatenationOptions": "axis:0 fused_activation_function:1:int8",
            "AddOptions": "fused_activation_function:0:int8 pot_scale_int16:1:bool:1",
            "L2NormOptions": "fused_activation_function:0:int8",
            "LocalResponseNormalizationOptions": (
                "radius:0 bias:1:float32 alpha:2:float32 beta:3:float32"
            ),
            "ResizeBilinearOptions": "align_corners:2:bool half_pixel_centers:3:bool",
            "CallOptions": "subgraph:0:uint32",
            "ReshapeOptions": "new_shape:0:int32s",
            "SpaceToDepthOptions": "block_size:0",
            "MulOptions": "fused_activation_function:0:int8",
            "GatherOptions": "axis:0 batch_dims:1",
            "ReducerOptions": "keep_dims:0:bool",
            "SubOptions": "fused_activation_function:0:int8 pot_scale_int16:1:bool:1",
            "DivOptions": "fused_activation_function:0:int8",
            "SqueezeOptions": "squeeze_dims:0:int32s",
            "StridedSliceOptions": (
                "begin_mask:0 end_mask:1 ellipsis_mask:2 new_axis_mask:3 shrink_axis_mask:4 "
                "offset:5:bool"
            ),
            "SplitOptions": "num_splits:0",
            "CastOptions": "in_data_type:0:int8 out_data_type:1:int8",
            "ArgMaxOptions": "output_type:0:int8",
            "TransposeConvOptions": (
                "padding:0:int8 stride_w:1 stride_h:2 fused_activation_function:3:int8"
            ),
            "ShapeOptions": "out_type:0:int8",
            "ArgMinOptions": "output_type:0:int8",
            "FakeQuantOptions": "min:0:float32 max:1:float32 num_bits:2 narrow_range:3:bool",
            "PackOptions": "values_count:0 axis:1",
            "OneHotOptions": "axis:0",
            "UnpackOptions": "num:0 axis:1",
            "ResizeNearestNeighborOptions": "align_corners:0:bool half_pixel_centers:1:bool",
            "LeakyReluOptions": "alpha:0:float32",
            "MirrorPadOptions": "mode:0:int8",
            "SplitVOptions": "num_splits:0",
            "ReverseSequenceOptions": "seq_dim:0 batch_dim:1",
            "IfOptions": "then_subgraph_index:0 else_subgraph_index:1",
            "WhileOptions": "cond_subgraph_index:0 body_subgraph_index:1",
            "DepthToSpaceOptions": "block_size:0",
            "BatchMatMulOptions": "adj_x:0:bool adj_y:1:bool",
            "CumsumOptions": "exclusive:0:bool reverse:1:bool",
            "CallOnceOptions": "init_subgraph_index:0",
            "GeluOptions": "approximate:0:bool",
            "StablehloConcatenateOptions": "dimension:0:int64",
            "StablehloBroadcastInDimOptions": "broadcast_dimensions:0:int64s",
            "StablehloReduceOptions": "body_subgraph_index:1",
            "StablehloScatterOptions": "update_computation_subgraph_index:6",
            "StablehloCompareOptions": "comparison_direction:0:uint32",
            "StablehloReduceWindowOptions": "body_subgraph_index:5",
            "StablehloSortOptions": "comparator_subgraph_index:2",
            "StablehloWhileOptions": "cond_subgraph_index:0 body_subgraph_index:1",
            "StablehloTransposeOptions": "permutation:0:int64s",
            "StableHLOCompositeOptions": "name:0:string decomposition_subgraph_index:1",
            "StablehloCaseOptions": "branch_subgraph_indices:0:int32s",
        }.items()
    }
)
#: Ops whose options are not named after them.
_SHARED: Mapping[str, str] = {
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"), "Pool2DOptions"),
    **dict.fromkeys(("MAXIMUM", "MINIMUM"), "MaximumMinimumOptions"),
    **dict.fromkeys(("MEAN", "SUM"), "ReducerOptions"),
    "L2_NORMALIZATION": "L2NormOptions",
}
_BY_NAME = {
    name.lower().removesuffix("options"): name
    for union in (UNION, UNION2)
    for name in union.values()
}


def options_of(op: str) -> str | None:
    """The options that the interpreter reads for a builtin op; None if it reads none.

    >>> options_of("ADD"), options_of("REDUCE_MAX"), options_of("TANH")
    ('AddOptions', 'ReducerOptions', None)
    """
    if op.startswith("REDUCE_") and op != "REDUCE_WINDOW":
        return "ReducerOptions"
    return _SHARED.get(op) or _BY_NAME.get(op.lower().replace("_", ""))


#: The tables that an edit writes: every field of the release, by number. "offset": a list, a string
#: or a table.
MODEL = fields(
    "version:0:uint32 operator_codes:1:offset subgraphs:2:offset description:3:offset "
    "buffers:4:offset metadata_buffer:5:offset metadata:6:offset signature_defs:7:offset "
    "external_buffer_groups:8:offset external_buffers:9:offset"
)
SUBGRAPH = fields(
    "tensors:0:offset inputs:1:offset outputs:2:offset operators:3:offset name:4:offset "
    "debug_metadata_index:5:int32:-1"
)
OPERATOR = fields(
    "opcode_index:0:uint32 inputs:1:offset outputs:2:offset builtin_options_type:3:uint8 "
    "builtin_options:4:offset custom_options:5:offset custom_options_format:6:int8 "
    "mutating_variable_inputs:7:offset intermediates:8:offset large_custom_options_offset:9:uint64 "
    "large_custom_options_size:10:uint64 builtin_options_2_type:11:uint8 "
    "builtin_options_2:12:offset debug_metadata_index:13:int32:-1"
)
TENSOR = fields(
    "shape:0:offset type:1:int8 buffer:2:uint32 name:3:offset quantization:4:offset "
    "is_variable:5:bool sparsity:6:offset shape_signature:7:offset has_rank:8:bool "
    "variant_tensors:9:offset external_buffer:10:uint32"
)
QUANTIZATION = fields(
    "min:0:offset max:1:offset scale:2:offset zero_point:3:offset details_type:4:uint8 "
    "details:5:offset quantized_dimension:6:int32"
)
OPERATOR_CODE = fields(
    "deprecated_builtin_code:0:int8 custom_code:1:offset version:2:int32:1 builtin_code:3:int32"
)
BUFFER = fields("data:0:offset offset:1:uint64 size:2:uint64")


def code_of(table: Table) -> int:
    """The number of an operator code's op: old files have it in a byte alone."""
    return max(int(table.number(0, "int8")), int(table.number(3, "int32")))
