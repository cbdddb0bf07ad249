"""The backend's interface; onnx's suite is in tests/conformance."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="the interface is onnx's")

from onnx import TensorProto, helper  # noqa: E402

from zerostride import backend  # noqa: E402
from zerostride.errors import ModelError, ZerostrideError  # noqa: E402

EXAMPLES = Path(__file__).parents[2] / "examples"
FLOAT = TensorProto.FLOAT


def info(name: str, shape: Any, kind: int = FLOAT) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes: Any, inputs: Any, outputs: Any, weights: Any = (), **more: Any) -> Any:
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    return helper.make_model(graph, **more)


def summed() -> Any:
    nodes = [helper.make_node("Add", ["x", "c"], ["y"])]
    weight = onnx.numpy_helper.from_array(np.float32([1, 2, 3]), "c")
    return model(nodes, [info("x", ["N", 3])], [info("y", None)], [weight])


def test_backend_implements_onnxs_interface() -> None:
    assert issubclass(backend.Backend, onnx.backend.base.Backend)
    prepared = backend.prepare(summed())
    assert isinstance(prepared, onnx.backend.base.BackendRep)
    assert (prepared.inputs, prepared.outputs) == (("x",), ("y",))


@pytest.mark.parametrize("given", [[np.ones((2, 3), "f")], {"x": np.ones((2, 3), "f")},
                                   np.ones((2, 3), "f"), [[[1, 1, 1], [1, 1, 1]]]])  # fmt: skip
def test_inputs_may_be_in_order_by_name_or_single(given: Any) -> None:
    (output,) = backend.run_model(summed(), given)
    assert output.tolist() == [[2, 3, 4], [2, 3, 4]]
    assert output.dtype == np.float32


def test_prepared_model_can_run_again_and_returns_new_arrays() -> None:
    prepared = backend.prepare(summed())
    (first,) = prepared.run([np.zeros((1, 3), "f")])
    first[:] = 9
    (second,) = prepared.run([np.zeros((2, 3), "f")])
    assert second.tolist() == [[1, 2, 3]] * 2


def test_models_may_be_messages_bytes_or_paths(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(summed().SerializeToString())
    x = np.zeros((1, 3), "f")
    for given in (summed(), summed().SerializeToString(), path, str(path)):
        assert backend.run_model(given, [x])[0].tolist() == [[1, 2, 3]]
    untouched = summed()
    backend.prepare(untouched)
    assert untouched == summed()


def test_run_node_executes_nodes() -> None:
    x = np.arange(6, dtype="f").reshape(2, 3)
    (output,) = backend.run_node(helper.make_node("Softmax", ["x"], ["y"]), [x])
    np.testing.assert_allclose(output.sum(-1), 1, rtol=1e-6)
    # Of an old op set: the second operand at an axis of the first.
    node = helper.make_node("Add", ["x", "y"], ["z"], broadcast=1, axis=0)
    (output,) = backend.run_node(node, [x, np.float32([10, 20])], opset_version=6)
    assert output.tolist() == [[10, 11, 12], [23, 24, 25]]
    # One operand twice, one left out, two results.
    (output,) = backend.run_node(helper.make_node("Mul", ["x", "x"], ["y"]), [x, x])
    assert output[1, 2] == 25
    (output,) = backend.run_node(
        helper.make_node("Clip", ["x", "", "m"], ["y"]), [x, np.float32(2)]
    )
    assert output.max() == 2
    values, places = backend.run_node(
        helper.make_node("TopK", ["x", "k"], ["v", "i"]), {"x": x, "k": np.int64([1])}
    )
    assert values.tolist() == [[2], [5]]
    assert places.dtype == np.int64


def test_documented_decompositions_are_executed() -> None:
    scores, labels = np.float32([[1, 2, 3], [3, 2, 1]]), np.int64([2, 0])
    node = helper.make_node("SoftmaxCrossEntropyLoss", ["s", "l"], ["loss"], reduction="none")
    (output,) = backend.run_node(node, [scores, labels])
    exact = np.log(np.exp(scores).sum(1)) - scores[[0, 1], labels]
    np.testing.assert_allclose(output, exact, rtol=1e-6)
    # An attribute that is left out has its document's default in the body.
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype("f")
    (output,) = backend.run_node(helper.make_node("MeanVarianceNormalization", ["x"], ["y"]), [x])
    np.testing.assert_allclose(output.mean((0, 2, 3)), 0, atol=1e-6)
    assert abs(output.mean((1, 2, 3))).max() > 1e-3


def test_only_cpu_devices_are_supported() -> None:
    assert backend.supports_device("CPU")
    assert backend.supports_device("CPU:0")
    assert not backend.supports_device("CUDA")
    assert not backend.is_compatible(summed(), "CUDA")
    assert backend.is_compatible(summed(), "CPU")
    for function in (backend.prepare, lambda *a: backend.run_model(a[0], [], a[1])):
        with pytest.raises(ZerostrideError, match="device 'CUDA' is not supported"):
            function(summed(), "CUDA")


def test_all_refused_ops_are_named() -> None:
    nodes = [
        helper.make_node("GridSample", ["x", "x"], ["a"], name="warp"),
        helper.make_node("MaxPool", ["a"], ["b", "i"], name="pool", kernel_shape=[1, 1]),
        helper.make_node("Thing", ["b", "i"], ["c"], name="own", domain="mine"),
    ]
    inputs = [info("x", [1, 1, 2, 2]), info("words", [1], TensorProto.STRING)]
    sequence = helper.make_tensor_sequence_value_info("many", FLOAT, [1])
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("mine", 1)]
    wrong = model(nodes, [*inputs, sequence], [info("c", None)], opset_imports=imports)
    answer = backend.refusals(wrong)
    assert answer == (
        "the input 'words' is of strings",
        "the input 'many' is no tensor but a value of type sequence",
        "GridSample is not executed: warp",
        "MaxPool (its indices) is not executed: pool",
        "mine:Thing is not executed: own",
    )
    assert not backend.is_compatible(wrong)
    with pytest.raises(ModelError) as caught:
        backend.prepare(wrong)
    assert all(one in str(caught.value) for one in answer)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: backend.run_model(summed(), []), "0 inputs are given, and it has 1: x"),
        (lambda: backend.run_model(summed(), {"z": 1}), "no input 'z'"),
        (lambda: backend.run_model(summed(), [np.zeros((2, 3))]), "the model wants float32"),
        (lambda: backend.run_model(summed(), [np.zeros((2, 4), "f")]), "axis 1 is 3 in the model"),
        (lambda: backend.prepare(summed(), fast=True), "prepare has no option fast"),
        (lambda: backend.prepare(summed()).run([], fast=True), "run has no option fast"),
        (lambda: backend.prepare(b"nonsense"), "not a readable ONNX model"),
        (lambda: backend.prepare(3), "not a int"),
        (lambda: backend.prepare("absent.onnx"), "absent.onnx"),
        (lambda: backend.run_node(helper.make_node("Add", ["x", "y"], ["z"]), [1]), "1 inputs for"),
        (
            lambda: backend.run_node(helper.make_node("Neg", ["x"], ["y"]), [np.array([{}])]),
            "'x' is object",
        ),
        (
            lambda: backend.run_node(helper.make_node("Add", ["x", "y"], ["z"]), {"x": 1}),
            "not given: y",
        ),
    ],
)
def test_wrong_calls_are_refused_with_the_reason(call: Any, words: str) -> None:
    with pytest.raises(ZerostrideError, match=words):
        call()


def test_external_data_needs_a_path(tmp_path: Path) -> None:
    content = summed()
    tensor = content.graph.initializer[0]
    (tmp_path / "w.bin").write_bytes(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.bin")
    path = tmp_path / "m.onnx"
    path.write_bytes(content.SerializeToString())
    assert backend.run_model(path, [np.zeros((1, 3), "f")])[0].tolist() == [[1, 2, 3]]
    with pytest.raises(ModelError, match="'c' are in another file; hand in the model's path"):
        backend.prepare(content)


def test_external_data_in_a_function_is_not_read(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret.bin").write_bytes(bytes(12))
    tensor = helper.make_tensor("c", TensorProto.FLOAT, [3], [0, 0, 0])
    tensor.ClearField("float_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="secret.bin")
    opset = [helper.make_opsetid("", 20)]
    body = helper.make_node("Constant", [], ["y"], value=tensor)
    function = helper.make_function("own", "F", [], ["y"], [body], opset)
    result = helper.make_tensor_value_info("r", TensorProto.FLOAT, [3])
    graph = helper.make_graph([helper.make_node("F", [], ["r"], domain="own")], "g", [], [result])
    model = helper.make_model(
        graph, functions=[function], opset_imports=[*opset, helper.make_opsetid("own", 1)]
    )
    with pytest.raises(ModelError, match="'c' are in another file"):
        backend.prepare(model)


def test_unknown_options_are_refused() -> None:
    assert backend.is_compatible(summed())
    assert not backend.is_compatible(summed(), fast=True)


def test_malformed_nodes_are_not_decomposed() -> None:
    """The package's functions take a node's word for it; a node that lies is refused."""
    for node in (
        helper.make_node("Attention", ["x"], ["y"]),
        helper.make_node("SoftmaxCrossEntropyLoss", ["x", "x"], ["y"], reduction=3),
        helper.make_node("CenterCropPad", ["x", "x"], ["y"], axes="no"),
    ):
        wrong = model([node], [info("x", [2, 3])], [info("y", None)])
        assert backend.refusals(wrong) == (
            f"{node.op_type} (malformed) is not executed: {node.op_type}_0",
        )


@pytest.mark.parametrize(
    "code",
    [
        "import zerostride as zs; zs.backend(); zs.backend.prepare; assert zs.backend().split()",
        "import zerostride.backend as b; b.prepare; assert b().split(); import zerostride as zs; "
        "assert zs.backend is b",
        "from zerostride import backend; assert backend().split(); backend.Backend",
        "import zerostride as zs, sys; zs.backend(); assert 'onnx' not in sys.modules",
    ],
)
def test_module_and_function_are_one_object(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)
