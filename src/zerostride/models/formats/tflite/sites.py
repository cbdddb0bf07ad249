"""The ops of a LiteRT file that may broadcast, their operands and rules.

The rules are those of LiteRT itself: the engine table's row for LiteRT, and
:mod:`...transport.compound_engines` for products. `ROWS` has every builtin op that may broadcast,
including those that are not modelled.

No site: the bias of CONV_2D and FULLY_CONNECTED, a vector of as many numbers as there are channels,
which the kernels check; QUANTIZE and DEQUANTIZE, whose scales belong to their tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from ....core.alignment import Alignment, Attributes, Rule
from ....core.rules import RULES, right_aligned
from ....engines.planning import rule_row
from ....errors import Misfit, Reason
from ....ops import OPS, find_op
from ....sizes import Asker, Shape
from ...ir.graph import Node
from ...ir.site import Kind, Operand, Site, batches, not_modelled, present_operands, unjudged
from ...onnx_ops.sites import find_site as find_onnx_site
from ...transport.compound_engines import CARRIERS
from ..site_rows import as_onnx
from .node_writer import activation_of
from .schema import NUMBERS

#: The domain of builtin ops, the engine's name; and that of custom ops.
DOMAIN, CUSTOM_DOMAIN = "litert", "litert custom"
_MEDIAPIPE = "google-ai-edge/mediapipe of 2026-08, mediapipe/util/tflite/operations/"
#: Custom ops that were read about and do not broadcast: the source, and the number of operands.
CUSTOM: Mapping[str, tuple[str, int]] = MappingProxyType(
    {
        "Convolution2DTransposeBias": (f"{_MEDIAPIPE}transpose_conv_bias.cc", 3),
        "Landmarks2TransformMatrix": (f"{_MEDIAPIPE}landmarks_to_transform_matrix.cc", 1),
        "TransformLandmarks": (f"{_MEDIAPIPE}transform_landmarks.cc", 2),
        "TransformTensorBilinear": (f"{_MEDIAPIPE}transform_tensor_bilinear.cc", 2),
    }
)
#: Ops of the op table whose name in ONNX means another op, or needs an attribute.
_OWN_NAME = frozenset({"remainder", "bitwise_right_shift"})


def find_site(node: Node) -> Site | None:
    """The site of a node, or None if it cannot broadcast; an ONNX node has ONNX's site."""
    if node.domain == "":
        return find_onnx_site(node)
    if node.domain == CUSTOM_DOMAIN and CUSTOM.get(node.op, ("", -1))[1] == len(node.inputs):
        return None
    if node.domain != DOMAIN or node.op not in NUMBERS or node.op == "DELEGATE":
        return unjudged(node, Kind.CUSTOM)
    builder = ROWS.get(node.op)
    return builder(node) if builder is not None else None


def word(op: str) -> str:
    """The name of an element-wise builtin op in ONNX, or in the op table if ONNX lacks it.

    >>> word("ADD"), word("FLOOR_MOD"), word("SQUARED_DIFFERENCE")
    ('Add', 'remainder', 'squared_difference')
    """
    row = find_op(op, "litert")
    if row.name in _OWN_NAME:
        return row.name
    return next((str(name) for name in row.names.get("onnx", ())), row.name)


def _align_select(asker: Asker, shapes: tuple[Shape, ...], _: Attributes) -> Alignment:
    """SELECT: identical shapes, or a condition of one number or along axis 0.

    Operands of one element each have any rank (2.3.0, run); the result's rank is then the file's.
    """
    condition, first, second = shapes
    if all(asker.is_one(size) for shape in shapes for size in shape):
        rank, places = right_aligned(shapes)
        return Alignment(rank, places, ((), (), ()))
    rank = len(first)
    same = len(second) == rank and all(map(asker.equal, first, second))
    if not same:
        raise Misfit(Reason.NOT_IDENTICAL, f"the two choices are {first} and {second}")
    every = tuple(range(rank))
    if len(condition) == rank and all(map(asker.equal, condition, first)):
        return Alignment(rank, (every, every, every), ((), (), ()))
    if not condition:
        return Alignment(rank, ((), every, every), (every, (), ()))
    if len(condition) == 1 and rank and asker.equal(condition[0], first[0]):
        return Alignment(rank, ((0,), every, every), ((), (), ()))
    raise Misfit(Reason.NOT_IDENTICAL, f"a condition of {condition} for choices of {first}")


#: The older op, which is not the one of the engine's row for `where`.
SELECT = replace(
    RULES["none"],
    name="litert_select",
    align=_align_select,
    operands=(3, 3),
    summary="Identical shapes; or a condition of one number, or along axis 0.",
    source="google-ai-edge/LiteRT of 2026-08, tflite/kernels/select.cc, kVersionOne",
)


def _rule(op: str | None = None, *, to_target: bool = False) -> Rule:
    return rule_row(None, engine="litert", op=op, to_target=to_target)


def plain(node: Node) -> bool:
    """Whether the broadcast is the node's whole work: no activation, no quantised tensors."""
    values = (*node.inputs, *node.outputs)
    quantised = any(value is not None and value.quantised is not None for value in values)
    return not quantised and activation_of(node) == "NONE"


def _site(node: Node, kind: Kind, operands: tuple[Operand, ...], rule: Rule, op: str) -> Site:
    return Site(node, kind, operands, rule, {}, op, plain(node))


def _binary(node: Node) -> Site:
    """Two operands, by LiteRT's rule."""
    if len(present_operands(node)) != 2:
        return not_modelled(node)
    name = find_op(node.op, "litert").name
    return _site(node, Kind.ELEMENTWISE, present_operands(node), _rule(name), word(node.op))


def _identical(op: str) -> Callable[[Node], Site | None]:
    """A row for ops whose operands have one shape."""

    def build(node: Node) -> Site | None:
        operands = present_operands(node)
        if len(operands) < 2:
            return None
        return _site(node, Kind.ELEMENTWISE, operands, RULES["none"], op)

    return build


def _and(node: Node) -> Site | None:
    """STABLEHLO_AND: of truth values, or of the bits of whole numbers."""
    kinds = {part.tensor.dtype for part in present_operands(node) if part.tensor is not None}
    return _identical("And" if kinds == {"bool"} else "BitwiseAnd")(node)


def _where(rule: Rule | None = None) -> Callable[[Node], Site]:
    def build(node: Node) -> Site:
        if len(present_operands(node)) != 3:
            return not_modelled(node)
        return _site(node, Kind.WHERE, present_operands(node), rule or _rule("where"), "Where")

    return build


def _broadcast_to(node: Node) -> Site:
    """Data and target; the output's shape replaces an unknown target."""
    if len(node.inputs) != 2 or None in node.inputs:
        return not_modelled(node)
    site = as_onnx(node, "Expand")
    assert site is not None
    return replace(site, rule=_rule(to_target=True), whole=plain(node))


def _prelu(node: Node) -> Site:
    if len(present_operands(node)) != 2:
        return not_modelled(node)
    return _site(node, Kind.PRELU, present_operands(node), _rule("prelu"), "PRelu")


def _product(node: Node) -> Site | None:
    """The axes before the last two."""
    parts = present_operands(node)[:2]
    if len(parts) < 2:
        return not_modelled(node)
    batch = batches(parts)
    if batch is None:
        return None
    return _site(node, Kind.MATMUL, batch, CARRIERS["MatMul"]["litert"][0].rule, "MatMul")


#: StableHLO's element-wise ops: ONNX's names. Their operands have one shape.
_STABLEHLO: Mapping[str, str] = {
    "STABLEHLO_ADD": "Add",
    "STABLEHLO_DIVIDE": "Div",
    "STABLEHLO_MAXIMUM": "Max",
    "STABLEHLO_MINIMUM": "Min",
    "STABLEHLO_MULTIPLY": "Mul",
    "STABLEHLO_OR": "Or",
    "STABLEHLO_POWER": "Pow",
    "STABLEHLO_SUBTRACT": "Sub",
}
_UNMODELLED = (
    "STABLEHLO_BROADCAST_IN_DIM STABLEHLO_CLAMP STABLEHLO_COMPARE STABLEHLO_CUSTOM_CALL "
    "STABLEHLO_DOT_GENERAL STABLEHLO_REMAINDER STABLEHLO_SELECT STABLEHLO_SHIFT_LEFT"
)
#: Builtin op to the function that builds its site.
ROWS: Mapping[str, Callable[[Node], Site | None]] = MappingProxyType(
    {
        **{
            name: _binary
            for row in OPS.values()
            if row.operands == 2 and row.name != "prelu"
            for name in map(str, row.names.get("litert", ()))
        },
        "ADD_N": _identical("Sum"),
        "BATCH_MATMUL": _product,
        "BROADCAST_TO": _broadcast_to,
        "PRELU": _prelu,
        "STABLEHLO_AND": _and,
        "SELECT": _where(SELECT),
        "SELECT_V2": _where(),
        **{name: _identical(op) for name, op in _STABLEHLO.items()},
        **dict.fromkeys(_UNMODELLED.split(), not_modelled),
    }
)
