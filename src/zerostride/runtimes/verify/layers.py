"""A layer of an engine's own file format, run on that engine as it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...models.ir.graph import Graph, Value
from ...models.ir.site import Kind, Site
from ..task import Form, Task


def layer_task(site: Site) -> tuple[Task, Graph]:
    """The layer as a task, and as a graph whose inputs are the task's operands.

    Numbers that decide the layer's meaning, a target shape and the axes of a mapping, are part of
    the task.
    """
    node = site.node
    numbers = _numbers(site)
    inputs = [
        replace(value, name=f"x{k}", content=numbers[k])
        if k in numbers
        else replace(value, name=f"x{k}", constant=False, content=None, reals=None, source=None)
        for k, value in enumerate(node.inputs)
        if value is not None
    ]
    operands = tuple(value for k, value in enumerate(inputs) if k not in numbers)
    own = node.outputs[0] if node.outputs else Value("y", None)
    output = Value("y", None, dtype=own.dtype, quantised=own.quantised)
    isolated = replace(node, inputs=tuple(inputs), outputs=(output,), scope=())
    graph = Graph(node.name, node.domain, node.version, operands, (isolated,), outputs=(output,))
    attributes: dict[str, Any] = {
        "version": f"opset{node.version}" if node.domain == "openvino" else node.version,
        "data": dict(node.attributes),
        "numbers": {str(k): content for k, content in numbers.items()},
    }
    if node.domain == "litert":
        attributes["stored"] = [_stored(value) for value in (*operands, output)]
    fixed = tuple(
        value.constant
        for k, value in enumerate(node.inputs)
        if value is not None and k not in numbers
    )
    return Task(Form.LAYER, node.op, attributes, constant=fixed), graph


def _stored(value: Value) -> list[Any]:
    """The element type of a tensor of LiteRT and its quantisation, as plain data."""
    parts = value.quantised
    lists = [] if parts is None else [list(parts.scales), list(parts.zero_points), parts.axis]
    return [value.dtype or "float32", lists]


def _numbers(site: Site) -> dict[int, tuple[int, ...]]:
    """The operands of a Broadcast that are shapes and axes, by position."""
    if site.kind is not Kind.EXPAND:
        return {}
    target = site.operands[1].shape or ()
    numbers = {1: tuple(size for size in target if isinstance(size, int))}
    axes = site.attributes.get("axes_mapping")
    return numbers if axes is None else {**numbers, 2: tuple(axes)}


__all__ = ["layer_task"]
