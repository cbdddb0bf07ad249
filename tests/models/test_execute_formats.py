"""Executed files of other formats: their own rules, and lowered ops for the rest."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small
from ir_models import Ir
from ncnn_models import floats, param, write

from sampled import few
from zerostride.errors import ModelError, ZerostrideError
from zerostride.models.execute import execute
from zerostride.models.execute.random_inputs import random_inputs
from zerostride.models.formats import read_model


def layer(op: str, data: str, *inputs: str, output: str = "") -> str:
    """A layer as documents show it; an input is its sizes and, after a colon, its numbers."""
    ports = []
    for k, words in enumerate(inputs):
        sizes, _, numbers = words.partition(":")
        dims = "".join(f"<dim>{size}</dim>" for size in sizes.split())
        note = f"<!--The tensor contains {sizes} elements: [{numbers}] -->" if numbers else ""
        ports.append(f'<port id="{k}">{dims}{note}</port>')
    dims = "".join(f"<dim>{size}</dim>" for size in output.split())
    return (
        f'<layer ... type="{op}" ...><data {data}/><input>{"".join(ports)}</input>'
        f'<output><port id="9">{dims}</port></output></layer>'
    )


#: The Broadcast layers of the operation's document: mode, data, target, axes, where data axes go.
BROADCASTS: Any = [
    ("numpy", "16 1 1", "1, 16, 50, 50", None, (1, 16, 1, 1)),
    ("explicit", "16", "1, 16, 50, 50", "1:1", (1, 16, 1, 1)),
    ("explicit", "50 50", "1, 50, 50, 16", "2:1, 2", (1, 50, 50, 1)),
    ("bidirectional", "16 1 1", "1, 1, 50, 50", None, (1, 16, 1, 1)),
]


@pytest.mark.parametrize(("mode", "data", "target", "axes", "aligned"), BROADCASTS)
def test_documents_broadcast_layers_are_executed(
    mode: str, data: str, target: str, axes: str | None, aligned: Any, tmp_path: Path
) -> None:
    result = tuple(max(a, int(b)) for a, b in zip(aligned, target.split(","), strict=True))
    inputs = [data, f"4:{target}", *([axes] if axes else [])]
    file = tmp_path / "layer.xml"
    file.write_text(
        layer("Broadcast", f'mode="{mode}"', *inputs, output=" ".join(map(str, result)))
    )
    graph = read_model(file)
    (name,) = [value.name for value in graph.inputs if not value.constant]
    (value,) = random_inputs(graph, 0).values()
    (output,) = execute(graph, {name: value}).values()
    np.testing.assert_array_equal(output, np.broadcast_to(value.reshape(aligned), result))


@pytest.mark.parametrize(("axis", "aligned"), [(1, (1, 3, 1)), (0, None), (-1, (1, 1, 3))])
def test_pdpd_axis_of_an_ir_is_read_from_its_attribute(
    axis: int, aligned: Any, tmp_path: Path
) -> None:
    """The axis where an IR carries it; a plain `axis` is ignored there, and so it is here."""
    file = tmp_path / "layer.xml"
    data = f'auto_broadcast="pdpd" auto_broadcast.auto_broadcast_axis="{axis}"'
    file.write_text(layer("Add", data, "2 3 3", "3", output="2 3 3"))
    graph = read_model(file)
    a, b = (value.name for value in graph.inputs)
    x, y = np.arange(18, dtype=np.float32).reshape(2, 3, 3), np.float32([10, 20, 30])
    if aligned is None:
        with pytest.raises(ModelError, match="Add"):
            execute(graph, {a: x, b: y})
        return
    (output,) = execute(graph, {a: x, b: y}).values()
    np.testing.assert_array_equal(output, x + y.reshape(aligned))


def test_squeeze_without_axes_removes_all_ones(tmp_path: Path) -> None:
    model = Ir()
    x = model.parameter("x", (2, 1, 3, 1))
    none = model.constant("none", np.array([], np.int64))
    model.result(model.layer("out", "Squeeze", (x, none), (2, 3)))
    value = np.arange(6, dtype=np.float32).reshape(2, 1, 3, 1)
    (output,) = execute(read_model(model.save(tmp_path / "m.xml")), {"x": value}).values()
    np.testing.assert_array_equal(output, value.reshape(2, 3))


def test_broadcast_of_an_unknown_mode_is_refused(tmp_path: Path) -> None:
    # OpenVINO's Python API writes this mode, which no document of Broadcast-3 has.
    model = Ir()
    x = model.parameter("x", (3, 1))
    target = model.constant("target", np.array([1, 4]))
    pdpd = 'mode="pdpd" mode.mode.axis="0"'
    model.result(model.layer("out", "Broadcast", (x, target), (3, 4), pdpd, "opset3"))
    graph = read_model(model.save(tmp_path / "m.xml"))
    with pytest.raises(ModelError, match="not executed here"):
        execute(graph, {"x": np.ones((3, 1), np.float32)})


def test_ncnn_add_aligns_a_vector_with_the_rows(tmp_path: Path) -> None:
    text = "7767517\n3 3\nInput a 0 1 a 0=5 1=5\nInput b 0 1 b 0=5\nBinaryOp add 2 1 a b y 0=0\n"
    (tmp_path / "m.param").write_text(text)
    graph = read_model(tmp_path / "m.param")
    x, y = np.zeros((5, 5), np.float32), np.arange(5, dtype=np.float32)
    output = execute(graph, {"a": x, "b": y})["y"]
    np.testing.assert_array_equal(output, np.repeat(y[:, None], 5, 1))


#: Layers of ncnn on a = 1, 2, 3 and b = 10, 20, 30, with what the release computes (run).
LAYERS: Any = [
    ("BinaryOp u 2 1 a b out 0=7", b"", [9, 18, 27]),
    ("BinaryOp u 2 1 a b out 0=8", b"", [10, 10, 10]),
    ("Scale u 1 1 a out 0=3 1=1", floats([2, 3, 4], [100, 200, 300]), [102, 206, 312]),
    ("Eltwise u 2 1 a b out 0=1", b"", [11, 22, 33]),
    ("Eltwise u 2 1 a b out 0=1 -23301=2,1.0,-2.0", b"", [-19, -38, -57]),
    ("Bias u 1 1 a out 0=3", floats([100, 200, 300]), [101, 102, 103]),
    ("Diag u 1 1 a out", b"", None),
]


@pytest.mark.parametrize(("line", "weights", "numbers"), LAYERS)
def test_ncnn_layers_are_executed_beyond_their_broadcast(
    line: str, weights: bytes, numbers: Any, tmp_path: Path
) -> None:
    graph = read_model(
        write(tmp_path, param("Input a 0 1 a 0=3", "Input b 0 1 b 0=3", line), weights)
    )
    given = {"a": np.array([1, 2, 3], np.float32), "b": np.array([10, 20, 30], np.float32)}
    if numbers is None:
        with pytest.raises(ModelError, match="not executed here"):
            execute(graph, given, ["out"])
    else:
        np.testing.assert_array_equal(execute(graph, given, ["out"])["out"], numbers)


def test_ops_that_cannot_be_lowered_are_named(tmp_path: Path) -> None:
    text = "7767517\n2 2\nInput a 0 1 a 0=5\nYolov3DetectionOutput boxes 1 1 a y\n"
    (tmp_path / "m.param").write_text(text)
    with pytest.raises(ZerostrideError, match="Yolov3DetectionOutput"):
        execute(read_model(tmp_path / "m.param"), {"a": np.zeros(5, np.float32)})


HOSTILE: Any = [
    ("Reshape", {"shape": "no"}), ("Transpose", {"perm": [0, 0]}), ("Transpose", {"perm": "a"}),
    ("Concat", {"axis": 2**62}), ("Concat", {"axis": 1.5}), ("Softmax", {"axis": "x"}),
    ("Flatten", {"axis": -99}), ("ReduceSum", {"axes": [9], "keepdims": 7}),
    ("Conv", {"strides": [0, 0]}), ("MaxPool", {"kernel_shape": [2**62, 1]}),
    ("MaxPool", {"kernel_shape": [1, 1], "pads": [2**62] * 4}),
    ("AveragePool", {"kernel_shape": [1], "strides": ["a"]}), ("Einsum", {"equation": "->->"}),
    ("Einsum", {"equation": "a" * 999}), ("DepthToSpace", {"blocksize": 0}),
    ("EyeLike", {"k": 2**62}), ("LpNormalization", {"p": 0}), ("Cast", {"to": 99}),
    ("GroupNormalization", {"num_groups": 0}), ("Tile", {}), ("If", {}), ("Loop", {}),
    ("Squeeze", {"axes": [2**62]}), ("Unsqueeze", {"axes": [2**62]}), ("Split", {"axis": 7}),
    ("Pad", {"pads": [-(2**62)] * 8}), ("Gather", {"axis": "q"}), ("Range", {}),
    ("BatchNormalization", {"epsilon": "e"}), ("Clip", {"min": "low"}), ("Gelu", {}),
    ("Elu", {"alpha": "a"}), ("CumSum", {}), ("TopK", {"k": -1}), ("Trilu", {}),
    ("InstanceNormalization", {}), ("QuantizeLinear", {"axis": 44}), ("Mod", {"fmod": "x"}),
]  # fmt: skip


@pytest.mark.parametrize(("op", "attributes"), HOSTILE, ids=[f"{o}-{a}"[:40] for o, a in HOSTILE])
@pytest.mark.parametrize("opset", few(1, [21, 11, 1]))
@pytest.mark.parametrize("operands", few(2, ["x", "x x", "x x x", "- x"]))
def test_hostile_nodes_give_one_line(
    op: str, attributes: Any, opset: int, operands: str, tmp_path: Path
) -> None:
    """Whatever a file says, there is a result or a ModelError, and no other end."""
    file = tmp_path / "m.onnx"
    content = small.model(
        [small.node(op, operands, **attributes)], {"x": (1, 2, 2, 2)}, opset=opset
    )
    file.write_bytes(content.SerializeToString())
    with suppress(ModelError):
        execute(read_model(file), {"x": np.full((1, 2, 2, 2), 3, np.float32)})
