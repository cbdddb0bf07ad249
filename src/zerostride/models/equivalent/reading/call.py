"""One node as terms: its operands, its attributes with their defaults, its results' shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ....sizes.dim import Dim, Number, Symbol, plain
from ...ir.graph import Node
from ..terms.builder import Builder
from ..terms.places import Places, stretched
from ..terms.term import Shape, Term
from .opsets import document


class Opaque(Exception):  # noqa: N818 - an answer, not a fault
    """A row does not take a node apart."""


@dataclass(frozen=True, slots=True)
class Call:
    """A node with its operands as terms.

    Attributes:
        builder: builds its results.
        node: the node.
        args: its operands; None for one that is left out.
        shapes: of its results; None where the rank is not known.
        sizes: the names of sizes that depend on data, by those in the file.
    """

    builder: Builder
    node: Node
    args: tuple[Term | None, ...]
    shapes: tuple[Shape | None, ...]
    sizes: Mapping[Symbol, Number]

    def has(self, position: int) -> bool:
        """Whether an operand is there."""
        return position < len(self.args) and self.args[position] is not None

    def arg(self, position: int) -> Term:
        """An operand."""
        term = self.args[position] if position < len(self.args) else None
        if term is None:
            raise Opaque
        return term

    @property
    def shape(self) -> Shape:
        """The shape of the first result."""
        shape = self.shapes[0] if self.shapes else None
        if shape is None:
            raise Opaque
        return shape

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute, or its default."""
        node = self.node
        if name in node.attributes:
            return node.attributes[name]
        return document(node.op, node.domain, node.version)[0].get(name, default)

    def content(self, position: int, name: str = "") -> tuple[Number, ...] | None:
        """Whole numbers that are an attribute in some op sets and an operand in others."""
        if name and name in self.node.attributes:
            value = self.node.attributes[name]
            return tuple(value) if isinstance(value, Sequence) else (value,)
        if not self.has(position):
            return None
        value = self.node.inputs[position]
        if value is None or value.content is None:
            raise Opaque
        return tuple(
            plain(item.substitute(self.sizes)) if isinstance(item, Dim) else item
            for item in value.content
        )

    def whole(self, position: int, name: str = "") -> tuple[int, ...] | None:
        """The same where every one is a number."""
        listed = self.content(position, name)
        if listed is None:
            return None
        if not all(isinstance(item, int) for item in listed):
            raise Opaque
        return tuple(int(item) for item in listed if isinstance(item, int))

    def view(
        self, term: Term, places: Sequence[Dim], shape: Sequence[Number] | None = None
    ) -> Term:
        """A view of a term with the shape of the first result."""
        if len(places) != len(term.shape):
            raise Opaque  # an operand of a rank that the op does not take
        return self.builder.view(term, self.shape if shape is None else shape, places)

    def right(self, term: Term, shape: Sequence[Number]) -> Term:
        """A term stretched to a shape, its axes at the right."""
        return self.builder.view(term, shape, right_places(term.shape, shape, self.builder))


#: Gives the results of one node, as terms; raises Opaque for a node that it does not take apart.
Row = Callable[[Call], Sequence[Term]]


def right_places(own: Sequence[Number], shape: Sequence[Number], builder: Builder) -> Places:
    """The places of a tensor whose axes lie at the right of a shape."""
    before = len(shape) - len(own)
    if before < 0:
        raise Opaque
    axes = [before + k for k in range(len(own))]
    return stretched(own, axes, shape, builder.space(shape))


def axis_of(axis: int, rank: int) -> int:
    """An axis counted from 0."""
    if not -rank <= axis < rank:
        raise Opaque
    return axis % rank


__all__ = ["Call", "Opaque", "Row", "axis_of"]
