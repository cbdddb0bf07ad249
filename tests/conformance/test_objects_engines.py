"""Models in memory of onnx_ir, PyTorch and OpenVINO, and their ports on real engines."""

from __future__ import annotations

import gc
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the models are ONNX's")
pytest.importorskip("onnx_ir", reason="its objects are tested")
pytest.importorskip("onnxruntime", reason="ports are run there")
pytest.importorskip("openvino", reason="its objects are tested")
pytest.importorskip("torch", reason="its objects are tested")
pytest.importorskip("onnxscript", reason="the exporter needs it")

import onnx
import onnx_ir
import onnxruntime
import openvino
import torch

import zerostride as zs
from zerostride.models.formats import model_file as model_files
from zerostride.models.formats.model_file import model_file
from zerostride.passes import Port

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.usefixtures("own_cache"),
    pytest.mark.filterwarnings("ignore"),
]

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ("tiny_vision.onnx", "transformer_dynamic.onnx", "bugs/ncnn-4930.onnx")


class Bias(torch.nn.Module):
    """ncnn aligns the bias with the rows."""

    def __init__(self):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.arange(5.0))
        self.linear = torch.nn.Linear(5, 600)

    def forward(self, x):
        return self.linear(x + self.bias)


def program():
    torch.manual_seed(0)
    return torch.onnx.export(Bias(), (torch.ones(5, 5),), dynamo=True, verbose=False)


def dicts(report):
    return [finding.as_dict() for finding in report.findings]


def run(model, feeds):
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return session.run(None, feeds)


def random_feeds(model):
    rng = np.random.default_rng(0)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    kinds = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(bool)": np.bool_}
    return {
        one.name: rng.integers(
            0, 2, [size if isinstance(size, int) else 3 for size in one.shape]
        ).astype(kinds[one.type])
        for one in session.get_inputs()
    }


def as_file(model, path):
    """What the library itself writes of an object."""
    if isinstance(model, openvino.Model):
        openvino.serialize(model, str(path / "m.xml"))
        return path / "m.xml"
    if isinstance(model, onnx_ir.Model):
        onnx_ir.save(model, path / "m.onnx")
    else:
        model.save(path / "m.onnx")
    return path / "m.onnx"


OBJECTS = {
    **{f"onnx_ir {n}": lambda n=n: onnx_ir.load(EXAMPLES / n) for n in NAMES},
    **{f"openvino {n}": lambda n=n: openvino.Core().read_model(EXAMPLES / n) for n in NAMES},
    "ONNXProgram": program,
}


@pytest.mark.parametrize("name", OBJECTS)
def test_an_object_is_answered_as_the_file_that_its_library_writes(name, tmp_path):
    model = OBJECTS[name]()
    text = str(model)
    file = as_file(model, tmp_path)
    of_file = zs.audit(file, "ncnn", via="none")
    of_object = zs.audit(model, "ncnn", via="none")
    assert of_file.findings
    assert dicts(of_object) == dicts(of_file)
    assert of_object.notes == of_file.notes
    assert of_object.model.startswith(("onnx_ir.Model '", "openvino.Model '", "ONNXProgram '"))
    assert zs.shapes(model).shapes == zs.shapes(file).shapes
    assert str(model) == text


@pytest.mark.parametrize("name", NAMES)
def test_a_port_in_memory_computes_the_same(name):
    proto = onnx.load(EXAMPLES / name)
    feeds = random_feeds(proto)
    expected = run(proto, feeds)
    of_proto = zs.port(proto, "ncnn", via="none")
    of_ir = zs.port(onnx_ir.load(EXAMPLES / name), "ncnn", via="none")
    of_bytes = zs.port((EXAMPLES / name).read_bytes(), "ncnn", via="none")
    assert of_proto.changes
    assert len(of_proto.changes) == len(of_ir.changes) == len(of_bytes.changes)
    assert isinstance(of_ir.result, onnx_ir.Model)
    for result in (
        of_proto.result,
        onnx_ir.to_proto(of_ir.result),
        onnx.load_model_from_string(of_bytes.result),
    ):
        assert result.graph != proto.graph
        for new, old in zip(run(result, feeds), expected, strict=True):
            # ONNX Runtime fuses other nodes after a port.
            np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-6)


def test_a_program_is_ported_to_a_program():
    model = program()
    report = zs.port(model, "ncnn", via="none")
    assert type(report.result) is type(model)
    assert report.result is not model
    assert len(report.changes) == 1
    x = torch.randn(5, 5)
    assert torch.equal(report.result(x)[0], model(x)[0])
    assert zs.audit(report.result, "ncnn", via="none").ok
    assert not zs.audit(model, "ncnn", via="none").ok
    assert zs.bisect(model, report.result).ok
    assert zs.verify(model, "onnxruntime", against=report.result).ok


def unequal_ir():
    """An IR that ncnn would align otherwise."""
    x = openvino.opset13.parameter([5, 5], np.float32, name="x")
    bias = openvino.opset13.constant(np.arange(5, dtype=np.float32), name="bias")
    large = openvino.opset13.constant(np.ones((5, 600), np.float32), name="large")
    total = openvino.opset13.add(x, bias, name="total")
    return openvino.Model([openvino.opset13.matmul(total, large, False, False)], [x], "biased")


def test_a_model_of_openvino_is_ported_to_a_model_of_openvino():
    model = unequal_ir()
    report = zs.port(model, "ncnn", via="none")
    assert report.model == "openvino.Model 'biased'"
    assert isinstance(report.result, openvino.Model)
    assert len(report.changes) == 1
    x = np.random.default_rng(0).random((5, 5), np.float32)
    core, config = openvino.Core(), {"INFERENCE_PRECISION_HINT": "f32"}
    old, new = (core.compile_model(m, "CPU", config)(x)[0] for m in (model, report.result))
    np.testing.assert_array_equal(old, new)
    assert zs.audit(report.result, "ncnn", via="none").ok
    assert not zs.audit(model, "ncnn", via="none").ok
    assert zs.verify(model, "openvino", whole=True).ok


def test_a_difference_between_objects_is_a_culprit(tmp_path):
    model = program()
    other = onnx.ModelProto()
    other.CopyFrom(model.model_proto)
    next(node for node in other.graph.node if node.op_type == "Add").op_type = "Sub"
    report = zs.bisect(model, other)
    assert report.culprit.op == "Add"
    assert "zerostride-" not in str(report) + report.to_json()
    checked = zs.verify(model, "onnxruntime", against=other)
    assert not checked.ok
    assert "zerostride-" not in str(checked) + checked.to_json()


def test_a_refusal_of_an_engine_names_no_temporary_file():
    file = EXAMPLES / "clean.onnx"
    model = onnx.load(file)
    model.graph.node[0].op_type = "Absent"
    texts = []
    for ask in (
        lambda: zs.verify(model, "onnxruntime", whole=True),
        lambda: zs.verify(model, "openvino", whole=True),
        lambda: zs.verify(file, "onnxruntime", against=model),
        lambda: zs.bisect(model, other_engine="openvino"),
        lambda: zs.bisect(file, model),
        lambda: zs.bisect(model, file),
    ):
        try:
            report = ask()
        except zs.ZerostrideError as error:
            texts.append(str(error))
        else:
            assert not report.ok
            texts.append(str(report) + report.to_json())
    assert all("ModelProto 'clean'" in text for text in texts)
    for temporary in (tempfile.gettempdir(), "zerostride-", "in-memory", "model.onnx"):
        assert not [text for text in texts if temporary in text]


def test_an_object_is_converted(tmp_path):
    report = zs.convert(program(), "ncnn", tmp_path / "out")
    assert report.ok
    assert report.output == str(tmp_path / "out" / "main_graph.ncnn.param")
    record = (tmp_path / "out" / "how.txt").read_text()
    assert "zerostride.convert(model, 'ncnn', FOLDER)" in record
    assert "ONNXProgram 'main_graph', in memory" in record


# Weights.


def test_weights_of_openvino_are_holes(monkeypatch):
    used = []
    real = model_files.write_object

    def watched(*arguments, **options):
        result = real(*arguments, **options)
        stat = result.path.with_suffix(".bin").stat()
        used.append((stat.st_size, 512 * stat.st_blocks))
        return result

    monkeypatch.setattr(model_files, "write_object", watched)
    x = openvino.opset13.parameter([4, 1 << 12], np.float32, name="x")
    large = openvino.opset13.constant(np.full((1 << 12, 1 << 12), 2, np.float32), name="large")
    product = openvino.opset13.matmul(x, large, False, False)
    target = openvino.opset13.constant(np.array([2, -1]), name="target")
    model = openvino.Model([openvino.opset13.reshape(product, target, False)], [x], "m")
    *_, result = zs.shapes(model).shapes.values()
    assert result == (2, 2 << 12)
    ((length, blocks),) = used
    assert length >= 1 << 26
    assert blocks < 1 << 16
    with model_file(model, weights=False) as file:
        assert [*file.numbers] == ["large"]
        assert (file.numbers["large"].source() == 2).all()


def external(tmp_path):
    """A model of onnx_ir whose weights lie in a folder of their own."""
    folder = tmp_path / "own"
    folder.mkdir()
    model = program().model
    onnx_ir.save(model, folder / "m.onnx", external_data="w.bin", size_threshold_bytes=100)
    return onnx_ir.load(folder / "m.onnx"), folder / "w.bin"


def test_external_data_of_onnx_ir_stays_where_it_is(tmp_path):
    model, weights = external(tmp_path)
    assert zs.audit(model, "ncnn", via="none").findings
    with model_file(model) as file:
        (link,) = [one for one in file.path.parent.iterdir() if one != file.path]
        assert link.name == "w.bin"
        assert link.samefile(weights)
    report = zs.port(model, "ncnn", via="none")
    tensors = [value.const_value for value in report.result.graph.initializers.values()]
    outside = [tensor for tensor in tensors if isinstance(tensor, onnx_ir.ExternalTensor)]
    assert {Path(tensor.path) for tensor in outside} == {weights}
    feeds = {"x": np.random.default_rng(0).random((5, 5), np.float32)}
    models = [onnx_ir.to_proto(loaded(one)) for one in (report.result, model)]
    (new,), (old,) = (run(one, feeds) for one in models)
    np.testing.assert_array_equal(new, old)
    weights.unlink()
    gc.collect()
    with pytest.raises(zs.ModelError, match=r"w\.bin: the model's external data is missing"):
        zs.port(model, "ncnn", via="none")


def loaded(model):
    copy = model.clone()
    onnx_ir.external_data.load_to_model(copy)
    return copy


# The pass.


def test_the_pass_runs_in_a_pipeline():
    model = onnx_ir.load(EXAMPLES / "bugs" / "ncnn-4930.onnx")
    text = str(model)
    port = Port("ncnn", via="none")
    assert port.report is None
    pipeline = onnx_ir.passes.Sequential(
        onnx_ir.passes.common.RemoveUnusedNodesPass(),
        port,
        onnx_ir.passes.common.TopologicalSortPass(),
    )
    result = pipeline(model)
    assert result.modified
    assert result.model is not model
    assert zs.audit(result.model, "ncnn", via="none").ok
    assert len(port.report.changes) == 1
    assert str(model) == text
    again = port(result)
    assert not again.modified
    assert repr(port) == "Port('ncnn')"


def test_the_pass_refuses_what_it_cannot_keep():
    with pytest.raises(zs.BroadcastError):
        Port("absent")
    with pytest.raises(zs.ZerostrideError, match="does not write for ncnn"):
        Port("ncnn", via="mnnconvert")
    model = onnx_ir.load(EXAMPLES / "clean.onnx")
    model.opset_imports.clear()
    with pytest.raises(onnx_ir.passes.PreconditionError, match="does not import ONNX's op set"):
        Port("ncnn")(model)
    port = Port("ncnn", via="none")
    result = port(onnx_ir.load(EXAMPLES / "bugs" / "ncnn-4930.onnx"))
    broken = onnx_ir.load(EXAMPLES / "bugs" / "ncnn-4930.onnx")
    port.report = zs.audit(broken, "ncnn", via="none")
    port.ensures(result.model)  # nothing was changed
    from dataclasses import replace

    changes = zs.port(broken, "ncnn", via="none", dry_run=True).changes
    port.report = replace(port.report, changes=changes)
    with pytest.raises(onnx_ir.passes.PostconditionError, match="was rewritten and is different"):
        port.ensures(broken)


def test_the_package_imports_without_onnx_ir():
    code = (
        "import sys; sys.modules['onnx_ir'] = None\n"
        "import zerostride\n"
        "try:\n    import zerostride.passes\n"
        "except ImportError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("zerostride.passes needs onnx_ir: pip install onnx-ir")
