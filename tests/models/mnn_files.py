"""Small .mnn files for tests."""

from __future__ import annotations

import numpy as np
from campaigns.models.mnn_writer import (
    FORMATS,
    Model,
    Numbers,
    Scalar,
    Table,
    Writer,
    i8,
    i32,
    ints,
)

__all__ = ["FORMATS", "Model", "Numbers", "Scalar", "Table", "Writer", "i8", "i32", "ints"]


def vision() -> bytes:
    """A convolution with a scale, a bias that broadcasts, and a head."""
    model = Model()
    model.input("x", 1, 3, 8, 8)
    common = {2: i32(3), 3: i32(3), 9: i32(1), 10: i32(4), 11: i32(3), 14: ints(1, 1, 1, 1)}
    weights = Numbers("<f4", [0.01 * k for k in range(4 * 3 * 9)])
    convolution = {0: common, 1: weights, 2: Numbers("<f4", [0, 1, 2, 3])}
    model.op("Convolution", "x", "c", "Convolution2D", convolution)
    vectors = {
        0: i32(4),
        1: Numbers("<f4", [1.0, 2.0, 3.0, 4.0]),
        2: Numbers("<f4", [0.0, 0.0, 1.0, 0.0]),
    }
    model.op("Scale", "c", "s", "Scale", vectors)
    model.constant("b", np.ones((4, 1, 1), np.float32))
    model.binary("ADD", "s b", "d")
    model.op("PReLU", "d", "p", "PRelu", {0: i32(4), 1: Numbers("<f4", [0.1, 0.2, 0.3, 0.4])})
    model.constant("axes", np.array([2, 3], np.int32))
    reduction = {0: i8(3), 3: Scalar("?", False)}
    model.op("Reduction", "p axes", "m", "ReductionParam", reduction)
    return model.data("m")


def shapes() -> bytes:
    """What moves and counts: with sizes that are open."""
    model = Model()
    model.input("x", 1, -1, 8)
    model.input("y", -1, 8)
    model.op("Shape", "x", "n", "", layout="NCHW")
    model.constant("begin", np.array([1], np.int32))
    model.constant("size", np.array([-1], np.int32))
    model.op("SliceTf", "n begin size", "tail", "SliceTf")
    model.constant("one", np.array([1], np.int32))
    model.op("Concat", "one tail", "target", "Axis", {0: i32(0)})
    model.op("BroadcastTo", "y target", "e")
    model.binary("MUL", "x e", "z")
    model.op("Permute", "z", "t", "Permute", {0: ints(0, 2, 1)})
    model.op("BatchMatMul", "z t", "w", "BatchMatMulParam", {})
    model.op("Rank", "w", "r", "Rank", {}, layout="NCHW")
    return model.data("w", "r")


def branches() -> bytes:
    """An If with two graphs."""
    model = Model()
    model.input("c", dtype="int32")
    model.input("x", 2, 3)
    inner = []
    for name, operation in (("then", "ADD"), ("else", "MUL")):
        graph = Model()
        graph.input("x", 2, 3)
        graph.constant("k", np.ones((3,), np.float32))
        graph.binary(operation, "x k", "out")
        inner.append(
            {0: name, 1: ints(0), 2: ints(graph.index("out")), 3: graph.names, 4: graph.ops}
        )
    model.graphs = inner
    inputs = [{0: []}, {0: ["x"]}]
    outputs = [{0: ["out", "out"]}]
    model.op("If", "c x", "y", "IfParam", {0: "then", 1: "else", 2: inputs, 3: outputs})
    return model.data("y")


def mixed() -> bytes:
    """Ops that stack, select, split, pick; one nobody knows."""
    model = Model()
    model.input("x", 2, 4)
    model.input("k", 4, dtype="int32")
    model.constant("v", np.arange(4, dtype=np.float32))
    model.binary("GREATER", "x v", "g")
    model.op("Select", "g x v", "s")
    model.op("Pack", "s x", "p", "PackParam", {1: i32(0)})
    model.op("Pack", "x v", "bad", "PackParam", {1: i32(0)})
    model.op("Slice", "x", "a b", "Slice", {0: i32(1), 1: ints(1, 3), 2: i8(3)})
    model.constant("i", np.array([0, 1], np.int32))
    model.op("GatherV2", "p i", "h", "Axis", {0: i32(1)})
    model.op("Eltwise", "x v", "e", "Eltwise", {0: i8(1)})
    model.op("LayerNorm", "x", "l", "LayerNorm", {0: ints(-1), 2: Numbers("<f4", [1.0] * 4)})
    model.op("999", "x", "u")
    model.op("Plugin", "x", "q", "Plugin", {0: "mine"})
    return model.data()


MODELS = {"vision": vision, "shapes": shapes, "branches": branches, "mixed": mixed}
