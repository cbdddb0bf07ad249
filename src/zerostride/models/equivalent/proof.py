"""The proof: both models as terms, outputs compared, and where they part."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ...sizes import Answer
from ...sizes.budget import FLOW_STEPS, allowance
from ...sizes.solve import decide
from ..equivalence import Region, Sameness
from ..ir.graph import Graph, Node
from .builder import Builder, TooLarge
from .matching import Matching
from .pair import Pair
from .reading import Reader, shape_of
from .terms import (
    CONCAT,
    CONSTANT,
    DOT,
    INPUT,
    PRODUCT,
    REDUCE,
    SIZES,
    SUM,
    VIEW,
    Term,
)

#: Functions that call each other, at most: views are pushed through as many terms.
_DEEPEST = 5_000
#: Nodes that a region names.
_MOST_NAMED = 12


@dataclass(frozen=True, slots=True)
class Proven:
    """An output's verdict without any run.

    Attributes:
        name, other: the names of the output.
        verdict: equal, equal but for rounding, or undecided.
        region: of an undecided one.
    """

    name: str
    other: str
    verdict: Sameness
    region: Region | None = None


def prove(pair: Pair) -> list[Proven]:
    """Whether each output is the same for all sizes for which both models work."""
    if decide(pair.condition).answer is Answer.NO:
        why = "no sizes are known for which both models work"
        region = Region((), (), 0, 0, (), why)
        return [Proven(*names, Sameness.UNDECIDED, region) for names in pair.outputs]
    try:
        with allowance(FLOW_STEPS):
            return _proven(pair)
    except (TooLarge, RecursionError, MemoryError):
        region = Region((), (), 0, 0, (), "the models are too large to compare")
        return [Proven(*names, Sameness.UNDECIDED, region) for names in pair.outputs]


def _proven(pair: Pair) -> list[Proven]:
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
                region = rounding.region(*names)
                proven.append(Proven(*names, Sameness.UNDECIDED, region))
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
                INPUT, (), shape_of(value) or (), (value.name,), dtype=value.dtype
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
            same[name, other] = self.matching.same(ours[name], theirs[other])
        return same

    # Regions.

    def region(self, name: str, other: str) -> Region:
        """The nodes of both models from the last tensors that both have to an output."""
        ours = _Side(self.pair.ours, self.ours)
        theirs = _Side(self.pair.theirs, self.theirs)
        first, count, begins = ours.above(name, theirs, self.matching)
        others, other_count, _ = theirs.above(other, ours, self.matching)
        last = self.matching.apart[0] if self.matching.apart else None
        words = "nodes that are not compared" if last is None else _apart(*last)
        return Region(_few(first), _few(others), count, other_count, _few(begins), words)


def _once(graph: Graph, paths: frozenset[str]) -> frozenset[str]:
    """Those of some paths that one node alone has."""
    if not paths:
        return paths
    counts = Counter(node.path for node in graph.nodes)
    return frozenset(path for path in paths if counts[path] == 1)


#: What terms of no op are called.
_WORDS = {
    SUM: "a sum",
    PRODUCT: "a product",
    DOT: "a product of matrices",
    REDUCE: "a reduction",
    VIEW: "moved elements",
    CONCAT: "tensors joined",
    CONSTANT: "a constant",
    INPUT: "an input",
    SIZES: "sizes",
}


def _apart(ours: Term, theirs: Term) -> str:
    one, other = (_WORDS.get(term.op, term.op) for term in (ours, theirs))
    if ours.op != theirs.op:
        return f"{one} in the first, {other} in the second: not shown to be the same"
    if ours.shape != theirs.shape:
        shapes = [f"({', '.join(map(str, term.shape))})" for term in (ours, theirs)]
        return f"{one} of shape {shapes[0]} in the first, of shape {shapes[1]} in the second"
    return f"{one}, not shown to be the same in both"


class _Side:
    """The tensors of one model with the nodes that make them."""

    def __init__(self, graph: Graph, reader: Reader) -> None:
        self.reader = reader
        self.makers: dict[str, Node] = {}
        self.terms: dict[str, Term] = {}
        for node in graph.nodes:
            if node.scope:
                continue
            for value in node.outputs:
                self.makers[value.name] = node
                self.terms[value.name] = reader.term(value)
        self.numbers = {term.number for term in self.terms.values()}

    def has(self, term: Term) -> bool:
        """Whether it has a tensor of this term."""
        return term.number in self.numbers or term.constant

    def above(
        self, name: str, other: _Side, matching: Matching
    ) -> tuple[list[str], int, list[str]]:
        """The part above an output, down from tensors that the other side has.

        Returns:
            Its first nodes, how many nodes it has, and the tensors that its first nodes read.
        """
        seen, waiting = {name}, [name]
        nodes: dict[str, list[str]] = {}
        begins: set[str] = set()
        while waiting:
            tensor = waiting.pop()
            node = self.makers.get(tensor)
            if node is None:
                begins.add(tensor)
                continue
            operands = [v.name for v in node.inputs if v is not None and not v.constant]
            nodes.setdefault(node.path, operands)
            for operand in operands:
                if operand in seen:
                    continue
                seen.add(operand)
                term = self.terms.get(operand)
                if term is None or other.has(term) or _twin(operand, term, other, matching):
                    begins.add(operand)
                else:
                    waiting.append(operand)
        order = {node.path: k for k, node in enumerate(self.makers.values())}
        first = [path for path, operands in nodes.items() if begins.issuperset(operands)]
        first.sort(key=lambda path: order[path])
        read = [operand for path in first for operand in nodes[path]]
        return first, len(nodes), list(dict.fromkeys(read))


def _twin(name: str, term: Term, other: _Side, matching: Matching) -> bool:
    """Whether the other side's tensor of the same name is the same but for rounding."""
    theirs = other.terms.get(name)
    return theirs is not None and (matching.same(term, theirs) or matching.same(theirs, term))


def _few(names: Sequence[str]) -> tuple[str, ...]:
    more = len(names) - _MOST_NAMED
    return (*names[:_MOST_NAMED], f"and {more} more") if more > 0 else tuple(names)


__all__ = ["Proven", "prove"]
