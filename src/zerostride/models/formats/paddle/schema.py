"""Tables of Paddle's formats: element types, and the operators of old programs in today's words.

An old program (.pdmodel) calls its operators otherwise than a PIR program (.json) does: an op has
named slots, and numbers such as a shape may be an attribute, one tensor or a list of tensors. A row
of `OLD` gives the PIR op of the same meaning and the source of each of its operands, so that one
table of sites and one of translations serve both.
Source: paddle/phi/ops/yaml/op_compat.yaml, ops.yaml, and framework.proto of Paddle 3.3, and runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ...ir.graph import Node

#: The domain of Paddle's ops, the engine's name.
DOMAIN = "paddle"
#: `Node.version` of an op: of a PIR program, and of an old one.
PIR, PROGRAM = 1, 0

#: framework.proto, VarType.Type, by NumPy's names.
DTYPES: Mapping[int, str] = MappingProxyType(
    {0: "bool", 1: "int16", 2: "int32", 3: "int64", 4: "float16", 5: "float32", 6: "float64"}
    | {20: "uint8", 21: "int8", 22: "bfloat16", 23: "complex64", 24: "complex128"}
    | {36: "uint16", 37: "uint32", 38: "uint64"}
)
#: Types of PIR's builtin dialect, without the dialect's number.
PIR_TYPES: Mapping[str, str] = MappingProxyType(
    {"t_bool": "bool", "t_ui8": "uint8", "t_i8": "int8", "t_i16": "int16", "t_i32": "int32"}
    | {"t_i64": "int64", "t_f16": "float16", "t_bf16": "bfloat16", "t_f32": "float32"}
    | {"t_f64": "float64", "t_c64": "complex64", "t_c128": "complex128"}
)


@dataclass(frozen=True, slots=True)
class Old:
    """A row of `OLD`.

    Attributes:
        op: the PIR op of the same meaning.
        operands: the source of each operand, in PIR's order: alternatives, the first that is
            filled. "X": the tensor of a slot; "X*": every tensor of a slot; "X+": the tensors of a
            slot joined to one list of numbers; "@a": an attribute that is numbers.
        outputs: the slots of results, in PIR's order.
        renamed: attributes by PIR's name: the old name.
    """

    op: str
    operands: tuple[tuple[str, ...], ...]
    outputs: tuple[str, ...]
    renamed: Mapping[str, str]


def _row(words: str) -> tuple[str, Old]:
    """The row of "reshape2 = reshape(X, Shape|ShapeTensor+|@shape) -> Out axis:dim"."""
    name, rest = words.split(" = ")
    op, rest = rest.split("(")
    operands, rest = rest.split(") -> ")
    outputs, *renamed = rest.split()
    return name, Old(
        op,
        tuple(tuple(word.strip().split("|")) for word in operands.split(",")),
        tuple(outputs.split(",")),
        MappingProxyType(dict(pair.split(":") for pair in renamed)),
    )


_UNARY = (
    "abs acos acosh asin asinh atan atanh ceil cos cosh erf exp expm1 floor log log1p log2 log10 "
    "logsigmoid mish reciprocal relu relu6 round rsqrt selu sigmoid sign silu sin sinh softplus "
    "softsign sqrt square tan tanh tanh_shrink trunc logical_not bitwise_not gelu celu elu "
    "hard_shrink softshrink thresholded_relu leaky_relu swish stanh increment softmax log_softmax "
    "tril_triu assign cast shape size"
)
_PAIRS = (
    "equal not_equal less_than less_equal greater_than greater_equal logical_and logical_or "
    "logical_xor bitwise_and bitwise_or bitwise_xor"
)
_ELEMENTWISE = (
    "add:add sub:subtract mul:multiply div:divide floordiv:floor_divide mod:remainder "
    "pow:elementwise_pow max:maximum min:minimum fmax:fmax fmin:fmin heaviside:heaviside"
)
_REDUCTIONS = "mean sum max min prod all any amax amin logsumexp"
_NEW_NAMES = {
    "hard_shrink": "hardshrink",
    "size": "numel",
    "tril_triu": "tril_triu",
    "logical_not": "logical_not",
}
_RENAMED = {
    "leaky_relu": " negative_slope:alpha",
    "cast": " dtype:out_dtype",
    "shape": "",
    "size": "",
}
_INPUT_SLOT = {"shape": "Input", "size": "Input"}

_ROWS = (
    *(
        f"{name} = {_NEW_NAMES.get(name, name)}({_INPUT_SLOT.get(name, 'X')}) -> Out"
        + _RENAMED.get(name, "")
        for name in _UNARY.split()
    ),
    *(f"{name} = {name}(X, Y) -> Out" for name in _PAIRS.split()),
    *("elementwise_{} = {}(X, Y) -> Out".format(*pair.split(":")) for pair in _ELEMENTWISE.split()),
    *(f"reduce_{name} = {name}(X, @dim) -> Out keepdim:keep_dim" for name in _REDUCTIONS.split()),
    "logsumexp = logsumexp(X, @axis) -> Out",
    "atan2 = atan2(X1, X2) -> Out",
    "bitwise_left_shift = bitwise_left_shift(x, y) -> out",
    "bitwise_right_shift = bitwise_right_shift(x, y) -> out",
    "copysign = copysign(x, y) -> out",
    "nextafter = nextafter(x, y) -> out",
    "isnan_v2 = isnan(X) -> Out",
    "isinf_v2 = isinf(X) -> Out",
    "isfinite_v2 = isfinite(X) -> Out",
    "hard_swish = hardswish(X) -> Out",
    "hard_sigmoid = hardsigmoid(X) -> Out",
    "brelu = hardtanh(X) -> Out",
    "pow = pow(X) -> Out y:factor",
    "mean = mean_all(X) -> Out",
    "clip = clip(X, Min|@min, Max|@max) -> Out",
    "scale = scale(X, ScaleTensor|@scale) -> Out",
    "sum = add_n(X*) -> Out",
    "where = where(Condition, X, Y) -> Out",
    "prelu = prelu(X, Alpha) -> Out",
    "matmul_v2 = matmul(X, Y) -> Out transpose_x:trans_x transpose_y:trans_y",
    "matmul = matmul(X, Y) -> Out transpose_x:transpose_X transpose_y:transpose_Y",
    "mul = matmul_with_flatten(X, Y) -> Out",
    "bmm = bmm(X, Y) -> Out",
    "addmm = addmm(Input, X, Y) -> Out beta:Beta alpha:Alpha",
    "batch_norm = batch_norm(X, Mean, Variance, Scale, Bias) -> Y",
    "sync_batch_norm = batch_norm(X, Mean, Variance, Scale, Bias) -> Y",
    "layer_norm = layer_norm(X, Scale, Bias) -> Y",
    "instance_norm = instance_norm(X, Scale, Bias) -> Y",
    "group_norm = group_norm(X, Scale, Bias) -> Y",
    "affine_channel = affine_channel(X, Scale, Bias) -> Out",
    "conv2d = conv2d(Input, Filter) -> Output",
    "depthwise_conv2d = depthwise_conv2d(Input, Filter) -> Output",
    "conv3d = conv3d(Input, Filter) -> Output",
    "conv2d_transpose = conv2d_transpose(Input, Filter, @output_size) -> Output",
    "depthwise_conv2d_transpose = conv2d_transpose(Input, Filter, @output_size) -> Output",
    "pool2d = pool2d(X, @ksize) -> Out",
    "pool3d = pool3d(X) -> Out kernel_size:ksize",
    "max_pool2d_with_index = max_pool2d_with_index(X) -> Out,Mask kernel_size:ksize",
    "reshape2 = reshape(X, ShapeTensor+|Shape|@shape) -> Out",
    "reshape = reshape(X, ShapeTensor+|Shape|@shape) -> Out",
    "transpose2 = transpose(X) -> Out perm:axis",
    "transpose = transpose(X) -> Out perm:axis",
    "squeeze2 = squeeze(X, @axes) -> Out",
    "squeeze = squeeze(X, @axes) -> Out",
    "unsqueeze2 = unsqueeze(X, AxesTensorList+|AxesTensor|@axes) -> Out",
    "unsqueeze = unsqueeze(X, AxesTensorList+|AxesTensor|@axes) -> Out",
    "flatten_contiguous_range = flatten(X) -> Out",
    "flatten2 = flatten2(X) -> Out",
    "flatten = flatten2(X) -> Out",
    "concat = concat(X*, AxisTensor|@axis) -> Out",
    "stack = stack(X*) -> Y",
    "split = split(X, SectionsTensorList+|@sections, AxisTensor|@axis) -> Out",
    "unbind = unbind(X) -> Out",
    "unstack = unstack(X) -> Y",
    "slice = slice(Input, StartsTensorList+|StartsTensor|@starts, "
    "EndsTensorList+|EndsTensor|@ends) -> Out",
    "strided_slice = strided_slice(Input, StartsTensorList+|StartsTensor|@starts, "
    "EndsTensorList+|EndsTensor|@ends, StridesTensorList+|StridesTensor|@strides) -> Out",
    "gather = gather(X, Index, Axis|@axis) -> Out",
    "gather_nd = gather_nd(X, Index) -> Out",
    "index_select = index_select(X, Index) -> Out axis:dim",
    "take_along_axis = take_along_axis(Input, Index) -> Result axis:Axis",
    "lookup_table_v2 = embedding(Ids, W) -> Out",
    "expand_v2 = expand(X, expand_shapes_tensor+|Shape|@shape) -> Out",
    "expand_as_v2 = expand_as(X, Y) -> Out",
    "broadcast_tensors = broadcast_tensors(X*) -> Out",
    "expand = tile(X, expand_times_tensor+|ExpandTimes|@expand_times) -> Out",
    "tile = tile(X, repeat_times_tensor+|RepeatTimes|@repeat_times) -> Out",
    "meshgrid = meshgrid(X*) -> Out",
    "range = arange(Start, End, Step) -> Out",
    "fill_constant = full_with_tensor(ValueTensor|@value, ShapeTensorList+|ShapeTensor|@shape)"
    " -> Out",
    "fill_any_like = full_like(X, @value) -> Out",
    "fill_zeros_like = full_like(X, @value) -> Out",
    "assign_value = assign_value() -> Out",
    "arg_max = argmax(X, @axis) -> Out keepdims:keepdims",
    "arg_min = argmin(X, @axis) -> Out keepdims:keepdims",
    "argsort = argsort(X) -> Out,Indices",
    "top_k_v2 = topk(X, K|@k) -> Out,Indices",
    "cumsum = cumsum(X, @axis) -> Out",
    "where_index = nonzero(Condition) -> Out",
    "one_hot_v2 = one_hot(X, depth_tensor|@depth) -> Out",
    "flip = flip(X) -> Out",
    "dropout = dropout(X) -> Out is_test:is_test p:dropout_prob mode:dropout_implementation",
    "pad = pad(X) -> Out",
    "pad2d = pad2d(X) -> Out",
    "pad3d = pad3d(X, Paddings|@paddings) -> Out pad_value:value",
    "pixel_shuffle = pixel_shuffle(X) -> Out",
    "p_norm = p_norm(X) -> Out",
    *(
        f"{name}_interp_v2 = {name}_interp(X, OutSize|, SizeTensor+|, Scale|) -> Out"
        for name in ("nearest", "bilinear", "bicubic", "linear", "trilinear")
    ),
)
#: Ops of old programs that have the attribute `axis` and do not read it (see the engine's row).
UNPLACED = frozenset(
    {"logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor"}
    | {"fmax", "fmin", "heaviside"}
)
#: The operators of old programs.
OLD: Mapping[str, Old] = MappingProxyType(dict(map(_row, _ROWS)))


def canonical(node: Node) -> str:
    """The PIR name of a node's op; "" if an old program's op is in no row.

    A trailing underscore, which marks an op that reuses its operand's memory, is left out.
    """
    if node.version == PROGRAM:
        row = OLD.get(node.op)
        return "" if row is None else row.op
    return node.op.rstrip("_")


def axis_of(node: Node) -> int | None:
    """The axis at which an op places its smaller operand; None if the file has no number."""
    axis = -1 if canonical(node) in UNPLACED else node.attributes.get("axis", -1)
    return axis if type(axis) is int else None
