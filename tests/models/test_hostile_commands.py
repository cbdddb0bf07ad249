"""Small hostile models through every public function: results, or the package's own errors."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

onnx = pytest.importorskip("onnx", reason="the files are ONNX files")
import small  # noqa: E402
from onnx import helper  # noqa: E402

import zerostride as zs  # noqa: E402

FUZZ = Path(__file__).parents[1] / "fuzz"


def saved(folder: Path, content: Any) -> Path:
    path = folder / "case.onnx"
    path.write_bytes(content if isinstance(content, bytes) else content.SerializeToString())
    return path


def everything(path: Path) -> None:
    """Every function on the file, with whatever it says; none of the errors is an internal one."""
    sys.path.insert(0, str(FUZZ))
    import every_command

    for use in (every_command.audit, every_command.port, every_command.shapes, every_command.run):
        for number in range(len(zs.engines.ENGINES)):
            try:
                use(path, number)
            except (zs.BroadcastError, zs.ZerostrideError):
                continue


def not_ported(path: Path, goal: Path) -> str:
    report = zs.port(path, "ncnn", goal, via="none")
    return " ".join(note for finding in report.findings for note in finding.notes)


def test_node_without_outputs_is_not_ported(tmp_path: Path) -> None:
    nodes = [helper.make_node("Add", ["x", "y"], []), small.node("Add", "x y", "z")]
    path = saved(tmp_path, small.model(nodes, {"x": (5, 5), "y": (5,)}, outputs=("z",)))
    assert "not ported: the node has no output" in not_ported(path, tmp_path / "out.onnx")
    everything(path)


@pytest.mark.parametrize("op", ["Sum", "Max", "Mean"])
@pytest.mark.parametrize("count", [101, 502])
def test_node_of_very_many_operands_is_not_ported(op: str, count: int, tmp_path: Path) -> None:
    node = small.node(op, " ".join(["x", *["y"] * (count - 1)]), "z")
    path = saved(tmp_path, small.model([node], {"x": (5, 5), "y": (5,)}, outputs=("z",)))
    assert "not ported: it has more than 100 operands" in not_ported(path, tmp_path / "out.onnx")


def test_body_that_reads_a_name_outside_utf8_is_read(tmp_path: Path) -> None:
    body = helper.make_graph(
        [
            small.node("Add", "s o1", "t"),
            small.node("Mul", "t o2", "s2"),
            small.node("Identity", "c", "c2"),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", onnx.TensorProto.INT64, []),
            helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("s", onnx.TensorProto.FLOAT, [3]),
        ],
        [
            helper.make_tensor_value_info("c2", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("s2", onnx.TensorProto.FLOAT, [3]),
        ],
    )
    loop = small.node("Loop", "n - x", "y", body=body)
    made = small.model([loop], {"x": (3,), "o1": (3,), "o2": (3,)}, {"n": 2})
    data = made.SerializeToString()
    for name in (b"o1", b"o2", b"s2", b"c2"):
        everything(saved(tmp_path, data.replace(name, b"\xff" + name[1:])))


@pytest.mark.parametrize("location", ["a" * 5000, "a/" * 3000 + "a", "\x00", "a" * 256])
def test_location_refused_by_the_file_system_is_reported(location: str, tmp_path: Path) -> None:
    weight = onnx.TensorProto(name="w", data_type=1, dims=[5], data_location=1)
    weight.external_data.add(key="location", value=location)
    made = small.model([small.node("Add", "x w")], {"x": (3, 5)})
    made.graph.initializer.append(weight)
    path = saved(tmp_path, made)
    assert any("is missing" in note for note in zs.audit(path, "ncnn").notes)
    everything(path)


@pytest.mark.parametrize(
    "op", ["Add", "BatchNormalization", "Clip", "Gemm", "MatMul", "Max", "PRelu", "Where"]
)
def test_node_with_too_few_operands_is_reported(op: str, tmp_path: Path) -> None:
    everything(saved(tmp_path, small.model([small.node(op, "x", "y")], {"x": ("N", 3)})))
