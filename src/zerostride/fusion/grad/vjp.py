"""Gradients of fused functions: a result and its pullback.

The pullback is one fused program of operands and cotangents (`graph`). It recomputes the forward
values that it needs; the adjoints of broadcasts are sums in the same passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...compute.reference import as_operand
from ...compute.special import cast, is_float
from ...errors import BroadcastError, Reason
from ..calls import Call, Compiled, run
from ..run import Ready, ready, run_into
from ..trace.graph import Graph, Node
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
        leaves = self.compiled.structure.unpack(cotangents, "a cotangent")
        arrays = [
            _cotangent(leaf, forward.nodes[k], position)
            for position, (k, leaf) in enumerate(zip(forward.outputs, leaves, strict=True))
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
    for node in compiled.graph.nodes:
        dtype = np.dtype(node.dtype)
        if dtype.kind not in "biu" and not is_float(dtype):
            raise TypeError(
                f"gradients are of real numbers, and the function computes with {dtype}"
            )
    all_operands = [*operands, *map(operand_of, compiled.captured)]
    backward_pass = backward(compiled.graph, all_operands, count)
    prepared = ready(backward_pass.graph) if backward_pass.graph.outputs else None
    return Gradients(prepared, backward_pass.places, tuple(operands[:count]))


def _cotangent(cotangent: Any, node: Node, position: int) -> Any:
    """A cotangent as an array of its result's shape and dtype."""
    dtype = np.dtype(node.dtype)
    if cotangent is None:
        return np.broadcast_to(np.zeros((), dtype), node.shape)
    if not is_float(dtype):
        raise TypeError(
            f"result {position} is of {dtype}, which has no gradient: its cotangent is None"
        )
    array = np.asarray(as_operand(cotangent))
    if array.shape != node.shape:
        raise BroadcastError(
            f"the cotangent of result {position} has shape {array.shape}; the result has "
            f"{node.shape}",
            reason=Reason.EXTENT_MISMATCH,
        )
    if array.dtype == dtype and array.dtype.isnative:
        return array
    try:
        return np.asarray(cast(array, dtype))
    except TypeError as error:
        raise TypeError(f"the cotangent of result {position}: {error}") from None


def _zero(operand: Operand) -> Any:
    dtype = np.dtype(operand.dtype)
    return np.zeros(operand.shape, dtype)[()] if is_float(dtype) else None
