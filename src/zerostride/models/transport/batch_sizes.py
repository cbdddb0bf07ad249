"""Which open sizes of a model count samples.

An engine that holds a batch apart, or has none, sees one sample at a time: to it such a size is 1.
The size is axis 0 of an input and no number. Its name says that it counts samples ("batch", "N"),
or says nothing ("?", "DynamicDimension.0"). A size of another name counts samples where an op that
is defined by samples, such as a convolution, gets it as its axis 0. A size that an op computes
across (a sum, a product, the time of an LSTM) does not count samples, unless its name says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from ...sizes.dim import Symbol, lone_symbol
from ..formats.onnx.sites import Kind, find_site
from ..ir.graph import Graph, Node, Value
from .node_axes import axes_given, normal, summed_axis

#: Names by convention.
_SAYS_BATCH = re.compile(r"(n|b|bs|bsz|nb|.*batch.*)", re.IGNORECASE)
#: Names that exporters make: torch, Paddle, tf2onnx, ONNX's own inference, onnx_ir.
_SAYS_NOTHING = re.compile(
    r"unk_*\d*|.*dynamic_?dim(ension)?[._]?\d*|.*_o\d+__d\d+|.*dim_?\d+|[ds]\d+|none|any|\?.*|-1",
    re.IGNORECASE,
)
#: Ops that are defined by samples: axis 0 of their data is the batch, whatever it was before
#: (pnnx, solve_batch_index.cpp, in ONNX's words).
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
    """The sizes that count samples, and what a reader should know of the choice.

    Attributes:
        symbols: the sizes.
        notes: a sentence for each size that the choice is about.
    """

    symbols: frozenset[Symbol] = frozenset()
    notes: tuple[str, ...] = ()


def outer_sizes(graph: Graph, axis: int = 0) -> dict[Symbol, Value]:
    """The open sizes that stand at `axis` of an input of two axes or more, with that input."""
    sizes: dict[Symbol, Value] = {}
    for value in graph.inputs:
        if value.shape is not None and len(value.shape) > max(axis, 1):
            symbol = lone_symbol(value.shape[axis])
            if symbol is not None:
                sizes.setdefault(symbol, value)
    return sizes


def sizes_of_samples(graph: Graph, engine: str) -> Samples:
    """The sizes that count samples, by their names and by what the graph does with them."""
    outer = outer_sizes(graph)
    uses = _uses(graph, outer)
    symbols = {symbol for symbol in outer if _counts_samples(symbol, uses[symbol])}
    groups = list(_combined(graph)) if symbols else []
    groups_of: dict[Symbol | None, list[Set[Symbol | None]]] = {}
    for group in groups:
        for symbol in group:
            groups_of.setdefault(symbol, []).append(group)
    # Two that are to be equal count samples together or not at all.
    waiting = [symbol for symbol in groups_of if symbol not in symbols]
    for symbol in waiting:  # which grows
        for group in groups_of[symbol]:
            apart = group & symbols
            symbols -= apart
            waiting += apart
    return Samples(frozenset(symbols), tuple(_notes(outer, symbols, engine)))


def _notes(outer: Mapping[Symbol, Value], symbols: Set[Symbol], engine: str) -> Iterator[str]:
    """One sentence on what names alone do not settle."""
    batch, data = [], []
    for symbol, value in outer.items():
        if symbol not in symbols:
            data.append(f"axis 0 of {value.name!r} ({symbol.name})")
        elif not _named_batch(symbol):
            batch.append(f"axis 0 of {value.name!r} ({symbol.name})")
    taken = []
    if batch:
        taken.append(f"taken for a batch, and judged for one sample: {_listed(batch)}")
    if data:
        taken.append(f"taken for data: {_listed(data)}")
    if taken:
        yield (
            f"{engine} holds no batch in its tensors; {'; '.join(taken)} (say otherwise: "
            f"batch_axis, --batch-axis {'none' if batch else '0'})"
        )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return ", ".join(names[:2]) + more


def _combined(graph: Graph) -> Iterator[Set[Symbol | None]]:
    """The open sizes that stand on one axis in an element-wise op; None for an expression."""
    for node in graph.nodes:
        site = find_site(node)
        if site is None or site.kind not in (Kind.ELEMENTWISE, Kind.WHERE):
            continue
        ranks = [len(part.shape or ()) for part in site.operands]
        for axis in range(1, max(ranks) + 1):
            shapes = [part.shape or () for part in site.operands]
            sizes = {shape[-axis] for shape in shapes if len(shape) >= axis}
            group = {lone_symbol(size) for size in sizes if not isinstance(size, int)}
            if len(group) > 1:
                yield group


def _named_batch(symbol: Symbol) -> bool:
    return symbol.named and _SAYS_BATCH.fullmatch(symbol.name) is not None


#: A node, an operand of it, and an axis of that.
_Use: TypeAlias = tuple[Node, Value, int]


def _uses(graph: Graph, symbols: Iterable[Symbol]) -> dict[Symbol, list[_Use]]:
    """Where symbols stand alone as a size of an operand."""
    uses: dict[Symbol, list[_Use]] = {symbol: [] for symbol in symbols}
    for node in graph.nodes:
        for value in filter(None, node.inputs):
            for axis, size in enumerate(value.shape or ()):
                symbol = lone_symbol(size)
                if symbol is not None and symbol in uses:
                    uses[symbol].append((node, value, axis))
    return uses


def _counts_samples(symbol: Symbol, uses: Sequence[_Use]) -> bool:
    if symbol.low > 1:
        return False
    if _named_batch(symbol):
        return True
    if any(_computes_across(node, value, axis) for node, value, axis in uses):
        return False
    if not symbol.named or _SAYS_NOTHING.fullmatch(symbol.name) is not None:
        return True
    return any(node.op in BY_SAMPLE and axis == 0 for node, _, axis in uses)


def _computes_across(node: Node, value: Value, axis: int) -> bool:
    """Whether the op makes one number of several along this axis of an operand, or joins along it.

    Which rows are chosen (Gather, Slice) does not tell: `y[0]` is written where a batch is 1.
    """
    if node.op in BY_SAMPLE:
        return value is node.inputs[0] and axis > 0
    across = _ACROSS.get("Reduce" if node.op.startswith("Reduce") else node.op)
    return across is not None and across(node, value, axis)


def _along(node: Node, value: Value, axis: int) -> bool:
    reduced = node.attributes.get("axis", 0 if node.op.startswith("Arg") else -1)
    return axis in normal((reduced,), len(value.shape or ()))


def _from(node: Node, value: Value, axis: int) -> bool:
    """Softmax of opset 13 goes along an axis; before, over all axes from it on."""
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


__all__ = ["BY_SAMPLE", "Samples", "outer_sizes", "sizes_of_samples"]
