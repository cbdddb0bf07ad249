"""A quantised model as one of floats, and what that does to its outputs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from ...errors import ModelError
from ...models.formats.child import ask
from ...models.formats.onnx.prepared.dequantised import is_quantised
from ...models.ir.graph import Graph
from ...models.options import ModelOptions
from ..feeds import Fed
from ..verify.whole_model import meant_outputs

#: Writes the model, and answers with the ops that were written as others.
_DEQUANTISE = """
load_package()
import pathlib
from zerostride.models.formats.onnx.prepared.dequantised import dequantised
from zerostride.errors import ModelError
try:
    ops = dequantised(*map(pathlib.Path, sys.argv[1:3]))
except ModelError as error:
    sys.exit(str(error))
answer.write(json.dumps(ops).encode())
"""


def dequantise(
    model: Path, goal: Path, seconds: float, given: Fed, options: ModelOptions
) -> tuple[str, ...]:
    """Writes a copy of a model without quantised ops, in a child process; notes on it.

    Args:
        model: an ONNX file.
        goal: the file to write.
        seconds: the longest time.
        given: the model with its inputs, with which both are compared.
        options: what is known of both.

    Raises:
        ModelError: the file cannot be read or is no ONNX file, or there are no floats for an op.
    """
    if given.graph.format != "onnx":
        raise ModelError(f"{model}: ops of ONNX files alone are written in floats")
    output, failure = ask(_DEQUANTISE, str(model.absolute()), str(goal), seconds=seconds)
    if failure is not None:
        raise ModelError(failure if str(model) in failure else f"{model}: {failure}")
    ops = json.loads(output)
    if not ops:
        return ("the model has no quantised ops: there is nothing to dequantize",)
    moved = _distance(given, options.read(goal))
    return (f"dequantized: {', '.join(ops)} in floats; {moved}",)


def _distance(given: Fed, copy: Graph) -> str:
    """How far the outputs of a copy in floats are from the model's, in words."""
    names = [value.name for value in given.graph.outputs]
    most = mean = size = 0.0
    for inputs in given.runs:
        meant, _ = meant_outputs(given.graph, inputs, "")
        floats, _ = meant_outputs(copy, inputs, "")
        for name in (name for name in names if meant[name].size):
            array = meant[name].astype(np.float64)
            apart = np.abs(array - floats[name])
            most, mean = max(most, apart.max()), max(mean, apart.mean())
            size = max(size, np.abs(array).max())
    return f"outputs move by at most {most:.2g}, {mean:.2g} in the mean, of numbers to {size:.2g}"


def quantised_ops(graph: Graph) -> tuple[str, ...]:
    """The quantised ops of an ONNX model, but those that stand for constants."""
    if graph.format != "onnx":
        return ()
    nodes = [node for node in graph.nodes if is_quantised(node.op)]
    ops = dict.fromkeys(node.op for node in nodes)
    return () if ops.keys() == {"DequantizeLinear"} else tuple(ops)


__all__ = ["dequantise", "quantised_ops"]
