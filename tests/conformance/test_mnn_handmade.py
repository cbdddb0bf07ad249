"""MNN on files that its converter does not write.

Ops with weights inside of them (older converters and other frameworks make these), and what MNN
does with operands that it does not stretch: an Eltwise, and the stack that its converter makes of
an ONNX Max of three operands.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "models"))

from mnn_evaluation import assert_close, both, onnx, random_inputs, worker
from mnn_files import Model, Numbers, i8, i32, ints
from test_mnn_format import single

from zerostride.errors import ModelError
from zerostride.models.audit.run import audit
from zerostride.models.execute import execute
from zerostride.models.format_table import lowered
from zerostride.models.formats import read_model
from zerostride.models.formats.mnn.schema import BINARY

X = (1, 4, 3, 5)
FOUR = Numbers("<f4", [1.0, -2.0, 3.0, 0.5])
COMMON = {2: i32(3), 3: i32(3), 9: i32(1), 10: i32(4), 11: i32(4), 14: ints(1, 1, 1, 1)}
KERNEL = Numbers("<f4", [0.01 * k for k in range(4 * 4 * 9)])

OPS: dict[str, tuple[str, str, dict[int, Any]]] = {
    "scale": ("Scale", "Scale", {0: i32(4), 1: FOUR, 2: FOUR}),
    "scale_alone": ("Scale", "Scale", {0: i32(4), 1: FOUR}),
    "slopes": ("PReLU", "PRelu", {0: i32(4), 1: FOUR}),
    "slope": ("PReLU", "PRelu", {0: i32(1), 1: Numbers("<f4", [0.25])}),
    "convolution": ("Convolution", "Convolution2D", {0: COMMON, 1: KERNEL, 2: FOUR}),
    "convolution_relu": (
        "Convolution",
        "Convolution2D",
        {0: {**COMMON, 12: i8(1)}, 1: KERNEL, 2: FOUR},
    ),
}


def image_op(name: str, *, sizes: tuple[int, ...] = X) -> bytes:
    """One op on an image, between the conversions of its data format that MNN wants."""
    kind, parameter, fields = OPS[name]
    model = Model()
    model.input("x", *sizes)
    model.op("ConvertTensor", "x", "packed", "TensorConvertInfo", {0: i8(0), 1: i8(2)})
    model.op(kind, "packed", "made", parameter, fields)
    model.op("ConvertTensor", "made", "y", "TensorConvertInfo", {0: i8(2), 1: i8(0)})
    return model.data("y")


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("known", [True, False], ids=["static", "open"])
def test_lowered_ops_with_weights_compute_mnns_result(
    name: str, known: bool, tmp_path: Path
) -> None:
    """With open sizes not even the rank of what is between is known when words are looked for."""
    file = tmp_path / "model.mnn"
    file.write_bytes(image_op(name, sizes=X if known else (-1, 4, -1, -1)))
    graph = read_model(file)
    assert (graph.nodes[1].outputs[0].shape == X) == known
    feeds = {"x": np.random.default_rng(0).uniform(-1, 1, X).astype(np.float32)}
    for output, by_mnn, by_words in both(file, feeds, tmp_path):
        assert_close(output, by_mnn, by_words)


@pytest.mark.parametrize("other", [(2, 4), (4,), (2, 1), ()])
def test_eltwise_does_not_stretch(other: tuple[int, ...], tmp_path: Path) -> None:
    model = Model()
    model.input("x", 2, 4)
    model.input("z", *other)
    model.op("Eltwise", "x z", "y", "Eltwise", {0: i8(1)})
    file = tmp_path / "model.mnn"
    file.write_bytes(model.data("y"))
    feeds = random_inputs(read_model(file))
    results = run(file, feeds, tmp_path)
    right = results is not None and np.allclose(results, feeds["x"] + feeds["z"])
    (finding,) = audit(file, "numpy").findings
    assert (finding.reason == "invalid_source") != right
    assert right == (other == (2, 4))


def run(file: Path, feeds: dict[str, Any], folder: Path) -> Any:
    """MNN's result; None where it reads so far past an operand that its process ends."""
    name = read_model(file).outputs[0].name
    np.savez(folder / "in.npz", **feeds)
    try:
        worker("run", str(file), str(folder / "in.npz"), str(folder / "out.npz"), name)
    except AssertionError:
        return None
    return np.load(folder / "out.npz")[name]


@pytest.mark.parametrize(("op", "fold"), [("Max", np.maximum), ("Sum", np.add)])
def test_eltwise_of_three_operands_stacks_them(
    op: str, fold: Callable[..., Any], tmp_path: Path
) -> None:
    """What the converter makes of an ONNX Max or Sum of three operands that broadcast."""
    source, file = tmp_path / "model.onnx", tmp_path / "model.mnn"
    onnx.save(single(op, {"a": (1, 3, 4, 4), "b": (3, 1, 1), "c": (1,)}), source)
    worker("convert", str(source), str(file))
    graph = read_model(file)
    assert "Pack" in [node.op for node in graph.nodes]
    assert any(node.domain == "mnn" for node in lowered(graph).nodes)  # it has no words
    feeds = random_inputs(graph)
    results = run(file, feeds, tmp_path)
    expected = fold(fold(feeds["a"], feeds["b"]), feeds["c"])
    assert results is None or not np.allclose(results, expected)
    reasons = {finding.op: finding.reason for finding in audit(file, "numpy").findings}
    assert reasons["Pack"] == "invalid_source"


@pytest.mark.parametrize("operation", ["ADD", "SUB", "MAXIMUM", "SquaredDifference", "GREATER"])
@pytest.mark.parametrize("activation", [0, 1, 2])
def test_activation_of_a_binary_op_is_computed(
    operation: str, activation: int, tmp_path: Path
) -> None:
    """The converter joins a Relu with the op before it; MNN knows no other activation there."""
    number = next(key for key, name in BINARY.items() if name == operation)
    model = Model()
    model.input("x", 2, 3)
    model.input("z", 3)
    fields = {0: i32(number), 1: i32(1), 2: i32(activation)}
    model.op("BinaryOp", "x z", "y", "BinaryOp", fields)
    file = tmp_path / "model.mnn"
    file.write_bytes(model.data("y"))
    feeds = {
        "x": np.array([[1, -2, 3], [-4, 5, -6]], np.float32),
        "z": np.array([2, -3, -5], np.float32),
    }
    np.testing.assert_array_equal(execute(read_model(file), feeds)["y"], run(file, feeds, tmp_path))


def test_coefficients_of_an_eltwise_are_not_left_out(tmp_path: Path) -> None:
    """MNN itself ends on them."""
    model = Model()
    model.input("x", 2, 4)
    model.op("Eltwise", "x x", "y", "Eltwise", {0: i8(1), 1: Numbers("<f4", [0.5, 2.0])})
    file = tmp_path / "model.mnn"
    file.write_bytes(model.data("y"))
    feeds = {"x": np.ones((2, 4), np.float32)}
    assert run(file, feeds, tmp_path) is None
    with pytest.raises(ModelError, match="Eltwise"):
        execute(read_model(file), feeds)
