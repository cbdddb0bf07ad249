"""Additions that mnnconvert makes biases, compared with what MNN computes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zerostride as zs
from zerostride.models.execute import execute
from zerostride.models.formats import read_model
from zerostride.runtimes.convert.converters import converter_to, run_converter
from zerostride.runtimes.files import tensors
from zerostride.runtimes.process import Process, running
from zerostride.runtimes.task import ReplyKind

onnx: Any = pytest.importorskip("onnx", reason="the models are made with the onnx package")
pytest.importorskip("MNN", reason="the converter is an extra, not a test need")
pytestmark = pytest.mark.conformance

LAYERS = ["Conv", "ConvTranspose", "MatMul", "Gemm"]
BETWEEN = ["Relu", "Relu6", "Clip", "BatchNormalization", "Identity", "Add", "Sigmoid"]


@pytest.fixture(scope="module")
def mnn() -> Iterator[Process]:
    with running("mnn", 60.0) as process:
        yield process


class Network:
    """A layer, ops between, and an addition of a constant."""

    def __init__(self, layer: str, seed: int) -> None:
        self.rng = np.random.default_rng([seed, LAYERS.index(layer)])
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.channels = int(self.rng.choice([1, 3, 4], p=[0.1, 0.45, 0.45]))
        self.convolution = layer.startswith("Conv")
        four = self.channels if self.rng.random() < 0.7 else 4
        self.x = 9 * self.normal(1, self.channels, four, four)
        filters = self.normal(self.channels, self.channels, 1, 1)
        if not self.convolution:
            self.x = self.normal(four, self.channels)
            if layer == "MatMul" and self.rng.random() < 0.4:
                self.x = self.normal(2, four, self.channels)
            filters = self.normal(self.channels, self.channels)
        self.value = "x"
        self.shape = self.x.shape
        self.add(layer, self.weight(filters))
        for _ in range(int(self.rng.integers(0, 3))):
            self.between(str(self.rng.choice(BETWEEN)))
        self.add("Sum" if self.rng.random() < 0.2 else "Add", self.constant(), last=True)

    def normal(self, *shape: int) -> Any:
        return self.rng.normal(size=shape).astype(np.float32)

    def weight(self, array: Any) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(onnx.numpy_helper.from_array(np.asarray(array, np.float32), name))
        return name

    def constant(self) -> str:
        """Channels where they belong, or elsewhere; one number; or the whole shape."""
        n, rank = self.channels, len(self.shape)
        place = 1 if self.convolution else rank - 1
        shapes: list[tuple[int, ...]] = [(n, *[1] * (rank - 1 - place)), (), self.shape]
        shapes += [(n,), (n, 1), (1, n, 1)][:rank]
        shape = shapes[self.rng.integers(len(shapes))]
        try:
            fits = np.broadcast_shapes(shape, self.shape) == self.shape
        except ValueError:
            fits = False
        return self.weight(self.normal(*(shape if fits else ())))

    def between(self, op: str) -> None:
        if op == "BatchNormalization":
            if self.convolution:
                numbers = [self.normal(self.channels) for _ in range(3)]
                numbers.append(np.abs(self.normal(self.channels)) + 0.5)
                self.add(op, *map(self.weight, numbers))
        elif op in ("Clip", "Relu6"):
            low, high = (0, 6) if op == "Relu6" else (-1, 1)
            self.add("Clip", self.weight(low), self.weight(high))
        else:
            self.add(op, *([self.constant()] if op == "Add" else []))

    def add(self, op: str, *more: str, last: bool = False) -> None:
        result = f"t{len(self.nodes)}"
        names = [self.value, *more]
        if last and self.rng.random() < 0.3:
            names.reverse()
        self.nodes.append(onnx.helper.make_node(op, names, [result], name=result))
        self.value = result

    def save(self, path: Path) -> None:
        self.nodes[-1].output[0] = "y"
        given = onnx.helper.make_tensor_value_info("x", 1, self.x.shape)
        result = onnx.helper.make_empty_tensor_value_info("y")
        graph = onnx.helper.make_graph(self.nodes, "g", [given], [result], self.weights)
        ids = [onnx.helper.make_opsetid("", 17)]
        model = onnx.helper.make_model(graph, opset_imports=ids, ir_version=8)
        onnx.save(onnx.shape_inference.infer_shapes(model), path)


@pytest.mark.slow
@pytest.mark.parametrize("layer", LAYERS)
def test_additions_have_mnnconverts_verdict(mnn: Process, layer: str, tmp_path: Path) -> None:
    path, table = tmp_path / "m.onnx", Counter[tuple[bool, bool]]()
    for seed in range(40):
        network = Network(layer, seed)
        network.save(path)
        feeds = {"x": network.x}
        wanted = execute(read_model(path), feeds)["y"]
        goal = tmp_path / "m.mnn"
        assert run_converter(converter_to("mnn"), path, goal, feeds, 60.0) is None
        reply = tensors(mnn, goal, feeds, ["y"], outputs=True)
        same = reply.kind is ReplyKind.RESULT and reply.arrays[0].shape == wanted.shape
        same = same and np.allclose(reply.arrays[0], wanted, rtol=1e-3, atol=1e-3)
        findings = zs.audit(path, "mnn").findings
        judged = all(finding.verdict in ("same", "same_here") for finding in findings)
        ops = [(node.op_type, list(node.input)) for node in network.nodes]
        assert judged == same, (seed, ops, [finding.message for finding in findings])
        table[judged, same] += 1
    assert table[True, True] > 5
    assert table[False, False] > 1


def test_a_joined_node_is_not_proven_alone(tmp_path: Path) -> None:
    """The Add itself is right on MNN; only the engine's file of both nodes is wrong."""
    weights = {"w": np.ones((3, 3, 1, 1), np.float32), "c": np.arange(3, dtype=np.float32)}
    nodes = [
        onnx.helper.make_node("Conv", ["x", "w"], ["t"], name="conv"),
        onnx.helper.make_node("Add", ["t", "c"], ["y"], name="add"),
    ]
    x, y = (onnx.helper.make_tensor_value_info(name, 1, (1, 3, 5, 3)) for name in "xy")
    constants = [onnx.numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = onnx.helper.make_graph(nodes, "g", [x], [y], constants)
    ids = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=ids, ir_version=8), tmp_path / "m.onnx")
    report = zs.verify(tmp_path / "m.onnx", "mnn")
    assert [finding.verdict for finding in report.findings] == ["different"]
    assert [check.outcome for check in report.checks] == ["not_run"]
    assert "joins it" in report.checks[0].detail
    assert not any("agrees" in note for note in report.notes)


@pytest.mark.parametrize("layer", LAYERS)
def test_a_port_keeps_additions_apart_from_layers(mnn: Process, layer: str, tmp_path: Path) -> None:
    path, ported, goal = (tmp_path / name for name in ("m.onnx", "ported.onnx", "m.mnn"))
    mended = 0
    for seed in range(40):
        network = Network(layer, seed)
        network.save(path)
        if all(
            finding.verdict in ("same", "same_here") for finding in zs.audit(path, "mnn").findings
        ):
            continue
        report = zs.port(path, "mnn", ported)
        left = [f for f in report.findings if f.verdict not in ("same", "same_here")]
        feeds = {"x": network.x}
        wanted = execute(read_model(path), feeds)["y"]
        assert run_converter(converter_to("mnn"), ported, goal, feeds, 60.0) is None
        reply = tensors(mnn, goal, feeds, ["y"], outputs=True)
        same = reply.kind is ReplyKind.RESULT and reply.arrays[0].shape == wanted.shape
        same = same and np.allclose(reply.arrays[0], wanted, rtol=1e-3, atol=1e-3)
        ops = [(node.op_type, list(node.input)) for node in network.nodes]
        assert same == (not left), (seed, ops, [finding.message for finding in left])
        mended += same
    assert mended > 1
