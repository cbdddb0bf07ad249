"""A whole model file on its engine, compared with zerostride's answer or ONNX Runtime's."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np

from ...errors import ModelError, ZerostrideError
from ...models.audit.judge import BATCHLESS
from ...models.execute import execute, not_executed
from ...models.execute.random_inputs import random_inputs
from ...models.findings import Check, Outcome
from ...models.flow.resolved import resolved
from ...models.formats import format_of, lowered
from ...models.ir.graph import Graph, Value
from ...models.transport.batch import batch_axes
from ...sizes.condition import ALWAYS
from .compare import MODEL_ULPS, compare
from .halves import onnx_with_halves, stores_halves, with_halves
from .process import Process, ReplyKind, start
from .task import Array, Form, Task

#: Format to the engines that run its files.
RUNS: Mapping[str, frozenset[str]] = {
    "onnx": frozenset({"onnxruntime", "openvino"}),
    "openvino": frozenset({"openvino"}),
    "ncnn": frozenset({"ncnn"}),
    "mnn": frozenset({"mnn"}),
}
_OF_REPLY = {
    ReplyKind.REFUSED: Outcome.REFUSED,
    ReplyKind.CRASHED: Outcome.CRASHED,
    ReplyKind.ABSENT: Outcome.NOT_RUN,
}


def check_whole(
    graph: Graph,
    file: Path,
    process: Process,
    seed: int,
    batch_axis: int | None,
) -> tuple[list[Check], tuple[str, ...]]:
    """A check for each output of the model, and notes.

    Args:
        graph: the model that defines the meaning.
        file: the file to run: the model's own, or a conversion of it.
        process: the engine.
        seed: of the random inputs.
        batch_axis: as for the audit; inputs for an engine without a batch axis lack it.

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
    arrays = list(inputs.values())
    if engine in BATCHLESS and form != graph.format:
        sized = resolved(graph, ALWAYS)[0]
        axes = batch_axes(lowered(sized), batch_axis)
        arrays = [_without(inputs[value.name], axes.of(value)) for value in sized.inputs]
    reply = process.carry_out(task, arrays)
    if reply.answer is not ReplyKind.RESULT:
        outcome = _OF_REPLY[reply.answer]
        return [_check(value, outcome, reply.message, process) for value in graph.outputs], note
    results = dict(zip(names, reply.arrays, strict=True))
    if engine in BATCHLESS and form != graph.format:
        expected = {name: like(array, results[name].shape) for name, array in expected.items()}
    checks = [
        _compared(value, expected[value.name], results[value.name], process)
        for value in graph.outputs
    ]
    if str(file) != graph.path and any(check.outcome is Outcome.DIFFERS for check in checks):
        return _beside_halves(graph, file, inputs, expected, checks, note)
    return checks, note


def _without(array: Array, axis: int | None) -> Array:
    return array if axis is None else array.squeeze(axis)


def like(array: Array, shape: tuple[int, ...]) -> Array:
    """The array without the one axis of extent 1 that `shape` lacks: the batch that was dropped.

    >>> like(np.ones((1, 2)), (2,)).shape, like(np.ones((3, 2)), (2,)).shape
    ((2,), (3, 2))
    """
    if array.ndim != len(shape) + 1:
        return array
    tries = (
        array.shape[:k] + array.shape[k + 1 :] for k in range(array.ndim) if array.shape[k] == 1
    )
    return array.reshape(shape) if shape in tries else array


def _beside_halves(
    graph: Graph,
    file: Path,
    inputs: Mapping[str, Array],
    expected: Mapping[str, Array],
    checks: list[Check],
    note: tuple[str, ...],
) -> tuple[list[Check], tuple[str, ...]]:
    """The checks of a conversion that may store its weights in half precision.

    The effect of storage is measured: the model is computed again with its weights rounded. A
    difference of at most twice that effect comes from storage alone.
    """
    if not stores_halves(file):
        return checks, note
    rounded, _ = _meant(graph, inputs, itself="", halves=True)
    judged = []
    for check in checks:
        meant = expected[check.op]
        effect = compare(meant, like(rounded[check.op], meant.shape), 0.0).error
        if check.outcome is Outcome.DIFFERS and check.elements and check.error <= 2 * effect:
            detail = f"its weights are float16, which by itself makes up to {effect:.2g}"
            check = replace(check, outcome=Outcome.AGREES, detail=detail)
        judged.append(check)
    return judged, (*note, f"{file.name} stores its weights in half precision")


def _meant(
    graph: Graph, inputs: Mapping[str, Array], itself: str, *, halves: bool = False
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
        return execute(with_halves(graph) if halves else graph, inputs), ()
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
    process = start("onnxruntime", 300.0)
    try:
        with onnx_with_halves(graph.path) if halves else nullcontext(graph.path) as path:
            task = Task(Form.FILE, path, {"inputs": list(inputs), "outputs": names})
            reply = process.carry_out(task, list(inputs.values()))
    finally:
        process.stop()
    if reply.answer is not ReplyKind.RESULT:
        raise ModelError(
            f"{graph.path}: zerostride does not execute {ops}, and ONNX Runtime, asked instead, "
            f"gives no answer: {reply.message}"
        )
    note = f"compared with ONNX Runtime {process.version}: zerostride does not execute {ops}"
    return dict(zip(names, reply.arrays, strict=True)), (note,)


def _compared(value: Value, expected: Array, actual: Array, process: Process) -> Check:
    kind = expected.dtype if expected.dtype.kind == "f" else np.dtype(np.float32)
    # A double is single on several engines; the input data are of order 1.
    eps = float(np.finfo(np.float32 if kind.itemsize > 4 else kind).eps)
    most = eps * MODEL_ULPS if expected.dtype.kind in "fc" else 0.0
    if expected.dtype.kind == "f" and expected.size and np.isnan(expected).all():
        detail = "the model itself makes nothing but NaN of these random inputs"
        return _check(value, Outcome.NOT_RUN, detail, process)
    answer = compare(expected, actual, most, any_rank=process.engine in BATCHLESS)
    check = _check(value, answer.outcome, answer.detail, process)
    return Check(
        check.node,
        check.op,
        check.operands,
        answer.outcome,
        answer.detail,
        answer.elements,
        answer.error,
        process.version,
    )


def _check(value: Value, outcome: Outcome, detail: str, process: Process) -> Check:
    """The check of a model's output; its name takes the place of a node's op."""
    operands = ((value.name, value.shape),)
    return Check("", value.name, operands, outcome, detail, release=process.version)
