"""Engines that zerostride starts keep no identity for telemetry, and send nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

onnx = pytest.importorskip("onnx", reason="the model is made with the onnx package")
from campaigns.models.bisect_graphs import chain, saved  # noqa: E402

pytestmark = pytest.mark.conformance


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("onnxruntime", ["verify", "m.onnx", "--engine", "onnxruntime", "--whole"]),
        ("openvino", ["convert", "m.onnx", "--to", "openvino", "-o", "out"]),
    ],
)
def test_no_file_appears_in_the_home_or_among_temporary_files(
    tmp_path: Path, module: str, words: list[str]
) -> None:
    pytest.importorskip(module, reason="the engine is an extra")
    folders = {name: tmp_path / name for name in ("work", "home", "scratch")}
    for folder in folders.values():
        folder.mkdir()
    saved(chain(0), folders["work"] / "m.onnx")
    environment = {key: value for key, value in os.environ.items() if key not in _SWITCHES}
    environment |= {"HOME": str(folders["home"]), "TMPDIR": str(folders["scratch"])}
    environment["ZEROSTRIDE_CACHE"] = "off"
    command = [sys.executable, "-m", "zerostride", *words]
    done = subprocess.run(
        command, cwd=folders["work"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    left = [path for name in ("home", "scratch") for path in folders[name].rglob("*")]
    assert [path.name for path in left if "telemetry" in str(path) or path.name == ".ses"] == []


#: Environment variables that turn telemetry off, unset here.
_SWITCHES = {"CI", "ORT_DISABLE_TELEMETRY", "TF_BUILD", "JENKINS_URL"}
