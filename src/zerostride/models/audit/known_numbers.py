"""Numbers of constants, checked against an engine's narrower element type."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...engines.model import Engine
from ...errors import ZerostrideError
from ..execute import execute
from ..execute.program import readable
from ..findings import Cause, Finding, Verdict
from ..ir.graph import Graph, Node, Value

#: The most elements of a constant that is computed; a table of sines and cosines has some 10^6.
_MOST = 1 << 22


def fitting(graph: Graph, engine: Engine, judged: Sequence[tuple[Node, Finding]]) -> list[Finding]:
    """The findings; a narrowed node is `same` if its numbers are constants that fit."""
    narrower = {row.text: row.narrows for row in engine.divergences if row.narrows is not None}
    return [
        _again(graph, engine.name, node, finding, narrower)
        if finding.reason == Cause.NARROWED
        else finding
        for node, finding in judged
    ]


def _again(
    graph: Graph, engine: str, node: Node, finding: Finding, narrower: dict[str, str]
) -> Finding:
    narrow = next((dtype for text, dtype in narrower.items() if text in finding.message), None)
    values = [value for value in (*node.inputs, *node.outputs) if value is not None]
    if narrow is None or node.scope or not all(map(_small_constant, values)):
        return finding
    names = [value.name for value in values if not readable(value)]
    try:
        arrays = [*execute(graph, {}, names).values()] if names else []
        arrays += [value.data() for value in values if readable(value)]
    except ZerostrideError:  # an op on the way is not executed here
        return finding
    limits = np.iinfo(narrow)
    for array in arrays:
        if array.size and not limits.min <= array.min() <= array.max() <= limits.max:
            return finding
    message = f"means the same on {engine}: its numbers are constants, and fit"
    return replace(finding, verdict=Verdict.SAME, reason=Cause.SAME_PLAN, message=message)


def _small_constant(value: Value) -> bool:
    shape = value.shape
    if not value.constant or not value.name or shape is None:
        return False
    sizes = [size for size in shape if isinstance(size, int)]
    return len(sizes) == len(shape) and math.prod(sizes) <= _MOST
