"""A graph with the findings of its nodes: what an audit reports and a port changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...attention.plan import AttentionPlan
from ...engines.model import Engine
from ...engines.releases import release_note
from ...sizes.condition import Condition
from ..findings import Finding, Report
from ..flow import Flow, Need
from ..flow.advice import advice
from ..flow.resolved import resolved
from ..format_table import FORMATS, FormatModule, lowered, module_of
from ..ir.graph import Graph, Node
from ..ir.site import Site
from ..onnx_ops.attention_patterns import attention_roles
from ..open_sizes import with_advice
from ..options import ModelOptions
from ..reasons import Cause
from ..transport.batch import BATCHLESS, BatchAxes, batch_axes
from ..transport.converters import Converter, chosen
from ..transport.lacking import lacking_ops
from ..transport.misread_ops import misread_notes
from ..transport.mnn_packing import Packing
from ..transport.shape_arithmetic import counted, folding_note, shape_arithmetic
from .delegate_checks import DelegateChecks
from .delegated import with_outcomes
from .intent import with_readings
from .judge import Judge
from .known_numbers import fitting
from .source_lines import at_source

#: Called with the number of nodes done and of all.
Progress = Callable[[int, int], None]
_OPEN_SIZES = (
    "some findings are unknown; numbers for open sizes of the inputs may decide them: {how}"
)


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a graph.

    Attributes:
        engine: the target.
        way: the converter that is judged.
        batch_axis: see :class:`~zerostride.models.options.ModelOptions`.
        premises: conditions on its sizes that the caller knows.
    """

    engine: Engine
    way: Converter
    batch_axis: int | None
    premises: Condition

    @classmethod
    def of(cls, options: ModelOptions, engine: Engine, format: str) -> Question:
        """The question about a model of a format, through the usual converter or a named one."""
        way = chosen(options.via, engine.name, options.form or format)
        return cls(engine, way, options.batch_axis, options.premises())


@dataclass(frozen=True, slots=True)
class Audited:
    """A graph with its findings.

    Attributes:
        question: what was asked.
        graph: the graph, sizes resolved.
        module: its format's functions.
        judge: judged the sites.
        flow: the flow of sizes, where one was needed.
        delegate: what the engine's delegate asks of nodes besides.
        sites, findings: by identity of the node.
        joined: identities of nodes whose converter joins them with their neighbours: the site alone
            does not tell.
    """

    question: Question
    graph: Graph
    module: FormatModule
    judge: Judge
    flow: Flow | None
    delegate: DelegateChecks
    sites: Mapping[int, Site]
    findings: Mapping[int, Finding]
    joined: frozenset[int] = frozenset()

    def judged(self) -> list[tuple[Node, Finding]]:
        """The nodes that may broadcast, each with its finding, in order."""
        nodes = self.graph.nodes
        return [(node, self.findings[id(node)]) for node in nodes if id(node) in self.findings]

    def report(self, findings: Sequence[Finding], *more: str) -> Report:
        """The report of findings, with notes and needs.

        Args:
            findings: those of the graph, or what is made of them.
            more: further notes on the graph.
        """
        engine, way = self.question.engine, self.question.way
        notes = [*self.graph.notes, *more]
        needs: tuple[Need, ...] = ()
        if self.flow is not None:
            notes += [f"the model works for no sizes: {failure}" for failure in self.flow.failures]
            notes += self.flow.notes
            needs = self.flow.conditions
        reasons = [finding.reason for finding in findings]
        if Cause.UNKNOWN_SHAPE in reasons and (how := advice(self.graph)):
            notes.append(_OPEN_SIZES.format(how=how))
        notes += self.judge.batch.notes
        axis = self.question.batch_axis
        if drops_batch(self.graph, engine.name) and not _has_axis(self.graph, axis):
            notes.append(f"no input of the model has an axis {axis}: nothing is a batch")
        notes += folding_note(reasons.count(Cause.FOLDED))
        if way.note is not None:
            notes.append(way.note)
        if not engine.run:
            notes.append(f"{engine.name} {engine.release} was read about, not run: {engine.source}")
        notes += release_note(engine)
        kinds = {site.node.path: site.kind for site in self.sites.values()}
        findings, clean = with_outcomes(engine, kinds, findings)
        notes += clean
        in_onnx = lowered(self.graph)
        advised = tuple(with_advice(self.graph, with_readings(_with_roles(in_onnx, findings))))
        path, release = self.graph.path, engine.release
        lacks = lacking_ops(in_onnx, way.name)
        notes += _lacking_notes(way.name, lacks)
        notes += misread_notes(self.graph, way.name)
        return Report(
            path,
            engine.title,
            way.via,
            release,
            advised,
            tuple(notes),
            needs,
            arrival=way.words,
            lacks=lacks,
        )


def _with_roles(graph: Graph, findings: Sequence[Finding]) -> list[Finding]:
    """The findings; those of nodes that write out an attention say which part they are."""
    notes = attention_roles(graph)
    return [
        replace(finding, notes=(*finding.notes, notes[finding.node]))
        if finding.node in notes and not isinstance(finding.source, AttentionPlan)
        else finding
        for finding in findings
    ]


def _lacking_notes(converter: str, lacks: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield a note on the ops for which a converter refuses the model."""
    if lacks:
        ops = ", ".join(
            f"{op} ({paths[0]!r}{f' and {len(paths) - 1} more' if len(paths) > 1 else ''})"
            for op, paths in lacks.items()
        )
        yield f"{converter} refuses the model for {ops}; zerostride convert tries other ops for it"


def audited(
    graph: Graph,
    question: Question,
    progress: Progress | None = None,
    known: Callable[[Site, Judge], Finding | None] = lambda site, judge: None,
) -> Audited:
    """A graph's findings.

    Args:
        graph: the graph.
        question: what is asked.
        progress: called with the number of nodes done and of all.
        known: the finding of a site where it is known already.
    """
    engine, way = question.engine, question.way
    batch = BatchAxes()
    batchless = drops_batch(graph, engine.name)
    # Sizes, batch, sites.
    graph, needs, flow = resolved(way.seen(graph), question.premises)
    if batchless:
        batch = batch_axes(lowered(graph), question.batch_axis, engine.name, via=way.via)
    packing = Packing(graph) if way.name == "mnnconvert" else None
    judge = Judge(engine, way, batch, needs, packing, graph.inputs)
    module = module_of(graph)
    sites: dict[int, Site] = {}
    for node in graph.nodes:
        site = module.find_site(node) or way.site_of_one(node)
        if site is not None:
            sites[id(node)] = site
    # Judgements.
    delegate = DelegateChecks(graph, engine)
    findings: dict[int, Finding] = {}
    for done, key in enumerate(map(id, graph.nodes)):
        if key in sites:
            site = sites[key]
            findings[key] = delegate(site, known(site, judge) or judge(site))
        if progress is not None:
            progress(done + 1, len(graph.nodes))
    # What the nodes around a site change, and where to mend it.
    joined = way.joined(graph, batch)
    changes = {**joined, **dict.fromkeys(shape_arithmetic(graph), counted)}
    findings |= {key: changes[key](findings[key]) for key in findings.keys() & changes.keys()}
    findings = fitting(graph, engine.name, at_source(graph, findings))
    together = frozenset(joined)
    return Audited(question, graph, module, judge, flow, delegate, sites, findings, together)


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
