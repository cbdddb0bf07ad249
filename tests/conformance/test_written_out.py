"""Compound ops against ONNX Runtime: written out, and as `zerostride run` computes them.

`python tests/conformance/test_written_out.py 400` asks that many cases of each op.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="writes the models")
ort = pytest.importorskip("onnxruntime", reason="is what is compared with")
from compound_cases import CASES, Case  # noqa: E402 - onnx may be missing

from zerostride.models.execute.run import execute  # noqa: E402
from zerostride.models.formats.onnx.format import read  # noqa: E402
from zerostride.models.formats.onnx.prepared import with_functions  # noqa: E402

pytestmark = pytest.mark.conformance


def on_runtime(model: Any, case: Case) -> list[Any]:
    """The results of a model on ONNX Runtime."""
    options = ort.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    content = model.SerializeToString()
    session = ort.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    read = {value.name for value in session.get_inputs()}
    feeds = {name: array for name, array in case.feeds().items() if name in read}
    return list(session.run(None, feeds))


def differences(case: Case, folder: Path) -> list[str]:
    """The ways in which the results of a case differ; ["refused"] if ONNX Runtime refuses it."""
    model, path = case.model(), folder / "compound.onnx"
    try:
        expected = on_runtime(model, case)
    except ort.capi.onnxruntime_pybind11_state.InvalidArgument:
        return ["refused"]
    onnx.save(model, path)
    feeds = case.feeds()
    results = execute(read(path), feeds)
    lines = [f"run: {line}" for line in _apart(case, expected, list(results.values()))]
    if with_functions(path, frozenset({case.op})) != (case.op,):
        return [*lines, "it is not written out"]
    written = onnx.load(path)
    ops = {(node.domain, node.op_type) for node in written.graph.node}
    lines += [f"it has {op}" for op in ops if op[0] or op[1] in ("Expand", "Tile", "Attention")]
    return lines + [
        f"written: {line}" for line in _apart(case, expected, on_runtime(written, case))
    ]


def _apart(case: Case, expected: list[Any], results: list[Any]) -> list[str]:
    lines = []
    for number, pair in enumerate(zip(expected, results, strict=True)):
        left, right = (case.defined(number, result) for result in pair)
        if left.shape != right.shape:
            lines.append(f"result {number} has the shape {right.shape}, not {left.shape}")
        elif not np.allclose(left, right, rtol=1e-4, atol=case.tolerance, equal_nan=True):
            lines.append(f"result {number} differs by {np.abs(left - right).max()}")
    return lines


def tally(op: str, count: int, folder: Path) -> tuple[Counter[str], list[str]]:
    """How many cases agree and are refused, and the wrong ones."""
    counts, wrong = Counter[str](), []
    for number in range(count):
        case = CASES[op](number)
        lines = differences(case, folder)
        counts["refused" if lines == ["refused"] else "wrong" if lines else "agree"] += 1
        if lines and lines != ["refused"]:
            wrong.append(f"{number}: {case}: {'; '.join(lines)}")
    return counts, wrong


@pytest.mark.parametrize("op", CASES)
def test_it_means_the_same_written_out_and_run(op: str, tmp_path: Path) -> None:
    counts, wrong = tally(op, 100, tmp_path)
    assert wrong == []
    assert counts["agree"] > 90


if __name__ == "__main__":
    for name in CASES:
        with tempfile.TemporaryDirectory() as place:
            numbers, faults = tally(name, int(sys.argv[1]), Path(place))
        print(name, dict(numbers))
        print(*faults[:4], sep="\n")
