"""Bisection: the changed node is the culprit, whatever the other side calls its tensors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from campaigns.models.bisect_graphs import CUBE, chain, faulty, misread, renamed, saved

import warm
import zerostride as zs
from zerostride.models.bisect.search import search
from zerostride.models.bisect.sides import Other
from zerostride.models.execute import execute
from zerostride.models.findings import Outcome
from zerostride.models.formats import read_model
from zerostride.models.judging import Difference, judged
from zerostride.runtimes.process import engines_kept
from zerostride.runtimes.verify.compare import compare

ort = pytest.importorskip("onnxruntime", reason="runs both files")
SEEDS = range(24)
X = np.random.default_rng(0).uniform(-1, 1, (1, 4, 6, 6)).astype(np.float32)


@pytest.fixture(autouse=True, scope="module")
def _kept() -> object:
    with engines_kept():
        yield


def _output(file: Path) -> np.ndarray:
    (output,) = ort.InferenceSession(str(file)).run(None, {"x": X})
    return output


def _faulty_pair(folder: Path, seed: int) -> tuple[Path, Path, str, str]:
    """Files of a chain and its changed form, the changed node, and what was changed."""
    model = chain(seed)
    other, node, what = faulty(model, seed)
    return saved(model, folder / "a.onnx"), saved(other, folder / "b.onnx"), node, what


@pytest.mark.parametrize("seed", SEEDS)
def test_the_changed_node_is_the_culprit(tmp_path: Path, seed: int) -> None:
    model, other, node, what = _faulty_pair(tmp_path, seed)
    report = zs.bisect(model, other, inputs={"x": X})
    assert [culprit.node for culprit in report.bisection.culprits] == [node]
    assert not report.ok
    if what not in ("op", "axis"):
        assert f"the constant {what!r}" in report.culprit.cause
    elif what == "axis":
        assert "axis of" in report.culprit.cause
    arrays = report.culprit.repro.arrays
    assert not np.allclose(arrays["expected"], arrays["actual"])


@pytest.mark.parametrize("seed", SEEDS)
def test_an_untouched_model_has_no_culprit(tmp_path: Path, seed: int) -> None:
    model = chain(seed)
    file, other = saved(model, tmp_path / "a.onnx"), saved(renamed(model), tmp_path / "b.onnx")
    report = zs.bisect(file, other)
    assert report.ok
    assert report.culprit is None
    assert {str(stage.how) for stage in report.bisection.stages} <= {"value", "position"}


@pytest.mark.parametrize("seed", SEEDS)
def test_the_changed_node_is_the_culprit_without_names(tmp_path: Path, seed: int) -> None:
    """Without names, tensors match by their values: a fault that no output shows has no culprit."""
    model = chain(seed)
    changed, node, _ = faulty(model, seed)
    file, other = saved(model, tmp_path / "a.onnx"), saved(renamed(changed), tmp_path / "b.onnx")
    shown = not np.allclose(_output(file), _output(other), atol=1e-5)
    report = zs.bisect(file, other, inputs={"x": X})
    assert [culprit.node for culprit in report.bisection.culprits] == ([node] if shown else [])
    assert shown or seed in (4, 7)  # a Max, and a normalisation, hide these two


@pytest.mark.parametrize("seed", [k for k in SEEDS if misread(chain(k, shape=CUBE), k)])
def test_a_constant_along_other_axes_is_named_drawn_and_repeated(tmp_path: Path, seed: int) -> None:
    model = chain(seed, shape=CUBE)
    fault = misread(model, seed)
    assert fault is not None
    other, node, constant = fault
    file, second = saved(model, tmp_path / "a.onnx"), saved(other, tmp_path / "b.onnx")
    report = zs.bisect(file, second)
    culprit = report.culprit
    assert [culprit.node for culprit in report.bisection.culprits] == [node]
    shapes = {t.name: tuple(t.dims) for m in (model, other) for t in m.graph.initializer}
    assert f"{constant} {_dims(model, constant)} goes to ax" in culprit.cause
    meant, read = culprit.plans
    assert meant.aligned[1] == zs.plan(CUBE, _dims(model, constant)).aligned[1]
    assert read.aligned[1] == shapes[constant]
    assert str(meant.aligned[1]) in culprit.fix
    assert "on the other side:" in str(report)
    # The node alone on the same engine is right: the fault is in the file.
    culprit.repro.save(tmp_path)
    words = [sys.executable, "repro.py"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    wrong, right = (float(word.strip(",")) for word in done.stdout.split()[1:4:2])
    assert wrong == pytest.approx(right, 1e-4, 1e-5)
    data = np.load(tmp_path / "repro.npz")
    assert not np.allclose(data["expected"], data["actual"])


def _dims(model: onnx.ModelProto, name: str) -> tuple[int, ...]:
    return next(tuple(t.dims) for t in model.graph.initializer if t.name == name)


def test_the_node_that_an_engine_does_not_compute_is_the_only_culprit(tmp_path: Path) -> None:
    file = saved(chain(3), tmp_path / "a.onnx")
    graph = read_model(file)
    arrays = execute(graph, {"x": X}, outputs=[v.name for n in graph.nodes for v in n.outputs])
    names = list(arrays)
    failures = dict.fromkeys(names[5:], "the engine's process ended: SIGSEGV")
    side = Other(tuple(names[:5]), {name: arrays[name] for name in names[:5]}.get, failures)
    _, faults, _ = search(graph, {"x": X}, side, arrays.get, 1e-4)
    assert [fault.other for fault in faults] == [names[5]]
    assert faults[0].judged.difference is Difference.MISSING
    assert "SIGSEGV" in faults[0].judged.detail


def test_an_engine_that_refuses_a_node_answers_for_the_nodes_before(tmp_path: Path) -> None:
    model = chain(2)
    model.graph.node[6].op_type, model.graph.node[6].domain = "NoSuchOp", "com.example"
    model.opset_import.append(onnx.helper.make_opsetid("com.example", 1))
    file = saved(model, tmp_path / "a.onnx")
    right = saved(chain(2), tmp_path / "b.onnx")
    report = zs.bisect(right, file, inputs={"x": X})
    assert [culprit.node for culprit in report.bisection.culprits] == ["n6"]
    assert "onnxruntime refused" in report.culprit.judged.detail
    assert report.bisection.compared >= 6


@pytest.mark.parametrize(
    ("dtype", "error", "kind"),
    [("float16", 2e-3, "none"), ("float16", 0.1, "numbers"), ("float32", 2e-3, "numbers")],
)
def test_the_tolerance_follows_the_element_type(
    tmp_path: Path, dtype: str, error: float, kind: str
) -> None:
    element = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    ends = [onnx.helper.make_tensor_value_info(name, element, [4]) for name in "xy"]
    node = onnx.helper.make_node("Neg", ["x"], ["y"], "n0")
    graph = onnx.helper.make_graph([node], "g", ends[:1], ends[1:])
    opsets = [onnx.helper.make_opsetid("", 17)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8)
    x = np.arange(1, 5).astype(dtype)
    held = {"y": (-x * (1 + error)).astype(dtype)}
    stages, _, _ = search(
        read_model(saved(model, tmp_path / "a.onnx")), {"x": x}, Other(("y",), held.get),
        held.get, 1e-4,
    )  # fmt: skip
    assert str(stages[0].judged.difference) == kind


def test_two_faults_are_two_culprits(tmp_path: Path) -> None:
    model = chain(3)
    other, first, _ = faulty(model, 3)
    for seed in range(4, 40):
        both, second, _ = faulty(other, seed)
        if second != first:
            break
    file, third = saved(model, tmp_path / "a.onnx"), saved(both, tmp_path / "b.onnx")
    report = zs.bisect(file, third)
    assert {culprit.node for culprit in report.bisection.culprits} == {first, second}


def test_one_file_on_two_engines(tmp_path: Path) -> None:
    pytest.importorskip("openvino", reason="the other engine")
    report = zs.bisect(saved(chain(1), tmp_path / "a.onnx"), other_engine="openvino")
    assert report.ok
    assert report.bisection.compared > 5


@pytest.mark.parametrize(
    ("actual", "kind"),
    [
        ([1.0, np.nan], Difference.NAN),
        ([1.0, np.inf], Difference.INFINITE),
        ([1.0, 65504.0], Difference.SATURATED),
        ([1.0, 2.0], Difference.NUMBERS),
        ([1.0, 70000.0], Difference.NONE),
    ],
)
def test_kinds_of_failure_are_told_apart(actual: list[float], kind: Difference) -> None:
    assert judged(np.array([1.0, 70000.0]), np.array(actual), 1e-3).difference is kind


def test_unwritten_memory_gives_no_warning() -> None:
    """An engine may leave any bits: signalling NaNs, too, whose conversion NumPy warns of."""
    signalling = np.array([0x7F800001, 0x3F800000], np.uint32).view(np.float32)
    usual = np.ones(2, np.float32)
    assert judged(usual, signalling, 1e-3).difference is Difference.NAN
    assert compare(usual, signalling, 1e-3).outcome is Outcome.DIFFERS


def test_the_command_shows_the_culprit_and_its_inputs_are_given(tmp_path: Path) -> None:
    model, other, node, _ = _faulty_pair(tmp_path, 0)
    np.save(tmp_path / "x.npy", np.full((1, 4, 6, 6), 0.5, np.float32))
    words = ["bisect", str(model), str(other), "--input", f"x={tmp_path / 'x.npy'}", "--json"]
    page = tmp_path / "report.html"
    words += ["--report", str(page), "--report", str(tmp_path / "report.md")]
    words += ["--repro", str(tmp_path / "repro")]
    done = warm.run(words)
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    assert [culprit["node"] for culprit in report["bisection"]["culprits"]] == [node]
    assert node in page.read_text()
    assert 'class="culprit"' in page.read_text()
    files = {file.name for file in (tmp_path / "repro").iterdir()}
    assert files == {"repro.npz", "repro.onnx", "repro.py"}
    assert node in (tmp_path / "report.md").read_text()


def test_a_question_without_another_side_is_refused(tmp_path: Path) -> None:
    model = saved(chain(0), tmp_path / "a.onnx")
    with pytest.raises(zs.ZerostrideError, match="another file, or another engine"):
        zs.bisect(model)
    with pytest.raises(zs.ZerostrideError, match="does not run files of onnx"):
        zs.bisect(model, other_engine="ncnn")
