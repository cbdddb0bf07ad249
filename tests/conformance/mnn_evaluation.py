"""Runs an MNN file on MNN, and the lowered graph on ONNX Runtime."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from zerostride.models.format_table import lowered
from zerostride.models.formats import read_model
from zerostride.models.ir.graph import Graph, Value

onnx = pytest.importorskip("onnx", reason="converted files are ONNX files")
ort = pytest.importorskip("onnxruntime", reason="ONNX Runtime runs the lowered graphs")

WORKER = Path(__file__).parent / "mnn_worker.py"
#: Sizes for the open sizes of models.
SIZES = {"image_2": 16, "image_3": 24, "scores_1": 3, "scores_2": 4, "mask_1": 4}


def worker(*arguments: str) -> None:
    """Runs the child."""
    command = [sys.executable, str(WORKER), *arguments]
    done = subprocess.run(command, capture_output=True, timeout=120, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def as_onnx(graph: Graph) -> Any:
    """The lowered graph as an ONNX model: nodes, constants, inputs and outputs."""
    names: dict[int, str] = {}
    nodes: list[Any] = []
    constants: list[Any] = []

    def name(value: Value | None) -> str:
        if value is None:
            return ""
        if id(value) not in names:
            names[id(value)] = f"v{len(names)}"
            if value.constant and id(value) not in produced:
                array = value.data()
                if array.dtype == np.int64 and "~" not in value.name:
                    array = array.astype(np.int32)  # MNN computes with int32
                constants.append(onnx.numpy_helper.from_array(array, names[id(value)]))
        return names[id(value)]

    produced = {id(value) for node in graph.nodes for value in node.outputs}
    for node in graph.nodes:
        attributes = dict(node.attributes)
        if node.op == "ConstantOfShape":
            fill = np.array([attributes.pop("value")], np.float32)
            attributes["value"] = onnx.numpy_helper.from_array(fill)
        inputs = [name(value) for value in node.inputs]
        while inputs and not inputs[-1]:
            inputs.pop()
        operands = inputs
        # MNN has shapes and axes in int32, ONNX in int64.
        for position in _COUNTS.get(node.op, ()):
            if position < len(operands) and operands[position]:
                cast = f"c{len(nodes)}_{position}"
                nodes.append(onnx.helper.make_node("Cast", [operands[position]], [cast], to=7))
                operands[position] = cast
        outputs = [name(value) for value in node.outputs]
        assert node.domain == "", f"{node.op} was not lowered"
        nodes.append(onnx.helper.make_node(node.op, operands, outputs, **attributes))
    kinds = {"float32": 1, "int32": 6, "uint8": 2, "int8": 3}
    inputs_ = [
        onnx.helper.make_tensor_value_info(name(v), kinds.get(v.dtype or "", 1), None)
        for v in graph.inputs
    ]
    for entry in inputs_:
        entry.type.tensor_type.ClearField("shape")
    results = [onnx.helper.make_tensor_value_info(name(v), 0, None) for v in graph.outputs]
    for entry, value in zip(results, graph.outputs, strict=True):
        entry.type.tensor_type.elem_type = kinds.get(value.dtype or "", 1)
    body = onnx.helper.make_graph(nodes, "g", inputs_, results, constants)
    opsets = [onnx.helper.make_opsetid("", 23 if _needs_23(nodes) else 21)]
    return onnx.helper.make_model(body, opset_imports=opsets, ir_version=10)


#: Operands that ONNX wants as int64.
_COUNTS = {
    "Reshape": (1,),
    "Expand": (1,),
    "Tile": (1,),
    "Unsqueeze": (1,),
    "Squeeze": (1,),
    "Split": (1,),
    "Slice": (1, 2, 3, 4),
    "Pad": (1,),
    "ConstantOfShape": (0,),
    "Resize": (3,),
    **{f"Reduce{n}": (1,) for n in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "SumSquare")},
}


def _needs_23(nodes: Sequence[Any]) -> bool:
    return any(node.op_type == "RMSNormalization" for node in nodes)


def both(model: Path, feeds: dict[str, Any], folder: Path) -> list[tuple[str, Any, Any]]:
    """Each output: its name, MNN's result, and ONNX Runtime's result of the lowered graph."""
    graph = read_model(model)
    names = [value.name for value in graph.outputs]
    inputs, outputs = folder / "in.npz", folder / "out.npz"
    np.savez(inputs, **feeds)
    outputs.unlink(missing_ok=True)
    worker("run", str(model), str(inputs), str(outputs), *names)
    by_mnn = dict(np.load(outputs))
    onnx_model = as_onnx(lowered(graph))
    ort.set_default_logger_severity(4)
    session = ort.InferenceSession(
        onnx_model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    arrays = {
        entry.name: feeds[value.name]
        for entry, value in zip(onnx_model.graph.input, graph.inputs, strict=True)
    }
    results = session.run(None, arrays)
    return [(name, by_mnn[name], r) for name, r in zip(names, results, strict=True)]


def random_inputs(graph: Graph) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    feeds = {}
    for value in graph.inputs:
        shape = [
            size if isinstance(size, int) else SIZES.get(str(size), 5) for size in value.shape or ()
        ]
        if value.dtype == "int32":
            feeds[value.name] = rng.integers(0, 4, shape).astype(np.int32)
        else:
            feeds[value.name] = rng.uniform(-1, 1, shape).astype(np.float32)
    return feeds


def assert_close(name: str, a: Any, b: Any) -> None:
    assert a.shape == b.shape, f"{name}: MNN gives {a.shape}, ONNX Runtime {b.shape}"
    # MNN's convolutions and exponentials are less exact than ONNX Runtime's.
    np.testing.assert_allclose(a, b, rtol=2e-2, atol=2e-3, err_msg=name)
