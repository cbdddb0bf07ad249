"""Three broadcasts whose sizes are known when the model runs: what they mean elsewhere depends."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def build() -> onnx.ModelProto:
    """(T, 8) + (8,), a mask (T, T) over (heads, T, T), and one over samples that may not fit."""
    inputs = {
        "features": ("T", 8),
        "scores": ("heads", "T", "T"),
        "mask": ("T", "T"),
        "left": ("N", 4),
        "right": ("M", 4),
    }
    nodes = [
        helper.make_node("Add", ["features", "bias"], ["biased"], name="add_bias"),
        helper.make_node("Add", ["scores", "mask"], ["masked"], name="add_mask"),
        helper.make_node("Sub", ["left", "right"], ["distance"], name="distance"),
    ]
    bias = numpy_helper.from_array(np.arange(8, dtype=np.float32), "bias")
    graph = helper.make_graph(
        nodes,
        "dynamic",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
        [
            helper.make_tensor_value_info("biased", TensorProto.FLOAT, ("T", 8)),
            helper.make_tensor_value_info("masked", TensorProto.FLOAT, ("heads", "T", "T")),
            helper.make_tensor_value_info("distance", TensorProto.FLOAT, (None, 4)),
        ],
        [bias],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
