"""Files of one attention, and the finding of an audit."""

from __future__ import annotations

from typing import Any

import pytest

import zerostride as zs

onnx = pytest.importorskip("onnx")


def model(
    tmp_path: Any,
    shapes: dict[str, tuple[Any, ...]],
    op: str = "Attention",
    domain: str = "",
    opset: int = 24,
    order: tuple[str, ...] = (),
    outputs: tuple[str, ...] = ("y",),
    mask: str = "FLOAT",
    kinds: dict[str, str] | None = None,
    **attributes: Any,
) -> str:
    """A file of one node; `kinds` are element types by operand. Returns its path."""
    helper, types = onnx.helper, onnx.TensorProto
    node = helper.make_node(
        op, order or tuple(shapes), outputs, "attend", domain=domain, **attributes
    )
    whole = {"m": mask, "lengths": "INT32", "total": "INT32", "ids": "INT64", **(kinds or {})}
    values = [
        helper.make_tensor_value_info(name, types.DataType.Value(whole.get(name, "FLOAT")), shape)
        for name, shape in shapes.items()
    ]
    results = [helper.make_tensor_value_info(name, types.FLOAT, None) for name in outputs]
    opsets = [helper.make_opsetid("", opset)]
    if domain:
        opsets.append(helper.make_opsetid(domain, 1))
    path = tmp_path / "attention.onnx"
    graph = helper.make_graph([node], "g", values, results)
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=11), path)
    return str(path)


def finding_of(path: str, target: str, **how: Any) -> Any:
    (finding,) = zs.audit(path, target=target, **how).findings
    return finding
