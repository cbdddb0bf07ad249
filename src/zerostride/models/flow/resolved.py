"""A graph with the sizes in it that flow through the model, and what the model needs of them."""

from __future__ import annotations

from dataclasses import replace

from ...errors import printable
from ...sizes.condition import ALWAYS, Condition, all_of
from ...sizes.dim import Dim
from ...sizes.parse import unnamed
from ..formats import FORMATS, lowered
from ..ir.graph import FileShape, Graph, Value
from . import Flow, flow


def resolved(graph: Graph, facts: Condition = ALWAYS) -> tuple[Graph, Condition, Flow | None]:
    """The graph whose values have all that is known of their sizes.

    A graph whose sizes are all numbers comes back as it is, without a flow, unless files of its
    format only hint at sizes, or a caller gave some. In any other every size is a number, an
    expression or a symbol: of one that nothing is known of, a new symbol.

    Args:
        graph: the model.
        facts: what the caller knows of its sizes.

    Returns:
        The graph, what must hold of its sizes, and the flow that says so.
    """
    hints = FORMATS[graph.format].hints
    if not hints and not graph.sized and all(map(_settled, graph.values())):
        return graph, facts, None
    sizes = flow(lowered(graph), given=facts)
    whole = graph.with_values(lambda value, number: _with_sizes(value, sizes, number))
    return whole, all_of([facts, sizes.condition]), sizes


def _settled(value: Value) -> bool:
    """Whether nothing is to be found out about a tensor's sizes."""
    return value.known or (value.constant and value.shape is None)


def _with_sizes(value: Value, sizes: Flow, number: int) -> Value:
    """The value with what flows through it; what the file has of a constant stays."""
    shape = sizes.shape_of(value)
    if value.constant and shape is None:
        return replace(value, shape=_named(value, number))
    content = value.content
    if content is None:
        numbers = sizes.content_of(value)
        if numbers is not None and all(number is not None for number in numbers):
            content = tuple(number for number in numbers if number is not None)
    return replace(value, shape=shape, content=content)


def _named(value: Value, number: int) -> FileShape:
    """A shape of the file that the flow has nothing to say of, its open sizes symbols.

    A size that is left out of a shape is a wrong shape; one of these is equal to nothing else.
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
