"""Models brought to engines: port, the real converter, and the outputs on the engine."""

from __future__ import annotations

import hashlib
import io
import json
import re
import shlex
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zerostride as zs
from zerostride.models.findings import Outcome
from zerostride.models.formats.onnx.external_files import save_inside
from zerostride.runtimes.convert import tries as conversion
from zerostride.runtimes.convert.folder import input_files

onnx: Any = pytest.importorskip("onnx", reason="the models are made with the onnx package")

pytestmark = pytest.mark.conformance
EXAMPLES = Path(__file__).parents[2] / "examples"
#: An engine, the packages of its converter, and the files that are written.
ENGINES = {
    "ncnn": (("pnnx", "ncnn"), ("m.ncnn.param", "m.ncnn.bin", "m.ncnn.py")),
    "openvino": (("openvino",), ("m.openvino.xml", "m.openvino.bin")),
    "mnn": (("MNN",), ("m.mnn",)),
}
#: The files that every conversion writes.
RECORDS = {"report.html", "how.txt", "inputs.npz"}
#: The second run of `VECTOR` shows how numbers below 0 are read.
SECOND = "inputs-2.npz"
#: A Max of three operands is wrong on ncnn and MNN, until the port writes two.
VECTOR = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[1,C,6,C] x) => (float[1,C,6,C] y) <float[3] bias = {1, 2, 3}> {
    r = Relu(x)
    y = Max(r, bias, x)
}
"""


def needed(engine: str) -> None:
    for name in ENGINES[engine][0]:
        pytest.importorskip(name, reason="the converter is an extra")


def vector(folder: Path) -> Path:
    path = folder / "m.onnx"
    onnx.save(onnx.parser.parse_model(VECTOR), path)
    return path


#: pnnx drops the batch axis of the convolution alone.
SAMPLES = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[3,2,4,4] x, float[5,1,1] z) => (float[3,5,4,4] y, float[5,1,1] t) <float[5,2,1,1] w> {
    c = Conv(x, w)
    y = Mul(c, z)
    t = Relu(z)
}
"""


def test_several_samples_are_run_one_after_the_other(tmp_path: Path) -> None:
    needed("ncnn")
    model = onnx.parser.parse_model(SAMPLES)
    weights = np.random.default_rng(0).normal(size=(5, 2, 1, 1)).astype(np.float32)
    del model.graph.initializer[:]
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    onnx.save(model, tmp_path / "m.onnx")
    report = zs.convert(tmp_path / "m.onnx", "ncnn", tmp_path / "out")
    assert report.ok, (report.checks, report.findings)
    assert [check.outcome for check in report.checks] == [Outcome.AGREES] * 2
    again = zs.verify(tmp_path / "m.onnx", "ncnn", against=tmp_path / "out" / "m.ncnn.param")
    assert [check.outcome for check in again.checks] == [Outcome.AGREES] * 2


@pytest.mark.parametrize("engine", ENGINES)
def test_a_model_is_ported_converted_and_proven(engine: str, tmp_path: Path) -> None:
    needed(engine)
    report = zs.convert(vector(tmp_path), engine, tmp_path / "out", sizes={"C": 3})
    assert report.ok, (report.checks, report.findings)
    assert report.command == "convert"
    assert [check.outcome for check in report.checks] == [Outcome.AGREES]
    files = {file.name for file in (tmp_path / "out").iterdir()}
    assert files == {f"m.{engine}.onnx", *ENGINES[engine][1], conversion.STATE, *RECORDS, SECOND}
    assert report.output == str(tmp_path / "out" / ENGINES[engine][1][0])
    assert (engine != "openvino") == bool(report.changes)
    # pnnx drops the batch axis where an op such as a convolution shows it, and here none does.
    kept = any("takes its inputs with their batch axes" in note for note in report.notes)
    assert kept == (engine == "ncnn")


def test_a_second_call_converts_only_what_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed("mnn")
    calls = []

    def counted(*words: Any) -> Any:
        calls.append(words)
        return run_converter(*words)

    run_converter = conversion.run_converter
    monkeypatch.setattr(conversion, "run_converter", counted)
    model, out = vector(tmp_path), tmp_path / "out"
    for expected in (1, 1):
        assert zs.convert(model, "mnn", out, sizes={"C": 3}).ok
        assert len(calls) == expected
    (out / "m.mnn").write_bytes(b"another file")
    assert zs.convert(model, "mnn", out, sizes={"C": 3}).ok
    assert len(calls) == 2
    (out / conversion.STATE).write_text("no JSON")
    assert zs.convert(model, "mnn", out, sizes={"C": 3}).ok
    assert len(calls) == 3
    content = onnx.load(model)
    content.graph.initializer[0].CopyFrom(
        onnx.numpy_helper.from_array(np.array([4, 5, 6], np.float32), "bias")
    )
    onnx.save(content, model)
    assert zs.convert(model, "mnn", out, sizes={"C": 3}).ok
    assert len(calls) == 4


def test_a_layer_that_the_engine_lacks_is_an_answer(tmp_path: Path) -> None:
    needed("ncnn")
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,3,6] x) => (int64[1,6] y) { y = ArgMax<axis = 1, keepdims = 0>(x) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    report = zs.convert(tmp_path / "m.onnx", "ncnn", tmp_path / "out")
    assert not report.ok
    assert report.output is None
    (check,) = report.checks
    assert (check.outcome, check.op) == (Outcome.REFUSED, "pnnx")
    assert re.search("ncnn does not load what pnnx wrote: .*layers? ArgMax", check.detail)
    assert {file.name for file in (tmp_path / "out").iterdir()} == {"m.ncnn.onnx", *RECORDS}


def external(folder: Path) -> Path:
    """The model of `vector`, with the numbers of its constant in a file of their own."""
    model = onnx.parser.parse_model(VECTOR.replace("C,6,C", "3,6,3"))
    (bias,) = model.graph.initializer
    bias.CopyFrom(onnx.numpy_helper.from_array(np.array([1, 2, 3], "float32"), "bias"))
    data = {"save_as_external_data": True, "location": "m.data", "size_threshold": 0}
    onnx.save(model, folder / "m.onnx", **data)
    assert (folder / "m.data").stat().st_size == 12
    return folder / "m.onnx"


@pytest.mark.parametrize("engine", ENGINES)
def test_external_data_is_converted(engine: str, tmp_path: Path) -> None:
    needed(engine)
    report = zs.convert(external(tmp_path), engine, tmp_path / "out")
    assert [check.outcome for check in report.checks] == [Outcome.AGREES], report.checks
    assert not list((tmp_path / "out").glob("*pnnxsim*"))


def test_external_data_beyond_a_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, copy = external(tmp_path), tmp_path / "copy.onnx"
    most = "zerostride.models.formats.onnx.external_files._MOST_BYTES"
    monkeypatch.setattr(most, path.stat().st_size + 11)
    with pytest.raises(zs.ModelError, match="pnnx asks for it, and with it the file is larger"):
        save_inside(path, copy, "pnnx asks for it")
    assert not copy.exists()
    monkeypatch.setattr(most, path.stat().st_size + 12)
    assert save_inside(path, copy, "pnnx asks for it")
    assert not save_inside(copy, tmp_path / "again.onnx", "pnnx asks for it")
    assert not (tmp_path / "again.onnx").exists()


def test_a_module_is_converted(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="exports the module")
    pytest.importorskip("onnxscript", reason="PyTorch's exporter needs it")
    needed("openvino")
    module = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())
    report = zs.convert(module, "openvino", tmp_path / "out", args=(torch.ones(2, 4),))
    assert report.ok, report.checks
    assert (tmp_path / "out" / "Sequential.openvino.xml").is_file()


def call(*words: Any) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "zerostride", "convert", *map(str, words)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def test_the_command_writes_a_report_and_names_what_is_next(tmp_path: Path) -> None:
    needed("mnn")
    model, out = vector(tmp_path), tmp_path / "out"
    status, text, _ = call(model, "--to", "mnn", "-o", out, "--set", "C=3")
    assert status == 0
    assert "1 agrees: 1 y (54 numbers" in text
    assert text.endswith(f"\nreport: {out / 'report.html'}\n")
    assert "Conversion" in (out / "report.html").read_text()
    status, text, _ = call(model, "--to", "mnn", "-o", out, "--set", "C=3", "--json")
    assert status == 0
    assert json.loads(text)["command"] == "convert"


@pytest.mark.parametrize("engine", ENGINES)
def test_folders_relative_to_the_present_one(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed(engine)
    vector(tmp_path)
    monkeypatch.chdir(tmp_path)
    report = zs.convert("m.onnx", engine, "out", sizes={"C": 3})
    assert report.ok, report.checks
    assert report.output == str(Path("out", ENGINES[engine][1][0]))


def test_how_txt_says_how_to_do_it_again(tmp_path: Path) -> None:
    needed("mnn")
    model, out = vector(tmp_path), tmp_path / "out"
    status, text, _ = call(model, "--to", "mnn", "-o", out, "--set", "C=3", "--seed", "5")
    assert status == 0, text
    how = (out / "how.txt").read_text()
    lines = {line.partition(" ")[0]: line.partition(" ")[2].strip() for line in how.splitlines()}
    assert lines["again"] == "zerostride convert m.onnx --target mnn -o FOLDER --set C=3 --seed 5"
    assert hashlib.sha256(model.read_bytes()).hexdigest() in lines["model"]
    assert lines["by"] == f"zerostride {zs.__version__}, mnnconvert {version('MNN')}"
    assert lines["engine"] == f"mnn {version('MNN')}"
    assert "1 agrees: 1 y" in how
    assert "1  Max" in how
    assert str(tmp_path) not in how
    proof = shlex.split(lines["proof"])
    assert proof[:3] == ["zerostride", "verify", "m.onnx"]
    shutil.copy(model, out / "m.onnx")
    done = subprocess.run(
        [sys.executable, "-m", *proof], cwd=out, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "1 agrees: 1 y" in done.stdout


def test_inputs_beyond_a_mail_are_not_written(tmp_path: Path) -> None:
    array = np.zeros(3, np.float32)
    runs = [{"file": array, "a/b": array}, {"file": array, "a/b": array}]
    files = input_files(runs)
    assert [*files] == ["inputs.npz", "inputs-2.npz"]
    assert files == input_files(runs)
    with np.load(io.BytesIO(files["inputs.npz"])) as arrays:
        assert sorted(arrays) == ["a/b", "file"]
    large = np.zeros((64 << 20) + 1, np.uint8)
    assert not input_files([{"x": large}])
    assert input_files([{"x": large[1:]}])


@pytest.mark.parametrize("engine", ["mnn", "ncnn"])
def test_a_conversion_that_fails_says_whose_limit_it_is(engine: str, tmp_path: Path) -> None:
    needed(engine)
    text = """<ir_version: 8, opset_import: ["" : 18]>
    g (uint8[4] x) => (uint8[4] y) { y = BitwiseNot(x) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    status, output, _ = call(tmp_path / "m.onnx", "--to", engine, "-o", tmp_path / "out")
    words = " ".join(output.split())
    assert status == 1
    assert "not converted" in words
    assert "nothing" not in words
    assert "the limit is " in words
    assert "next: zerostride audit" in words
    assert output.count("\n") <= 24
    assert (tmp_path / "out" / "how.txt").is_file()


#: The nodes are in another order than the outputs, and nothing reads the input `a`.
OUTPUTS = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[1,3,4,5] a, float[1,3,4,5] b, float[1,3,4,5] c)
=> (float[1,3,4,5] negative, float[1,3,4,5] difference) {
    r = Relu(c)
    difference = Sub(r, b)
    negative = Neg(b)
}
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_outputs_are_compared_in_the_models_order(engine: str, tmp_path: Path) -> None:
    needed(engine)
    onnx.save(onnx.parser.parse_model(OUTPUTS), tmp_path / "m.onnx")
    report = zs.convert(tmp_path / "m.onnx", engine, tmp_path / "out")
    assert [check.op for check in report.checks] == ["negative", "difference"]
    assert report.ok, report.checks


def test_bisect_finds_no_culprit_in_outputs_in_another_order(tmp_path: Path) -> None:
    needed("ncnn")
    model = onnx.parser.parse_model(OUTPUTS.replace("float[1,3,4,5] a, ", ""))
    onnx.save(model, tmp_path / "m.onnx")
    report = zs.convert(tmp_path / "m.onnx", "ncnn", tmp_path / "out")
    assert zs.bisect(tmp_path / "m.onnx", report.output).culprit is None


# Models that need sizes or other ops.


@pytest.mark.parametrize("engine", ["ncnn", "openvino", "mnn"])
def test_sizes_that_nobody_gives_are_chosen(tmp_path: Path, engine: str) -> None:
    needed(engine)
    report = zs.convert(vector(tmp_path), engine, tmp_path / "out")
    assert report.ok
    assert "open sizes were chosen: C=3" in report.notes[0]
    assert ("alone" in report.notes[0]) == (engine == "ncnn")


#: Rows of a table, PyTorch's softmax, a largest number.
LACKING = """
<ir_version: 9, opset_import: ["" : 18]>
g (int64[1,5] ids) => (float[1,5,4] y, float[1,1] m)
<float[9,4] table, float[4,4] w, float zero = {0}, float scale = {0.5}, int64[2] axes = {1, 2}> {
    x = Gather(table, ids)
    q = MatMul(x, w)
    k = Transpose<perm = [0, 2, 1]>(x)
    s = MatMul(q, k)
    t = Mul(s, scale)
    a = Softmax<axis = -1>(t)
    n = IsNaN(a)
    p = Where(n, zero, a)
    y = MatMul(p, x)
    r = ReduceMax<keepdims = 0>(y, axes)
    one = Constant<value = int64[2] {1, 1}>()
    m = Reshape(r, one)
}
"""


@pytest.mark.parametrize("engine", ["ncnn", "mnn"])
def test_ops_that_a_converter_lacks_are_written_as_others(tmp_path: Path, engine: str) -> None:
    needed(engine)
    pytest.importorskip("onnxruntime", reason="it computes what is constant")
    model = onnx.parser.parse_model(LACKING)
    numbers = np.random.default_rng(0)
    for name, shape in (("table", (9, 4)), ("w", (4, 4))):
        array = numbers.standard_normal(shape).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    onnx.save(model, tmp_path / "m.onnx")
    audit = zs.audit(tmp_path / "m.onnx", engine)
    assert ("IsNaN" in audit.lacks) == (engine == "mnn")
    assert not audit.ok
    report = zs.convert(tmp_path / "m.onnx", engine, tmp_path / "out", seed=3)
    assert report.ok, report.checks
    assert "Where" in report.notes[0]
    assert "IsNaN" not in report.notes[0]  # it is gone with the Where that reads it
    assert not report.lacks


# Refusals; those that need no converter are in tests/models/test_convert_refusals.py.


def test_what_cannot_be_converted(tmp_path: Path) -> None:
    needed("openvino")
    model = vector(tmp_path)
    with pytest.raises(zs.ModelError, match="convert to openvino reads ONNX models, PyTorch"):
        zs.convert(EXAMPLES / "broadcast_explicit.xml", "openvino", tmp_path / "out")
    (tmp_path / "file").write_text("")
    with pytest.raises(zs.ModelError, match="no folder can be made there"):
        zs.convert(model, "openvino", tmp_path / "file", sizes={"C": 3})
    status, _, error = call(tmp_path / "none.onnx", "--to", "openvino", "-o", tmp_path / "out")
    assert status == 2
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "engine", "words"),
    [
        ("clean", "openvino", "clean.openvino.xml means the same for every size, but for rounding"),
        (
            "unet_dynamic",
            "openvino",
            "unet_dynamic.openvino.xml means the same for every size, but for rounding",
        ),
        (
            "unet_dynamic",
            "mnn",
            "unet_dynamic.mnn means the same for the sizes in its file, but for rounding",
        ),
        ("clean", "ncnn", "clean.ncnn.param means the same for every size"),
    ],
)
def test_the_converted_file_is_proven(tmp_path: Path, name: str, engine: str, words: str) -> None:
    needed(engine)
    report = zs.convert(EXAMPLES / f"{name}.onnx", engine, tmp_path / "out")
    assert f"proven: {words}" in report.notes
