"""`zs.verify` on the real engines: the audit's verdicts hold, and engines may crash."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from verified import one_op, verified

import zerostride as zs
from zerostride.errors import ModelError, ZerostrideError
from zerostride.models.findings import Check, Finding, Outcome, Report, Verdict
from zerostride.runtimes import process as processes
from zerostride.runtimes.process import Process, running
from zerostride.runtimes.verify.checks import surprises
from zerostride.runtimes.verify.compare import compare, tolerance

onnx = pytest.importorskip("onnx", reason="writes the models")

pytestmark = pytest.mark.conformance

EXAMPLES = Path(__file__).parents[2] / "examples"
ENGINES = (
    "numpy", "torch", "onnxruntime", "openvino", "ncnn", "mnn", "jax", "tensorflow", "paddle",
    "litert",
)  # fmt: skip
#: Engines that are loaded in no time, so that many models can be run on them.
QUICK = ("numpy", "onnxruntime", "openvino", "ncnn", "mnn", "litert")
#: What may come of a verdict. What means something else may give the same numbers by chance of the
#: data only where it is about a type whose limits these numbers do not reach.
MAY = {
    Verdict.SAME: {Outcome.AGREES, Outcome.NOT_RUN},
    Verdict.SAME_HERE: {Outcome.AGREES, Outcome.NOT_RUN},
    Verdict.DIFFERENT: {Outcome.DIFFERS, Outcome.CRASHED, Outcome.REFUSED, Outcome.NOT_RUN},
    Verdict.REFUSED: {Outcome.REFUSED, Outcome.CRASHED, Outcome.NOT_RUN},
    Verdict.UNKNOWN: set(Outcome),
}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("ZEROSTRIDE_CACHE", str(tmp_path / "cache"))
    warnings.simplefilter("ignore")


def holds(report: Report) -> Counter[tuple[str, str]]:
    """Asserts that no verdict is denied by the engine; counts verdicts and outcomes."""
    count: Counter[tuple[str, str]] = Counter()
    for finding, check in zip(report.findings, report.checks, strict=True):
        # What reads foreign memory finds the right numbers there now and then.
        by_luck = finding.reason in ("dtype", "silent") or "becomes" in finding.message
        may = MAY[finding.verdict] | ({Outcome.AGREES} if by_luck else set())
        assert finding.node == check.node
        assert check.outcome in may, (finding.verdict, check, finding.message)
        count[str(finding.verdict), str(check.outcome)] += 1
    return count


@pytest.mark.parametrize("engine", ENGINES)
def test_examples_hold_on_the_engine(engine: str) -> None:
    count: Counter[tuple[str, str]] = Counter()
    for name in ("tiny_vision", "clean", "legacy_opset6"):
        count += holds(verified(EXAMPLES / f"{name}.onnx", engine))
    sizes = {"N": 3, "M": 3}
    model = EXAMPLES / "functions_and_subgraphs.onnx"
    count += holds(verified(model, engine, sizes=sizes))
    print(engine, dict(count))
    # Nearly all that is the same is run; what is not has no op there.
    same = sum(n for (verdict, _), n in count.items() if verdict == "same")
    least = {"onnxruntime": 0.75}.get(engine, 0.9)
    assert count["same", "agrees"] >= least * same - 1


@pytest.mark.parametrize("engine", QUICK)
def test_public_bugs_hold_on_the_engine(engine: str) -> None:
    for model in sorted((EXAMPLES / "bugs").glob("*.onnx")):
        holds(verified(model, engine))


def test_differing_shape_is_an_outcome(tmp_path: Path) -> None:
    """ncnn keeps the 1 beside a 0; the next node has its answer all the same."""
    report = verified(one_op(tmp_path, "Add", (0, 3), (1, 3)), "ncnn", batch_axis=-1)
    differs, _ = report.checks
    assert differs.outcome is Outcome.DIFFERS
    assert "has the shape (1, 3)" in differs.detail
    assert not report.ok
    report = verified(one_op(tmp_path, "Add", (2, 3), (5, 3, 1, 2)), "ncnn")
    assert report.checks[1].outcome is Outcome.AGREES


def test_crash_inside_a_model_affects_one_node(tmp_path: Path) -> None:
    """OpenVINO dies of a Broadcast of no elements; the nodes after it have their answers."""
    pytest.importorskip("openvino", reason="it is OpenVINO's fault")
    kind, node = onnx.TensorProto.FLOAT, onnx.helper.make_node
    graph = onnx.helper.make_graph(
        [
            node("Add", ["x", "y"], ["a"], name="before"),
            node("Expand", ["z", "shape"], ["b"], name="dies"),
            node("Mul", ["z", "z"], ["c"], name="after"),
            node("Sub", ["a", "y"], ["d"], name="last"),
        ],
        "g",
        [
            onnx.helper.make_tensor_value_info(name, kind, shape)
            for name, shape in {"x": [2, 3], "y": [3], "z": [0]}.items()
        ],
        [onnx.helper.make_empty_tensor_value_info("d")],
        [onnx.helper.make_tensor("shape", onnx.TensorProto.INT64, [1], [0])],
    )
    opsets = [onnx.helper.make_opsetid("", 17)]
    file = tmp_path / "m.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), file)
    report = verified(file, "openvino")
    answers = [(check.node, check.outcome) for check in report.checks]
    agrees = Outcome.AGREES
    dies = ("dies", Outcome.CRASHED)
    assert answers == [("before", agrees), dies, ("after", agrees), ("last", agrees)]
    assert report.checks[1].detail == "the engine's process ended: SIGFPE"
    assert not report.ok


def test_segmentation_fault_inside_a_model_affects_one_node(tmp_path: Path) -> None:
    """MNN makes no tensor of rank 10."""
    pytest.importorskip("MNN", reason="it is MNN's fault")
    kind, node, ones = onnx.TensorProto.FLOAT, onnx.helper.make_node, [1] * 10
    inputs = {"x": [2, 3], "y": [3], "p": [*ones[1:], 2], "q": ones}
    graph = onnx.helper.make_graph(
        [
            node("Add", ["x", "y"], ["a"], name="before"),
            node("Add", ["p", "q"], ["b"], name="dies"),
            node("Mul", ["a", "y"], ["c"], name="after"),
        ],
        "g",
        [onnx.helper.make_tensor_value_info(name, kind, inputs[name]) for name in inputs],
        [onnx.helper.make_empty_tensor_value_info("c")],
    )
    opsets = [onnx.helper.make_opsetid("", 17)]
    file = tmp_path / "m.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), file)
    report = verified(file, "mnn")
    outcomes = {check.node: check.outcome for check in report.checks}
    agrees = Outcome.AGREES
    assert outcomes == {"before": agrees, "dies": Outcome.CRASHED, "after": agrees}
    (crash,) = [check for check in report.checks if check.node == "dies"]
    assert crash.detail == "the engine's process ended: SIGSEGV"
    assert "dies" in str(report)


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no process can be stopped here")
def test_engine_that_is_stopped_is_given_up_and_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped: list[int] = []
    start = Process.start

    def start_and_stop(process: Process) -> None:
        start(process)
        assert process._child is not None
        stopped.append(process._child._process.pid)
        os.kill(stopped[-1], signal.SIGSTOP)

    monkeypatch.setattr(Process, "start", start_and_stop)
    monkeypatch.setattr(processes, "_waiting", None)  # a kept process would not be started
    file = one_op(tmp_path, "Add", (2, 3), (3,))
    begin = time.monotonic()
    report = zs.verify(file, engine="numpy", timeout=0.5, cache=False)
    assert time.monotonic() - begin < 60
    assert {check.outcome for check in report.checks} == {Outcome.CRASHED}
    assert report.checks[0].detail == "no answer in 0.5 s"
    assert not report.ok
    assert stopped
    for number in stopped:
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)


def test_engine_that_does_not_answer_is_given_up(tmp_path: Path) -> None:
    report = verified(one_op(tmp_path, "Add", (2, 3), (3,)), "numpy", timeout=1e-9)
    assert {check.outcome for check in report.checks} == {Outcome.CRASHED}
    assert "no answer in" in report.checks[0].detail


def test_refusal_is_the_engines_own() -> None:
    """ONNX Runtime has no kernels for old op sets, and says so itself."""
    report = verified(EXAMPLES / "legacy_opset6.onnx", "onnxruntime")
    refused = [check for check in report.checks if check.outcome is Outcome.REFUSED]
    assert len(refused) > 5
    assert all("NotImplemented" in c.detail or "opset" in c.detail.lower() for c in refused)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int32, np.int64])
@pytest.mark.parametrize("engine", ["onnxruntime", "torch"])
def test_element_types_hold_on_the_engine(engine: str, dtype: Any, tmp_path: Path) -> None:
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    infos = [
        onnx.helper.make_tensor_value_info(n, kind, s)
        for n, s in zip("ab", [(4, 3), (3,)], strict=True)
    ]
    ops = ("Add", "Sub", "Mul", "Div", "Pow", "Less", "Equal", "Max")
    nodes = [onnx.helper.make_node(op, ["a", "b"], [op], name=op) for op in ops]
    outputs = [onnx.helper.make_empty_tensor_value_info(op) for op in ops]
    graph = onnx.helper.make_graph(nodes, "g", infos, outputs)
    opsets = [onnx.helper.make_opsetid("", 17)]
    onnx.save(
        onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "m.onnx"
    )
    report = verified(tmp_path / "m.onnx", engine, cases=3)
    assert len(report.checks) == len(ops)
    for check in report.checks:
        assert (check.outcome, check.elements) == (Outcome.AGREES, 36), check


def test_option_node_runs_one_node(tmp_path: Path) -> None:
    model = one_op(tmp_path, "Add", (2, 3), (3,))
    report = verified(model, "numpy", node="after")
    assert [check.node for check in report.checks] == ["after"]
    assert [finding.node for finding in report.findings] == ["after"]
    with pytest.raises(ZerostrideError, match="no node 'aftr' broadcasts; did you mean 'after'"):
        zs.verify(model, "numpy", node="aftr")


def test_results_are_cached(tmp_path: Path) -> None:
    model = one_op(tmp_path, "Add", (2, 3), (3,))
    first = verified(model, "numpy")
    assert not any(check.cached for check in first.checks)
    second = verified(model, "numpy")
    assert all(check.cached for check in second.checks)
    assert [c.elements for c in first.checks] == [c.elements for c in second.checks]
    assert not any(check.cached for check in verified(model, "numpy", cache=False).checks)
    assert not any(check.cached for check in verified(model, "numpy", seed=1).checks)
    # Whatever happened to a file, the engine is asked again.
    files = list((tmp_path / "cache" / "verify").iterdir())
    assert files
    for content in (b"", b"{", b"[]", b"\xff" * 9, b'{"outcome": "agrees"}', b"[" * 99999):
        for file in files:
            file.write_bytes(content)
        assert not any(check.cached for check in verified(model, "numpy").checks)
    # An answer to something else under this one's name is none.
    for file in files:
        if file.read_bytes()[:1] == b"{":
            document = json.loads(file.read_text())
            file.write_text(json.dumps(document | {"key": "other"}))
            break
    assert sum(check.cached for check in verified(model, "numpy").checks) == 1


def test_cache_that_cannot_be_written_is_skipped(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ZEROSTRIDE_CACHE", str(tmp_path / "file"))
    assert verified(one_op(tmp_path, "Add", (2, 3), (3,)), "numpy").ok


def test_equal_broadcasts_run_once(tmp_path: Path) -> None:
    nodes = [onnx.helper.make_node("Add", ["a", "b"], [f"y{k}"], name=f"n{k}") for k in range(50)]
    infos = [onnx.helper.make_tensor_value_info(n, 1, s) for n, s in (("a", (2, 3)), ("b", (3,)))]
    outputs = [onnx.helper.make_empty_tensor_value_info("y0")]
    onnx.save(
        onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", infos, outputs)),
        tmp_path / "m.onnx",
    )
    report = verified(tmp_path / "m.onnx", "numpy")
    assert len(report.checks) == 50
    assert len(list((tmp_path / "cache" / "verify").iterdir())) == 1


def test_missing_engine_is_named(tmp_path: Path) -> None:
    model = one_op(tmp_path, "Add", (2, 3), (3,))
    python = tmp_path / "python"
    # An interpreter that sees the engine's package nowhere.
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    with pytest.raises(ZerostrideError, match=r"does not start|not installed"):
        zs.verify(model, "torch", pythons={"torch": str(python)})
    with pytest.raises(zs.BroadcastError, match="tensorrrt"):
        zs.verify(model, "tensorrrt")


def test_worst_outcome_comes_first() -> None:
    def finding(verdict: Verdict) -> Finding:
        return Finding("n", "Add", (), None, None, verdict, "", "")

    def check(outcome: Outcome) -> Check:
        return Check("n", "Add", (), outcome, "3 of 4 numbers differ")

    for outcome in (Outcome.DIFFERS, Outcome.REFUSED, Outcome.CRASHED):
        (note,) = surprises([finding(Verdict.SAME)], [check(outcome)])
        assert note.startswith("WRONG VERDICT")
    assert not surprises([finding(Verdict.SAME)], [check(Outcome.AGREES)])
    assert not surprises([finding(Verdict.DIFFERENT)], [check(Outcome.DIFFERS)])
    assert len(surprises([finding(Verdict.DIFFERENT)], [check(Outcome.AGREES)])) == 1


def test_comparison_can_fail() -> None:
    a = np.array([1.0, 2.0, np.nan], np.float32)
    assert compare(a, a.copy(), 1e-6).outcome is Outcome.AGREES
    for b in (a + np.float32(1e-3), a.reshape(3, 1), np.array([1, 2, 3], np.float32)):
        assert compare(a, b, 1e-6).outcome is Outcome.DIFFERS
    whole = np.array([1, 2])
    assert compare(whole, whole + 1, 0.0).detail.startswith("2 of 2 numbers differ")


# The whole model.


def test_whole_model_agrees() -> None:
    model = EXAMPLES / "clean.onnx"
    for engine in ("onnxruntime", "openvino"):
        report = verified(model, engine, whole=True)
        assert [check.outcome for check in report.checks] == [Outcome.AGREES]
        assert report.checks[0].elements == 240
    with pytest.raises(ZerostrideError, match="torch does not run files of onnx"):
        verified(model, "torch", whole=True)


def test_engine_is_not_compared_with_itself(tmp_path: Path) -> None:
    """With an op that zerostride does not execute, ONNX Runtime is what others are held against."""
    infos = [onnx.helper.make_tensor_value_info(n, 1, s) for n, s in (("x", (1, 1, 4, 4)),)]
    nodes = [onnx.helper.make_node("GlobalLpPool", ["x"], ["y"], p=2)]
    outputs = [onnx.helper.make_tensor_value_info("y", 1, (1, 1, 1, 1))]
    graph = onnx.helper.make_graph(nodes, "g", infos, outputs)
    opsets = [onnx.helper.make_opsetid("", 17)]
    onnx.save(
        onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "m.onnx"
    )
    with pytest.raises(ModelError, match="does not execute GlobalLpPool; nothing to compare"):
        verified(tmp_path / "m.onnx", "onnxruntime", whole=True)
    report = verified(tmp_path / "m.onnx", "openvino", whole=True)
    assert [check.outcome for check in report.checks] == [Outcome.AGREES]
    assert "compared with ONNX Runtime" in report.notes[-1]


def test_conversion_to_ir_agrees(tmp_path: Path) -> None:
    ov = pytest.importorskip("openvino", reason="converts and runs")
    for name in ("clean", "tiny_vision"):
        model = EXAMPLES / f"{name}.onnx"
        ov.save_model(ov.convert_model(model), tmp_path / "m.xml", compress_to_fp16=False)
        report = verified(model, "openvino", against=tmp_path / "m.xml")
        assert {check.outcome for check in report.checks} == {Outcome.AGREES}, report.checks
        # The converted file by itself, by the rules that IR has.
        report = verified(tmp_path / "m.xml", "openvino", whole=True)
        assert {check.outcome for check in report.checks} == {Outcome.AGREES}, report.checks


def test_a_difference_that_one_rounding_makes_is_no_fault(tmp_path: Path) -> None:
    """The engine lacks bits of a sine's operand; the model's own result moves as far."""
    ov = pytest.importorskip("openvino", reason="converts and runs")
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[N] x) => (float[N] y) {'
    lines = ["m = Mul(x, k)", "s = Sin(m)", "y = Mul(s, c)", "}"]
    for factor, outcome in ((1.0, Outcome.AGREES), (3.0, Outcome.DIFFERS)):
        model = onnx.parser.parse_model("\n".join([text, *lines]))
        constants = {"k": 1e5, "c": 1.0}
        for name, number in constants.items():
            array = np.array(number, np.float32)
            model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
        onnx.save(model, tmp_path / "m.onnx")
        model.graph.initializer[1].CopyFrom(
            onnx.numpy_helper.from_array(np.array(factor, np.float32), "c")
        )
        model.graph.initializer[0].CopyFrom(
            onnx.numpy_helper.from_array(np.array(1e5 * (1 + 2e-7), np.float32), "k")
        )
        onnx.save(model, tmp_path / "other.onnx")
        ov.save_model(ov.convert_model(tmp_path / "other.onnx"), tmp_path / "m.xml")
        report = verified(
            tmp_path / "m.onnx", "openvino", against=tmp_path / "m.xml", input_shapes=[(500,)]
        )
        assert [check.outcome for check in report.checks] == [outcome]
        assert report.checks[0].error > 1e-3
        moved = any("one rounding of the inputs moves it by" in note for note in report.notes)
        assert moved == (outcome is Outcome.AGREES)


@pytest.mark.parametrize("line", ["e = Equal(m, one)", "a = Acos(m)"], ids=["mask", "edge"])
def test_a_fault_beside_a_mask_is_a_fault(line: str, tmp_path: Path) -> None:
    """Ones that are moved would change everything: which numbers are masked, or all into NaN."""
    last = "y = Where(e, s, far)" if "Equal" in line else "y = Add(a, s)"
    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[3,3] x, float[1,3] m) => (float[3,3] y)
    <float[3] b = {1, 2, 3}, float one = {1}, float far = {-10000}> {
    s = Add(x, b)
    """
    meant = "\n".join([text, line, last, "}"])
    onnx.save(onnx.parser.parse_model(meant), tmp_path / "m.onnx")
    onnx.save(onnx.parser.parse_model(meant.replace("[3] b", "[3,1] b")), tmp_path / "other.onnx")
    inputs = {"m": [[1.0, 1.0, 1.0]]}
    report = verified(
        tmp_path / "m.onnx", "onnxruntime", against=tmp_path / "other.onnx", inputs=inputs
    )
    assert [check.outcome for check in report.checks] == [Outcome.DIFFERS], report.notes


def test_conversion_to_mnn_agrees(tmp_path: Path) -> None:
    pytest.importorskip("MNN", reason="converts and runs")
    model = EXAMPLES / "clean.onnx"
    words = ["-f", "ONNX", "--modelFile", str(model), "--MNNModel", str(tmp_path / "m.mnn")]
    code = f"import _tools; _tools.mnnconvert(['mnnconvert', *{words!r}, '--bizCode', 'z'])"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    report = verified(model, "mnn", against=tmp_path / "m.mnn")
    assert {check.outcome for check in report.checks} == {Outcome.AGREES}, report.checks


def test_conversion_to_ncnn_agrees(tmp_path: Path) -> None:
    pytest.importorskip("ncnn", reason="runs it")
    text = "7767517\n3 3\nInput a 0 1 a 0=5 1=5\nInput b 0 1 b 0=5\nBinaryOp add 2 1 a b y 0=0\n"
    (tmp_path / "m.param").write_text(text)
    (tmp_path / "m.bin").write_bytes(b"")
    report = verified(tmp_path / "m.param", "ncnn", whole=True)
    assert [check.outcome for check in report.checks] == [Outcome.AGREES], report.checks
    # The same numbers in ONNX mean something else, and the whole run shows it.
    model = one_op(tmp_path, "Add", (5, 5), (5,))
    content = onnx.load(model)
    del content.graph.node[1], content.graph.output[1]
    onnx.save(content, model)
    report = verified(model, "ncnn", against=tmp_path / "m.param")
    assert [check.outcome for check in report.checks] == [Outcome.DIFFERS]
    # The command knows the engine from the file.
    assert call(model, "--against", tmp_path / "m.param")[0] == 1
    status, _, error = call(model)
    assert status == 2
    assert "Missing option '--engine'. Choose from: numpy, " in error


# The command line.


def call(*words: Any) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "zerostride", "verify", *map(str, words)],
        capture_output=True, text=True, env={**os.environ}, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def test_command_prints_text_and_json(tmp_path: Path) -> None:
    model = one_op(tmp_path, "Add", (2, 3), (3,))
    status, out, err = call(model, "--engine", "numpy")
    assert (status, err) == (0, "")
    assert "2 agree" in out
    status, out, _ = call(model, "--engine", "numpy", "--json")
    document = json.loads(out)
    assert (status, document["command"], document["checks"][0]["outcome"]) == (
        0,
        "verify",
        "agrees",
    )
    status, out, err = call(tmp_path / "missing.onnx", "--engine", "numpy")
    assert (status, out) == (2, "")
    assert "missing.onnx" in err


def test_command_reports_differences(tmp_path: Path) -> None:
    try:
        with running("ncnn", 20):
            pass
    except ZerostrideError as error:
        pytest.skip(str(error))
    status, out, _ = call(one_op(tmp_path, "Add", (5, 5), (5,)), "--engine", "ncnn")
    assert status == 1
    assert "1 differs" in out
    assert "different" in out


def expanded(folder: Path, data: tuple[int, ...], target: list[int]) -> Path:
    """A model of one Expand to a constant."""
    helper = onnx.helper
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, data)
    rank = max(len(data), len(target))
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [f"n{k}" for k in range(rank)])
    s = helper.make_tensor("s", onnx.TensorProto.INT64, (len(target),), target)
    graph = helper.make_graph([helper.make_node("Expand", ["x", "s"], ["y"])], "g", [x], [y], [s])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    onnx.save(model, folder / "expand.onnx")
    return folder / "expand.onnx"


@pytest.mark.parametrize("engine", ["numpy", "torch", "jax", "onnxruntime", "openvino"])
def test_number_broadcast_with_a_number_is_run(engine: str, tmp_path: Path) -> None:
    """Run: data of rank 0, of which no vector is made where the engine has rank 0."""
    report = verified(expanded(tmp_path, (), []), engine)
    (check,) = report.checks
    assert check.outcome is (Outcome.DIFFERS if engine == "openvino" else Outcome.AGREES)


def test_openvino_stretches_both_ways(tmp_path: Path) -> None:
    """Run: an Expand to a smaller target is its Broadcast in the mode bidirectional."""
    report = verified(expanded(tmp_path, (3, 1), [2, 1, 4]), "openvino")
    assert [check.outcome for check in report.checks] == [Outcome.AGREES]
    assert [str(finding.verdict) for finding in report.findings] == ["same"]


# Conversions that store their weights in half precision.


def product(folder: Path, wrong: float = 0.0) -> Path:
    """Two products of numbers that float16 rounds, one weight off by so much."""
    rng = np.random.default_rng(5)
    # Among many results some are small beside what they are the sum of: there rounding shows.
    first, second = (rng.normal(0, 3, (64, n)).astype(np.float32) for n in (64, 2048))
    second[:, 4] += wrong
    helper = onnx.helper
    x = helper.make_tensor_value_info("x", 1, (1, 64))
    y = helper.make_tensor_value_info("y", 1, (1, 2048))
    weights = [onnx.numpy_helper.from_array(a, n) for a, n in ((first, "a"), (second, "b"))]
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("MatMul", ["r", "b"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "g", [x], [y], weights)
    ids = [helper.make_opsetid("", 17)]
    path = folder / f"m{wrong}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=ids, ir_version=8), path)
    return path


def test_float16_weights_are_distinguished_from_wrong_weights(tmp_path: Path) -> None:
    ov = pytest.importorskip("openvino", reason="converts and runs")
    outcomes = []
    for wrong, halves in ((0.0, False), (0.0, True), (0.5, True), (0.5, False)):
        converted = ov.convert_model(product(tmp_path, wrong))
        ov.save_model(converted, tmp_path / "m.xml", compress_to_fp16=halves)
        report = verified(product(tmp_path), "openvino", against=tmp_path / "m.xml")
        (check,) = report.checks
        outcomes.append(check.outcome)
        assert any("half precision" in note for note in report.notes) == (halves)
        assert ("float16" in check.detail) == (halves and not wrong)
    agrees, differs = Outcome.AGREES, Outcome.DIFFERS
    assert outcomes == [agrees, agrees, differs, differs]


def test_float16_weights_with_another_alignment_differ(tmp_path: Path) -> None:
    """4096 units of half precision are four times a number: no difference was ever seen."""
    vectors = [(5,)] * 4
    model = one_op(tmp_path, "BatchNormalization", (5, 5, 1, 5), *vectors, dtype=np.float16)
    for engine in ("numpy", "litert"):
        check = verified(model, engine).checks[0]
        assert check.outcome is Outcome.DIFFERS, check


def test_narrower_arithmetic_of_an_engine_is_no_contradiction() -> None:
    """OpenVINO computes float64 in single precision: what its file means has that many digits."""
    most = tolerance("numpy", "squared_difference", np.dtype(np.float64), compound=False)
    from_ir = tolerance(
        "numpy", "squared_difference", np.dtype(np.float64), compound=False, source="openvino"
    )
    assert most < 1e-12 < from_ir < 1e-5
