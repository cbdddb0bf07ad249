"""The open sizes of a model that count samples.

An engine without a batch axis sees one sample at a time: to it such a size is 1. The size is axis 0
of an input and not a number. Its name says that it counts samples ("batch", "N"), or says nothing
("?", "DynamicDimension.0"). A size of another name counts samples where it is axis 0 of an op that
is defined by samples, such as a convolution. A size that an op computes across (a sum, a product,
the time of an LSTM) does not count samples, unless its name says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from ...sizes.dim import Symbol, lone_symbol
from ..formats.onnx.sites import find_site
from ..ir.graph import Graph, Node, Value
from ..ir.site import Kind
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
    """The sizes that count samples, and notes on the choice.

    Attributes:
        symbols: the sizes.
        notes: a sentence for each size that was decided.
    """

    symbols: frozenset[Symbol] = frozenset()
    notes: tuple[str, ...] = ()


def outer_sizes(graph: Graph, axis: int = 0) -> dict[Symbol, Value]:
    """The open sizes at `axis` of an input of two axes or more, with that input."""
    sizes: dict[Symbol, Value] = {}
    for value in graph.inputs:
        if value.shape is not None and len(value.shape) > max(axis, 1):
            symbol = lone_symbol(value.shape[axis])
            if symbol is not None:
                sizes.setdefault(symbol, value)
    return sizes


def sizes_of_samples(graph: Graph, engine: str) -> Samples:
    """The sizes that count samples, by their names and by their uses in the graph."""
    outer = outer_sizes(graph)
    uses = _uses(graph, outer)
    symbols = {symbol for symbol in outer if _counts_samples(symbol, uses[symbol])}
    groups = list(_combined(graph)) if symbols else []
    groups_of: dict[Symbol | None, list[Set[Symbol | None]]] = {}
    for group in groups:
        for symbol in group:
            groups_of.setdefault(symbol, []).append(group)
    # Of two sizes that must be equal, both count samples or neither does.
    waiting = [symbol for symbol in groups_of if symbol not in symbols]
    for symbol in waiting:  # the list grows
        for group in groups_of[symbol]:
            apart = group & symbols
            symbols -= apart
            waiting += apart
    return Samples(frozenset(symbols), tuple(_notes(outer, symbols, engine)))


def _notes(outer: Mapping[Symbol, Value], symbols: Set[Symbol], engine: str) -> Iterator[str]:
    """A note where the name alone does not decide."""
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


def fixed_note(values: Sequence[Value], engine: str) -> Iterator[str]:
    """A note on inputs whose batch is a number above 1."""
    if values:
        names = [f"axis 0 of {value.name!r} ({(value.shape or ('?',))[0]})" for value in values]
        yield (
            f"{engine} holds no batch in its tensors; taken for a batch, and judged for one "
            f"sample: {_listed(names)} (say otherwise: batch_axis, --batch-axis none)"
        )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return ", ".join(names[:2]) + more


def _combined(graph: Graph) -> Iterator[Set[Symbol | None]]:
    """The open sizes on one axis of an element-wise op; None for an expression."""
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
    """The uses of symbols that alone are a size of an operand."""
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
    return any(node.word in BY_SAMPLE and axis == 0 for node, _, axis in uses)


def _computes_across(node: Node, value: Value, axis: int) -> bool:
    """Whether the op combines numbers along this axis of an operand, or joins operands along it.

    A choice of rows (Gather, Slice) does not count: models write `y[0]` where a batch is 1.
    """
    if node.word in BY_SAMPLE:
        return value is node.inputs[0] and axis > 0
    across = _ACROSS.get("Reduce" if node.word.startswith("Reduce") else node.word)
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
