"""The child process of test_mnn_format: MNN's converter, and MNN running a file.

    python mnn_worker.py convert MODEL.onnx MODEL.mnn
    python mnn_worker.py run MODEL.mnn INPUTS.npz OUTPUTS.npz OUTPUT...

It needs MNN and NumPy, nothing of zerostride.
"""

from __future__ import annotations

import sys

import numpy as np


def convert(source: str, target: str) -> None:
    """An ONNX file as an .mnn file."""
    import _tools  # MNN's converter: importing MNN.tools would run pip

    _tools.mnnconvert(
        ["mnnconvert", "-f", "ONNX", "--modelFile", source, "--MNNModel", target, "--bizCode", "z"]
    )


def run(model: str, inputs: str, outputs: str, names: list[str]) -> None:
    """The model's results for these inputs."""
    import MNN.nn
    from MNN import expr

    feeds = dict(np.load(inputs))
    net = MNN.nn.load_module_from_file(model, list(feeds), names)
    variables = []
    for array in feeds.values():
        kind = expr.float if array.dtype.kind == "f" else expr.int
        wide = np.float32 if array.dtype.kind == "f" else np.int32
        flat = np.ascontiguousarray(array, wide).ravel().tolist()
        variables.append(expr.const(flat, list(array.shape), expr.NCHW, kind))
    results = {}
    for name, result in zip(names, net.forward(variables), strict=True):
        plain = expr.convert(result, expr.NCHW)
        results[name] = np.array(plain.read()).reshape(plain.shape)
    np.savez(outputs, **results)


if __name__ == "__main__":
    if sys.argv[1] == "convert":
        convert(*sys.argv[2:])
    else:
        run(*sys.argv[2:5], sys.argv[5:])
