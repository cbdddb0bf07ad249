"""The proof: both models as terms, outputs compared, and where they part."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ...sizes import Answer
from ...sizes.budget import FLOW_STEPS, allowance
from ...sizes.solve import decide
from ..equivalence import Region, Sameness
from ..execute.part import Part
from ..ir.graph import Graph
from .pair import Pair
from .reading.reader import Reader, shape_of
from .regions import region_of
from .terms.axes import places_of
from .terms.builder import Builder, TooLarge
from .terms.matching import Matching
from .terms.term import INPUT, Term

#: Functions that call each other, at most: views are pushed through as many terms.
_DEEPEST = 5_000


@dataclass(frozen=True, slots=True)
class Proven:
    """An output's verdict without any run.

    Attributes:
        name, other: the names of the output.
        verdict: equal, equal but for rounding, or undecided.
        region: of an undecided one.
        parts: the nodes of the region in both models.
    """

    name: str
    other: str
    verdict: Sameness
    region: Region | None = None
    parts: tuple[Part, Part] | None = None


def prove(pair: Pair) -> list[Proven]:
    """Whether each output is the same for all sizes for which both models work."""
    if decide(pair.condition).answer is Answer.NO:
        why = "no sizes are known for which both models work"
        region = Region((), (), 0, 0, (), why)
        return [Proven(*names, Sameness.UNDECIDED, region) for names in pair.outputs]
    try:
        with allowance(FLOW_STEPS):
            return _verdicts(pair)
    except (TooLarge, RecursionError, MemoryError):
        region = Region((), (), 0, 0, (), "the models are too large to compare")
        return [Proven(*names, Sameness.UNDECIDED, region) for names in pair.outputs]


def _verdicts(pair: Pair) -> list[Proven]:
    with _deep():
        exact = _Comparison(pair, exact=True)
        same = exact.outputs()
        if all(same.values()):
            return [Proven(*names, Sameness.EQUAL) for names in pair.outputs]
        rounding = _Comparison(pair, exact=False)
        near = rounding.outputs()
        proven = []
        for names in pair.outputs:
            if same[names]:
                proven.append(Proven(*names, Sameness.EQUAL))
            elif near[names]:
                proven.append(Proven(*names, Sameness.ROUNDED))
            else:
                sides = (pair.ours, rounding.ours), (pair.theirs, rounding.theirs)
                region = region_of(*names, *sides, rounding.matching)
                proven.append(Proven(*names, Sameness.UNDECIDED, *region))
        return proven


@contextmanager
def _deep() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _DEEPEST))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


class _Comparison:
    """Both models as terms of one builder."""

    def __init__(self, pair: Pair, *, exact: bool) -> None:
        self.pair = pair
        builder = Builder(pair.condition, exact=exact)
        inputs = {
            value.name: builder.terms.get(
                INPUT, (), shape_of(value), (value.name,), dtype=value.dtype
            )
            for value in pair.ours.inputs
        }
        theirs = {other: inputs[name] for name, other in pair.names.items()}
        own = frozenset(pair.symbols)
        self.matching = matching = Matching(exact)
        self.ours, self.theirs = (
            Reader(builder, graph, its, own, needs, matching, _once(graph, failing))
            for graph, its, needs, failing in zip(
                (pair.ours, pair.theirs), (inputs, theirs), pair.needs, pair.failing, strict=True
            )
        )
        self.results = self.ours.read(), self.theirs.read()

    def outputs(self) -> dict[tuple[str, str], bool]:
        """Whether each output is the same."""
        ours, theirs = self.results
        same = {}
        for name, other in self.pair.outputs:
            its = theirs[other]
            if len(self.pair.formats) > 1 and ours[name].dtype == "bool":
                its = _truth(self.ours.builder, its)
            same[name, other] = self._same_type(name, other) and self.matching.same(ours[name], its)
        return same

    def _same_type(self, name: str, other: str) -> bool:
        """Whether an output has one element type in files of one format, as far as is known."""
        graphs = self.pair.ours, self.pair.theirs
        one, its = (
            next((v.dtype for v in graph.outputs if v.name == wanted), None)
            for graph, wanted in zip(graphs, (name, other), strict=True)
        )
        return len(self.pair.formats) > 1 or None in (one, its) or one == its


def _truth(builder: Builder, term: Term) -> Term:
    """The truth values that whole numbers stand for: some formats have no others."""
    base = term.base
    if base.op != "Cast" or base.args[0].dtype != "bool":
        return term
    return builder.view(base.args[0], term.shape, places_of(term))


def _once(graph: Graph, paths: frozenset[str]) -> frozenset[str]:
    """Those of some paths that one node alone has."""
    if not paths:
        return paths
    counts = Counter(node.path for node in graph.nodes)
    return frozenset(path for path in paths if counts[path] == 1)


__all__ = ["Proven", "prove"]
