"""`zs.verify` on the real engines: the audit's verdicts hold, and engines may crash."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from verified import call, one_op, verified

import zerostride as zs
from zerostride.errors import ZerostrideError
from zerostride.models.findings import Check, Finding, Outcome, Report, Verdict
from zerostride.runtimes import process as processes
from zerostride.runtimes.process import Process, running
from zerostride.runtimes.verify.checks import surprises
from zerostride.runtimes.verify.compare import compare, tolerance

onnx = pytest.importorskip("onnx", reason="writes the models")

pytestmark = [pytest.mark.conformance, pytest.mark.usefixtures("own_cache")]

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


@pytest.mark.slow
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
        holds(verified(model, engine, via="none" if engine == "ncnn" else None))


def test_bugs_of_layers_are_none_by_the_converter() -> None:
    """Reports about ncnn's own alignment: pnnx writes reshapes, and the two commands say so."""
    pytest.importorskip("pnnx", reason="the converter is an extra")
    for model in sorted((EXAMPLES / "bugs").glob("ncnn-*.onnx")):
        report = verified(model, "ncnn")
        assert report.via == "pnnx"
        assert holds(report)
        assert report.ok
        assert zs.audit(model, "ncnn").ok


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
    report = zs.verify(file, engine="numpy", timeout=0.5, cache=False)
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


# The command line.


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
    status, out, _ = call(
        one_op(tmp_path, "Add", (5, 5), (5,)), "--engine", "ncnn", "--via", "none"
    )
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


def test_narrower_arithmetic_of_an_engine_is_no_contradiction() -> None:
    """OpenVINO computes float64 in single precision: what its file means has that many digits."""
    most = tolerance("numpy", "squared_difference", np.dtype(np.float64), compound=False)
    from_ir = tolerance(
        "numpy", "squared_difference", np.dtype(np.float64), compound=False, source="openvino"
    )
    assert most < 1e-12 < from_ir < 1e-5
