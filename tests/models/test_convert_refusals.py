"""What convert refuses before it runs a converter."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from tflite_files import of_one

import warm
import zerostride as zs
from zerostride.runtimes import process
from zerostride.runtimes.convert import converters

EXAMPLES = Path(__file__).parents[2] / "examples"
MODEL = EXAMPLES / "tiny_vision.onnx"


@pytest.mark.parametrize(
    ("model", "engine", "words"),
    [
        (MODEL, "numpy", "for executorch, litert, litert-gpu, mnn, ncnn, openvino, not numpy"),
        (EXAMPLES / "square_add.param", "executorch", "PyTorch modules and .pt2 files, not ncnn"),
        (MODEL, "tensorflow", "not tensorflow; convert a copy of the model with onnx2tf"),
        (EXAMPLES / "square_add.param", "litert-gpu", ".pt2 files, .tflite files, not ncnn"),
        (EXAMPLES / "square_add.param", "mnn", "convert to mnn reads ONNX models, PyTorch modules"),
    ],
)
def test_a_refusal_is_one_sentence(model: Path, engine: str, words: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(zs.ZerostrideError) as raised:
        zs.convert(model, engine, out)
    assert words in str(raised.value)
    done = warm.run(["convert", model, "--to", engine, "-o", out])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"zerostride: {raised.value}\n"
    assert not out.exists()


def test_only_ops_of_onnx_files_are_dequantized(tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert", reason="its converter's port runs on LiteRT")
    file = of_one("ADD", (2, 3), (2, 3)).write(tmp_path / "m.tflite")
    with pytest.raises(zs.ModelError, match="ops of ONNX files alone are written in floats"):
        zs.convert(file, "litert", tmp_path / "out", dequantize=True)


@pytest.mark.parametrize(
    ("engine", "form", "words"),
    [
        ("ncnn", "onnx", "pnnx needs pnnx and ncnn: pip install pnnx ncnn"),
        ("litert", "torch", r"litert-torch .*: pip install 'zerostride\[litert-torch\]'"),
    ],
)
def test_missing_packages_are_named(
    engine: str, form: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(name: str) -> Any:
        return None

    monkeypatch.setattr(converters.importlib.util, "find_spec", absent)
    with pytest.raises(zs.ZerostrideError, match=words):
        converters.converter_to(engine, form)


def test_a_converter_with_an_environment_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("ZEROSTRIDE_PYTHON_ONNX2TF", raising=False)
    place = tmp_path / ".cache" / "zerostride" / "onnx2tf"
    words = f"python3 -m venv {place} && {place}/bin/pip install onnx2tf"
    with pytest.raises(zs.ZerostrideError, match=re.escape(words)):
        zs.convert(MODEL, "litert", tmp_path / "out")
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "python").symlink_to(sys.executable)
    row = converters.converter_to("litert", "onnx")
    assert converters.interpreter_of(row) == str(place / "bin" / "python")
    with pytest.raises(zs.ZerostrideError, match=r"has no onnx2tf: .*No package metadata"):
        zs.convert(MODEL, "litert", tmp_path / "out")
    monkeypatch.setenv("ZEROSTRIDE_PYTHON_ONNX2TF", str(tmp_path / "none"))
    with pytest.raises(zs.ZerostrideError, match="the interpreter for onnx2tf, is not a program"):
        zs.convert(MODEL, "litert", tmp_path / "out")
    assert converters.interpreter_of(converters.converter_to("litert", "litert")) is None


def test_executorch_has_an_environment_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("ZEROSTRIDE_PYTHON_EXECUTORCH", raising=False)
    monkeypatch.setattr(converters.importlib.util, "find_spec", lambda name: None)
    place = tmp_path / ".cache" / "zerostride" / "executorch"
    row = converters.converter_to("executorch", "torch")
    words = f"python3 -m venv {place} && {place}/bin/pip install executorch torch; or name an"
    with pytest.raises(zs.ZerostrideError, match=re.escape(words)) as raised:
        converters.interpreter_of(row)
    assert str(raised.value).endswith("(ZEROSTRIDE_PYTHON_EXECUTORCH)")
    with pytest.raises(zs.ZerostrideError, match=re.escape(words.partition(";")[0])):
        zs.verify(MODEL, "executorch", against=tmp_path / "m.pte")
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "python").symlink_to(sys.executable)
    assert converters.interpreter_of(row) == str(place / "bin" / "python")
    assert process.interpreter_for("executorch") == str(place / "bin" / "python")


def test_files_of_executorch_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "m.pte").write_bytes(b"")
    with pytest.raises(zs.ModelError, match="a program of ExecuTorch, which runs and is not read"):
        zs.audit(tmp_path / "m.pte", "ncnn")


def test_files_of_litert_need_no_converter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(converters.importlib.util, "find_spec", lambda name: None)
    assert converters.converter_to("litert", "litert").engine == "litert"


@pytest.mark.parametrize("name", ["m.ncnn.py", "m_ncnn.py"])
def test_the_script_of_pnnx_tells_the_batch_axes(tmp_path: Path, name: str) -> None:
    file, script = tmp_path / "m.ncnn.param", tmp_path / name
    assert converters.batches_of(file, 2) is None
    line = '    ex.input("in{}", ncnn.Mat(in{}.numpy(), batch_index={}).clone())\n'
    out = "    out.append(torch.from_numpy(out0.numpy(batch_index=0)))\n"
    script.write_text(line.format(0, 0, 1) + line.format(1, 1, 233) + out)
    assert converters.batches_of(file, 2) == ([1, None], [0])
    assert converters.batches_of(file, 3) is None  # a script of another model
