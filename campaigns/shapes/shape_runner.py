"""The child process that runs a model at several sizes and prints every tensor's shape.

Run as ``python -m campaigns.shapes.shape_runner MODEL FIRST``: one JSON line on the first output
for each of TRIED from FIRST on. ONNX Runtime ends the process on some sizes (an LSTM of no steps).
"""

from __future__ import annotations

import importlib
import itertools
import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

#: Numbers for the names of a model, in this order; each row is one run.
TRIED = (
    (2, 5, 9, 7, 4),
    (1, 6, 4, 3, 2),
    (3, 1, 8, 1, 5),
    (4, 16, 24, 8, 32),
    (1, 1, 1, 1, 1),
    (2, 57, 43, 61, 50),
    (0, 4, 6, 5, 3),
)


def main(path: str, first: int) -> int:
    """Runs the model; returns the exit status."""
    answers = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    for values, shapes in _runs(path, first):
        os.write(answers, json.dumps([values, shapes]).encode() + b"\n")
    return 0


def sizes(names: Sequence[str], row: int) -> dict[str, int]:
    """A number for each name; of more names than numbers some have the same."""
    return dict(zip(names, itertools.cycle(TRIED[row]), strict=False))


def names_of(proto: Any) -> tuple[str, ...]:
    """The names of sizes that the inputs of a model have, in order."""
    given = {tensor.name for tensor in proto.graph.initializer}
    listed = [
        size.dim_param
        for entry in proto.graph.input
        if entry.name not in given
        for size in entry.type.tensor_type.shape.dim
    ]
    return tuple(dict.fromkeys(filter(None, listed)))


def tensors_of(proto: Any) -> tuple[str, ...]:
    """The results of the main graph's nodes, without constants."""
    return tuple(
        name
        for node in proto.graph.node
        if node.op_type != "Constant"
        for name in node.output
        if name
    )


def _runs(path: str, first: int) -> Any:
    """Sizes and shapes of each run; None for the shapes where the model does not take the sizes."""
    onnx: Any = importlib.import_module("onnx")
    runtime: Any = importlib.import_module("onnxruntime")
    proto = onnx.load(path)
    present = {output.name for output in proto.graph.output}
    tensors, names = tensors_of(proto), names_of(proto)
    for name in tensors:
        if name not in present:
            proto.graph.output.append(onnx.helper.make_empty_tensor_value_info(name))
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = runtime.InferenceSession(
            proto.SerializeToString(), options, ["CPUExecutionProvider"]
        )
    except Exception:  # noqa: BLE001 - a model that does not run is not compared
        return
    for row in range(first, len(TRIED)):
        values = sizes(names, row)
        try:
            outputs = session.run(list(tensors), _feeds(proto, session, values))
        except Exception:  # noqa: BLE001 - sizes that the model does not take
            yield values, None
            continue
        pairs = zip(tensors, outputs, strict=True)
        yield values, {n: np.shape(value) for n, value in pairs if isinstance(value, np.ndarray)}


def _feeds(proto: Any, session: Any, values: Mapping[str, int]) -> dict[str, Any]:
    helper: Any = importlib.import_module("onnx.helper")
    wanted = {entry.name for entry in session.get_inputs()}
    return {
        entry.name: np.zeros(
            [
                values[size.dim_param] if size.dim_param else size.dim_value
                for size in entry.type.tensor_type.shape.dim
            ],
            helper.tensor_dtype_to_np_dtype(entry.type.tensor_type.elem_type),
        )
        for entry in proto.graph.input
        if entry.name in wanted
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
