"""Weights in half precision: detection in a file, and a model with its weights rounded.

pnnx and OpenVINO's converter store weights as float16 by default. Their results then differ by more
than the rounding of single operations, and by less than wrong weights do.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from ...errors import ModelError
from ...models.formats import read_model
from ...models.ir.files import write_scratch
from ...models.ir.graph import Array, Graph, Value

#: The least elements of a constant that counts as a weight; smaller ones are often whole numbers.
_LEAST = 16


def halved(array: Array) -> Array:
    """The numbers of an array rounded to float16; numbers that overflow are unchanged."""
    if array.dtype not in (np.float32, np.float64):
        return array
    with np.errstate(over="ignore"):
        small = array.astype(np.float16).astype(array.dtype)
    return np.where(np.isfinite(small), small, array)


def stores_halves(file: Path) -> bool:
    """Whether a file marks a weight as float16, or every large weight could be one.

    Single numbers and small tensors do not count; a file without large weights stores none.
    """
    halves = False
    for value in read_model(file).values():
        if value.source is None or value.dtype not in ("float16", "float32"):
            continue
        if value.stored == "float16":
            return True
        try:
            array = value.data()
        except ModelError:
            continue  # missing: the engine reports it
        if array.ndim > 1 and array.size >= _LEAST:
            if not np.array_equal(halved(array), array):
                return False
            halves = True
    return halves


def with_halves(graph: Graph) -> Graph:
    """The graph, its weights rounded to float16."""

    def change(value: Value, _: int) -> Value:
        source = value.source
        if source is None or value.dtype not in ("float32", "float64"):
            return value
        return replace(value, source=lambda: halved(source()))

    return graph.with_values(change)


@contextmanager
def onnx_with_halves(path: str) -> Iterator[str]:
    """A temporary copy of an ONNX file with weights rounded to float16."""
    import onnx
    from onnx import numpy_helper

    model = onnx.load(path)
    for tensor in model.graph.initializer:
        if tensor.data_type in (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE):
            array = numpy_helper.to_array(tensor)
            tensor.CopyFrom(numpy_helper.from_array(halved(array), tensor.name))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "halves.onnx")
        write_scratch(file, lambda file: onnx.save(model, file))
        yield str(file)
