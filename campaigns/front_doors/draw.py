"""Models of one node or two, and numbers for their operands.

Numbers are of one of two kinds: *usual* ones, of both signs and small; *ends*, whole numbers up to
the ends of their type, and floats of all sizes. A model is drawn once, and written with constants
of each kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np

from ..models.random_nodes import Array, Drawn, OnnxNode, Rng, Shape, onnx_node, smaller

#: Op sets, and how often; before 7 ops have `axis`.
OPSETS = (6, 7, 8, 13, 13, 17, 17, 18, 18, 21, 21, 23)
_IR_VERSION = 10
#: How often a model has two nodes that converters fuse.
_TWO = 0.15


class Numbers(StrEnum):
    """Kinds of numbers."""

    USUAL = "usual"
    ENDS = "ends"


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand: its name, shape and element type, and whether the file has its numbers."""

    name: str
    shape: Shape
    dtype: str
    constant: bool
    given: Array | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """A node: its op, the names that it reads, the name of its result, attributes."""

    op: str
    reads: tuple[str, ...]
    result: str
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Model:
    """A model before it has numbers."""

    opset: int
    steps: tuple[Step, ...]
    operands: tuple[Operand, ...]

    @property
    def words(self) -> str:
        """The model in one line."""
        shapes = {part.name: part for part in self.operands}
        lines = []
        for step in self.steps:
            reads = [
                f"{'const ' if shapes[name].constant else ''}{shapes[name].dtype}"
                f"{list(shapes[name].shape)}"
                if name in shapes
                else name
                for name in step.reads
            ]
            more = "".join(f" {k}={v}" for k, v in step.attributes.items())
            lines.append(f"{step.op}({', '.join(reads)}){more}")
        return f"{' > '.join(lines)} opset {self.opset}"

    def numbers(self, kind: Numbers, seed: int) -> dict[str, Array]:
        """Numbers for every operand."""
        rng = np.random.default_rng(seed)
        read_by = {name: (step, k) for step in self.steps for k, name in enumerate(step.reads)}
        return {
            part.name: part.given
            if part.given is not None
            else numbers(rng, kind, *read_by[part.name], part)
            for part in self.operands
        }

    def save(self, path: Path, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """Writes the model with these constants; returns the arrays of its inputs."""
        import onnx
        from onnx import helper, numpy_helper

        inputs, weights = [], []
        for part in self.operands:
            if part.constant:
                weights.append(numpy_helper.from_array(arrays[part.name], part.name))
            else:
                kind = helper.np_dtype_to_tensor_dtype(np.dtype(part.dtype))
                inputs.append(helper.make_tensor_value_info(part.name, kind, part.shape))
        nodes = [
            helper.make_node(
                step.op, step.reads, [step.result], name=step.result, **step.attributes
            )
            for step in self.steps
        ]
        output = helper.make_empty_tensor_value_info(self.steps[-1].result)
        graph = helper.make_graph(nodes, "door", inputs, [output], weights)
        ids = [helper.make_opsetid("", self.opset)]
        model = helper.make_model(graph, opset_imports=ids, ir_version=_IR_VERSION)
        # A model that is not valid is a question, too.
        with suppress(onnx.shape_inference.InferenceError):
            model = onnx.shape_inference.infer_shapes(model, strict_mode=True)
        if not model.graph.output[0].type.HasField("tensor_type"):
            model.graph.output[0].type.tensor_type.elem_type = 0
        onnx.save(model, path)
        return {part.name: arrays[part.name] for part in self.operands if not part.constant}


# Models.


def draw(rng: Rng, op: str | None = None) -> Model:
    """A model of one node (of this op), or of two that converters fuse."""
    while True:
        opset = int(rng.choice(OPSETS))
        if op is None and rng.random() < _TWO:
            model = _two(rng, opset)
        else:
            node = onnx_node(rng, opset, op)
            model = None if node is None else _one(opset, node)
        if model is not None and any(not part.constant for part in model.operands):
            return model


def _operands(node: OnnxNode, letter: str) -> list[Operand]:
    drawn = node.drawn
    parts = []
    for k, (shape, dtype) in enumerate(zip(drawn.shapes, node.dtypes, strict=True)):
        fixed = drawn.constant[k] if k < len(drawn.constant) else None
        numbers = fixed if isinstance(fixed, np.ndarray) else None
        parts.append(Operand(f"{letter}{k}", shape, dtype, fixed is not None, numbers))
    return parts


def _one(opset: int, node: OnnxNode) -> Model:
    parts = _operands(node, "x")
    step = Step(node.drawn.op, tuple(part.name for part in parts), "y", node.attributes)
    return Model(opset, (step,), tuple(parts))


def _two(rng: Rng, opset: int) -> Model | None:
    """Two nodes that converters fuse: a product or a convolution with what follows it."""
    first, second = (
        ("MatMul", "Add"),
        ("Conv", "Mul"),
        ("Conv", "Add"),
        ("Expand", "Mul"),
        ("Mul", "Add"),
        ("MatMul", "Mul"),
    )[int(rng.integers(6))]
    if opset < 8:
        return None
    drawn = _convolution(rng) if first == "Conv" else onnx_node(rng, opset, first)
    result = None if drawn is None else _result(drawn)
    if drawn is None or result is None:
        return None
    kinds = tuple(
        "int64" if first == "Expand" and k else "float32" for k in range(len(drawn.dtypes))
    )
    node = OnnxNode(drawn.drawn, kinds, drawn.attributes)
    parts = _operands(node, "a")
    more: Shape = smaller(rng, result)
    if rng.random() < 0.3 and len(result) > 1:
        more = (result[1], *[1] * (len(result) - 2))
    other = Operand("b0", more, "float32", bool(rng.random() < 0.7))
    reads = ("t", "b0") if rng.random() < 0.7 else ("b0", "t")
    steps = (
        Step(node.drawn.op, tuple(part.name for part in parts), "t", node.attributes),
        Step(second, reads, "y"),
    )
    return Model(opset, steps, (*parts, other))


def _convolution(rng: Rng) -> OnnxNode:
    channels, filters, size = (int(rng.integers(1, 5)) for _ in range(3))
    axes = int(rng.integers(1, 3))
    batch = 1 if rng.random() < 0.8 else 2
    shapes: tuple[Shape, ...] = (
        (batch, channels, *[size] * axes),
        (filters, channels, *[1] * axes),
    )
    if rng.random() < 0.5:
        shapes = (*shapes, (filters,))
    fixed = (None, *[True] * (len(shapes) - 1))
    drawn = Drawn("Conv", shapes, fixed)
    return OnnxNode(drawn, ("float32",) * len(shapes), {})


def _result(node: OnnxNode) -> Shape | None:
    """The shape of a node's result; None where it has none."""
    shapes = node.drawn.shapes
    if node.drawn.op == "Conv":
        return (shapes[0][0], shapes[1][0], *shapes[0][2:])
    try:
        if node.drawn.op == "MatMul":
            return np.matmul(*(np.zeros(shape) for shape in shapes)).shape
        if node.drawn.op == "Expand":
            target = tuple(map(int, node.drawn.constant[1]))
            return np.broadcast_shapes(shapes[0], target)
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


# Numbers.

_DIVIDED = frozenset({"Div", "Mod"})
_SCALES: Mapping[str, tuple[int, ...]] = {
    "QuantizeLinear": (1,),
    "DequantizeLinear": (1,),
    "BatchNormalization": (4,),  # variances
}
#: Whole numbers at which engines change: of float32, int32 and their types.
_TURNS = (2**7, 2**8, 2**15, 2**16, 2**24, 2**31, 2**32, 2**53)


def numbers(rng: Rng, kind: Numbers, step: Step, position: int, part: Operand) -> Array:
    """Numbers for an operand of a node."""
    dtype, shape = np.dtype(part.dtype), part.shape
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        array = _whole(rng, kind, dtype, shape)
        if step.op == "Sub" and dtype.kind == "u" and kind is Numbers.USUAL:
            array = array + (10 if position == 0 else 0)  # no result below 0
        if step.op == "BitShift" and position:
            most = dtype.itemsize * 8 if kind is Numbers.ENDS else 4
            array = np.asarray(rng.integers(0, most, shape)).astype(dtype)
        if step.op in ("QuantizeLinear", "DequantizeLinear") and position == 2 and dtype == "int32":
            array = np.zeros(shape, dtype)  # by the document
        if position in _SCALES.get(step.op, ()):
            array = np.maximum(np.abs(array), 1)
        if step.op == "Pow" and position:
            array = np.asarray(rng.integers(0, 4, shape)).astype(dtype)
        elif step.op == "Pow":  # an exponent may be a fraction or below 0; a cube is held
            most = int(np.iinfo(dtype).max ** (1 / 3))
            array = np.asarray(np.clip(array.astype(object), 1 - most, most - 1), dtype)
            array = np.maximum(np.abs(array), 1)
        if step.op in _DIVIDED and position:
            array = np.where(array == 0, dtype.type(3), array)
        return np.asarray(array, dtype)
    array = np.asarray(rng.uniform(-3, 3, shape))
    scaled = position in _SCALES.get(step.op, ())
    if kind is Numbers.ENDS and not scaled:
        most = 1 if "Normalization" in step.op else 3  # a sum of squares loses the small ones
        array = array * 10.0 ** rng.integers(-most, most + 1, shape)
    if step.op in _DIVIDED and position:
        array = np.where(np.abs(array) < 0.25, 0.5, array)
    if step.op == "Pow":
        array = np.abs(array) + 0.25 if position == 0 else np.clip(array, -3, 3)
    if scaled:  # at the ends a quotient of whole numbers fits in their type
        array = np.abs(array) + (1 if kind is Numbers.ENDS else 0.25)
    if step.op == "Clip" and position:
        array = np.abs(array) * (-1 if position == 1 else 1)
    if step.op in ("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"):
        array = np.rint(array)
    if "Normalization" in step.op and position == 0 and rng.random() < 0.5:
        array = array * 0.003  # an epsilon shows
    array = array + 0.0  # no -0.0
    with np.errstate(over="ignore"):
        return np.asarray(array, dtype)


def _whole(rng: Rng, kind: Numbers, dtype: np.dtype[Any], shape: Shape) -> Array:
    limits = np.iinfo(dtype)
    if kind is Numbers.USUAL:
        low = max(-9, int(limits.min))
        return np.asarray(rng.integers(low, 10, shape)).astype(dtype)
    turns = [n + near for n in (*_TURNS, limits.max, -int(limits.min)) for near in (-1, 0, 1)]
    turns += [-n for n in turns]
    held = [n for n in turns if limits.min <= n <= limits.max] + [0, 1, 3, 7]
    picked: Sequence[int] = [held[k] for k in rng.integers(0, len(held), int(np.prod(shape)))]
    return np.array(picked, dtype).reshape(shape)
