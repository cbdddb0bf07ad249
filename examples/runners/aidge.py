# /// script
# dependencies = ["aidge-core", "aidge-onnx", "aidge-backend-cpu"]
# ///
"""Aidge on the CPU (PyPI: aidge-core, aidge-onnx, aidge-backend-cpu): a model of one ONNX node."""

import tempfile
from pathlib import Path

import aidge_backend_cpu  # noqa: F401  registers the backend
import aidge_core
import aidge_onnx
import numpy as np

from zerostride.runtimes.learn.onnx_model import onnx_model

NAME = "aidge"
DISTRIBUTION = "aidge-backend-cpu"
NAMES = "onnx"

aidge_core.Log.set_console_level(aidge_core.Level.Fatal)


def run(op, arrays, target=None):
    """One node; Aidge reads files only."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "node.onnx"
        path.write_bytes(onnx_model(op, arrays, target))
        graph = aidge_onnx.load_onnx(str(path))
    graph.set_backend("cpu")
    operands = list(map(aidge_core.Tensor, arrays))
    aidge_core.SequentialScheduler(graph).forward(forward_dims=True, data=operands)
    (node,) = graph.get_output_nodes()
    return np.array(node.get_operator().get_output(0))
