"""The code of Dask tasks: one chunk of an op, a view, or a fused program. Dask is not needed.

Everything here is pickled and sent to workers. The rules were applied to the whole arrays: a task
has the plan's axes, or the graph with a label on each axis, and inserts its chunk's extents. It
applies no rule, because a rule would see the chunk's extents instead of the arrays'.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...compute import native, reference
from ...compute.semantics import WEAK
from ...core.plan import Plan, RuleUse
from ...fusion.run import Ready, ready, run_into
from ...fusion.trace.graph import Constant, Graph, Input
from ...ops import find_op
from .folds import identity, packed

#: The place of a chunk in the result, axis by axis.
Places = tuple[slice, ...]
#: For each axis the label of its extent; None for an axis of extent 1.
Labels = tuple[int | None, ...]
#: The most programs that a process keeps: one for each shape of chunks.
_CACHE_SIZE = 512


@dataclass(frozen=True, slots=True)
class Pointwise:
    """An op of the table on one chunk of each operand.

    Attributes:
        op: its name.
        mapping: the plan's: where each axis of each operand lands.
        rank: of the result.
        use: the rule, and the engine whose values to compute.
        dtype: what to compute in, or None.
    """

    op: str
    mapping: tuple[Labels, ...]
    rank: int
    use: RuleUse
    dtype: str | None

    def __call__(self, places: Places, *blocks: Any) -> Any:
        """The result's chunk; at rank 0 with one axis, as Dask's blocks need an index."""
        values = [reference.as_operand(block, k) for k, block in enumerate(blocks)]
        shapes = tuple(reference.shape_of(value) for value in values)
        shape = extents_of(places) if self.rank else ()
        plan = Plan(shape, shapes, self.mapping, self.use)
        dtype = None if self.dtype is None else np.dtype(self.dtype)
        with one_thread_each():
            result = native.compute(find_op(self.op), plan, values, None, dtype)
        return result if self.rank else np.reshape(result, (1,))


@dataclass(frozen=True, slots=True)
class Laid:
    """A chunk of an operand laid over the result's chunk; a copy, or a view with stride 0."""

    mapping: Labels
    rank: int
    copy: bool

    def __call__(self, places: Places, block: Any) -> Any:
        """The result's chunk."""
        array = np.asarray(reference.as_operand(block))
        shape = extents_of(places)
        lifted = not self.rank  # Dask's blocks need an index
        plan = Plan(() if lifted else shape, (array.shape,), (self.mapping,), RuleUse("numpy"))
        view = plan.view(0, array)
        chunk = native.copied(view) if self.copy else view
        return np.reshape(chunk, (1,)) if lifted else chunk


@dataclass(frozen=True, slots=True)
class Part:
    """One of the arrays that a task computes.

    Attributes:
        fold: "" for a result; otherwise the reduction of which this is a chunk's share.
        outputs: the graph's outputs that it consists of.
        labels: of its axes. A share keeps the axes it was folded over, with extent 1.
        over: for a share, the axes it was folded over.
        shape: the folded array's whole shape, in which positions are counted.
        dtype: of its chunks.
    """

    fold: str
    outputs: tuple[int, ...]
    labels: Labels
    over: tuple[int, ...]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """A fused program on one chunk of each operand.

    Attributes:
        graph: the graph, with the shapes of the whole arrays.
        labels: of every node's axes: axes of one label have the same extent in every chunk.
        whole: the labels' extents in the whole arrays.
        index: the labels of the axes along which a task has a place; others are in one chunk.
        parts: the arrays that a task returns: a single array, or a tuple.
        lifted: whether a single result of rank 0 gets an axis, as Dask's blocks need an index.
    """

    graph: Graph
    labels: tuple[Labels, ...]
    whole: Mapping[int, int]
    index: tuple[int | None, ...]
    parts: tuple[Part, ...]
    lifted: bool = False
    #: Identifies the piece, in this process and in others.
    token: str = field(init=False)

    def __post_init__(self) -> None:
        text = repr((self.graph, self.labels, self.whole, self.index, self.parts, self.lifted))
        object.__setattr__(self, "token", hashlib.sha256(text.encode()).hexdigest())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Piece) and self.token == other.token

    def __hash__(self) -> int:
        return hash(self.token)

    def __dask_tokenize__(self) -> tuple[str, str]:
        return "zerostride", self.token

    def __call__(self, places: Places, *blocks: Any) -> Any:
        """The task's arrays."""
        extents = dict(self.whole)
        starts: dict[int | None, int] = {}
        for label, place in zip(self.index, places, strict=True):
            if label in extents:
                extents[label], starts[label] = place.stop - place.start, place.start
        if any(label in starts and not extent for label, extent in extents.items()):
            arrays = [self._of_nothing(part, extents) for part in self.parts]
        else:
            arrays = self._computed(extents, starts, blocks)
        if len(arrays) > 1:
            return tuple(arrays)
        return np.reshape(arrays[0], (1,)) if self.lifted else arrays[0]

    def _computed(
        self, extents: Mapping[int, int], starts: Mapping[int | None, int], blocks: Sequence[Any]
    ) -> list[Any]:
        prepared = _prepared(self, tuple(extents.values()))
        operands = [
            _checked(block, node, k)
            for k, (block, node) in enumerate(zip(blocks, _inputs(prepared.graph), strict=True))
        ]
        with one_thread_each():
            results = run_into(prepared, operands, [None] * len(self.graph.outputs))
        return [
            self._part_array(part, [results[k] for k in part.outputs], extents, starts)
            for part in self.parts
        ]

    def _part_array(
        self,
        part: Part,
        results: Sequence[Any],
        extents: Mapping[int, int],
        starts: Mapping[int | None, int],
    ) -> Any:
        if not part.fold:
            return results[0]
        block = tuple(1 if label is None else extents[label] for label in part.labels)
        at = tuple(starts.get(label, 0) for label in part.labels)
        return packed(part.fold, results, part.dtype, part.over, part.shape, block, at)

    def _of_nothing(self, part: Part, extents: Mapping[int, int]) -> Any:
        """The part for a chunk without elements: an empty array, or the fold's identity."""
        shape = [1 if label is None else extents[label] for label in part.labels]
        for axis in part.over:
            shape[axis] = 1
        if not part.fold:
            return np.empty(shape, part.dtype)
        return np.full(shape, identity(part.fold, part.dtype), part.dtype)


@functools.lru_cache(_CACHE_SIZE)
def _prepared(piece: Piece, extents: tuple[int, ...]) -> Ready:
    """The piece's program for chunks of these extents."""
    return ready(
        in_extents(piece.graph, piece.labels, dict(zip(piece.whole, extents, strict=True)))
    )


def in_extents(graph: Graph, labels: Sequence[Labels], extents: Mapping[int, int]) -> Graph:
    """A graph with other extents at its labels.

    >>> x = Input(0, (4, 3), "float32")
    >>> in_extents(Graph((x,), (0,), 1), [(7, 8)], {7: 2, 8: 3}).nodes[0].shape
    (2, 3)
    """
    nodes = tuple(
        node
        if isinstance(node, Constant)
        else replace(node, shape=tuple(1 if label is None else extents[label] for label in of))
        for node, of in zip(graph.nodes, labels, strict=True)
    )
    return replace(graph, nodes=nodes)


def _inputs(graph: Graph) -> list[Input]:
    inputs = {node.index: node for node in graph.nodes if isinstance(node, Input)}
    return [inputs[k] for k in range(graph.inputs)]


def _checked(block: Any, node: Input, k: int) -> Any:
    """A chunk with the shape and dtype of the graph's input.

    Raises:
        TypeError: it has another dtype than its Dask array declared.
        ValueError: it has another shape.
    """
    if node.weak and type(block) in WEAK:
        return block
    array = np.asarray(reference.as_operand(block, k))
    if array.dtype.name != node.dtype:
        raise TypeError(
            f"a chunk of operand {k} has {array.dtype}, and its Dask array says {node.dtype}; "
            "whatever made that array was given a wrong dtype= or meta="
        )
    if array.shape != node.shape:
        raise ValueError(
            f"a chunk of operand {k} has shape {array.shape}, and its Dask array says {node.shape};"
            " whatever made that array was given wrong chunks"
        )
    return array


def extents_of(places: Places) -> tuple[int, ...]:
    """The shape of a chunk.

    >>> extents_of((slice(2, 5), slice(0, 1)))
    (3, 1)
    """
    return tuple(place.stop - place.start for place in places)


@dataclass(frozen=True, slots=True)
class Picked:
    """Picks one of the arrays that a task returned."""

    part: int
    lifted: bool

    def __call__(self, _: Places, arrays: tuple[Any, ...]) -> Any:
        """The array."""
        array = arrays[self.part]
        return np.reshape(array, (1,)) if self.lifted else array


# Threads


class _Sharing:
    """The number of tasks that run in this process, and its threads before the first one."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.running = 0
        self.before = 0
        self.threads = 0


_sharing = _Sharing()


def _after_fork() -> None:
    """Resets a child: it runs none of its parent's tasks, and may have inherited a held lock."""
    if _sharing.running:
        native.set_num_threads(_sharing.before)
    _sharing.__init__()  # type: ignore[misc]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Shares the engine's threads among the tasks that run in this process.

    A single task has all of them, n tasks have an n-th each. A worker of dask.distributed is one of
    many: each of its tasks has one thread, unless ZEROSTRIDE_NUM_THREADS is set.
    """
    with _sharing.lock:
        if not _sharing.running:
            _sharing.before = _sharing.threads = native.get_num_threads()
        _sharing.running += 1
        _share()
    try:
        yield
    finally:
        with _sharing.lock:
            _sharing.running -= 1
            _share()


def _share() -> None:
    if native.get_num_threads() != _sharing.threads:  # other code has set it: keep that
        _sharing.before = native.get_num_threads()
    if not _sharing.running:
        wanted = _sharing.before
    elif _on_worker() and "ZEROSTRIDE_NUM_THREADS" not in os.environ:
        wanted = 1
    else:
        wanted = max(1, _sharing.before // _sharing.running)
    if wanted != _sharing.threads or wanted != native.get_num_threads():
        native.set_num_threads(wanted)
    _sharing.threads = wanted


def _on_worker() -> bool:
    """Whether the calling thread runs a task of dask.distributed."""
    module = sys.modules.get("distributed.worker")
    if module is None:
        return False
    try:
        return module.get_worker() is not None
    except ValueError:
        return False
