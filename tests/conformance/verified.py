"""Models of one op, verified on an engine if it is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zerostride as zs
from zerostride.errors import ModelError, ZerostrideError
from zerostride.models.findings import Report

onnx = pytest.importorskip("onnx", reason="writes the models")


def verified(model: Any, engine: str, **more: Any) -> Report:
    try:
        return zs.verify(model, engine, **more)
    except ModelError:
        raise
    except ZerostrideError as error:
        if "is not installed" in str(error):
            pytest.skip(str(error))
        raise


def one_op(folder: Path, op: str, *shapes: Any, dtype: Any = np.float32, **attrs: Any) -> Path:
    names = [f"x{k}" for k in range(len(shapes))]
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    inputs = [
        onnx.helper.make_tensor_value_info(n, kind, s) for n, s in zip(names, shapes, strict=True)
    ]
    nodes = [
        onnx.helper.make_node(op, names, ["y"], name="site", **attrs),
        onnx.helper.make_node("Add", [names[0], names[0]], ["z"], name="after"),
    ]
    results = [onnx.helper.make_empty_tensor_value_info(name) for name in "yz"]
    graph = onnx.helper.make_graph(nodes, "g", inputs, results)
    opsets = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), folder / "m.onnx")
    return folder / "m.onnx"


def call(*words: Any) -> tuple[int, str, str]:
    """The status, the output and the errors of `zerostride verify`."""
    done = subprocess.run(
        [sys.executable, "-m", "zerostride", "verify", *map(str, words)],
        capture_output=True, text=True, env={**os.environ}, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr
