"""Models of Paddle in both formats: read, judged and computed without Paddle."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import paddle_files
import pytest
from paddle_files import Pir, Program, field

import zerostride as zs
from zerostride.cli import main
from zerostride.errors import ModelError
from zerostride.models.execute import execute
from zerostride.models.flow.resolved import resolved
from zerostride.models.format_table import lowered, module_of
from zerostride.models.formats import paddle, read_model
from zerostride.models.formats.file_search import find_models
from zerostride.models.formats.paddle import sites
from zerostride.models.formats.paddle.schema import OLD
from zerostride.models.formats.wire import Budget, Malformed, Message
from zerostride.models.ir.site import Kind

RNG = np.random.default_rng(0)


def saved(name: str, folder: Path) -> Path:
    return paddle_files.MODELS[name]().save(folder)


def status(*words: object) -> int:
    """The exit status of the command line."""
    with pytest.raises(SystemExit) as stop:
        main([*map(str, words)])
    return int(stop.value.code or 0)


@pytest.mark.parametrize("name", paddle_files.MODELS)
def test_models_are_read_translated_and_computed(name: str, tmp_path: Path) -> None:
    graph = read_model(saved(name, tmp_path))
    assert graph.notes == ()
    assert {node.domain for node in lowered(graph).nodes} == {""}
    whole, _, flow = resolved(graph)
    assert flow is None or not flow.failures
    inputs = {
        value.name: np.ones(
            [n if isinstance(n, int) else 2 for n in value.shape or ()], value.dtype
        )
        for value in graph.inputs
    }
    for array in execute(whole, inputs).values():
        assert np.isfinite(array).all()


def test_axis_places_the_bias_of_channels(tmp_path: Path) -> None:
    file = saved("channel", tmp_path)
    x = RNG.random((2, 3, 8, 8), np.float32)
    graph = read_model(file)
    (flat,) = execute(graph, {"x": x}).values()
    values = {value.name: value for value in graph.values()}
    bias, kernel = values["bias"].data(), values["filter"].data()
    wide = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    parts = [
        np.einsum("nchw,oc->nohw", wide[:, :, a : a + 8, b : b + 8], kernel[:, :, a, b])
        for a in range(3)
        for b in range(3)
    ]
    expected = np.maximum(sum(parts) + bias[:, None, None], 0).reshape(2, -1)
    np.testing.assert_allclose(flat, expected, rtol=1e-5)
    finding = zs.audit(file, "onnxruntime").findings[0]
    assert (finding.verdict, finding.reason) == ("refused", "extent_mismatch")
    assert finding.fix is not None
    assert finding.fix.shapes[1] == (1, 4, 1, 1)
    assert [f.verdict for f in zs.audit(file, "paddle").findings] == ["same"]


def test_written_again_variable_is_a_new_tensor(tmp_path: Path) -> None:
    graph = read_model(saved("mixed", tmp_path))
    names = [value.name for node in graph.nodes for value in node.outputs]
    assert names == ["above", "rows", "y", "y@2", "z"]
    x, row = RNG.random((2, 3, 4), np.float32), RNG.random(4, np.float32)
    y = np.where(x > 0.5, x, row) * 2 + 1
    (z,) = execute(graph, {"x": x, "row": row}).values()
    np.testing.assert_allclose(z, y @ y.transpose(0, 2, 1), rtol=1e-5)


def test_audit_of_pir_program_names_modules_and_values(tmp_path: Path) -> None:
    report = zs.audit(saved("gate", tmp_path), "ncnn")
    assert [finding.op for finding in report.findings] == ["multiply", "add"]
    assert report.findings[1].node.startswith("Gate/add_")
    for target in ("numpy", "onnxruntime", "openvino", "mnn", "litert", "tensorrt", "coreml"):
        assert all(f.verdict != "unknown" for f in zs.audit(report.model, target).findings)


def test_rule_is_paddles_own(tmp_path: Path) -> None:
    """Both operands stretch, from an axis on: OpenVINO's document refuses this for PDPD."""
    model = Program()
    model.input("x", 8, 1, 6, 1)
    model.input("y", 7, 1, 5)
    model.op("elementwise_sub", {"X": "x", "Y": "y"}, {"Out": "z"}, (8, 7, 6, 5), axis=1)
    model.outputs.append("z")
    graph, _, _ = resolved(read_model(model.save(tmp_path)))
    assert graph.outputs[0].shape == (8, 7, 6, 5)
    report = zs.audit(graph.path, "openvino")
    source = report.findings[0].source
    assert isinstance(source, zs.Plan)
    assert source.rule.name == "paddle"


@pytest.mark.parametrize(
    ("kind", "shape", "refused"),
    [
        ("elementwise_add", (2,), False),
        ("elementwise_add", (3,), True),
        ("less_than", (2,), True),  # the inference of shapes does not read the axis
        ("less_than", (3,), True),  # the kernel does
        ("logical_and", (3,), False),  # nothing reads it
        ("elementwise_fmax", (2,), True),
    ],
)
def test_axis_is_read_as_paddle_reads_it(
    kind: str, shape: tuple[int, ...], refused: bool, tmp_path: Path
) -> None:
    model = Program()
    model.input("x", 2, 3)
    model.input("y", *shape)
    model.op(kind, {"X": "x", "Y": "y"}, {"Out": "z"}, (2, 3), "bool", axis=0)
    (finding,) = zs.audit(model.save(tmp_path), "paddle").findings
    assert isinstance(finding.source, zs.BroadcastError) == refused


def test_unknown_ops_are_named_and_never_guessed(tmp_path: Path) -> None:
    model = Pir()
    model.input("x", 2, 3)
    (first,) = model.op("brand_new", ["x"], [((2, 3), "float32")])
    (second,) = model.op("my_op", [first], [((2, 3), "float32")], dialect=3)
    model.outputs.append(f"%{second}")
    graph = read_model(model.save(tmp_path))
    kinds = [module_of(graph).find_site(node) for node in graph.nodes]
    assert [site.kind for site in kinds if site is not None] == [Kind.CUSTOM, Kind.CUSTOM]
    assert [node.op for node in lowered(graph).nodes if node.domain] == ["brand_new", "my_op"]


def test_lists_of_tensors_are_taken_apart(tmp_path: Path) -> None:
    model = Pir()
    model.input("x", 2, 6)
    part = paddle_files.tensor_type((2, 3), "float32")
    axis = model.full(1.0, 1, dtype="int32")
    (many,) = model.op("split_with_num", ["x", axis], num=2)
    model.ops[-1]["O"][0]["TT"] = {"#": "0.t_vec", "D": [part, part]}
    a, b = model.op("split", [many], [((2, 3), "float32")] * 2, dialect=0)
    (joined,) = model.op("combine", [b, a], dialect=0)
    model.ops[-1]["O"][0]["TT"] = {"#": "0.t_vec", "D": [part, part]}
    (out,) = model.op("concat", [joined, axis], [((2, 6), "float32")])
    model.outputs.append(f"%{out}")
    graph = read_model(model.save(tmp_path))
    assert [value.name for value in graph.nodes[0].outputs] == [f"%{a}", f"%{b}"]
    x = RNG.random((2, 6), np.float32)
    (result,) = execute(graph, {"x": x}).values()
    np.testing.assert_array_equal(result, np.roll(x, 3, 1))


def test_user_line_is_read_from_the_stack_of_calls(tmp_path: Path) -> None:
    model = Program()
    model.input("x", 2, 3)
    stack = [
        '  File "/home/me/model.py", line 37, in forward',
        "    return x + self.bias",
        '  File "/usr/lib/python3/site-packages/paddle/tensor/math.py", line 9, in add',
        "    helper.append_op()",
    ]
    model.op("elementwise_add", {"X": "x", "Y": "x"}, {"Out": "y"}, (2, 3), op_callstack=stack)
    (node,) = read_model(model.save(tmp_path)).nodes
    assert str(node.origin) == "model.py:37  return x + self.bias"
    assert "op_callstack" not in node.attributes


# Weights.


def test_missing_weights_are_noted(tmp_path: Path) -> None:
    file = saved("gate", tmp_path)
    file.with_suffix(".pdiparams").unlink()
    graph = read_model(file)
    assert graph.notes == ("the weights are missing: 'model.pdiparams'",)
    assert zs.audit(file, "ncnn").findings
    (gain,) = (value for value in graph.values() if value.name == "gain")
    with pytest.raises(ModelError, match="missing"):
        gain.data()


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_broken_weights_are_noted_and_refused_when_read(cut: int, tmp_path: Path) -> None:
    file = saved("channel", tmp_path)
    beside = file.with_suffix(".pdiparams")
    beside.write_bytes(beside.read_bytes()[:-cut])
    graph = read_model(file)
    assert "cannot be read" in graph.notes[0]
    (bias,) = (value for value in graph.values() if value.name == "bias")
    with pytest.raises(ModelError, match="bias"):
        bias.data()


def test_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    file = saved("gate", tmp_path)
    other = paddle_files.weights({"gain": np.ones((1, 5, 1, 1), np.float32)})
    file.with_suffix(".pdiparams").write_bytes(other)
    (gain,) = (value for value in read_model(file).values() if value.name == "gain")
    with pytest.raises(ModelError, match=r"has float32 of shape \(1, 5, 1, 1\)"):
        gain.data()


# Files.


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 100_000, "not readable JSON"),
        ('{"base_code": {"magic": "onnx"}}', "no magic"),
        ("[1]", "no magic"),
        ('{"base_code": {"magic": "pir"}}', "0 main blocks"),
        ("{", "not readable JSON"),
    ],
)
def test_other_json_is_refused(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "model.json"
    file.write_text(text)
    with pytest.raises(ModelError, match=words):
        read_model(file)


def test_operand_that_is_not_there_is_refused(tmp_path: Path) -> None:
    model = Pir()
    model.op("relu", [77])
    with pytest.raises(ModelError, match="the value 77, which is not there"):
        read_model(model.save(tmp_path))


@pytest.mark.parametrize(
    "data", [b"\x0a", b"\x0a\xff\x01", b"\x0b", b"\x08" + b"\xff" * 11, b"abc"]
)
def test_malformed_program_is_refused(data: bytes, tmp_path: Path) -> None:
    file = tmp_path / "model.pdmodel"
    file.write_bytes(data)
    with pytest.raises(ModelError, match="not a readable program of Paddle"):
        read_model(file)


def test_wire_reads_numbers_packed_and_single() -> None:
    packed = field(2, b"\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")
    message = Message(memoryview(packed + field(3, 5) + field(3, -2) + field(4, 1.5)))
    assert message.wholes(2) == (1, -1)
    assert message.wholes(3) == (5, -2)
    assert message.real(4) == 1.5
    double = struct.pack("<Bd", 5 << 3 | 1, 2.5)
    assert Message(memoryview(double)).real(5, 8) == 2.5


def test_wire_bounds_the_number_of_fields() -> None:
    with pytest.raises(Malformed, match="fields"):
        Message(memoryview(b"\x08\x00" * 11), Budget(10))


def test_search_takes_programs_and_no_other_json(tmp_path: Path) -> None:
    saved("gate", tmp_path)
    (tmp_path / "package.json").write_text(json.dumps({"name": "x"}))
    assert find_models([str(tmp_path)]) == [str(tmp_path / "model.json")]


def test_port_tells_the_way(tmp_path: Path, capsys: Any) -> None:
    file = saved("channel", tmp_path)
    with pytest.raises(ModelError, match="paddle2onnx --model_dir"):
        zs.port(file, "onnxruntime", output=tmp_path / "out.pdmodel")
    assert status("port", file, "--target", "onnxruntime", "-o", tmp_path / "o.onnx") == 2
    assert "paddle2onnx" in capsys.readouterr().err


def test_openvino_4209_is_a_bias_of_channels(tmp_path: Path) -> None:
    """A vector at axis 1 of an image; OpenVINO's rule pdpd takes it, NumPy's does not."""
    model = Program()
    model.input("x", 1, 3, 224, 224)
    model.weight("mean", np.ones(3, np.float32))
    model.op("elementwise_sub", {"X": "x", "Y": "mean"}, {"Out": "y"}, (1, 3, 224, 224), axis=1)
    file = model.save(tmp_path)
    (finding,) = zs.audit(file, "openvino").findings
    assert finding.fix is not None
    assert finding.fix.shapes[1] == (3, 1, 1)
    assert zs.audit(file, "paddle").findings[0].verdict == "same"


def test_paddle_23913_has_one_meaning_in_both_formats(tmp_path: Path) -> None:
    """elementwise_add(x, y) and x + y, for a first size of y that is open."""
    old, new = Program(), Pir()
    for model in (old, new):
        model.input("x", 20, 10, 10)
        model.input("y", -1, 10)
    old.op("elementwise_add", {"X": "x", "Y": "y"}, {"Out": "z"}, (20, 10, 10), axis=-1)
    old.outputs.append("z")
    (number,) = new.op("add", ["x", "y"], [((20, 10, 10), "float32")])
    new.outputs.append(f"%{number}")
    x, y = RNG.random((20, 10, 10), np.float32), RNG.random((1, 10), np.float32)
    for model in (old, new):
        graph = paddle.read_sized(model.save(tmp_path), {"x": x.shape, "y": y.shape})
        (z,) = execute(graph, {"x": x, "y": y}).values()
        np.testing.assert_array_equal(z, x + y)


def test_paddle_79365_stretches_to_an_empty_result(tmp_path: Path) -> None:
    model = Pir()
    model.input("x", 0, 2)
    model.input("y", 1, 2)
    model.op("add", ["x", "y"], [((0, 2), "float32")])
    (finding,) = zs.audit(model.save(tmp_path), "paddle").findings
    assert isinstance(finding.source, zs.Plan)
    assert finding.source.shape == (0, 2)
    assert finding.verdict == "same"


@pytest.mark.parametrize("command", ["audit", "shapes"])
@pytest.mark.parametrize("name", paddle_files.MODELS)
def test_commands_take_both_formats(command: str, name: str, tmp_path: Path, capsys: Any) -> None:
    more = ["--target", "litert-gpu"] if command == "audit" else []
    assert status(command, saved(name, tmp_path), *more) in (0, 1)
    assert "input" in (out := capsys.readouterr().out) or "broadcast" in out


def test_every_row_of_old_programs_has_a_pir_row() -> None:
    """Each names an op that is judged, translated, or known not to broadcast."""
    known = {*sites.ROWS, *sites.LOWERED, *sites.SIZES, *sites.STILL}
    assert {row.op for row in OLD.values()} <= known | {"assign_value"}
