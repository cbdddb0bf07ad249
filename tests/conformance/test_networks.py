"""Networks through the real converters: no wrong `same`, and no wrong rewrite.

The networks of `examples/networks` are exported by PyTorch and turned into the other formats by
the engines' converters; then each file is audited, verified, ported and verified again for several
engines. One network here; ZEROSTRIDE_NETWORKS=all for all of them, and for all engines.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from campaigns.models.measure import files_in, measure, targets

for needed in ("torch", "onnx", "onnxscript"):
    if importlib.util.find_spec(needed) is None:
        pytest.skip(f"the networks are made with {needed}", allow_module_level=True)

pytestmark = pytest.mark.conformance

SCRIPTS = Path(__file__).parents[2] / "examples" / "networks"
ALL = os.environ.get("ZEROSTRIDE_NETWORKS") == "all"
CONVERTERS = {"ir": "openvino", "ncnn": "pnnx", "mnn": "MNN"}
TO = [to for to, package in CONVERTERS.items() if importlib.util.find_spec(package)]
NETWORKS = ["convnext", "mobilenet", "swin", "transformer", "unet"] if ALL else ["convnext"]
ENGINES = targets() if ALL else ("onnxruntime", "openvino", "ncnn", "mnn")


def script(name: str, *arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / name), *arguments], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("networks")
    script("make.py", str(path), "--only", *NETWORKS)
    if TO:
        script("convert.py", str(path), "--to", *TO)
    return path


def test_every_network_is_converted(folder: Path) -> None:
    names = {file.name for file in files_in([folder])}
    suffixes = [".onnx", *({"ir": ".xml", "ncnn": ".ncnn.param", "mnn": ".mnn"}[to] for to in TO)]
    for network in NETWORKS:
        for exporter in ("", "_script"):
            assert {f"{network}{exporter}{suffix}" for suffix in suffixes} <= names


@pytest.mark.parametrize("suffix", [".onnx", ".xml", ".ncnn.param", ".mnn"])
def test_no_same_verdict_or_rewrite_is_denied(folder: Path, suffix: str) -> None:
    files = [file for file in files_in([folder]) if file.name.endswith(suffix)]
    if not files:
        pytest.skip(f"no converter to {suffix} is installed")
    agreed = 0
    for file in files:
        for pair in measure(file, ENGINES):
            where = f"{file.name} on {pair.target}"
            assert not pair.faults, (where, pair.faults)
            assert not pair.wrong_same, (where, pair.wrong_same)
            assert not pair.wrong_rewrites, (where, pair.wrong_rewrites)
            assert "read" not in pair.missing, (where, pair.missing)
            agreed += pair.outcomes.get("agrees", 0)
    assert agreed > len(files)
