"""The broadcasts in ncnn's layers, and their rules.

The rule of BinaryOp comes from the engine table, those of compound ops from the carriers' rows for
ncnn. Both were measured on the release that the table names. Operands have the order of the site's
op: a reversed subtraction of a and b is a subtraction of b and a.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from ....attention.plan import UNASKED
from ....attention.rows import find_rule
from ....core.alignment import Rule
from ....core.rules import NCNN_RANK, RULES
from ....engines.planning import rule_row
from ....errors import BroadcastError, ModelError, Reason
from ....ops import Op, find_op, find_reversed
from ...ir.graph import FileShape, Node, Value
from ...ir.site import (
    AT_AXIS,
    BOTH_WAYS,
    ONE_NUMBER,
    ONE_WAY,
    AttentionCall,
    Kind,
    Operand,
    Site,
    batches,
    not_modelled,
    operand_of,
    present_operands,
)
from ...transport.compound_engines import CARRIERS
from .text import Param

#: Eltwise's operations.
ELTWISE: Mapping[int, str] = MappingProxyType({0: "Mul", 1: "Sum", 2: "Max"})

#: Eltwise takes the first operand's shape and reads as many numbers of the others without a check.
_ELTWISE = replace(
    RULES["none"],
    summary="Identical shapes; others are read as if they had the first one's.",
    source="ncnn 1.0.20261020, Eltwise; run",
    silent=frozenset({Reason.NOT_IDENTICAL, Reason.RANK}),
    max_rank=NCNN_RANK,
)


def whole(node: Node, number: int, default: int = 0) -> int:
    """A whole-number parameter of a node; ModelError for other types."""
    value: Param = node.attributes.get(str(number), default)
    if isinstance(value, int):
        return value
    raise ModelError(f"{node.path}: parameter {number} is {value!r}, and no whole number")


def binary_op(node: Node) -> tuple[Op, bool] | None:
    """The op of a BinaryOp, and whether its operands are reversed."""
    number = whole(node, 0)
    backwards = find_reversed(number, "ncnn")
    try:
        return backwards or find_op(number, "ncnn"), backwards is not None
    except BroadcastError:
        return None


def onnx_name(op: Op) -> str:
    """The op's name in ONNX, or its own name if ONNX's op differs.

    >>> onnx_name(find_op("subtract")), onnx_name(find_op("fmod"))
    ('Sub', 'fmod')
    """
    names = op.names.get("onnx", ())
    return str(names[0]) if names and names[0] != "Mod" else op.name


def weights(node: Node, *names: str) -> tuple[Value, ...]:
    """The weights of a layer with these names; missing ones are left out."""
    by_name = {value.name: value for value in node.inputs if value is not None and value.constant}
    values = (by_name.get(f"{node.name}.{name}") for name in names)
    return tuple(value for value in values if value is not None)


def binary(node: Node) -> Site | None:
    """Two blobs by ncnn's rule; an op with a number does not broadcast."""
    row = binary_op(node)
    if whole(node, 1):
        return None
    if row is None:
        return not_modelled(node)
    op, backwards = row
    operands = present_operands(node)
    rule = rule_row(None, engine="ncnn", op=op.name)
    return Site(
        node,
        Kind.ELEMENTWISE,
        operands[::-1] if backwards else operands,
        rule,
        {},
        onnx_name(op),
    )


def eltwise(node: Node) -> Site | None:
    """Two blobs or more, all of one shape; weights of a sum change no shape."""
    name = ELTWISE.get(whole(node, 0))
    if name is None:
        return not_modelled(node)
    plain = name != "Sum" or "1" not in node.attributes
    return Site(node, Kind.ELEMENTWISE, present_operands(node), _ELTWISE, {}, name, plain)


def prelu(node: Node) -> Site:
    """One slope, or one per channel."""
    slope = weights(node, "slope")
    data = present_operands(node)[:1]
    rule = rule_row(None, engine="ncnn", op="prelu")
    return Site(node, Kind.PRELU, (*data, *map(operand_of, slope)), rule, {}, "PRelu")


def _ncnn_rule(op: str, *, constant: bool = True) -> Rule:
    """The rule for the weights of ncnn's layer for a compound op of ONNX."""
    rows = CARRIERS[op]["ncnn"]
    return next(row.rule for row in rows if row.weights in (None, constant))


def along_channels(op: str, name: str) -> Callable[[Node], Site | None]:
    """A row for one number per channel, from a weight or a second blob.

    A bias aligns like its scale, so only the scale is judged.
    """

    def build(node: Node) -> Site | None:
        own = weights(node, name)
        data = present_operands(node)[: 1 if own else 2]
        operands = (*data, *map(operand_of, own))
        if len(operands) < 2:
            return None
        rule = _ncnn_rule("BatchNormalization")
        return Site(node, Kind.ELEMENTWISE, operands, rule, {}, op)

    return build


def bias(node: Node) -> Site | None:
    """One number per channel; vectors and matrices are one channel and take the first number."""
    data = present_operands(node)[0].shape
    if data is not None and len(data) < 3:
        return not_modelled(node)
    return along_channels("Add", "bias")(node)


def norm(op: str, *names: str) -> Callable[[Node], Site | None]:
    """A row for a normalisation with one number per channel."""
    # ncnn's rule with an explicit axis: engines with a batch axis have another one.
    rule = replace(_ncnn_rule(op), align=AT_AXIS.align, attributes=AT_AXIS.attributes)

    def build(node: Node) -> Site | None:
        own = weights(node, *names)
        if not own:
            return None
        data = present_operands(node)[0]
        if op == "InstanceNormalization" and data.shape is not None and len(data.shape) < 3:
            return not_modelled(node)  # it is one channel there
        return Site(node, Kind.CHANNEL, (data, *map(operand_of, own)), rule, {"axis": 0}, op)

    return build


def trailing(op: str, *names: str) -> Callable[[Node], Site | None]:
    """A row for a normalisation over the inner axes that its weights cover."""

    def build(node: Node) -> Site | None:
        own = weights(node, *names)
        if not own:
            return None
        data = present_operands(node)[0]
        axes = covered(data.shape, whole(node, 0))
        if axes is None:
            return not_modelled(node)
        shape = None if data.shape is None else data.shape[-axes:]
        operands = (data, *(replace(operand_of(value), shape=shape) for value in own))
        return Site(node, Kind.TRAILING, operands, _ncnn_rule(op), {"axis": -axes}, op)

    return build


def covered(shape: FileShape, count: int) -> int | None:
    """The number of inner axes with `count` elements, as the layer counts them."""
    if shape is None or not all(isinstance(size, int) for size in shape):
        return None
    sizes = [size for size in shape if isinstance(size, int)]
    if sizes[-1] == count:
        return 1
    return 2 if len(sizes) >= 3 and sizes[-1] * sizes[-2] == count else None


#: Scales among the weights of a Gemm.
_GEMM_SCALES = ("B_scale", "B_input_scale")


def gemm(node: Node) -> Site | None:
    """C broadcasts to the product's shape (M, N): a weight of one of five forms, or a blob."""
    constant = weights(node, "C")
    own = {f"{node.name}.{name}" for name in ("A", "B", "C", "A_scale", *_GEMM_SCALES)}
    blobs = [v for v in node.inputs if v is not None and not (v.constant and v.name in own)]
    needed = 2 - bool(whole(node, 4)) - bool(whole(node, 5))
    if not constant and len(blobs) <= needed:
        return None
    output = node.outputs[0].shape if node.outputs else None
    if whole(node, 11) and output is not None:
        output = (output[0], output[2]) if len(output) == 3 else None
    if whole(node, 14) and output is not None:
        output = output[::-1]
    product = Operand(f"{node.name}.product", output)
    if not constant:
        rule = _ncnn_rule("Gemm", constant=False)
        return Site(node, Kind.GEMM, (product, operand_of(blobs[needed])), rule, {}, "Gemm")
    kind, value = whole(node, 10), constant[0]
    # A vector of M numbers goes to the rows, one of N (kind 4) to the columns.
    shape = (*(value.shape or ()), 1) if kind == 1 else value.shape
    rule = ONE_NUMBER if kind == 0 else ONE_WAY
    return Site(
        node, Kind.GEMM, (product, replace(operand_of(value), shape=shape)), rule, {}, "Gemm"
    )


def matmul(node: Node) -> Site | None:
    """The axes before the last two."""
    batch = batches(present_operands(node)[:2])
    if batch is None:
        return None
    return Site(node, Kind.MATMUL, batch, _ncnn_rule("MatMul"), {}, "MatMul")


def projected(node: Node) -> Site | None:
    """MultiHeadAttention; None without a mask, which alone may repeat.

    A missing key is the query, a missing value is the key; all get the layer's width.
    """
    masked, lacks, own = bool(whole(node, 5)), _beyond(node), f"{node.name}."
    every = present_operands(node)
    parts = [part for part in every if not (part.constant and part.name.startswith(own))]
    if not masked or lacks:
        return not_modelled(node, lacks) if masked else None
    mask, width, heads = parts.pop(), whole(node, 0), whole(node, 1)
    if not 1 <= len(parts) <= 3 or heads < 1:
        return not_modelled(node)
    query, key, value = (*parts, *parts[-1:] * 2)[:3]
    operands = (
        replace(
            part,
            name=f"{part.name}[{name}]",
            shape=None if part.shape is None else (*part.shape[:-1], width),
        )
        for name, part in (("query", query), ("key", key), ("value", value))
    )
    return _called(node, "MultiHeadAttention", (*operands, mask), (heads, heads))


def attended(node: Node) -> Site | None:
    """SDPA; None where each head of keys serves one of the query, and no key is masked."""
    parts, masked = present_operands(node), bool(whole(node, 5))
    lacks = _beyond(node)
    if lacks or len(parts) != 3 + masked:
        return not_modelled(node, lacks)
    heads = {None if part.shape is None else part.shape[0] for part in parts[:3]}
    if not masked and len(heads) == 1 and None not in heads:
        return None
    return _called(node, "SDPA", parts, None)


def _beyond(node: Node) -> str:
    """The part of an attention that its row does not have, or nothing."""
    if whole(node, 7) or len(node.outputs) != 1:
        return "a cache of keys"
    return "products of 8 bits" if whole(node, 18) else ""


def _called(
    node: Node, op: str, operands: tuple[Operand, ...], heads: tuple[int, int] | None
) -> Site:
    """The site of a call of attention."""
    scale = node.attributes.get("6", 0.0)
    factor = float(scale) if isinstance(scale, int | float) and scale else None
    call = AttentionCall(find_rule("ncnn", op), replace(UNASKED, heads=heads, scale=factor))
    return Site(node, Kind.NOT_MODELLED, operands, BOTH_WAYS, {}, call=call)


def scaled(*numbers: int) -> Callable[[Node], Site | None]:
    """Quantisation: one number does not broadcast; a vector along the channels is not modelled."""

    def build(node: Node) -> Site | None:
        return not_modelled(node) if any(whole(node, k, 1) > 1 for k in numbers) else None

    return build


def einsum(node: Node) -> Site | None:
    """Einsum of several blobs is not modelled."""
    return not_modelled(node) if len(node.inputs) > 1 else None
