"""Numbers of constants, checked against an engine's narrower element type."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...errors import ZerostrideError
from ..execute import execute
from ..execute.program import readable
from ..findings import Finding, Verdict
from ..ir.graph import Graph, Node, Value
from ..reasons import Cause

#: The most elements of a constant that is computed; a table of sines and cosines has some 10^6.
_MOST = 1 << 22


def fitting(graph: Graph, engine: str, judged: Sequence[tuple[Node, Finding]]) -> list[Finding]:
    """The findings; a narrowed node is `same` if its numbers are constants that fit."""
    message = f"means the same on {engine}: its numbers are constants, and fit"
    return [
        replace(
            finding,
            verdict=Verdict.SAME,
            reason=Cause.SAME_PLAN,
            message=message,
            divergences=(),
        )
        if finding.reason == Cause.NARROWED and _fits(graph, node, finding)
        else finding
        for node, finding in judged
    ]


def _fits(graph: Graph, node: Node, finding: Finding) -> bool:
    """Whether all numbers of a node are constants that its narrower element type has."""
    values = [value for value in (*node.inputs, *node.outputs) if value is not None]
    if node.scope or not all(map(_small_constant, values)):
        return False
    names = [value.name for value in values if not readable(value)]
    try:
        arrays = [*execute(graph, {}, names).values()] if names else []
        arrays += [value.data() for value in values if readable(value)]
    except ZerostrideError:  # an op on the way is not executed here
        return False
    limits = [np.iinfo(row.narrows) for row in finding.divergences if row.narrows is not None]
    return all(
        limit.min <= array.min() and array.max() <= limit.max
        for limit in limits
        for array in arrays
        if array.size
    )


def _small_constant(value: Value) -> bool:
    shape = value.shape
    if not value.constant or not value.name or shape is None:
        return False
    sizes = [size for size in shape if isinstance(size, int)]
    return len(sizes) == len(shape) and math.prod(sizes) <= _MOST
