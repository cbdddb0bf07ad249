"""Numbers of constants, checked against an engine's narrower element type."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from ...errors import ZerostrideError
from ..execute import execute
from ..execute.program import readable
from ..findings import Finding, Verdict
from ..ir.graph import Graph, Node, Value
from ..reasons import Cause

#: The most elements of a constant that is computed; a table of sines and cosines has some 10^6.
_MOST = 1 << 22
#: Constants that are computed with sizes are below it: float32 has every such number.
_SMALL = 2**24
#: Ops whose results are sizes, and ops whose results are other numbers although they read sizes.
_SIZES = frozenset({"Shape", "Size"})
_DRAWN = frozenset(
    ["Bernoulli", "If", "Loop", "Multinomial", "RandomNormalLike", "RandomUniformLike", "Scan"]
)


def fitting(graph: Graph, engine: str, findings: Mapping[int, Finding]) -> dict[int, Finding]:
    """The findings; a narrowed node is `same` if its numbers are fitting constants or positions.

    Args:
        graph: the model.
        engine: the target's name.
        findings: by the identity of their nodes.
    """
    narrowed = {key: f for key, f in findings.items() if f.reason == Cause.NARROWED}
    of_sizes = _made_of_sizes(graph) if narrowed else frozenset()

    def fitted(node: Node, finding: Finding) -> Finding:
        if _fits(graph, node, finding):
            why = "its numbers are constants, and fit"
        elif all(id(v) in of_sizes or _small_numbers(v) for v in node.inputs if v is not None):
            most = min(row.held[1] for row in finding.divergences)
            why = f"its numbers are sizes and positions, and fit up to {most:,}"
        else:
            return finding
        message = f"means the same on {engine}: {why}"
        return replace(
            finding, verdict=Verdict.SAME, reason=Cause.SAME_PLAN, message=message, divergences=()
        )

    nodes = ((id(node), node) for node in graph.nodes if id(node) in narrowed)
    return {**findings, **{key: fitted(node, narrowed[key]) for key, node in nodes}}


def _made_of_sizes(graph: Graph) -> frozenset[int]:
    """Values, by identity, that are computed from sizes and constants alone, such as positions."""
    made: set[int] = set()
    for node in graph.nodes:
        values = [value for value in node.inputs if value is not None]
        inside = all(id(value) in made or _small_numbers(value) for value in values)
        sized = any(id(value) in made for value in values)
        if node.onnx_op in _SIZES or (inside and sized and node.onnx_op not in _DRAWN):
            made.update(map(id, node.outputs))
    return frozenset(made)


def _small_numbers(value: Value) -> bool:
    """Whether a value is a constant of few whole numbers, each below 2^24."""
    content = value.content if value.constant else None
    return content is not None and all(
        isinstance(number, int) and abs(number) < _SMALL for number in content
    )


def _fits(graph: Graph, node: Node, finding: Finding) -> bool:
    """Whether all numbers of a node are constants that its narrower element type has."""
    rows = [row for row in finding.divergences if row.narrows is not None]
    values = [value for value in (*node.inputs, *node.outputs) if value is not None]
    if all(row.constants for row in rows):
        values = [value for value in values if value.constant]
    if node.scope or not all(map(_small_constant, values)):
        return False
    names = [value.name for value in values if not readable(value)]
    try:
        arrays = [*execute(graph, {}, names).values()] if names else []
        arrays += [value.data() for value in values if readable(value)]
    except ZerostrideError:  # an op on the way is not executed here
        return False
    return all(
        least <= array.min() and array.max() <= most
        for least, most in (row.held for row in rows)
        for array in arrays
        if array.size
    )


def _small_constant(value: Value) -> bool:
    shape = value.shape
    if not value.constant or not value.name or shape is None:
        return False
    sizes = [size for size in shape if isinstance(size, int)]
    return len(sizes) == len(shape) and math.prod(sizes) <= _MOST
