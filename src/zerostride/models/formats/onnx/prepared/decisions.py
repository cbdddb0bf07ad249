"""Branches of If that some inputs decide, with numbers in their place."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ....ir.names import take
from ....onnx_ops.validation import nodes_of
from .rewriting import read_inside

if TYPE_CHECKING:
    import onnx


def with_decisions(path: Path, numbers: Mapping[str, float]) -> list[str]:
    """Puts numbers in the place of inputs that decide which branch of an If runs; which inputs.

    The inputs stay, and nothing reads them any more. Each If that is decided becomes its branch.

    Args:
        path: a file that `with_shapes` wrote.
        numbers: by the names of inputs of one number.
    """
    import onnx
    from onnx import helper, numpy_helper

    model = onnx.load(path)
    graph = model.graph
    nodes = [*nodes_of(graph.node)]
    names = {name for node in nodes for name in (*node.input, *node.output)}
    deciding = _ancestors(graph, [node.input[0] for node in nodes if node.op_type == "If"])
    inputs = [value for value in graph.input if value.name in deciding & numbers.keys()]
    for value in inputs:
        kind = value.type.tensor_type
        dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
        shape = [dim.dim_value for dim in kind.shape.dim]
        fixed = take(f"{value.name}_fixed", names)
        array = np.full(shape, numbers[value.name], dtype)
        graph.initializer.append(numpy_helper.from_array(array, fixed))
        for node in nodes:
            node.input[:] = [fixed if name == value.name else name for name in node.input]
    if inputs:
        while _decided(model):
            pass
        onnx.save(model, path)
    return [value.name for value in inputs]


def _decided(model: onnx.ModelProto) -> bool:
    """Puts a branch in the place of the first If of the graph that constants decide, if any."""
    from onnx import helper

    graph = model.graph
    for place, node in enumerate(graph.node):
        holds = _number(model, node.input[0]) if node.op_type == "If" else None
        if holds is None:
            continue
        wanted = "then_branch" if holds else "else_branch"
        branch = next(one.g for one in node.attribute if one.name == wanted)
        nodes = [*branch.node]
        for value, result in zip(branch.output, node.output, strict=True):
            nodes.append(
                helper.make_node("Identity", [value.name], [result], name=f"{result}_taken")
            )
        every = [*graph.node[:place], *nodes, *graph.node[place + 1 :]]
        graph.initializer.extend(branch.initializer)
        del graph.node[:]
        graph.node.extend(every)
        return True
    return False


def _number(model: onnx.ModelProto, name: str) -> bool | None:
    """A truth value that depends on constants alone; None for another."""
    from onnx import TensorProto, helper
    from onnx.reference import ReferenceEvaluator

    graph = model.graph
    needed = _ancestors(graph, [name])
    nodes = [node for node in graph.node if needed.intersection(node.output)]
    if needed.intersection(value.name for value in graph.input):
        return None
    constants = [tensor for tensor in graph.initializer if tensor.name in needed]
    result = helper.make_tensor_value_info(name, TensorProto.BOOL, None)
    part = helper.make_graph(nodes, "decision", [], [result], constants)
    small = helper.make_model(part, opset_imports=model.opset_import, ir_version=model.ir_version)
    (array,) = ReferenceEvaluator(small).run(None, {})
    return bool(np.asarray(array).all())


def _ancestors(graph: onnx.GraphProto, names: list[str]) -> set[str]:
    """The tensors that some depend on, and these."""
    makers = {name: node for node in nodes_of(graph.node) for name in node.output}
    every, waiting = set[str](), [*names]
    while waiting:
        name = waiting.pop()
        if name not in every:
            every.add(name)
            maker = makers.get(name)
            waiting += [*maker.input, *read_inside(maker)] if maker is not None else []
    return every


__all__ = ["with_decisions"]
