"""Models of a few nodes, and the same models written with other ops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from zerostride.models.formats.onnx.prepared import (
    rewritten,
    with_floats,
    with_functions,
    with_shapes,
)

Array = np.ndarray[Any, Any]


def saved(
    path: Path,
    nodes: list[onnx.NodeProto],
    inputs: dict[str, Array],
    outputs: list[str],
    constants: dict[str, Array] | None = None,
    kinds: dict[str, int] | None = None,
    version: int = 19,
) -> Path:
    """A model whose inputs have open sizes."""
    values = [
        helper.make_tensor_value_info(
            name,
            helper.np_dtype_to_tensor_dtype(array.dtype),
            [f"{name}{k}" for k in range(array.ndim)],
        )
        for name, array in inputs.items()
    ]
    results = [
        helper.make_tensor_value_info(name, (kinds or {}).get(name, TensorProto.FLOAT), None)
        for name in outputs
    ]
    held = [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(nodes, "m", values, results, held)
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=9),
        path,
    )
    return path


def compared(
    path: Path,
    inputs: dict[str, Array],
    lacking: set[str],
    goal: Path,
    expected: Array | None = None,
) -> set[str]:
    """The ops of the rewritten model, which computes what the model computes, or `expected`."""
    with_shapes(path, goal, {name: array.shape for name, array in inputs.items()})
    done = {*with_functions(goal, frozenset(lacking)), *rewritten(goal, frozenset(lacking))}
    new = onnx.load(goal)
    onnx.shape_inference.infer_shapes(new, strict_mode=True)
    with np.errstate(all="ignore"):
        meant = ReferenceEvaluator(str(path)).run(None, inputs) if expected is None else [expected]
        pairs = zip(meant, ReferenceEvaluator(new).run(None, inputs), strict=True)
    for want, got in pairs:
        assert np.shape(want) == np.shape(got)
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5)
    assert done
    return {node.op_type for node in new.graph.node}


def random(*shape: int) -> Array:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def floated(path: Path, inputs: dict[str, Array], goal: Path) -> set[str]:
    """The ops of the model with floats for whole numbers, which computes what the model does."""
    with_shapes(path, goal, {name: array.shape for name, array in inputs.items()})
    changed = with_floats(goal)
    assert changed is not None
    new = onnx.load(goal)
    onnx.shape_inference.infer_shapes(new, strict_mode=True)
    assert {value.type.tensor_type.elem_type for value in new.graph.output} == {TensorProto.FLOAT}
    floats = {n: a.astype(np.float32) if n in changed else a for n, a in inputs.items()}
    with np.errstate(all="ignore"):
        pairs = zip(
            ReferenceEvaluator(str(path)).run(None, inputs),
            ReferenceEvaluator(new).run(None, floats),
            strict=True,
        )
    for want, got in pairs:
        assert np.shape(want) == np.shape(got)
        np.testing.assert_array_equal(got, np.asarray(want, np.float32))
    return {node.op_type for node in new.graph.node}
