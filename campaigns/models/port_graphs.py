"""Random element-wise ONNX graphs for ports.

Chains of one to eight nodes over inputs and constants whose shapes broadcast: ranks 0 to 7, sizes
of 0, 1 and more, often equal ones; constants that several nodes read, outputs in the middle, a
batch of one in front or not, several element types and op sets.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import onnx

Shape = tuple[int, ...]

#: Op sets and IR versions that go together, and how often: today's mostly.
_VERSIONS = ((21, 10), (21, 10), (17, 8), (13, 7), (12, 6), (9, 4), (8, 3), (7, 3), (6, 3))
_FLOATS = ("Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Mean", "Pow", "PRelu", "Clip")
_INTEGERS = ("Add", "Sub", "Mul", "Max", "Min", "Equal", "Less", "Greater")
#: Element types, and the op sets from which every op of a list has them.
_DTYPES = ("float32", "float32", "float32", "float64", "float16", "int32", "int64")
_COMPARISONS = frozenset({"Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual"})
_VARIADIC = frozenset({"Max", "Min", "Sum", "Mean"})


@dataclass
class _Maker:
    """One graph in the making."""

    rng: np.random.Generator
    opset: int
    base: Shape
    dtype: str
    nodes: list[Any] = field(default_factory=list)
    inputs: dict[str, tuple[Shape, str]] = field(default_factory=dict)
    constants: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    #: Tensors that later nodes may read: name to shape and element type.
    known: dict[str, tuple[Shape, str]] = field(default_factory=dict)

    def shape(self) -> Shape:
        """A shape that broadcasts to the base."""
        start = int(self.rng.integers(0, len(self.base) + 1)) if self.rng.random() < 0.6 else 0
        keep = self.rng.random()
        return tuple(n if self.rng.random() < 0.4 + keep else 1 for n in self.base[start:])

    def array(self, shape: Shape, dtype: str) -> np.ndarray[Any, Any]:
        """Numbers that no op of the lists makes infinite."""
        if dtype == "bool":
            return self.rng.integers(0, 2, shape).astype(bool)
        if dtype.startswith("int"):
            return self.rng.integers(1, 7, shape).astype(dtype)
        return np.asarray(self.rng.uniform(0.5, 2, shape).astype(dtype))

    def tensor(self, dtype: str) -> str:
        """An operand: one that is there, a new constant, or a new input."""
        there = [name for name, (_, kind) in self.known.items() if kind == dtype]
        chance = self.rng.random()
        if there and chance < 0.5:
            return str(self.rng.choice(there))
        name = f"{'c' if chance < 0.8 else 'x'}{len(self.known)}"
        shape = self.shape()
        if chance < 0.8:
            self.constants[name] = self.array(shape, dtype)
        else:
            self.inputs[name] = (shape, dtype)
        self.known[name] = (shape, dtype)
        return name

    def add(self, so_far: str) -> str:
        """Another node, which reads `so_far`."""
        from onnx import helper

        shape, dtype = self.known[so_far]
        op = self._op(dtype)
        tensor = f"t{len(self.nodes)}"
        attributes: dict[str, Any] = {}
        if op == "Where":
            names = [so_far, self.tensor(self.dtype), self.tensor(self.dtype)]
        elif op == "Clip":
            low = self.constant(np.full(self._one(), 0.6, dtype))
            names = [so_far, low]
        elif op == "PRelu":
            names = [so_far, self._slope(shape, dtype)]
        elif op == "Expand":
            names = [so_far, self.constant(np.array(self.base, np.int64))]
        else:
            count = int(self.rng.integers(2, 5)) if op in _VARIADIC and self.opset >= 8 else 2
            names = [so_far, *(self.tensor(dtype) for _ in range(count - 1))]
            self.rng.shuffle(names)
            if self.opset < 7:
                names, attributes = self._legacy(names, op)
        result = shape
        if op == "Expand":
            result = np.broadcast_shapes(self.base, shape)
        elif self.opset < 7:
            result = self.known[names[0]][0]
        elif op not in ("PRelu", "Clip"):
            result = np.broadcast_shapes(*(self.known[name][0] for name in names))
        kind = "bool" if op in _COMPARISONS else self.dtype if op == "Where" else dtype
        name = f"n{len(self.nodes)}" if self.rng.random() < 0.8 else ""
        self.nodes.append(helper.make_node(op, names, [tensor], name=name, **attributes))
        self.known[tensor] = (result, kind)
        return tensor

    def _op(self, dtype: str) -> str:
        rng = self.rng
        if dtype == "bool":
            return str(rng.choice(["And", "Or", "Xor", *(["Where"] * 3 * (self.opset >= 9))]))
        if self.opset >= 8 and rng.random() < 0.04:
            return "Expand"
        if not dtype.startswith("float"):
            # Integers came to Max and Min in 12, to Less and Greater in 9.
            last = len(_INTEGERS) if self.opset >= 12 else 3
            return str(rng.choice(_INTEGERS[:last]))
        if self.opset < 8:  # Max and the like took identical shapes
            return str(rng.choice(["Add", "Sub", "Mul", "Div", *(["PRelu"] * (self.opset == 7))]))
        return str(rng.choice([*_FLOATS[: len(_FLOATS) - (self.opset < 12)], "Less"]))

    def _one(self) -> Shape:
        return (1,) if self.rng.random() < 0.5 else ()

    def _slope(self, shape: Shape, dtype: str) -> str:
        start = int(self.rng.integers(0, len(shape) + 1))
        slope = tuple(n if self.rng.random() < 0.6 else 1 for n in shape[start:])
        return self.constant(self.array(slope, dtype))

    def _legacy(self, names: list[str], op: str) -> tuple[list[str], dict[str, Any]]:
        """Operands as opset 6 takes them: the second a run of the first's axes, or identical."""
        first = max(names, key=lambda name: len(self.known[name][0]))
        shape, dtype = self.known[first]
        start = int(self.rng.integers(0, len(shape) + 1))
        stop = int(self.rng.integers(start, len(shape) + 1))
        other = self.constant(self.array(shape[start:stop], dtype))
        return [first, other], {"broadcast": 1, "axis": start}

    def constant(self, array: np.ndarray[Any, Any]) -> str:
        """A new constant that no other node reads."""
        name = f"k{len(self.constants)}_{len(self.nodes)}"
        self.constants[name] = array
        self.known[name] = (array.shape, "" if array.dtype == np.int64 else str(array.dtype))
        return name


def _base(rng: np.random.Generator) -> Shape:
    rank = int(rng.integers(0, 8))
    pool = [int(n) for n in rng.choice([1, 2, 3, 4, 5], rng.integers(1, 4))]
    sizes = [int(rng.choice(pool)) for _ in range(rank)]
    if sizes and rng.random() < 0.03:
        sizes[int(rng.integers(0, rank))] = 0
    if sizes and rng.random() < 0.4:
        sizes[0] = 1
    return tuple(sizes)


def random_model(seed: int, turn: int) -> onnx.ModelProto:
    """The graph number `turn` of a seed."""
    from onnx import helper, numpy_helper

    rng = np.random.default_rng((seed, turn))
    opset, ir = _VERSIONS[int(rng.integers(0, len(_VERSIONS)))]
    dtype = str(rng.choice(_DTYPES)) if opset >= 7 else "float32"
    maker = _Maker(rng, opset, _base(rng), dtype)
    so_far = "x0"
    shape = maker.base if rng.random() < 0.7 else maker.shape()
    maker.inputs["x0"] = maker.known["x0"] = (shape, dtype)
    for _ in range(int(rng.integers(1, 9))):
        so_far = maker.add(so_far)
    listed = [node.output[0] for node in maker.nodes]
    outputs = [name for name in listed[:-1] if rng.random() < 0.2] + [so_far]

    def info(name: str, shape: Shape, kind: str) -> Any:
        return helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(np.dtype(kind)), shape
        )

    inputs = [info(name, *entry) for name, entry in maker.inputs.items()]
    if ir < 4:
        inputs += [info(n, data.shape, str(data.dtype)) for n, data in maker.constants.items()]
    nodes, initializers = list(maker.nodes), []
    for name, data in maker.constants.items():
        tensor = numpy_helper.from_array(data, name)
        if ir >= 4 and rng.random() < 0.3:
            nodes.insert(0, helper.make_node("Constant", [], [name], name, value=tensor))
        else:
            initializers.append(tensor)
    graph = helper.make_graph(
        nodes,
        "g",
        inputs,
        [info(name, *maker.known[name]) for name in outputs],
        initializers,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir)


__all__ = ["random_model"]
