"""Scales, zero points and biases of quantised and fused ops: verdicts compared with runs.

Each case is a model of one node. Where the audit says `same`, ONNX Runtime and OpenVINO give what
the document says, computed here with NumPy; where it says `refused`, they refuse.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import openvino_runs
import pytest

pytest.importorskip("onnx", reason="the models are made with the onnx package")
ort: Any = pytest.importorskip("onnxruntime", reason="an engine is an extra, not a test need")
ov: Any = pytest.importorskip("openvino", reason="an engine is an extra, not a test need")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import zerostride as zs  # noqa: E402

pytestmark = pytest.mark.conformance

MICROSOFT = "com.microsoft"


@dataclass(frozen=True)
class Case:
    """A node: operands by name, those but the first constants, and what the document says."""

    op: str
    operands: tuple[Any, ...]
    wanted: Any
    kind: str = "float32"
    domain: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    near: float = 1e-3

    def model(self) -> bytes:
        names = [f"x{k}" for k in range(len(self.operands))]
        first = helper.np_dtype_to_tensor_dtype(self.operands[0].dtype)
        inputs = [helper.make_tensor_value_info("x0", first, self.operands[0].shape)]
        rest = zip(names[1:], self.operands[1:], strict=True)
        constants = [numpy_helper.from_array(array, name) for name, array in rest]
        result = helper.np_dtype_to_tensor_dtype(np.dtype(self.kind))
        outputs = [helper.make_tensor_value_info("y", result, None)]
        node = helper.make_node(
            self.op, names, ["y"], name="site", domain=self.domain, **self.attributes
        )
        graph = helper.make_graph([node], "g", inputs, outputs, constants)
        sets = [helper.make_opsetid("", 18), helper.make_opsetid(MICROSOFT, 1)]
        content: bytes = helper.make_model(
            graph, opset_imports=sets, ir_version=10
        ).SerializeToString()
        return content

    def __str__(self) -> str:
        return f"{self.op} of {', '.join(str(array.shape) for array in self.operands)}"


RNG = np.random.default_rng(7)


def whole(dtype: str, *shape: int) -> Any:
    low, high = (0, 20) if dtype == "uint8" else (-10, 10)
    return np.asarray(RNG.integers(low, high, shape), dtype)


def real(*shape: int) -> Any:
    return np.asarray(RNG.uniform(0.1, 0.9, shape), np.float32)


def row(array: Any) -> Any:
    """One number, or a column of as many rows."""
    return (
        np.asarray(array, np.float64).reshape(-1, 1) if array.size > 1 else float(array.ravel()[0])
    )


def products() -> Iterator[Case]:
    a, b = whole("uint8", 3, 4), whole("int8", 4, 5)
    for left, right in itertools.product(((), (1,), (3,)), ((), (1,), (5,))):
        x, y = whole("uint8", *left), whole("int8", *right)
        wide = (a - row(x)) @ (b - y.astype(np.float64))
        yield Case("MatMulInteger", (a, b, x, y), wide, "int32")
        s, t, u = real(*left), real(*right), np.float32(2)
        point = np.uint8(100)
        scaled = (a - row(x)) * row(s) @ ((b - y.astype(np.float64)) * t)
        quantised = np.clip(np.rint(scaled / 2) + 100, 0, 255)
        operands = (a, s, x, b, t, y, np.asarray(u), np.asarray(point))
        yield Case("QLinearMatMul", operands, quantised, "uint8", near=1.01)
    for batch in ((2, 1), (1, 3)):
        c = whole("uint8", *batch, 3, 4)
        d = whole("int8", 2, 3, 4, 5)
        wide = (c - 3.0) @ (d - 1.0)
        points = np.asarray(3, np.uint8), np.asarray(1, np.int8)
        yield Case("MatMulInteger", (c, d, *points), wide, "int32")


def convolutions() -> Iterator[Case]:
    x, w = whole("uint8", 1, 2, 3, 3), whole("uint8", 4, 2, 1, 1)

    def product(data: Any, weights: Any) -> Any:
        return np.einsum("nchw,mc->nmhw", data, weights[..., 0, 0])

    for point in ((), (1,), (4,)):
        z = whole("uint8", *point)
        shifted = w - (z.astype(np.float64).reshape(-1, 1, 1, 1) if z.size > 1 else row(z))
        three = np.asarray(3, np.uint8)
        yield Case("ConvInteger", (x, w, three, z), product(x - 3.0, shifted), "int32")
        s = real(*point)
        scales = s.reshape(-1, 1, 1, 1) if s.size > 1 else row(s)
        for bias in (None, whole("int32", 4)):
            result = product((x - 3.0) * 0.5, shifted * scales)
            if bias is not None:
                result += (bias * (0.5 * s.astype(np.float64))).reshape(1, -1, 1, 1)
            ends = (np.asarray(np.float32(2)), np.asarray(100, np.uint8))
            operands = (x, np.asarray(np.float32(0.5)), three, w, s, z, *ends)
            operands = operands if bias is None else (*operands, bias)
            wanted = np.clip(np.rint(result / 2) + 100, 0, 255)
            yield Case("QLinearConv", operands, wanted, "uint8", near=1.01)


def per_axis() -> Iterator[Case]:
    x = np.asarray(RNG.uniform(-3, 3, (2, 3, 4)), np.float32)
    q = whole("uint8", 2, 3, 4)
    for shape, axis in (((), 1), ((1,), 1), ((3,), 1), ((4,), -1), ((2,), 0), ((3,), 2)):
        s, z = real(*shape), whole("uint8", *shape)
        places = [1, 1, 1]
        places[axis] = -1
        scale, point = s.reshape(places), z.reshape(places).astype(np.float64)
        fits = s.size == 1 or x.shape[axis] == s.size
        options = {"axis": axis}
        up = np.clip(np.rint(x / scale) + point, 0, 255) if fits else None
        down = (q - point) * scale if fits else None
        yield Case("QuantizeLinear", (x, s, z), up, "uint8", attributes=options, near=1.01)
        yield Case("DequantizeLinear", (q, s, z), down, attributes=options)


def _gelu(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def _normal(x: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)


def fused() -> Iterator[Case]:
    x = real(2, 3, 4)
    for shape in ((4,), (1,), (3,)):
        bias = real(*shape)
        wanted = _gelu(x + bias) if shape == (4,) else None
        yield Case("FastGelu", (x, bias), wanted, domain=MICROSOFT, near=1e-2)
    for shape in ((2, 3, 4), (1, 3, 4), (3, 4)):
        skip, gamma, beta = real(*shape), real(4), real(4)
        wanted = _normal(x + skip) * gamma + beta
        operands = (x, skip, gamma, beta)
        yield Case("SkipLayerNormalization", operands, wanted, domain=MICROSOFT, near=1e-2)
    for a, b in (((2, 1, 3, 4), (5, 4, 6)), ((3, 4), (4, 6)), ((2, 3, 4), (2, 4, 6))):
        left, right = real(*a), real(*b)
        yield Case("FusedMatMul", (left, right), left @ right, domain=MICROSOFT)


CASES = [*products(), *convolutions(), *per_axis(), *fused()]


def onnxruntime(content: bytes, data: Any) -> Any:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    return ort.InferenceSession(content, options).run(None, {"x0": data})[0]


def openvino(content: bytes, data: Any) -> Any:
    core = openvino_runs.cpu()
    return np.array(core.compile_model(core.read_model(content, b""), "CPU")({"x0": data})[0])


ENGINES: Mapping[str, Callable[[bytes, Any], Any]] = {
    "onnxruntime": onnxruntime,
    "openvino": openvino,
}


def answer(engine: str, case: Case) -> Any:
    """What an engine gives, or None where it refuses."""
    try:
        return ENGINES[engine](case.model(), case.operands[0])
    except Exception:  # noqa: BLE001 - whatever an engine raises is how it refuses
        return None


def agrees(got: Any, case: Case) -> bool:
    if got is None or case.wanted is None or got.shape != case.wanted.shape:
        return False
    return bool(np.allclose(got.astype(np.float64), case.wanted, rtol=1e-3, atol=case.near))


@pytest.mark.parametrize("engine", ENGINES)
def test_verdicts_match_the_engines(engine: str, tmp_path: Path) -> None:
    faults, counts = [], dict.fromkeys(("same", "refused", "none"), 0)
    for case in CASES:
        (tmp_path / "m.onnx").write_bytes(case.model())
        findings = zs.audit(tmp_path / "m.onnx", engine).findings
        verdict = str(findings[0].verdict) if findings else "none"
        counts[verdict] = counts.get(verdict, 0) + 1
        got = answer(engine, case)
        right = agrees(got, case)
        if verdict in ("same", "none") and not right:
            done = "refused" if got is None else "other numbers"
            faults.append(f"{case}: {verdict}, and {done}")
        elif verdict == "refused" and right:
            faults.append(f"{case}: {verdict} ({findings[0].message}), and right")
    print(f"\n{engine}: {len(CASES)} cases, {counts}")
    assert not faults, "\n".join(faults)
    assert counts["same"] > 20


def test_comparison_finds_a_wrong_number() -> None:
    case = CASES[0]
    got = answer("onnxruntime", case)
    assert agrees(got, case)
    assert not agrees(got + 1, case)


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_openvino_inserts_a_cast_where_a_quantised_sum_saturates(op: str, tmp_path: Path) -> None:
    """39.0 more than each number, or 39.0 times it, in steps of 0.1: beyond what 8 bits hold."""
    data = np.arange(0, 250, dtype=np.uint8)
    scales = {"as": 0.1, "bs": 0.2, "cs": 0.1}
    points = {"az": 3, "bz": 5, "cz": 7, "b": 200}
    constants = [numpy_helper.from_array(np.float32(v), name) for name, v in scales.items()]
    constants += [numpy_helper.from_array(np.array(v, np.uint8), k) for k, v in points.items()]
    names = ["x", "as", "az", "b", "bs", "bz", "cs", "cz"]
    node = helper.make_node(op, names, ["y"], name="site", domain=MICROSOFT)
    x, y = (helper.make_tensor_value_info(name, TensorProto.UINT8, data.shape) for name in "xy")
    graph = helper.make_graph([node], "g", [x], [y], constants)
    sets = [helper.make_opsetid("", 18), helper.make_opsetid(MICROSOFT, 1)]
    content = helper.make_model(graph, opset_imports=sets, ir_version=10).SerializeToString()
    exact = (data - 3.0) * 0.1 + 39 if op == "QLinearAdd" else (data - 3.0) * 0.1 * 39
    exact = exact / 0.1 + 7
    session = ort.InferenceSession(content, providers=["CPUExecutionProvider"])
    (saturated,) = session.run(None, {"x": data})
    assert np.abs(saturated - np.clip(exact, 0, 255)).max() <= 0.51
    core = openvino_runs.cpu()
    (result,) = core.compile_model(core.read_model(content), "CPU")([data]).values()
    wrapped = np.abs(result - np.trunc(exact)) % 256
    assert np.minimum(wrapped, 256 - wrapped).max() <= 1
    (tmp_path / "m.onnx").write_bytes(content)
    (finding,) = zs.audit(tmp_path / "m.onnx", "openvino").findings
    assert (finding.verdict, finding.reason) == ("different", "wrong_result")
    assert zs.audit(tmp_path / "m.onnx", "onnxruntime").ok


@pytest.mark.parametrize("shorter", [False, True])
@pytest.mark.parametrize("lacking", [(), ("az",), ("bz",), ("cz",), ("az", "bz", "cz")])
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_onnxruntime_needs_zero_points(
    op: str, lacking: tuple[str, ...], shorter: bool, tmp_path: Path
) -> None:
    """The document makes all three optional. Its type inference reads those with empty names."""
    names = ["a", "as", "az", "b", "bs", "bz", "cs", "cz"]
    points = [name for name in ("az", "bz", "cz") if name not in lacking]
    constants = [numpy_helper.from_array(np.float32(0.1), name) for name in ("as", "bs", "cs")]
    constants += [numpy_helper.from_array(np.array(3, np.uint8), name) for name in points]
    given = ["" if name in lacking else name for name in names]
    given = given[: 7 if shorter else 8]
    node = helper.make_node(op, given, ["y"], domain=MICROSOFT)
    shapes = {"a": (2, 3), "b": (3,), "y": None}
    a, b, y = (helper.make_tensor_value_info(k, TensorProto.UINT8, s) for k, s in shapes.items())
    graph = helper.make_graph([node], "g", [a, b], [y], constants)
    sets = [helper.make_opsetid("", 18), helper.make_opsetid(MICROSOFT, 1)]
    content = helper.make_model(graph, opset_imports=sets, ir_version=10).SerializeToString()
    try:
        session = ort.InferenceSession(content, providers=["CPUExecutionProvider"])
        loads = session is not None
    except ort.capi.onnxruntime_pybind11_state.Fail:
        loads = False
    (tmp_path / "m.onnx").write_bytes(content)
    assert zs.audit(tmp_path / "m.onnx", "onnxruntime").ok is loads


def test_openvino_reads_no_quantised_gemm(tmp_path: Path) -> None:
    names = ["a", "as", "az", "b", "bs", "bz", "", "ys", "yz"]
    values = {name: np.float32(0.1) if name[1] == "s" else np.int8(0) for name in names if name[1:]}
    constants = [numpy_helper.from_array(np.array(value), k) for k, value in values.items()]
    constants.append(numpy_helper.from_array(np.ones((3, 4), np.int8), "b"))
    node = helper.make_node("QGemm", names, ["y"], domain=MICROSOFT)
    a = helper.make_tensor_value_info("a", TensorProto.INT8, (2, 3))
    y = helper.make_tensor_value_info("y", TensorProto.INT8, None)
    graph = helper.make_graph([node], "g", [a], [y], constants)
    sets = [helper.make_opsetid("", 18), helper.make_opsetid(MICROSOFT, 1)]
    content = helper.make_model(graph, opset_imports=sets, ir_version=10).SerializeToString()
    ort.InferenceSession(content, providers=["CPUExecutionProvider"])
    with pytest.raises(RuntimeError, match="QGemm"):
        ov.Core().read_model(content)
    (tmp_path / "m.onnx").write_bytes(content)
    (finding,) = zs.audit(tmp_path / "m.onnx", "openvino").findings
    assert (finding.verdict, finding.reason) == ("refused", "no_op")
