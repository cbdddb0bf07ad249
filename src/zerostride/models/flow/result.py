"""The result of a walk through a model: every tensor's sizes, needs, failures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from ...sizes.condition import Condition, all_of
from ...sizes.dim import Number, Symbol, dim
from ..ir.graph import Graph, Value
from ..needs import Failure, Need
from ..onnx_ops.sizes.facts import UNKNOWN, Fact, Real, Shape


class Counts(NamedTuple):
    """Counts of known ranks and sizes in a model.

    Attributes:
        tensors: all tensors that some node reads or makes.
        ranks: tensors of known rank.
        axes: axes of these tensors.
        sizes: axes whose size is a number, or an expression of sizes that have a name.
    """

    tensors: int
    ranks: int
    axes: int
    sizes: int


@dataclass(frozen=True)
class Flow:
    """A model's sizes.

    Attributes:
        graph: the graph; tensors are looked up by identity, since bodies may shadow names.
        conditions: the model's needs, in order; none is implied by earlier ones.
        failures: nodes that fail for all sizes, or that contradict the file.
        notes: what could not be followed, and parts of the file that were ignored.
        names: the sizes for which names inside the model stand.
        symbols: the sizes with names that the model's inputs have, in order.
        facts: of tensors, by identity.
        branches: conditions on sizes that decide which branch of an If runs, where nothing known
            decides them.
    """

    graph: Graph
    conditions: tuple[Need, ...]
    failures: tuple[Failure, ...]
    notes: tuple[str, ...]
    names: Mapping[str, Number]
    symbols: tuple[Symbol, ...]
    facts: Mapping[int, Fact]
    branches: tuple[Condition, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether no node fails for all sizes."""
        return not self.failures

    @property
    def condition(self) -> Condition:
        """All certain needs as one condition."""
        return all_of(need.condition for need in self.conditions if need.certain)

    def shape_of(self, value: Value) -> Shape:
        """The sizes of a tensor: numbers and expressions; None if the rank is unknown."""
        return self.facts.get(id(value), UNKNOWN).shape

    def content_of(self, value: Value) -> tuple[Number | None, ...] | None:
        """The whole numbers of a small tensor, None for each that is unknown."""
        content = self.facts.get(id(value), UNKNOWN).content
        if content is None or any(isinstance(item, Real) for item in content):
            return None
        return tuple(item for item in content if not isinstance(item, Real))

    def counts(self) -> Counts:
        """Counts over the model and its bodies."""
        shapes = [self.shape_of(value) for value in self.graph.values() if value.name]
        ranked = [shape for shape in shapes if shape is not None]
        sizes = [size for shape in ranked for size in shape]
        named = sum(all(symbol.named for symbol in dim(size).symbols) for size in sizes)
        return Counts(len(shapes), len(ranked), len(sizes), named)


def known_part(value: Value, fact: Fact) -> Value:
    """The value with the numbers of a fact: its rank, sizes that are numbers, whole content."""
    if value.constant and value.shape is not None:
        return value
    shape = value.shape
    if shape is None and fact.shape is not None:
        shape = tuple(size if isinstance(size, int) else None for size in fact.shape)
    content = value.content
    if content is None and fact.content is not None:
        numbers = tuple(item for item in fact.content if isinstance(item, int))
        content = numbers if len(numbers) == len(fact.content) else None
    return replace(value, shape=shape, content=content)
