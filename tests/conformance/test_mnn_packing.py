"""Tensors in packs of channels on MNN, run: the layout after each op, and the audit's verdicts.

Where a tensor is packed, an Add of a constant of one number that comes first is wrong; so the Add
shows the layout. ZEROSTRIDE_MNNCONVERT=30 draws thirty times as many networks.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from child import Child

pytest.importorskip("MNN", reason="the converter is an extra, not a test need")
onnx: Any = pytest.importorskip("onnx", reason="the models are made with the onnx package")
ort: Any = pytest.importorskip("onnxruntime", reason="the reference is an extra, not a test need")

from onnx import helper  # noqa: E402

import zerostride as zs  # noqa: E402
from zerostride.models.transport.mnn_packing import KEEP, PACK, UNPACK  # noqa: E402

pytestmark = pytest.mark.conformance
TIMES = int(os.environ.get("ZEROSTRIDE_MNNCONVERT", "1"))
RNG = np.random.default_rng(0)


def whole(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


def floats(*shape: int) -> Any:
    return RNG.uniform(0.5, 2, shape).astype(np.float32)


@dataclass
class Network:
    """An ONNX model that grows node by node."""

    x: tuple[int, ...] = (2, 4, 6, 4)
    nodes: list[Any] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    feeds: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.feeds = {"x": RNG.standard_normal(self.x).astype(np.float32)}

    def constant(self, array: Any) -> str:
        name = f"k{len(self.constants)}"
        self.constants.append(onnx.numpy_helper.from_array(np.asarray(array), name))
        return name

    def input(self, shape: tuple[int, ...]) -> str:
        name = f"v{len(self.feeds)}"
        self.feeds[name] = floats(*shape)
        return name

    def node(self, op: str, *operands: Any, **attributes: Any) -> str:
        """A node; operands are names, or arrays for constants."""
        names = [o if isinstance(o, str) else self.constant(o) for o in operands]
        name = f"t{len(self.nodes)}"
        results = [name, f"{name}b"] if op in ("Split", "TopK") else [name]
        self.nodes.append(helper.make_node(op, names, results, name=name, **attributes))
        return name

    def conv(self, data: str, channels: int = 8) -> str:
        return self.node("Conv", data, RNG.standard_normal((channels, 4, 1, 1)).astype("f"))

    def model(self, result: str) -> bytes:
        """The file, with the result as float32 "y"."""
        cast = helper.make_node("Cast", [result], ["y"], to=1)
        value = helper.make_tensor_value_info
        inputs = [value(name, 1, array.shape) for name, array in self.feeds.items()]
        outputs = [value("y", 1, None)]
        graph = helper.make_graph([*self.nodes, cast], "g", inputs, outputs, self.constants)
        sets = [helper.make_opsetid("", 17)]
        content: bytes = helper.make_model(
            graph, opset_imports=sets, ir_version=8
        ).SerializeToString()
        return content


def right(child: Child, content: bytes, feeds: dict[str, Any]) -> bool:
    """Whether MNN computes what ONNX Runtime computes."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    expected = ort.InferenceSession(content, options).run(None, feeds)[0]
    word, got = child.ask({"op": "file", "model": content, "feeds": feeds})
    assert word == "result", got
    return got.shape == expected.shape and np.allclose(got, expected, rtol=1e-3, atol=1e-3)


def real(network: Network, whole: str) -> str:
    """Whole numbers as float32."""
    return network.node("Cast", whole, to=1)


#: How an op of the tables is called on a tensor of 4 axes; else it is unary.
CALLS: dict[str, Callable[[Network, str], str]] = {
    "Acos": lambda n, t: n.node("Acos", n.node("Sin", t)),
    "ArgMax": lambda n, t: n.node("ArgMax", t, axis=2),
    "Asin": lambda n, t: n.node("Asin", n.node("Sin", t)),
    "AveragePool": lambda n, t: n.node("AveragePool", t, kernel_shape=[2, 2], strides=[1, 1]),
    "BatchNormalization": lambda n, t: n.node(
        "BatchNormalization", t, *(floats(n.x[1]) for _ in range(4))
    ),
    "Cast": lambda n, t: n.node("Cast", t, to=6),
    "Clip": lambda n, t: n.node("Clip", t, np.float32(-0.5), np.float32(0.5)),
    "Compress": lambda n, t: n.node("Compress", t, np.array([True, True]), axis=2),
    "ConstantOfShape": lambda n, t: n.node(
        "Add",
        n.node("ConstantOfShape", n.node("Shape", t), value=helper.make_tensor("v", 1, [1], [2.0])),
        floats(2, 8, 6, 4),
    ),
    "Conv": lambda n, t: n.conv(t),
    "ConvTranspose": lambda n, t: n.node("ConvTranspose", t, floats(4, 3, 1, 1)),
    "CumSum": lambda n, t: n.node("CumSum", t, np.int64(2)),
    "DepthToSpace": lambda n, t: n.node("DepthToSpace", t, blocksize=2),
    "Einsum": lambda n, t: n.node("Einsum", t, floats(8, 3), equation="nchw,cd->ndhw"),
    "Expand": lambda n, t: n.node("Expand", t, whole(2, 8, 6, 4)),
    "Gather": lambda n, t: n.node("Gather", t, whole(0, 1), axis=1),
    "GatherElements": lambda n, t: n.node(
        "GatherElements", t, np.zeros((2, 8, 6, 4), np.int64), axis=2
    ),
    "GatherND": lambda n, t: n.node("GatherND", t, np.array([[0, 0], [0, 1]])),
    "Gemm": lambda n, t: n.node("Gemm", n.node("Flatten", t), floats(192, 7), floats(7)),
    "GridSample": lambda n, t: n.node("GridSample", t, floats(2, 3, 5, 2) - 1),
    "InstanceNormalization": lambda n, t: n.node(
        "InstanceNormalization", t, floats(n.x[1]), floats(n.x[1])
    ),
    "LRN": lambda n, t: n.node("LRN", t, size=3),
    "LayerNormalization": lambda n, t: n.node("LayerNormalization", t, floats(4), floats(4)),
    "Log": lambda n, t: n.node("Log", n.node("Exp", t)),
    "LogSoftmax": lambda n, t: n.node("LogSoftmax", t, axis=1),
    "MatMul": lambda n, t: n.node("MatMul", t, floats(4, 3)),
    "MaxPool": lambda n, t: n.node("MaxPool", t, kernel_shape=[2, 2], strides=[1, 1]),
    "Not": lambda n, t: n.node("Not", n.node("Greater", t, np.float32(0))),
    "Pad": lambda n, t: n.node("Pad", t, whole(0, 0, 1, 1, 0, 0, 1, 1)),
    "NonZero": lambda n, t: n.node("Unsqueeze", real(n, n.node("NonZero", t)), whole(0, 3)),
    "Range": lambda n, t: n.node(
        "Reshape",
        n.node("Range", np.float32(0), real(n, n.node("Size", t)), np.float32(1)),
        whole(2, 8, 6, 4),
    ),
    "ReduceSum": lambda n, t: n.node("ReduceSum", t, whole(2)),
    "Reshape": lambda n, t: n.node("Reshape", t, whole(2, 8, -1)),
    "Resize": lambda n, t: n.node("Resize", t, "", np.array([1, 1, 2, 2], "f"), mode="linear"),
    "ScatterElements": lambda n, t: n.node(
        "ScatterElements", t, np.zeros((1,) * 4, np.int64), floats(1, 1, 1, 1), axis=2
    ),
    "STFT": lambda n, t: n.node(
        "STFT", n.node("Reshape", t, whole(2, -1)), np.int64(4), floats(8), np.int64(8)
    ),
    "Shape": lambda n, t: n.node("Reshape", real(n, n.node("Shape", t)), whole(1, 1, 2, 2)),
    "Size": lambda n, t: n.node(
        "Add", n.node("Reshape", real(n, n.node("Size", t)), whole(1, 1, 1, 1)), t
    ),
    "Slice": lambda n, t: n.node("Slice", t, whole(0), whole(3), whole(2)),
    "SpaceToDepth": lambda n, t: n.node("SpaceToDepth", t, blocksize=2),
    "Split": lambda n, t: n.node("Split", t, axis=2),
    "Sqrt": lambda n, t: n.node("Sqrt", n.node("Abs", t)),
    "Squeeze": lambda n, t: n.node("Squeeze", n.node("Unsqueeze", t, whole(0)), whole(0)),
    "Tile": lambda n, t: n.node("Tile", t, whole(1, 1, 2, 2)),
    "TopK": lambda n, t: n.node("TopK", t, whole(2), axis=2),
    "Transpose": lambda n, t: n.node("Transpose", t, perm=[0, 2, 3, 1]),
    "Unsqueeze": lambda n, t: n.node("Unsqueeze", t, whole(4)),
    "Where": lambda n, t: n.node("Where", n.node("Greater", t, np.float32(0)), t, n.node("Neg", t)),
}
#: The rank of a result that has not 4 axes.
RANK = {"Reshape": 3, "Unsqueeze": 5, "GatherND": 3, "Gemm": 2, "Flatten": 2}


@pytest.fixture(autouse=True)
def same_numbers() -> None:
    """Draws the same numbers in each test, whatever ran before."""
    RNG.bit_generator.state = np.random.default_rng(0).bit_generator.state


@pytest.fixture(scope="module")
def shared() -> Iterator[Child]:
    with Child("mnn") as child:
        yield child


@pytest.mark.parametrize("op", sorted(PACK | KEEP | UNPACK))
def test_layout_after_an_op_is_as_tabled(op: str, shared: Child) -> None:
    network = Network()
    data = "x" if op in PACK else network.conv("x")
    axes = {"axes": [2]} if op in ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd") else {}
    result = CALLS[op](network, data) if op in CALLS else network.node(op, data, **axes)
    assert right(shared, network.model(result), network.feeds)
    if op in ("Cast", "Not", "ArgMax"):
        result = real(network, result)
    one = np.full((1,) * RANK.get(op, 4), 3.5, np.float32)
    content = network.model(network.node("Add", one, result))
    assert right(shared, content, network.feeds) == (op in UNPACK)


def step(network: Network, name: str, kind: int) -> str:
    """A node after a tensor, by number."""
    along = floats(1, 1, network.x[2], 1)
    if kind == 3 and network.x[0] == 1:
        return network.node("Squeeze", name, whole(0))
    if kind == 4:
        return network.node("Concat", name, name, axis=-1)
    if kind > 4:
        operands = {5: (along, name), 6: (name, along), 7: (name, floats())}[kind]
        return network.node("Mul", *operands)
    return network.node(("Tanh", "Softmax", "Flatten", "Neg")[kind], name)


def drawn(draw: random.Random) -> tuple[Network, str]:
    """A network that ends in a binary op, and its result."""
    network = Network(draw.choice([(1, 4, 6, 4), (2, 4, 6, 4), (1, 4, 6, 1), (1, 4, 1, 1)]))

    def operand() -> str:
        kind = draw.choice(["packed"] * 3 + ["constant"] * 2 + ["plain", "pooled", "input"])
        ones = (1,) * draw.choice([0, 1, 3, 4, 4, 4, 5])
        if kind in ("constant", "input"):
            return network.input(ones) if kind == "input" else network.constant(floats(*ones))
        if kind == "pooled":
            return network.node("GlobalAveragePool", network.conv("x", 1))
        name = "x" if kind == "plain" else network.conv("x", draw.choice([1, 4]))
        for _ in range(draw.randint(0, 2)):
            name = step(network, name, draw.randrange(8))
        return name

    two = operand(), operand()
    return network, network.node(draw.choice(["Add", "Sub", "Mul"]), *two)


def fits(content: bytes) -> bool:
    """Whether ONNX's shape inference takes the network."""
    try:
        onnx.shape_inference.infer_shapes(onnx.load_from_string(content), strict_mode=True)
    except Exception:  # noqa: BLE001 - whatever it raises, the draw is not a model
        return False
    return True


def test_verdicts_on_drawn_networks_match_mnn_and_ports_are_right(
    tmp_path: Path, shared: Child
) -> None:
    """A verdict `different` is a wrong result, and the ported model's result is right."""
    draw = random.Random(TIMES)
    seen: Counter[tuple[str, bool]] = Counter()
    file, ported = tmp_path / "m.onnx", tmp_path / "ported.onnx"
    while seen.total() < 120 * TIMES:
        network, result = drawn(draw)
        content = network.model(result)
        if not fits(content):
            continue
        file.write_bytes(content)
        findings = zs.audit(file, "mnn").findings
        verdict = "different" if "different" in [f.verdict for f in findings] else "same"
        correct = right(shared, content, network.feeds)
        seen[verdict, correct] += 1
        assert correct == (verdict == "same"), [(f.node, f.operands, f.verdict) for f in findings]
        if not correct:
            report = zs.port(file, "mnn", ported)
            left = [finding for finding in report.findings if finding.verdict == "different"]
            assert right(shared, ported.read_bytes(), network.feeds) == (not left)
            seen["ported", not left] += 1
    print(f"\n{dict(seen)}")
    assert seen["different", False] >= 5 * TIMES
    assert seen["ported", True] >= 5 * TIMES
