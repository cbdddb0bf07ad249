"""The nodes of an ONNX model that may broadcast, their operands and rules.

Each node has one site: an element-wise op with all its operands, a Gemm with its C, a normalisation
with its scale and bias. `ROWS` has every op type of the ai.onnx domain that may broadcast in any
version of its document, including those that cannot be judged yet.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ....core.alignment import Alignment, Attribute, Attributes, Rule, apply
from ....core.plan import Plan
from ....core.rules import RULES, right_aligned
from ....errors import Misfit, Reason
from ....sizes import Asker, Shape
from ...ir.graph import FileShape, Node, Value

if TYPE_CHECKING:
    from ....sizes.condition import Condition


class Kind(StrEnum):
    """The kind of a site; engines treat each kind differently."""

    ELEMENTWISE = "elementwise"
    WHERE = "where"
    EXPAND = "expand"
    PRELU = "prelu"
    CLIP = "clip"
    GEMM = "gemm"
    MATMUL = "matmul"
    CHANNEL = "channel"
    TRAILING = "trailing"
    PER_AXIS = "per_axis"
    ATTENTION = "attention"
    NOT_MODELLED = "not_modelled"
    CUSTOM = "custom"


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of a site: a tensor of the model, or a part of one (the batch axes)."""

    name: str
    shape: FileShape
    constant: bool = False
    missing: str | None = None
    tensor: Value | None = None  # the tensor whose outer axes these are


@dataclass(frozen=True, slots=True)
class Site:
    """One broadcast of the model.

    Attributes:
        node: the node.
        kind: the kind of broadcast.
        operands: the broadcast operands; for EXPAND the data and a target whose shape is its sizes.
        rule: the source's rule.
        attributes: the rule's attributes.
        op: the op's name in ONNX, or in the op table if ONNX lacks it; empty for the node's own.
        whole: the node computes this op on these operands and nothing else. False: a weighted sum.
    """

    node: Node
    kind: Kind
    operands: tuple[Operand, ...]
    rule: Rule
    attributes: Mapping[str, Any]
    op: str = ""
    whole: bool = True

    @property
    def stands_for(self) -> str:
        """The op that engines are compared by."""
        return self.op or self.node.op

    def plan(self, shapes: tuple[Shape, ...], facts: Condition | None = None) -> Plan:
        """The source's plan for these shapes, if `facts` hold for their symbols."""
        return apply(self.rule, shapes, self.attributes, facts=facts)


Builder = Callable[[Node], "Site | None"]


def find_site(node: Node) -> Site | None:
    """The site of a node, or None if it cannot broadcast."""
    builder = _builders().get((node.domain, node.op))
    if builder is not None:
        return builder(node)
    # Ops of ai.onnx.ml (trees, encoders, scalers) take attributes and one tensor.
    return None if node.domain in ("", "ai.onnx.ml") else unjudged(node, Kind.CUSTOM)


@functools.cache
def _builders() -> Mapping[tuple[str, str], Builder]:
    """Every row by domain and op."""
    from . import quantised_sites  # which imports this module

    return {
        **{("", op): row for op, row in {**quantised_sites.ROWS, **ROWS}.items()},
        **{("com.microsoft", op): row for op, row in quantised_sites.CONTRIB.items()},
    }


# The source's rules: ONNX, 'Multidirectional and unidirectional broadcasting' (Broadcasting.md).


def _align_one_way(asker: Asker, shapes: tuple[Shape, ...], _: Attributes) -> Alignment:
    """Aligns the others right with the first, which does not stretch."""
    rank, mapping = right_aligned(shapes)
    if rank > len(shapes[0]):
        raise Misfit(Reason.RANK, f"an operand has rank {rank}, the first only {len(shapes[0])}")
    return Alignment(rank, mapping, ((), *[range(rank)] * (len(shapes) - 1)))


def _align_at_axis(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    return vectors_along(shapes, attributes["axis"])


def vectors_along(shapes: tuple[Shape, ...], axis: int) -> Alignment:
    """Aligns vectors with one axis of the first; they repeat only along its other axes."""
    rank = len(shapes[0])
    if not 0 <= axis < rank:
        raise Misfit(Reason.AXIS_RANGE, f"axis {axis} of data of rank {rank}")
    for k, shape in enumerate(shapes[1:], start=1):
        if len(shape) != 1:
            raise Misfit(Reason.RANK, f"operand {k} has rank {len(shape)}; it must be a vector")
    places = (tuple(range(rank)), *[(axis,)] * (len(shapes) - 1))
    return Alignment(rank, places, ((),) * len(shapes))


def _align_one_number(asker: Asker, shapes: tuple[Shape, ...], _: Attributes) -> Alignment:
    """Every operand after the first is one number, as () or (1,); the first does not change."""
    rank = len(shapes[0])
    for k, shape in enumerate(shapes[1:], start=1):
        if len(shape) > 1 or not all(map(asker.is_one, shape)):
            raise Misfit(Reason.RANK, f"operand {k} is {shape}; it must be one number")
    places = (tuple(range(rank)), *[(None,) * len(shape) for shape in shapes[1:]])
    return Alignment(rank, places, ((), *[range(rank)] * (len(shapes) - 1)))


BOTH_WAYS, _LEGACY, _IDENTICAL = RULES["numpy"], RULES["onnx6"], RULES["none"]
#: Not the rules of `rules` of similar names: those take a target shape, these take operands.
ONE_WAY = replace(
    RULES["unidirectional"],
    name="one_way",
    align=_align_one_way,
    summary="The others right-aligned to the first, which does not stretch.",
    source="ONNX, Broadcasting.md, unidirectional",
    to_target=False,
    operands=(1, 16),
    one_way="only the later operands may stretch, to the first",
)
AT_AXIS = replace(
    RULES["pdpd"],
    name="at_axis",
    attributes=MappingProxyType({"axis": Attribute(required=True)}),
    one_way="a vector along the axis has its size",
    align=_align_at_axis,
    summary="Vectors along one axis of the first operand.",
    source="ONNX operator documents: a vector along an axis",
    operands=(1, 16),
)
ONE_NUMBER = replace(
    ONE_WAY,
    name="one_number",
    align=_align_one_number,
    summary="Every operand after the first is one number.",
    source="ONNX operator document, Clip: min and max are scalars; ONNX Runtime takes (1,) too",
)


def operand_of(value: Value) -> Operand:
    """A whole tensor as an operand."""
    return Operand(value.name, value.shape, value.constant, value.missing, value)


def present_operands(node: Node) -> tuple[Operand, ...]:
    """The operands of a node that are present."""
    return tuple(operand_of(value) for value in node.inputs if value is not None)


def input_at(node: Node, position: int) -> Value | None:
    """A node's input; None if it is left out."""
    return node.inputs[position] if position < len(node.inputs) else None


def unjudged(node: Node, kind: Kind) -> Site:
    """The site of a node that may broadcast and cannot be judged."""
    return Site(node, kind, present_operands(node), BOTH_WAYS, {})


def _binary(node: Node) -> Site:
    """Two operands: the NumPy rule from opset 7 on, `broadcast` and `axis` before."""
    if node.version >= 7:
        return Site(node, Kind.ELEMENTWISE, present_operands(node), BOTH_WAYS, {})
    attributes = {key: node.attributes.get(key) for key in ("broadcast", "axis")}
    if not attributes["broadcast"]:
        attributes["axis"] = None  # exporters write the axis even if it has no effect
    return Site(node, Kind.ELEMENTWISE, present_operands(node), _LEGACY, attributes)


def _variadic(node: Node) -> Site | None:
    """Two operands or more: the NumPy rule from opset 8 on, identical shapes before."""
    operands = present_operands(node)
    rule = BOTH_WAYS if node.version >= 8 else _IDENTICAL
    return Site(node, Kind.ELEMENTWISE, operands, rule, {}) if len(operands) > 1 else None


def _where(node: Node) -> Site:
    return Site(node, Kind.WHERE, present_operands(node), BOTH_WAYS, {})


def _expand(node: Node) -> Site:
    """Data and target; the output's shape replaces an unknown target."""
    data, target = input_at(node, 0), input_at(node, 1)
    content = target.content if target is not None else None
    shape: FileShape = content
    if content is None and node.outputs and node.outputs[0].known:
        shape = node.outputs[0].shape
    name = target.name if target is not None else ""
    missing = target.missing if target is not None and shape is None else None
    operands = (
        operand_of(data) if data is not None else Operand("", None),
        Operand(name, shape, True, missing),
    )
    return Site(node, Kind.EXPAND, operands, RULES["bidirectional"], {})


#: PRelu requires a slope.
_SLOPE = replace(ONE_WAY, operands=(2, 2))


def _prelu(node: Node) -> Site:
    """The slope broadcasts one way to the data; before opset 7: one number, or one per channel."""
    operands = present_operands(node)
    if node.version >= 7 or len(operands) != 2 or operands[1].shape in ((1,), ()):
        return Site(node, Kind.PRELU, operands, _SLOPE, {})
    return Site(node, Kind.PRELU, operands, AT_AXIS, {"axis": 1})


def _clip(node: Node) -> Site | None:
    operands = present_operands(node)
    return Site(node, Kind.CLIP, operands, ONE_NUMBER, {}) if len(operands) > 1 else None


def gemm(node: Node) -> Site | None:
    """C broadcasts to the product's shape (M, N)."""
    a, b, c = (input_at(node, position) for position in range(3))
    if c is None:
        return None
    shape: FileShape = None
    if a is not None and b is not None and a.shape is not None and b.shape is not None:
        rows = a.shape[::-1] if node.attributes.get("transA") else a.shape
        columns = b.shape[::-1] if node.attributes.get("transB") else b.shape
        if len(rows) == 2 and len(columns) == 2:
            shape = (rows[0], columns[1])
    # The product's rows are A's, so they carry the batch where A's do.
    name = f"{a.name if a else ''}@{b.name if b else ''}"
    product = Operand(name, shape, tensor=None if node.attributes.get("transA") else a)
    if node.version >= 7:
        return Site(node, Kind.GEMM, (product, operand_of(c)), ONE_WAY, {})
    attributes = {"broadcast": node.attributes.get("broadcast")}
    return Site(node, Kind.GEMM, (product, operand_of(c)), _LEGACY, attributes)


def batches(operands: Sequence[Operand]) -> tuple[Operand, ...] | None:
    """The axes before the last two of factors; None if no factor has such axes."""
    if all(part.shape is not None and len(part.shape) <= 2 for part in operands):
        return None
    return tuple(
        replace(
            part,
            shape=None if part.shape is None else part.shape[:-2],
            name=f"{part.name}[batch]",
        )
        for part in operands
    )


def _matmul(node: Node) -> Site | None:
    """The axes before the last two, as in numpy.matmul; None if both ranks are 2 or less."""
    operands = present_operands(node)[:2]
    batch = batches(operands)
    if batch is None:
        return None
    return Site(node, Kind.MATMUL, batch, BOTH_WAYS, {})


def _channel(node: Node) -> Site:
    """Vectors along axis 1, the channels."""
    if node.op == "GroupNormalization" and node.version < 21:
        # Scale and bias have one number per group, which no plan of axes expresses.
        return unjudged(node, Kind.NOT_MODELLED)
    return Site(node, Kind.CHANNEL, present_operands(node), AT_AXIS, {"axis": 1})


def _trailing(node: Node) -> Site:
    """Scale and bias broadcast one way to the data."""
    return Site(node, Kind.TRAILING, present_operands(node), ONE_WAY, {})


def _per_axis(node: Node) -> Site:
    """One scale, or one per index of `axis`; blocks are not a broadcast of axes."""
    operands = present_operands(node)
    scale = operands[1].shape if len(operands) > 1 else None
    data = operands[0].shape if operands else None
    if node.attributes.get("block_size") or (scale is not None and len(scale) > 1):
        return unjudged(node, Kind.NOT_MODELLED)
    if scale is not None and scale in ((), (1,)):
        return Site(node, Kind.PER_AXIS, operands, ONE_WAY, {})
    axis = node.attributes.get("axis", 1)
    if axis < 0 and data is not None:
        axis += len(data)
    return Site(node, Kind.PER_AXIS, operands, AT_AXIS, {"axis": axis})


def _if_present(*positions: int) -> Builder:
    """A row for ops that broadcast only if one of these inputs is present."""

    def build(node: Node) -> Site | None:
        if any(input_at(node, position) is not None for position in positions):
            return unjudged(node, Kind.NOT_MODELLED)
        return None

    return build


def _einsum(node: Node) -> Site | None:
    """The document broadcasts only ellipses; NumPy and ONNX Runtime also stretch a letter's 1."""
    equation = str(node.attributes.get("equation", "")).replace(" ", "")
    operands = present_operands(node)
    ellipses = sum("..." in term for term in equation.split("->")[0].split(","))
    if len(operands) > 1 and (ellipses > 1 or _stretched_letters(equation, operands)):
        return unjudged(node, Kind.NOT_MODELLED)
    return None


def _stretched_letters(equation: str, operands: Sequence[Operand]) -> set[str]:
    """The letters of an Einsum that are 1 in one operand and known to be more in another."""
    sizes: dict[str, set[Any]] = {}
    for term, part in zip(equation.split("->")[0].split(","), operands, strict=False):
        before, _, after = term.partition("...")
        pairs = [*zip(before, part.shape or (), strict=False)]
        pairs += zip(after[::-1], (part.shape or ())[::-1], strict=False)
        for letter, size in pairs:
            sizes.setdefault(letter, set()).add(size)
    return {
        letter
        for letter, extents in sizes.items()
        if 1 in extents and any(isinstance(size, int) and size != 1 for size in extents)
    }


def _rows(builder: Builder, names: str) -> dict[str, Builder]:
    return dict.fromkeys(names.split(), builder)


ROWS: Mapping[str, Builder] = MappingProxyType(
    {
        **_rows(
            _binary,
            "Add Sub Mul Div Pow Mod And Or Xor BitShift BitwiseAnd BitwiseOr BitwiseXor "
            "Equal Greater Less GreaterOrEqual LessOrEqual StringConcat",
        ),
        **_rows(_variadic, "Max Min Sum Mean"),
        **_rows(_where, "Where"),
        **_rows(_expand, "Expand"),
        **_rows(_prelu, "PRelu"),
        **_rows(_clip, "Clip"),
        **_rows(gemm, "Gemm"),
        **_rows(_matmul, "MatMul"),
        **_rows(_channel, "BatchNormalization InstanceNormalization GroupNormalization"),
        **_rows(_trailing, "LayerNormalization RMSNormalization"),
        **_rows(_per_axis, "QuantizeLinear DequantizeLinear"),
        **_rows(_if_present(3), "Attention"),
        **_rows(_if_present(4, 5), "LinearAttention"),
        **_rows(_einsum, "Einsum"),
    }
)
