"""A model compared with a real engine: each of its broadcasts, or the whole model."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ...engines.table import find_engine
from ...engines.versions import warn_if_unmeasured
from ...errors import ZerostrideError
from ...models.arguments import checked
from ...models.audit.audited import drops_batch
from ...models.audit.run import audit_graph
from ...models.findings import Check, Finding, Outcome, Report, Verdict
from ...models.flow.input_sizes import InputShapes, Sizes
from ...models.flow.resolved import resolved
from ...models.format_table import lowered, module_of
from ...models.formats.model_file import ModelFile, model_file
from ...models.formats.torch_export import Example
from ...models.ir.graph import Graph
from ...models.ir.site import Site
from ...models.options import ModelOptions
from ...models.transport.batch import BatchAxes, batch_axes
from ...models.transport.converters import NONE, OP_FOR_OP, chosen
from ...sizes.condition import Condition
from ...system.spelling import meant
from ..feeds import Fed, fed
from ..process import CASE_SECONDS, MODEL_SECONDS, running
from ..runners import RUNNERS
from .cache import Cache
from .causes import with_causes
from .inside import check_inside
from .site_checks import Progress, SiteChecks
from .whole_model import check_whole, worst_of

#: The packages that a converter needs besides its engine's.
_MODULES: Mapping[str, tuple[str, ...]] = {"pnnx": ("pnnx", "onnx")}


@checked
def verify(
    model: Any,
    engine: str,
    *,
    args: tuple[Any, ...] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    whole: bool = False,
    against: Any = None,
    inputs: Mapping[str, Any] | None = None,
    node: str | None = None,
    seed: int = 0,
    timeout: float | None = None,
    cases: int = 1,
    cache: bool = True,
    via: str | None = None,
    batch_axis: int | None = None,
    facts: Any = None,
    sizes: Sizes | None = None,
    input_shapes: InputShapes | None = None,
    pythons: dict[str, str] | None = None,
    progress: Progress | None = None,
) -> Report:
    """Runs every broadcast of a model on a real engine, or the model as a whole.

    Each broadcast of an ONNX model goes alone through the engine's own converter, as the audit has
    it, with the node's shapes and random operands; of another format, or with `via="none"`, it
    becomes one op in the engine's own terms. Its numbers are compared with those that zerostride
    computes by the model's own rule. Engines run in a child process: a crash or a hang is an
    outcome.

    Args:
        model: a model file, a model in memory, or a module or program of PyTorch, as for
            :func:`~zerostride.audit`.
        engine: an engine that runs here.
        args, kwargs, dynamic_shapes: a module's inputs, as for :func:`~zerostride.audit`.
        whole: run the file itself, not its broadcasts.
        against: run this file or object, a conversion of the model, instead of the model; implies
            `whole`.
            The tensors inside are compared, too, as :func:`~zerostride.bisect` does.
        inputs: arrays, lists or numbers by the names of the model's inputs; the others are chosen
            so that faults show, in up to three runs. Implies `whole`.
        node: check this node alone, named as in a finding.
        seed: of the random operands.
        timeout: seconds for one answer; by default 20, for a whole model 300. Loading the engine
            may take 6 times as long: at least 60 seconds, at most 240.
        cases: how many random operands each broadcast gets.
        cache: use the answers of earlier runs: equal tasks on one release answer equally.
        via, batch_axis, facts, sizes, input_shapes: as for :func:`~zerostride.audit`.
        pythons: interpreters by engine, for engines that need an environment of their own.
        progress: called with the number of checks done and of all.

    Returns:
        A report with the audit's findings for that engine, and a check for each of them. What one
        call may ask is bounded (2^35 elements, or 8,192 questions); later nodes are `not_run`.

    Raises:
        ModelError: the file cannot be read.
        ZerostrideError: the engine is not installed or does not run here, or there is no such node.
        BroadcastError: there is no such engine.
    """
    # 1. What is asked.
    row = find_engine(engine)
    if engine not in RUNNERS:
        raise ZerostrideError(f"{engine} does not run here; these do: {', '.join(RUNNERS)}")
    warn_if_unmeasured(engine)
    whole = whole or against is not None or bool(inputs)
    example = Example(args, kwargs, dynamic_shapes)
    with model_file(model, example) as source, _conversion(against, source) as second:
        # 2. What the audit says of it.
        options = ModelOptions(via, batch_axis, facts, sizes, input_shapes, form=source.form)
        graph = options.read(source.path)
        given = Fed(graph, ())
        if whole:
            given = fed(options, source.path, inputs or {}, seed, source.example)
            graph = given.graph
        options, missing = _installed(options, engine, graph, pythons, whole=whole)
        report = audit_graph(graph, row, options)
        findings = report.findings
        if node is not None and not whole:
            findings = tuple(finding for finding in findings if finding.node == node)
        # 3. What the engine does.
        seconds = timeout or (MODEL_SECONDS if whole else CASE_SECONDS)
        with running(engine, seconds, pythons) as process:
            if whole:
                file = second.path
                runs = [check_whole(graph, file, process, r, batch_axis) for r in given.runs]
                checks = worst_of([checks for checks, _, _ in runs])
                approximated = _explained_in_all(runs)
                noted = [note for _, notes, _ in runs for note in notes]
                notes = tuple(dict.fromkeys([*noted, *given.notes]))
            else:
                way = chosen(options.via, engine, options.form or graph.format)
                graph, batch = _sized(graph, engine, options.premises(), batch_axis, way.via)
                sites = _sites(graph, node)
                answers = Cache(engine, f"{process.version}{_release_of(way.name)}", on=cache)
                asked = SiteChecks(graph, batch, process, answers, seed, cases, way)
                checks, notes = list(asked.run(sites, findings, progress)), missing
                changes = way.joined(graph, batch)
                joined = [id(site.node) in changes for site in sites]
                checks = list(map(_as_joined, findings, checks, joined))
                answers.trim()
        if against is not None:
            model_path, other = source.path, second.path
            how = options, seconds, pythons
            checks = check_inside(checks, model_path, other, engine, given, *how, approximated)
            excused = [c for c in checks if c.detail == approximated.get(c.op)]
            notes += tuple(f"{check.op}: {check.detail}" for check in excused)
            checks = list(with_causes(checks, graph, findings))
        # 4. Where the two differ.
        loud = () if whole else surprises(findings, checks)
        report = replace(
            report,
            findings=findings,
            notes=(*loud, *report.notes, *notes),
            command="verify",
            checks=tuple(checks),
            release=process.version or report.release,
            arrival="" if against is not None else report.arrival,  # whoever wrote that file
        )
        return source.named(second.hidden(report))


@contextmanager
def _conversion(against: Any, source: ModelFile) -> Iterator[ModelFile]:
    """The file of a conversion of the model; the model's own where there is none."""
    if against is None:
        yield source
    elif isinstance(against, str | os.PathLike):  # an engine may run files that nothing reads
        yield ModelFile(Path(against))
    else:
        with model_file(against) as file:
            yield file


def _explained_in_all(
    runs: Sequence[tuple[Sequence[Check], tuple[str, ...], Mapping[str, str]]],
) -> dict[str, str]:
    """Why an output may differ without a fault, of those for which every run that differs says it.

    >>> check = Check("", "y", (), Outcome.DIFFERS)
    >>> _explained_in_all([([check], (), {"y": "why"}), ([check], (), {})])
    {}
    """
    left = {
        check.op
        for checks, _, why in runs
        for check in checks
        if check.outcome is not Outcome.AGREES and check.op not in why
    }
    return {op: words for _, _, why in runs for op, words in why.items() if op not in left}


def _as_joined(finding: Finding, check: Check, joined: bool) -> Check:
    """The check of a node that its converter joins with others: alone it shows nothing."""
    if (
        not joined
        or finding.verdict is not Verdict.DIFFERENT
        or check.outcome is not Outcome.AGREES
    ):
        return check
    detail = "alone it agrees; the converter joins it with its neighbours: zerostride convert"
    return replace(check, outcome=Outcome.NOT_RUN, detail=detail)


def _installed(
    options: ModelOptions,
    engine: str,
    graph: Graph,
    pythons: Mapping[str, str] | None,
    *,
    whole: bool,
) -> tuple[ModelOptions, tuple[str, ...]]:
    """The options, op for op where the converter runs no node here, and a note on that."""
    way = chosen(options.via, engine, options.form or graph.format)
    if way is OP_FOR_OP or whole:
        return options, ()
    missing = [name for name in _MODULES.get(way.name, ()) if not find_spec(name)]
    if not way.by_node:
        reason = f"{way.name} converts a module as a whole (zerostride convert does)"
    elif missing and options.via is None and engine not in (pythons or {}):
        reason = f"{missing[0]} is not installed (pip install {missing[0]})"
    else:
        return options, ()
    return replace(options, via=NONE), (f"{reason}: every node runs op for op",)


def _release_of(way: str) -> str:
    """The release of a converter that is a package of its own, for the cache."""
    names = [name for name in _MODULES.get(way, ()) if find_spec(name)]
    return "".join(f" {name} {metadata.version(name)}" for name in names)


def _sized(
    graph: Graph, engine: str, premises: Condition, batch_axis: int | None, via: str | None
) -> tuple[Graph, BatchAxes]:
    """The graph with its sizes resolved, and the batch axes that the engine does not have."""
    graph = resolved(graph, premises)[0]
    if not drops_batch(graph, engine):
        return graph, BatchAxes()
    return graph, batch_axes(lowered(graph), batch_axis, engine, via=via)


def _sites(graph: Graph, node: str | None) -> list[Site]:
    module = module_of(graph)
    sites = [site for site in map(module.find_site, graph.nodes) if site is not None]
    if node is None:
        return sites
    named = [site for site in sites if site.node.path == node]
    if not named:
        hint = meant(node, [site.node.path for site in sites])
        raise ZerostrideError(f"{graph.path}: no node {node!r} broadcasts{hint}")
    return named


def surprises(findings: Sequence[Finding], checks: Sequence[Check]) -> tuple[str, ...]:
    """The disagreements of audit and engine; a `same` that differs is the most serious."""
    pairs = list(zip(findings, checks, strict=True))
    return (*_wrong_verdicts(pairs), *_needless_verdicts(pairs))


def _wrong_verdicts(pairs: Sequence[tuple[Finding, Check]]) -> Iterator[str]:
    against = (Outcome.DIFFERS, Outcome.REFUSED, Outcome.CRASHED)
    for finding, check in pairs:
        if finding.verdict is Verdict.SAME and check.outcome in against:
            yield (
                f"WRONG VERDICT: the audit says {finding.node!r} means the same on the engine, "
                f"which {check.outcome}: {check.detail}; please report it with the model"
            )


def _needless_verdicts(pairs: Sequence[tuple[Finding, Check]]) -> Iterator[str]:
    for finding, check in pairs:
        other = finding.verdict in (Verdict.DIFFERENT, Verdict.REFUSED)
        if other and check.outcome is Outcome.AGREES:
            yield (
                f"the audit says {finding.node!r} is {finding.verdict} ({finding.reason}), and "
                "with these numbers the engine agrees"
            )


__all__ = ["surprises", "verify"]
