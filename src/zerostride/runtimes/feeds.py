"""A model with the inputs of a user, and chosen ones for the others: for one to three runs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ZerostrideError
from ..models.bisect.faults import FaultKind, NodeFault, faults_shown
from ..models.execute import execute, is_computed, not_executed
from ..models.execute.chosen_sizes import Look, Numbers, chosen_sizes
from ..models.execute.inputs import check_inputs
from ..models.execute.program import readable
from ..models.execute.random_inputs import RANGES, random_inputs
from ..models.flow.resolved import resolved
from ..models.ir.graph import Array, Graph, Value
from ..models.options import ModelOptions
from ..sizes.condition import ALWAYS
from .files import tensors as tensors_of
from .process import MODEL_SECONDS, Process, running
from .task import ReplyKind

#: The most runs of one model.
_MOST_RUNS = 3
#: The most faults that a note names.
_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Fed:
    """The inputs of a model's runs.

    Attributes:
        graph: the graph with the sizes of its inputs.
        runs: every input by name, for each run.
        notes: what the inputs cannot show, and which sizes were chosen.
        sizes: the numbers that were chosen for open sizes, by their names.
    """

    graph: Graph
    runs: tuple[dict[str, Array], ...]
    notes: tuple[str, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)


def fed(
    options: ModelOptions,
    file: Path,
    inputs: Mapping[str, Any],
    seed: int,
    example: Sequence[Array] = (),
) -> Fed:
    """The graph with the sizes of its inputs, and every input.

    Inputs that a user does not give are chosen so that the faults of the model's nodes show
    (`models.bisect.faults`): random ones, and if some faults do not show in those, others of wider
    or narrower ranges beside them.

    Open sizes that nobody gives are chosen, too (`models.execute.chosen_sizes`).

    Args:
        options: what is known of the model.
        file: its file.
        inputs: arrays, lists or numbers by name; the others are chosen.
        seed: of the random inputs.
        example: an array for each of the model's inputs, in order; those by name come first.

    Raises:
        ZerostrideError: an input is unknown or does not fit, or the size of another is not known.
    """
    graph, own, chosen = with_sizes(options, file, inputs, seed, example)
    runs, notes = _chosen(graph, seed, own)
    names = [value.name for value in graph.inputs]
    arrays = tuple({name: run[name] for name in names} for run in runs)
    return Fed(graph, arrays, (*said_of_sizes(chosen), *notes), chosen)


def with_sizes(
    options: ModelOptions,
    file: Path,
    inputs: Mapping[str, Any],
    seed: int,
    example: Sequence[Array] = (),
) -> tuple[Graph, dict[str, Array], Numbers]:
    """The graph with the sizes of its inputs, the inputs that are given, and the sizes chosen.

    The arguments and errors are those of :func:`fed`.
    """
    graph = options.read(file)
    if len(example) == len(graph.inputs):
        pairs = zip(graph.inputs, example, strict=True)
        inputs = {value.name: array for value, array in pairs} | dict(inputs)
    wanted = [value for value in graph.inputs if value.name in inputs]
    own = check_inputs(graph, wanted, inputs)
    if inputs:
        shapes = {name: array.shape for name, array in own.items()}
        sizes = options.input_shapes
        named = dict(sizes) if isinstance(sizes, Mapping) else {}
        options = replace(options, input_shapes={**named, **shapes})
        graph = options.read(file)
    chosen = Numbers() if graph.settled else _sizes(graph, seed, own)
    if chosen:
        graph = replace(options, sizes={**(options.sizes or {}), **chosen}).read(file)
    return graph, own, chosen


def said_of_sizes(chosen: Mapping[str, int], *, fixed: bool = False) -> Iterator[str]:
    """A note on sizes that nobody gave; `fixed` if a converted file has these alone."""
    if chosen:
        sizes = ", ".join(f"{name}={number}" for name, number in chosen.items())
        only = "; the converted file has these alone" if fixed else ""
        yield f"open sizes were chosen: {sizes}{only} (others: --set NAME=NUMBER)"


def _sizes(graph: Graph, seed: int, given: Mapping[str, Array]) -> Numbers:
    """Numbers for the open sizes with which the model runs: on ONNX Runtime, where it does."""
    names = [value.name for value in graph.outputs]
    asks = graph.format == "onnx" and find_spec("onnxruntime") is not None
    with ExitStack() as stack:
        processes: list[Process] = []

        def look(inputs: Mapping[str, Array], small: Graph) -> Look:
            if not asks:
                return Look.SHOWS if is_computed(small, inputs, limit=_LOOK) else Look.FAILS
            if not processes:
                processes.append(stack.enter_context(running("onnxruntime", MODEL_SECONDS)))
            reply = tensors_of(processes[0], graph.path, inputs, names)
            if reply.kind is not ReplyKind.RESULT:
                return Look.FAILS
            shows = _finite(reply.arrays) and _varied(reply.arrays)
            return Look.SHOWS if shows else Look.PLAIN

        def runs(small: Graph) -> Look:
            shown = Look.FAILS
            for ranges in RANGES[:2]:
                inputs = random_inputs(small, seed, given, ranges)
                shown = max(shown, look({**given, **inputs}, small))
                if shown is Look.SHOWS:
                    break
            return shown

        return chosen_sizes(graph, runs)


#: Bytes of the tensors that a look keeps: faults of the nodes behind them are not asked for.
_MOST_HELD = 2**28
#: The most work of a look at what a model makes of its inputs: some seconds.
_LOOK = 20_000


def _chosen(
    graph: Graph, seed: int, given: dict[str, Array]
) -> tuple[list[dict[str, Array]], tuple[str, ...]]:
    """The inputs of each run, and what they cannot show.

    Inputs that a model makes infinities or NaN of, or one number all over, are left out, if others
    do better.
    """
    sized = resolved(graph, ALWAYS)[0]
    first: dict[str, Array] = {}
    runs: list[dict[str, Array]] = []
    shown: dict[NodeFault, bool] = {}
    plain: list[tuple[dict[str, Array], dict[NodeFault, bool]]] = []
    for ranges in RANGES:
        inputs = {**given, **random_inputs(graph, seed, given, ranges)}
        if first and _equal(inputs, first):
            continue
        first = first or inputs
        tensors = _tensors(sized, inputs)
        if tensors is None:
            continue
        results = [tensors[value.name] for value in sized.outputs]
        if not _finite(results):
            continue
        seen = dict(faults_shown(sized, partial(_array, tensors)))
        if not _varied(results):
            plain.append((inputs, seen))
            continue
        if not runs or any(seen[fault] and not shown.get(fault) for fault in seen):
            runs.append(inputs)
            shown = {fault: shown.get(fault, False) or seen.get(fault, False) for fault in seen}
        if len(runs) == _MOST_RUNS or all(shown.values()):
            break
    if not runs and plain:
        inputs, shown = plain[0]
        return [inputs], tuple(_hidden(shown))
    return runs or [first], tuple(_hidden(shown))


def _equal(one: Mapping[str, Array], other: Mapping[str, Array]) -> bool:
    return all(np.array_equal(array, other[name]) for name, array in one.items())


def _tensors(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array] | None:
    """The tensors of the main graph, as many as there is room for, and the outputs.

    None if these numbers, or that much work, do not do. ONNX Runtime computes them, where it is
    installed, if ops are not executed here.
    """
    values = [v for node in graph.nodes if not node.scope for v in node.outputs if v.name]
    held = itertools.accumulate(map(_bytes, values))
    kept = [value for value, total in zip(values, held, strict=True) if total <= _MOST_HELD]
    names = list(dict.fromkeys(value.name for value in (*kept, *graph.outputs)))
    if graph.format == "onnx" and not_executed(graph) and find_spec("onnxruntime"):
        with running("onnxruntime", MODEL_SECONDS) as process:
            reply = tensors_of(process, graph.path, inputs, names)
        done = reply.kind is ReplyKind.RESULT
        return {**inputs, **dict(zip(names, reply.arrays, strict=True))} if done else None
    try:
        return {**inputs, **execute(graph, inputs, names, limit=_LOOK)}
    except ZerostrideError:
        return None


def _bytes(value: Value) -> int:
    sizes = [size for size in value.shape or () if isinstance(size, int)]
    return 8 * math.prod(sizes)


def _array(tensors: Mapping[str, Array], value: Value) -> Array | None:
    if value.name in tensors:
        return tensors[value.name]
    return value.data() if readable(value) else None


def _finite(results: Sequence[Array]) -> bool:
    return all(np.isfinite(array).all() for array in results if array.dtype.kind in "fc")


def _varied(results: Sequence[Array]) -> bool:
    """Whether some result has different numbers, or none has more than one."""
    large = [array for array in results if array.size > 1]
    return not large or any((array != array.flat[0]).any() for array in large)


def _hidden(shown: Mapping[NodeFault, bool]) -> Iterator[str]:
    """A note on what the inputs cannot show."""
    hidden = [fault for fault, seen in shown.items() if not seen]
    if not hidden:
        return
    named = "; ".join(_words(fault) for fault in hidden[:_MOST_NAMED])
    more = len(hidden) - _MOST_NAMED
    yield f"these inputs cannot show {named}{f'; and {more} more' if more > 0 else ''} (--input)"


def _words(fault: NodeFault) -> str:
    where = f"{fault.op} {fault.node!r}"
    axes = " or ".join(map(str, fault.axes))
    return {
        FaultKind.SIGN: f"what {where} makes of numbers below 0: {fault.name} has none",
        FaultKind.FIRST: f"whether {where} reads all of {fault.name} along axis {axes}",
        FaultKind.AXIS: f"along which axis {where} reads {fault.name}: {axes}",
        FaultKind.SWAPPED: f"in which order {where} takes its operands",
    }[fault.kind]
