"""MNN files with open sizes: given sizes give MNN's shapes.

The converter writes a While for an LSTM, a window of one column for a convolution along one axis,
and three ops for the axis of a Gather: what they mean depends on ranks that the file does not have.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zerostride as zs

pytest.importorskip("MNN", reason="MNN reads and runs its own files")
onnx = pytest.importorskip("onnx", reason="what is converted are ONNX files")

WORKER = Path(__file__).with_name("mnn_worker.py")
RNG = np.random.default_rng(0)


def worker(*arguments: object) -> None:
    """Runs the child."""
    command = [sys.executable, str(WORKER), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, timeout=120, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]


def model(nodes: list[Any], shape: list[Any], constants: dict[str, Any]) -> Any:
    """A model of an input `x` and an output `y`."""
    inputs = [onnx.helper.make_tensor_value_info("x", 1, shape)]
    outputs = [onnx.helper.make_tensor_value_info("y", 1, None)]
    values = [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = onnx.helper.make_graph(nodes, "g", inputs, outputs, values)
    sets = [onnx.helper.make_opsetid("", 17)]
    return onnx.helper.make_model(graph, opset_imports=sets, ir_version=8)


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    names = ["" if name == "-" else name for name in inputs.split()]
    return onnx.helper.make_node(op, names, outputs.split(), **attributes)


def floats(*shape: int) -> Any:
    return RNG.uniform(-0.3, 0.3, shape).astype(np.float32)


def whole(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


def lstm(directions: int) -> Any:
    """All hidden states, whose first axis is time; the converter takes an open batch for 1."""
    kind = "bidirectional" if directions == 2 else "forward"
    constants = {
        "w": floats(directions, 32, 4),
        "r": floats(directions, 32, 8),
        "b": floats(directions, 64),
        "bias": floats(8),
    }
    nodes = [
        node("Transpose", "x", "t", perm=[1, 0, 2]),
        node("LSTM", "t w r b", "all last cell", hidden_size=8, direction=kind),
        node("Add", "all bias", "y"),
    ]
    return model(nodes, [1, "time", 4], constants)


MODELS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "lstm": (lstm(1), (1, 5, 4)),
    "lstm_both_ways": (lstm(2), (1, 3, 4)),
    "rows": (
        model(
            [
                node("Unsqueeze", "x n", "u"),
                node("Conv", "u w", "c", strides=[2]),
                node("Conv", "c v", "d"),
                node("Add", "d b", "y"),
            ],
            [1, "samples"],
            {"n": whole(1), "w": floats(3, 1, 5), "v": floats(2, 3, 1), "b": floats(2, 1)},
        ),
        (1, 31),
    ),
    "spectrum": (
        model(
            [node("STFT", "x step window", "y")],
            [1, "samples"],
            {"step": np.int64(20), "window": np.hanning(32).astype(np.float32)},
        ),
        (1, 100),
    ),
    "crop": (
        model([node("Pad", "x n", "p"), node("Add", "p x", "y")], [2, "size"],
              {"n": whole(0, 1, 0, -1)}),
        (2, 7),
    ),
    # MNN 3.6.1 writes beyond its memory where both ends are cut: the begin stays.
    "shorter": (model([node("Pad", "x n", "y")], [3, "size"], {"n": whole(0, 1, 0, -2)}), (3, 7)),
    "last": (
        model(
            [node("Reshape", "x n", "flat"), node("Gather", "flat i", "y", axis=-1)],
            [2, "size"],
            {"n": whole(-1), "i": whole(1, -1, 0)},
        ),
        (2, 7),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_given_sizes_give_mnns_shapes(name: str, tmp_path: Path) -> None:
    content, shape = MODELS[name]
    onnx.save(content, tmp_path / "m.onnx")
    file = tmp_path / "m.mnn"
    worker("convert", tmp_path / "m.onnx", file)
    np.savez(tmp_path / "in.npz", x=floats(*shape))
    worker("run", file, tmp_path / "in.npz", tmp_path / "out.npz", "y")
    computed = np.load(tmp_path / "out.npz")["y"]
    open_sized = zs.shapes(file).shapes["y"]
    assert open_sized is not None
    assert len(open_sized) == computed.ndim
    given = zs.shapes(file, input_shapes={"x": shape}).shapes["y"]
    assert given is not None
    for size, real in zip(given, computed.shape, strict=True):
        assert size == real or not isinstance(size, int)
    assert "unknown" not in {str(f.verdict) for f in zs.audit(file, "ncnn").findings}
