"""A quantised model as one of floats, and what that does to its outputs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ...errors import ModelError
from ...models.formats.child import ask
from ...models.ir.graph import Graph
from ...models.options import ModelOptions
from ..task import Array
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


def dequantise(model: Path, goal: Path, seconds: float) -> tuple[str, ...]:
    """Writes a copy of a model without quantised ops, in a child process; the ops.

    Args:
        model: an ONNX file.
        goal: the file to write.
        seconds: the longest time.

    Raises:
        ModelError: the file cannot be read, or there are no floats for one of its ops.
    """
    output, failure = ask(_DEQUANTISE, str(model.absolute()), str(goal), seconds=seconds)
    if failure is not None:
        raise ModelError(failure if str(model) in failure else f"{model}: {failure}")
    return tuple(json.loads(output))


def effect(graph: Graph, floats: Path, options: ModelOptions, inputs: Mapping[str, Array]) -> str:
    """How far the outputs of a copy in floats are from the model's, in words.

    Args:
        graph: the quantised model.
        floats: the copy.
        options: what is known of both.
        inputs: arrays by the names of the inputs.
    """
    ours, _ = meant_outputs(graph, inputs, "")
    others, _ = meant_outputs(options.read(floats), inputs, "")
    names = [value.name for value in graph.outputs]
    pairs = [(ours[n].astype(np.float64), others[n].astype(np.float64)) for n in names]
    most = max((np.abs(a - b).max(initial=0) for a, b in pairs), default=0)
    mean = max((np.abs(a - b).mean() for a, b in pairs if a.size), default=0)
    size = max((np.abs(a).max(initial=0) for a, _ in pairs), default=0)
    return (
        f"outputs move by at most {most:.2g}, {mean:.2g} in the mean, of numbers up to {size:.2g}"
    )


__all__ = ["dequantise", "effect"]
