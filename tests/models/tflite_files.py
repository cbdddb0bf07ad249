"""Small .tflite models for tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from campaigns.models.tflite_writer import Graph, Model, Op, Tensor

__all__ = ["MODELS", "Graph", "Model", "Op", "Tensor", "of_one"]


def of_one(kind: str, *shapes: tuple[int, ...], dtype: str = "float32", **options: Any) -> Model:
    """A model of one op on inputs x0, x1, ...; its result is y."""
    model = Model()
    names = [model.main.input(f"x{k}", *shape, dtype=dtype) for k, shape in enumerate(shapes)]
    model.main.op(kind, " ".join(names), "y", **options)
    model.main.output("y")
    return model


def residual() -> Model:
    """A convolution with half-precision weights, PRELU, ADD, MEAN, FULLY_CONNECTED."""
    model, graph = Model(), Graph()
    model.graphs = [graph]
    rng = np.random.default_rng(0)
    graph.input("x", 1, 6, 6, 4)
    graph.constant("w16", rng.normal(size=(4, 3, 3, 4)).astype(np.float16))
    graph.constant("bias", rng.normal(size=4).astype(np.float32))
    graph.constant("slope16", rng.normal(size=(1, 1, 4)).astype(np.float16))
    graph.constant("axes", np.array([1, 2], np.int32))
    graph.constant("fc", rng.normal(size=(3, 4)).astype(np.float32))
    graph.op("DEQUANTIZE", "w16", "w")
    graph.op("DEQUANTIZE", "slope16", "slope")
    graph.op("CONV_2D", "x w bias", "c", padding="SAME", stride_w=1, stride_h=1)
    graph.op("PRELU", "c slope", "p")
    graph.op("ADD", "p x", "a", fused_activation_function="RELU6")
    graph.op("MEAN", "a axes", "m", keep_dims=False)
    graph.op("FULLY_CONNECTED", "m fc -", "y")
    graph.output("y")
    return model


def quantised() -> Model:
    """ADD and MUL of quantised tensors, between QUANTIZE and DEQUANTIZE; weights by channel."""
    model = Model()
    graph = model.main
    graph.input("x", 1, 4, 4, 3)
    graph.add("q", (1, 4, 4, 3), "int8", scales=(0.02,), zeros=(3,))
    graph.constant("b", np.array([-20, 5, 60], np.int8), scales=(0.05,), zeros=(0,))
    graph.add("s", (1, 4, 4, 3), "int8", scales=(0.04,), zeros=(-1,))
    graph.constant(
        "w", np.arange(-9, 9, dtype=np.int8).reshape(6, 1, 1, 3),
        scales=(0.01, 0.02, 0.03, 0.01, 0.02, 0.03), axis=0,
    )  # fmt: skip
    graph.constant("bias", np.zeros(6, np.int32), scales=(4e-4, 8e-4, 12e-4) * 2, axis=0)
    graph.add("c", (1, 4, 4, 6), "int8", scales=(0.03,), zeros=(0,))
    graph.op("QUANTIZE", "x", "q")
    graph.op("ADD", "q b", "s", 2)
    graph.op("CONV_2D", "s w bias", "c", 3, padding="SAME", stride_w=1, stride_h=1)
    graph.op("DEQUANTIZE", "c", "y", 2)
    graph.output("y")
    return model


def branches() -> Model:
    """An IF whose branches add tensors of different shapes."""
    model = Model()
    graph = model.main
    graph.input("which", 1, dtype="bool")
    graph.input("x", 2, 3)
    numbers = []
    for op in ("ADD", "MUL"):
        number, inner = model.graph()
        inner.input("a", 2, 3)
        inner.constant("b", np.arange(3, dtype=np.float32))
        inner.op(op, "a b", "r")
        inner.output("r")
        numbers.append(number)
    graph.op(
        "IF", "which x", "y", then_subgraph_index=numbers[0], else_subgraph_index=numbers[1]
    )  # fmt: skip
    graph.output("y")
    return model


def loop() -> Model:
    """A WHILE that adds a row until a counter is 3."""
    model = Model()
    graph = model.main
    graph.input("n", dtype="int32")
    graph.input("x", 2, 3)
    condition, inner = model.graph()
    inner.input("n", dtype="int32")
    inner.input("x", 2, 3)
    inner.constant("three", np.array(3, np.int32))
    inner.add("going", (), "bool")
    inner.op("LESS", "n three", "going")
    inner.output("going")
    body, inner = model.graph()
    inner.input("n", dtype="int32")
    inner.input("x", 2, 3)
    inner.constant("one", np.array(1, np.int32))
    inner.constant("row", np.arange(3, dtype=np.float32))
    inner.add("m", (), "int32")
    inner.op("ADD", "n one", "m")
    inner.op("ADD", "x row", "z")
    inner.output("m", "z")
    graph.add("k", (), "int32")
    graph.op("WHILE", "n x", "k y", cond_subgraph_index=condition, body_subgraph_index=body)
    graph.output("k", "y")
    return model


def signatures() -> Model:
    """Two entries, each with a signature; a subgraph of the second runs once."""
    model = Model()
    model.main.input("x", 2, 3)
    model.main.input("b", 3)
    model.main.op("ADD", "x b", "y")
    model.main.output("y")
    second, graph = model.graph()
    once, inner = model.graph()
    inner.constant("c", np.ones((2, 1), np.float32))
    inner.constant("d", np.ones((1, 3), np.float32))
    inner.op("SUB", "c d", "e")
    inner.output()
    graph.input("x", 4, 1)
    graph.input("b", 5)
    graph.op("CALL_ONCE", "", "", init_subgraph_index=once)
    graph.op("MUL", "x b", "y")
    graph.output("y")
    model.signatures = [("add", 0), ("mul", second)]
    return model


def open_sizes() -> Model:
    """An input whose first size is open in the shape signature."""
    model = Model()
    graph = model.main
    graph.input("x", 1, 5, signature=(-1, 5))
    graph.constant("b", np.arange(5, dtype=np.float32))
    graph.add("s", (1, 5), signature=(-1, 5))
    graph.op("ADD", "x b", "s")
    graph.op("MUL", "s s", "y")
    graph.output("y")
    return model


def sliced() -> Model:
    """STRIDED_SLICE with masks, PACK, SHAPE, RESHAPE to sizes that are computed."""
    model = Model()
    graph = model.main
    graph.input("x", 2, 6, 4)
    for name, numbers in (("begin", (0, 1, 0)), ("end", (0, -1, 0)), ("steps", (1, 2, 1))):
        graph.constant(name, np.array(numbers, np.int32))
    graph.op("STRIDED_SLICE", "x begin end steps", "c", begin_mask=1, end_mask=5)
    graph.add("shape", (3,), "int32")
    graph.op("SHAPE", "x", "shape", out_type=2)
    for name, number in (("i0", 0), ("i1", 1), ("i2", 2)):
        graph.constant(name, np.array([number], np.int32))
    graph.constant("ones", np.array([1], np.int32))
    graph.add("rows", (), "int32")
    graph.op("STRIDED_SLICE", "shape i0 i1 ones", "rows", shrink_axis_mask=1)
    graph.constant("rest", np.array(-1, np.int32))
    graph.add("target", (2,), "int32")
    graph.op("PACK", "rows rest", "target", values_count=2, axis=0)
    graph.op("RESHAPE", "c target", "f")
    graph.constant("b", np.arange(8, dtype=np.float32))
    graph.op("SUB", "f b", "y")
    graph.output("y")
    return model


def custom() -> Model:
    """A custom op, and an addition of its result."""
    model = of_one("MyOwnOp", (2, 3))
    model.main.tensors[-1] = Tensor("y", (2, 3), "float32")
    model.main.constant("b", np.ones(3, np.float32))
    model.main.outputs.clear()
    model.main.op("ADD", "y b", "z")
    model.main.output("z")
    return model


MODELS: Mapping[str, Callable[[], Model]] = {
    "branches": branches,
    "custom": custom,
    "loop": loop,
    "open_sizes": open_sizes,
    "quantised": quantised,
    "residual": residual,
    "signatures": signatures,
    "sliced": sliced,
}
