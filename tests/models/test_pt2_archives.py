"""Archives of torch.export are checked without PyTorch: what may run code is refused."""

from __future__ import annotations

import copy
import io
import json
import zipfile

import pytest
from pt2_archives import PROGRAM, archive

import zerostride as zs
from zerostride.models.formats.pt2 import checked_archive


def test_parts_that_run_code_are_left_out(tmp_path):
    data = checked_archive(archive(tmp_path / "m.pt2"))
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        program = json.loads(file.read("model/models/model.json"))
        assert file.read("model/data/sample_inputs/model.pt") == b""
        assert file.read("model/data/weights/weight_0") == bytes(20)
    assert program["guards_code"] == []
    (node,) = program["graph_module"]["graph"]["nodes"]
    assert node["metadata"] == {"stack_trace": "s"}
    assert program["graph_module"]["graph"]["tensor_values"]["target"]["dtype"] == 7


def changed(change):
    program = copy.deepcopy(PROGRAM)
    change(program, program["graph_module"]["graph"]["nodes"][0])
    return {"program": program}


def set_target(target):
    return changed(lambda program, node: node.update(target=target))


def set_size(text):
    sizes = [{"as_expr": {"expr_str": text}}]
    return changed(lambda program, node: node.update(inputs=[{"arg": {"sizes": sizes}}]))


def set_tree(kind, context):
    spec = json.dumps([1, {"type": kind, "context": context, "children_spec": []}])
    return changed(
        lambda program, node: program["graph_module"]["module_call_graph"][0]["signature"].update(
            in_spec=spec
        )
    )


def payload(**meta):
    return {"config": {"b": {"path_name": "weight_0", "use_pickle": False, **meta}}}


HOSTILE = {
    "function": set_target("torch.hub.load"),
    "module": set_target("torch.ops.aten.add.Tensor.__class__"),
    "file": set_target("torch.ops.aten.from_file.default"),
    "operator": set_target("_operator.attrgetter"),
    "extension": set_target("#namespace:op"),
    "higher order": set_target("torch.ops.higher_order.triton_kernel_wrapper_mutation"),
    "code in a size": set_size("__import__('os').system('touch ran')"),
    "attribute in a size": set_size("s0.__class__"),
    "tower": set_size("9***9"),
    "string in a size": set_size("'a'"),
    "call in a size": set_size("exec(s0)"),
    "symbol of another name": set_size("Symbol('os')"),
    "symbol with code": set_size("Symbol('s0', integer=exec(s0))"),
    "string behind a symbol": set_size("Symbol('s0')'a'"),
    "size that is no text": set_size(["s0"]),
    "name of a size": changed(lambda p, n: p["range_constraints"].update({"exec": {}})),
    "import by a tree": set_tree(
        "collections.defaultdict", '{"default_factory_module": "os", "default_factory_name": "f"}'
    ),
    "import by a context": set_tree("builtins.dict", '{"__enum__": true}'),
    "object": changed(lambda p, n: n.update(inputs=[{"arg": {"as_custom_obj": {"name": "o"}}}])),
    "pickled weight": {"weights": payload(use_pickle=True)},
    "pickle by default": {"weights": payload(use_pickle=0)},
    "path": {"weights": payload(path_name="../../weight_0")},
    "pickled object": {"constants": payload(path_name="custom_obj_0")},
    "opaque object": {"constants": payload(path_name="opaque_obj_0")},
}


@pytest.mark.parametrize(
    "text",
    [
        "s0 + 1",
        "Symbol('s77', positive=True, integer=True)",
        "Add(Mul(Integer(5), FloorDiv(Symbol('s77', integer=True), Integer(2))), Integer(10))",
        "GreaterThan(Symbol('u0', integer=True), Integer(0))",
        "Rational(-1, 2)",
    ],
)
def test_sizes_of_every_release_are_read(tmp_path, text):
    checked_archive(archive(tmp_path / "m.pt2", **set_size(text)))


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_archives_are_refused(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(zs.ModelError, match="no file that may run code") as caught:
        zs.audit(archive(tmp_path / "m.pt2", **HOSTILE[name]), "ncnn")
    assert len(str(caught.value).splitlines()) == 1
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "text",
    ["s0", "2*s0", "-s1 + 3", "Max(1, s0)", "Eq(Mod(s0, 2), 0)", "s0**2", "(s0 < u3) & True"],
)
def test_sizes_of_exporters_are_accepted(tmp_path, text):
    assert checked_archive(archive(tmp_path / "m.pt2", **set_size(text)))


def test_malformed_archives(tmp_path):
    path = tmp_path / "m.pt2"
    path.write_bytes(b"no archive")
    with pytest.raises(zs.ModelError, match=r"not an archive of torch\.export"):
        zs.audit(path, "ncnn")
    with pytest.raises(zs.ModelError, match="compressed or too large"):
        checked_archive(archive(path, method=zipfile.ZIP_DEFLATED))
    for program in ({}, {"graph_module": []}, {"graph_module": {"module_call_graph": [1]}}):
        with pytest.raises(zs.ModelError, match="malformed"):
            checked_archive(archive(path, program=program))
    data = archive(path).read_bytes()
    for end in range(0, len(data), 97):
        path.write_bytes(data[:end])
        with pytest.raises(zs.ModelError):
            checked_archive(path)
    with pytest.raises(zs.ModelError, match="No such file"):
        checked_archive(tmp_path / "absent.pt2")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("net.pt", "torch.export.save"),
        ("net.PTH", "zs.audit"),
        ("net.mlpackage", "the target coreml"),
        ("graph.pb", "tf2onnx"),
        ("net.keras", "format='onnx'"),
        ("llama.gguf", "weights without operations"),
        ("f.mlir", "the target stablehlo"),
        ("model.pdiparams", "name the .json or .pdmodel"),
        ("net.pdparams", "paddle.jit.save"),
        ("net.engine", "built from"),
    ],
)
def test_other_files_say_what_to_convert_to(tmp_path, name, words):
    with pytest.raises(zs.ModelError) as caught:
        zs.audit(tmp_path / name, "ncnn")
    assert words in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_folder_of_tensorflow_says_what_to_convert_to(tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"")
    with pytest.raises(zs.ModelError, match="tf2onnx"):
        zs.audit(tmp_path, "ncnn")
