"""A fused program cut into stages that chunks can be computed in. Dask is not needed.

Each axis of each node is divided into chunks. A reduction over axes of one chunk each stays inside
a task. Any other reduction ends a stage: tasks fold their chunks to shares (`folds`), and the
merged result is an operand of the next stage. Axes that need the same chunks get the same *label*;
`dask.array.blockwise` calls a label an index.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...compute.special import HALVES, working
from ...fusion.schedule.phases import fold_dtype
from ...fusion.trace.graph import (
    Apply,
    Graph,
    Input,
    Node,
    Reduce,
    View,
    arguments,
    landings,
    rewritten,
)
from .folds import share_dtype
from .labels import Chunks, Classes, Extents, Fresh, common, shared_axes
from .tasks import Labels, Part

#: Reductions whose results have the dtype of the reduced values.
_HELD = frozenset({"sum", "prod", "min", "max"})


@dataclass(frozen=True, slots=True)
class Cuts:
    """Where a graph is cut.

    Attributes:
        level: for each node the stage in which it can be computed.
        ends: the reductions that end a stage.
    """

    level: tuple[int, ...]
    ends: frozenset[int]


def cut(graph: Graph, chunks_of: Mapping[int, Chunks], sizes: Mapping[int, int]) -> Cuts:
    """Finds the reductions that do not fit in one task.

    These are reductions over axes of several chunks, and reductions of a small array (for example
    a row) along an axis that a larger array has in several chunks: the larger one is not
    rechunked for it.

    Args:
        graph: the graph to cut.
        chunks_of: for each input, by its index, its axes' chunks.
        sizes: for each input the number of its elements.
    """
    nodes = graph.nodes
    largest = _largest_in_chunks(graph, chunks_of, sizes)
    chunks: list[Chunks] = []
    level: list[int] = []
    ends: set[int] = set()
    for k, node in enumerate(nodes):
        chunks.append(_chunks(nodes, node, chunks, chunks_of))
        level.append(max((level[arg] + (arg in ends) for arg in arguments(node)), default=0))
        if not isinstance(node, Reduce):
            continue
        size = math.prod(nodes[node.arg].shape)
        for axis in node.over:
            if len(chunks[node.arg][axis] or ()) > 1 or largest(node.arg, axis) > size:
                ends.add(k)
    return Cuts(tuple(level), frozenset(ends))


def _largest_in_chunks(
    graph: Graph, chunks_of: Mapping[int, Chunks], sizes: Mapping[int, int]
) -> Callable[[int, int], int]:
    """A function: for an axis of a node, the size of the largest input with it in several chunks,
    or 0."""
    inputs = frozenset(k for k, node in enumerate(graph.nodes) if isinstance(node, Input))
    classes = Classes(graph.nodes, inputs, graph.outputs)
    largest_sizes: dict[int, int] = {}
    for k in inputs:
        index = graph.nodes[k].index  # type: ignore[union-attr]
        for chunk_label, chunks in zip(classes.of(k), chunks_of[index], strict=True):
            if chunk_label is not None and len(chunks or ()) > 1:
                largest_sizes[chunk_label] = max(largest_sizes.get(chunk_label, 0), sizes[index])

    def largest(k: int, axis: int) -> int:
        label = classes.of(k)[axis]
        return 0 if label is None else largest_sizes.get(label, 0)

    return largest


def widened(graph: Graph) -> Graph:
    """An equal graph with reductions of 16-bit floats held in 32 bits until they leave the program.

    >>> x = Input(0, (4,), "float16")
    >>> total = Reduce("sum", 0, (0,), False, "float32", (), "float16")
    >>> [node.dtype for node in widened(Graph((x, total), (1,), 1)).nodes]
    ['float16', 'float32', 'float16']
    """

    def replaced(_: int, node: Node, nodes: list[Node]) -> Node:
        if not (isinstance(node, Reduce) and node.op in _HELD and node.dtype in HALVES):
            return node
        nodes.append(replace(node, dtype="float32"))
        axes = (tuple(range(len(node.shape))),)
        # A cast would round.
        dtypes = ("float32", node.dtype)
        return Apply("positive", (len(nodes) - 1,), axes, dtypes, node.shape, node.dtype)

    return rewritten(graph, replaced)


def _chunks(
    nodes: Sequence[Node], node: Node, chunks: Sequence[Chunks], chunks_of: Mapping[int, Chunks]
) -> Chunks:
    if isinstance(node, Input):
        own_chunks = chunks_of[node.index]
        return tuple(
            None if n == 1 else axis_chunks
            for n, axis_chunks in zip(node.shape, own_chunks, strict=True)
        )
    candidates: list[list[Extents | None]] = [[] for _ in node.shape]
    for arg, axis, to in shared_axes(nodes, node):
        candidates[to].append(chunks[arg][axis])
    return tuple(common(axis_chunks) for axis_chunks in candidates)


# Stages


@dataclass(frozen=True, slots=True)
class StageResult:
    """A result of a stage.

    Attributes:
        fold: "" for a node's values; otherwise the reduction whose shares it holds.
        nodes: the nodes that it consists of.
        of: the node whose axes it has: the node itself, or the folded one.
        over: the axes that are folded.
        whole: the shape of the node whose axes it has.
        dtype: of its chunks.
    """

    fold: str
    nodes: tuple[int, ...]
    of: int
    over: tuple[int, ...]
    whole: tuple[int, ...]
    dtype: np.dtype[Any]


@dataclass(slots=True)
class Stage:
    """A graph with its sources and its targets, while it is put together.

    Attributes:
        nodes: of the graph, and of the shares.
        sources: nodes that are already arrays: inputs, and results of earlier stages.
        targets: the results to compute.
        local: the reductions that give shares, each of a chunk alone.
    """

    nodes: list[Node]
    sources: frozenset[int]
    targets: list[StageResult] = field(default_factory=list)
    local: set[int] = field(default_factory=set)

    def add_result(self, k: int) -> None:
        """Adds a node's values as a target."""
        node = self.nodes[k]
        self.targets.append(StageResult("", (k,), k, (), node.shape, np.dtype(node.dtype)))

    def add_share(self, k: int) -> None:
        """Adds the shares of a reduction as a target."""
        node = self.nodes[k]
        assert isinstance(node, Reduce)
        inner = fold_dtype(node)
        shares: tuple[int, ...]
        if node.op in ("argmin", "argmax"):
            value = working(node.compute)
            shares = (self._share(node, node.op, inner), self._share(node, node.op[3:], value))
            inner = value
        else:
            shares = (self._share(node, node.op, inner),)
        dtype = share_dtype(node.op, inner)
        shape = self.nodes[node.arg].shape
        self.targets.append(StageResult(node.op, shares, node.arg, node.over, shape, dtype))

    def _share(self, node: Reduce, op: str, dtype: str) -> int:
        extents = enumerate(self.nodes[node.arg].shape)
        shape = tuple(1 if axis in node.over else n for axis, n in extents)
        self.nodes.append(replace(node, op=op, keepdims=True, shape=shape, dtype=dtype))
        self.local.add(len(self.nodes) - 1)
        return len(self.nodes) - 1


@dataclass(frozen=True, slots=True)
class Group:
    """Targets that one task computes, and the sources that it reads.

    Attributes:
        targets: of the stage.
        graph: without what they do not need. Its inputs are the sources, in order; its outputs are
            the targets' nodes, in order.
        labels: of the graph's nodes.
        sources: for each input of the graph the stage's node, and the labels of its axes.
        axes: for each target the labels of its axes.
        chunks: for each label its chunks; None where no source determines them.
        extents: for each label its extent in the whole arrays.
    """

    targets: tuple[StageResult, ...]
    graph: Graph
    labels: tuple[Labels, ...]
    sources: tuple[tuple[int, Labels], ...]
    axes: tuple[Labels, ...]
    chunks: Mapping[int, Extents | None]
    extents: Mapping[int, int]

    def parts(self) -> tuple[Part, ...]:
        """The arrays that a task computes."""
        count = itertools.count()
        return tuple(
            Part(
                target.fold,
                tuple(next(count) for _ in target.nodes),
                labels,
                target.over,
                target.whole,
                target.dtype,
            )
            for target, labels in zip(self.targets, self.axes, strict=True)
        )


def groups(stage: Stage, chunks_of: Mapping[int, Chunks]) -> list[Group]:
    """The stage's targets, grouped by the chunks that their tasks walk.

    Args:
        stage: with its targets.
        chunks_of: for each source its axes' chunks.
    """
    classes = Classes(
        stage.nodes, stage.sources, [k for target in stage.targets for k in target.nodes]
    )
    if classes.clash:  # an array is read along one axis in two ways, as in x[:, None] - x
        return [_group(stage, [target], Fresh(stage.nodes), chunks_of) for target in stage.targets]
    together = _group(stage, stage.targets, classes, chunks_of)
    sets: dict[frozenset[int], list[StageResult]] = {}
    for target, labels in zip(together.targets, together.axes, strict=True):
        several = frozenset(
            label for label in labels if label is not None and len(together.chunks[label] or ()) > 1
        )
        sets.setdefault(several, []).append(target)
    if len(sets) == 1:
        return [together]
    return [_group(stage, targets, classes, chunks_of) for targets in sets.values()]


def _group(
    stage: Stage,
    targets: Sequence[StageResult],
    naming: Classes | Fresh,
    chunks_of: Mapping[int, Chunks],
) -> Group:
    """The graph of some targets, with each node once for each of its labellings."""
    axes = tuple(naming.of(target.of) for target in targets)
    wanted = [
        (k, tuple(None if axis in target.over else label for axis, label in enumerate(labels)))
        for target, labels in zip(targets, axes, strict=True)
        for k in target.nodes
    ]
    asked = _labellings(stage, wanted, naming)
    sources = [key for key in asked if key[0] in stage.sources]
    extents = _extents(stage.nodes, [*asked, *zip((x.of for x in targets), axes, strict=True)])
    number = {key: place for place, key in enumerate(asked)}
    nodes = _relabelled(stage, asked, naming)
    whole = _folded_inside(stage, {k for k, _ in asked}, naming)
    return Group(
        tuple(targets),
        Graph(nodes, tuple(number[key] for key in wanted), len(sources)),
        tuple(labels for _, labels in asked),
        tuple(sources),
        axes,
        _chunks_by_label(sources, chunks_of, extents, whole),
        extents,
    )


#: A node with the labels of its axes.
_Key = tuple[int, Labels]


def _labellings(stage: Stage, wanted: Sequence[_Key], naming: Classes | Fresh) -> list[_Key]:
    """The nodes that some nodes need, each with all labels with which it is read; rising."""
    asked: dict[int, dict[Labels, None]] = {}
    for k, labels in wanted:
        asked.setdefault(k, {})[labels] = None
    for k in range(len(stage.nodes) - 1, -1, -1):
        if k not in stage.sources:
            for labels in asked.get(k, ()):
                for arg, of_arg in _handed(stage.nodes, k, labels, naming):
                    asked.setdefault(arg, {})[of_arg] = None
    return [(k, labels) for k in sorted(asked) for labels in asked[k]]


def _relabelled(stage: Stage, asked: Sequence[_Key], naming: Classes | Fresh) -> tuple[Node, ...]:
    """A node for each labelling; sources become inputs, in order."""
    number = {key: place for place, key in enumerate(asked)}
    inputs = itertools.count()
    nodes: list[Node] = []
    for k, labels in asked:
        node = stage.nodes[k]
        if k in stage.sources:
            weak = isinstance(node, Input) and node.weak
            nodes.append(Input(next(inputs), node.shape, node.dtype, weak))
            continue
        args = [number[key] for key in _handed(stage.nodes, k, labels, naming)]
        if isinstance(node, Apply):
            node = replace(node, args=tuple(args))
        elif isinstance(node, Reduce | View):
            node = replace(node, arg=args[0])
        nodes.append(node)
    return tuple(nodes)


def _extents(nodes: Sequence[Node], labelled: Sequence[_Key]) -> dict[int, int]:
    """The extent of each label; that of the last axis that has it."""
    return {
        label: extent
        for k, labels in labelled
        for label, extent in zip(labels, nodes[k].shape, strict=True)
        if label is not None
    }


def _handed(
    nodes: Sequence[Node], k: int, labels: Labels, naming: Classes | Fresh
) -> list[tuple[int, Labels]]:
    """The arguments of a node, with the labels that they get from the node's."""
    node = nodes[k]
    arguments = []
    for arg, lands in landings(node, nodes):
        shape = nodes[arg].shape
        own = naming.of(arg) if isinstance(node, Reduce) else ()
        of_arg: list[int | None] = [None] * len(shape)
        for axis, to in enumerate(lands):
            if shape[axis] == 1:
                continue
            if isinstance(node, Reduce) and axis in node.over:
                of_arg[axis] = own[axis]
            elif to is not None:
                of_arg[axis] = labels[to]
        arguments.append((arg, tuple(of_arg)))
    return arguments


def _folded_inside(stage: Stage, asked: set[int], naming: Classes | Fresh) -> set[int]:
    """The labels of axes that are folded within a task, which needs their whole extents."""
    folded: set[int] = set()
    for k in asked:
        node = stage.nodes[k]
        if isinstance(node, Reduce) and k not in stage.local and k not in stage.sources:
            of_arg = naming.of(node.arg)
            folded.update(
                label for label in (of_arg[axis] for axis in node.over) if label is not None
            )
    return folded


def _chunks_by_label(
    sources: Sequence[tuple[int, Labels]],
    chunks_of: Mapping[int, Chunks],
    extents: Mapping[int, int],
    whole: set[int],
) -> dict[int, Extents | None]:
    chunkings: dict[int, list[Extents | None]] = {label: [] for label in extents}
    for k, labels in sources:
        for label, chunks in zip(labels, chunks_of[k], strict=True):
            if label is not None:
                chunkings[label].append(chunks)
    return {
        label: (extent,) if label in whole else common(chunkings[label])
        for label, extent in extents.items()
    }
