"""A graph of an ONNX file with its names, inside its outer graph."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...ir.graph import Place
from ...onnx_ops.validation import text

if TYPE_CHECKING:
    import onnx


@dataclass(eq=False)
class Scope:
    """A graph of the file with its definitions, inside its outer graph."""

    graph: onnx.GraphProto
    outer: Scope | None
    place: Place
    initializers: dict[str, onnx.TensorProto] = field(default_factory=dict)
    makers: dict[str, int] = field(default_factory=dict)
    inputs: set[str] = field(default_factory=set)
    #: Number of reads of each tensor of this graph: here, in bodies, and as an output.
    reads: Counter[str] = field(default_factory=Counter)
    #: New nodes by the position before which they go; −1: at the front.
    before: dict[int, list[onnx.NodeProto]] = field(default_factory=dict)
    #: New nodes by the position behind which they go.
    behind: dict[int, list[onnx.NodeProto]] = field(default_factory=dict)
    #: Added moves: op, operand and numbers to the new tensor's name.
    moved: dict[tuple[str, str, tuple[int, ...]], str] = field(default_factory=dict)
    #: Added constants: numbers to name.
    lists: dict[tuple[int, ...], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.initializers = {text(tensor.name): tensor for tensor in self.graph.initializer}
        self.inputs = {text(entry.name) for entry in self.graph.input}
        for position, node in enumerate(self.graph.node):
            self.makers.update((text(name), position) for name in node.output if name)

    def defines(self, name: str) -> bool:
        """Whether this graph defines a name."""
        return name in self.initializers or name in self.makers or name in self.inputs

    def owner(self, name: str) -> Scope | None:
        """The graph that defines a name, from this one outwards."""
        scope: Scope | None = self
        while scope is not None and not scope.defines(name):
            scope = scope.outer
        return scope


def spliced(scope: Scope) -> None:
    """Inserts the new nodes at their positions."""
    if not any((*scope.before.values(), *scope.behind.values())):
        return
    nodes = list(scope.graph.node)
    order = list(scope.before.get(-1, ()))
    for position, node in enumerate(nodes):
        order += (*scope.before.get(position, ()), node, *scope.behind.get(position, ()))
    copies = [type(node).FromString(node.SerializeToString()) for node in order]
    del scope.graph.node[:]
    scope.graph.node.extend(copies)
