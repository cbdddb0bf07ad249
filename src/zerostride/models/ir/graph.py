"""A model as values and nodes, whatever file it came from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import ModelError, printable
from ...sizes import MAX_RANK
from ...sizes.dim import Dim, Number

Array = npt.NDArray[Any]
#: A size as a file gives it: a number, a symbol's name, or None where nothing is known.
FileSize = int | str | Dim | None
FileShape = tuple[FileSize, ...] | None
#: Where a node stands in its file: its position in the main graph, then, for a node of a body, the
#: body's name and the position in it, and so on.
Place = tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor of the model.

    Attributes:
        name: its name in the file.
        shape: its sizes; None where not even the rank is known.
        constant: its data does not depend on the model's inputs.
        content: the numbers of a small integer tensor (a shape, axes), where they are known: of a
            constant of the file, or expressions of sizes that flow through the model.
        missing: the file that should hold its data and does not exist.
        declared: its sizes as the file itself gives them, whatever was inferred.
        reals: the numbers of a small constant that are no integers (scales), where the file has
            them.
        dtype: NumPy's name of its element type ("float32"); None where the file does not say.
        source: reads the data of a constant of the file; see :meth:`data`.
    """

    name: str
    shape: FileShape
    constant: bool = False
    content: tuple[Number, ...] | None = None
    missing: str | None = None
    declared: FileShape = None
    reals: tuple[float, ...] | None = None
    dtype: str | None = None
    source: Callable[[], Array] | None = field(default=None, compare=False, repr=False)

    def data(self) -> Array:
        """The numbers of a constant of the file, read when asked for.

        Raises:
            ModelError: it is no constant of the file, or its data are missing or malformed.
        """
        if self.missing is not None:
            raise ModelError(f"the data of {self.name!r} is missing: {self.missing!r}")
        if self.source is not None:
            return self.source()
        if self.content is not None and all(isinstance(number, int) for number in self.content):
            numbers = np.array(self.content, self.dtype or np.int64)
            return numbers.reshape([int(size) for size in self.shape or () if size is not None])
        raise ModelError(f"{self.name!r} is no constant of the file")

    @property
    def known(self) -> bool:
        """Whether every size is a number."""
        return self.shape is not None and all(isinstance(size, int) for size in self.shape)


@dataclass(frozen=True, slots=True)
class Node:
    """An operation of the model.

    Attributes:
        name: its name, or one made of op and position.
        op: the op type in the file's own words.
        domain: its domain; "" is the format's own.
        version: version of the domain's op set.
        inputs: the operands, None where an optional one is left out.
        outputs: the results.
        attributes: attributes as Python values (numbers, strings, tuples).
        scope: names of the nodes whose bodies this one is in, outermost first.
        bodies: the graphs that it runs (branches of an If, the body of a Loop).
        place: where it stands in the file; None for a node that the reader made itself.
    """

    name: str
    op: str
    domain: str
    version: int
    inputs: tuple[Value | None, ...]
    outputs: tuple[Value, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    scope: tuple[str, ...] = ()
    bodies: tuple[Body, ...] = ()
    place: Place | None = None

    @property
    def path(self) -> str:
        """The name with the bodies it is in: 'if_1/then_branch/add'."""
        return "/".join((*self.scope, self.name))


@dataclass(frozen=True, slots=True)
class Body:
    """A graph that a node runs.

    Attributes:
        name: the attribute that holds it.
        inputs: what the node hands to it, without initialisers.
        outputs: what it hands back, None where the file names a tensor that is not there.
        nodes: its own nodes in order; those of deeper bodies are theirs.
    """

    name: str
    inputs: tuple[Value, ...]
    outputs: tuple[Value | None, ...]
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Graph:
    """A model file's computation.

    Attributes:
        path: the file.
        format: the format's name.
        version: version of the main op set.
        inputs: the main graph's inputs, without initialisers.
        nodes: all nodes in order, those of a body after the node that has it.
        notes: what a reader should know of the file (missing data, inference that failed).
        outputs: the main graph's outputs, as far as they are there.
        operators: the op sets' versions by domain.
        sized: a caller gave sizes of the inputs: what the file says of others is to be checked.
    """

    path: str
    format: str
    version: int
    inputs: tuple[Value, ...]
    nodes: tuple[Node, ...]
    notes: tuple[str, ...] = ()
    outputs: tuple[Value, ...] = ()
    operators: Mapping[str, int] = field(default_factory=dict)
    sized: bool = False

    def uses(self) -> Mapping[int, tuple[tuple[Node, int], ...]]:
        """The use lists: by identity of a value, the nodes that read it and at which position.

        What the bodies of a node hand back, and the graph's own outputs, are not in it.
        """
        found: dict[int, list[tuple[Node, int]]] = {}
        for node in self.nodes:
            for position, value in enumerate(node.inputs):
                if value is not None:
                    found.setdefault(id(value), []).append((node, position))
        return {key: tuple(users) for key, users in found.items()}

    def values(self) -> Iterator[Value]:
        """Every tensor once."""
        seen: set[int] = set()
        every = [*self.inputs]
        for node in self.nodes:
            every += [value for value in node.inputs if value is not None]
            every += node.outputs
        for value in every:
            if id(value) not in seen:
                seen.add(id(value))
                yield value

    def with_values(self, change: Callable[[Value, int], Value]) -> Graph:
        """The graph with other values; `change` is asked once of each, with a running number."""
        made: dict[int, Value] = {}

        def value(old: Value) -> Value:
            if id(old) not in made:
                made[id(old)] = change(old, len(made))
            return made[id(old)]

        def optional(old: Value | None) -> Value | None:
            return None if old is None else value(old)

        def node(old: Node) -> Node:
            # Written out: `replace` is a third of the time that a large model takes here.
            return Node(
                old.name,
                old.op,
                old.domain,
                old.version,
                tuple(map(optional, old.inputs)),
                tuple(map(value, old.outputs)),
                old.attributes,
                old.scope,
                tuple(map(body, old.bodies)),
                old.place,
            )

        def body(old: Body) -> Body:
            return replace(
                old,
                inputs=tuple(map(value, old.inputs)),
                outputs=tuple(map(optional, old.outputs)),
                nodes=tuple(map(node, old.nodes)),
            )

        return replace(
            self,
            nodes=tuple(map(node, self.nodes)),
            inputs=tuple(map(value, self.inputs)),
            outputs=tuple(map(value, self.outputs)),
        )


def bounded(graph: Graph) -> Graph:
    """The graph without the shapes of more than MAX_RANK axes, and a note of them.

    No array has so many. A file of some megabytes may hold a shape of millions, which would be
    followed through every node and written into every message.
    """
    large = {id(value): value for value in graph.values() if _rank(value) > MAX_RANK}
    if not large:
        return graph

    def change(value: Value, _: int) -> Value:
        if id(value) not in large:
            return value
        return Value(value.name, None, value.constant, missing=value.missing, dtype=value.dtype)

    notes = long_shapes({value.name: _rank(value) for value in large.values()})
    return replace(graph.with_values(change), notes=(*graph.notes, *notes))


def _rank(value: Value) -> int:
    return max(len(value.shape or ()), len(value.declared or ()))


def long_shapes(ranks: Mapping[str, int]) -> list[str]:
    """The note of tensors whose shapes are not read, by name with their ranks; or nothing.

    >>> long_shapes({"x": 100, "y": 200})
    ['the shape of x (100 axes) and 1 more is taken as unknown: more than 64 axes']
    """
    if not ranks:
        return []
    name, rank = next(iter(ranks.items()))
    more = f" and {len(ranks) - 1} more" if len(ranks) > 1 else ""
    return [
        f"the shape of {printable(name)} ({rank} axes){more} is taken as unknown: more than "
        f"{MAX_RANK} axes"
    ]
