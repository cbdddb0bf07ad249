"""Builds values, constants, nodes and lists of numbers for the readers of both formats."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ....errors import printable
from ....sizes import MAX_RANK
from ...ir.graph import FileShape, Graph, Node, Place, Value
from ...ir.origin import Origin
from ..lowering import ELEMENT_TYPES, VERSION
from ..onnx.reader import flattened
from ..wire import Malformed
from . import weights
from .schema import DOMAIN

#: Most ops of a file, which take up to some kilobytes of memory each.
MAX_OPS = 100_000
#: Depth of nested blocks.
MAX_DEPTH = 16
#: Ops whose results differ from run to run.
_UNSTEADY = re.compile(r"rand|bernoulli|dropout|gaussian|multinomial|uniform|poisson|exponential_")


class Builder:
    """The graph of one file.

    Attributes:
        file: the file.
        version: `Node.version` of its ops.
        input_shapes: shapes of inputs by name, which take the place of the file's.
        notes: the graph's notes.
        inputs, outputs: the graph's inputs and outputs.
    """

    def __init__(self, file: Path, version: int, input_shapes: Mapping[str, FileShape]) -> None:
        self.file = file
        self.version = version
        self.input_shapes = input_shapes
        self.notes: list[str] = []
        self.inputs: list[Value] = []
        self.outputs: list[Value] = []
        self._names: set[str] = set()
        self._left = MAX_OPS

    def graph(self, nodes: Sequence[Node], release: int) -> Graph:
        """The graph of the main block's nodes."""
        return Graph(
            str(self.file),
            DOMAIN,
            release,
            tuple(self.inputs),
            tuple(flattened(nodes)),
            tuple(dict.fromkeys(map(printable, self.notes))),
            tuple(dict.fromkeys(self.outputs)),
            MappingProxyType({DOMAIN: release}),
        )

    def count(self) -> None:
        """Counts an op."""
        self._left -= 1
        if self._left < 0:
            raise Malformed(f"it has more than {MAX_OPS:,} ops")

    def unique(self, name: str) -> str:
        """A name that no other tensor has: a variable that is written again gets a number."""
        again, k = name, 2
        while again in self._names:
            again, k = f"{name}@{k}", k + 1
        self._names.add(again)
        return again

    # Values.

    def input(self, name: str, shape: Sequence[int] | None, dtype: str | None) -> Value:
        """An input of the model; open sizes get names."""
        plain = re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,60}", name) is not None
        sizes: FileShape = None
        if shape is not None:
            sizes = tuple(
                size if size >= 0 else f"{name}_{axis}" if plain else None
                for axis, size in enumerate(checked(shape, name))
            )
        sizes = self.input_shapes.get(name) or sizes
        value = Value(self.unique(name), sizes, declared=sizes, dtype=dtype)
        self.inputs.append(value)
        return value

    def result(
        self, name: str, shape: Sequence[int] | None, dtype: str | None, *, constant: bool = False
    ) -> Value:
        """A tensor inside the model; Paddle infers its sizes again from the inputs."""
        declared: FileShape = None
        if shape is not None and not any(self.input_shapes.values()):
            declared = tuple(size if size >= 0 else None for size in checked(shape, name))
        return Value(self.unique(name), None, constant, declared=declared, dtype=dtype)

    def literal(
        self, name: str, shape: Sequence[int], dtype: str, numbers: tuple[float, ...] | float
    ) -> Value:
        """A constant of the program: one number for all elements, or one for each."""
        return weights.literal(
            self.unique(name), tuple(checked(shape, name)), dtype, lambda: numbers
        )

    # Nodes.

    def node(
        self,
        op: str,
        name: str,
        operands: Sequence[Value | None],
        outputs: Iterable[Value],
        attributes: Mapping[str, Any],
        *,
        path: tuple[str, ...] = (),
        place: Place | None = None,
        domain: str = DOMAIN,
        origin: Origin | None = None,
    ) -> Node:
        """An op of the file."""
        constant = bool(operands) and domain == DOMAIN and _UNSTEADY.search(op) is None
        constant = constant and all(value is None or value.constant for value in operands)
        results = tuple(replace(value, constant=constant) for value in outputs)
        return Node(
            name,
            op,
            domain,
            self.version,
            tuple(operands),
            results,
            MappingProxyType(dict(attributes)),
            path,
            (),
            place,
            origin,
        )

    def joined(
        self, name: str, values: Sequence[Value], path: tuple[str, ...]
    ) -> tuple[list[Node], Value]:
        """Tensors of numbers as one list of numbers, in ONNX's words."""
        nodes: list[Node] = []

        def word(op: str, *operands: Value, **attributes: Any) -> Value:
            constant = all(value.constant for value in operands)
            output = Value(self.unique(f"{name}~{op}{len(nodes)}"), None, constant, dtype="int64")
            more = MappingProxyType(attributes)
            nodes.append(
                Node(f"{name}~{len(nodes)}", op, "", VERSION, operands, (output,), more, path)
            )
            return output

        shape = self.literal(f"{name}~shape", (1,), "int64", (-1,))
        parts = [
            word("Reshape", word("Cast", value, to=ELEMENT_TYPES["int64"]), shape)
            for value in values
        ]
        return nodes, parts[0] if len(parts) == 1 else word("Concat", *parts, axis=0)


def checked(shape: Sequence[int], name: str) -> Sequence[int]:
    """The shape, of at most MAX_RANK axes."""
    if len(shape) > MAX_RANK:
        raise Malformed(f"the tensor {printable(name)!r} has {len(shape)} axes")
    return shape


__all__ = ["MAX_DEPTH", "Builder", "checked"]
