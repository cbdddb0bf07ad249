"""An ONNX model rewritten for a converter that lacks ops: other ops that compute the same.

Nothing here depends on the model's numbers, but for a mask of constants. The sizes of the inputs
are numbers, and what depends on no input has been computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.names import take
from .reader import parse
from .unrolled import unrolled

if TYPE_CHECKING:
    import onnx

Shape = tuple[int, ...]
#: From this op set on axes are inputs of Squeeze, Unsqueeze and ReduceSum.
_OLDEST = 13
#: Nodes from a softmax back to the mask that is added.
_MOST_BACK = 4


def with_shapes(source: Path, goal: Path, shapes: Mapping[str, Sequence[int]]) -> None:
    """Writes a copy whose inputs have these shapes. Shapes inside are left out: they may be open.

    Args:
        source: the model; its external numbers come inside.
        goal: the file to write.
        shapes: by the names of inputs.

    Raises:
        ModelError: the file cannot be read.
    """
    import onnx

    model = parse(source)
    onnx.load_external_data_for_model(model, str(source.parent))
    for value in model.graph.input:
        if value.name in shapes:
            value.type.tensor_type.ClearField("shape")
            for size in shapes[value.name]:
                value.type.tensor_type.shape.dim.add().dim_value = size
    del model.graph.value_info[:]
    for value in model.graph.output:
        for size in value.type.tensor_type.shape.dim:
            size.Clear()
    onnx.save(model, goal)


def with_functions(path: Path, lacking: frozenset[str]) -> tuple[str, ...]:
    """Writes ops in the file as the functions that the standard defines for them; which ops.

    Args:
        path: a file that :func:`with_shapes` wrote.
        lacking: the ops that are written so, where they are functions.
    """
    import onnx
    from onnx import inliner

    model = onnx.load(path)
    ops = _ops(model) & lacking - _RULES.keys()
    pairs = [("", op) for op in sorted(ops)]
    if pairs:
        model = inliner.inline_selected_functions(model, pairs, inline_schema_functions=True)
        onnx.save(model, path)
    return tuple(sorted(ops - _ops(model)))


def _ops(model: onnx.ModelProto) -> set[str]:
    return {node.op_type for node in model.graph.node if node.domain in ("", "ai.onnx")}


def rewritten(path: Path, lacking: frozenset[str]) -> tuple[str, ...]:
    """Rewrites the nodes of ops that a converter lacks, in the file; the ops that were rewritten.

    Args:
        path: a file that :func:`with_shapes` wrote.
        lacking: the ops.
    """
    import onnx

    model = onnx.load(path)
    del model.graph.value_info[:]
    model = onnx.shape_inference.infer_shapes(model, data_prop=True)
    versions = {entry.domain or "ai.onnx": entry.version for entry in model.opset_import}
    if versions.get("ai.onnx", 1) < _OLDEST:
        return ()
    rewriting = _Rewriting(model)
    done = rewriting.run(lacking)
    if done:
        del model.graph.value_info[:]
        onnx.save(model, path)
    return done


def reads_rows(path: Path) -> bool:
    """Whether a model has a Gather, and each takes rows of a constant matrix."""
    graph = parse(path).graph
    sizes = {tensor.name: len(tensor.dims) for tensor in graph.initializer}
    gathers = [node for node in graph.node if node.op_type == "Gather"]
    return bool(gathers) and all(
        sizes.get(node.input[0]) == 2 and not _attributes(node).get("axis", 0) for node in gathers
    )


class _Rewriting:
    """A graph whose nodes are replaced.

    Attributes:
        graph: the main graph; bodies are left as they are.
        shapes: of tensors, where all sizes are known.
        types: the element types of tensors.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        from onnx import numpy_helper

        self.graph = model.graph
        values = [*self.graph.input, *self.graph.value_info, *self.graph.output]
        self.shapes = {v.name: shape for v in values if (shape := _shape_of(v)) is not None}
        self.types = {v.name: v.type.tensor_type.elem_type for v in values}
        self._constants = {tensor.name: tensor for tensor in self.graph.initializer}
        for node in self.graph.node:
            if node.op_type == "Constant" and node.attribute[0].name == "value":
                self._constants[node.output[0]] = node.attribute[0].t
        self._array: Callable[[Any], np.ndarray[Any, Any]] = numpy_helper.to_array
        for name, tensor in self._constants.items():
            self.shapes[name] = tuple(tensor.dims)
            self.types[name] = tensor.data_type
        self.makers = {name: node for node in self.graph.node for name in node.output}
        self._names = {*self.shapes, *self.makers, *(value.name for value in values)}
        self._made: list[onnx.NodeProto] = []

    def run(self, lacking: frozenset[str]) -> tuple[str, ...]:
        """Replaces nodes of these ops, where a row knows how; the names of their ops."""
        done: list[str] = []
        nodes = [*self.graph.node]
        del self.graph.node[:]
        for node in nodes:
            rule = _RULES.get(node.op_type)
            self._made = []
            if rule is None or node.op_type not in lacking or not rule(self, node):
                self._made = [node]
            else:
                done.append(node.op_type)
            self.graph.node.extend(self._made)
        self._without_unread()
        return tuple(dict.fromkeys(done))

    def _without_unread(self) -> None:
        """Drops nodes that nothing reads any more."""
        read = {value.name for value in self.graph.output}
        kept = []
        for node in reversed(self.graph.node):
            if any(name in read for name in node.output) or not node.output:
                kept.append(node)
                read |= {*node.input, *_read_inside(node)}
        del self.graph.node[:]
        self.graph.node.extend(reversed(kept))

    def array(self, name: str) -> np.ndarray[Any, Any] | None:
        """A constant's numbers; None for another tensor."""
        tensor = self._constants.get(name)
        return None if tensor is None else self._array(tensor)

    def shape(self, name: str) -> Shape | None:
        """A tensor's sizes, if all are known."""
        return self.shapes.get(name)

    def constant(self, array: Any) -> str:
        """A new constant."""
        from onnx import numpy_helper

        name = take("zerostride_constant", self._names)
        self.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def add(self, op: str, *inputs: str, to: str | None = None, **attributes: Any) -> str:
        """A new node of one result; the result's name."""
        from onnx import helper

        result = take(f"zerostride_{op.lower()}", self._names) if to is None else to
        self._made.append(helper.make_node(op, [*inputs], [result], result, **attributes))
        return result

    def reshaped(self, name: str, sizes: Sequence[int], to: str | None = None) -> str:
        """A Reshape to sizes."""
        return self.add("Reshape", name, self.constant(np.array(sizes, np.int64)), to=to)


def _shape_of(value: onnx.ValueInfoProto) -> Shape | None:
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        return None
    sizes = [dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim]
    known = tuple(size for size in sizes if size is not None)
    return known if len(known) == len(sizes) else None


def _read_inside(node: onnx.NodeProto) -> Iterator[str]:
    """Yield what the bodies of a node read."""
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            for inner in graph.node:
                yield from inner.input
                yield from _read_inside(inner)
            yield from (value.name for value in graph.output)


def _attributes(node: onnx.NodeProto) -> dict[str, Any]:
    from onnx import helper

    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}


# The rules: each adds nodes that end in the node's result, or says that it cannot.


def _is_nan(graph: _Rewriting, node: onnx.NodeProto) -> bool:
    """NaN alone is not equal to itself."""
    same = graph.add("Equal", node.input[0], node.input[0])
    graph.add("Not", same, to=node.output[0])
    return True


def _is_infinite(graph: _Rewriting, node: onnx.NodeProto) -> bool:
    """Only infinities are beyond the largest number."""
    if _attributes(node) or graph.types.get(node.input[0]) != 1:
        return False
    size = graph.add("Abs", node.input[0])
    graph.add("Greater", size, graph.constant(np.finfo(np.float32).max), to=node.output[0])
    return True


def _where(graph: _Rewriting, node: onnx.NodeProto) -> bool:
    """Where(IsNaN(s), c, s) of a softmax is s: a row of finite numbers makes no NaN."""
    test = graph.makers.get(node.input[0])
    if test is None or test.op_type != "IsNaN" or test.input[0] != node.input[2]:
        return False
    softmax = graph.makers.get(node.input[2])
    if softmax is None or softmax.op_type != "Softmax" or not _has_finite_rows(graph, softmax):
        return False
    graph.add("Identity", node.input[2], to=node.output[0])
    return True


def _has_finite_rows(graph: _Rewriting, softmax: onnx.NodeProto) -> bool:
    """Whether a softmax reads finite numbers, or a mask with some in each row."""
    name, axis = softmax.input[0], _attributes(softmax).get("axis", -1)
    for _ in range(_MOST_BACK):
        maker = graph.makers.get(name)
        if maker is None:
            return False
        if maker.op_type in ("MatMul", "Gemm", "Einsum"):
            return True
        if maker.op_type not in ("Add", "Mul", "Div", "Reshape", "Cast"):
            return False
        masks = [array for other in maker.input[1:2] if (array := graph.array(other)) is not None]
        if maker.op_type in ("Add", "Mul", "Div") and not masks:
            return False
        for mask in masks if maker.op_type != "Reshape" else ():
            if np.isnan(mask).any() or np.isposinf(mask).any():
                return False
            rows = np.isfinite(mask)
            if not (rows.any(axis) if mask.ndim and mask.shape[axis] > 1 else rows).all():
                return False
        name = maker.input[0]
    return False


def _stft(graph: _Rewriting, node: onnx.NodeProto) -> bool:
    """A transform of real frames is a convolution with cosines and sines."""
    signal, step, window, length = [*node.input, "", ""][:4]
    shape, kind = graph.shape(signal), graph.types.get(signal)
    hop, numbers = graph.array(step), graph.array(window) if window else None
    given = graph.array(length) if length else None
    if shape is None or hop is None or kind not in (1, 11) or len(shape) not in (2, 3):
        return False
    if len(shape) == 3 and shape[2] != 1:
        return False  # complex numbers
    if (window and numbers is None) or (length and given is None):
        return False
    size = int(given) if given is not None else len(numbers) if numbers is not None else 0
    if size < 1 or (numbers is not None and len(numbers) != size):
        return False
    bins = size // 2 + 1 if _attributes(node).get("onesided", 1) else size
    angles = 2 * np.pi / size * (np.outer(np.arange(bins), np.arange(size)) % size)
    waves = np.concatenate([np.cos(angles), -np.sin(angles)])
    weights = waves * (1.0 if numbers is None else numbers.astype(np.float64))
    dtype = np.float32 if kind == 1 else np.float64
    batch, frames = shape[0], (shape[1] - size) // int(hop) + 1
    line = graph.reshaped(signal, (batch, 1, shape[1]))
    kernel = graph.constant(weights[:, None].astype(dtype))
    parts = graph.add("Conv", line, kernel, strides=[int(hop)], kernel_shape=[size])
    split = graph.reshaped(parts, (batch, 2, bins, frames))
    graph.add("Transpose", split, to=node.output[0], perm=[0, 3, 2, 1])
    return True


def _dft(graph: _Rewriting, node: onnx.NodeProto) -> bool:
    """A transform of real numbers along the last axis of data is two products with waves."""
    shape, result = graph.shape(node.input[0]), graph.shape(node.output[0])
    attributes = _attributes(node)
    given = graph.array(node.input[2]) if len(node.input) > 2 else attributes.get("axis", 1)
    if shape is None or result is None or given is None or graph.types.get(node.input[0]) != 1:
        return False
    axis, size = int(given) % len(shape), shape[int(given)]
    plain = len(node.input) < 2 or not node.input[1]
    if shape[-1] != 1 or axis != len(shape) - 2 or attributes.get("inverse") or not plain:
        return False
    bins = result[axis]
    angles = 2 * np.pi / size * (np.outer(np.arange(size), np.arange(bins)) % size)
    waves = np.stack([np.cos(angles), -np.sin(angles)], axis=-1).astype(np.float32)
    rows = graph.reshaped(node.input[0], (math.prod(shape) // size, size))
    product = graph.add("MatMul", rows, graph.constant(waves.reshape(size, 2 * bins)))
    graph.reshaped(product, result, to=node.output[0])
    return True


def _sum_of_squares(graph: _Rewriting, node: onnx.NodeProto) -> bool:
    """The sum of products of the numbers with themselves."""
    squares = graph.add("Mul", node.input[0], node.input[0])
    attributes = _attributes(node)
    axes = attributes.pop("axes", None)
    inputs = [squares, *([graph.constant(np.array(axes))] if axes is not None else node.input[1:])]
    graph.add("ReduceSum", *inputs, to=node.output[0], **attributes)
    return True


def _strided(graph: _Rewriting, node: onnx.NodeProto) -> bool:
    """A slice in steps: the axis is split into (n/step, step), and one of each step is kept."""
    parts = [graph.array(name) for name in node.input[1:]]
    shape, result = graph.shape(node.input[0]), graph.shape(node.output[0])
    if len(parts) < 4 or any(part is None or part.size != 1 for part in parts):
        return False
    if shape is None or result is None:
        return False
    start, _, axis, step = (int(part.reshape(-1)[0]) for part in parts if part is not None)
    axis %= len(shape)
    size = shape[axis]
    if step < 2 or size % step or not 0 <= start < step or result[axis] != size // step:
        return False
    apart = graph.reshaped(node.input[0], (*shape[:axis], size // step, step, *shape[axis + 1 :]))
    bounds = ([start], [start + 1], [axis + 1])
    one = graph.add("Slice", apart, *(graph.constant(np.array(b, np.int64)) for b in bounds))
    graph.reshaped(one, result, to=node.output[0])
    return True


def _extreme(op: str) -> Callable[[_Rewriting, Any], bool]:
    """The largest number along trailing axes is a pool over them; the smallest is its opposite."""

    def rule(graph: _Rewriting, node: onnx.NodeProto) -> bool:
        shape, result = graph.shape(node.input[0]), graph.shape(node.output[0])
        attributes = _attributes(node)
        given = graph.array(node.input[1]) if len(node.input) > 1 else attributes.get("axes")
        if shape is None or result is None or graph.types.get(node.input[0]) != 1:
            return False
        axes = range(len(shape)) if given is None else sorted(int(a) % len(shape) for a in given)
        if [*axes] != [*range(len(shape) - len(axes), len(shape))] or not math.prod(shape):
            return False
        count = math.prod(shape[axis] for axis in axes)
        name = node.input[0] if op == "Max" else graph.add("Neg", node.input[0])
        rows = graph.reshaped(name, (1, 1, math.prod(shape) // count, count))
        pool = graph.add("MaxPool", rows, kernel_shape=[1, count])
        if op == "Max":
            graph.reshaped(pool, result, to=node.output[0])
        else:
            graph.add("Neg", graph.reshaped(pool, result), to=node.output[0])
        return True

    return rule


def _gather(graph: _Rewriting, node: onnx.NodeProto) -> bool:
    """One row, or rows that follow one another, are a slice."""
    shape, result = graph.shape(node.input[0]), graph.shape(node.output[0])
    rows = graph.array(node.input[1])
    if shape is None or result is None or rows is None or graph.array(node.input[0]) is not None:
        return False
    axis = _attributes(node).get("axis", 0) % len(shape)
    flat = [int(row) % shape[axis] for row in rows.reshape(-1)] if shape[axis] else []
    if not flat or flat != [*range(flat[0], flat[0] + len(flat))]:
        return False
    # One row of all numbers, so that no axis of the slice can pass for a batch.
    inner = math.prod(shape[axis + 1 :])
    data = graph.reshaped(node.input[0], (math.prod(shape[:axis]), shape[axis] * inner))
    bounds = ([flat[0] * inner], [(flat[-1] + 1) * inner], [1])
    names = (graph.constant(np.array(bound, np.int64)) for bound in bounds)
    graph.reshaped(graph.add("Slice", data, *names), result, to=node.output[0])
    return True


def _split(graph: _Rewriting, node: onnx.NodeProto) -> bool:
    """A split is a slice for each result."""
    shape = graph.shape(node.input[0])
    attributes = _attributes(node)
    results = [graph.shape(name) for name in node.output]
    if shape is None or any(result is None for result in results):
        return False
    axis, start = attributes.get("axis", 0) % len(shape), 0
    for name, result in zip(node.output, results, strict=True):
        end = start + (result or ())[axis]
        bounds = ([start], [end], [axis])
        names = (graph.constant(np.array(bound, np.int64)) for bound in bounds)
        graph.add("Slice", node.input[0], *names, to=name)
        start = end
    return True


def _recurrent(graph: _Rewriting, node: onnx.NodeProto) -> bool:
    """A recurrent layer of a few steps is products and gates."""
    given = {**_attributes(node), "op": node.op_type}
    return unrolled(graph, [*node.input], [*node.output], given)


_RULES: Mapping[str, Callable[[_Rewriting, Any], bool]] = MappingProxyType(
    {
        "DFT": _dft,
        "Gather": _gather,
        "GRU": _recurrent,
        "IsInf": _is_infinite,
        "IsNaN": _is_nan,
        "LSTM": _recurrent,
        "ReduceMax": _extreme("Max"),
        "ReduceMin": _extreme("Min"),
        "ReduceSumSquare": _sum_of_squares,
        "STFT": _stft,
        "Slice": _strided,
        "Split": _split,
        "Where": _where,
    }
)

__all__ = ["reads_rows", "rewritten", "with_functions", "with_shapes"]
