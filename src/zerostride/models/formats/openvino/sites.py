"""The layers of an IR that broadcast, and their rules.

A layer's rule is the one by which OpenVINO infers and computes such layers, since the engine
defines the meaning of an IR. A bug of the engine does not change the meaning: its CPU plugin
rewrites a pdpd Subtract, but the attributes still define the model.

The axis of pdpd is the attribute ``auto_broadcast.auto_broadcast_axis``, 0 if it is left out;
``axis`` alone is ignored (run: OpenVINO 2026.4.1, IR 10 and 11, tests/conformance/test_ir.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from ....core.alignment import Alignment, Attribute, Attributes, Rule
from ....core.rules import RULES
from ....engines.aligns import openvino_explicit, openvino_pdpd
from ....engines.table import ENGINES
from ....errors import Misfit, Reason
from ....ops import translated
from ....sizes import Asker, Shape
from ...ir.graph import Node
from ...ir.site import Kind, Operand, Site, not_modelled, operand_of, present_operands, unjudged
from ...onnx_ops.sites import find_site as onnx_site
from ..site_rows import as_onnx
from .attention import attention_site
from .opsets import NEWEST, OPS, canonical

Builder = Callable[[Node, str], "Site | None"]

#: The attribute for the axis of pdpd.
AXIS = "auto_broadcast.auto_broadcast_axis"


def find_site(node: Node) -> Site | None:
    """The site of a layer, or None if it cannot broadcast."""
    if node.domain == "":
        return onnx_site(node)
    op = canonical(node.op)
    if node.domain != "openvino" or op not in OPS or not 1 <= node.version <= NEWEST:
        return unjudged(node, Kind.CUSTOM)
    builder = ROWS.get(op)
    return builder(node, op) if builder is not None else None


def _align_select(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """Select with pdpd: condition and else are each aligned with then, as B with A."""
    condition, then, other = shapes
    first = openvino_pdpd(asker, (then, condition), attributes)
    last = openvino_pdpd(asker, (then, other), attributes)
    mapping = (first.mapping[1], first.mapping[0], last.mapping[1])
    shrinks = frozenset((*first.stretch[0], *last.stretch[0]))
    return Alignment(first.rank, mapping, (first.stretch[1], shrinks, last.stretch[1]))


def _align_normal(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
    """Aligns vectors with axis 1 of the first; nothing stretches."""
    rank = len(shapes[0])
    if rank < 2:
        raise Misfit(Reason.RANK, f"data of rank {rank} have no axis of channels")
    for k, shape in enumerate(shapes[1:], start=1):
        if len(shape) != 1:
            raise Misfit(Reason.RANK, f"operand {k} has rank {len(shape)}; it must be a vector")
    places = (tuple(range(rank)), *[(1,)] * (len(shapes) - 1))
    return Alignment(rank, places, ((),) * len(shapes))


#: A file means what its document says, so the installed release does not matter.
_ENGINE = ENGINES["openvino"]
_NUMPY, _NONE, _PDPD = (_ENGINE.elementwise[name] for name in ("numpy", "none", "pdpd"))
_PRELU = next(iter(_ENGINE.ops["prelu"].values()))
_SELECT = replace(_PDPD, align=_align_select, operands=(3, 3))
_TO_TARGET = _ENGINE.to_target["numpy"]
#: The document's rule: against a target of 0 the engine silently keeps an extent of 1.
_BOTH_WAYS = RULES["bidirectional"]
#: The engine's inference, also of a scalar with one axis, without the bugs of its kernels.
_EXPLICIT = replace(RULES["explicit"], align=openvino_explicit)
_CHANNEL = replace(
    RULES["pdpd"],
    name="at_axis",
    align=_align_normal,
    attributes=MappingProxyType({"axis": Attribute(required=True)}),
    one_way="a vector along the axis has its size",
    operands=(1, 16),
    source="OpenVINO operation documents: vectors along the channels",
)

#: Values of the attribute `auto_broadcast`, whose case OpenVINO ignores.
MODES: Mapping[str, Rule] = MappingProxyType(
    {"numpy": _NUMPY, "none": _NONE, "explicit": _NONE, "pdpd": _PDPD}
)


def mode_of(node: Node, name: str = "auto_broadcast", default: str = "numpy") -> str:
    """A layer's broadcast mode."""
    return str(node.attributes.get(name, default)).lower()


def axis_of(node: Node) -> int | None:
    """The axis of pdpd as OpenVINO reads it; None if it is not a number."""
    axis = node.attributes.get(AXIS, 0)
    return axis if type(axis) is int else None


#: Op to ONNX's name, or to the op table's if ONNX lacks the op.
NAMES: Mapping[str, str] = MappingProxyType(
    {
        **{str(name): str(word) for name, word in translated("openvino", "onnx").items()},
        "Broadcast": "Expand",
        "MatMul": "MatMul",
    }
)


def _ruled(node: Node, kind: Kind, op: str, pdpd: Rule = _PDPD) -> Site:
    """Operands by the layer's `auto_broadcast`."""
    mode = mode_of(node)
    name = NAMES.get(op, op)
    if mode == "pdpd":
        axis = axis_of(node)
        if axis is None:
            return not_modelled(node)
        return Site(node, kind, present_operands(node), pdpd, {"axis": axis}, name)
    if mode not in MODES:
        return not_modelled(node)
    return Site(node, kind, present_operands(node), MODES[mode], {}, name)


def _binary(node: Node, op: str) -> Site:
    if len(node.inputs) != 2:
        return not_modelled(node)
    return _ruled(node, Kind.ELEMENTWISE, op)


def _select(node: Node, op: str) -> Site:
    if len(node.inputs) != 3:
        return not_modelled(node)
    return _ruled(node, Kind.WHERE, op, _SELECT)


def _quantize(node: Node, op: str) -> Site:
    """FakeQuantize: the data and the limits of its ranges, all by `auto_broadcast`."""
    if len(node.inputs) != 5 or mode_of(node) not in ("numpy", "none", "explicit"):
        return not_modelled(node)
    return _ruled(node, Kind.ELEMENTWISE, op)


def _prelu(node: Node, op: str) -> Site:
    """A vector slope that fits axis 1 aligns with it, as in the engine."""
    if len(node.inputs) != 2:
        return not_modelled(node)
    return Site(node, Kind.PRELU, present_operands(node), _PRELU, {}, op)


def _broadcast(node: Node, op: str) -> Site | None:
    """Data and target: Broadcast-1 for opset1 and opset2, Broadcast-3 after them.

    Broadcast-1 is explicit if it has an axes_mapping and its mode is not numpy (the default mode
    is explicit); without an axes_mapping it is numpy.
    """
    count = len(node.inputs)
    mode = mode_of(node, "mode", "explicit" if node.version < 3 and count == 3 else "numpy")
    if node.version < 3:
        recognised = mode in ("numpy", "none", "explicit") and count in (2, 3)
        mode = "numpy" if count == 2 else mode
    else:
        mode = "explicit" if mode == "none" else mode
        recognised = count == (3 if mode == "explicit" else 2)
    rule = _TARGETS.get(mode)
    if not recognised or rule is None:
        return not_modelled(node)
    attributes: dict[str, Any] = {}
    if rule is _EXPLICIT:
        axes = node.inputs[2].content if node.inputs[2] is not None else None
        if axes is None or not all(isinstance(axis, int) for axis in axes):
            return not_modelled(node)
        attributes["axes_mapping"] = tuple(axes)
    site = as_onnx(node, NAMES[op])
    if site is None:
        return None
    data, target = site.operands
    sizes = node.outputs[0].shape if node.outputs else None
    if target.shape is None and sizes is not None and None not in sizes:
        target = Operand(target.name, sizes, True)  # also sizes that are no numbers
    return replace(site, operands=(data, target), rule=rule, attributes=attributes)


_TARGETS: Mapping[str, Rule] = MappingProxyType(
    {
        "numpy": _TO_TARGET,
        "bidirectional": _BOTH_WAYS,
        "explicit": _EXPLICIT,
        "none": _EXPLICIT,
    }
)


def _channels(*order: int) -> Builder:
    """A row for normalisations: the data, and vectors along its channels."""

    def build(node: Node, op: str) -> Site:
        inputs = [node.inputs[k] for k in order if k < len(node.inputs)]
        operands = tuple(operand_of(value) for value in inputs if value is not None)
        if len(operands) < len(order):
            return not_modelled(node)
        name = "GroupNormalization" if op.startswith("Group") else "BatchNormalization"
        return Site(node, Kind.CHANNEL, operands, _CHANNEL, {"axis": 1}, name)

    return build


def _batch_norm(node: Node, op: str) -> Site:
    """The data came third before opset5."""
    order = (0, 1, 2, 3, 4) if node.version >= 5 else (2, 0, 1, 3, 4)
    site = _channels(*order)(node, op)
    assert site is not None
    return site


def _rows(builder: Builder, names: str) -> dict[str, Builder]:
    return dict.fromkeys(names.split(), builder)


#: Every op of the operation sets that may broadcast. `Xor` is opset1's older LogicalXor.
ROWS: Mapping[str, Builder] = MappingProxyType(
    {
        **_rows(
            _binary,
            "Add Subtract Multiply Divide Maximum Minimum Power Mod FloorMod SquaredDifference "
            "Equal NotEqual Greater GreaterEqual Less LessEqual LogicalAnd LogicalOr LogicalXor "
            "Xor BitwiseAnd BitwiseOr BitwiseXor BitwiseLeftShift BitwiseRightShift",
        ),
        **_rows(_select, "Select"),
        **_rows(_quantize, "FakeQuantize"),
        **_rows(_prelu, "PRelu"),
        **_rows(_broadcast, "Broadcast"),
        "MatMul": lambda node, op: as_onnx(node, op, 0, 1),
        "Einsum": as_onnx,
        **_rows(_batch_norm, "BatchNormInference"),
        **_rows(_channels(0, 1, 2), "GroupNormalization"),
        **_rows(attention_site, "ScaledDotProductAttention"),
        **_rows(lambda node, op: not_modelled(node), "FakeConvert"),
    }
)
