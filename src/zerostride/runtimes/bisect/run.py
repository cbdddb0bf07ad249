"""Bisection: where two runs of a model first differ, on which node, and why."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...engines.table import find_engine
from ...errors import ZerostrideError
from ...models.arguments import checked
from ...models.audit.run import audit_graph
from ...models.bisect.cause import FaultCause, cause
from ...models.bisect.search import search
from ...models.bisect.sides import Fault, Other, ops_of
from ...models.bisection import Bisection, Culprit
from ...models.findings import Finding, Report
from ...models.flow.input_sizes import InputShapes, Sizes
from ...models.flow.resolved import resolved
from ...models.formats import format_of, read_model
from ...models.formats.model_file import ModelFile, model_file
from ...models.formats.torch_export import Example
from ...models.ir.graph import Graph, Value
from ...models.judging import APPROXIMATED, judged
from ...models.options import ModelOptions
from ...models.transport.batch import BATCHLESS
from ...models.transport.converters import NONE
from ...sizes.condition import ALWAYS
from ..equivalent.converted import question_words
from ..feeds import Fed, fed
from ..process import MODEL_SECONDS, running
from ..runners import RUNNERS
from ..task import Array
from ..verify.compare import COMPOUND_ULPS
from ..verify.halves import stores_halves, with_halves
from ..verify.whole_model import feed_of
from .collect import Progress, Spilled, collect, computed
from .reduce import Alone, Reduction
from .refused_file import refused_file
from .repro import repro

#: The engine of a format that no engine defines.
_ENGINE = {"onnx": "onnxruntime"}


@checked
def bisect(
    model: Any,
    other: Any = None,
    *,
    args: tuple[Any, ...] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    inputs: Mapping[str, Any] | None = None,
    engine: str | None = None,
    other_engine: str | None = None,
    seed: int = 0,
    timeout: float | None = None,
    via: str | None = None,
    batch_axis: int | None = None,
    facts: Any = None,
    sizes: Sizes | None = None,
    input_shapes: InputShapes | None = None,
    pythons: dict[str, str] | None = None,
    progress: Progress | None = None,
) -> Report:
    """Finds the first nodes at which two runs of a model differ, and says why.

    Both sides hand out every tensor that they compute. zerostride computes the model node by node
    on the other side's own numbers: a node is a culprit if its operands agree and its result does
    not. Several faults are found in one run.

    Args:
        model: a model file, a model in memory, or a module or program of PyTorch, as for
            :func:`~zerostride.audit`; it defines the meaning.
        other: another file or object of the same model, such as a converter's; None: the model
            itself.
        args, kwargs, dynamic_shapes: a module's inputs, as for :func:`~zerostride.audit`; it is
            run on these.
        inputs: arrays, lists or numbers by the names of inputs; the others are chosen so that
            faults show, in up to three runs.
        engine: what runs the model; None: the engine of its format, ONNX Runtime for ONNX.
        other_engine: what runs the other file; None: likewise.
        seed: of the random inputs.
        timeout: seconds for one answer of an engine; 300 by default.
        via, batch_axis, facts, sizes, input_shapes: as for :func:`~zerostride.audit`.
        pythons: interpreters by engine, for engines that need an environment of their own.
        progress: called with the number of tensors done and of all.

    Returns:
        A report whose `bisection` has a stage for each tensor; `culprit` is the first fault.

    Raises:
        ModelError: a file cannot be read.
        ZerostrideError: an input is unknown or does not fit; an engine is not installed or does not
            run such files.
    """
    # 1. What is asked.
    if other is None and other_engine is None:
        raise ZerostrideError("name another file, or another engine for the same file")
    example = Example(args, kwargs, dynamic_shapes)
    with model_file(model, example) as source, _other_file(other, source) as second:
        options = ModelOptions(via, batch_axis, facts, sizes, input_shapes, form=source.form)
        file, theirs = source.path, second.path
        engines = engine_of(file, engine), engine_of(theirs, other_engine)
        given = fed(options, file, inputs or {}, seed, source.example)
        seconds = timeout or MODEL_SECONDS
        pair = FilePair(file, None if other is None else theirs, engines, options, seconds, pythons)
        for arrays in given.runs:
            report = bisected(pair, given, arrays, progress)
            if report.bisection is not None and report.bisection.culprits:
                break
        return source.named(second.hidden(report))


@contextmanager
def _other_file(other: Any, source: ModelFile) -> Iterator[ModelFile]:
    """The file of the other side; the model's own where there is no other."""
    if other is None:
        yield source
    else:
        with model_file(other) as file:
            yield file


@dataclass(frozen=True, slots=True)
class FilePair:
    """Two files of one model, and how engines run them.

    Attributes:
        file: the model.
        other: another file of it; None: the model itself.
        engines: what runs the two.
        options: what the caller says of the model.
        seconds: for one answer of an engine.
        pythons: interpreters by engine.
    """

    file: Path
    other: str | Path | None
    engines: tuple[str, str]
    options: ModelOptions
    seconds: float
    pythons: dict[str, str] | None


@np.errstate(all="ignore")  # memory that an engine never wrote may hold signalling NaNs
def bisected(
    pair: FilePair,
    chosen: Fed,
    arrays: Mapping[str, Array],
    progress: Progress | None = None,
    *,
    why: bool = True,
) -> Report:
    """Finds the first nodes at which runs of two files on one set of inputs differ.

    Args:
        pair: the files.
        chosen: the graph with its sizes, and notes on the inputs.
        arrays: the inputs.
        progress: called with the number of tensors done and of all.
        why: whether causes are looked for, which may take longer than all else.
    """
    file, other, options = pair.file, pair.other, pair.options
    theirs = file if other is None else Path(other)
    engine, other_engine = pair.engines
    graph = resolved(chosen.graph, ALWAYS)[0]
    other_graph = graph
    if other is not None:
        other_graph = _with_names_of(graph, read_model(theirs))
        graph = _with_names_of(other_graph, graph)
    with tempfile.TemporaryDirectory(prefix="zerostride-") as folder:
        # 2. Every tensor of both sides.
        model_run, other_run, alone = (
            Spilled(Path(folder, name)) for name in ("model", "other", "alone")
        )
        with running(engine, pair.seconds, pair.pythons) as process:
            collect(process, file, arrays, computed(graph), model_run, progress)
        batchless = other_engine in BATCHLESS and other_graph.format != graph.format
        sent: Mapping[str, Array] = arrays
        with running(other_engine, pair.seconds, pair.pythons) as process:
            if batchless:
                results = {v.name: model_run.fetch(v.name) for v in graph.outputs}
                expected = {name: array for name, array in results.items() if array is not None}
                sent, _ = feed_of(graph, theirs, process, arrays, options.batch_axis, expected)
            release = process.version
            values = computed(other_graph)
            collect(process, theirs, sent, values, other_run, progress)
            last = {value.name for value in other_graph.outputs}
            collect(process, theirs, sent, [v for v in values if v.name in last], alone)
        # 3. The first that differ.
        variants = [with_halves] if other is not None and stores_halves(theirs) else []
        outputs = tuple(value.name for value in other_graph.outputs)
        aliases = {alias: v.name for v in values for alias in v.aliases if alias != v.name}
        pairs = zip(graph.inputs, other_graph.inputs, strict=False)
        given = {value.name: sent[v.name] for v, value in pairs if v.name in sent}
        ops = {v.name: ops_of(other_graph, n) for n in other_graph.nodes for v in n.outputs}
        held = other_run.names, other_run.fetch, other_run.failures
        near = APPROXIMATED.get(other_engine, {})
        side = Other(*held, outputs, aliases, given, ops, near)
        most = _tolerance(other_engine)
        if values and not other_run.names:
            refused = refused_file(theirs, other_graph, other_engine, other_run.failures)
            bisection = Bisection((), (refused,), graph.notes)
            return _report(file, other_engine, release, bisection)
        stages, faults, notes = search(graph, arrays, side, model_run.fetch, most, variants)
        own = Other(model_run.names, model_run.fetch, model_run.failures)
        _, own_faults, _ = search(graph, arrays, own, model_run.fetch, _tolerance(engine))
        # 4. Why.
        findings: Sequence[Finding] = ()
        if faults and why:
            row = find_engine(other_engine)
            findings = audit_graph(graph, row, options).findings
            if other is not None and options.via is None:
                # The file need not be of the usual converter.
                directly = audit_graph(graph, row, replace(options, via=NONE)).findings
                findings = (*findings, *directly)
        reduction = Reduction(
            graph, model_run.fetch, theirs, other_engine, pair.seconds, pair.pythons
        )

        def explained(fault: Fault) -> Culprit:
            if not why:
                return _culprit(fault, FaultCause(), pair.engines, Alone(""))
            reason = cause(fault, findings, other_graph, side, most)
            smallest = Alone("") if reason.words else reduction.smallest(fault)
            return _culprit(fault, reason, pair.engines, smallest)

        culprits = [
            *map(explained, faults),
            *(_culprit(fault, FaultCause(), pair.engines[:1], Alone("")) for fault in own_faults),
        ]
        notes += _observed(other_run, alone, most, other_engine)
    if variants:
        notes.append(f"{theirs.name} stores its weights in half precision")
    notes += chosen.notes
    if other is not None:
        notes += question_words(options.read(file), read_model(theirs), theirs.name)
    bisection = Bisection(tuple(stages), tuple(culprits), tuple(notes))
    return _report(file, other_engine, release, bisection)


def _report(model: str | Path, engine: str, release: str, bisection: Bisection) -> Report:
    notes = bisection.notes
    return Report(
        str(model), engine, None, release, (), notes, command="bisect", bisection=bisection
    )


def _with_names_of(graph: Graph, other: Graph) -> Graph:
    """The other graph, its tensors renamed to those names in its file that the first graph has."""
    own = {name for value in graph.values() for name in (value.name, *value.aliases)}

    def change(value: Value, _: int) -> Value:
        name = next((name for name in value.aliases if name in own), value.name)
        return value if name == value.name else replace(value, name=name)

    return other.with_values(change)


def engine_of(file: Path, chosen: str | None) -> str:
    """The engine that runs a file."""
    row = format_of(file)
    engine = chosen or row.engine or _ENGINE.get(row.name, "")
    if engine:
        find_engine(engine)
    if engine not in RUNNERS or row.name not in RUNNERS[engine].files:
        able = sorted(name for name, runner in RUNNERS.items() if row.name in runner.files)
        raise ZerostrideError(
            f"{file}: {engine or 'no engine'} does not run files of {row.name}; "
            f"{' and '.join(able) or 'nothing here'} {'do' if able[1:] else 'does'}"
        )
    return engine


def _tolerance(engine: str) -> float:
    """The tolerance of one node on an engine that computes in single precision."""
    return float(np.finfo(np.float32).eps) * max(COMPOUND_ULPS, RUNNERS[engine].ulps)


def _observed(every: Spilled, alone: Spilled, most: float, engine: str) -> Iterator[str]:
    """Yield a note for each output that differs when the engine is asked for it alone."""
    for name in alone.names:
        with_all, by_itself = every.fetch(name), alone.fetch(name)
        if with_all is None or by_itself is None or with_all.shape != by_itself.shape:
            continue
        verdict = judged(by_itself, with_all, most)
        if not verdict.agrees:
            yield (
                f"{engine} computes {name!r} otherwise while it hands out every tensor: "
                f"{verdict.wrong} of {verdict.elements} numbers; {verdict.detail}"
            )


def _culprit(fault: Fault, why: FaultCause, engines: Sequence[str], alone: Alone) -> Culprit:
    """A culprit; `engines` are the model's and the other side's, or the model's alone."""
    node = fault.part.nodes[-1]
    shapes = ((v.name, fault.values[id(v)].shape) for v in fault.part.operands)
    return Culprit(
        node.path,
        node.op,
        tuple(node.path for node in fault.part.nodes),
        fault.part.result.name,
        fault.other,
        tuple(shapes),
        fault.judged.error,
        fault.judged,
        "other" if len(engines) > 1 else "model",
        why.words,
        why.fix,
        why.plans,
        why.names,
        alone.words,
        node.origin,
        repro(alone.fault or fault, engines[0], engines[-1]),
    )


__all__ = ["bisect", "bisected", "engine_of"]
