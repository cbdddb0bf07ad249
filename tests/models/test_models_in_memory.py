"""Models in memory: answers as for their files, no weights on disk, results of the same kind."""

from __future__ import annotations

import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tflite_files import of_one

import zerostride as zs
from zerostride.errors import ArgumentError
from zerostride.models.formats import model_file as model_files
from zerostride.models.formats.model_file import ModelFile, model_file
from zerostride.models.formats.objects import KINDS, kind_of

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = (
    *("tiny_vision.onnx", "transformer_dynamic.onnx", "functions_and_subgraphs.onnx"),
    *("legacy_opset6.onnx", "clean.onnx", "bugs/ncnn-4930.onnx"),
)
#: How a file becomes an object, without libraries that the light tests lack.
WAYS: dict[str, Callable[[Path], Any]] = {
    "ModelProto": onnx.load,
    "bytes": Path.read_bytes,
    "bytearray": lambda path: bytearray(path.read_bytes()),
}


def dicts(report: zs.Report) -> list[dict[str, Any]]:
    """As data: two refusals of the same are not equal objects."""
    return [finding.as_dict() for finding in report.findings]


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of temporary files, which is empty in the end."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert not [*folder.iterdir()]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("scratch")
def test_an_object_is_answered_as_its_file(name: str, way: str) -> None:
    file = EXAMPLES / name
    model = WAYS[way](file)
    before = bytes(model) if way != "ModelProto" else model.SerializeToString()
    for target in ("ncnn", "openvino"):
        of_file, of_object = zs.audit(file, target=target), zs.audit(model, target=target)
        assert of_file.findings or name == "clean.onnx"
        assert dicts(of_object) == dicts(of_file)
        assert of_object.notes == of_file.notes
    sizes = zs.shapes(model)
    assert sizes.shapes == zs.shapes(file).shapes
    assert (bytes(model) if way != "ModelProto" else model.SerializeToString()) == before
    words = {str(of_object), of_object.to_json(), of_object.to_html(), sizes.to_json()}
    assert not [text for text in words if tempfile.gettempdir() in text]


def test_reports_name_the_object_and_its_graph() -> None:
    model = onnx.load(EXAMPLES / "tiny_vision.onnx")
    assert zs.audit(model, "ncnn").model == "ModelProto 'tiny_vision'"
    assert zs.shapes(model).model == "ModelProto 'tiny_vision'"
    model.graph.name = "a/b\x1b[31m" + "c" * 500
    label = zs.audit(model, "ncnn").model
    assert "\x1b" not in label
    assert len(label) < 120
    model.graph.name = ""
    assert zs.audit(model, "ncnn").model == "ModelProto"
    data = (EXAMPLES / "clean.onnx").read_bytes()
    assert zs.audit(data, "ncnn").model == "bytes of an ONNX file"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.usefixtures("scratch")
def test_a_port_gives_back_an_object_of_the_same_kind(way: str, tmp_path: Path) -> None:
    file = EXAMPLES / "bugs" / "ncnn-4930.onnx"
    model = WAYS[way](file)
    report = zs.port(model, target="ncnn", via="none")
    kind = bytes if way == "bytearray" else type(model)
    assert type(report.result) is kind
    assert report.output is None
    assert "1 change, as the report's result" in str(report)
    assert zs.audit(report.result, target="ncnn", via="none").ok
    assert not zs.audit(model, target="ncnn", via="none").ok  # as it was
    again = zs.port(report.result, target="ncnn", via="none")
    assert not again.changes
    assert type(again.result) is kind
    # With an output, too; and not for a dry run, nor for a file.
    output = tmp_path / "out.onnx"
    written = zs.port(model, target="ncnn", via="none", output=output)
    assert written.output == str(output)
    assert type(written.result) is kind
    assert dicts(zs.audit(output, "ncnn", via="none")) == dicts(
        zs.audit(written.result, "ncnn", via="none")
    )
    assert zs.port(model, target="ncnn", via="none", dry_run=True).result is None
    assert zs.port(file, target="ncnn", via="none", output=output).result is None


def test_a_result_is_no_part_of_a_report_as_data() -> None:
    report = zs.port(onnx.load(EXAMPLES / "bugs" / "ncnn-4930.onnx"), "ncnn", via="none")
    assert report.result is not None
    assert "result" not in report.as_dict()


# Weights.


def with_weight(name: str, tensor: onnx.TensorProto, op: str = "MatMul") -> onnx.ModelProto:
    shape = [4, tensor.dims[0]] if op == "MatMul" else [*tensor.dims]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(
        [helper.make_node(op, ["x", name], ["y"], "node")], "weighty", [x], [y], [tensor]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def declared(rows: int, columns: int) -> onnx.TensorProto:
    """A tensor whose numbers lie in a file that does not exist."""
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[rows, columns])
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.bin")
    return tensor


def test_weights_take_no_disk_space(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[tuple[int, int]] = []
    real = model_files.write_object

    def watched(*arguments: Any, **options: Any) -> Any:
        result = real(*arguments, **options)
        files = [file.stat() for file in result.path.parent.iterdir()]
        written.append((sum(f.st_size for f in files), 512 * sum(f.st_blocks for f in files)))
        return result

    monkeypatch.setattr(model_files, "write_object", watched)
    size = 1 << 14
    model = with_weight("w", declared(size, size))  # 1 GiB
    assert zs.shapes(model).shapes["y"] == (4, size)
    assert zs.audit(model, "ncnn").ok
    assert zs.audit(with_weight("w", declared(size, size), op="Add"), "ncnn").findings
    assert len(written) == 3
    for length, used in written:
        assert length > 1 << 30
        assert used < 1 << 16


def test_weights_are_not_copied_in_memory() -> None:
    """Nor do they reach the temporary file: a copy of the message would."""
    array = np.ones((1 << 11, 1 << 12), np.float32)  # 32 MiB
    model = with_weight("w", numpy_helper.from_array(array, "w"))
    zs.audit(model, "ncnn")  # imports
    tracemalloc.start()
    try:
        with model_file(model, weights=False) as file:
            assert file.path.stat().st_size < 1000
        zs.audit(model, "ncnn")
        zs.shapes(model)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < array.nbytes // 4


@pytest.mark.parametrize("fill", [0.0, 1.0, -1.0])
def test_numbers_that_a_verdict_depends_on_are_the_object_s(fill: float, tmp_path: Path) -> None:
    """MNN compares two numbers below 0 by their bits, unless one side has none."""
    array = np.full((1, 1 << 12), fill, np.float32)
    model = with_weight("w", numpy_helper.from_array(array, "w"), op="Less")
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 64
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 1
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.BOOL
    onnx.save(model, tmp_path / "m.onnx")
    with model_file(model, weights=False) as file:
        assert [*file.numbers] == ["w"]
        assert np.array_equal(file.numbers["w"].source(), array)
    assert zs.audit(model, "mnn").ok == (fill >= 0)
    for target in ("mnn", "litert", "ncnn", "openvino"):
        assert dicts(zs.audit(model, target)) == dicts(zs.audit(tmp_path / "m.onnx", target))


def test_small_constants_keep_their_numbers_in_the_file() -> None:
    model = onnx.load(EXAMPLES / "tiny_vision.onnx")
    with model_file(model, weights=False) as file:
        copy = onnx.load(file.path, load_external_data=False)
        small = {t.name: t for t in copy.graph.initializer if t.name not in file.numbers}
        assert small
        for tensor in model.graph.initializer:
            if tensor.name in small:
                assert small[tensor.name] == tensor


def test_constants_of_nodes_are_left_out_too() -> None:
    array = np.arange(1 << 12, dtype=np.float32).reshape(64, 64)
    node = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(array))
    model = with_weight("w", numpy_helper.from_array(np.ones((64, 64), np.float32), "w"))
    model.graph.node.insert(0, node)
    model.graph.node.append(helper.make_node("Add", ["y", "c"], ["z"]))
    with model_file(model, weights=False) as file:
        assert {*file.numbers} == {"w", "c"}
        assert np.array_equal(file.numbers["c"].source(), array)
        assert file.path.stat().st_size < 2000


@pytest.mark.usefixtures("scratch")
def test_sizes_beyond_any_file_are_answered_as_the_file(tmp_path: Path) -> None:
    for dims in ([1 << 62, 1 << 62], [1 << 41, 1], [-1, 4], [1 << 21, 1 << 21]):
        tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=dims, raw_data=b"1234")
        model = with_weight("w", tensor, op="Add")
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 4
        model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 4
        onnx.save(model, tmp_path / "m.onnx")
        assert dicts(zs.audit(model, "mnn")) == dicts(zs.audit(tmp_path / "m.onnx", "mnn"))


def test_narrow_types_have_their_length() -> None:
    int4 = helper.make_tensor("w", TensorProto.INT4, (100, 101), [1] * 10100)
    with model_file(with_weight("w", int4), weights=False) as file:
        assert file.path.with_name("model.weights").stat().st_size == 5050
        assert (file.numbers["w"].source().astype(np.int8) == 1).all()


def test_numbers_without_a_folder_are_named() -> None:
    model = with_weight("w", declared(1 << 10, 1 << 10))
    words = "the numbers of a constant lie in 'w.bin', and a model in memory does not say in which"
    assert [note for note in zs.audit(model, "ncnn").notes if words in note]
    assert [note for note in zs.shapes(model).notes if words in note]
    for call in (
        lambda: zs.port(model, "ncnn"),
        lambda: zs.verify(model, "numpy"),
        lambda: zs.bisect(model, EXAMPLES / "clean.onnx"),
        lambda: zs.equivalent(model, EXAMPLES / "clean.onnx"),
    ):
        with pytest.raises(zs.ModelError, match=r"^ModelProto 'weighty': the numbers of 'w' lie"):
            call()


def test_more_than_a_protocol_buffer_holds_is_external_data(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from zerostride.models.formats.onnx import in_memory

    array = np.arange(1 << 12, dtype=np.float32).reshape(64, 64)
    model = with_weight("w", numpy_helper.from_array(array, "w"))
    with model_file(model) as file:
        assert [*file.path.parent.iterdir()] == [file.path]
    monkeypatch.setattr(in_memory, "MAX_INLINE", 1 << 10)
    with model_file(model) as file:
        assert file.path.stat().st_size < 1000
        (tensor,) = onnx.load(file.path).graph.initializer
        assert np.array_equal(numpy_helper.to_array(tensor), array)
    result = zs.port(model, "ncnn").result
    assert result.graph.initializer[0].raw_data == array.tobytes()


# Errors.


@pytest.mark.usefixtures("scratch")
def test_errors_name_the_object() -> None:
    bad = onnx.ModelProto(ir_version=8)
    with pytest.raises(zs.ModelError, match=r"^ModelProto: not an ONNX model: it has neither"):
        zs.audit(bad, "ncnn")
    for data in (b"\x08\x07\xff\xff", b"\x08"):
        with pytest.raises(zs.ModelError, match=r"^bytes of an ONNX file: not a") as caught:
            zs.audit(data, "ncnn")
        assert "zerostride-" not in str(caught.value)
    model = onnx.load(EXAMPLES / "clean.onnx")
    with pytest.raises(zs.ZerostrideError) as caught:
        zs.audit(model, "ncnn", sizes={"absent": 3})
    assert "zerostride-" not in str(caught.value)
    with pytest.raises(ArgumentError, match=r"are for a torch\.nn\.Module"):
        zs.audit(model, "ncnn", args=(1,))


@pytest.mark.usefixtures("scratch")
def test_bytes_of_a_tflite_file_are_answered_as_the_file(tmp_path: Path) -> None:
    file = of_one("ADD", (5, 5), (5,)).write(tmp_path / "m.tflite")
    data = Path(file).read_bytes()
    report = zs.audit(data, "ncnn", via="none")
    assert report.model == "bytes of a .tflite file"
    assert dicts(report) == dicts(zs.audit(file, "ncnn", via="none"))
    assert not report.ok
    ported = zs.port(data, "ncnn", via="none")
    assert isinstance(ported.result, bytes)
    assert ported.result[4:8] == b"TFL3"
    assert zs.audit(ported.result, "ncnn", via="none").ok
    with pytest.raises(zs.ModelError, match=r"^bytes of a \.tflite file: "):
        zs.audit(data[:40], "ncnn")


def test_an_object_is_recognised_without_its_library() -> None:
    """By the names of its classes, which a class of a caller may not share by accident."""
    for row in KINDS:
        for package, name in row.classes:
            subclass = type("Own", (type(name, (), {"__module__": f"{package}.inner"}),), {})
            assert kind_of(subclass()) is row
            assert kind_of(type(name, (), {"__module__": f"{package}_other"})()) is None


def test_a_path_is_its_own_file(tmp_path: Path) -> None:
    with model_file(tmp_path / "m.onnx") as file:
        assert file == ModelFile(tmp_path / "m.onnx", stem="m")
