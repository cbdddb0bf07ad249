"""Products that OpenVINO's frontend joins with the constant factor after them.

It multiplies the second factor of a MatMul by a constant that follows, of one number or along its
last axis. Of a constant vector it makes a matrix first, and forgets to drop the axis again; a
vector beside a matrix it takes for a row, and not for a column (run:
tests/conformance/test_frontend_fusion.py).
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial

from ..findings import Finding
from ..ir.graph import Graph, Value
from .batch import BatchAxes
from .joining import as_refused, as_wrong


def scaled(graph: Graph, _: BatchAxes) -> Mapping[int, Callable[[Finding], Finding]]:
    """The findings of factors that OpenVINO's frontend changes, by the identity of their nodes."""
    products = {
        id(node.outputs[0]): node
        for node in graph.nodes
        if node.onnx_op == "MatMul" and len(node.inputs) == 2 and _is_vector(node.inputs[1])
    }
    if not products:
        return {}
    readers = Counter(id(value) for node in graph.nodes for value in node.inputs)
    changes: dict[int, Callable[[Finding], Finding]] = {}
    for node in graph.nodes:
        if node.onnx_op not in ("Mul", "Div") or len(node.inputs) != 2:
            continue
        pairs = [node.inputs] if node.onnx_op == "Div" else [node.inputs, node.inputs[::-1]]
        for data, factor in pairs:
            product = products.get(id(data))
            if product is None or readers[id(data)] != 1:
                continue
            left, vector = product.inputs
            change = _change(left, vector, factor)
            if change is not None:
                changes[id(node)] = change
    return changes


def _change(
    left: Value | None, vector: Value | None, factor: Value | None
) -> Callable[[Finding], Finding] | None:
    if left is None or vector is None or factor is None or not factor.constant:
        return None
    rank, shape, size = len(left.shape or ()), factor.shape or (), (vector.shape or (None,))[0]
    named = f"{factor.name or 'the factor'} into the vector {vector.name or 'before it'}"
    if rank == 2 and shape == (size,) and size != 1:
        words = (
            f"OpenVINO's frontend multiplies {named}, as if that were a row: write the vector as "
            "a matrix of one column, and Squeeze after the product"
        )
        return partial(as_wrong, words=words)
    wide = tuple(itertools.dropwhile(lambda number: number == 1, shape))
    if rank < 3 or not vector.constant or wide not in ((), (size,)):
        return None
    words = (
        f"OpenVINO's frontend multiplies {named}, and keeps an axis that the MatMul drops: write "
        "the vector as a matrix of one column, and Squeeze after the product"
    )
    return partial(as_wrong if size == 1 else as_refused, words=words)


def _is_vector(value: Value | None) -> bool:
    return value is not None and len(value.shape or ()) == 1
