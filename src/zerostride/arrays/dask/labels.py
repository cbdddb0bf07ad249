"""Labels: which axes of a graph's nodes have the same extent in every chunk. Dask is not needed.

A label is what `dask.array.blockwise` calls an index. Axes of extent 1 have none.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from ...fusion.trace.graph import Node, landings, needed_by
from .tasks import Labels

#: The extents of the chunks along an axis, in order.
Extents = tuple[int, ...]
#: For each axis of an array its chunks; None where any chunks will do.
Chunks = tuple[Extents | None, ...]


def common(chunkings: Iterable[Extents | None]) -> Extents | None:
    """The coarsest chunks that refine all of these.

    >>> common([(4, 4), (2, 6), None]), common([None])
    ((2, 2, 4), None)
    """
    distinct = {chunks for chunks in chunkings if chunks is not None}
    if len(distinct) < 2:
        return next(iter(distinct), None)
    ends = sorted({end for chunks in distinct for end in itertools.accumulate(chunks)} | {0})
    return tuple(after - before for before, after in itertools.pairwise(ends)) or (0,)


def shared_axes(nodes: Sequence[Node], node: Node) -> Iterator[tuple[int, int, int]]:
    """Argument, its axis, and the node's axis that has the same extent, where that is not 1."""
    for arg, axes in landings(node, nodes):
        for axis, to in enumerate(axes):
            if to is not None and nodes[arg].shape[axis] != 1:
                yield arg, axis, to


class Classes:
    """Labels by union-find: axes of one extent that an op aligns have one label.

    Attributes:
        clash: whether two axes of one node have the same label.
    """

    def __init__(
        self, nodes: Sequence[Node], sources: frozenset[int], wanted: Sequence[int]
    ) -> None:
        self._nodes = nodes
        self._first = list(itertools.accumulate((len(node.shape) for node in nodes), initial=0))
        self._parent = list(range(self._first[-1]))
        needed = needed_by(nodes, wanted, sources)
        for k in needed - sources:
            for arg, axis, to in shared_axes(nodes, nodes[k]):
                self._unite(self._first[arg] + axis, self._first[k] + to)
        self.clash = any(self._clashes(k) for k in needed)

    def _root(self, place: int) -> int:
        while self._parent[place] != place:
            self._parent[place] = self._parent[self._parent[place]]
            place = self._parent[place]
        return place

    def _unite(self, a: int, b: int) -> None:
        a, b = self._root(a), self._root(b)
        self._parent[max(a, b)] = min(a, b)

    def _clashes(self, k: int) -> bool:
        labels = [label for label in self.of(k) if label is not None]
        return len({*labels}) < len(labels)

    def of(self, k: int) -> Labels:
        """A node's labels."""
        return tuple(
            None if extent == 1 else self._root(self._first[k] + axis)
            for axis, extent in enumerate(self._nodes[k].shape)
        )


class Fresh:
    """New labels for each node; a target's labels are passed on to the nodes that it reads."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._first = list(itertools.accumulate((len(node.shape) for node in nodes), initial=0))

    def of(self, k: int) -> Labels:
        """A node's labels."""
        return tuple(
            None if extent == 1 else self._first[k] + axis
            for axis, extent in enumerate(self._nodes[k].shape)
        )
