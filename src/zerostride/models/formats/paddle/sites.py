"""The ops of a Paddle model that may broadcast, their operands and rules.

The rules are those of Paddle itself in static mode: the engine table's row for Paddle, and
:mod:`...transport.compound_engines` for compound ops. Only ops of old programs have an `axis`.
`ROWS` has every op that may broadcast, including those that are not modelled; an op that is in no
table here is named and not judged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from ....core.alignment import Rule
from ....core.rules import RULES
from ....engines.planning import rule_row
from ....ops import find_op
from ...ir.graph import FileSize, Node
from ...ir.site import (
    AT_AXIS,
    ONE_NUMBER,
    Kind,
    Operand,
    Site,
    batches,
    input_at,
    not_modelled,
    operand_of,
    present_operands,
    unjudged,
)
from ...onnx_ops.sites import find_site as find_onnx_site
from ...transport.compound_engines import CARRIERS
from ..site_rows import choice
from .lowering import ROWS as LOWERED
from .schema import DOMAIN, axis_of, canonical
from .sizes import SIZES

#: Ops of the op table that share a name in ONNX; they keep the table's name.
_AMBIGUOUS = frozenset({"remainder", "fmod", "bitwise_left_shift", "bitwise_right_shift"})
_SAME = (
    "equal not_equal less_equal greater_equal logical_and logical_or logical_xor bitwise_and "
    "bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift atan2 copysign nextafter"
)
#: PIR's names of ops of two operands; the op table has those of old programs.
_NAMES: Mapping[str, str] = MappingProxyType(
    {"add": "add", "subtract": "subtract", "multiply": "multiply", "divide": "divide"}
    | {"floor_divide": "floor_divide", "remainder": "remainder", "elementwise_pow": "pow"}
    | {"maximum": "maximum", "minimum": "minimum", "fmax": "fmax", "fmin": "fmin"}
    | {"heaviside": "heaviside", "less_than": "less", "greater_than": "greater"}
    | {name: name for name in _SAME.split()}
)


def find_site(node: Node) -> Site | None:
    """The site of a node, or None if it cannot broadcast; an ONNX node has ONNX's site."""
    if node.domain == "":
        return find_onnx_site(node)
    name = canonical(node) if node.domain == DOMAIN else ""
    if name in ROWS:
        return ROWS[name](node)
    if name in LOWERED or name in SIZES or name in STILL or node.bodies:
        return None
    return unjudged(node, Kind.CUSTOM)


def word(name: str) -> str:
    """The name of an op of two operands in ONNX, or in the op table if ONNX lacks it.

    >>> word("add"), word("elementwise_pow"), word("remainder"), word("floor_divide")
    ('Add', 'Pow', 'remainder', 'floor_divide')
    """
    row = find_op(_NAMES[name])
    if row.name in _AMBIGUOUS:
        return row.name
    return next((str(onnx) for onnx in row.names.get("onnx") or ()), row.name)


def _rule(op: str | None = None, *, to_target: bool = False) -> Rule:
    return rule_row(None, engine="paddle", op=op, to_target=to_target)


def _own(op: str) -> Rule:
    return CARRIERS[op]["paddle"][0].rule


def _binary(node: Node) -> Site:
    """Two operands, by Paddle's rule; an old program's op lays the smaller one at `axis`."""
    name, operands = canonical(node), present_operands(node)
    axis = axis_of(node)
    if len(operands) != 2 or axis is None:
        return not_modelled(node)
    rule = _rule(_NAMES[name])
    attributes: dict[str, Any] = {"axis": axis} if "axis" in rule.attributes else {}
    return Site(node, Kind.ELEMENTWISE, operands, rule, attributes, word(name))


def _where(node: Node) -> Site:
    return choice(node, "paddle")


def _prelu(node: Node) -> Site:
    """One slope, or one for each channel: a vector, which the function has since release 2.0."""
    operands = present_operands(node)
    known = node.attributes.get("mode", "all") in ("all", "channel")
    known = known and node.attributes.get("data_format", "NCHW") == "NCHW"
    if len(operands) != 2 or not known or len(operands[1].shape or ()) > 1:
        return not_modelled(node)
    return Site(node, Kind.PRELU, operands, _rule("prelu"), {}, "PRelu")


def _expand(node: Node) -> Site:
    """Data and target; −1 keeps the data's size. The output's shape replaces an unknown target."""
    data, target = input_at(node, 0), input_at(node, 1)
    if data is None or target is None:
        return not_modelled(node)
    shape: tuple[FileSize, ...] | None = target.content
    sizes = data.shape
    if shape is not None and -1 in shape:
        first = len(shape) - len(sizes) if sizes is not None else 0
        shape = (
            None
            if sizes is None or first < 0
            else tuple(
                sizes[k - first] if size == -1 and k >= first else size
                for k, size in enumerate(shape)
            )
        )
    if shape is None and node.outputs and node.outputs[0].known:
        shape = node.outputs[0].shape
    operands = (operand_of(data), Operand(target.name, shape, True))
    return Site(node, Kind.EXPAND, operands, _rule(to_target=True), {}, "Expand")


def _expand_as(node: Node) -> Site:
    """Data and the tensor whose shape is the target."""
    operands = present_operands(node)
    if len(operands) != 2:
        return not_modelled(node)
    target = replace(operands[1], tensor=None)
    return Site(node, Kind.EXPAND, (operands[0], target), _rule(to_target=True), {}, "Expand")


def _identical(node: Node) -> Site | None:
    """A sum of tensors of one shape."""
    operands = present_operands(node)
    if len(operands) < 2:
        return None
    return Site(node, Kind.ELEMENTWISE, operands, RULES["none"], {}, "Sum")


def _clip(node: Node) -> Site | None:
    operands = present_operands(node)
    if len(operands) < 2:
        return None
    return Site(node, Kind.CLIP, operands, ONE_NUMBER, {}, "Clip")


def _product(node: Node) -> Site | None:
    """The axes before the last two."""
    parts = present_operands(node)[:2]
    if len(parts) < 2:
        return not_modelled(node)
    batch = batches(parts)
    if batch is None:
        return None
    plain = not any(node.attributes.get(key) for key in ("transpose_x", "transpose_y"))
    plain = plain and node.attributes.get("alpha", 1.0) == 1.0
    return Site(node, Kind.MATMUL, batch, _own("MatMul"), {}, "MatMul", plain)


def _addmm(node: Node) -> Site | None:
    """The addend broadcasts to the product."""
    addend, a, b = (input_at(node, k) for k in range(3))
    if addend is None or a is None or b is None:
        return not_modelled(node)
    shape = None
    if a.shape is not None and b.shape is not None and len(a.shape) == len(b.shape) == 2:
        shape = (a.shape[0], b.shape[1])
    product = Operand(f"{a.name}@{b.name}", shape, tensor=a)
    plain = node.attributes.get("alpha", 1.0) == node.attributes.get("beta", 1.0) == 1.0
    return Site(node, Kind.GEMM, (product, operand_of(addend)), _own("Gemm"), {}, "Gemm", plain)


def _channel(op: str, order: tuple[int, ...]) -> Callable[[Node], Site | None]:
    """A row for vectors along the channels: `order` is that of ONNX's operands."""

    def build(node: Node) -> Site | None:
        values = [input_at(node, k) for k in order]
        operands = tuple(operand_of(value) for value in values if value is not None)
        if len(operands) < 2:
            return None
        layout = str(node.attributes.get("data_format", node.attributes.get("data_layout", "")))
        if layout not in ("", "NCHW", "NCDHW", "NCL", "NC", "AnyLayout"):
            return not_modelled(node)
        return Site(node, Kind.CHANNEL, operands, AT_AXIS, {"axis": 1}, op)

    return build


def _layer_norm(node: Node) -> Site | None:
    """Scale and bias are vectors of as many numbers as are normalised."""
    operands = present_operands(node)
    if len(operands) < 2:
        return None
    begin, shape = node.attributes.get("begin_norm_axis", 1), operands[0].shape
    if type(begin) is not int or shape is None or begin != len(shape) - 1:
        return not_modelled(node)
    rule = _own("LayerNormalization")
    return Site(node, Kind.TRAILING, operands, rule, {"axis": -1}, "LayerNormalization")


#: Ops that may broadcast and are not modelled.
_UNMODELLED = (
    "lerp kron cross dist einsum multiplex multi_dot baddbmm matrix_solve solve triangular_solve "
    "index_put masked_fill masked_select put_along_axis set_value set_value_with_tensor "
    "set_tensor bilinear fused_elementwise_add fused_elementwise_sub fused_elementwise_mul "
    "fused_elementwise_div fused_gemm_epilogue fused_elemwise_activation fc fused_matmul "
    "fused_linear_param_grad_add "
    "rms_norm fused_rms_norm fused_layernorm skip_layernorm fused_bias_act "
    "fake_quantize_dequantize_moving_average_abs_max quantize_linear dequantize_linear "
    "fused_softmax_mask broadcast_tensors label_smooth"
)
_ATTENTION = "an attention, which was not run"
#: The same, with the part that is not modelled.
_LACKS: Mapping[str, str] = MappingProxyType(
    {
        "fused_attention": _ATTENTION,
        "flash_attn": _ATTENTION,
        "memory_efficient_attention": _ATTENTION,
        "fused_rotary_position_embedding": "a rotation of query and key, which was not run",
    }
)
#: Op to the function that builds its site, by PIR's names.
ROWS: Mapping[str, Callable[[Node], Site | None]] = MappingProxyType(
    {
        **dict.fromkeys(_NAMES, _binary),
        **dict.fromkeys(_UNMODELLED.split(), not_modelled),
        **{op: partial(not_modelled, lacks=lacks) for op, lacks in _LACKS.items()},
        **dict.fromkeys(("matmul", "bmm"), _product),
        "add_n": _identical,
        "addmm": _addmm,
        "affine_channel": _channel("BatchNormalization", (0, 1, 2)),
        "batch_norm": _channel("BatchNormalization", (0, 3, 4, 1, 2)),
        "clip": _clip,
        "expand": _expand,
        "expand_as": _expand_as,
        "group_norm": _channel("GroupNormalization", (0, 1, 2)),
        "instance_norm": _channel("InstanceNormalization", (0, 1, 2)),
        "layer_norm": _layer_norm,
        "prelu": _prelu,
        "where": _where,
    }
)
_STILL = (
    "gaussian uniform randint randperm bernoulli multinomial truncated_gaussian_random  nonzero "
    "unique unique_consecutive shadow_output print assert  share_data memcpy_d2h memcpy_h2d "
    "scatter scatter_nd_add gather_tree roll rnn lstm gru  grid_sample affine_grid roi_align "
    "multiclass_nms3 matrix_nms generate_proposals  distribute_fpn_proposals box_coder prior_box "
    "yolo_box yolo_box_post bincount histogram  searchsorted temporal_shift deformable_conv "
    "warpctc ctc_align edit_distance unfold fold  overlap_add frame fft_c2c fft_r2c fft_c2r "
    "as_strided view_shape repeat_interleave  kthvalue mode median nanmedian svd qr eigh inverse "
    "cholesky determinant norm  array_length array_read array_to_tensor create_array array_write "
    "select_input select_output conditional_block while lod_array_length  beam_search "
    "viterbi_decode share_buffer depend"
)
#: Ops that were read about and do not broadcast, and whose results are not followed here.
STILL = frozenset(_STILL.split())
