"""A sheet on which an ONNX graph is written in the words of an op set, as exporters write it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

if TYPE_CHECKING:
    from onnx import ModelProto

Size = int | str | None
#: The largest op set of an IR version, smallest first.
_IR = ((8, 3), (9, 4), (10, 5), (11, 6), (14, 7), (18, 8), (20, 9), (22, 10), (23, 11), (99, 12))


@dataclass
class Sheet:
    """A graph in the making; methods append nodes and return names of tensors.

    Attributes:
        rng: decides between the ways in which exporters write the same thing.
        opset: the op set of ai.onnx.
        fixed: all sizes of inputs are numbers.
    """

    rng: np.random.Generator
    opset: int
    fixed: bool = False
    nodes: list[Any] = field(default_factory=list)
    weights: list[Any] = field(default_factory=list)
    inputs: list[Any] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)
    functions: list[Any] = field(default_factory=list)
    domains: set[str] = field(default_factory=set)
    count: int = 0

    def name(self, word: str) -> str:
        """A new name."""
        self.count += 1
        return f"{word}_{self.count}"

    def batch(self) -> Size:
        """A leading size as files have it."""
        sizes: list[Size] = [1, 2, "batch", "N", "batch_size", None]
        size = sizes[int(self.rng.integers(len(sizes)))]
        return 2 if self.fixed and not isinstance(size, int) else size

    def open(self, word: str, number: int) -> Size:
        """Another size as files have it."""
        sizes: list[Size] = [number, word, None]
        size = sizes[int(self.rng.integers(len(sizes)))]
        return number if self.fixed else size

    def input(self, name: str, *shape: Size, dtype: str = "float32") -> str:
        """An input; a size may be a number, a name or unknown."""
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def output(self, *names: str, dtype: str = "float32") -> None:
        """Outputs, whose shapes are left to inference."""
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self.outputs += [helper.make_tensor_value_info(name, kind, None) for name in names]

    def op(self, op: str, *inputs: str, count: int = 1, domain: str = "", **more: Any) -> Any:
        """A node: the name of its result, or the names of several."""
        names = [self.name(op) for _ in range(count)]
        self.domains.add(domain)
        node = helper.make_node(op, inputs, names, name=self.name("n"), domain=domain, **more)
        self.nodes.append(node)
        return names[0] if count == 1 else names

    def const(self, values: Any, dtype: str = "float32") -> str:
        """A constant: an initializer, or the result of a Constant node."""
        array = np.asarray(values, dtype)
        name = self.name("c")
        if self.rng.random() < 0.5:
            self.weights.append(numpy_helper.from_array(array, name))
        else:
            value = numpy_helper.from_array(array, name)
            self.nodes.append(helper.make_node("Constant", [], [name], value=value))
        return name

    def ints(self, *values: int) -> str:
        """A constant vector of int64."""
        return self.const(values, "int64")

    def weight(self, *shape: int) -> str:
        """A constant of random numbers."""
        name = self.name("w")
        array = self.rng.standard_normal(shape).astype(np.float32)
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    # Ops whose attributes became operands.

    def _axes(self, op: str, since: int, x: str, axes: Sequence[int], **more: Any) -> str:
        if self.opset >= since:
            return str(self.op(op, x, self.ints(*axes), **more))
        return str(self.op(op, x, axes=list(axes), **more))

    def unsqueeze(self, x: str, *axes: int) -> str:
        """Axes of 1 put in."""
        return self._axes("Unsqueeze", 13, x, axes)

    def squeeze(self, x: str, *axes: int) -> str:
        """Axes of 1 removed."""
        return self._axes("Squeeze", 13, x, axes)

    def reduce(self, op: str, since: int, x: str, *axes: int) -> str:
        """A reduction that keeps its axes, which are an operand from an op set on."""
        return self._axes(op, since, x, axes, keepdims=1)

    def mean(self, x: str, *axes: int, keep: int = 1) -> str:
        """A ReduceMean."""
        return self._axes("ReduceMean", 18, x, axes, keepdims=keep)

    def total(self, x: str, *axes: int, keep: int = 1) -> str:
        """A ReduceSum."""
        return self._axes("ReduceSum", 13, x, axes, keepdims=keep)

    def part(self, x: str, start: int | str, end: int | str, axis: int) -> str:
        """A Slice along one axis; bounds may be tensors."""
        if self.opset < 10 and isinstance(start, int) and isinstance(end, int):
            return str(self.op("Slice", x, starts=[start], ends=[end], axes=[axis]))
        bounds = [b if isinstance(b, str) else self.ints(b) for b in (start, end)]
        return str(self.op("Slice", x, *bounds, self.ints(axis)))

    def split(self, x: str, sizes: Sequence[int], axis: int) -> list[str]:
        """A Split."""
        if self.opset >= 13:
            return list(self.op("Split", x, self.ints(*sizes), count=len(sizes), axis=axis))
        return list(self.op("Split", x, count=len(sizes), axis=axis, split=list(sizes)))

    def clip(self, x: str, low: float, high: float) -> str:
        """A Clip."""
        if self.opset >= 11:
            return str(self.op("Clip", x, self.const(low), self.const(high)))
        return str(self.op("Clip", x, min=float(low), max=float(high)))

    def resize(self, x: str, *operands: str, **more: Any) -> str:
        """A Resize by scales, or to sizes; op sets 11 and 12 require a region, if an empty one."""
        region = [] if self.opset < 11 else [self.const([]) if self.opset < 13 else ""]
        op = "Upsample" if self.opset < 10 else "Resize"
        return str(self.op(op, x, *region, *operands, **more))

    def softmax(self, x: str) -> str:
        """A Softmax along the last axis, which old op sets flatten to."""
        return str(self.op("Softmax", x, axis=-1 if self.opset >= 13 else 3))

    # What exporters write for one call.

    def size(self, x: str, axis: int, *, vector: bool = False) -> str:
        """One size of a tensor at run time, of rank 0, or 1 where a shape is put together."""
        index = self.const(axis, "int64")
        one = str(self.op("Gather", self.op("Shape", x), index, axis=0))
        return self.unsqueeze(one, 0) if vector else one

    def reshape(self, x: str, *sizes: int | str) -> str:
        """A Reshape to numbers and to sizes read from tensors, which are vectors."""
        if all(isinstance(size, int) for size in sizes):
            return str(self.op("Reshape", x, self.ints(*[int(size) for size in sizes])))
        return str(self.op("Reshape", x, self.shape(*sizes)))

    def shape(self, *sizes: int | str) -> str:
        """A shape put together from numbers and vectors of one."""
        parts = [self.ints(size) if isinstance(size, int) else size for size in sizes]
        return str(self.op("Concat", *parts, axis=0))

    def transpose(self, x: str, *perm: int) -> str:
        """A Transpose."""
        return str(self.op("Transpose", x, perm=list(perm)))

    def cast(self, x: str, dtype: str) -> str:
        """A Cast."""
        return str(self.op("Cast", x, to=helper.np_dtype_to_tensor_dtype(np.dtype(dtype))))

    def linear(self, x: str, inner: int, outer: int) -> str:
        """A product with weights and a bias."""
        return str(self.op("Add", self.op("MatMul", x, self.weight(inner, outer)),
                           self.weight(outer)))  # fmt: skip

    def conv(self, x: str, inner: int, outer: int, kernel: int = 3, rank: int = 2) -> str:
        """A convolution that keeps the image's size, with a bias."""
        pads = [kernel // 2] * (2 * rank)
        weights = self.weight(outer, inner, *[kernel] * rank)
        return str(self.op("Conv", x, weights, self.weight(outer), pads=pads,
                           kernel_shape=[kernel] * rank))  # fmt: skip

    def graph(self, name: str) -> Any:
        """The graph."""
        return helper.make_graph(self.nodes, name, self.inputs, self.outputs, self.weights)

    def body(self, prefix: str) -> Sheet:
        """A sheet for a body of this graph; its names are its own."""
        return Sheet(self.rng, self.opset, domains=self.domains, count=1000 * (len(prefix) + 1)
                     + self.count)  # fmt: skip

    def model(self) -> ModelProto:
        """The model, with types of results inferred where that is possible."""
        sets = [helper.make_opsetid("", self.opset)]
        sets += [helper.make_opsetid(domain, 1) for domain in sorted(self.domains - {""})]
        ir = next(ir for most, ir in _IR if self.opset <= most)
        return helper.make_model(self.graph("main"), opset_imports=sets, ir_version=ir,
                                 functions=self.functions)  # fmt: skip


FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
