"""Inferred shapes compared with onnx's own node cases and with ONNX Runtime.

Each of the package's node cases is followed twice: with the sizes it has, and with a name for every
size of its inputs, which its own sizes are then put in for.
"""

from __future__ import annotations

import random
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from zerostride.models.flow import Flow, flow
from zerostride.models.formats.onnx.reader import read_onnx
from zerostride.sizes.dim import dim

pytestmark = pytest.mark.conformance

EXAMPLES = Path(__file__).parents[2] / "examples"
DYNAMIC = ["unet_dynamic", "unet_dynamic_script", "transformer_dynamic"]
DYNAMIC += ["transformer_dynamic_script"]


@cache
def cases() -> tuple[Any, ...]:
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        testcases = collect_testcases(None)
    return tuple(case for case in testcases if case.data_sets)


def followed(model: onnx.ModelProto) -> Flow:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "model.onnx")
        file.write_bytes(model.SerializeToString())
        return flow(read_onnx(file))


def without_claims(case: Any) -> onnx.ModelProto:
    """The case's model, its outputs' shapes left for us to find."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    for entry in model.graph.output:
        if entry.type.HasField("tensor_type"):
            entry.type.tensor_type.ClearField("shape")
    return model


def named(model: onnx.ModelProto) -> dict[str, int]:
    """Gives every size of the inputs a name; the sizes by these names."""
    values = {}
    for entry in model.graph.input:
        for axis, size in enumerate(entry.type.tensor_type.shape.dim):
            if size.HasField("dim_value"):
                values[f"{entry.name}_{axis}"] = size.dim_value
                size.dim_param = f"{entry.name}_{axis}"
    return values


def compared(flow: Flow, values: Mapping[str, int], shapes: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with a flow, these sizes put in."""
    yield from map(str, flow.failures)
    for need in flow.conditions:
        known = all(symbol.name in values for symbol in need.condition.symbols)
        if need.certain and known and not need.condition(values):
            yield f"{need} does not hold"
    for value in flow.graph.outputs:
        shape, actual = flow.shape_of(value), shapes.get(value.name)
        if shape is None or actual is None:
            continue
        if len(shape) != len(actual):
            yield f"{value.name}: {shape}, computed {actual}"
            continue
        for size, number in zip(shape, actual, strict=True):
            symbols = dim(size).symbols
            if all(symbol.name in values for symbol in symbols):
                put = {symbol: values[symbol.name] for symbol in symbols}
                if dim(size).evaluate(put) != number:
                    yield f"{value.name}: {shape} at {values}, computed {actual}"


def test_more_than_1500_cases_are_loaded() -> None:
    assert len(cases()) > 1500


@pytest.mark.slow
@pytest.mark.parametrize("symbolic", [False, True])
def test_inferred_shapes_match_the_onnx_node_cases(symbolic: bool) -> None:
    wrong = []
    for case in cases():
        model = without_claims(case)
        values = named(model) if symbolic else {}
        names = [entry.name for entry in model.graph.output]
        data = case.data_sets[0][1]
        shapes = {
            name: tuple(tensor.dims) if hasattr(tensor, "dims") else np.shape(tensor)
            for name, tensor in zip(names, data, strict=True)
            if tensor is not None and not isinstance(tensor, (list, tuple))
        }
        wrong += [
            f"{case.name}: {difference}" for difference in compared(followed(model), values, shapes)
        ]
    assert not wrong


@pytest.mark.parametrize("name", DYNAMIC)
def test_inferred_shapes_of_exported_models_match_onnxruntime(name: str) -> None:
    runtime = pytest.importorskip("onnxruntime")
    model = onnx.load(EXAMPLES / f"{name}.onnx")
    given = {entry.name for entry in model.graph.output}
    for node in model.graph.node:
        for output in node.output:
            if output and output not in given:
                model.graph.output.add().name = output
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = runtime.InferenceSession(model.SerializeToString(), options)
    flow = followed(model)
    assert flow.counts().sizes == flow.counts().axes
    inputs = {value.name: value for value in flow.graph.inputs}
    choice = random.Random(0)
    for _ in range(6):
        values = {symbol.name: choice.choice([1, 2, 3, 5, 8, 17]) for symbol in flow.symbols}
        if not flow.condition(values):
            continue
        feeds = {}
        for entry in session.get_inputs():
            shape = flow.shape_of(inputs[entry.name]) or ()
            sizes = [
                dim(size).evaluate({symbol: values[symbol.name] for symbol in dim(size).symbols})
                for size in shape
            ]
            kinds = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(bool)": bool}
            feeds[entry.name] = np.ones(sizes, kinds[entry.type])
        results = zip(session.get_outputs(), session.run(None, feeds), strict=True)
        shapes = {entry.name: result.shape for entry, result in results}
        assert not list(compared(flow, values, shapes))
