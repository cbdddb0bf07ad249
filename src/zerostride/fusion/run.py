"""A graph that is ready to run: by the engine where it takes the graph, else node by node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..compute import native
from ..compute.outputs import as_target
from ..compute.special import keeps_kind
from . import reference
from .schedule.blocks import Progress, run_in_blocks, wants_blocks
from .schedule.program import Program
from .trace.graph import Graph


class Engine(Protocol):
    """The engine's form of a program."""

    def run(self, operands: tuple[Any, ...], outs: tuple[Any, ...] | None, /) -> tuple[Any, ...]:
        """Computes the outputs, into `outs` where arrays are passed."""
        ...


@dataclass(frozen=True, slots=True)
class Ready:
    """A graph that can be run any number of times, from many threads at once.

    Attributes:
        graph: the graph.
        program: the engine's program; None where the reference runs the graph.
        engine: the engine's form of the program.
        reason: why the program is missing, or "".
    """

    graph: Graph
    program: Program | None
    engine: Engine | None
    reason: str

    def run(self, operands: Sequence[Any], outs: Sequence[Any] | None = None) -> list[Any]:
        """The outputs for operands of the graph's shapes and dtypes.

        Args:
            operands: arrays in the machine's byte order, or Python numbers for weak inputs.
            outs: for each output an array of its shape that receives it, or None. It may overlap
                the operands: the result is as if they had been read first.

        Returns:
            `outs`, with new arrays for None; NumPy scalars at rank 0.
        """
        if self.engine is not None:
            return list(self.engine.run(tuple(operands), None if outs is None else tuple(outs)))
        results = reference.evaluate(self.graph, operands)
        for k, out in enumerate(outs or ()):
            if out is not None:
                put(out, results[k])
                results[k] = out
        return results


def ready(graph: Graph) -> Ready:
    """Prepares a graph to run.

    >>> from zerostride.fusion.trace.graph import Apply, Input
    >>> x = Input(0, (2,), "float32")
    >>> double = Apply("add", (0, 0), ((0,), (0,)), ("float32",) * 3, (2,), "float32")
    >>> ready(Graph((x, double), (1,), 1)).run([np.ones(2, "float32")])
    [array([2., 2.], dtype=float32)]
    """
    from .schedule.engine import make
    from .schedule.lower import LoweringError, lower

    if native.backend() == "reference":
        return Ready(graph, None, None, "the reference backend is in use")
    if not graph.outputs:
        return Ready(graph, None, None, "there is nothing to compute")
    try:
        with np.errstate(all="ignore"):  # numbers of the function may become infinite in 16 bits
            program = lower(graph)
            return Ready(graph, program, make(program), "")
    except (LoweringError, NotImplementedError) as error:
        return Ready(graph, None, None, str(error))


def run_into(
    prepared: Ready,
    operands: Sequence[Any],
    targets: Sequence[Any],
    progress: Progress | None = None,
    names: Callable[[], Sequence[str]] | None = None,
) -> list[Any]:
    """The results for operands of any layout, written to `targets`.

    Args:
        prepared: the graph.
        operands: arrays of any layout and byte order, or Python numbers.
        targets: for each result None, or an array of its shape, or of one that NumPy broadcasts it
            to, whose dtype takes the result's within its kind.
        progress: called with the elements done and the total.
        names: what the caller wrote for each target: "out", or "out[1]".

    Raises:
        BroadcastError: a target has another shape.
        TypeError: a target is not an array, or its dtype does not take the result's.
        ValueError: a target is read-only, or two of its elements share memory.
    """
    arrays = [_in_order(operand) for operand in operands]
    if all(target is None for target in targets):
        return _run(prepared, arrays, [None] * len(targets), progress)
    nodes = [prepared.graph.nodes[k] for k in prepared.graph.outputs]
    holders = [
        checked(target, node.shape, np.dtype(node.dtype), name)
        for target, node, name in zip(targets, nodes, _named(names, nodes), strict=True)
    ]
    fits = [
        None if target is None or target.shape != node.shape else target.view(np.ndarray)
        for target, node in zip(holders, nodes, strict=True)
    ]
    results = _run(prepared, arrays, fits, progress)
    for k, target in enumerate(holders):
        if target is not None:
            if fits[k] is None:
                put(target, results[k])
            results[k] = target
    return results


def _run(
    prepared: Ready, operands: Sequence[Any], outs: Sequence[Any], progress: Progress | None
) -> list[Any]:
    """Runs in blocks where that is requested and possible, else as a whole."""
    if prepared.program is not None and wants_blocks((*operands, *outs), progress):
        from .schedule.engine import make

        results = run_in_blocks(prepared.program, make, operands, outs, progress)
        if results is not None:
            return results
    results = prepared.run(operands, None if all(out is None for out in outs) else outs)
    if progress is not None:
        total = max((np.size(result) for result in results), default=0)
        progress(total, total)
    return results


def put(target: Any, result: Any) -> None:
    """Copies into a target of another dtype, without warnings where values become infinite."""
    with np.errstate(all="ignore"):
        np.copyto(target, result, casting="same_kind")


def is_in_order(operand: Any) -> bool:
    """Whether an operand is in the machine's byte order."""
    return type(operand) is not np.ndarray or operand.dtype.isnative


def _in_order(operand: Any) -> Any:
    """An operand in the machine's byte order."""
    return operand if is_in_order(operand) else operand.astype(operand.dtype.newbyteorder("="))


def _named(names: Callable[[], Sequence[str]] | None, nodes: Sequence[Any]) -> Sequence[str]:
    return ["out"] * len(nodes) if names is None else names()


def checked(target: Any, shape: tuple[int, ...], dtype: np.dtype[Any], name: str) -> Any:
    """A target that can hold a result."""
    array = as_target(target, shape, name=name)
    if array is not None and not keeps_kind(dtype, array.dtype):
        raise TypeError(
            f"the result has {dtype}, which does not become {name}'s {array.dtype} within its kind"
        )
    return array
