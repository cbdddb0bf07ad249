"""The meaning audit: compares every broadcast of a model with its meaning on a target engine."""

from __future__ import annotations

import copy
from collections import ChainMap
from collections.abc import Callable, Hashable, Mapping, MutableMapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...core.plan import Plan
from ...engines.model import Engine
from ...engines.planning import as_facts
from ...engines.table import find_engine
from ...engines.versions import warn_if_unmeasured
from ...errors import ZerostrideError, printable
from ...sizes import Answer, Shape
from ...sizes.condition import ALWAYS, Condition
from ...sizes.solve import allowance, satisfiable
from ..findings import Cause, Finding, Report
from ..flow import Flow, Need
from ..flow.input_sizes import InputShapes, Sizes, advice, read_sized
from ..flow.resolved import resolved
from ..formats import FORMATS, lowered, module_of
from ..formats.onnx.sites import Kind, Operand, Site
from ..ir.graph import Graph
from ..ir.memory import uncollected
from ..layout.changes import check_layout, layout_findings
from ..open_sizes import with_advice
from ..transport.batch import BatchAxes, batch_axes, contracted_batch
from ..transport.converters import chosen, lone_site, met, named, note_of
from ..transport.shape_arithmetic import counted, folding_note, shape_arithmetic
from .audit_cache import Like, pattern
from .known_numbers import fitting
from .site_finding import BATCHLESS, site_finding
from .symbolic import related


def audit(
    model: str | Path,
    target: str,
    via: str | None = None,
    *,
    batch_axis: int | None = None,
    facts: Any = None,
    sizes: Sizes | None = None,
    input_shapes: InputShapes | None = None,
    layout: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Judges every broadcast of a model against what `target` would make of it.

    Each node is judged as if carried over op for op. Of every node that may broadcast there is a
    finding; what cannot be judged is `unknown`.

    Args:
        model: a model file; its format is known by the end of its name.
        target: an engine's name.
        via: judge what this converter makes of each node, not the node itself: "pnnx" for ncnn,
            "onnx-parser" for TensorRT, "mnnconvert" for MNN; "none": op for op. None: the last two
            where the model is an ONNX file, which gets to these engines through them, else "none".
        batch_axis: for engines without a batch axis, which axis of the model's inputs it is; −1 for
            none. None: axis 0 where its extent is 1.
        facts: what is known of sizes that the model leaves open: "N >= 1", or a list of such.
        sizes: numbers for sizes: {"N": 4} for one that the model names, {"x[0]": 4} for an input's
            axis.
        input_shapes: shapes by the name of an input, or in the order of the inputs; None for an
            axis that stays open.
        layout: "nhwc": say also what every operand must become where images are channels-last.
        progress: called with the number of nodes done and of all.

    Raises:
        ModelError: the file cannot be read.
        BroadcastError: there is no such engine.
    """
    engine = find_engine(target)
    named(via, target)
    check_layout(layout)
    warn_if_unmeasured(target)
    with uncollected():  # once for both steps: each pause of the collector costs as much
        graph = read_sized(model, sizes, input_shapes)
        premises = ALWAYS if facts is None else as_facts(facts)
        if satisfiable(premises) is Answer.NO:
            raise ZerostrideError(f"what is given holds for no sizes: {premises}")
        way = chosen(via, target, graph.format)
        return audit_graph(
            graph,
            engine,
            None if way is None else way.name,
            batch_axis=batch_axis,
            facts=premises,
            layout=layout,
            progress=progress,
        )


def audit_graph(
    graph: Graph,
    engine: Engine,
    via: str | None = None,
    *,
    batch_axis: int | None = None,
    facts: Condition = ALWAYS,
    layout: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Judges every broadcast of a graph; see :func:`audit`."""
    with allowance(), uncollected():
        return _audit_graph(graph, engine, via, batch_axis, facts, layout, progress)


def _audit_graph(
    graph: Graph,
    engine: Engine,
    via: str | None,
    batch_axis: int | None,
    facts: Condition,
    layout: str | None,
    progress: Callable[[int, int], None] | None,
) -> Report:
    graph, judge, flow = prepared(graph, engine, via, batch_axis, facts)
    judged = []
    module = module_of(graph)
    folded = shape_arithmetic(graph)
    for done, node in enumerate(graph.nodes):
        site = module.find_site(node) or lone_site(node, via)
        if site is not None:
            finding = judge(site)
            judged.append((node, counted(finding) if id(node) in folded else finding))
        if progress is not None:
            progress(done + 1, len(graph.nodes))
    findings = fitting(graph, engine, judged)
    if layout is not None:
        relaid, notes = layout_findings(graph)
        findings += relaid
        graph = replace(graph, notes=(*graph.notes, *notes))
    return reported(graph, engine, via, batch_axis, findings, flow, judge.batch)


def reported(
    graph: Graph,
    engine: Engine,
    via: str | None,
    batch_axis: int | None,
    findings: Sequence[Finding],
    flow: Flow | None,
    batch: BatchAxes,
) -> Report:
    """The report of a graph's findings, with notes and needs."""
    notes = graph.notes
    needs: tuple[Need, ...] = ()
    if flow is not None:
        failures = tuple(f"no sizes make {failure} work" for failure in flow.failures)
        notes, needs = (*graph.notes, *failures, *flow.notes), flow.conditions
    if any(finding.reason == Cause.UNKNOWN_SHAPE for finding in findings):
        how = advice(graph)
        notes = (*notes, _OPEN_SIZES.format(how=how)) if how else notes
    notes = (*notes, *batch.samples.notes)
    if drops_batch(graph, engine.name) and not _has_axis(graph, batch_axis):
        notes = (*notes, f"no input of the model has an axis {batch_axis}: nothing is a batch")
    notes = (*notes, *folding_note(sum(finding.reason == Cause.FOLDED for finding in findings)))
    way = note_of(via)
    if way is not None:
        notes = (*notes, way)
    if not engine.run:
        note = f"{engine.name} {engine.release} was read about, not run: {engine.source}"
        notes = (*notes, note)
    advised = tuple(with_advice(graph, findings))
    return Report(graph.path, engine.name, via, engine.release, advised, notes, needs)


def prepared(
    graph: Graph,
    engine: Engine,
    via: str | None,
    batch_axis: int | None,
    facts: Condition,
) -> tuple[Graph, Judge, Flow | None]:
    """The graph with its sizes resolved, the judge of its sites, and the flow."""
    graph, premises, flow = resolved(graph, facts)
    batch = BatchAxes()
    if drops_batch(graph, engine.name):
        batch = batch_axes(lowered(graph), batch_axis, engine.name, via=via)
    return graph, Judge(met(via, engine), via, batch, premises), flow


_OPEN_SIZES = (
    "some findings are unknown; numbers for open sizes of the inputs may decide them: {how}"
)


def drops_batch(graph: Graph, engine: str) -> bool:
    """Whether an engine's tensors lack the batch axis that the graph's may have.

    A file in the engine's own format has no batch axis to drop.
    """
    return engine in BATCHLESS and FORMATS[graph.format].engine != engine


def _has_axis(graph: Graph, axis: int | None) -> bool:
    """Whether an input has, or may have, this axis; true for "none" (−1)."""
    return (
        axis is None
        or axis < 0
        or any(v.shape is None or axis < len(v.shape) for v in graph.inputs)
    )


class Judge:
    """Judges sites. Sites that differ in names alone are judged once: models repeat blocks."""

    def __init__(self, engine: Engine, via: str | None, batch: BatchAxes, needs: Condition) -> None:
        self.engine = engine
        self.via = via
        self.batch = batch
        self.needs = needs
        self._sample_needs = batch.needs_of_one(needs)
        self._narrowed = frozenset(
            dtype for row in engine.divergences if row.narrows for dtype in row.dtypes
        )
        self._bare = False
        self._findings: MutableMapping[Hashable, Finding] = {}
        self._patterns: MutableMapping[Hashable, tuple[Finding, tuple[int, ...]]] = {}
        self._aside: tuple[dict[Hashable, Finding], dict[Hashable, Any]] = ({}, {})

    def __call__(self, site: Site) -> Finding:
        """The finding of a site."""
        named = any(part.missing for part in site.operands) or site.kind in _NAMED
        if named or contracted_batch(site, self.batch) is not None:
            return self._fresh(site)
        rest = self.key(site, sized=False)
        key = (rest, _sizes(site))
        finding = self._findings.get(key)
        if finding is None:
            finding = self._findings[key] = self._alike(site, rest)
        return _renamed(finding, site)

    def _alike(self, site: Site, rest: Hashable) -> Finding:
        """The finding, from a site that differs in sizes alone if one was judged; names marked."""
        renamed = pattern(site, rest)
        if renamed is None:
            return self._fresh(_marked(site))
        alike, sizes = renamed
        if alike in self._patterns:
            finding, old = self._patterns[alike]
            like = Like(finding, dict(zip(old, sizes, strict=True)))
            return like.resized() or self._fresh(_marked(site), like)
        finding = self._fresh(_marked(site))
        self._patterns[alike] = finding, sizes
        return finding

    def aside(self) -> Judge:
        """A copy of the judge for temporary values, whose batch axes it forgets with itself.

        It decides whether rewrites mean the same; for those that differ it gives no details.
        """
        judge = copy.copy(self)
        judge.batch = BatchAxes(self.batch)
        judge._bare = True
        findings, patterns = self._aside
        judge._findings = ChainMap(findings, self._findings)
        judge._patterns = ChainMap(patterns, self._patterns)
        return judge

    def source(self, site: Site, shapes: tuple[Shape, ...]) -> Plan:
        """The site's plan in the model, under the model's needs; raises BroadcastError."""
        premises = related(self.needs, shapes)
        return site.plan(shapes, None if premises.always else premises)

    def _fresh(self, site: Site, like: Like | None = None) -> Finding:
        return site_finding(
            site,
            self.engine,
            self.via,
            self.batch,
            self.needs,
            self._sample_needs,
            like,
            bare=self._bare,
        )

    def key(self, site: Site, *, sized: bool = True) -> Hashable:
        """Everything of a site that a verdict may depend on, with or without sizes."""
        node, batch = site.node, self.batch
        rest = (
            site.kind,
            site.op,
            site.rule.name,
            _frozen(site.attributes),
            tuple([(part.constant, batch.of_operand(part)) for part in site.operands]),
            node.op,
            node.domain,
            node.version,
            _frozen(node.attributes),
            tuple(
                [
                    None if value is None else (value.constant, value.dtype, batch.of(value))
                    for value in node.inputs
                ]
            ),
            self._numbers(site),
        )
        return (rest, _sizes(site)) if sized else rest

    def _numbers(self, site: Site) -> Hashable:
        """The numbers that are known, where the engine computes in a narrower dtype."""
        values = [part.tensor for part in site.operands]
        if not any(value is not None and value.dtype in self._narrowed for value in values):
            return None
        return tuple(
            [None if value is None else value.content for value in (*values, *site.node.outputs)]
        )


def _sizes(site: Site) -> Hashable:
    """The shapes of a site's operands, and of its node's inputs."""
    return (
        tuple([part.shape for part in site.operands]),
        tuple([None if value is None else value.shape for value in site.node.inputs]),
    )


#: A placeholder for an operand's name while a site is judged.
_MARK = "\x00{}\x00"
#: Kinds whose findings name more than operands.
_NAMED = frozenset({Kind.CUSTOM, Kind.NOT_MODELLED})


def _marked(site: Site) -> Site:
    """The site with marks for names; constructed, since `replace` takes three times as long."""
    parts = [
        Operand(_MARK.format(k), part.shape, part.constant, part.missing, part.tensor)
        for k, part in enumerate(site.operands)
    ]
    return Site(site.node, site.kind, tuple(parts), site.rule, site.attributes, site.op)


def _frozen(attributes: Mapping[str, Any]) -> Hashable:
    if not attributes:
        return ()
    return tuple(sorted((name, repr(value)) for name, value in attributes.items()))


def _renamed(finding: Finding, site: Site) -> Finding:
    """The finding of a similar site, with the names of this one."""
    words = (finding.message, *finding.notes)
    if any("\x00" in text or "\\x00" in text for text in words):
        words = tuple([_named(text, site.operands) for text in words])
    return Finding(
        site.node.path,
        site.node.op,
        tuple([(part.name, part.shape) for part in site.operands]),
        finding.source,
        finding.target,
        finding.verdict,
        finding.reason,
        words[0],
        finding.fix,
        finding.witness,
        words[1:],
        finding.when,
        finding.values,
    )


def _named(words: str, operands: Sequence[Operand]) -> str:
    """A sentence with the operands' names in place of marks."""
    for k, part in enumerate(operands):
        mark = _MARK.format(k)
        words = words.replace(repr(mark), repr(part.name)).replace(mark, part.name)
        # Some sentences have the names in printable form.
        words = words.replace(printable(mark), printable(part.name))
    return words
