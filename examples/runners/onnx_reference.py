# /// script
# dependencies = ["onnx"]
# ///
"""The reference evaluator of ONNX (PyPI: onnx): a model of one node."""

import onnx
from onnx.reference import ReferenceEvaluator

from zerostride.runtimes.learn.onnx_model import onnx_model

NAME = "onnx-reference"
DISTRIBUTION = "onnx"
NAMES = "onnx"


def run(op, arrays, target=None):
    """One node."""
    model = onnx.load_from_string(onnx_model(op, arrays, target))
    feeds = {f"x{k}": array for k, array in enumerate(arrays)}
    return ReferenceEvaluator(model).run(None, feeds)[0]
