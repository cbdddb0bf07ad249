"""Measures how far an engine's functions are from the exact ones: the rows of `APPROXIMATED`.

    python -m campaigns.models.approximations mnn ncnn openvino

prints a line for each function: the largest error, relative to the larger of 1 and the exact
number (of a convolution: to the largest number of the result), and the operand at which it is.
"""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from campaigns.real_models.convert import CONVERTERS, convert
from zerostride.models.execute import execute
from zerostride.models.formats import read_model
from zerostride.runtimes.process import MODEL_SECONDS, running
from zerostride.runtimes.verify.rounding import like
from zerostride.runtimes.verify.whole_model import feed_of

SHAPE = (1, 16, 112, 112)
#: Operands from -12 to 12, 200,704 of them: beyond these the functions are flat, or exact.
_WIDE = np.linspace(-12, 12, math.prod(SHAPE)).reshape(SHAPE)
_ABOVE_0 = np.linspace(1e-3, 12, math.prod(SHAPE)).reshape(SHAPE)
_SMALL = np.linspace(-1, 1, math.prod(SHAPE)).reshape(SHAPE)
_MIXED = np.random.default_rng(0).permutation(_WIDE.reshape(-1)).reshape(SHAPE)

#: An op, its operands besides the first, and its attributes; the last makes the result.
_Step = tuple[str, tuple[Any, ...], Mapping[str, Any]]


class Function(NamedTuple):
    """Nodes one after the other, and the operand that shows their errors.

    Attributes:
        op: the row of the table that they belong to.
        steps: the nodes; an operand that is a text is a result before, "x" or "t0", or a number.
        x: the first operand.
    """

    op: str
    steps: tuple[_Step, ...]
    x: Any = _WIDE


def _plain(op: str, x: Any = _WIDE, *more: Any, **attributes: Any) -> Function:
    return Function(op, ((op, more, attributes),), x)


def _conv(extent: int, x: Any = _MIXED / 12) -> Function:
    """A convolution of windows of that extent, with results of order 1."""
    weights = np.random.default_rng(1).uniform(-1, 1, (16, 16, extent, extent)) / (4 * extent)
    return _plain("Conv", x, weights, pads=[extent // 2] * 4)


FUNCTIONS: Mapping[str, Function] = {
    "Erf": _plain("Erf"),
    "gelu of Erf": Function(
        "Erf",
        (("Mul", (2**-0.5,), {}), ("Erf", (), {}), ("Add", (1.0,), {}), ("Mul", ("x",), {}),
         ("Mul", (0.5,), {})),
    ),
    "Gelu": _plain("Gelu", approximate="none"),
    "Gelu of tanh": _plain("Gelu", approximate="tanh"),
    "gelu of Tanh": Function(
        "Tanh",
        (("Mul", ("x",), {}), ("Mul", ("x",), {}), ("Mul", (0.044715,), {}), ("Add", ("x",), {}),
         ("Mul", ((2 / math.pi) ** 0.5,), {}), ("Tanh", (), {}), ("Add", (1.0,), {}),
         ("Mul", ("x",), {}), ("Mul", (0.5,), {})),
    ),
    **{op: _plain(op) for op in ("Tanh", "Sigmoid", "Softplus", "Mish", "Sin", "Cos", "HardSwish")},
    "Exp": _plain("Exp", _SMALL * 5),
    "silu of Sigmoid": Function("Sigmoid", (("Sigmoid", (), {}), ("Mul", ("x",), {}))),
    "Softmax": _plain("Softmax", _MIXED, axis=-1),
    "LayerNormalization": _plain(
        "LayerNormalization", _MIXED, np.ones(SHAPE[-1]), np.zeros(SHAPE[-1]), axis=-1
    ),
    "Pow": _plain("Pow", _ABOVE_0, 1.7),
    "Sqrt": _plain("Sqrt", _ABOVE_0),
    "Reciprocal": _plain("Reciprocal", _ABOVE_0 + 0.1),
    "Conv 1x1": _conv(1),
    "Conv 3x3": _conv(3),
    "Conv 3x3 of large numbers": _conv(3, _MIXED),
    "Conv 5x5": _conv(5),
}  # fmt: skip


def model_of(function: Function) -> onnx.ModelProto:
    """The ONNX model of a function."""
    nodes, constants, last = [], [], "x"
    for k, (op, operands, attributes) in enumerate(function.steps):
        names = [last]
        for j, operand in enumerate(operands):
            names.append(operand if isinstance(operand, str) else f"c{k}_{j}")
            if not isinstance(operand, str):
                constants.append(
                    numpy_helper.from_array(np.asarray(operand, np.float32), names[-1])
                )
        last = "y" if k == len(function.steps) - 1 else f"t{k}"
        nodes.append(helper.make_node(op, names, [last], **attributes))
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, SHAPE) for n in "xy"]
    graph = helper.make_graph(nodes, "function", ends[:1], ends[1:], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def measured(function: Function, engine: str, folder: Path) -> tuple[float, float] | str:
    """The largest error, and its operand; or why nothing was measured."""
    file = folder / "function.onnx"
    onnx.save(model_of(function), file)
    converter = next(name for name, row in CONVERTERS.items() if row[0] == engine)
    place = convert(file, converter, (f"x={','.join(map(str, SHAPE))}",), folder / engine)
    if isinstance(place, str):
        return place
    graph = read_model(file)
    inputs = {"x": np.asarray(function.x, np.float32)}
    expected = execute(graph, inputs)
    with running(engine, MODEL_SECONDS) as process:
        reply = feed_of(graph, place, process, inputs, None, expected)[1]
    if not reply.arrays:
        return reply.message
    meant = like(expected["y"], reply.arrays[0].shape).astype(np.float64)
    size = np.abs(meant).max() if function.op == "Conv" else np.maximum(1, np.abs(meant))
    error = np.abs(meant - reply.arrays[0]) / size
    at = int(error.reshape(-1).argmax())
    return float(error.reshape(-1)[at]), float(inputs["x"].reshape(-1)[at])


def rows(engine: str) -> Iterator[tuple[str, tuple[float, float] | str]]:
    """Yield each function, measured on an engine."""
    for name, function in FUNCTIONS.items():
        with tempfile.TemporaryDirectory() as folder:
            yield name, measured(function, engine, Path(folder))


def _main() -> None:
    for engine in sys.argv[1:] or ("mnn",):
        for name, row in rows(engine):
            text = row[:100] if isinstance(row, str) else f"{row[0]:.2e} at {row[1]:.4g}"
            print(f"{engine:9} {name:26} {text}", flush=True)


if __name__ == "__main__":
    _main()
