"""Random small models: claims about symbols hold for numbers, and every run gives the same."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import small
from random_graphs import SIZES, random_model

import zerostride as zs
from sampled import few
from work import calls_of
from zerostride.models.audit.many import audit_many
from zerostride.models.findings import Finding, Verdict

EXAMPLES = Path(__file__).parents[2] / "examples"
BAD = (Verdict.DIFFERENT, Verdict.REFUSED)


def broken(finding: Finding) -> bool:
    """Whether the model itself does not broadcast there."""
    return finding.reason in ("invalid_source", "unknown_shape") and not finding.when


def fails(note: str) -> bool:
    """Whether a note says that a node never works."""
    return note.startswith("the model works for no sizes")


@pytest.mark.parametrize("target", ["onnxruntime", "torch", "openvino"])
@pytest.mark.parametrize("first", range(0, 60, 20))
def test_equal_rules_are_never_unknown(target: str, first: int) -> None:
    for seed in range(first, first + 20):
        report = small.audit(random_model(seed), target)
        if any(map(fails, report.notes)):
            continue  # behind a node that never works nothing has a shape
        for finding in report.findings:
            assert finding.verdict is not Verdict.UNKNOWN, (seed, finding)


@pytest.mark.parametrize("target", ["ncnn", "paddle", "litert", "tosa"])
@pytest.mark.parametrize("seed", few(5, range(10)))
def test_verdicts_hold_for_small_sizes(target: str, seed: int) -> None:
    content = random_model(1000 + seed)
    options = {"batch_axis": -1} if target == "ncnn" else {}
    findings = small.audit(content, target, **options).findings
    axes = [axis for value in content.graph.input for axis in value.type.tensor_type.shape.dim]
    names = sorted({axis.dim_param for axis in axes} - {""})
    for numbers in itertools.product(SIZES, repeat=len(names)):
        sizes = dict(zip(names, numbers, strict=True))
        there = small.audit(content, target, sizes=sizes, **options)
        if any(map(broken, there.findings)) or any(map(fails, there.notes)):
            continue  # the model does not work at these sizes
        assert len(findings) == len(there.findings)
        for symbolic, real in zip(findings, there.findings, strict=True):
            where = (seed, sizes, str(symbolic.message), str(real.message))
            bad = real.verdict in BAD
            if symbolic.verdict is Verdict.SAME:
                assert not bad, where
            elif symbolic.verdict in BAD:
                assert bad, where
            elif symbolic.when is not None:
                assert bad == symbolic.when(sizes), where


# The same answer in every process, in any order.

_AUDITS = """
import json, sys, warnings
import zerostride as zs
warnings.simplefilter("ignore")
files, targets, times = json.loads(sys.argv[1])
said = {}
for _ in range(times):
    for target in targets:
        for file in files:
            report = zs.audit(file, target)
            new = [report.to_json(), str(report)]
            assert said.setdefault(f"{target} {file}", new) == new, (target, file)
print(json.dumps(said))
"""
TARGETS = ["onnxruntime", "ncnn", "mnn", "tensorrt"]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Generated models, one with more questions than its allowance has steps for, and examples."""
    folder = tmp_path_factory.mktemp("models")
    entries = []
    for seed in range(6):
        entries.append(folder / f"random{seed}.onnx")
        entries[-1].write_bytes(random_model(seed).SerializeToString())
    chain = [
        small.node("Add", f"t{k} x{k}" if k else "x0 x1", f"t{k + 1}", name=f"add{k}")
        for k in range(24)
    ]
    sizes = {f"x{k}": (f"N{k}", f"M{k % 5}") for k in range(24)}
    entries.append(folder / "chain.onnx")
    chained = small.model([*chain, small.node("Relu", "t24")], sizes)
    entries[-1].write_bytes(chained.SerializeToString())
    examples = [*EXAMPLES.glob("*dynamic.onnx"), *EXAMPLES.glob("*.xml")]
    return [*map(str, entries), *sorted(map(str, examples))]


def audited(seed: int, models: list[str], targets: list[str], times: int) -> dict[str, list[str]]:
    """All reports of a process of its own."""
    told = json.dumps([models, targets, times])
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    command = [sys.executable, "-c", _AUDITS, told]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    answer: dict[str, list[str]] = json.loads(done.stdout)
    return answer


@pytest.mark.slow
def test_reports_are_the_same_in_every_process(models: list[str]) -> None:
    once = audited(0, models, TARGETS, 1)
    assert audited(1, models[::-1], TARGETS[::-1], 2) == once
    assert audited(2, models, [*TARGETS[2:], *TARGETS[:2]], 1) == once
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pooled = audit_many(models, TARGETS[1], jobs=2)
        for file, report in zip(models, pooled, strict=True):
            assert isinstance(report, zs.Report)
            assert [report.to_json(), str(report)] == once[f"{TARGETS[1]} {file}"], file


# Work is bounded, whatever the file says.


def chained(count: int) -> list[zs.Report]:
    """Audits of sums and maxima of many operands, whose sizes all have names of their own."""
    inputs = {f"x{k}": (f"N{k}", 3) for k in range(count)}
    same = [small.node("Sum", " ".join(["x0"] * count))]
    apart = [small.node("Max", " ".join(inputs))]
    return [small.audit(small.model(nodes, inputs), "ncnn") for nodes in (same, apart)]


@pytest.mark.parametrize("count", [20, 64])
def test_work_for_many_names_on_one_axis_is_bounded(count: int) -> None:
    assert calls_of(lambda: chained(count)) < 500_000


#: Models of a kind that grow with a number.
_GROWING: dict[str, Callable[[int], Any]] = {
    "maximum of open sizes": lambda count: small.model(
        [small.node("Max", " ".join(f"x{k}" for k in range(count)))],
        {f"x{k}": (f"N{k}", 3) for k in range(count)},
    ),
    "sum of one input": lambda count: small.model(
        [small.node("Sum", " ".join(["x"] * count))], {"x": ("N", 3)}
    ),
    "join of open sizes": lambda count: small.model(
        [
            small.node("Concat", " ".join(f"x{k}" for k in range(count)), "c", axis=0),
            small.node("Add", "c z"),
        ],
        {"z": ("K", 3), **{f"x{k}": (f"N{k}", 3) for k in range(count)}},
    ),
    "chain of one size": lambda count: small.model(
        [small.node("Add", f"t{k} x" if k else "x x", f"t{k + 1}") for k in range(count)]
        + [small.node("Relu", f"t{count}")],
        {"x": ("N", 3)},
    ),
}


@pytest.mark.parametrize("target", few(1, ["ncnn", "onnxruntime"]))
@pytest.mark.parametrize("kind", _GROWING)
def test_work_grows_with_the_file(kind: str, target: str) -> None:
    """Ten times the operands take at most fifteen times the calls, in words and data, too."""
    small_one, large_one = map(_GROWING[kind], (100, 1000))
    small.audit(small_one, target)  # imports

    def everything(content: Any) -> None:
        report = small.audit(content, target)
        for text in (str(report), report.to_json(), report.to_html()):
            assert text

    assert calls_of(lambda: everything(large_one)) < 15 * calls_of(lambda: everything(small_one))


@pytest.mark.slow
@pytest.mark.parametrize("target", ["openvino", "ncnn"])
@pytest.mark.parametrize("size", [(64, 2), (3, 20), (16, 2)])
def test_work_for_a_report_of_open_operands_is_bounded(size: tuple[int, int], target: str) -> None:
    count, rank = size
    sizes = {f"x{k}": tuple(f"N{k}_{axis}" for axis in range(rank)) for k in range(count)}
    maximum = small.model([small.node("Max", " ".join(sizes))], sizes)
    chain = small.model(
        [small.node("Add", f"t{k} x{k}" if k else "x0 x0", f"t{k + 1}") for k in range(count)],
        sizes,
        outputs=(f"t{count}",),
    )

    def everything() -> None:
        for content in (maximum, chain):
            report = small.audit(content, target)
            for text in (str(report), report.to_json(), report.to_html()):
                assert text

    assert calls_of(everything) < 80_000_000


@pytest.mark.slow
def test_findings_beyond_the_budget_are_unknown_with_that_reason() -> None:
    pairs = [(i, j) for i in range(60) for j in range(i)]
    nodes = [small.node("Add", f"x{i} x{j}", f"t{i}_{j}") for i, j in pairs]
    inputs = {f"x{k}": (f"N{k}", f"M{k}", 3) for k in range(60)}
    report = small.audit(small.model(nodes, inputs, outputs=("t1_0",)), "ncnn")
    last = report.findings[-1]
    assert last.verdict is Verdict.UNKNOWN
    assert "the work that one command may take is used up" in last.message


@pytest.mark.parametrize("text", ["N+" * 500_000 + "N", "a" * 1_000_000, "N-" * 500_000])
def test_long_text_counts_as_a_name(text: str) -> None:
    content = small.model([small.node("Add", "x x")], {"x": (text, 3)})
    (finding,) = small.audit(content, "onnxruntime").findings
    assert finding.verdict is Verdict.SAME
    assert len(finding.message) < 1000
