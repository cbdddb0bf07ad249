"""Ported models, computed and compared with the original."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import small
from onnx import helper

import zerostride as zs
from zerostride.models.execute import execute
from zerostride.models.findings import Report
from zerostride.models.formats import read_model


def model_of(
    nodes: Sequence[Any],
    inputs: Mapping[str, Any],
    weights: Mapping[str, Any] | None = None,
    **more: Any,
) -> onnx.ModelProto:
    content = small.model(nodes, inputs, weights, **more)
    content.ir_version = 10 if more.get("opset", 21) > 8 else 3
    if content.ir_version < 4:
        for tensor in content.graph.initializer:
            content.graph.input.append(
                helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            )
    return content


def ported(
    folder: Path,
    model: onnx.ModelProto,
    target: str,
    *,
    real: Mapping[str, int] | None = None,
    **more: Any,
) -> Report:
    """The report of a port whose result computes what the model computes, and needs no other."""
    file, goal = folder / "model.onnx", folder / "ported.onnx"
    file.write_bytes(model.SerializeToString())
    report = zs.port(file, target, goal, **more)
    assert report.output == str(goal)
    assert report.command == "port"
    compare(file, goal, real or {})
    again = zs.port(goal, target, folder / "again.onnx", **more)
    assert again.changes == ()
    assert goal.read_bytes() == (folder / "again.onnx").read_bytes()
    assert sorted(os.listdir(folder)) == ["again.onnx", "model.onnx", "ported.onnx"]
    return report


def compare(file: Path, goal: Path, sizes: Mapping[str, int]) -> None:
    """Both models on the same numbers; sizes without a number are 4."""
    rng = np.random.default_rng(0)
    graph = read_model(file)
    fed = {}
    for value in graph.inputs:
        shape = tuple(s if isinstance(s, int) else sizes.get(str(s), 4) for s in value.shape or ())
        array = rng.standard_normal(shape)
        fed[value.name] = np.asarray(array > 0 if value.dtype == "bool" else array).astype(
            value.dtype or "float32"
        )
    before, after = execute(graph, fed), execute(read_model(goal), fed)
    assert before.keys() == after.keys()
    for name, array in before.items():
        np.testing.assert_array_equal(array, after[name], strict=True)


def by(report: Report) -> list[str]:
    return [change.by for change in report.changes]


def one(op: str, inputs: Mapping[str, Any], weights: Any = None, **more: Any) -> onnx.ModelProto:
    names = " ".join([*inputs, *(weights or {})])
    options = {key: more.pop(key) for key in ("opset",) if key in more}
    return model_of([small.node(op, names, **more)], inputs, weights, **options)
