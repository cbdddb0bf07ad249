"""A copy of an ONNX file in which some compound ops are written out, and no other node changes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ....ir.graph import Graph, Value
from ....onnx_ops.validation import graphs_of, text
from ....onnx_ops.written.calls import NotWritten
from ..external_files import save
from ..messages import inlined, set_shape
from ..reader import parse
from .attention import write
from .rewriting import Rewriting, Shape

if TYPE_CHECKING:
    import onnx

#: The first op set of the ops that are written, and the first IR version with constants apart.
_OLDEST, _OLDEST_IR = 13, 4


@dataclass(frozen=True, slots=True)
class WrittenCopy:
    """A copy with compound ops written out.

    Attributes:
        files: the files that were written, the model first; none if no node was.
        nodes: by position in the main graph, the names of the nodes in a node's place.
        left: by position, why a node is as it was.
        fixed: the inputs whose open sizes are numbers now.
    """

    files: tuple[Path, ...]
    nodes: Mapping[int, tuple[str, ...]]
    left: Mapping[int, str]
    fixed: tuple[str, ...] = ()


def write_out(path: Path, goal: Path, graph: Graph, positions: Collection[int]) -> WrittenCopy:
    """Writes a copy of a file in which nodes are written out as ops of the standard.

    Args:
        path: the file.
        goal: where the copy goes; the files of its numbers come beside it, where they are missing.
        graph: the graph of the file, with sizes.
        positions: the nodes, by position in the main graph.

    Raises:
        ModelError: a file cannot be read or written.
    """
    model = inlined(parse(path))
    rewriting = Rewriting(model)
    if rewriting.version < _OLDEST or model.ir_version < _OLDEST_IR:
        why = f"opset {rewriting.version} lacks the ops; convert the model to opset 13 first"
        return WrittenCopy((), {}, dict.fromkeys(positions, why))
    rewriting.learn(*_known(graph))
    rewriting.reserve(_names(model.graph))
    nodes: dict[int, tuple[str, ...]] = {}
    left: dict[int, str] = {}
    places = count()

    def written(node: onnx.NodeProto) -> bool:
        position = next(places)
        if position not in positions:
            return False
        try:
            write(rewriting, node)
        except NotWritten as reason:
            is_open = any(name and rewriting.shape(name) is None for name in node.input)
            advice = "; give them (--set, --input-shape)" if is_open else ""
            left[position] = f"it is not written out: {reason}{advice}"
            return False
        nodes[position] = tuple(text(one.name) for one in rewriting.added())
        return True

    rewriting.each(written, sweep=False)
    if not nodes:
        return WrittenCopy((), {}, left)
    fixed = tuple(_fixed(model.graph, {value.name: value for value in graph.inputs}))
    return WrittenCopy(save(model, goal, path), nodes, left, fixed)


def _known(graph: Graph) -> tuple[dict[str, Shape], dict[str, int]]:
    """The sizes of the main graph's tensors, as far as they are numbers, and the element types."""
    from onnx import helper

    shapes: dict[str, Shape] = {}
    types: dict[str, int] = {}
    for value in _values(graph):
        sizes = tuple(size for size in value.shape or () if isinstance(size, int))
        if value.shape is not None and len(sizes) == len(value.shape):
            shapes[value.name] = sizes
        try:
            kind = np.dtype("" if value.stored else value.dtype or "")
        except TypeError:  # NumPy has no such type
            continue
        types[value.name] = helper.np_dtype_to_tensor_dtype(kind)
    return shapes, types


def _values(graph: Graph) -> Iterator[Value]:
    yield from graph.inputs
    for node in graph.nodes:
        if not node.scope:
            yield from (value for value in node.inputs if value is not None)
            yield from node.outputs


def _names(graph: onnx.GraphProto) -> Iterator[str]:
    """Yield the names of all nodes, and of the tensors of bodies."""
    for one in graphs_of(graph):
        yield from (text(tensor.name) for tensor in one.initializer)
        yield from (text(value.name) for value in one.input)
        for node in one.node:
            yield text(node.name)
            yield from map(text, (*node.input, *node.output))


def _fixed(graph: onnx.GraphProto, inputs: Mapping[str, Value]) -> Iterator[str]:
    """Gives inputs of open sizes their numbers, which the ops have now; yields their names."""
    for entry in graph.input:
        value, tensor = inputs.get(text(entry.name)), entry.type.tensor_type
        sizes = () if value is None or value.shape is None else value.shape
        if all(dim.HasField("dim_value") for dim in tensor.shape.dim) and tensor.HasField("shape"):
            continue
        if sizes and all(isinstance(size, int) for size in sizes):
            set_shape(entry, tuple(size for size in sizes if isinstance(size, int)))
            yield text(entry.name)


__all__ = ["WrittenCopy", "write_out"]
