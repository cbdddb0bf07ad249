"""Traces a Python function of arrays to a graph, by one call with values of shape and dtype.

The :class:`~.tracer.Tracer` plans, types and records every op on a :class:`~.value.Value`. Python
runs the rest of the function (shapes, Python numbers, control flow on them) during the call. Arrays
of an enclosing scope become operands after those of the call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import TraceError
from .captured import Captured, arrays_of
from .graph import Graph
from .integers import Integers, integers_of
from .operands import Operand, operand_of
from .source import place_of, tell_place
from .structure import Structure, structure_of
from .tracer import Tracer


@dataclass(frozen=True, slots=True)
class Trace:
    """The result of tracing. It unpacks to (graph, structure, captured).

    Attributes:
        graph: the graph. Its last inputs are the captured arrays.
        structure: how the results are packed.
        sources: the captured arrays, in the order of the inputs.
        integers: the conditions on Python integers among the operands.
    """

    graph: Graph
    structure: Structure
    sources: tuple[Captured, ...]
    integers: Integers

    @property
    def captured(self) -> tuple[Any, ...]:
        """The present contents of the captured arrays."""
        return arrays_of(self.sources)

    def __iter__(self) -> Any:
        return iter((self.graph, self.structure, self.captured))


def trace(
    function: Callable[..., Any],
    operands: Sequence[Any],
    static: Mapping[str, Any] | None = None,
    dtype: Any = None,
    named: Sequence[str] = (),
    *,
    own: bool = False,
) -> Trace:
    """Calls a function with values of the operands' shapes and dtypes, and returns its graph.

    A function that computes numbers or arrays by itself is called twice, to see that they are the
    same in every call.

    Args:
        function: takes as many arguments as there are operands, and `static` by name.
        operands: arrays, lists or numbers; or :class:`Operand` for each.
        static: further arguments by name, passed unchanged.
        dtype: the dtype to which incoming numbers, except truth values, are converted.
        named: the names of the last operands, where these are passed by name.
        own: whether Python floats take the dtype of any floats (`compute.semantics.own_kinds`).

    Raises:
        TraceError: the function does what cannot be fused; the message shows the line.
        BroadcastError: shapes that do not combine. It and all other errors that are not the user's
            own say at which line.

    >>> import numpy as np
    >>> graph, _, _ = trace(lambda x: x * 2, [np.zeros((4,), "float32")])
    >>> graph.nodes[-1].op, graph.nodes[-1].dtype
    ('multiply', 'float32')
    """
    inputs = [
        operand if isinstance(operand, Operand) else operand_of(operand, k)
        for k, operand in enumerate(operands)
    ]
    tracer, traced = _called(function, inputs, static or {}, dtype, named, own=own)
    if tracer.computed:
        again, _ = _called(function, inputs, static or {}, dtype, named, own=own)
        _check_steady(tracer.computed, again.computed)
    return traced


def _called(
    function: Callable[..., Any],
    inputs: Sequence[Operand],
    static: Mapping[str, Any],
    dtype: Any,
    named: Sequence[str],
    *,
    own: bool,
) -> tuple[Tracer, Trace]:
    """One call with values."""
    tracer = Tracer(inputs, dtype, own=own)
    values = [tracer.operand(k) for k in range(len(inputs))]
    tracer.computed.clear()
    places = len(values) - len(named)
    by_name = {**static, **dict(zip(named, values[places:], strict=True))}
    try:
        returned = function(*values[:places], **by_name)
        structure, leaves = structure_of(returned, tracer.result, place_of(function))
        outputs = [leaf.node for leaf in leaves]
    except Exception as error:
        tell_place(error, function)
        raise
    finally:
        tracer.closed = True
    graph, sources, weak = tracer.finish(outputs)
    return tracer, Trace(graph, structure, sources, integers_of(graph, weak))


def _check_steady(first: Sequence[tuple[Any, str]], second: Sequence[tuple[Any, str]]) -> None:
    """Refuses a function that computes other numbers the second time, such as random ones.

    They would be those of the first call in every call. Numbers of one line are compared: a first
    call may check or prepare what later calls do not.
    """
    again: dict[str, list[Any]] = {}
    for number, place in second:
        again.setdefault(place, []).append(number)
    rest = {place: iter(numbers) for place, numbers in again.items()}
    for a, place in first:
        b = next(rest.get(place, iter(())), a)
        if a is not b and not _equal(a, b):
            raise TraceError(
                "the function takes other numbers here each time: random ones, the time or a count",
                place,
                "make them an operand, or a setting: f(x, rng.random(3))",
            )


def _equal(a: Any, b: Any) -> bool:
    if not isinstance(a, np.ndarray | np.generic):
        return type(a) is type(b) and repr(a) == repr(b)  # NaN is as the other NaN
    a, b = np.asarray(a), np.asarray(b)
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        return False
    if a.dtype.char in "OgG":  # their bytes are addresses, or partly unused
        return repr(a.tolist()) == repr(b.tolist())
    return bool(a.tobytes() == b.tobytes())


__all__ = ["Operand", "Trace", "Tracer", "operand_of", "trace"]
