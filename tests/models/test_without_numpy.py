"""Audits of .param files in the browser: without NumPy and onnx they answer as with both."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import warnings
from importlib import import_module
from pathlib import Path

import ncnn_draws as draws
import ncnn_models as made
import pytest

import zerostride as zs
from sampled import few
from zerostride.models.formats.ncnn import engine
from zerostride.report import json_text

ROOT = Path(__file__).parents[2]
TARGETS = ("onnxruntime", "openvino", "torch", "litert", "mnn", "tensorrt", "ncnn")
#: Audits files with the modules of the page; with -I and -S Python has no packages.
BROWSER = """
import importlib.util, json, sys
sys.path.insert(0, sys.argv[1])
import questions
questions.open_audit(sys.argv[2])
import numpy, zerostride as zs
from zerostride.report import json_text
assert numpy.__file__.startswith(sys.argv[2]), numpy.__file__
for name in ("onnx", "flatbuffers", "defusedxml", "click", "rich", "ml_dtypes", "ncnn"):
    assert importlib.util.find_spec(name) is None, name
for line in sys.stdin:
    file, target = json.loads(line)
    try:
        text = json_text(zs.audit(file, target))
    except zs.ModelError as error:
        text = str(error)
    print(json.dumps(text))
"""


def networks(seed: int) -> list[str]:
    """Texts: every kind of layer with drawn parameters, and BinaryOps of drawn shapes."""
    rng = random.Random(seed)
    texts = [draws.layer(draw(rng))[0] for draw in draws.DRAWS]
    for op in range(20):
        shapes = [tuple(rng.choice((1, 2, 2, 3)) for _ in range(rng.randint(1, 3))) for _ in "ab"]
        line = f"BinaryOp op 2 1 in0 in1 out0 0={op}"
        texts.append(made.param(*made.inputs(*shapes), line))
        texts.append(made.param("Input in0 0 1 in0", *made.inputs(*shapes)[1:], line))  # open sizes
    for text in ("*(0w,2),-1", "//(0w,2),0h", "max(0w,0.5),-1", "ceil(*(0w,0.3)),-1"):
        texts.append(made.param(made.inputs((3, 4, 6))[0], f'Reshape r 1 1 in0 out0 6="{text}"'))
    return [*texts, "", "7767517\n1 1\nInput", texts[0][:60]]


@pytest.mark.parametrize("seed", few(3, range(20)))
def test_audit_without_numpy_is_the_same(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "site"))
    monkeypatch.setattr(engine, "installed", lambda: False)  # the browser has no ncnn to ask
    playground = import_module("playground")
    zips = [tmp_path / "zerostride.zip", tmp_path / "audit.zip"]
    for path, data in zip(zips, (playground.library(), playground.audit()), strict=True):
        path.write_bytes(data)
    files = [made.write(tmp_path, text, name=f"m{k}") for k, text in enumerate(networks(seed))]
    files += [path for path in ROOT.glob("**/*.param") if "build" not in path.parts]
    questions = [(str(file), target) for file in files for target in TARGETS]
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", BROWSER, *map(str, zips)],
        input="\n".join(map(json.dumps, questions)),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    answers = list(map(json.loads, done.stdout.splitlines()))
    assert len(answers) == len(questions) > 500
    reports = 0
    for (file, target), answer in zip(questions, answers, strict=True):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", zs.EngineVersionWarning)
                expected = json_text(zs.audit(file, target))
            reports += 1
        except zs.ModelError as error:
            expected = str(error)
        assert answer == expected, (Path(file).read_text(), target)
    assert reports > 500
