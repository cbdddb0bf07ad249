"""An output that differs by an engine's approximation is no fault; a fault beside it is one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx: Any = pytest.importorskip("onnx", reason="the models are made with the onnx package")
pytest.importorskip("MNN", reason="approximates a Gelu")

from campaigns.models.bisect_graphs import saved  # noqa: E402
from campaigns.real_models.convert import convert  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import zerostride as zs  # noqa: E402
from zerostride.models.findings import Outcome  # noqa: E402

pytestmark = pytest.mark.conformance

SIZE, LAYERS = 24, 4
X = np.random.default_rng(5).normal(0, 1.5, (1, SIZE, SIZE)).astype(np.float32)


def network(change: str = "") -> onnx.ModelProto:
    """Layers with a Gelu, and an end that makes small numbers of a difference.

    Args:
        change: a fault: of the "node", of a "broadcast", or of a "number" as large as the error of
            a Gelu.
    """
    draw = np.random.default_rng(1)
    nodes, constants, last = [], [], "x"

    def node(op: str, *operands: str, **attributes: Any) -> str:
        name = f"t{len(nodes)}"
        nodes.append(helper.make_node(op, [*operands], [name], f"n{len(nodes)}", **attributes))
        return name

    def constant(array: np.ndarray) -> str:
        name = f"c{len(constants)}"
        constants.append(numpy_helper.from_array(array.astype(np.float32), name))
        return name

    for layer in range(LAYERS):
        weights = draw.normal(0, 1.5 / SIZE**0.5, (SIZE, SIZE))
        bias = draw.uniform(-1, 1, SIZE)
        if layer == 1 and change == "number":
            bias[3] += 3e-3
        form = (SIZE, 1) if layer == 1 and change == "broadcast" else (1, SIZE)
        last = node("MatMul", last, constant(weights))
        # mnnconvert joins an Add to the product, whatever axis its operand lies on.
        last = node("Sub", last, constant(bias.reshape(form)))
        op = "Relu" if layer == 2 and change == "node" else "Gelu"
        last = node(op, last)
    far = node("Sub", last, node("ReduceMean", last, keepdims=1))
    nodes.append(helper.make_node("Mul", [far, constant(np.float32(0.5))], ["y"], "end"))
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, X.shape) for n in "xy"]
    graph = helper.make_graph(nodes, "network", ends[:1], ends[1:], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def verified(folder: Path, change: str) -> zs.Report:
    size = (f"x={','.join(map(str, X.shape))}",)
    place = convert(saved(network(change), folder / "b.onnx"), "mnnconvert", size, folder)
    assert not isinstance(place, str), place
    model = saved(network(), folder / "a.onnx")
    return zs.verify(model, "mnn", against=place, inputs={"x": X})


def test_an_approximated_gelu_is_no_fault(tmp_path: Path) -> None:
    report = verified(tmp_path, "")
    assert [check.outcome for check in report.checks] == [Outcome.AGREES]
    assert "mnn approximates Gelu by up to 0.00048" in report.checks[0].detail
    assert any("mnn approximates Gelu" in note for note in report.notes)


@pytest.mark.parametrize("change", ["node", "broadcast", "number"])
def test_a_fault_beside_it_is_one(tmp_path: Path, change: str) -> None:
    report = verified(tmp_path, change)
    assert report.checks[0].outcome is Outcome.DIFFERS
    wrong = {"node": {"n8"}, "broadcast": {"n4"}, "number": {"n4"}}[change]
    assert {check.node for check in report.checks[1:]} == wrong
