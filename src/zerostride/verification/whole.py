"""A whole model file on its engine, beside zerostride's own answer or ONNX Runtime's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ..errors import ModelError, ZerostrideError
from ..models.audit import BATCHLESS
from ..models.batch import batch_axes
from ..models.execute import execute, not_executed
from ..models.execute.made_up import random_inputs
from ..models.findings import Check, Outcome
from ..models.formats import format_of, lowered
from ..models.graph import Graph, Value
from .compare import MODEL_ULPS, compare
from .process import Answer, Process, start
from .task import Array, Form, Task

#: Format to the engines that run its files.
RUNS: Mapping[str, frozenset[str]] = {
    "onnx": frozenset({"onnxruntime", "openvino"}),
    "openvino": frozenset({"openvino"}),
    "ncnn": frozenset({"ncnn"}),
    "mnn": frozenset({"mnn"}),
}
_OF_REPLY = {
    Answer.REFUSED: Outcome.REFUSED,
    Answer.CRASHED: Outcome.CRASHED,
    Answer.ABSENT: Outcome.NOT_RUN,
}


def check_whole(
    graph: Graph,
    file: Path,
    process: Process,
    seed: int,
    batch_axis: int | None,
) -> tuple[list[Check], tuple[str, ...]]:
    """A check for each output of the model, and what a reader should know.

    Args:
        graph: the model whose meaning counts.
        file: what is run: the model's own file, or a conversion of it.
        process: the engine.
        seed: of the random inputs.
        batch_axis: as for the audit; an engine without a batch axis is not given one.

    Raises:
        ZerostrideError: the engine does not run such files.
    """
    engine = process.engine
    form = format_of(file).name
    if engine not in RUNS.get(form, frozenset()):
        raise ZerostrideError(
            f"{file}: {engine} does not run files of {form}; "
            f"{', '.join(sorted(RUNS.get(form, frozenset()))) or 'nothing here'} does"
        )
    if not file.is_file():
        raise ModelError(f"{file}: No such file")
    inputs = random_inputs(graph, seed)
    expected, note = _meant(graph, inputs, itself=engine if str(file) == graph.path else "")
    names = [value.name for value in graph.outputs]
    task = Task(Form.FILE, str(file), {"inputs": list(inputs), "outputs": names})
    given = list(inputs.values())
    dropped: Sequence[int | None] = [None] * len(names)
    if engine in BATCHLESS and form != graph.format:
        axes = batch_axes(lowered(graph), batch_axis)
        given = [_without(inputs[value.name], axes.of(value)) for value in graph.inputs]
        dropped = [axes.of(value) for value in graph.outputs]
    reply = process.carry_out(task, given)
    if reply.answer is not Answer.RESULT:
        outcome = _OF_REPLY[reply.answer]
        return [_check(value, outcome, reply.message, process) for value in graph.outputs], note
    return [
        _compared(value, _without(expected[value.name], axis), made, process)
        for value, axis, made in zip(graph.outputs, dropped, reply.arrays, strict=True)
    ], note


def _without(array: Array, axis: int | None) -> Array:
    return array if axis is None else array.squeeze(axis)


def _meant(
    graph: Graph, inputs: Mapping[str, Array], itself: str
) -> tuple[dict[str, Array], tuple[str, ...]]:
    """What the model means, and by whom: zerostride where it executes every op.

    `itself` is the engine that runs the model's own file, with which nothing is compared twice.
    """
    refused = not_executed(graph)
    if not refused:
        return execute(graph, inputs), ()
    ops = ", ".join(sorted({one.op for one in refused}))
    if graph.format != "onnx" or itself == "onnxruntime":
        raise ModelError(f"{graph.path}: zerostride does not execute {ops}; nothing to compare to")
    names = [value.name for value in graph.outputs]
    task = Task(Form.FILE, graph.path, {"inputs": list(inputs), "outputs": names})
    process = start("onnxruntime", 300.0)
    try:
        reply = process.carry_out(task, list(inputs.values()))
    finally:
        process.stop()
    if reply.answer is not Answer.RESULT:
        raise ModelError(
            f"{graph.path}: zerostride does not execute {ops}, and ONNX Runtime, asked instead, "
            f"gives no answer: {reply.message}"
        )
    note = f"compared with ONNX Runtime {process.version}: zerostride does not execute {ops}"
    return dict(zip(names, reply.arrays, strict=True)), (note,)


def _compared(value: Value, expected: Array, made: Array, process: Process) -> Check:
    kind = expected.dtype if expected.dtype.kind == "f" else np.dtype(np.float32)
    # A double is single on several engines; the input data are of order 1.
    eps = float(np.finfo(np.float32 if kind.itemsize > 4 else kind).eps)
    most = eps * MODEL_ULPS if expected.dtype.kind in "fc" else 0.0
    answer = compare(expected, made, most, any_rank=process.engine in BATCHLESS)
    found = _check(value, answer.outcome, answer.detail, process)
    return Check(
        found.node,
        found.op,
        found.operands,
        answer.outcome,
        answer.detail,
        answer.elements,
        answer.error,
        process.version,
    )


def _check(value: Value, outcome: Outcome, detail: str, process: Process) -> Check:
    """The check of a model's output, which stands where a node's op would."""
    operands = ((value.name, value.shape),)
    return Check("", value.name, operands, outcome, detail, release=process.version)
