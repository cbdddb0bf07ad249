"""Channels-last models on TensorFlow, made from the audit's changes.

A model is run as it is by ONNX Runtime. The same nodes are run by TensorFlow on channels-last
images, every operand of a broadcast changed as the audit's table says and in no other way. The
sizes are such that a guess by sizes goes wrong: channels, rows and columns are equal.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from zerostride.models.audit.relaid import Move, Relayout
from zerostride.models.audit.run import audit
from zerostride.models.formats.onnx.reader import read_onnx
from zerostride.models.ir.graph import Graph, Node, Value

onnx = pytest.importorskip("onnx", reason="the models are ONNX files")
ort = pytest.importorskip("onnxruntime", reason="it runs the models as they are")
tf = pytest.importorskip("tensorflow", reason="it runs them channels-last")

#: Channels, rows and columns.
SIZE = 6
X = (1, SIZE, SIZE, SIZE)


def relaid(array: Any, move: Move | None) -> Any:
    """An operand as the table says; an image is channels-last already."""
    if move is None or move.how in ("stays", "image"):
        return array
    if move.how == "reshape":
        return tf.reshape(array, move.after)
    whole = tf.reshape(array, (1,) * (len(move.perm) - len(array.shape)) + tuple(array.shape))
    return tf.reshape(tf.transpose(whole, move.perm), move.after)


class ChannelsLast:
    """Runs a graph on images that are channels-last."""

    def __init__(self, graph: Graph, tables: Mapping[str, tuple[Move, ...]]) -> None:
        self.graph = graph
        self.tables = tables

    def run(self, x: Any) -> Any:
        values = {id(self.graph.inputs[0]): tf.constant(x.transpose(0, 2, 3, 1))}

        def of(value: Value | None) -> Any:
            assert value is not None
            if id(value) not in values:
                values[id(value)] = tf.constant(value.data())
            return values[id(value)]

        for node in self.graph.nodes:
            values[id(node.outputs[0])] = self.node(node, [of(v) for v in node.inputs])
        return values[id(self.graph.outputs[0])].numpy()

    def node(self, node: Node, given: list[Any]) -> Any:
        table = self.tables.get(node.name, (None,) * len(given))
        operands = [relaid(array, move) for array, move in zip(given, table, strict=False)]
        ops = {"Add": tf.add, "Sub": tf.subtract, "Mul": tf.multiply, "Max": tf.maximum}
        if node.op in ops:
            return ops[node.op](*operands)
        if node.op == "PRelu":
            return tf.maximum(operands[0], 0) + operands[1] * tf.minimum(operands[0], 0)
        if node.op == "Where":
            return tf.where(*operands)
        if node.op == "Conv":
            padded = tf.pad(given[0], [[0, 0], [1, 1], [1, 1], [0, 0]])
            return tf.nn.conv2d(padded, tf.transpose(given[1], (2, 3, 1, 0)), 1, "VALID")
        if node.op == "Relu":
            return tf.nn.relu(given[0])
        assert node.op == "GlobalAveragePool"
        return tf.reduce_mean(given[0], (1, 2), keepdims=True)


SHAPES = (
    (SIZE, 1, 1),
    (SIZE,),
    (SIZE, 1),
    (SIZE, SIZE),
    (SIZE, SIZE, 1),
    (SIZE, 1, SIZE),
    (SIZE, SIZE, SIZE),
    (1, SIZE, 1, 1),
    (1,),
    (),
)


def chain(rng: random.Random) -> Any:
    """Convolutions and broadcasts one after the other, either operand first."""
    data = np.random.default_rng(rng.randrange(2**31))
    nodes: list[Any] = []
    constants: list[Any] = []
    current = "x"

    def constant(shape: tuple[int, ...]) -> str:
        name = f"k{len(constants)}"
        array = data.uniform(-1, 1, shape).astype(np.float32)
        constants.append(onnx.numpy_helper.from_array(array, name))
        return name

    for k in range(8):
        result = f"t{k}"
        op = rng.choice(("Conv", "Relu", "Add", "Sub", "Mul", "Max", "PRelu", "gate"))
        more: dict[str, Any] = {}
        if op == "gate":
            nodes.append(onnx.helper.make_node("GlobalAveragePool", [current], [f"g{k}"]))
            inputs = [current, f"g{k}"]
            op = "Mul"
            rng.shuffle(inputs)
        elif op == "Conv":
            inputs, more = [current, constant((SIZE, SIZE, 3, 3))], {"pads": [1, 1, 1, 1]}
        elif op == "Relu":
            inputs = [current]
        else:
            inputs = [current, constant(rng.choice(SHAPES))]
            if op != "PRelu":
                rng.shuffle(inputs)
        nodes.append(onnx.helper.make_node(op, inputs, [result], name=f"n{k}", **more))
        current = result
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        nodes, "g", [value("x", 1, X)], [value(current, 1, X)], constants
    )
    return onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8
    )


def test_chains_channels_last_match_on_tensorflow() -> None:
    changed = 0
    for seed in range(60):
        model = chain(random.Random(seed))
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "model.onnx")
            onnx.save(model, file)
            report = audit(file, "numpy", layout="nhwc")
            graph = read_onnx(file)
        tables = {
            finding.node: finding.fix.moves
            for finding in report.findings
            if isinstance(finding.fix, Relayout)
        }
        changed += len(tables)
        x = np.random.default_rng(seed).uniform(-1, 1, X).astype(np.float32)
        session = ort.InferenceSession(model.SerializeToString())
        (expected,) = session.run(None, {"x": x})
        outputs = ChannelsLast(graph, tables).run(x)
        np.testing.assert_allclose(
            outputs, expected.transpose(0, 2, 3, 1), rtol=1e-3, atol=1e-3, err_msg=f"seed {seed}"
        )
    assert changed > 100


def test_chains_without_the_table_differ() -> None:
    """The helper can fail: operands left as they are give other numbers."""
    wrong = 0
    for seed in range(10):
        model = chain(random.Random(seed))
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "model.onnx")
            onnx.save(model, file)
            graph = read_onnx(file)
        x = np.random.default_rng(seed).uniform(-1, 1, X).astype(np.float32)
        (expected,) = ort.InferenceSession(model.SerializeToString()).run(None, {"x": x})
        outputs = ChannelsLast(graph, {}).run(x)
        expected = expected.transpose(0, 2, 3, 1)
        wrong += outputs.shape != expected.shape or not np.allclose(outputs, expected, atol=1e-2)
    assert wrong >= 5
