"""Files of mnnconvert, run by MNN: verdicts compared with ONNX Runtime's numbers.

Every element-wise op on every element type, operands as inputs and as constants.
ZEROSTRIDE_MNNCONVERT=3 runs three times as many shapes.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from child import Child

pytest.importorskip("MNN", reason="the converter is an extra, not a test need")
onnx: Any = pytest.importorskip("onnx", reason="the models are made with the onnx package")
ort: Any = pytest.importorskip("onnxruntime", reason="the reference is an extra, not a test need")

from onnx import helper  # noqa: E402

import zerostride as zs  # noqa: E402

pytestmark = pytest.mark.conformance

COMPARED = ("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual")
NUMBERS = ("Add", "Sub", "Mul", "Div", "Max", "Min", "Mod", "Pow", *COMPARED)
TRUTHS = ("And", "Or", "Xor")
DTYPES = (
    *("float32", "float64", "float16", "int8", "uint8", "int16", "uint16"),
    *("int32", "uint32", "int64", "uint64"),
)
OPS = [(op, dtype) for op in NUMBERS for dtype in DTYPES] + [(op, "bool") for op in TRUTHS]
TIMES = int(os.environ.get("ZEROSTRIDE_MNNCONVERT", "1"))


def array(dtype: str, shape: tuple[int, ...], seed: int) -> Any:
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.startswith("float"):
        return rng.uniform(0.5, 3, shape).astype(dtype)
    return rng.integers(1, 7, shape).astype(dtype)


def shapes(count: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Two operands that broadcast, of ranks 0 to 5."""
    draw = random.Random(count)
    entries = []
    for _ in range(count):
        full = [draw.choice([1, 2, 3, 4]) for _ in range(draw.randint(1, 5))]
        one, two = (
            tuple(draw.choice([size, size, 1]) for size in full[draw.randint(0, len(full)) :])
            for _ in range(2)
        )
        entries.append((one, two))
    return entries


def model(op: str, a: Any, b: Any, constant: bool) -> bytes:
    kind = helper.np_dtype_to_tensor_dtype(a.dtype)
    inputs = [helper.make_tensor_value_info("x0", kind, a.shape)]
    constants = [onnx.numpy_helper.from_array(b, "x1")] if constant else []
    if not constant:
        inputs.append(helper.make_tensor_value_info("x1", kind, b.shape))
    options = {"fmod": 1} if op == "Mod" and a.dtype.kind == "f" else {}
    result = onnx.TensorProto.BOOL if op in COMPARED else kind
    node = helper.make_node(op, ["x0", "x1"], ["y"], name="site", **options)
    outputs = [helper.make_tensor_value_info("y", result, None)]
    graph = helper.make_graph([node], "g", inputs, outputs, constants)
    sets = [helper.make_opsetid("", 18)]
    content: bytes = helper.make_model(graph, opset_imports=sets, ir_version=8).SerializeToString()
    return content


def wanted(content: bytes, feeds: dict[str, Any]) -> Any:
    """ONNX Runtime's numbers; None where it has no kernel."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    try:
        return ort.InferenceSession(content, options).run(None, feeds)[0]
    except Exception:  # noqa: BLE001 - whatever it raises, there is nothing to compare with
        return None


def test_same_verdicts_give_equal_numbers(tmp_path: Path) -> None:
    table: Counter[tuple[str, bool]] = Counter()
    faults = []
    with Child("mnn") as child:
        for (op, dtype), (k, (one, two)) in (
            (row, pair) for row in OPS for pair in enumerate(shapes(2 * TIMES))
        ):
            for constant in (False, True):
                a, b = array(dtype, one, k), array(dtype, two, k + 100)
                content = model(op, a, b, constant)
                feeds = {"x0": a} if constant else {"x0": a, "x1": b}
                expected = wanted(content, feeds)
                if expected is None:
                    continue
                (tmp_path / "m.onnx").write_bytes(content)
                (finding,) = zs.audit(tmp_path / "m.onnx", "mnn").findings
                word, got = child.ask({"op": "file", "model": content, "feeds": feeds})
                right = word == "result" and got.shape == expected.shape
                right = right and np.allclose(
                    got.astype(float), expected.astype(float), rtol=1e-3, atol=1e-3
                )
                table[str(finding.verdict), bool(right)] += 1
                if finding.verdict == "same" and not right:
                    faults.append(f"{op} {dtype} {one} {two} constant={constant}: {word}")
    print(f"\n{dict(table)}")
    assert not faults, "\n".join(faults[:20])
    right = sum(count for (_, agrees), count in table.items() if agrees)
    assert table["same", True] > 0.5 * right > 0


SCALES = np.array([0.05, 0.1, 0.2], np.float32)
WHOLE = np.arange(-6, 6).astype(np.int8)
#: Nodes (op, operands, result), constants, the input's shape, and the verdict of each broadcast.
QUANTISED: dict[
    str, tuple[list[tuple[str, str, str, dict[str, int]]], dict[str, Any], Any, str]
] = {
    "there and back": (
        [("QuantizeLinear", "x s", "q", {}), ("DequantizeLinear", "q s", "y", {})],
        {"s": np.float32(0.05)},
        (1, 3, 4, 4),
        "different different",
    ),
    "one scale": (
        [("DequantizeLinear", "w s", "v", {}), ("Add", "x v", "y", {})],
        {"w": WHOLE.reshape(4, 3), "s": np.float32(0.05)},
        (4, 3),
        "same same",
    ),
    "the last axis": (
        [("DequantizeLinear", "w s", "v", {"axis": 1}), ("Add", "x v", "y", {})],
        {"w": WHOLE.reshape(4, 3), "s": SCALES},
        (4, 3),
        "same same",
    ),
    "another axis": (
        [("DequantizeLinear", "w s", "v", {"axis": 0}), ("Add", "x v", "y", {})],
        {"w": WHOLE.reshape(3, 4), "s": SCALES},
        (3, 4),
        "different same",
    ),
    "weights of a convolution": (
        [("DequantizeLinear", "w s", "v", {"axis": 0}), ("Conv", "x v", "y", {})],
        {"w": WHOLE.reshape(3, 1, 2, 2), "s": SCALES},
        (1, 1, 4, 4),
        "unknown",
    ),
    "an epsilon left out": (
        [("InstanceNormalization", "x s b", "y", {})],
        {"s": np.full(3, 0.5, np.float32), "b": SCALES},
        (2, 3, 2),
        "different",
    ),
    "an epsilon": (
        [("InstanceNormalization", "x s b", "y", {"epsilon": 1e-3})],
        {"s": np.full(3, 0.5, np.float32), "b": SCALES},
        (2, 3, 2),
        "same",
    ),
    "a mean of two": ([("Mean", "x c", "y", {})], {"c": SCALES}, (2, 3), "refused"),
}


@pytest.mark.parametrize("name", QUANTISED)
def test_verdicts_on_quantisation_and_means_match_mnn(name: str, tmp_path: Path) -> None:
    """What is called the same is; what is called wrong is wrong, or ends MNN."""
    rows, constants, shape, verdicts = QUANTISED[name]
    nodes = [helper.make_node(op, given.split(), [y], **more) for op, given, y, more in rows]
    value = helper.make_tensor_value_info
    weights = [onnx.numpy_helper.from_array(np.asarray(a), key) for key, a in constants.items()]
    graph = helper.make_graph(nodes, "g", [value("x", 1, shape)], [value("y", 1, None)], weights)
    sets = [helper.make_opsetid("", 17)]
    content = helper.make_model(graph, opset_imports=sets, ir_version=8).SerializeToString()
    (tmp_path / "m.onnx").write_bytes(content)
    findings = zs.audit(tmp_path / "m.onnx", "mnn").findings
    assert [str(finding.verdict) for finding in findings] == verdicts.split()
    # Small differences, so that what is added to a variance is seen.
    feeds = {"x": array("float32", shape, 7) / (1000 if "epsilon" in name else 1)}
    expected = wanted(content, feeds)
    with Child("mnn") as child:
        word, got = child.ask({"op": "file", "model": content, "feeds": feeds})
    right = word == "result" and got.shape == expected.shape
    right = right and np.allclose(got, expected, rtol=1e-2, atol=1e-2)
    assert right == ({*verdicts.split()} <= {"same", "unknown"})


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("op", ["Max", "Mean", "Min", "Sum"])
def test_converter_crashes_where_the_audit_says_so(op: str, count: int, tmp_path: Path) -> None:
    """Of one operand its process ends; of two it writes a file."""
    names = [f"x{k}" for k in range(count)]
    inputs = [helper.make_tensor_value_info(n, 1, (2, 3)) for n in names]
    outputs = [helper.make_tensor_value_info("y", 1, None)]
    graph = helper.make_graph([helper.make_node(op, names, ["y"])], "g", inputs, outputs)
    sets = [helper.make_opsetid("", 13)]
    source, target = tmp_path / "m.onnx", tmp_path / "m.mnn"
    onnx.save(helper.make_model(graph, opset_imports=sets, ir_version=8), source)
    worker = [sys.executable, str(Path(__file__).with_name("mnn_worker.py")), "convert"]
    done = subprocess.run([*worker, str(source), str(target)], capture_output=True, timeout=120)
    crashes = [f.reason for f in zs.audit(source, "mnn").findings].count("crash")
    assert (done.returncode < 0) == (count == 1)
    assert target.is_file() == (count == 2)
    assert crashes == (count == 1)
