"""The child process for ops that no runner of zerostride computes.

Run as ``python compound_worker.py ENGINE``; it needs the engine and NumPy. PyTorch and TensorFlow
quantise; MNN converts a whole ONNX model and runs it. A question is a pickled dict; the answer is
the result as an array, or the line with which the engine refused.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from asked import serve

Arrays = Sequence[Any]
Run = Callable[[Mapping[str, Any]], Any]


class Refused(Exception):  # noqa: N818 - an answer
    """The engine said no in its own way."""


def load_torch() -> Run:
    import torch

    def quantised(attrs: Mapping[str, Any], x: Arrays) -> Any:
        points = x[2].to(torch.int32)
        if x[1].numel() == 1:
            number = x[1].reshape(()), points.reshape(())
            return torch.quantize_per_tensor(x[0], *number, torch.qint8).int_repr()
        axis = attrs["axis"] % x[0].dim()
        return torch.quantize_per_channel(x[0], x[1], points, axis, torch.qint8).int_repr()

    def dequantised(attrs: Mapping[str, Any], x: Arrays) -> Any:
        import torch.ao.quantization.fx._decomposed  # registers the ops

        ops, ends, points = torch.ops.quantized_decomposed, (-128, 127, torch.int8), x[2].int()
        if x[1].numel() == 1:
            return ops.dequantize_per_tensor(x[0], float(x[1]), int(points), *ends)
        return ops.dequantize_per_channel(x[0], x[1], points, attrs["axis"], *ends)

    table = {"QuantizeLinear": quantised, "DequantizeLinear": dequantised}

    def run(question: Mapping[str, Any]) -> Any:
        arrays = [torch.from_numpy(np.array(array)) for array in question["arrays"]]
        return table[question["op"]](question["attributes"], arrays).numpy()

    return run


def load_tensorflow() -> Run:
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf

    def uniform(attrs: Mapping[str, Any], x: Arrays) -> dict[str, Any]:
        number = x[1].size == 1
        return {
            "input": x[0],
            "scales": x[1].reshape(()) if number else x[1],
            "zero_points": x[2].astype(np.int32).reshape(() if number else x[2].shape),
            "quantization_min_val": -128,
            "quantization_max_val": 127,
            "quantization_axis": -1 if number else attrs["axis"] % x[0].ndim,
        }

    def quantised(attrs: Mapping[str, Any], x: Arrays) -> Any:
        whole = tf.raw_ops.UniformQuantize(**uniform(attrs, x), Tout=tf.qint8)
        return tf.bitcast(whole, tf.int8)

    def dequantised(attrs: Mapping[str, Any], x: Arrays) -> Any:
        given = uniform(attrs, x)
        given["input"] = tf.bitcast(tf.constant(x[0]), tf.qint8)
        return tf.raw_ops.UniformDequantize(**given, Tout=tf.float32)

    table = {"QuantizeLinear": quantised, "DequantizeLinear": dequantised}
    return lambda question: table[question["op"]](
        question["attributes"], question["arrays"]
    ).numpy()


def load_mnn() -> Run:
    """A model goes through MNN's own converter."""
    import _tools  # MNN's converter: importing MNN.tools would run pip
    import MNN.nn
    from MNN import expr

    def run(question: Mapping[str, Any]) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder, "m.onnx"), Path(folder, "m.mnn")
            source.write_bytes(question["model"])
            arguments = ["-f", "ONNX", "--modelFile", str(source), "--MNNModel", str(target)]
            _tools.mnnconvert(["mnnconvert", *arguments, "--bizCode", "z"])
            if not target.is_file():
                raise Refused("the converter wrote no model")
            feeds = question["feeds"]
            net = MNN.nn.load_module_from_file(str(target), list(feeds), ["y"])
            variables = []
            for array in feeds.values():
                dtype, kind = (
                    (np.float32, expr.float) if array.dtype.kind == "f" else (np.int32, expr.int)
                )
                flat = np.ascontiguousarray(array, dtype).ravel().tolist()
                variables.append(expr.const(flat, list(array.shape), expr.NCHW, kind))
            result = expr.convert(net.forward(variables)[0], expr.NCHW)
            if not result.valid or result.shape is None:
                raise Refused("the result is an invalid variable")
            return np.array(result.read()).reshape(result.shape)

    return run


LOADERS = {"torch": load_torch, "tensorflow": load_tensorflow, "mnn": load_mnn}


def main(engine: str) -> None:
    def load() -> Callable[[Mapping[str, Any]], tuple[str, Any]]:
        run = LOADERS[engine]()
        return lambda question: ("result", np.asarray(run(question)))

    serve(load)


if __name__ == "__main__":
    main(sys.argv[1])
