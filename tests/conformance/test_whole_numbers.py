"""Whole numbers on OpenVINO and MNN, up to the ends of their types, beside what the audit says.

The rows that narrow have a range. Inside it every result is right; where the audit says `same`, all
results are; and each row has numbers outside at which the engine is wrong, or it would be noise.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zerostride as zs
from zerostride.errors import ZerostrideError
from zerostride.models.findings import Verdict
from zerostride.models.reasons import Cause
from zerostride.runtimes.convert.converters import converter_to, run_converter
from zerostride.runtimes.files import tensors
from zerostride.runtimes.process import running
from zerostride.runtimes.task import ReplyKind

onnx = pytest.importorskip("onnx", reason="writes the models")

pytestmark = pytest.mark.conformance

#: Numbers at which engines change, and their neighbours.
TURNS = sorted(
    {
        sign * (number + near)
        for number in (
            0,
            7,
            100,
            2**7,
            2**8,
            2**15,
            2**16,
            2**23,
            2**24,
            2**31,
            2**32,
            2**53,
            2**63,
        )
        for near in (-1, 0, 1)
        for sign in (-1, 1)
    }
)
TYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
COMPARED = ("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual")
OPS = (
    *("Add", "Sub", "Mul", "Div", "Mod", "Pow", "Max", "Min", "Where", *COMPARED),
    *("BitwiseAnd", "BitwiseOr", "BitwiseXor"),
)


def _pairs(op: str, dtype: str) -> list[tuple[int, int]]:
    limits = np.iinfo(dtype)
    numbers = [n for n in TURNS if limits.min <= n <= limits.max]
    pairs = list(itertools.product(numbers, numbers))
    if op in ("Div", "Mod"):
        return [(a, b) for a, b in pairs if b and not (a == limits.min and b == -1)]
    return [(a, b) for a, b in pairs if 0 <= b <= 3] if op == "Pow" else pairs


def _meant(op: str, a: int, b: int, at: int) -> int:
    """The exact result, which may not fit in the type."""
    if op == "Div":
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    functions: dict[str, Any] = {
        "Add": lambda: a + b,
        "Sub": lambda: a - b,
        "Mul": lambda: a * b,
        "Mod": lambda: a % b,
        "Pow": lambda: a**b,
        "Max": lambda: max(a, b),
        "Min": lambda: min(a, b),
        "Where": lambda: (b, a)[at % 2],
        "Equal": lambda: a == b,
        "Greater": lambda: a > b,
        "Less": lambda: a < b,
        "GreaterOrEqual": lambda: a >= b,
        "LessOrEqual": lambda: a <= b,
        "BitwiseAnd": lambda: a & b,
        "BitwiseOr": lambda: a | b,
        "BitwiseXor": lambda: a ^ b,
    }
    return int(functions[op]())


def _model(op: str, arrays: dict[str, Any], path: Path) -> None:
    helper = onnx.helper
    infos = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in arrays.items()
    ]
    node = helper.make_node(op, list(arrays), ["y"], name="y")
    graph = helper.make_graph([node], "g", infos, [helper.make_empty_tensor_value_info("y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    onnx.save(onnx.shape_inference.infer_shapes(model, strict_mode=True), path)


def _answers(engine: str, path: Path, arrays: dict[str, Any]) -> Any:
    """The engine's numbers, by its own reader or converter; None where it refuses."""
    try:
        with running(engine, 120.0) as process:
            if engine == "mnn":
                goal = path.with_suffix(".mnn")
                if run_converter(converter_to("mnn"), path, goal, arrays, 60.0) is not None:
                    return None
                path = goal
            reply = tensors(process, path, arrays, ["y"], outputs=True)
    except ZerostrideError as error:
        if "is not installed" not in str(error):
            raise
        pytest.skip(str(error))  # names the engine and its package
    return reply.arrays[0].reshape(-1) if reply.kind is ReplyKind.RESULT else None


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("engine", ["openvino", "mnn"])
def test_numbers_up_to_the_ends(engine: str, op: str, dtype: str, tmp_path: Path) -> None:
    if op == "Pow" and dtype not in ("int32", "int64"):
        return  # ONNX has no such power
    limits, pairs = np.iinfo(dtype), _pairs(op, dtype)
    if engine == "mnn":  # which holds them as int32
        inside = range(-(2**31), 2**31)
        pairs = [(a, b) for a, b in pairs if a in inside and b in inside]
        pairs = [(a, b) for a, b in pairs if (a, b) != (-(2**31), -1) or op not in ("Div", "Mod")]
    arrays = {
        "a": np.array([a for a, _ in pairs], dtype),
        "b": np.array([b for _, b in pairs], dtype),
    }
    if op == "Where":
        arrays = {"c": np.arange(len(pairs)) % 2 == 1, **arrays}
    path = tmp_path / "m.onnx"
    _model(op, arrays, path)
    (finding,) = zs.audit(path, engine).findings
    results = _answers(engine, path, arrays)
    if results is None:
        assert finding.verdict is Verdict.REFUSED, finding.message
        return
    least, most = int(limits.min), int(limits.max)
    if finding.reason == Cause.NARROWED:
        low, high = finding.divergences[0].held
        least, most = max(least, low), min(most, high)
    exact = [_meant(op, a, b, at) for at, (a, b) in enumerate(pairs)]
    fits = [
        all(least <= number <= most for number in (*pair, result))
        for pair, result in zip(pairs, exact, strict=True)
    ]
    meant = exact if op in COMPARED else [_round(number, dtype) for number in exact]
    right = [int(number) == result for number, result in zip(results.tolist(), meant, strict=True)]
    wrong_inside = [p for p, fit, ok in zip(pairs, fits, right, strict=True) if fit and not ok]
    assert finding.verdict in (Verdict.SAME, Verdict.SAME_HERE), finding.message
    assert not wrong_inside, (finding.message, wrong_inside[:5])
    if finding.verdict is Verdict.SAME:
        assert all(right), finding.message
    elif engine == "openvino" or dtype not in ("uint32", "int64", "uint64"):
        assert not all(right), finding.message  # MNN's inputs do not hold such numbers


def _round(number: int, dtype: str) -> int:
    """The number as the type has it, which goes round at its ends."""
    bits = np.dtype(dtype).itemsize * 8
    inside = number % 2**bits
    return inside - 2**bits if dtype[0] != "u" and inside >= 2 ** (bits - 1) else inside
