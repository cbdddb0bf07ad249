"""The nodes of an ONNX model that may broadcast, their operands and rules.

Each node has one site: an element-wise op with all its operands, a Gemm with its C, a normalisation
with its scale and bias. `ROWS` has every op type of the ai.onnx domain that may broadcast in any
version of its document, including those that cannot be judged yet.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from ...core.alignment import Alignment, Attribute, Attributes
from ...core.rules import RULES
from ...errors import Misfit, Reason
from ...quantisation.placing import Advised, place
from ...sizes import Asker, Shape, brief
from ...sizes.dim import Dim
from ..ir.graph import FileShape, Node
from ..ir.site import (
    AT_AXIS,
    BOTH_WAYS,
    ONE_NUMBER,
    ONE_WAY,
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
    from . import attention_sites, quantised_sites, rotary_sites  # which import this module

    more = quantised_sites, attention_sites, rotary_sites
    rows = {**{op: row for module in more for op, row in module.ROWS.items()}, **ROWS}
    local = {op: row for module in more for op, row in module.CONTRIB.items()}
    return {
        **{("", op): row for op, row in rows.items()},
        **{("com.microsoft", op): row for op, row in local.items()},
    }


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


_LEGACY, _IDENTICAL = RULES["onnx6"], RULES["none"]
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
        return not_modelled(node)
    return Site(node, Kind.CHANNEL, present_operands(node), AT_AXIS, {"axis": 1})


def _trailing(node: Node) -> Site:
    """Scale and bias broadcast one way to the data."""
    return Site(node, Kind.TRAILING, present_operands(node), ONE_WAY, {})


def _per_axis(node: Node) -> Site:
    """One scale, or one per index of `axis`, or one per block of it."""
    operands = present_operands(node)
    scale = operands[1].shape if len(operands) > 1 else None
    data = operands[0].shape if operands else None
    if node.attributes.get("block_size"):
        return _blocked(node, operands, int(node.attributes["block_size"]))
    if scale is not None and len(scale) > 1:
        return not_modelled(node)
    if scale is not None and scale in ((), (1,)):
        return Site(node, Kind.PER_AXIS, operands, ONE_WAY, {})
    axis = node.attributes.get("axis", 1)
    if axis < 0 and data is not None:
        axis += len(data)
    return Site(node, Kind.PER_AXIS, operands, AT_AXIS, {"axis": axis})


def _misfit(data: Shape, scale: Shape, axis: int, block: int) -> Misfit | None:
    """Why scales are not those of blocks along an axis, if they are not."""
    try:
        place(data, scale, axis, block, None)
    except Advised as advised:
        hint = f": {advised.hint}" if advised.hint else ""
        return Misfit(advised.misfit.reason, f"{advised.misfit.detail}{hint}")
    return None


def _refuse_blocks(_: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """Raises why these scales are not those of the blocks."""
    data, scale = shapes[:2]
    misfit = _misfit(data, scale, attributes["axis"], attributes["block_size"])
    raise misfit or Misfit(Reason.EXTENT_MISMATCH, "a block is an axis of its own")


#: The rule of scales that no block has. Those that fit are planned with the block as an axis.
_BLOCKS = replace(
    AT_AXIS,
    name="blocks",
    attributes=MappingProxyType(
        {"axis": Attribute(required=True), "block_size": Attribute(required=True)}
    ),
    align=_refuse_blocks,
    summary="A scale for each block along an axis.",
    source="ONNX operator document, DequantizeLinear 21: block_size",
)


def _blocked(node: Node, operands: tuple[Operand, ...], block: int) -> Site:
    """One scale per block along `axis`: that axis of the data as two, the second one a block.

    A last block that is cut off counts as a whole one: its elements have one scale all the same.
    """
    shapes = [part.shape for part in operands]
    axis = int(node.attributes.get("axis", 1))
    if len(shapes) < 2 or None in shapes or len({len(shape or ()) for shape in shapes}) != 1:
        return not_modelled(node)
    data, scale = shapes[0] or (), shapes[1] or ()
    axis += len(data) if axis < 0 else 0
    if all(isinstance(size, int) for size in (*data, *scale)) and _misfit(data, scale, axis, block):
        return Site(node, Kind.PER_AXIS, operands, _BLOCKS, {"axis": axis, "block_size": block})
    size = data[axis] if 0 <= axis < len(data) else None
    counts = [(shape or ())[axis] for shape in shapes[1:]] if size is not None else []
    # One scale would stretch along every block.
    several = all(isinstance(count, int) and count > 1 for count in counts)
    if block < 1 or not (isinstance(size, int) or (isinstance(size, Dim) and several)):
        words = str(size) if isinstance(size, Dim) else brief(size)
        return not_modelled(node, f"blocks of {block} along an axis of {words}")
    inner = [((size + block - 1) // block, block), *((count, 1) for count in counts)]
    parts = [
        replace(part, shape=(*(shape or ())[:axis], *two, *(shape or ())[axis + 1 :]))
        for part, shape, two in zip(operands, shapes, inner, strict=True)
    ]
    return Site(node, Kind.PER_AXIS, tuple(parts), ONE_WAY, {})


def _if_present(*positions: int) -> Builder:
    """A row for ops that broadcast only if one of these inputs is present."""

    def build(node: Node) -> Site | None:
        if any(input_at(node, position) is not None for position in positions):
            return not_modelled(node)
        return None

    return build


def _einsum(node: Node) -> Site | None:
    """The document broadcasts only ellipses; NumPy and ONNX Runtime also stretch a letter's 1."""
    equation = str(node.attributes.get("equation", "")).replace(" ", "")
    operands = present_operands(node)
    ellipses = sum("..." in term for term in equation.split("->")[0].split(","))
    if len(operands) > 1 and (ellipses > 1 or _stretched_letters(equation, operands)):
        return not_modelled(node)
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
        **_rows(_trailing, "LayerNormalization RMSNormalization SimplifiedLayerNormalization"),
        **_rows(_per_axis, "QuantizeLinear DequantizeLinear"),
        **_rows(_if_present(4, 5), "LinearAttention"),
        **_rows(_einsum, "Einsum"),
    }
)
