"""Element-wise ONNX ops of rank 0 and 1: OpenVINO's frontend beside ONNX Runtime and the audit."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import openvino_runs
import pytest

import zerostride as zs
from zerostride.models.onnx_ops.sites import ROWS

onnx = pytest.importorskip("onnx", reason="writes the models")

pytestmark = pytest.mark.conformance

Arrays = dict[str, np.ndarray[Any, Any]]
F, B = "float32", "bool"
#: Op, element types of the operands, attributes.
OPS: tuple[tuple[str, tuple[str, ...], dict[str, Any]], ...] = (
    *((op, (F, F), {}) for op in ("Add", "Sub", "Mul", "Div", "Pow", "PRelu")),
    *((op, (F, F), {}) for op in ("Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal")),
    *((op, (F,) * count, {}) for op in ("Max", "Min", "Sum", "Mean") for count in (2, 3)),
    *((op, (B, B), {}) for op in ("And", "Or", "Xor")),
    *((op, ("int32", "int32"), {}) for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")),
    *(
        ("BitShift", (dtype, dtype), {"direction": direction})
        for dtype in ("uint8", "uint16", "uint32", "uint64")
        for direction in ("LEFT", "RIGHT")
    ),
    ("Mod", ("int64", "int64"), {}),
    ("Mod", (F, F), {"fmod": 1}),
    ("Where", (B, F, F), {}),
)
SHAPES = ((), (1,), (3,))


def _numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Any:
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return np.asarray(rng.random(shape) + 0.5, kind)
    most = 2 if kind.kind == "b" else 8
    return np.asarray(rng.integers(kind.kind != "b", most, shape), kind)


def _model(op: str, arrays: Arrays, fixed: Arrays, attributes: dict[str, Any]) -> Any:
    helper = onnx.helper
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in arrays.items()
    ]
    weights = [onnx.numpy_helper.from_array(array, name) for name, array in fixed.items()]
    node = helper.make_node(op, sorted({*arrays, *fixed}), ["y"], **attributes)
    result = helper.make_empty_tensor_value_info("y")
    graph = helper.make_graph([node], "g", infos, [result], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def _checked(model: Any, fed: Arrays, file: Path) -> None:
    """Checks that an audit to OpenVINO says `same` where OpenVINO's result is ONNX Runtime's."""
    pytest.importorskip("openvino", reason="runs it")
    ort = pytest.importorskip("onnxruntime", reason="runs it")
    onnx.save(model, file)
    content = model.SerializeToString()
    core = openvino_runs.cpu()
    theirs = np.array(core.compile_model(core.read_model(content), "CPU")(fed)[0])
    meant = ort.InferenceSession(content, providers=["CPUExecutionProvider"]).run(None, fed)[0]
    equal = theirs.shape == meant.shape and np.allclose(
        theirs, meant, 1e-6 if meant.dtype.kind == "f" else 0, 0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (finding,) = zs.audit(file, target="openvino").findings
    if finding.verdict == "same_here":
        return  # numbers beyond a narrower type: tests/conformance/test_whole_numbers.py
    assert (finding.verdict == "same") is equal, (finding.message, theirs, meant)


def _places(count: int) -> Iterator[int | None]:
    yield from (None, *range(count))


@pytest.mark.slow
@pytest.mark.parametrize(("op", "kinds", "attributes"), OPS, ids=str)
def test_ranks_of_zero_and_one(
    op: str, kinds: tuple[str, ...], attributes: dict[str, Any], tmp_path: Path
) -> None:
    rng = np.random.default_rng(3)
    for shapes in product(SHAPES, repeat=len(kinds)):
        for constant in _places(len(kinds)):
            every = {
                "abc"[k]: _numbers(rng, shape, kind)
                for k, (shape, kind) in enumerate(zip(shapes, kinds, strict=True))
            }
            if op == "PRelu" and len(shapes[1]) > len(shapes[0]):
                continue  # the document allows no such slope
            if op == "BitShift":
                bits = np.dtype(kinds[0]).itemsize * 8
                every["a"] = np.full_like(every["a"], 2 ** (bits - 1) + 2 ** (bits // 2) + 5)
                every["b"] = np.full_like(every["b"], 1)
            fed = {name: a for k, (name, a) in enumerate(every.items()) if k != constant}
            fixed = {name: a for name, a in every.items() if name not in fed}
            _checked(_model(op, fed, fixed, attributes), fed, tmp_path / "m.onnx")


@pytest.mark.parametrize("target", [(), (1,), (3,), (2, 3), (2, 1)], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_an_expand_to_a_constant(
    shape: tuple[int, ...], target: tuple[int, ...], tmp_path: Path
) -> None:
    fed = {"a": np.ones(shape, np.float32)}
    fixed = {"b": np.array(target, np.int64)}
    _checked(_model("Expand", fed, fixed, {}), fed, tmp_path / "m.onnx")


def test_every_element_wise_op_is_asked() -> None:
    asked = {op for op, _, _ in OPS} | {"Expand", "StringConcat"}
    builders = {ROWS[op] for op in ("Add", "Max", "Where", "Expand", "PRelu")}
    assert {op for op, builder in ROWS.items() if builder in builders} == asked
