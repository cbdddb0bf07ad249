"""Dask arrays of graphs: each stage one `blockwise`, shares folded by `dask.array.reduction`."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...compute.semantics import WEAK
from ...errors import BroadcastError, Reason
from ...fusion.trace.graph import Constant, Graph, Input, Reduce, needed_by
from .folds import finished, share_dtype, together
from .labels import Chunks, Extents
from .mapped_files import as_mapped, from_memmap
from .stages import Group, Stage, StageResult, cut, groups, widened
from .tasks import Labels, Picked, Piece

if TYPE_CHECKING:
    import dask.array as da

#: Shares that one task folds, unless Dask's configuration sets `split_every`. Shares are small, so
#: more than Dask's 4 take little memory, and save a level of tasks.
_SHARES = 8


def is_lazy(value: Any) -> bool:
    """Whether a value is a Dask array."""
    import dask.array as da

    return isinstance(value, da.Array)


def checked(array: Any, k: int) -> da.Array:
    """A Dask array of NumPy's chunks whose extents are known.

    Raises:
        BroadcastError: some extents are not known.
        TypeError: its chunks are another library's.
    """
    if any(math.isnan(extent) for extent in array.shape):
        raise BroadcastError(
            f"operand {k} is a Dask array of shape {array.shape}: chunks whose extents are not "
            "known are not planned",
            reason=Reason.UNKNOWN_SIZE,
            hint="call x.compute_chunk_sizes() first, or give the chunks where x is made",
        )
    if type(array._meta) is not np.ndarray and not isinstance(array._meta, np.generic):
        kind = type(array._meta)
        raise TypeError(
            f"operand {k} is a Dask array of {kind.__module__}.{kind.__qualname__} chunks; "
            "zerostride computes with those of NumPy: x.map_blocks(numpy.asarray)"
        )
    return array


# One blockwise


def blockwise(
    function: Any,
    name: str,
    index: Sequence[Any],
    chunks: Sequence[Extents],
    arguments: Sequence[tuple[Any, Sequence[Any] | None]],
    dtype: Any,
) -> da.Array:
    """A task for each block of a result.

    Args:
        function: called with the block's place, and a block (or the literal) of each argument.
        name: what its tasks are called.
        index: the labels of the result's axes.
        chunks: of these axes.
        arguments: arrays with the labels of their axes, None for an axis of one block without a
            label; and literals with None.
        dtype: of the result.
    """
    import dask.array as da
    from dask.layers import ArraySliceDep

    # The places give the number of blocks, even where every argument has one block.
    flat: list[Any] = [ArraySliceDep(tuple(chunks)), tuple(index)]
    for array, labels in arguments:
        flat += [array, None if labels is None else _indexed(array, labels, index)]
    meta = np.empty((0,) * len(index), dtype)
    return da.blockwise(
        function,
        tuple(index),
        *flat,
        token=name,
        meta=meta,
        dtype=dtype,
        align_arrays=False,
    )


def _indexed(array: da.Array, labels: Sequence[Any], index: Sequence[Any]) -> tuple[Any, ...]:
    """The labels of an array's axes, all of them the result's.

    An axis of one block may have any: Dask takes that block wherever the result's block is.
    """
    placed: list[Any] = [label if label in index else None for label in labels]
    for axis, label in enumerate(placed):
        if label is None:
            if array.numblocks[axis] != 1:
                raise AssertionError(f"axis {axis} of {array} has blocks that nobody walks")
            placed[axis] = next((free for free in index if free not in placed), index[0])
    return tuple(placed)


def as_chunks(shape: Sequence[int], chunks: Sequence[Extents | None], dtype: Any) -> list[Extents]:
    """Chunks for all axes, with Dask's default for axes that have none.

    >>> as_chunks((4, 1), [(2, 2), None], "float32")
    [(2, 2), (1,)]
    """
    empty = 0 in shape  # Dask cannot divide zero bytes into chunks
    all_chunks = [
        (n,) if axis_chunks is None and (n == 1 or empty) else axis_chunks
        for n, axis_chunks in zip(shape, chunks, strict=True)
    ]
    if None in all_chunks:
        from dask.array.core import normalize_chunks

        asked = tuple("auto" if axis_chunks is None else axis_chunks for axis_chunks in all_chunks)
        return list(normalize_chunks(asked, shape=tuple(shape), dtype=np.dtype(dtype)))
    return [axis_chunks for axis_chunks in all_chunks if axis_chunks is not None]


def chunked(array: Any, labels: Sequence[Any], chunks: Mapping[Any, Extents]) -> da.Array:
    """An array in the chunks of its labels; in one chunk along axes without a label."""
    import dask.array as da

    wanted = tuple(
        (extent,) if label is None else chunks[label]
        for label, extent in zip(labels, array.shape, strict=True)
    )
    if not is_lazy(array):
        if as_mapped(array) is not None:
            return from_memmap(array, wanted)
        return da.from_array(array, chunks=wanted)
    return array if array.chunks == wanted else array.rechunk(wanted)


# Graphs


def computed(graph: Graph, operands: Sequence[Any], name: str) -> list[da.Array]:
    """The results of a graph, lazily.

    Args:
        graph: what to compute.
        operands: a Dask array, a NumPy array or a number for each of its inputs.
        name: what its tasks are called.
    """
    graph = widened(graph)
    inputs = {k: node for k, node in enumerate(graph.nodes) if isinstance(node, Input)}
    input_chunks = {node.index: _chunks(operands[node.index], node) for node in inputs.values()}
    sizes = {node.index: math.prod(node.shape) for node in inputs.values()}
    cuts = cut(graph, input_chunks, sizes)
    arrays: dict[int, Any] = {k: operands[node.index] for k, node in inputs.items()}
    results: dict[int, da.Array] = {}
    for level in range(max(cuts.level, default=0) + 1):
        ready = frozenset(arrays)
        stage = Stage(list(graph.nodes), ready)
        ends = sorted(k for k in cuts.ends if cuts.level[k] == level)
        for k in ends:
            stage.add_share(k)
        for k in sorted({*graph.outputs}):
            if cuts.level[k] == level and k not in cuts.ends:
                stage.add_result(k)
        stage_arrays = _staged(stage, arrays, name)
        for k, array in zip(ends, stage_arrays, strict=False):
            node = graph.nodes[k]
            assert isinstance(node, Reduce)
            arrays[k] = folded(array, node, name)
        rest = [target.nodes[0] for target in stage.targets[len(ends) :]]
        results.update(zip(rest, stage_arrays[len(ends) :], strict=True))
    return [arrays[k] if k in cuts.ends else results[k] for k in graph.outputs]


def shares(graph: Graph, operand: da.Array, fold: str, over: tuple[int, ...]) -> da.Array:
    """The shares of a reduction that a graph of one input makes of each chunk."""
    place, node = next((k, x) for k, x in enumerate(graph.nodes) if isinstance(x, Input))
    stage = Stage(list(graph.nodes), frozenset({place}))
    stage.local.update(k for k, x in enumerate(graph.nodes) if isinstance(x, Reduce))
    dtype = share_dtype(fold, graph.nodes[graph.outputs[0]].dtype)
    stage.targets.append(StageResult(fold, graph.outputs, place, over, node.shape, dtype))
    return _staged(stage, {place: operand}, fold)[0]


def folded(array: da.Array, node: Reduce, name: str) -> da.Array:
    """A reduction's result from its shares, merged in a tree."""
    return fold(array, node.op, node.over, node.keepdims, node.dtype, name)


def fold(
    array: da.Array, op: str, over: tuple[int, ...], keepdims: bool, dtype: str, name: str
) -> da.Array:
    """Shares along axes as one result of `dtype`."""
    import dask.array as da

    rank = array.ndim if keepdims else array.ndim - len(over)
    several = [axis for axis in over if array.numblocks[axis] > 1]
    return da.reduction(
        array,
        chunk=_unchanged,
        combine=functools.partial(together, fold=op),
        aggregate=functools.partial(finished, fold=op, dtype=dtype),
        axis=over,
        keepdims=keepdims,
        dtype=array.dtype,
        meta=np.empty((0,) * rank, dtype),
        split_every=dict.fromkeys(over, _shares_together(len(several))),
        name=f"zerostride-{name}-{op}",
    )


def _shares_together(axes: int) -> int:
    """How many shares along each of some axes one task takes: `split_every` of all of them."""
    import dask

    asked = int(dask.config.get("split_every", _SHARES))
    return max(2, int(asked ** (1 / max(axes, 1))))


def _unchanged(x: Any, axis: Any, keepdims: bool) -> Any:
    return x


def _chunks(operand: Any, node: Input) -> Chunks:
    return operand.chunks if is_lazy(operand) else (None,) * len(node.shape)


def _staged(stage: Stage, arrays: Mapping[int, Any], name: str) -> list[da.Array]:
    """The stage's targets as arrays, in order."""
    import dask.array as da

    results: dict[int, da.Array] = {}
    order = {id(target): k for k, target in enumerate(stage.targets)}
    # Arrays and numbers need no task.
    left = []
    for k, target in enumerate(stage.targets):
        node = stage.nodes[target.nodes[0]]
        if not target.fold and isinstance(node, Constant):
            results[k] = da.from_array(np.asarray(node.value, node.dtype))
        elif not target.fold and target.nodes[0] in stage.sources:
            array = arrays[target.nodes[0]]
            results[k] = array if is_lazy(array) else da.from_array(np.asarray(array, node.dtype))
        else:
            left.append(target)
    if left:
        stage.targets[:], whole = left, list(stage.targets)
        needed = needed_by(stage.nodes, [k for member in left for k in member.nodes], stage.sources)
        chunks_of = {
            k: arrays[k].chunks if is_lazy(arrays[k]) else (None,) * len(stage.nodes[k].shape)
            for k in stage.sources & needed
        }
        for group in groups(stage, chunks_of):
            group_arrays = _tasks(group, arrays, name)
            results.update(
                (order[id(member)], x)
                for member, x in zip(group.targets, group_arrays, strict=True)
            )
        stage.targets[:] = whole
    return [results[k] for k in range(len(results))]


def _tasks(group: Group, arrays: Mapping[int, Any], name: str) -> list[da.Array]:
    """One task for each chunk of a group."""
    several = len(group.targets) > 1
    chunks = dict(group.chunks)
    target, labels = group.targets[0], group.axes[0]
    requested = [
        (x,) if label is None else chunks[label]
        for x, label in zip(target.whole, labels, strict=True)
    ]
    filled = as_chunks(target.whole, requested, group.graph.nodes[group.graph.outputs[0]].dtype)
    if not several:
        chunks.update(
            (label, x) for label, x in zip(labels, filled, strict=True) if label is not None
        )
    settled = {label: x or (group.extents[label],) for label, x in chunks.items()}
    sources = [
        (arrays[k], None) if type(arrays[k]) in WEAK else (chunked(arrays[k], of, settled), of)
        for k, of in group.sources
    ]
    if not several:
        return [_single_target(group, labels, settled, sources, name)]
    walked = tuple(sorted({label for label, x in settled.items() if len(x) > 1}))
    index = walked or (-1,)
    piece = Piece(group.graph, group.labels, group.extents, index, group.parts())
    extents = [settled[label] if walked else (1,) for label in index]
    task = blockwise(piece, f"zerostride-{name}", index, extents, sources, object)
    return [
        _result(Picked(k, not own), own, target, settled, [(task, index)], name)
        for k, (target, own) in enumerate(zip(group.targets, group.axes, strict=True))
    ]


def _single_target(
    group: Group,
    labels: Labels,
    settled: Mapping[int, Extents],
    sources: Sequence[tuple[Any, Any]],
    name: str,
) -> da.Array:
    """The result of a group with a single target."""
    index = _index(labels)
    piece = Piece(group.graph, group.labels, group.extents, index, group.parts(), lifted=not labels)
    return _result(piece, labels, group.targets[0], settled, sources, name)


def _index(labels: Labels) -> tuple[int, ...]:
    """Distinct labels of a result's axes; at rank 0 the label of an axis that is removed later."""
    return tuple(-1 - k if label is None else label for k, label in enumerate(labels)) or (-1,)


def _result(
    function: Any,
    labels: Labels,
    target: StageResult,
    settled: Mapping[int, Extents],
    arguments: Sequence[tuple[Any, Any]],
    name: str,
) -> da.Array:
    """A target as an array, by a function that makes its blocks."""
    extents: list[Extents] = [(1,) if label is None else settled[label] for label in labels]
    array = array_of(function, name, _index(labels), extents, arguments, target.dtype)
    if target.over:  # a share has extent 1 there
        array._chunks = tuple(
            (1,) * len(chunks) if axis in target.over else chunks
            for axis, chunks in enumerate(extents)
        )
    return array


def array_of(
    function: Any,
    name: str,
    index: Sequence[Any],
    chunks: Sequence[Extents],
    arguments: Sequence[tuple[Any, Any]],
    dtype: Any,
) -> da.Array:
    """As :func:`blockwise`; at rank 0 the function returns blocks of one axis, then removed."""
    if chunks:
        return blockwise(function, f"zerostride-{name}", index, chunks, arguments, dtype)
    return blockwise(function, f"zerostride-{name}", (-1,), [(1,)], arguments, dtype)[0]
