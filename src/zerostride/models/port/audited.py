"""A graph with its findings by node, for a port."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ...engines.model import Engine
from ...sizes.condition import Condition
from ..audit.run import Judge, prepared, reported
from ..audit.symbolic import related
from ..findings import Finding, Report
from ..flow import Flow
from ..flow.input_sizes import InputShapes, Sizes, read_sized
from ..formats import FORMATS
from ..formats.onnx.sites import Site
from ..ir.graph import Graph
from ..transport.converters import lone_site
from ..transport.shape_arithmetic import counted, shape_arithmetic
from .program import Setting


@dataclass(frozen=True, slots=True)
class Question:
    """The arguments of a port, the same for the model before and after."""

    engine: Engine
    via: str | None
    batch_axis: int | None
    facts: Condition
    sizes: Sizes | None = None
    input_shapes: InputShapes | None = None

    def read(self, path: Path) -> Graph:
        """The graph of a file with the sizes that were given."""
        return read_sized(path, self.sizes, self.input_shapes)


@dataclass(frozen=True)
class Audited:
    """A graph with its findings by identity of its nodes."""

    graph: Graph
    findings: Mapping[int, Finding]
    sites: Mapping[int, Site]
    setting: Setting
    flow: Flow | None

    def by_meaning(self) -> dict[Hashable, Finding]:
        """The findings by all that they depend on."""
        return {
            _meaning(site, self.setting.judge): self.findings[node]
            for node, site in self.sites.items()
        }

    def report(self, question: Question) -> Report:
        """The audit's report."""
        findings = [self.findings[id(n)] for n in self.graph.nodes if id(n) in self.findings]
        return reported(
            self.graph,
            question.engine,
            question.via,
            question.batch_axis,
            findings,
            self.flow,
            self.setting.judge.batch,
        )


def audited(
    graph: Graph,
    question: Question,
    progress: Callable[[int, int], None] | None = None,
    like: Audited | None = None,
) -> Audited:
    """A graph's findings.

    Args:
        graph: the graph.
        question: the arguments of the port.
        progress: called with the number of nodes done and of all.
        like: the findings of a graph that shares most of its nodes. A site for which everything
            that a verdict depends on is equal in both keeps its finding.
    """
    graph, judge, flow = prepared(
        graph,
        question.engine,
        question.via,
        question.batch_axis,
        question.facts,
    )
    module = FORMATS[graph.format].load()
    by_meaning = {} if like is None else like.by_meaning()
    findings: dict[int, Finding] = {}
    sites: dict[int, Site] = {}
    folded = shape_arithmetic(graph)
    for done, node in enumerate(graph.nodes):
        site = module.find_site(node) or lone_site(node, question.via)
        if site is not None:
            same = by_meaning.get(_meaning(site, judge)) if by_meaning else None
            finding = same or judge(site)
            sites[id(node)] = site
            findings[id(node)] = counted(finding) if id(node) in folded else finding
        if progress is not None:
            progress(done + 1, len(graph.nodes))
    setting = Setting(module, judge)
    return Audited(graph, findings, sites, setting, flow)


def _meaning(site: Site, judge: Judge) -> Hashable:
    """Everything that a site's finding depends on, including names."""
    shapes = [part.shape or () for part in site.operands]
    names = tuple((part.name, part.missing) for part in site.operands)
    return site.node.path, names, judge.key(site), related(judge.needs, shapes)


__all__ = ["Audited", "Question", "audited"]
