"""ncnn on the CPU: a Net of one layer, made from the text of a .param file."""

from __future__ import annotations

import functools
import importlib
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..case import Array, Shape
from . import Attrs, Refused, Runner

_BINARY = "7767517\n3 3\nInput a 0 1 a\nInput b 0 1 b\nBinaryOp op 2 1 a b out 0={}\n"
_PRELU = "7767517\n2 2\nInput a 0 1 a\nPReLU op 1 1 a out 0={}\n"
#: A Mat has at most so many axes.
_MAX_RANK = 4


def load() -> Runner:
    """Imports ncnn."""
    ncnn: Any = importlib.import_module("ncnn")

    def mat(array: Array) -> Any:
        if array.ndim > _MAX_RANK:
            raise Refused(f"a Mat has at most {_MAX_RANK} axes, not {array.ndim}")
        # A Mat has no rank 0; clone, because layers in place crash on memory of NumPy's.
        result = ncnn.Mat(np.ascontiguousarray(array.reshape(array.shape or (1,))))
        return result.clone() if array.size else result

    def net_of(text: str) -> Any:
        net = ncnn.Net()
        net.opt.num_threads = 1
        if net.load_param_mem(text) != 0:
            raise Refused("load_param_mem did not take the layer")
        return net

    @functools.cache
    def binary_net(op_type: int) -> Any:
        return net_of(_BINARY.format(op_type))

    def extract(net: Any, **inputs: Any) -> Array:
        extractor = net.create_extractor()
        for name, blob in inputs.items():
            extractor.input(name, blob)
        status, out = extractor.extract("out")
        if status != 0:
            raise Refused(f"extract returned status {status}")
        return np.array(out)

    def binary(attrs: Attrs, operands: Sequence[Array], target: Shape) -> Array:
        a, b = map(mat, operands)
        return extract(binary_net(attrs["op_type"]), a=a, b=b)

    def prelu(attrs: Attrs, operands: Sequence[Array], target: Shape) -> Array:
        data, slope = operands
        if slope.ndim > 1:
            raise Refused("the slopes are a flat list")
        if not (data.size and slope.size):
            raise Refused("no empty blobs or weights")
        net = net_of(_PRELU.format(slope.size))
        with tempfile.TemporaryDirectory() as folder:
            weights = Path(folder, "weights.bin")
            weights.write_bytes(np.ascontiguousarray(slope, "<f4").tobytes())
            if net.load_model(str(weights)) != 0:
                raise Refused("load_model did not take the weights")
        return extract(net, a=mat(data))

    return Runner(str(ncnn.__version__), {"BinaryOp": binary, "PReLU": prelu})
