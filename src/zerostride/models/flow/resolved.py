"""A graph with the sizes that flow through the model, and the conditions on them."""

from __future__ import annotations

from dataclasses import replace

from ...errors import printable
from ...sizes.condition import ALWAYS, Condition, all_of
from ...sizes.dim import Dim
from ...sizes.parse import unnamed
from ..format_table import FORMATS, lowered
from ..ir.graph import FileShape, Graph, Value
from ..ir.readings import once_per_graph
from . import Flow, flow


def resolved(graph: Graph, facts: Condition = ALWAYS) -> tuple[Graph, Condition, Flow | None]:
    """The graph with every known size in its values.

    A graph whose sizes are all numbers is returned unchanged, without a flow, unless files of its
    format only hint at sizes or a caller gave some. In any other graph every size becomes a number,
    an expression or a symbol; an unknown size becomes a new symbol.

    Args:
        graph: the model.
        facts: conditions on its sizes that the caller knows.

    Returns:
        The graph, the conditions on its sizes, and the flow that found them.
    """
    return _resolved(graph, facts)


@once_per_graph
def _resolved(graph: Graph, facts: Condition) -> tuple[Graph, Condition, Flow | None]:
    hints = FORMATS[graph.format].hints
    if not hints and not graph.sized and graph.settled:
        return graph, facts, None
    sizes = flow(lowered(graph), given=facts)
    whole = graph.with_values(lambda value, number: _with_sizes(value, sizes, number))
    return whole, all_of([facts, sizes.condition]), sizes


def _with_sizes(value: Value, sizes: Flow, number: int) -> Value:
    """The value with its sizes and content from the flow; a constant keeps those of the file."""
    shape = sizes.shape_of(value)
    if value.constant and shape is None:
        return replace(value, shape=_named(value, number))
    content = value.content
    if content is None:
        numbers = sizes.content_of(value)
        if numbers is not None and all(number is not None for number in numbers):
            content = tuple(number for number in numbers if number is not None)
    if content is value.content and value.known and shape == value.shape:
        return value  # most constants; a model may have 100,000
    return replace(value, shape=shape, content=content)


def _named(value: Value, number: int) -> FileShape:
    """The file's shape of a tensor that the flow does not know, with symbols for open sizes.

    Leaving an open size out would give a wrong shape. Each symbol is equal to no other size.
    """
    if value.shape is None or value.known:
        return value.shape
    return tuple(
        size
        if isinstance(size, int | Dim)
        else unnamed(0, None, f"{printable(value.name)}[{axis}]~{number}")
        for axis, size in enumerate(value.shape)
    )


__all__ = ["resolved"]
