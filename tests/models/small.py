"""Small ONNX models for tests, made with the onnx package, and their audits."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

import zerostride as zs
from zerostride.models.findings import Finding, Report

Shape = Sequence[int | str | None] | None


def model(
    nodes: Sequence[Any],
    inputs: Mapping[str, Shape],
    weights: Mapping[str, Any] | None = None,
    *,
    opset: int = 21,
    outputs: Sequence[str] = ("y",),
    functions: Sequence[Any] = (),
    domains: Sequence[str] = (),
) -> ModelProto:
    """A model of float tensors; weights are arrays, or shapes of ones."""
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in inputs.items()
    ]
    constants = [
        numpy_helper.from_array(
            np.ones(value, np.float32) if isinstance(value, tuple) else np.asarray(value), name
        )
        for name, value in (weights or {}).items()
    ]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    return helper.make_model(
        helper.make_graph(nodes, "g", values, results, constants),
        opset_imports=[
            helper.make_opsetid("", opset),
            *(helper.make_opsetid(d, 1) for d in domains),
        ],
        functions=functions,
    )


def node(op: str, inputs: str, outputs: str = "y", *, name: str = "site", **more: Any) -> Any:
    """A node; names of tensors in one string, "-" for an input that is left out."""
    names = ["" if part == "-" else part for part in inputs.split()]
    return helper.make_node(op, names, outputs.split(), name=name, **more)


def audit(content: ModelProto | bytes, target: str, via: str | None = None, **more: Any) -> Report:
    """The audit of a model that is written to a file for it."""
    data = content if isinstance(content, bytes) else content.SerializeToString()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", zs.EngineVersionWarning)
        file = Path(folder, "model.onnx")
        file.write_bytes(data)
        return zs.audit(file, target, via, **more)


def site(
    op: str,
    inputs: Mapping[str, Shape],
    weights: Mapping[str, Any] | None = None,
    *,
    target: str = "ncnn",
    opset: int = 21,
    domain: str = "",
    options: Mapping[str, Any] | None = None,
    **attributes: Any,
) -> Finding:
    """The finding of a model of one node that takes the inputs, then the weights."""
    names = " ".join([*inputs, *(weights or {})])
    only = node(op, names, domain=domain, **attributes)
    domains = [domain] if domain else []
    content = model([only], inputs, weights, opset=opset, domains=domains)
    (finding,) = audit(content, target, **(options or {})).findings
    return finding
