"""Compares a fused call with the reference's result for the graph made without tracing.

Equal to the bit, or each element in the interval of `bounds`. Besides values: types, dtypes,
shapes, that `out` is what is returned, that new results lie in memory of their own, and that no
other memory has changed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerostride.errors import BroadcastError
from zerostride.fusion.jit import tier as jit
from zerostride.fusion.reference import evaluate
from zerostride.fusion.trace.graph import Apply, Graph, Reduce

from ..native.cases import dtype_of
from ..native.judge import FAMILIES, outcome
from .bounds import bounds
from .cases import FuseArrays, FuseCase, FuseProgram, function_of, function_source
from .graph import graph_of
from .intervals import Bounds, alike

Array = NDArray[Any]
Fused = Callable[[FuseProgram], Callable[..., Any]]
_FLOATS = frozenset({"float16", "bfloat16", "float32", "float64"})
_REFUSALS = (BroadcastError, TypeError, ValueError, OverflowError)


@dataclass(frozen=True, slots=True)
class FuseJudged:
    """The result of a case.

    Attributes:
        family: of its program: "exact", "functions", "reductions" or "refused".
        difference: what is not as it should be; "" if all is.
        equal: whether every result is the reference's to the bit.
        elements: of all results.
        open: how many of these could have been anything.
    """

    family: str
    difference: str = ""
    equal: bool = True
    elements: int = 0
    open: int = 0


def fused_of(program: FuseProgram) -> Callable[..., Any]:
    """The fused function of a program; one for all of its calls."""
    return _fused(function_source(program), program.dtype)


@functools.lru_cache(1024)
def _fused(text: str, dtype: str | None) -> Callable[..., Any]:
    import zerostride as zs

    given = None if dtype is None else dtype_of(dtype)
    fused: Callable[..., Any] = zs.fuse(function_of(text), dtype=given)
    return fused


def judge(case: FuseCase, fused: Fused = fused_of) -> FuseJudged:
    """Runs a case and compares."""
    ours, theirs = case.make(), case.make()
    result, error = outcome(lambda: _called(case, ours, fused))
    graph: Graph | None = None
    try:
        graph = graph_of(case)
        expected = evaluate(graph, theirs.operands)
    except _REFUSALS as refusal:
        return FuseJudged("refused", _refusals(error, refusal, ours, theirs))
    family = family_of(graph)
    if error is not None:
        unread = outcome(lambda: evaluate(graph_of(_with_all_results(case)), theirs.operands))[1]
        if unread is not None and type(unread) is type(error):
            return FuseJudged("refused", _refusals(error, unread, ours, theirs))
        return FuseJudged(family, f"raised {error!r}; the reference has a result")
    results = [result] if len(expected) == 1 else result
    if not isinstance(results, list | tuple) or len(results) != len(expected):
        return FuseJudged(family, f"{type(result).__name__} for {len(expected)} results")
    difference = _around(case, ours, results, expected)
    if difference:
        return FuseJudged(family, difference)
    return _values(case, graph, family, ours, theirs, results, expected)


def _called(case: FuseCase, arrays: FuseArrays, fused: Fused) -> Any:
    """The case's function of its operands; what is compiled after a first call is called again."""
    function = fused(case.program)
    for one in (case.make(), arrays) if jit.mode() == "eager" else (arrays,):
        options = {"out": one.out()} if case.outs else {}
        result = function(*one.operands, **options)
    return result


def _with_all_results(case: FuseCase) -> FuseCase:
    """The case with a reader for every step, so that refusals of unused steps count, too."""
    program, first = case.program, case.program.operands
    every = tuple(range(first, first + len(program.steps)))
    return replace(case, program=replace(program, outputs=every))


def family_of(graph: Graph) -> str:
    """The allowed difference of a graph's results: nothing, or the errors of functions and sums."""
    family = "exact"
    for node in graph.nodes:
        if isinstance(node, Reduce) and node.op in ("sum", "prod") and node.dtype in _FLOATS:
            return "reductions"
        if isinstance(node, Apply) and node.dtype in _FLOATS and FAMILIES[node.op] == "functions":
            family = "functions"
    return family


def _refusals(
    error: Exception | None, refusal: Exception, ours: FuseArrays, theirs: FuseArrays
) -> str:
    if error is None:
        return f"the reference raises {refusal!r}; there is a result"
    if isinstance(error, Warning) or not isinstance(error, _REFUSALS):
        return f"raised {error!r}, the reference {refusal!r}"
    changed = not _memory_agrees(ours, theirs)
    return "refused, but memory has changed" if changed else ""


def _around(
    case: FuseCase, ours: FuseArrays, results: Sequence[Any], expected: Sequence[Any]
) -> str:
    """A difference besides values, or ""."""
    outs = ours.outs or [None] * len(expected)
    for k, (result, right, out) in enumerate(zip(results, expected, outs, strict=True)):
        which = f"result {k}: " if len(results) > 1 else ""
        if out is not None:
            if result is not out:
                return f"{which}it is not out"
            continue
        if type(result) is not type(right):
            return f"{which}a {type(result).__name__}, the reference's a {type(right).__name__}"
        if result.dtype != right.dtype:
            return f"{which}dtype {result.dtype}, the reference's {right.dtype}"
        if result.shape != right.shape:
            return f"{which}shape {result.shape}, the reference's {right.shape}"
        if isinstance(result, np.ndarray):
            others = [*ours.operands, *results[:k]]
            arrays = [other for other in others if isinstance(other, np.ndarray) and other.size]
            if any(np.may_share_memory(result, other) for other in arrays):
                return f"{which}it shares memory with an operand or another result"
    return ""


def _memory_agrees(ours: FuseArrays, theirs: FuseArrays) -> bool:
    pairs = zip(ours.memories, theirs.memories, strict=True)
    return all(mine.tobytes() == other.tobytes() for mine, other in pairs)


def _values(
    case: FuseCase,
    graph: Graph,
    family: str,
    ours: FuseArrays,
    theirs: FuseArrays,
    results: Sequence[Any],
    expected: Sequence[Any],
) -> FuseJudged:
    known: list[Bounds] | None = None
    elements = opened = 0
    with np.errstate(all="ignore"):
        for k, (result, right) in enumerate(zip(results, expected, strict=True)):
            array = np.asarray(result)
            elements += array.size
            wanted = np.asarray(right).astype(array.dtype)
            if alike(array, wanted).all():
                continue
            if known is None:
                known = bounds(graph, case.make().operands)
            dtype = graph.nodes[graph.outputs[k]].dtype
            text, free = _within(array, wanted, known[k], dtype)
            opened += free
            if text:
                which = f"result {k}, " if len(results) > 1 else ""
                return FuseJudged(family, which + text, equal=False)
        if not _rest_agrees(case, ours, theirs, expected):
            return FuseJudged(family, "memory that is no part of a result has changed", equal=False)
    return FuseJudged(family, "", known is None, elements, opened)


def _within(result: Array, wanted: Array, known: Bounds, dtype: str) -> tuple[str, int]:
    """The elements outside their interval, or ""; and the number of open elements."""
    fine = alike(result, wanted)
    opened = 0
    if not known.exact:
        low, high = (np.asarray(end) for end in (known.low, known.high))
        own = dtype_of(dtype)
        # What `out` of another dtype receives may be rounded to the result's own first, or not.
        lows = (low.astype(own).astype(result.dtype), low.astype(result.dtype))
        highs = (high.astype(own).astype(result.dtype), high.astype(result.dtype))
        inside = (_below(lows[0], result) | _below(lows[1], result)) & (
            _below(result, highs[0]) | _below(result, highs[1])
        )
        if known.open is not None:
            inside |= known.open
            opened = int(known.open.sum())
        fine |= inside
    if fine.all():
        return "", opened
    where = tuple(int(place[0]) for place in np.nonzero(np.atleast_1d(~fine)))
    if not result.ndim:
        where = ()
    text = f"element {where}: {result[where]!r}, the reference's {wanted[where]!r}"
    if not known.exact:
        text += f" in [{known.low[where]!r}, {known.high[where]!r}]"
    return f"{text} ({int((~fine).sum())} of {result.size} differ)", opened


def _below(one: Array, other: Array) -> NDArray[np.bool_]:
    """one <= other, -0 below 0."""
    if one.dtype.kind == "c":
        return alike(one, other)
    below = np.asarray(one <= other)
    if one.dtype.kind in "iub":
        return below
    zeros = (one == 0) & (other == 0)
    return np.asarray(below & ~(zeros & ~np.signbit(one) & np.signbit(other)))


def _rest_agrees(
    case: FuseCase, ours: FuseArrays, theirs: FuseArrays, expected: Sequence[Any]
) -> bool:
    """Whether all memory but that of the results is as it was."""
    for mine, other, right in zip(ours.outs, theirs.outs, expected, strict=False):
        if mine is not None and other is not None:
            np.copyto(other, right, casting="same_kind")
    for mine, other in zip(ours.outs, theirs.outs, strict=True):
        if mine is not None and other is not None:
            mine[...] = other  # the values were compared; what is left must be equal to the bit
    return _memory_agrees(ours, theirs)
