"""The tensors of a model that are images, and their layout after the change to channels-last.

Converters for engines of channels-last images (NHWC) transpose a model's images and leave other
tensors unchanged. A tensor's layout is a permutation: its new axes by their old numbers, or None if
it is unchanged. Images begin at inputs of four and five axes, and at the data of a convolution or a
similar op. Each op passes the layout on according to its effect on axes. Where an op needs the old
order of axes (a product, a reshape across channels), the image is put back, the result is no image,
and a note says so. Nothing is guessed from sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from ...errors import printable
from ...sizes.dim import Number
from ..ir.graph import Graph, Node, Value
from ..ir.site import Kind
from ..onnx_ops.sites import find_site
from ..onnx_ops.sizes.facts import SURPRISES
from ..transport.node_axes import axes_given, normal

Perm = tuple[int, ...]
#: The most notes; a model of patches puts its images back in every block.
MOST_NOTES = 50
#: Ranks that an image has: batch, channels, and one to three axes of space.
IMAGE_RANKS = range(3, 6)
#: Ops that are defined on (batch, channels, space ...): operand and result are images.
_IMAGE_OPS = frozenset(
    {
        *("Conv", "ConvTranspose", "ConvInteger", "QLinearConv", "DeformConv", "MaxPool"),
        *("AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool", "LRN"),
        *("InstanceNormalization", "GroupNormalization", "BatchNormalization", "Upsample"),
        *("Resize", "DepthToSpace", "SpaceToDepth", "GridSample", "ImageScaler"),
    }
)
#: Ops that compute element by element, or along axes that they name: the layout stays.
_KEEPING = frozenset(
    {
        *("Identity", "Cast", "Neg", "Abs", "Floor", "Ceil", "Not", "Sign", "Dropout", "Relu"),
        *("LeakyRelu", "Elu", "Selu", "Celu", "Gelu", "Mish", "ThresholdedRelu", "HardSigmoid"),
        *("HardSwish", "Swish", "Sigmoid", "Softplus", "Softsign", "Sqrt", "Reciprocal", "Exp"),
        *("Log", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Tanh", "Asinh"),
        *("Acosh", "Atanh", "Erf", "Round", "IsNaN", "IsInf", "BitwiseNot", "Shrink", "Clip"),
        *("Softmax", "LogSoftmax", "Hardmax", "CumSum", "Pad", "Slice", "Split", "Tile"),
        *("QuantizeLinear", "DequantizeLinear", "LpNormalization"),
    }
)
_BROADCASTS = frozenset({Kind.ELEMENTWISE, Kind.WHERE, Kind.PRELU, Kind.EXPAND})


def channels_last(rank: int) -> Perm:
    """The permutation that makes an image channels-last.

    >>> channels_last(4)
    (0, 2, 3, 1)
    """
    return (0, *range(2, rank), 1)


@dataclass
class Layouts:
    """The layout of every tensor, by identity.

    Attributes:
        graph: the graph in ONNX's words; it holds the tensors that the identities are of.
        permutations: of the tensors that change.
        notes: places where images are put back into the old order, and inputs that are no images.
    """

    graph: Graph
    permutations: dict[int, Perm] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def of(self, value: Value | None) -> Perm | None:
        """The tensor's permutation; None where it stays as it is."""
        return None if value is None or value.constant else self.permutations.get(id(value))

    def put(self, value: Value, perm: Perm | None) -> None:
        """Stores a tensor's layout."""
        if perm is not None and perm != tuple(range(len(perm))):
            self.permutations[id(value)] = perm

    def rank(self, value: Value | None) -> int | None:
        """The rank of a tensor, as far as it is known."""
        perm = self.of(value)
        if perm is not None:
            return len(perm)
        return None if value is None or value.shape is None else len(value.shape)


def follow(graph: Graph) -> Layouts:
    """The layouts of a graph in ONNX's words, every image made channels-last."""
    layouts = Layouts(graph)
    wanted = _wanted(graph)
    for value in graph.inputs:
        rank = len(value.shape) if value.shape is not None else 0
        if rank in (4, 5) or (rank in IMAGE_RANKS and id(value) in wanted):
            layouts.put(value, channels_last(rank))
        elif rank == 3:
            layouts.notes.append(
                f"the input {value.name!r} of three axes reaches no convolution, so it is not "
                "taken for an image and stays as it is"
            )
    for node in graph.nodes:
        try:
            _node(node, layouts)
        except SURPRISES:  # attributes that are no axes, say
            layouts.notes.append(f"{node.op} {node.path}: the layout is not followed through it")
    more = len(layouts.notes) - MOST_NOTES
    layouts.notes[:] = map(printable, layouts.notes[:MOST_NOTES])
    if more > 0:
        layouts.notes.append(f"{more} more ops put images back into the model's order")
    return layouts


def _wanted(graph: Graph) -> set[int]:
    """The tensors that convolutions and similar ops read, and those they are computed from."""
    wanted: set[int] = set()
    for node in reversed(graph.nodes):
        data = node.inputs[:1]
        keeps = node.op in _KEEPING or _is_broadcast(node) or node.op == "Concat"
        if node.domain == "" and node.op in _IMAGE_OPS:
            wanted.update(id(value) for value in data if value is not None)
        elif keeps and any(id(value) in wanted for value in node.outputs):
            operands = data if node.op in _KEEPING else node.inputs
            wanted.update(id(value) for value in operands if value is not None)
    return wanted


def _is_broadcast(node: Node) -> bool:
    if node.domain != "":
        return False
    site = find_site(node)
    return site is not None and site.kind in _BROADCASTS


def _node(node: Node, layouts: Layouts) -> None:
    """Passes layouts from a node's operands to its results."""
    if node.domain == "" and node.op in _IMAGE_OPS:
        for value in node.outputs[:1]:
            rank = layouts.rank(value) or layouts.rank(node.inputs[0] if node.inputs else None)
            if rank in IMAGE_RANKS and rank is not None:
                layouts.put(value, channels_last(rank))
        return
    if not any(layouts.of(value) is not None for value in node.inputs):
        _first_image(node, layouts)
        return
    perm: Perm | None
    if node.domain == "" and node.op in _KEEPING:
        perm = layouts.of(node.inputs[0])
    elif _is_broadcast(node) or (node.domain == "" and node.op == "Concat"):
        perm = _widest(node, layouts)
    else:
        row = _MOVES.get(node.op) if node.domain == "" else None
        if row is None and node.domain == "" and node.op.startswith("Reduce"):
            row = _reduced
        perm = row(node, layouts) if row is not None else None
        if perm is None:
            _put_back(node, layouts)
            return
    for value in node.outputs:
        layouts.put(value, perm)


def _first_image(node: Node, layouts: Layouts) -> None:
    """A transpose from channels-last makes an image, which a converter keeps in place."""
    order = node.attributes.get("perm")
    if node.domain == "" and node.op == "Transpose" and order is not None:
        rank = len(order)
        if rank in IMAGE_RANKS and order == (0, rank - 1, *range(1, rank - 1)):
            layouts.put(node.outputs[0], channels_last(rank))


def _widest(node: Node, layouts: Layouts) -> Perm | None:
    """The layout of the first image that has as many axes as the result."""
    ranks = [layouts.rank(value) for value in node.inputs]
    known_ranks = [rank for rank in (*ranks, layouts.rank(node.outputs[0])) if rank is not None]
    for value in node.inputs:
        perm = layouts.of(value)
        if perm is not None and len(perm) == max(known_ranks):
            return perm
    return None


def _put_back(node: Node, layouts: Layouts) -> None:
    names = [repr(v.name) for v in node.inputs if v is not None and layouts.of(v) is not None]
    if node.onnx_op in ("Shape", "Size"):
        return  # it reads no data, and its sizes are in the model's order
    layouts.notes.append(
        f"{node.op} {node.path}: its axes are those of the model, so {' and '.join(names)} "
        f"{'are' if len(names) > 1 else 'is'} put back (Transpose) before it; no image comes out"
    )


# Ops that move axes. Each returns the result's layout, None if the image is put back before.


def _shape(value: Value | None) -> tuple[Any, ...] | None:
    return None if value is None else value.shape


def _transposed(node: Node, layouts: Layouts) -> Perm | None:
    """The layout after a transpose: the same data with renumbered axes."""
    perm = layouts.of(node.inputs[0])
    if perm is None:
        return None
    order = node.attributes.get("perm") or tuple(range(len(perm)))[::-1]
    if sorted(order) != list(range(len(perm))):
        return None
    # Axis a of the operand is axis order.index(a) of the result; data need not move. A reader of
    # the result needs its own order, so the result is an image only if that order is one.
    layout = tuple(order.index(axis) for axis in perm)
    plain = layout == tuple(range(len(layout)))
    return layout if plain or layout == channels_last(len(layout)) else None


def _without(perm: Perm, gone: set[int]) -> Perm:
    """The layout after axes are removed."""
    left = [axis for axis in range(len(perm)) if axis not in gone]
    return tuple(left.index(axis) for axis in perm if axis not in gone)


def _reduced(node: Node, layouts: Layouts) -> Perm | None:
    perm = layouts.of(node.inputs[0])
    if perm is None or node.attributes.get("keepdims", 1):
        return perm
    axes = axes_given(node)
    return None if axes is None else _without(perm, normal(axes, len(perm)))


def _squeezed(node: Node, layouts: Layouts) -> Perm | None:
    perm, shape, axes = layouts.of(node.inputs[0]), _shape(node.inputs[0]), axes_given(node)
    if perm is None:
        return None
    if axes is None:
        if shape is None or not all(isinstance(size, int) for size in shape):
            return None
        axes = tuple(axis for axis, size in enumerate(shape) if size == 1)
    return _without(perm, normal(axes, len(perm)))


def _unsqueezed(node: Node, layouts: Layouts) -> Perm | None:
    """The layout after axes are inserted; old axes keep their relative order."""
    perm, axes = layouts.of(node.inputs[0]), axes_given(node)
    if perm is None or axes is None:
        return None
    rank = len(perm) + len(axes)
    new = normal(axes, rank)
    old = [axis for axis in range(rank) if axis not in new]
    if len(old) != len(perm):
        return None
    rest = iter([old[axis] for axis in perm])
    return tuple(axis if axis in new else next(rest) for axis in range(rank))


def _reshaped(node: Node, layouts: Layouts) -> Perm | None:
    """The layout after a reshape that joins or splits axes which stay neighbours."""
    value, result = node.inputs[0], node.outputs[0]
    perm, before, after = layouts.of(value), _shape(value), _shape(result)
    if perm is None or before is None or after is None or len(before) != len(perm):
        return None
    groups = _groups(before, after)
    if groups is None:
        return None
    order: list[int] = []
    seen = 0
    while seen < len(perm):
        group = next((g for g in groups if perm[seen] in g[0]), None)
        if group is None or tuple(perm[seen : seen + len(group[0])]) != group[0]:
            return None
        order += group[1]
        seen += len(group[0])
    return tuple(order) if sorted(order) == list(range(len(after))) else None


def _groups(
    before: Sequence[Number], after: Sequence[Number]
) -> list[tuple[tuple[int, ...], tuple[int, ...]]] | None:
    """Runs of axes that hold the same elements in the same order on both sides."""
    groups = []
    i = j = 0
    while i < len(before) and j < len(after):
        a, b = before[i], after[j]
        start, other = i, j
        i, j = i + 1, j + 1
        while a != b:
            if not isinstance(a, int) or not isinstance(b, int) or a == 0 or b == 0:
                return None
            if a < b:
                if i == len(before) or not isinstance(before[i], int):
                    return None
                a, i = a * int(before[i]), i + 1
            else:
                if j == len(after) or not isinstance(after[j], int):
                    return None
                b, j = b * int(after[j]), j + 1
        groups.append((tuple(range(start, i)), tuple(range(other, j))))
    if any(size != 1 for size in (*before[i:], *after[j:])) or not groups:
        return None
    last = groups[-1]
    groups[-1] = ((*last[0], *range(i, len(before))), (*last[1], *range(j, len(after))))
    return groups


_MOVES: Mapping[str, Callable[[Node, Layouts], Perm | None]] = MappingProxyType(
    {
        "Transpose": _transposed,
        "Squeeze": _squeezed,
        "Unsqueeze": _unsqueezed,
        "Reshape": _reshaped,
        "Flatten": _reshaped,
        "ArgMax": _reduced,
        "ArgMin": _reduced,
    }
)
