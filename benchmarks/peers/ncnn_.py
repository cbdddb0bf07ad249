"""ncnn: a Net of one layer, with shapes for which ncnn's broadcasting gives NumPy's result."""

from __future__ import annotations

import functools
from typing import Any

import ncnn
import numpy as np

import zerostride

from ..rows import Array, Task
from .peer import Call, LeftOut, Prepared, in_order, no_in_place, prepared_out

_BINARY = "7767517\n3 3\nInput a 0 1 a\nInput b 0 1 b\nBinaryOp op 2 1 a b out 0={}\n"
_UNARY = "7767517\n2 2\nInput a 0 1 a\n{} op 1 1 a out {}\n"
#: By op: the layer's text.
_LAYERS = {
    "add": _BINARY.format(0),
    "multiply": _BINARY.format(2),
    "divide": _BINARY.format(3),
    "pow": _BINARY.format(6),
    "exp": _UNARY.format("UnaryOp", "0=7"),
    "tanh": _UNARY.format("UnaryOp", "0=16"),
    "relu": _UNARY.format("ReLU", ""),
    "leaky_relu": _UNARY.format("ReLU", "0={alpha}"),
    "clip": _UNARY.format("Clip", "0={low} 1={high}"),
    "sigmoid": _UNARY.format("Sigmoid", ""),
}
#: Ops that ncnn computes in another way.
_OTHERWISE = {"prelu": "its slopes are constants of the first axis"}


def prepare(task: Task) -> Prepared:
    """Nets of one thread and of all."""
    row = task.row
    in_order(task, "ncnn")
    no_in_place(task, "ncnn")
    prepared_out(task, "ncnn")
    if row.dtype != "float32":
        raise LeftOut(f"no {row.dtype}")
    if row.op not in _LAYERS:
        raise LeftOut(_OTHERWISE.get(row.op, f"no layer computes {row.op}"))
    shapes = _shapes(task)
    arrays = [array.reshape(shape) for array, shape in zip(task.inputs, shapes, strict=False)]
    calls = tuple(Call(_extraction(task, arrays, n)) for n in sorted({1, task.threads}))
    return Prepared(calls, lambda mat: np.array(mat).reshape(task.shape))


def _shapes(task: Task) -> list[tuple[int, ...]]:
    """The operands' shapes under ncnn's rule."""
    shapes = [array.shape for array in task.inputs]
    if task.row.op in ("clip", "relu", "leaky_relu", "sigmoid") or len(shapes) == 1:
        # ncnn has no axis for the batch.
        return [shapes[0][1:] if len(shapes[0]) == 4 else shapes[0]]
    try:
        expression = zerostride.plan(*shapes).express("ncnn")
    except zerostride.NotExpressible as error:
        raise LeftOut("its rule and its four axes cannot express it") from error
    if expression.swapped:
        raise LeftOut("its rule can express it with swapped operands alone")
    return [shape or (1,) for shape in expression.shapes]


@functools.cache
def _allocator(_: str) -> Any:
    """Memory that is kept between calls; never freed, since Mats hold on to it."""
    return ncnn.PoolAllocator()


def _attributes(task: Task) -> dict[str, float]:
    """The numbers of a layer's text that are not operands."""
    if task.row.op == "clip":
        return {"low": task.inputs[1].item(), "high": task.inputs[2].item()}
    return task.row.keywords


def _extraction(task: Task, arrays: list[Array], threads: int) -> Any:
    """A function that runs the layer."""
    net = ncnn.Net()
    net.opt.num_threads = threads
    net.opt.use_fp16_storage = net.opt.use_fp16_packed = net.opt.use_fp16_arithmetic = False
    # Packing interleaves channels, and pays only where many layers follow each other.
    net.opt.use_packing_layout = False
    net.opt.blob_allocator = _allocator("blobs")
    net.opt.workspace_allocator = _allocator("workspace")
    if net.load_param_mem(_LAYERS[task.row.op].format(**_attributes(task))) != 0:
        raise LeftOut("its reader did not take the layer")
    # Clones, because layers that compute in place crash on memory of NumPy's.
    mats = [ncnn.Mat(array).clone() for array in arrays]

    def extract() -> Any:
        extractor = net.create_extractor()
        for name, mat in zip("ab", mats, strict=False):
            extractor.input(name, mat)
        return extractor.extract("out")[1]

    return extract
