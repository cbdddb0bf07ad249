"""A whole model file on its engine, compared with zerostride's answer or ONNX Runtime's."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from ...core.rules import NCNN_RANK
from ...errors import ModelError, ZerostrideError
from ...models.execute import Nudge, execute, not_executed
from ...models.findings import Check, Outcome
from ...models.flow.resolved import resolved
from ...models.format_table import lowered
from ...models.formats import read_model
from ...models.ir.graph import Graph, Value
from ...models.judging import APPROXIMATED, OF_LARGEST
from ...models.transport.batch import BATCHLESS, batch_axes
from ...sizes.condition import ALWAYS
from ..convert.converters import batches_of
from ..files import form_of, is_sealed, tensors
from ..process import MODEL_SECONDS, Process, running
from ..runners import RUNNERS
from ..task import Array, Reply, ReplyKind
from .compare import Agreement, without_result
from .halves import onnx_with_halves, stores_halves, with_halves
from .rounding import (
    STORAGE,
    Answers,
    approximated_array,
    compared,
    effect_explains,
    excused,
    is_doubted,
    like,
    moved_array,
    small_compared,
)


def check_whole(
    graph: Graph,
    file: Path,
    process: Process,
    inputs: Mapping[str, Array],
    batch_axis: int | None,
) -> tuple[list[Check], tuple[str, ...], Mapping[str, str]]:
    """A check for each output of the model, notes, and why outputs may differ without a fault.

    The reasons are of outputs that differ as far as the engine's known approximations make; they
    hold if every node inside is right.

    Args:
        graph: the model that defines the meaning.
        file: the file to run: the model's own, or a conversion of it.
        process: the engine.
        inputs: arrays by the names of the model's inputs.
        batch_axis: as for the audit; inputs for an engine without a batch axis lack it.

    Raises:
        ZerostrideError: the engine does not run such files.
    """
    engine, form = process.engine, form_of(file)
    if form not in RUNNERS[engine].files:
        able = sorted(name for name, row in RUNNERS.items() if form in row.files)
        raise ZerostrideError(
            f"{file}: {engine} does not run files of {form}; "
            f"{', '.join(able) or 'nothing here'} does"
        )
    if not file.is_file():
        raise ModelError(f"{file}: No such file")
    results = {value.name for value in graph.outputs}
    if form in _EVERY_TENSOR and form == graph.format:
        graph = replace(graph, outputs=_tensors_of(graph))
    itself = engine if str(file) == graph.path else ""
    expected, note = meant_outputs(graph, inputs, itself)
    executed = not note
    feed, reply = feed_of(graph, file, process, inputs, batch_axis, expected, by_sample=True)
    missing = without_result(reply)
    if missing is not None:
        return [_check(value, missing, process) for value in graph.outputs], note, {}
    if feed is not inputs:
        arrays = zip(graph.outputs, reply.arrays, strict=True)
        expected |= {v.name: like(expected[v.name], array.shape) for v, array in arrays}
    elif engine in BATCHLESS and form != graph.format:
        note = (*note, f"{file.name} takes its inputs with their batch axes")
    answers: Answers = {
        value.name: compared(expected[value.name], array, engine)
        for value, array in zip(graph.outputs, reply.arrays, strict=True)
    }
    readable = not is_sealed(file)
    if readable and str(file) != graph.path and _some_differ(answers):
        answers, halves = _beside_halves(graph, file, inputs, expected, answers)
        note = (*note, *halves)
    if _some_differ(answers):
        answers, moved = _beside_rounding(graph, inputs, expected, answers, itself)
        note = (*note, *moved)
    elif executed and not (readable and stores_halves(file)):
        answers = _small_numbers(graph, inputs, expected, reply, answers)
    note = (*note, *_without_proof(results, expected, answers))
    checks = [_check(value, answers[value.name], process) for value in graph.outputs]
    if not executed or str(file) == graph.path:
        return checks, note, {}
    return checks, note, approximated_outputs(graph, inputs, expected, reply, answers, engine)


def worst_of(runs: Sequence[Sequence[Check]]) -> list[Check]:
    """The checks of several runs as one: of each tensor the first that does not agree.

    Of checks that agree, the one with the largest error.
    """

    def worst(checks: Sequence[Check]) -> Check:
        failed = (check for check in checks if check.outcome is not Outcome.AGREES)
        return next(failed, max(checks, key=lambda check: check.error))

    return [worst(checks) for checks in zip(*runs, strict=True)]


def feed_of(
    graph: Graph,
    file: Path,
    process: Process,
    inputs: Mapping[str, Array],
    batch_axis: int | None,
    expected: Mapping[str, Array],
    *,
    by_sample: bool = False,
) -> tuple[Mapping[str, Array], Reply]:
    """The inputs as a file takes them, and the engine's outputs.

    A conversion for an engine without a batch axis takes one sample. But pnnx drops the batch axis
    only where an op, such as a convolution, shows it; its script beside the file says so. Without
    the script: if the outputs of a sample differ and those
    of the whole inputs agree, or they alone have the right shapes, the file takes these. A file
    whose own ops tell the axes of all its inputs leaves no choice: wrong inputs may give nearly the
    same numbers.

    Args:
        graph: the model that defines the meaning.
        file: a conversion of it.
        process: the engine.
        inputs: arrays by the names of the model's inputs.
        batch_axis: as for the audit.
        expected: the outputs that are known, by name.
        by_sample: several samples are run one after the other, and their outputs joined; the first
            is the feed. Otherwise they are refused.

    Raises:
        ZerostrideError: an input has more or fewer than one sample.
    """
    engine, form = process.engine, form_of(file)
    names = [value.name for value in graph.outputs]

    def asked(feed: Mapping[str, Array]) -> Reply:
        converted = form != graph.format or form not in _EVERY_TENSOR
        return tensors(process, file, feed, names, outputs=converted)

    if engine not in BATCHLESS or form == graph.format:
        return inputs, asked(inputs)
    told = batches_of(file, len(graph.inputs))
    if told is not None:
        axes = {v.name: axis for v, axis in zip(graph.inputs, told.inputs, strict=True)}
        if all(axis is None for axis in told.inputs):
            return inputs, asked(inputs)
        feeds = _samples(inputs, axes) if by_sample else ()
        if len(feeds) > 1:
            return feeds[0], _joined([asked(feed) for feed in feeds], told.outputs)
        feed = {name: _without(name, inputs[name], axis) for name, axis in axes.items()}
        return feed, asked(feed)
    feed = samples(graph, inputs, batch_axis)
    reply = asked(feed)
    decided = max((array.ndim for array in inputs.values()), default=0) > NCNN_RANK
    if decided or _agrees(reply, names, expected, engine) or _takes(file, feed):
        return feed, reply
    whole = asked(inputs)
    better = _fits(whole, names, expected) and not _fits(reply, names, expected)
    if better or _agrees(whole, names, expected, engine):
        return inputs, whole
    return feed, reply


def _samples(
    inputs: Mapping[str, Array], axes: Mapping[str, int | None]
) -> Sequence[Mapping[str, Array]]:
    """The inputs of each sample; none if their numbers differ.

    >>> _samples({"x": np.arange(2)[:, None], "y": np.arange(2)}, {"x": 0, "y": None})
    [{'x': array([0]), 'y': array([0, 1])}, {'x': array([1]), 'y': array([0, 1])}]
    """
    counts = {inputs[name].shape[axis] for name, axis in axes.items() if axis is not None}
    if len(counts) != 1:
        return []
    return [
        {
            name: inputs[name] if axis is None else inputs[name].take(k, axis)
            for name, axis in axes.items()
        }
        for k in range(counts.pop())
    ]


def _joined(replies: Sequence[Reply], axes: Sequence[int | None]) -> Reply:
    """The replies of several samples as one, by the batch axes of the outputs.

    If one of them has no result, that one.
    """
    for reply in replies:
        if reply.kind is not ReplyKind.RESULT:
            return reply
    arrays = zip(*(reply.arrays for reply in replies), strict=True)
    joined = (
        parts[0] if axis is None else np.stack(parts, axis)
        for parts, axis in zip(arrays, axes, strict=True)
    )
    return replace(replies[0], arrays=tuple(joined))


def _takes(file: Path, feed: Mapping[str, Array]) -> bool:
    """Whether the file's ops show that its inputs have as many axes as these."""
    shapes = [value.shape for value in read_model(file).inputs]
    return [None if shape is None else len(shape) for shape in shapes] == [
        array.ndim for array in feed.values()
    ]


def _fits(reply: Reply, names: Sequence[str], expected: Mapping[str, Array]) -> bool:
    """Whether the engine gave an answer in which every output that is known has its shape."""
    pairs = zip(names, reply.arrays, strict=False)
    return reply.kind is ReplyKind.RESULT and all(
        like(expected[name], array.shape).shape == array.shape
        for name, array in pairs
        if name in expected
    )


def _agrees(reply: Reply, names: Sequence[str], expected: Mapping[str, Array], engine: str) -> bool:
    """Whether the engine gave an answer in which every output that is known agrees."""
    pairs = zip(names, reply.arrays, strict=False)
    return reply.kind is ReplyKind.RESULT and all(
        compared(like(expected[name], array.shape), array, engine).outcome is not Outcome.DIFFERS
        for name, array in pairs
        if name in expected
    )


def _some_differ(answers: Answers) -> bool:
    return any(one.outcome is Outcome.DIFFERS and one.elements for one in answers.values())


def _without_proof(
    results: Collection[str], expected: Mapping[str, Array], answers: Answers
) -> tuple[str, ...]:
    """A note on outputs whose numbers are all equal: a fault would give the same, as after a Relu.

    >>> agrees = {"y": Agreement(Outcome.AGREES)}
    >>> _without_proof(["y"], {"y": np.zeros(3)}, agrees)
    ('every number of y is 0.0 for these inputs, which proves little: give others (--input)',)
    >>> _without_proof(["y"], {"y": np.array([0, 1])}, agrees)
    ()
    """
    return tuple(
        f"every number of {name} is {expected[name].flat[0]} for these inputs, which proves "
        "little: give others (--input)"
        for name, answer in answers.items()
        if answer.outcome is Outcome.AGREES
        and name in results
        and expected[name].size > 1
        and (expected[name] == expected[name].flat[0]).all()
    )


#: How often the effect of rounding is measured, with signs drawn anew.
_MOVES = 2
#: Formats for which every tensor of the file is compared, not the outputs alone. LiteRT's
#: interpreter keeps all of them; other engines compute tensors inside a model on request.
_EVERY_TENSOR = frozenset({"litert"})


def _tensors_of(graph: Graph) -> tuple[Value, ...]:
    """Every tensor of the main graph that a node makes, and the outputs."""
    results = [value for node in graph.nodes if not node.scope for value in node.outputs]
    known = {value.name for value in results}
    return (*results, *(value for value in graph.outputs if value.name not in known))


def samples(graph: Graph, inputs: Mapping[str, Array], batch_axis: int | None) -> dict[str, Array]:
    """The inputs without their batch axes, in the order of the graph's.

    Raises:
        ZerostrideError: an input has more or fewer than one sample.
    """
    sized = resolved(graph, ALWAYS)[0]
    axes = batch_axes(lowered(sized), batch_axis)
    return {v.name: _without(v.name, inputs[v.name], axes.of(v)) for v in sized.inputs}


def _without(name: str, array: Array, axis: int | None) -> Array:
    if axis is None:
        return array
    if array.shape[axis] != 1:
        raise ZerostrideError(
            f"input {name!r} of {array.shape}: axis {axis} is its batch axis, the engine takes one "
            f"sample, and these are {array.shape[axis]}: give it sizes with 1 there "
            "(--input-shape), or say that it is no batch axis (--batch-axis none)"
        )
    return array.squeeze(axis)


def _beside_rounding(
    graph: Graph,
    inputs: Mapping[str, Array],
    expected: Mapping[str, Array],
    answers: Answers,
    itself: str,
) -> tuple[Answers, tuple[str, ...]]:
    """The comparisons, and notes, of a model that makes large differences of small ones.

    A step of quantisation or an argmax does. The effect is measured: the model is computed again
    with each number of its inputs, and of each node's result, moved by one rounding.
    """
    moved = [moved_outputs(graph, inputs, itself, seed) for seed in range(_MOVES)]
    judged = excused(answers, expected, moved, "one rounding of each tensor moves it by")
    changed = [name for name in judged if judged[name] != answers[name]]
    return judged, tuple(f"{name}: {judged[name].detail}" for name in changed)


def _small_numbers(
    graph: Graph,
    inputs: Mapping[str, Array],
    expected: Mapping[str, Array],
    reply: Reply,
    answers: Answers,
) -> Answers:
    """The comparisons, in which a small number beside large ones is compared by its own size.

    Boxes of hundreds and probabilities of a millionth are in one tensor of a detector. What
    rounding does to numbers of like size is measured, as in :func:`_beside_rounding`.
    """
    pairs = zip(answers, reply.arrays, strict=True)
    doubted = {name: array for name, array in pairs if is_doubted(expected[name], array)}
    if not doubted:
        return answers
    moved = [moved_outputs(graph, inputs, "", seed) for seed in range(_MOVES)]
    judged = {
        name: small_compared(answers[name], expected[name], array, [one[name] for one in moved])
        for name, array in doubted.items()
    }
    return {**answers, **judged}


def moved_outputs(
    graph: Graph, inputs: Mapping[str, Array], itself: str, seed: int
) -> dict[str, Array]:
    """The outputs with every tensor moved by one rounding; of an engine, the inputs alone."""
    rng = np.random.default_rng(seed)
    moved = {name: moved_array(rng, array) for name, array in inputs.items()}
    nudge: Nudge = lambda _, array: moved_array(rng, array)  # noqa: E731
    return meant_outputs(graph, moved, itself, nudge=nudge)[0]


def approximated_outputs(
    graph: Graph,
    inputs: Mapping[str, Array],
    expected: Mapping[str, Array],
    reply: Reply,
    answers: Answers,
    engine: str,
) -> Mapping[str, str]:
    """The outputs that differ by no more than the engine's known approximations make, and why.

    The effect is measured: the model is computed again with the results of each approximated op
    moved by as much as the engine's are off (`APPROXIMATED`). This is no proof that the nodes
    inside are right. Winograd's transforms are left out: few numbers are as far off as their row.
    """
    known = APPROXIMATED.get(engine, {})
    rows = {op: most for op, most in known.items() if op not in OF_LARGEST}
    ops = sorted({node.op for node in graph.nodes} & rows.keys())
    differ = {n for n, one in answers.items() if one.outcome is Outcome.DIFFERS and one.elements}
    if not ops or not differ:
        return {}
    nudges = [partial(approximated_array, np.random.default_rng(k), rows) for k in range(_MOVES)]
    moved = [meant_outputs(graph, inputs, "", nudge=nudge)[0] for nudge in nudges]
    words = f"{engine} approximates {', '.join(f'{op} by up to {rows[op]:.2g}' for op in ops)}"
    return {
        name: f"{words}, which explains the difference"
        for name, array in zip(answers, reply.arrays, strict=True)
        if name in differ and effect_explains(expected[name], array, [one[name] for one in moved])
    }


def _beside_halves(
    graph: Graph,
    file: Path,
    inputs: Mapping[str, Array],
    expected: Mapping[str, Array],
    answers: Answers,
) -> tuple[Answers, tuple[str, ...]]:
    """The comparisons of a conversion that may store its weights in half precision.

    The effect of storage is measured: the model is computed again with its weights rounded.
    """
    if not stores_halves(file):
        return answers, ()
    rounded, _ = meant_outputs(graph, inputs, itself="", halves=True)
    words = "its weights are float16, which by itself makes"
    note = f"{file.name} stores its weights in half precision"
    return excused(answers, expected, [rounded], words, STORAGE), (note,)


def meant_outputs(
    graph: Graph,
    inputs: Mapping[str, Array],
    itself: str,
    *,
    halves: bool = False,
    nudge: Nudge | None = None,
) -> tuple[dict[str, Array], tuple[str, ...]]:
    """The expected outputs, and a note on their source: zerostride if it executes every op.

    `itself` is the engine that runs the model's own file: it is not compared with itself.
    With `halves` the model's weights are rounded to half precision first.
    """
    refused = not_executed(graph)
    if refused:  # resolved sizes make more ops constant, and those can be lowered
        sized = resolved(graph, ALWAYS)[0]
        graph, refused = (graph, refused) if not_executed(sized) else (sized, ())
    if not refused:
        return execute(with_halves(graph) if halves else graph, inputs, nudge=nudge), ()
    ops = ", ".join(sorted({node.op for node in refused}))
    if graph.format != "onnx" or itself == "onnxruntime":
        hint = (
            ""
            if graph.format == "onnx"
            else (
                "; where it came from an ONNX model, verify that model and name this file (against)"
            )
        )
        raise ModelError(
            f"{graph.path}: zerostride does not execute {ops}; nothing to compare to{hint}"
        )
    names = [value.name for value in graph.outputs]
    with (
        running("onnxruntime", MODEL_SECONDS) as process,
        onnx_with_halves(graph.path) if halves else nullcontext(graph.path) as path,
    ):
        reply = tensors(process, path, inputs, names, outputs=True)
    if reply.kind is not ReplyKind.RESULT:
        raise ModelError(
            f"{graph.path}: zerostride does not execute {ops}, and ONNX Runtime, asked instead, "
            f"gives no answer: {reply.message}"
        )
    note = f"compared with ONNX Runtime {process.version}: zerostride does not execute {ops}"
    return dict(zip(names, reply.arrays, strict=True)), (note,)


def _check(value: Value, answer: Agreement, process: Process) -> Check:
    """The check of a model's output; its name takes the place of a node's op."""
    numbers = (answer.outcome, answer.detail, answer.elements, answer.error)
    return Check("", value.name, ((value.name, value.shape),), *numbers, process.version)
