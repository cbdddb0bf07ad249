"""Gradients of fused functions: a result and its pullback, with the arrays of any library.

The pullback is one fused program of operands and cotangents (`graph`). It recomputes the forward
values that it needs; the adjoints of broadcasts are sums in the same passes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ...compute.reference import as_operand
from ...compute.special import cast, is_float
from ...errors import BroadcastError, Reason
from ..calls import Call, Compiled
from ..run import Ready, ready, run_into
from ..trace.graph import Graph, Node, pruned
from ..trace.structure import Structure
from ..trace.tracing import Operand, operand_of
from .graph import backward


class Described(Protocol):
    """A shape and a dtype: of an operand, or of a node."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its extents."""
        ...

    @property
    def dtype(self) -> str:
        """NumPy's name."""
        ...


@dataclass(frozen=True, eq=False)
class GraphProgram:
    """A graph with the descriptions of its inputs, captured arrays included.

    Attributes:
        graph: the graph.
        operands: a description for each of its inputs.
    """

    graph: Graph
    operands: tuple[Operand, ...]

    @functools.cached_property
    def ready(self) -> Ready:
        """The graph, ready to run."""
        return ready(self.graph)

    @functools.cached_property
    def outputs(self) -> tuple[Node, ...]:
        """The nodes of the results."""
        return tuple(self.graph.nodes[k] for k in self.graph.outputs)

    def run(self, values: Sequence[Any]) -> list[Any]:
        """The results for NumPy arrays, and Python numbers where inputs are weak: new arrays, and
        NumPy scalars at rank 0."""
        return run_into(self.ready, values, [None] * len(self.graph.outputs))

    @functools.cached_property
    def odd_dtype(self) -> str:
        """A dtype that it computes with and that has no gradients; "" without one."""
        dtypes = (np.dtype(node.dtype) for node in self.graph.nodes)
        odd = (x.name for x in dtypes if x.kind not in "biu" and not is_float(x))
        return next(odd, "")

    def gradients(self, wanted: tuple[bool, ...]) -> Gradients:
        """The gradients of some inputs, as a program of the inputs and the cotangents."""
        programs = self._gradients
        return programs.get(wanted) or programs.setdefault(wanted, _gradients(self, wanted))

    @functools.cached_property
    def _gradients(self) -> dict[tuple[bool, ...], Gradients]:
        return {}

    def pulled(
        self,
        values: Sequence[Any],
        cotangents: Sequence[Any],
        wanted: Sequence[bool],
        run: Callable[[GraphProgram, Sequence[Any]], list[Any]],
    ) -> list[Any]:
        """The gradients of its operands, for cotangents of its results; None where it is 0.

        Args:
            values: the operands.
            cotangents: for each result an array of its shape and dtype.
            wanted: the operands whose gradients are asked for.
            run: computes a program.
        """
        gradients = self.gradients(tuple(wanted))
        if gradients.program is None:
            return [None] * len(values)
        results = run(gradients.program, (*values, *cotangents))
        return [None if place is None else results[place] for place in gradients.places]


@dataclass(frozen=True, eq=False)
class Gradients:
    """A program of gradients.

    Attributes:
        program: its inputs are the forward program's, and a cotangent for each result; None where
            all gradients are 0.
        places: for each input of the forward program, which result is its gradient; None where it
            is 0 or not wanted.
    """

    program: GraphProgram | None
    places: tuple[int | None, ...]


def _gradients(program: GraphProgram, wanted: tuple[bool, ...]) -> Gradients:
    count = len(wanted) - [*reversed(wanted)].index(True) if any(wanted) else 0
    backward_pass = backward(program.graph, program.operands, count)
    pairs = zip(backward_pass.places, wanted[:count], strict=True)
    places = [place if want else None for place, want in pairs]
    kept = [place for place in places if place is not None]
    number = {place: k for k, place in enumerate(kept)}
    renumbered = [None if place is None else number[place] for place in places]
    padded = (*renumbered, *[None] * (len(wanted) - count))
    if not kept:
        return Gradients(None, padded)
    cotangents = [Operand(node.shape, node.dtype) for node in program.outputs]
    outputs = [backward_pass.graph.outputs[place] for place in kept]
    graph = pruned(backward_pass.graph, outputs)
    return Gradients(GraphProgram(graph, (*program.operands, *cotangents)), padded)


def program_of(compiled: Compiled, call: Call) -> GraphProgram:
    """The program of a compiled signature, made once."""
    program: GraphProgram | None = compiled.derived.get("program")
    if program is None:
        inputs = (*call.operands, *map(operand_of, compiled.captured))
        program = GraphProgram(compiled.graph, inputs)
        vars(program)["ready"] = compiled.ready
        program = compiled.derived.setdefault("program", program)
    return program


class Ways(NamedTuple):
    """How a library's arrays are pulled back.

    Attributes:
        run: computes a program of its arrays.
        array_of: makes an array of what a caller gave as a cotangent.
        cast: converts an array to a dtype, by NumPy's name; a TypeError where it is complex.
        zeros: makes zeros of a shape and a dtype; laid out as an array of this shape, if given.
    """

    run: Callable[[GraphProgram, Sequence[Any]], list[Any]]
    array_of: Callable[[Any], Any]
    cast: Callable[[Any, str], Any]
    zeros: Callable[[Described, Any], Any]


@dataclass(frozen=True, slots=True, eq=False)
class Pullback:
    """Takes the cotangents of a call's results back to its operands; see :meth:`Fused.vjp`.

    It holds the operands themselves: if they are written to before a call, it uses the new values.
    """

    program: GraphProgram
    structure: Structure
    values: Sequence[Any]
    results: Sequence[Any]
    wanted: tuple[bool, ...]
    ways: Ways

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
        leaves = self.structure.unpack(cotangents, "a cotangent")
        triples = zip(leaves, self.program.outputs, self.results, strict=True)
        arrays = [
            self.ways.zeros(node, result) if leaf is None else _cotangent(leaf, node, k, self.ways)
            for k, (leaf, node, result) in enumerate(triples)
        ]
        gradients = self.program.pulled(self.values, arrays, self.wanted, self.ways.run)
        return tuple(
            gradient if gradient is not None else self._zero(k)
            for k, (gradient, wanted) in enumerate(zip(gradients, self.wanted, strict=True))
            if wanted
        )

    def _zero(self, k: int) -> Any:
        operand = self.program.operands[k]
        has_gradient = is_float(np.dtype(operand.dtype))
        return self.ways.zeros(operand, self.values[k]) if has_gradient else None

    @property
    def graph(self) -> Graph | None:
        """The graph of operands, captured arrays and cotangents; None where all gradients are 0."""
        program = self.program.gradients(self.wanted).program
        return None if program is None else program.graph


def pulled(
    program: GraphProgram, structure: Structure, values: Sequence[Any], count: int, ways: Ways
) -> tuple[Any, Pullback]:
    """A program's result, packed as `structure` says, and its pullback.

    Args:
        program: of the function.
        structure: how its results are packed.
        values: its operands, captured arrays included.
        count: how many of these have gradients.
        ways: how the arrays' library computes.

    Raises:
        TypeError: the program computes with complex numbers, or with objects.
    """
    if program.odd_dtype:
        raise TypeError(
            f"gradients are of real numbers, and the function computes with {program.odd_dtype}"
        )
    results = ways.run(program, values)
    wanted = (True,) * count + (False,) * (len(values) - count)
    packed = structure.pack(results)
    return packed, Pullback(program, structure, values, results, wanted, ways)


def pulled_call(compiled: Compiled, call: Call) -> tuple[Any, Pullback]:
    """The result of a call of NumPy's arrays, and its pullback; `Fused.vjp`."""
    values = (*call.values, *compiled.captured)
    count = len(call.values) - len(call.named)
    return pulled(program_of(compiled, call), compiled.structure, values, count, _NUMPY)


def _cotangent(cotangent: Any, node: Node, k: int, ways: Ways) -> Any:
    """A cotangent as an array of its result's shape and dtype."""
    if not is_float(np.dtype(node.dtype)):
        raise TypeError(
            f"result {k} is of {node.dtype}, which has no gradient: its cotangent is None"
        )
    array = ways.array_of(cotangent)
    shape = tuple(array.shape)
    if shape != node.shape:
        raise BroadcastError(
            f"the cotangent of result {k} has shape {shape}; the result has {node.shape}",
            reason=Reason.EXTENT_MISMATCH,
        )
    try:
        return ways.cast(array, node.dtype)
    except TypeError as error:
        raise TypeError(f"the cotangent of result {k}: {error}") from None


def _array_of(cotangent: Any) -> NDArray[Any]:
    return np.asarray(as_operand(cotangent))


def _cast(array: NDArray[Any], dtype: str) -> NDArray[Any]:
    return array if array.dtype == dtype and array.dtype.isnative else cast(array, np.dtype(dtype))


def _zeros(described: Described, _: Any) -> Any:
    return np.zeros(described.shape, described.dtype)[()]


_NUMPY = Ways(lambda program, values: program.run(values), _array_of, _cast, _zeros)
