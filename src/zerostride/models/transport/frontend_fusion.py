"""Products that OpenVINO's frontend joins with the constant factor after them.

It multiplies the constant second factor of a MatMul by a constant of one number that follows. Of a
vector it makes a matrix first, and forgets to drop the axis again (run:
tests/conformance/test_frontend_fusion.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeGuard

from ..findings import Finding
from ..ir.graph import Graph, Value
from .batch import BatchAxes
from .joining import as_refused, as_wrong


def scaled(graph: Graph, _: BatchAxes) -> Mapping[int, Callable[[Finding], Finding]]:
    """How OpenVINO's frontend changes the findings of factors, by the identity of their nodes."""
    products = {
        id(node.outputs[0]): node
        for node in graph.nodes
        if node.word == "MatMul" and len(node.inputs) == 2 and _is_vector(node.inputs[1])
    }
    if not products:
        return {}
    readers = Counter(id(value) for node in graph.nodes for value in node.inputs)
    changes: dict[int, Callable[[Finding], Finding]] = {}
    for node in graph.nodes:
        if node.word not in ("Mul", "Div") or len(node.inputs) != 2:
            continue
        pairs = [node.inputs] if node.word == "Div" else [node.inputs, node.inputs[::-1]]
        for data, factor in pairs:
            product = products.get(id(data))
            if product is None or readers[id(data)] != 1 or not _is_one_number(factor):
                continue
            left, vector = product.inputs
            if left is None or vector is None or len(left.shape or ()) < 3:
                continue
            words = (
                f"OpenVINO's frontend multiplies {factor.name or 'the factor'} into the vector "
                f"{vector.name or 'before it'}, and keeps an axis that the MatMul drops: write the "
                "vector as a matrix of one column, and Squeeze after the product"
            )
            change = as_wrong if vector.shape == (1,) else as_refused
            changes[id(node)] = partial(change, words=words)
    return changes


def _is_vector(value: Value | None) -> bool:
    return value is not None and value.constant and len(value.shape or ()) == 1


def _is_one_number(value: Value | None) -> TypeGuard[Value]:
    shape = None if value is None or not value.constant else value.shape
    return shape is not None and all(size == 1 for size in shape)
