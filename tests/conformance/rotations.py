"""Rotations of a tensor by angles, x * cos + turned * sin, as ONNX models; drawn by a number."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Rotation:
    """A drawn rotation.

    Attributes:
        x: the input.
        shape: of the tensor that is turned.
        angles: the shape of cosines and sines.
        before: what comes before it: "relu", "norm" (an op that tells the batch), or "heads".
    """

    def __init__(self, number: int) -> None:
        self.rng = rng = np.random.default_rng([number, 6833])
        batch = int(rng.choice([1, 1, 1, 2]))
        heads, length, width = int(rng.choice([1, 3, 4])), int(rng.choice([1, 3, 6])), 8
        self.before = str(rng.choice(["relu", "norm", "heads"]))
        whole = [(batch, heads, length, width), (heads, length, width), (length, width)]
        whole.append((1, 2, heads, length, width))
        self.shape = whole[0 if self.before == "heads" else rng.choice(4, p=[0.6, 0.2, 0.1, 0.1])]
        some = [self.shape[-2:], self.shape[-1:], (1, *self.shape[-2:]), (1, 1, *self.shape[-2:])]
        some += [self.shape[-3:], (*self.shape[-3:-2], 1, width), self.shape]
        self.angles = tuple(int(n) for n in some[rng.choice(7, p=[0.4, 0.1, *[0.1] * 5])])
        if len(self.angles) > len(self.shape):
            self.angles = self.shape[-2:]
        self.halves = bool(rng.random() < 0.3)
        self.swapped = bool(rng.random() < 0.2)
        self.model, self.x = self._build()

    def _build(self) -> tuple[Any, Any]:
        rng, (width,) = self.rng, self.shape[-1:]
        constants: list[Any] = []

        def constant(array: Any) -> str:
            constants.append(numpy_helper.from_array(array, f"c{len(constants)}"))
            return constants[-1].name

        nodes: list[Any] = []

        def add(op: str, *names: str, **attributes: Any) -> str:
            nodes.append(
                helper.make_node(op, names, [f"t{len(nodes)}"], f"n{len(nodes)}", **attributes)
            )
            return nodes[-1].output[0]

        def numbers(*values: int) -> str:
            return constant(np.array(values, np.int64))

        shape = self.shape
        if self.before == "heads":
            batch, heads, length, _ = shape
            shape = (batch, length, heads * width)
            y = add("Reshape", "x", numbers(batch, length, heads, width))
            y = add("Transpose", y, perm=[0, 2, 1, 3])
        elif self.before == "norm":
            y = add("LayerNormalization", "x", constant(np.ones(width, np.float32)))
        else:
            y = add("Relu", "x")
        angles = rng.uniform(0, 3, self.angles).astype(np.float32)
        if self.halves:
            angles[..., width // 2 :] = angles[..., : width // 2]
        end, last = np.iinfo(np.int64).max, numbers(-1)
        one = add("Slice", y, numbers(0), numbers(width // 2), last)
        other = add("Slice", y, numbers(width // 2), numbers(int(end)), last)
        turned = add("Concat", add("Neg", other), one, axis=-1)
        pairs = [(y, constant(np.cos(angles))), (turned, constant(np.sin(angles)))]
        parts = [add("Mul", *(pair[::-1] if self.swapped else pair)) for pair in pairs]
        nodes.append(helper.make_node("Add", parts, ["y"], "turn"))
        ends = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, size)
            for name, size in (("x", shape), ("y", None))
        ]
        graph = helper.make_graph(nodes, "rotation", ends[:1], ends[1:], constants)
        opsets = [helper.make_opsetid("", 17)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
        x = rng.normal(size=shape).astype(np.float32)
        return onnx.shape_inference.infer_shapes(model), x
