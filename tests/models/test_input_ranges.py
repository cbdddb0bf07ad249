"""Random inputs are in the range that a model's first ops suggest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="the models are made with the onnx package")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from zerostride.models.execute.random_inputs import random_inputs  # noqa: E402
from zerostride.models.formats import read_model  # noqa: E402

PIXELS = (200.0, 255.0)
#: The first ops with their constants, and between which numbers the largest input is.
FIRST = [
    ([("Relu",)], (1.0, 1.5)),
    ([("Sub", 0.485), ("Div", 0.229)], (1.0, 1.5)),
    ([("Sub", 123.7), ("Mul", 0.017)], PIXELS),
    ([("Sub", 0.0), ("Div", 255.0)], PIXELS),
    ([("Transpose",), ("Mul", 1 / 255)], PIXELS),
    ([("Gather", np.int64([2, 0])), ("Mul", 1 / 255)], PIXELS),
    ([("Clip", -3.0, 7.0)], (7.5, 9.5)),
    ([("Sqrt",)], (0.5, 1.0)),
    ([("Mul", -10000.0)], (1.0, 1.0)),
    ([("QuantizeLinear", 0.5, np.int8(0))], (50.0, 63.5)),
]


@pytest.mark.parametrize(("ops", "between"), FIRST)
def test_the_largest_number(
    tmp_path: Path, ops: list[tuple[object, ...]], between: tuple[float, float]
) -> None:
    nodes, constants, last = [], [], "x"
    for op, *numbers in ops:
        names = []
        for number in numbers:
            names.append(f"c{len(constants)}")
            kind = number.dtype if isinstance(number, np.generic) else np.float32
            constants.append(numpy_helper.from_array(np.array(number, kind), names[-1]))
        nodes.append(helper.make_node(str(op), [last, *names], [f"t{len(nodes)}"]))
        last = nodes[-1].output[0]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [8, 64])
    y = helper.make_empty_tensor_value_info(last)
    graph = helper.make_graph(nodes, "g", [x], [y], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "m.onnx")
    array = random_inputs(read_model(tmp_path / "m.onnx"), 0)["x"]
    assert between[0] <= array.max() <= between[1]


def test_indices_are_of_the_table(tmp_path: Path) -> None:
    table = numpy_helper.from_array(np.zeros((50, 2), np.float32), "table")
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, [400])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [400, 2])
    node = helper.make_node("Gather", ["table", "ids"], ["y"])
    graph = helper.make_graph([node], "g", [ids], [y], [table])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "m.onnx")
    array = random_inputs(read_model(tmp_path / "m.onnx"), 0)["ids"]
    assert array.dtype == np.int64
    assert (array.min(), array.max()) == (0, 49)


@pytest.mark.parametrize(("total", "between"), [([5], (0, 4)), (None, (0, 5)), ([1], (0, 0))])
def test_lengths_of_samples_are_within_the_keys(
    tmp_path: Path, total: list[int] | None, between: tuple[int, int]
) -> None:
    """A GroupQueryAttention of one new key and a past of five."""
    floats, whole = TensorProto.FLOAT, TensorProto.INT32
    shapes = {"q": (100, 1, 16), "k": (100, 1, 8), "p": (100, 1, 5, 8)}
    infos = [helper.make_tensor_value_info(name, floats, shape) for name, shape in shapes.items()]
    infos.append(helper.make_tensor_value_info("n", whole, (100,)))
    held = [] if total is None else [numpy_helper.from_array(np.array(total, np.int32), "t")]
    if total is None:
        infos.append(helper.make_tensor_value_info("t", whole, (1,)))
    names = ["q", "k", "k", "p", "p", "n", "t"]
    heads = {"num_heads": 2, "kv_num_heads": 1, "domain": "com.microsoft"}
    node = helper.make_node("GroupQueryAttention", names, ["y", "a", "b"], **heads)
    outputs = [helper.make_tensor_value_info(name, floats, None) for name in ("y", "a", "b")]
    graph = helper.make_graph([node], "g", infos, outputs, held)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "m.onnx")
    arrays = random_inputs(read_model(tmp_path / "m.onnx"), 0)
    assert (arrays["n"].min(), arrays["n"].max()) == between
    assert total is not None or arrays["t"] == 6
