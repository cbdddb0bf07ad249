"""Gradients of fused functions: a result and its pullback.

The pullback is one fused program of operands and cotangents (`graph`). It recomputes the forward
values that it needs; the adjoints of broadcasts are sums in the same passes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...compute.reference import as_operand
from ...compute.special import cast, is_float
from ...errors import BroadcastError, Reason
from ..calls import Call, Compiled, run
from ..run import Ready, ready, run_into
from ..trace.graph import Graph, Node
from ..trace.structure import Structure
from ..trace.tracing import Operand, operand_of
from .graph import backward


@dataclass(frozen=True, slots=True)
class Gradients:
    """How the gradients of one signature are computed.

    Attributes:
        ready: their graph; None where all gradients are 0.
        places: for each operand, which of the graph's outputs is its gradient; None where it is 0.
        operands: the operands that have gradients.
    """

    ready: Ready | None
    places: tuple[int | None, ...]
    operands: tuple[Operand, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Pullback:
    """Takes the cotangents of a call's results back to its operands; see :meth:`Fused.vjp`.

    It holds the operands themselves: if they are written to before a call, it uses the new values.
    """

    gradients: Gradients
    compiled: Compiled
    values: tuple[Any, ...]

    def __call__(self, cotangents: Any) -> tuple[Any, ...]:
        """The gradients of the results' inner product with cotangents.

        Args:
            cotangents: packed as the function's results are, each of its result's shape; None for
                0, and for results that are integers or truth values.

        Returns:
            For each operand that was given by position an array (a NumPy scalar at rank 0) of its
            shape and dtype; None for integers and truth values.

        Raises:
            BroadcastError: a cotangent has another shape than its result.
            TypeError: cotangents are packed otherwise, are complex, or belong to results that have
                no cotangent.

        >>> import zerostride as zs
        >>> _, pullback = zs.fuse(lambda x, row: x * row).vjp(np.ones((2, 3)), np.arange(3.0))
        >>> pullback(np.ones((2, 3)))[1]
        array([2., 2., 2.])
        """
        forward = self.compiled.graph
        nodes = [forward.nodes[k] for k in forward.outputs]
        arrays = [
            np.broadcast_to(np.zeros((), node.dtype), node.shape) if array is None else array
            for node, array in zip(
                nodes,
                cotangents_of(cotangents, self.compiled.structure, nodes, _array_of, _cast),
                strict=True,
            )
        ]
        results: Sequence[Any] = ()
        if self.gradients.ready is not None:
            results = run_into(
                self.gradients.ready,
                (*self.values, *self.compiled.captured, *arrays),
                [None] * len(self.gradients.ready.graph.outputs),
            )
        return tuple(
            _zero(operand) if place is None else results[place]
            for operand, place in zip(self.gradients.operands, self.gradients.places, strict=True)
        )

    @property
    def graph(self) -> Graph | None:
        """The graph of operands, captured arrays and cotangents; None where all gradients are 0."""
        return None if self.gradients.ready is None else self.gradients.ready.graph


def pulled(compiled: Compiled, call: Call) -> tuple[Any, Pullback]:
    """The result of a call, and its pullback; `Fused.vjp`."""
    gradients = gradients_of(compiled, call)
    results = run(compiled, call.values, [None] * compiled.structure.count)
    return compiled.structure.pack(results), Pullback(gradients, compiled, call.values)


def gradients_of(compiled: Compiled, call: Call) -> Gradients:
    """How the gradients of a call's signature are computed; made once."""
    gradients: Gradients | None = compiled.derived.get("gradients")
    if gradients is None:
        computed = _gradients(compiled, call.operands, len(call.operands) - len(call.named))
        gradients = compiled.derived.setdefault("gradients", computed)
    return gradients


def _gradients(compiled: Compiled, operands: Sequence[Operand], count: int) -> Gradients:
    check_real(compiled.graph)
    all_operands = [*operands, *map(operand_of, compiled.captured)]
    backward_pass = backward(compiled.graph, all_operands, count)
    prepared = ready(backward_pass.graph) if backward_pass.graph.outputs else None
    return Gradients(prepared, backward_pass.places, tuple(operands[:count]))


def cotangents_of(
    packed: Any,
    structure: Structure,
    nodes: Sequence[Node],
    array_of: Callable[[Any], Any],
    cast: Callable[[Any, str], Any],
) -> list[Any]:
    """The cotangents of results, each of its result's shape and dtype; None for 0.

    Args:
        packed: the cotangents, packed as the results.
        structure: how these are packed.
        nodes: of the results.
        array_of: makes an array of what a caller gave, in the library that computes.
        cast: converts an array to a dtype by NumPy's name; a TypeError where it is complex.

    Raises:
        BroadcastError: a cotangent has another shape than its result.
        TypeError: cotangents are packed otherwise, are complex, or are of results without one.
    """
    cotangents = structure.unpack(packed, "a cotangent")
    return [
        None if cotangent is None else _cotangent(cotangent, node, k, array_of, cast)
        for k, (cotangent, node) in enumerate(zip(cotangents, nodes, strict=True))
    ]


def _cotangent(
    cotangent: Any,
    node: Node,
    k: int,
    array_of: Callable[[Any], Any],
    cast: Callable[[Any, str], Any],
) -> Any:
    if not is_float(np.dtype(node.dtype)):
        raise TypeError(
            f"result {k} is of {node.dtype}, which has no gradient: its cotangent is None"
        )
    array = array_of(cotangent)
    shape = tuple(array.shape)
    if shape != node.shape:
        raise BroadcastError(
            f"the cotangent of result {k} has shape {shape}; the result has {node.shape}",
            reason=Reason.EXTENT_MISMATCH,
        )
    try:
        return cast(array, node.dtype)
    except TypeError as error:
        raise TypeError(f"the cotangent of result {k}: {error}") from None


def _array_of(cotangent: Any) -> NDArray[Any]:
    return np.asarray(as_operand(cotangent))


def _cast(array: NDArray[Any], dtype: str) -> NDArray[Any]:
    return array if array.dtype == dtype and array.dtype.isnative else cast(array, np.dtype(dtype))


def check_real(graph: Graph) -> None:
    """Refuses gradients of a graph that computes with complex numbers, or with objects."""
    for node in graph.nodes:
        dtype = np.dtype(node.dtype)
        if dtype.kind not in "biu" and not is_float(dtype):
            raise TypeError(
                f"gradients are of real numbers, and the function computes with {dtype}"
            )


def _zero(operand: Operand) -> Any:
    dtype = np.dtype(operand.dtype)
    return np.zeros(operand.shape, dtype)[()] if is_float(dtype) else None
