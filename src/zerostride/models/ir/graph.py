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
from .origin import Origin

Array = npt.NDArray[Any]
#: A size as a file gives it: a number, a symbol's name, or None if unknown.
FileSize = int | str | Dim | None
FileShape = tuple[FileSize, ...] | None
#: A node's place in its file: the position in the main graph. A node of a body adds the body's
#: name and the position in it, for each level.
Place = tuple[int | str, ...]


#: The `content` and the `reals` of a value: one of them, or none.
FewNumbers = tuple[tuple[int, ...] | None, tuple[float, ...] | None]


@dataclass(frozen=True, slots=True)
class Quantisation:
    """The real numbers that whole numbers of a tensor stand for: scale * (number - zero point).

    Attributes:
        scales: one for the tensor, or one for each index of `axis`.
        zero_points: as many.
        axis: the axis of several scales.
    """

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int = 0


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor of the model.

    Attributes:
        name: its name in the file.
        shape: its sizes; None if the rank is unknown.
        constant: its data does not depend on the model's inputs.
        content: the numbers of a small integer tensor (a shape, axes), if known: a constant of the
            file, or expressions of sizes that flow through the model.
        missing: the file that should hold its data and does not exist.
        declared: its sizes as the file gives them, before inference.
        reals: the numbers of a small constant of floats (scales), if the file has them.
        dtype: NumPy's name of its element type ("float32"); None if the file does not give it.
        source: reads the data of a constant of the file; see :meth:`data`.
        quantised: the real numbers that its whole numbers stand for, if they do.
        aliases: other names of the tensor in the file, such as those before a conversion.
        stored: its element type in the file, where reading converts it; "" where it does not.
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
    quantised: Quantisation | None = None
    aliases: tuple[str, ...] = field(default=(), compare=False)
    stored: str = field(default="", compare=False)

    def data(self) -> Array:
        """The numbers of a constant, read from the file by this call.

        Raises:
            ModelError: the value is not a constant of the file, or its data is missing or
                malformed.
        """
        if self.missing is not None:
            raise ModelError(f"the data of {self.name!r} is missing: {self.missing!r}")
        if self.source is not None:
            return self.source()
        if self.content is not None and all(isinstance(number, int) for number in self.content):
            try:
                with np.errstate(all="ignore"):
                    numbers = np.array(self.content, self.dtype or np.int64)
            except (OverflowError, TypeError) as error:
                raise ModelError(f"the numbers of {self.name!r}: {error}") from None
            return numbers.reshape([int(size) for size in self.shape or () if size is not None])
        raise ModelError(f"{self.name!r} is no constant of the file")

    def with_numbers(self, numbers: Array) -> Value:
        """The constant with its few numbers: `content` of whole ones, `reals` of floats."""
        content, reals = few_numbers(numbers)
        if content is None:
            return replace(self, reals=reals)
        return replace(self, content=content)

    @property
    def computed_type(self) -> str | None:
        """The element type that an op computes with: quantised numbers stand for reals."""
        return self.dtype if self.quantised is None else "float32"

    @property
    def types(self) -> tuple[str | None, str | None]:
        """The stored element type, and the type that an op computes with."""
        return self.dtype, self.computed_type

    @property
    def known(self) -> bool:
        """Whether every size is a number."""
        return self.shape is not None and all(isinstance(size, int) for size in self.shape)


def few_numbers(numbers: Array) -> FewNumbers:
    """The few numbers of a constant: `content` of whole ones, `reals` of floats."""
    flat = numbers.ravel().tolist()
    if numbers.dtype.kind == "f":
        return None, tuple(map(float, flat))
    return tuple(map(int, flat)), None


#: The domain of nodes that contradict their op's document. It has no ops.
MALFORMED = "zerostride.malformed"


@dataclass(frozen=True, slots=True)
class Node:
    """An operation of the model.

    Attributes:
        name: its name, or one built from op and position.
        op: the op type as the file names it.
        domain: the op set that `op` is a name of. "" is ONNX, in a file of any format; the own ops
            of another format have the name of its engine ("ncnn"), or of the format if it has no
            engine. Other names: custom ops, and :data:`MALFORMED`.
        version: version of the domain's op set.
        inputs: the operands; None for an optional operand that is left out.
        outputs: the results.
        attributes: attributes as Python values (numbers, strings, tuples).
        scope: names of the nodes whose bodies contain this node, outermost first.
        bodies: the graphs that it runs (branches of an If, the body of a Loop).
        place: its place in the file; None for a node that the reader added.
        origin: the line of source that it was exported from, if the file names it.
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
    origin: Origin | None = None

    @property
    def onnx_op(self) -> str:
        """The op as a name of ONNX's or ONNX Runtime's; "" for an op of another domain."""
        return self.op if self.domain in ("", "com.microsoft") else ""

    @property
    def path(self) -> str:
        """The name after the names of the bodies that contain it: 'if_1/then_branch/add'."""
        return "/".join((*self.scope, self.name))


@dataclass(frozen=True, slots=True)
class Body:
    """A graph that a node runs.

    Attributes:
        name: the attribute that holds it.
        inputs: the values that the node passes in, without initialisers.
        outputs: the values that it returns; None for a tensor that the file names but lacks.
        nodes: its own nodes in order, without the nodes of deeper bodies.
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
        nodes: all nodes in order; a body's nodes follow the node that has the body.
        notes: facts about the file for the user (missing data, inference that failed).
        outputs: the main graph's outputs that exist.
        operators: the op sets' versions by domain.
        sized: a caller gave sizes of inputs, so the file's other sizes must be checked.
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

    @property
    def settled(self) -> bool:
        """Whether the sizes of every tensor are numbers, or a constant's own."""
        return all(v.known or (v.constant and v.shape is None) for v in self.values())

    @property
    def uses(self) -> Mapping[int, tuple[tuple[Node, int], ...]]:
        """The uses of each value by its identity: the nodes that read it and at which position.

        Outputs of bodies and of the graph do not count as uses.
        """
        users_of: dict[int, list[tuple[Node, int]]] = {}
        for node in self.nodes:
            for position, value in enumerate(node.inputs):
                if value is not None:
                    users_of.setdefault(id(value), []).append((node, position))
        return {key: tuple(users) for key, users in users_of.items()}

    def values(self) -> Iterator[Value]:
        """Yield every tensor once."""
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
        """The graph with changed values; `change` gets each value once, with a running number."""
        changed: dict[int, Value] = {}

        def value(old: Value) -> Value:
            if id(old) not in changed:
                changed[id(old)] = change(old, len(changed))
            return changed[id(old)]

        def optional(old: Value | None) -> Value | None:
            return None if old is None else value(old)

        def node(old: Node) -> Node:
            # Not `replace`, which takes a third of the time on a large model.
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
                old.origin,
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
    """The graph without shapes of more than MAX_RANK axes, and a note that names them.

    No array has so many axes. A file of some megabytes may hold a shape of millions of axes, which
    every node would carry and every message would print.
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
    """The note about tensors whose shapes are not read; empty without such tensors.

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
