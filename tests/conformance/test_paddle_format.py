"""Models of Paddle compared with Paddle: the readers, the sizes, and the translations to ONNX.

`paddle_worker.py` makes the models in Paddle's own process and computes every variable of them.
ZEROSTRIDE_PYTHON_PADDLE names the interpreter where Paddle has its own environment.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from zerostride.models.audit.run import audit
from zerostride.models.execute import execute
from zerostride.models.findings import Outcome
from zerostride.models.flow.resolved import resolved
from zerostride.models.format_table import lowered
from zerostride.models.formats import paddle, read_model
from zerostride.models.ir.graph import Graph
from zerostride.runtimes.process import engines_kept, interpreter_for
from zerostride.runtimes.verify.checks import verify

WORKER = Path(__file__).with_name("paddle_worker.py")
SECONDS = 600
#: Ops of the models that have no exact equivalent in ONNX.
UNTRANSLATED = {
    *("fmin", "elementwise_fmax"),  # a NaN is left out
    *("pool2d", "max_pool2d_with_index"),  # parts of different sizes
    "while",
}
#: Models with such an op: they are not computed.
NOT_COMPUTED = {"loop", "windows"}
#: Tensors whose sizes depend on the passes of a loop.
UNSIZED = {"loop": {"%5", "%6"}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The models, and the values of their variables."""
    python = interpreter_for("paddle")
    asked = subprocess.run([python, "-c", "import paddle"], capture_output=True, text=True)
    if asked.returncode:
        last = (asked.stderr.strip().splitlines() or ["?"])[-1]
        pytest.skip(f"Paddle is not installed for {python}: {last}")
    target = tmp_path_factory.mktemp("paddle")
    ended = subprocess.run(
        [python, str(WORKER), str(target)], capture_output=True, text=True, timeout=SECONDS
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    return target


Arrays = Mapping[str, np.ndarray[Any, Any]]


def models(folder: Path) -> Iterator[tuple[str, Path, Arrays, Arrays]]:
    """Each model: its name, file, inputs, and the values of its variables."""
    for file in sorted(folder.glob("*.npz")):
        with np.load(file) as data:
            arrays = {name: data[name] for name in data.files}
        inputs = {name[3:]: array for name, array in arrays.items() if name.startswith("in:")}
        values = {name: array for name, array in arrays.items() if not name.startswith("in:")}
        suffix = next(s for s in (".json", ".pdmodel") if file.with_suffix(s).exists())
        yield file.stem, file.with_suffix(suffix), inputs, values


def sized(file: Path, inputs: Arrays) -> Graph:
    """The graph for inputs of these sizes, with every size that follows from them."""
    shapes = {name: array.shape for name, array in inputs.items()}
    graph, _, flow = resolved(paddle.read_sized(file, shapes))
    assert flow is None or not flow.failures, (file.stem, flow.failures)
    return graph


def test_models_of_both_formats_are_read_without_notes(folder: Path) -> None:
    every = [(file.suffix, read_model(file).notes) for _, file, _, _ in models(folder)]
    assert {notes for _, notes in every} == {()}
    assert min([suffix for suffix, _ in every].count(s) for s in (".json", ".pdmodel")) > 30


def test_every_variable_has_paddles_shape_and_type(folder: Path) -> None:
    wrong, checked = [], 0
    for name, file, inputs, values in models(folder):
        known = {value.name: value for value in sized(file, inputs).values()}
        for variable, array in values.items():
            value = known.get(variable)
            if value is None or variable in UNSIZED.get(name, ()):
                continue
            checked += 1
            if (value.shape, value.dtype) != (array.shape, str(array.dtype)):
                wrong.append((name, variable, value.shape, array.shape, value.dtype, array.dtype))
    assert not wrong
    assert checked > 300


def test_open_sizes_agree_with_paddles_declared_sizes(folder: Path) -> None:
    """A size that Paddle infers for every batch is the one that flows from the inputs."""
    wrong = []
    for name, file, _, _ in models(folder):
        graph, _, _ = resolved(read_model(file))
        for value in graph.values():
            pairs = zip(value.shape or (), value.declared or (), strict=False)
            sizes = [(a, b) for a, b in pairs if isinstance(a, int) and isinstance(b, int)]
            if any(a != b for a, b in sizes):
                wrong.append((name, value.name, value.shape, value.declared))
    assert not wrong


def test_translated_models_compute_paddles_values(folder: Path) -> None:
    wrong, checked = [], 0
    for name, file, inputs, values in models(folder):
        if name in NOT_COMPUTED:
            continue
        graph = sized(file, inputs)
        for output, array in execute(graph, inputs).items():
            expected = values.get(output)
            if expected is None:
                continue
            checked += 1
            same = array.shape == expected.shape and array.dtype == expected.dtype
            if not same or not np.allclose(array, expected, 2e-5, 2e-6, equal_nan=True):
                wrong.append((name, output, array.shape, expected.shape))
    assert not wrong
    assert checked > 150


def test_whole_models_agree_with_paddles_predictor(folder: Path) -> None:
    wrong, checked = [], 0
    with engines_kept():
        for name, file, inputs, _ in models(folder):
            if name in NOT_COMPUTED:
                continue
            for check in verify(file, "paddle", inputs=inputs, whole=True).checks:
                checked += 1
                if check.outcome is not Outcome.AGREES:
                    wrong.append((name, check.op, check.outcome, check.detail))
    assert not wrong
    assert checked > 90


def test_ops_without_a_translation_are_the_known_ones(folder: Path) -> None:
    left = {
        node.op
        for _, file, inputs, _ in models(folder)
        for node in lowered(sized(file, inputs)).nodes
        if node.domain
    }
    assert left == UNTRANSLATED


@pytest.mark.parametrize("target", ["paddle", "onnxruntime", "openvino", "ncnn", "litert"])
def test_every_pairwise_op_is_judged(target: str, folder: Path) -> None:
    pairs = {"elementwise_add", "elementwise_sub", "elementwise_mul", "add", "subtract", "multiply"}
    for name, file, _, _ in models(folder):
        report = audit(file, target)
        known = {finding.node: finding.verdict for finding in report.findings}
        for node in read_model(file).nodes:
            if node.op in pairs:
                assert known[node.path] != "unknown", (name, node.path)
        if target == "paddle":
            bad = [finding for finding in report.findings if finding.reason == "invalid_source"]
            assert not bad, name
