"""Notes on nodes that a converter misreads, by their constants; no converter runs here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import zerostride as zs


@pytest.mark.parametrize(("constant", "notes"), [([-1], 1), ([1], 0), ([b"a"], 0), ([-1.0], 0)])
@pytest.mark.parametrize(
    ("op", "target", "constants"),
    [("GatherElements", "mnn", 1), ("Pad", "mnn", 1), ("Slice", "ncnn", 4)],
)
def test_constants_below_0_alone_are_noted(
    tmp_path: Path, op: str, target: str, constants: int, constant: list[Any], notes: int
) -> None:
    """A malformed file has texts or floats there."""
    kind = object if isinstance(constant[0], bytes) else None
    array = np.array(constant * (2 if op == "Pad" else 1), kind)
    node = helper.make_node(op, ["x", *["c"] * constants], ["y"], "n")
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (4,))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, "c")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "m.onnx")
    report = zs.audit(tmp_path / "m.onnx", target=target)
    assert sum(f"misreads {op} 'n'" in note for note in report.notes) == notes
