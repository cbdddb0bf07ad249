"""Regions: the parts of two models that are not shown to be the same."""

from __future__ import annotations

from collections.abc import Sequence

from ..equivalence import Region
from ..execute.part import Part, Parts
from ..ir.graph import Graph
from .reading.reader import Reader
from .terms.matching import Matching
from .terms.term import (
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

#: Nodes that a region names.
_MOST_NAMED = 12


def region_of(
    name: str,
    other: str,
    ours: tuple[Graph, Reader],
    theirs: tuple[Graph, Reader],
    matching: Matching,
) -> tuple[Region, tuple[Part, Part]]:
    """The nodes of both models from the last tensors that both have to an output.

    Args:
        name, other: the names of the output.
        ours, theirs: the models, and their terms.
        matching: compared them.
    """
    one, two = _ModelTerms(*ours), _ModelTerms(*theirs)
    # Of two inputs nothing is said: the nodes that read them differ.
    pairs = (pair for pair in matching.apart if pair[0].args or pair[1].args)
    last = next(pairs, None)
    if last is not None:
        ends = one.numbers.get(last[0].number), two.numbers.get(last[1].number)
        if ends[0] is not None and ends[1] is not None:  # the first that are not the same
            name, other = ends[0], ends[1]
    first = one.above(name, two, matching)
    second = two.above(other, one, matching)
    words = "nodes that are not compared" if last is None else _apart(*last)
    begins = [v.name for v in first.operands if not one.terms[v.name].constant]
    region = Region(
        _few(_named(first)),
        _few(_named(second)),
        len(first.nodes),
        len(second.nodes),
        _few(begins),
        words,
    )
    return region, (first, second)


def _named(part: Part) -> list[str]:
    """The nodes of a part that read nothing else of it."""
    own = {id(value) for node in part.nodes for value in node.outputs}
    return [
        node.path
        for node in part.nodes
        if not any(id(value) in own for value in node.inputs if value is not None)
    ]


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


class _ModelTerms:
    """The tensors of one model, with their terms and the nodes that make them."""

    def __init__(self, graph: Graph, reader: Reader) -> None:
        self.graph = graph
        self.parts = Parts(graph)
        results = [value for node in self.parts.nodes for value in node.outputs]
        every = (*graph.outputs, *graph.inputs, *results)  # an output may be a constant
        self.values = {value.name: value for value in every}
        self.terms = {name: reader.term(value) for name, value in self.values.items()}
        self.numbers = {term.number: name for name, term in self.terms.items()}
        self.inputs = {value.name for value in graph.inputs}
        # Also the constants of the file.
        self.every = {term.number for term in reader.terms.values()}

    def above(self, name: str, other: _ModelTerms, matching: Matching) -> Part:
        """The part above a tensor, down to tensors that the other side has."""
        result = self.values[name]
        known = {
            id(value)
            for one, value in self.values.items()
            if one in self.inputs or (one != name and self._shared(one, other, matching))
        }
        if self.parts.maker_of(result) is None:
            return Part(self.graph, (), (result,), result)
        return self.parts.before(result, known)

    def _shared(self, name: str, other: _ModelTerms, matching: Matching) -> bool:
        """Whether the other side has a tensor, perhaps but for rounding."""
        term = self.terms[name]
        if term.number in other.every:
            return True
        theirs = other.terms.get(name)
        return theirs is not None and (matching.same(term, theirs) or matching.same(theirs, term))


def _few(names: Sequence[str]) -> tuple[str, ...]:
    more = len(names) - _MOST_NAMED
    return (*names[:_MOST_NAMED], f"and {more} more") if more > 0 else tuple(names)


__all__ = ["region_of"]
