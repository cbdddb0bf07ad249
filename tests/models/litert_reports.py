"""Public reports about LiteRT's GPU delegate and about onnx2tf, as .tflite models.

Sizes are those of the report, or smaller ones of the same pattern.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from tflite_files import Model, of_one


def _attention(*batch: int, mask: bool) -> Model:
    """The weights of an attention, or its result."""
    model = Model()
    graph = model.main
    for name in "qkv":
        graph.input(name, *batch, 8, 16)
    graph.op("BATCH_MATMUL", "q k", "scores", adj_y=True)
    if mask:
        causal = np.triu(np.full((8, 8), -1e4, np.float32), 1)
        graph.constant("mask", causal.reshape((1,) * len(batch) + (8, 8)))
        graph.op("ADD", "scores mask", "masked")
    graph.op("SOFTMAX", "masked" if mask else "scores", "share", beta=1.0)
    graph.op("BATCH_MATMUL", "share v", "y")
    graph.output("y")
    return model


def _expanded() -> Model:
    """Keys repeated for groups of queries: x.expand(-1, -1, 8, -1) + 0."""
    model = Model()
    graph = model.main
    graph.input("x", 1, 4, 1, 8)
    graph.constant("target", np.array([1, 4, 8, 8], np.int32))
    graph.constant("zero", np.float32(0))
    graph.op("BROADCAST_TO", "x target", "wide")
    graph.op("ADD", "wide zero", "y")
    graph.output("y")
    return model


def _residual() -> Model:
    """x + Linear(x) with weights of 8 bits, on three axes."""
    model = Model()
    graph = model.main
    graph.input("x", 1, 6, 16)
    weights = np.random.default_rng(0).integers(-127, 127, (16, 16)).astype(np.int8)
    scales = tuple(np.linspace(0.01, 0.02, 16))
    graph.constant("w", weights, scales=scales, zeros=(0,) * 16, axis=0)
    graph.op("FULLY_CONNECTED", "x w -", "h", keep_num_dims=True)
    graph.op("ADD", "x h", "y")
    graph.output("y")
    return model


def _with_constant(op: str, *shape: int, constant: Any) -> Model:
    model = Model()
    graph = model.main
    graph.input("x", *shape, dtype=str(constant.dtype))
    graph.constant("c", constant)
    graph.op(op, "x c", "y")
    graph.output("y")
    return model


@dataclass(frozen=True)
class LitertReport:
    """A report as a model.

    Attributes:
        make: the model.
        verdicts: of its broadcasts on litert-gpu.
        cured: whether a port leaves none of them.
    """

    make: Callable[[], Model]
    verdicts: tuple[str, ...]
    cured: bool = True


REPORTS: Mapping[str, LitertReport] = {
    # Mended in LiteRT 2.1.6: a mask that stretches, right after a product.
    "LiteRT-8593": LitertReport(lambda: _attention(1, 4, mask=True), ("same",) * 3),
    # No one knows yet which op it is; the shapes are the same on the delegate.
    "LiteRT-8619": LitertReport(lambda: _attention(4, mask=False), ("same",) * 2),
    "LiteRT-8980": LitertReport(
        lambda: of_one("ADD", (20, 16, 16), (1, 1, 16, 16)), ("different",)
    ),
    "LiteRT-9191": LitertReport(_expanded, ("refused", "same")),
    # The kernel of quantised weights is refused on some devices, whatever is added to it.
    "LiteRT-9277": LitertReport(_residual, ("same",)),
    "LiteRT-2540": LitertReport(
        lambda: of_one("ADD", (1, 2, 3, 4, 5), (1, 2, 1, 1, 5)), ("refused",)
    ),
    # Whole numbers are taken by the newer delegate alone, so no port is proven.
    "LiteRT-9664": LitertReport(
        lambda: _with_constant("ADD", 2, 4, 4, 3, constant=np.arange(3, dtype=np.int32)),
        ("different",),
        cured=False,
    ),
    "tensorflow-61594": LitertReport(
        lambda: of_one("MUL", (1, 8, 1, 1), (1, 1, 16, 1)), ("different",)
    ),
    "tensorflow-60043": LitertReport(
        lambda: _with_constant("MUL", 1, 10, 1, constant=np.arange(3, dtype=np.float32)),
        ("different",),
    ),
    # What onnx2tf wrote for a bias of channels; LiteRT refuses it, too.
    "onnx2tf-698": LitertReport(
        lambda: of_one("ADD", (1, 8, 8, 512), (512, 1, 1)), ("refused",), cured=False
    ),
    "onnx2tf-424": LitertReport(
        lambda: _with_constant("MUL", 1, 40, 32, constant=np.ones(32, np.float32)), ("same",)
    ),
    "onnx2tf-18": LitertReport(lambda: of_one("ADD", (1, 1, 3), (1, 4, 5, 3)), ("different",)),
}
