"""The open sizes of a model that count samples.

An engine without a batch axis sees one sample at a time: to it such a size is 1. The size is axis 0
of an input and not a number. Its name says that it counts samples ("batch", "N"), or says nothing
("?", "DynamicDimension.0"). A size of another name counts samples where it is axis 0 of an op that
is defined by samples, such as a convolution. A size that an op computes across (a sum, a product,
the time of an LSTM) does not count samples, unless its name says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from ...sizes.dim import Dim, Symbol, lone_symbol, plain
from ..ir.graph import Graph, Node, Value
from ..ir.site import Kind
from ..onnx_ops.sites import find_site
from .node_axes import axes_given, normal, summed_axis

#: Names by convention.
_SAYS_BATCH = re.compile(r"(n|b|bs|bsz|nb|.*batch.*)", re.IGNORECASE)
#: Names that exporters generate: torch, Paddle, tf2onnx, ONNX's own inference, onnx_ir.
_SAYS_NOTHING = re.compile(
    r"unk_*\d*|.*dynamic_?dim(ension)?[._]?\d*|.*_o\d+__d\d+|.*dim_?\d+|[ds]\d+|none|any|\?.*|-1",
    re.IGNORECASE,
)
#: Ops that are defined by samples: axis 0 of their data is the batch
#: (pnnx, solve_batch_index.cpp, as ONNX ops).
BY_SAMPLE = frozenset(
    {
        "AveragePool",
        "BatchNormalization",
        "Conv",
        "ConvTranspose",
        "DepthToSpace",
        "GlobalAveragePool",
        "GlobalMaxPool",
        "GroupNormalization",
        "InstanceNormalization",
        "LRN",
        "LpPool",
        "MaxPool",
        "Resize",
        "SpaceToDepth",
        "Upsample",
    }
)


@dataclass(frozen=True, slots=True)
class Samples:
    """The sizes that count samples.

    Attributes:
        sizes: the sizes; each is a lone symbol.
        taken: axes of inputs that are taken for a batch though their name does not say so.
        data: axes of inputs that are taken for data.
    """

    sizes: frozenset[Dim] = frozenset()
    taken: tuple[str, ...] = ()
    data: tuple[str, ...] = ()

    @property
    def ones(self) -> dict[Symbol, int]:
        """The numbers of the sizes for one sample."""
        return {symbol: 1 for size in self.sizes for symbol in size.symbols}


#: A node, an operand of it, and an axis of that.
_Use: TypeAlias = tuple[Node, Value, int]


def sizes_of_samples(graph: Graph, axis: int | None, *, every: bool) -> Samples:
    """The sizes that count samples, by their names and by their uses in the graph.

    Args:
        graph: the model.
        axis: the axis of the inputs that counts samples; a negative number for none. None: axis 0.
        every: whether each open size there counts samples, whatever its name and its uses.
    """
    outer, uses = _open_sizes(graph, axis or 0)
    if axis is not None or every:
        return Samples(frozenset(outer))
    sizes = {size for size in outer if _counts_samples(size, uses.get(size, ()))}
    groups_of: dict[object, list[Set[object]]] = {}
    for group in _combined(graph) if sizes else ():
        for size in group:
            groups_of.setdefault(size, []).append(group)
    # Of two sizes that must be equal, both count samples or neither does.
    ones = {symbol: 1 for size in sizes for symbol in size.symbols}
    waiting = [size for size in groups_of if size not in sizes and not _is_one(size, ones)]
    for size in waiting:  # the list grows
        for group in groups_of[size]:
            apart = group & sizes
            sizes -= apart
            waiting += apart
    words = {size: f"axis 0 of {value.name!r} ({size})" for size, value in outer.items()}
    taken = (words[size] for size in outer if size in sizes and not named_batch(size))
    data = (words[size] for size in outer if size not in sizes)
    return Samples(frozenset(sizes), tuple(taken), tuple(data))


def _is_one(size: object, ones: Mapping[Symbol, int]) -> bool:
    """Whether a size is 1 for one sample, as min(N, 1000) is."""
    return isinstance(size, Dim) and plain(size.substitute(ones)) == 1


def _open_sizes(graph: Graph, axis: int) -> tuple[dict[Dim, Value], dict[Dim, list[_Use]]]:
    """The lone symbols at `axis` of an input of two axes or more, and the uses of such sizes."""
    outer: dict[Dim, Value] = {}
    uses: dict[Dim, list[_Use]] = {}
    for value in graph.inputs if axis >= 0 else ():
        size = value.shape[axis] if len(value.shape or ()) > max(axis, 1) and value.shape else None
        if isinstance(size, Dim) and lone_symbol(size) is not None:
            outer.setdefault(size, value)
    for node in graph.nodes if outer else ():
        for value in filter(None, node.inputs):
            for place, size in enumerate(value.shape or ()):
                if size in outer and isinstance(size, Dim):
                    uses.setdefault(size, []).append((node, value, place))
    return outer, uses


def _combined(graph: Graph) -> Iterator[Set[object]]:
    """The open sizes on one axis of an element-wise op."""
    for node in graph.nodes:
        site = find_site(node)
        if site is None or site.kind not in (Kind.ELEMENTWISE, Kind.WHERE):
            continue
        shapes = [part.shape or () for part in site.operands]
        for axis in range(1, max(map(len, shapes)) + 1):
            sizes = {shape[-axis] for shape in shapes if len(shape) >= axis}
            group = {size for size in sizes if not isinstance(size, int)}
            if len(group) > 1:
                yield group


def named_batch(size: Dim) -> bool:
    """Whether a size's name says that it counts samples."""
    symbol = lone_symbol(size)
    return symbol is not None and symbol.named and _SAYS_BATCH.fullmatch(symbol.name) is not None


def _counts_samples(size: Dim, uses: Sequence[_Use]) -> bool:
    (symbol,) = size.symbols
    if symbol.low > 1:
        return False
    if named_batch(size):
        return True
    if any(_computes_across(node, value, axis) for node, value, axis in uses):
        return False
    if not symbol.named or _SAYS_NOTHING.fullmatch(symbol.name) is not None:
        return True
    return any(node.onnx_op in BY_SAMPLE and axis == 0 for node, _, axis in uses)


def _computes_across(node: Node, value: Value, axis: int) -> bool:
    """Whether the op combines numbers along this axis of an operand, or joins operands along it.

    A choice of rows (Gather, Slice) does not count: models write `y[0]` where a batch is 1.
    """
    if node.onnx_op in BY_SAMPLE:
        return value is node.inputs[0] and axis > 0
    across = _ACROSS.get("Reduce" if node.onnx_op.startswith("Reduce") else node.onnx_op)
    return across is not None and across(node, value, axis)


def _along(node: Node, value: Value, axis: int) -> bool:
    reduced = node.attributes.get("axis", 0 if node.op.startswith("Arg") else -1)
    return axis in normal((reduced,), len(value.shape or ()))


def _from(node: Node, value: Value, axis: int) -> bool:
    """Softmax of opset 13 computes along one axis; before 13, over all axes from it on."""
    (first,) = normal(
        (node.attributes.get("axis", -1 if node.version >= 13 else 1),), len(value.shape or ())
    )
    return axis == first if node.version >= 13 else axis >= first


def _trailing(node: Node, value: Value, axis: int) -> bool:
    (first,) = normal((node.attributes.get("axis", -1),), len(value.shape or ()))
    return value is node.inputs[0] and axis >= first


def _reduced(node: Node, value: Value, axis: int) -> bool:
    axes = axes_given(node)
    return value is node.inputs[0] and (
        axes is None or axis in normal(axes, len(value.shape or ()))
    )


def _time(node: Node, value: Value, axis: int) -> bool:
    return value is node.inputs[0] and axis == (1 if node.attributes.get("layout") else 0)


def _summed(node: Node, value: Value, axis: int) -> bool:
    return axis == summed_axis(node, value)


_ACROSS: Mapping[str, Callable[[Node, Value, int], bool]] = MappingProxyType(
    {
        "ArgMax": _along,
        "ArgMin": _along,
        "Concat": _along,
        "TopK": _along,
        "Softmax": _from,
        "LogSoftmax": _from,
        "Hardmax": _from,
        "LayerNormalization": _trailing,
        "RMSNormalization": _trailing,
        "Reduce": _reduced,
        "MatMul": _summed,
        "Gemm": _summed,
        "LSTM": _time,
        "GRU": _time,
        "RNN": _time,
    }
)
