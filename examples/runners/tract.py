# /// script
# dependencies = ["tract", "onnx"]
# ///
"""tract (PyPI: tract, onnx): a model of one ONNX node."""

import tempfile
from pathlib import Path

import tract

from zerostride.runtimes.learn.onnx_model import onnx_model

NAME = "tract"
DISTRIBUTION = "tract"
NAMES = "onnx"


def run(op, arrays, target=None):
    """One node; tract reads files only."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "node.onnx"
        path.write_bytes(onnx_model(op, arrays, target))
        runnable = tract.onnx().load(path).into_model().into_runnable()
    return runnable.run(arrays)[0].to_numpy()
