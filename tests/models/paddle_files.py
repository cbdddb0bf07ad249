"""Small models of Paddle for tests, in both formats."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from campaigns.models.paddle_writer import Model, Pir, Program, field, tensor_type, weights

__all__ = ["MODELS", "Model", "Pir", "Program", "field", "tensor_type", "weights"]

RNG = np.random.default_rng(3)


def channel_program() -> Program:
    """A bias of the channels at axis 1, as old exporters write it after a convolution."""
    model = Program()
    model.input("x", -1, 3, 8, 8)
    model.weight("bias", RNG.random(4, np.float32))
    model.weight("filter", RNG.random((4, 3, 3, 3), np.float32))
    shape = (-1, 4, 8, 8)
    model.op(
        "conv2d", {"Input": "x", "Filter": "filter"}, {"Output": "conv"}, shape,
        strides=[1, 1], paddings=[1, 1], dilations=[1, 1], groups=1,
    )  # fmt: skip
    model.op("elementwise_add", {"X": "conv", "Y": "bias"}, {"Out": "sum"}, shape, axis=1)
    model.op("relu", {"X": "sum"}, {"Out": "active"}, shape)
    model.op(
        "reshape2", {"X": "active"}, {"Out": "flat", "XShape": "old"}, (-1, 256), shape=[0, -1]
    )
    model.outputs.append("flat")
    return model


def gate_pir() -> Pir:
    """A gate of channels: reduced, activated, given its axes back, multiplied."""
    model = Pir()
    model.weight("gain", RNG.random((1, 4, 1, 1)).astype(np.float32))
    model.input("x", -1, 4, 8, 8)
    axes = model.ints(2, 3)
    (mean,) = model.op("mean", ["x", axes], [((-1, 4), "float32")], keepdim=False)
    (gate,) = model.op("sigmoid", [mean], [((-1, 4), "float32")])
    shape = model.ints(0, 4, 1, 1)
    (wide,) = model.op("reshape", [gate, shape], [((-1, 4, 1, 1), "float32")])
    (gated,) = model.op("multiply", ["x", wide], [((-1, 4, 8, 8), "float32")])
    (out,) = model.op("add", [gated, "gain"], [((-1, 4, 8, 8), "float32")], struct_name="/Gate/")
    model.outputs.append(f"%{out}")
    return model


def attention_pir() -> Pir:
    """Scores with a mask, a product of samples, and a choice."""
    model = Pir()
    model.input("q", 2, 2, 5, 4)
    model.input("keep", 2, 1, 1, 5, dtype="bool")
    square = [((2, 2, 5, 5), "float32")]
    (score,) = model.op("matmul", ["q", "q"], square, transpose_x=False, transpose_y=True)
    low = model.full(-1e4, 1)
    (masked,) = model.op("where", ["keep", score, low], square)
    (share,) = model.op("softmax", [masked], square, axis=-1)
    (out,) = model.op("matmul", [share, "q"], [((2, 2, 5, 4), "float32")])
    model.outputs.append(f"%{out}")
    return model


def mixed_program() -> Program:
    """Constants, comparisons, an expansion and a variable that is written twice."""
    model = Program()
    model.input("x", 2, 3, 4)
    model.input("row", 4)
    model.op("fill_constant", {}, {"Out": "half"}, (1,), shape=[1], dtype=5, value=0.5)
    model.op("greater_than", {"X": "x", "Y": "half"}, {"Out": "above"}, (2, 3, 4), "bool", axis=-1)
    model.op("expand_v2", {"X": "row"}, {"Out": "rows"}, (2, 3, 4), shape=[2, 3, -1])
    model.op("where", {"Condition": "above", "X": "x", "Y": "rows"}, {"Out": "y"}, (2, 3, 4))
    model.op("scale", {"X": "y"}, {"Out": "y"}, (2, 3, 4), scale=2.0, bias=1.0)
    model.op(
        "matmul_v2", {"X": "y", "Y": "y"}, {"Out": "z"}, (2, 3, 3), trans_x=False, trans_y=True
    )
    model.outputs.append("z")
    return model


MODELS: Mapping[str, Callable[[], Model]] = {
    "channel": channel_program,
    "gate": gate_pir,
    "attention": attention_pir,
    "mixed": mixed_program,
}
