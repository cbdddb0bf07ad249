"""The ops of an MNN file that may broadcast, their operands and rules.

The rules are those of MNN itself: the engine table's row for MNN, and
:mod:`...transport.compound_engines` for compound ops. `ROWS` has every op type that may broadcast,
including those that are not modelled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from ....attention.plan import UNASKED
from ....attention.rows import find_rule
from ....core.alignment import Rule
from ....core.rules import RULES
from ....engines.planning import rule_row
from ....errors import BroadcastError
from ....ops import find_op
from ...ir.graph import Node, Value
from ...ir.site import (
    AT_AXIS,
    BOTH_WAYS,
    ONE_WAY,
    AttentionCall,
    Kind,
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
from ..site_rows import as_onnx, choice
from .schema import OPS

_NAMES = frozenset(OPS.values())
#: Ops of the op table that share a name in ONNX; they keep the table's name.
_AMBIGUOUS = frozenset({"remainder", "fmod", "bitwise_left_shift", "bitwise_right_shift"})


def find_site(node: Node) -> Site | None:
    """The site of a node, or None if it cannot broadcast; an ONNX node has ONNX's site."""
    if node.domain == "":
        return find_onnx_site(node)
    if node.op not in _NAMES or node.op in ("Plugin", "Extra"):
        return unjudged(node, Kind.CUSTOM)
    builder = ROWS.get(node.op)
    return builder(node) if builder is not None else None


def word(operation: str) -> str:
    """The name of a BinaryOpOperation in ONNX, or in the op table; "" if neither has one.

    >>> word("ADD"), word("SquaredDifference"), word("MUL_SILU")
    ('Add', 'squared_difference', '')
    """
    try:
        row = find_op(operation, "mnn")
    except BroadcastError:
        return ""
    if row.name in _AMBIGUOUS:
        return row.name
    return next((str(name) for name in row.names.get("onnx", ())), row.name)


def _rule(op: str | None = None, *, to_target: bool = False) -> Rule:
    return rule_row(None, engine="mnn", op=op, to_target=to_target)


def _binary(node: Node) -> Site:
    """Two operands, by MNN's rule."""
    op = word(str(node.attributes.get("opType")))
    if not op or len(present_operands(node)) != 2:
        return not_modelled(node)
    rule = _rule(find_op(op).name)
    whole = not clips_below_zero(node)
    return Site(node, Kind.ELEMENTWISE, present_operands(node), rule, {}, op, whole=whole)


def clips_below_zero(node: Node) -> bool:
    """Whether a BinaryOp applies a ReLU to its result; MNN knows no other activation there."""
    return node.attributes.get("activationType") == 1


def _select(node: Node) -> Site:
    return choice(node, "mnn")


def _eltwise(node: Node) -> Site | None:
    """The result has the first operand's shape, whatever the others' shapes are.

    MNN 3.6 ends on most coefficients.
    """
    operands = present_operands(node)
    op = {"PROD": "Mul", "SUM": "Add", "MAXIMUM": "Max", "SUB": "Sub"}.get(
        str(node.attributes.get("type"))
    )
    if op is None or node.attributes.get("coeff"):
        return not_modelled(node)
    return Site(node, Kind.ELEMENTWISE, operands, RULES["none"], {}, op)


def _pack(node: Node) -> Site | None:
    """Stacking does not broadcast: operands of different shapes are read as if they were equal.

    MNN's converter writes a Pack for an ONNX Max or Sum of three operands or more, without
    stretching them.
    """
    operands = present_operands(node)
    if len({part.shape for part in operands}) < 2:
        return None
    return Site(node, Kind.ELEMENTWISE, operands, RULES["none"], {}, "Pack")


def _broadcast_to(node: Node) -> Site:
    """Data and target; the output's shape replaces an unknown target."""
    if len(node.inputs) != 2 or None in node.inputs:
        return not_modelled(node)
    site = as_onnx(node, "Expand")
    assert site is not None
    return replace(site, rule=_rule(to_target=True))


def _prelu(node: Node) -> Site:
    if len(present_operands(node)) != 2:
        return not_modelled(node)
    return Site(node, Kind.PRELU, present_operands(node), _rule("prelu"), {}, "PRelu")


def _channel(node: Node) -> Site | None:
    """Vectors along axis 1, the channels, as in ONNX's BatchNormalization."""
    if not all(part.constant for part in present_operands(node)[1:]):
        return not_modelled(node)
    if len(present_operands(node)) < 2:
        return None
    return Site(
        node, Kind.CHANNEL, present_operands(node), AT_AXIS, {"axis": 1}, "BatchNormalization"
    )


def _layer_norm(node: Node) -> Site | None:
    """Scale and bias have one number for each normalised element, as one vector."""
    operands = present_operands(node)
    if len(operands) < 2:
        return None
    count = len(node.attributes.get("axes", ()))
    if count != 1 or node.attributes.get("group", 1) != 1 or len(node.outputs) != 1:
        return not_modelled(node)
    name = "RMSNormalization" if node.attributes.get("useRMSNorm") else "LayerNormalization"
    return Site(node, Kind.TRAILING, operands, ONE_WAY, {}, name)


def _product(node: Node) -> Site | None:
    """The axes before the last two."""
    parts = present_operands(node)[:2]
    if len(parts) < 2:
        return not_modelled(node)
    batch = batches(parts)
    rule = CARRIERS["MatMul"]["mnn"][0].rule
    return None if batch is None else Site(node, Kind.MATMUL, batch, rule, {}, "MatMul")


def _attention(node: Node) -> Site:
    """Attention: query, key and value as (batch, length, head, feature), a mask, and a sink.

    Run: MNN 3.6.1, tests/conformance/test_attention_mnn.py. The runtime of large language models
    keeps keys between runs; a file alone has none of them.
    """
    parts = [operand_of(value) for value in node.inputs[:3] if value is not None]
    mask, sink = input_at(node, 3), input_at(node, 4)
    if len(parts) < 3 or len(node.inputs) > _ATTENTION_INPUTS:
        return not_modelled(node)
    lacks = _beyond_attention(node, mask)
    if lacks:
        return not_modelled(node, lacks)
    if mask is not None and mask.shape == ():
        mask = None  # a number below 1e-6 stands for none
    if mask is not None:
        parts.append(operand_of(mask))
    causal = mask is None and sink is None
    asked = replace(UNASKED, causal=causal, sink=sink is not None)
    where = "this is so of a run of its own, without keys of runs before"
    where = where if node.attributes.get("kv_cache", True) else ""
    call = AttentionCall(find_rule("mnn", "Attention"), asked, where)
    return Site(node, Kind.NOT_MODELLED, tuple(parts), BOTH_WAYS, {}, call=call)


#: Query, key, value, mask and sink.
_ATTENTION_INPUTS = 5
#: A mask of one number below it is none.
_LEAST_MASK = 1e-6


def _beyond_attention(node: Node, mask: Value | None) -> str | None:
    """The part of an Attention that is not modelled, or None."""
    if node.attributes.get("output_c4"):
        return "a packed result"
    if mask is None:
        return None
    if mask.dtype is not None and "float" not in mask.dtype:
        return f"a mask of {mask.dtype}, whose bytes MNN reads as floats"
    if mask.shape is None:
        return "a mask of unknown axes"
    if mask.shape == () and (not mask.reals or mask.reals[0] >= _LEAST_MASK):
        return "a mask of one number; below 1e-6 it stands for none"
    return None


_UNMODELLED = (
    "InstanceNorm GroupNorm Normalize GatedRMSNorm EltwiseInt8 QuantizedAdd QuantizedBiasAdd "
    "Int8ToFloat FloatToInt8 DynamicQuant FusedLinear "
    "Broastcast Power Dequantize Raster MoE CosineSimilarity"
)
#: The attentions that are not modelled.
_ATTENTIONS: Mapping[str, str] = MappingProxyType(
    {
        "FmhaV2": "a fused attention, which was not run",
        "Fmhca": "a fused attention, which was not run",
        "LinearAttention": "an attention without a softmax, which was not run",
        "RoPE": "a rotation of query and key, which was not run",
    }
)
#: Op type to the function that builds its site.
ROWS: Mapping[str, Callable[[Node], Site | None]] = MappingProxyType(
    {
        "BinaryOp": _binary,
        "Select": _select,
        "Eltwise": _eltwise,
        "Pack": _pack,
        "BroadcastTo": _broadcast_to,
        "PReLU": _prelu,
        "Scale": _channel,
        "BatchNorm": _channel,
        "LayerNorm": _layer_norm,
        **dict.fromkeys(("MatMul", "BatchMatMul"), _product),
        "Attention": _attention,
        **dict.fromkeys(_UNMODELLED.split(), not_modelled),
        **{op: partial(not_modelled, lacks=lacks) for op, lacks in _ATTENTIONS.items()},
    }
)
