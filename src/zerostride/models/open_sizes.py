"""Advice for findings that are unknown because sizes are: the options to paste.

A user can give the sizes of the inputs. The model computes other sizes from those. A wholly unknown
shape begins at some node, such as an If whose branches give other ranks; the sizes that decide it
are among the numbers that this node reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ..sizes.dim import Dim, of_atom
from .findings import Finding
from .flow.advice import SizeOptions
from .ir.graph import Graph, Node, Value
from .reasons import Cause


def with_advice(graph: Graph, findings: Sequence[Finding]) -> list[Finding]:
    """The findings; those that lack sizes say which to give."""
    lacking = [finding.reason == Cause.UNKNOWN_SHAPE for finding in findings]
    if not any(lacking):
        return [*findings]
    adviser = _Adviser(graph)
    return [
        replace(finding, message=adviser.words(finding)) if lacks else finding
        for finding, lacks in zip(findings, lacking, strict=True)
    ]


#: The word for the bodies of an op in messages: an If has branches, any other op has passes.
_PARTS = {"If": "branches"}


class _Adviser:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._makers = {id(value): node for node in graph.nodes for value in node.outputs}
        for node in graph.nodes:
            for body in node.bodies:  # a loop hands its body what it carries
                self._makers.update((id(value), node) for value in body.inputs)
        self._nodes = {node.path: node for node in graph.nodes}
        self._values = {value.name: value for value in graph.values()}
        self._options = SizeOptions(graph)
        self._every = self._options.all()
        self._given = {symbol.name: of_atom(symbol) for symbol in self._options.symbols}

    def words(self, finding: Finding) -> str:
        """The finding's message, the node where a shape becomes unknown, and options to give."""
        message = finding.message
        unknown = next((name for name, shape in finding.operands if shape is None), None)
        if unknown is None:
            names = {name for _, shape in finding.operands for name in _names(shape or ())}
        else:
            origin = self._origin(self._operand(finding.node, unknown))
            names = set() if origin is None else {*_names(self._read(origin))}
            if origin is not None:
                message += f", from {origin.op} {origin.path!r} on"
                if origin.bodies:
                    message += f", whose {_PARTS.get(origin.op, 'passes')} give other shapes"
        how = self._advice(names)
        return f"{message}; give {how}" if how else message

    def _operand(self, path: str, name: str) -> Value | None:
        """The tensor of this name that a node reads. A body has its own names."""
        node = self._nodes.get(path)
        values = () if node is None else node.inputs
        return next((v for v in values if v is not None and v.name == name), self._values.get(name))

    def _advice(self, names: set[str]) -> str:
        """Options for these sizes; for all inputs if the model computes some of them."""
        if not names or not names <= self._given.keys():
            return self._every
        return self._options.of(self._given[name] for name in names)

    def _origin(self, value: Value | None) -> Node | None:
        """The first node with a result of unknown shape, of all that a value depends on."""
        waiting = [(maker, False) for maker in self._before([value])]
        seen: set[int] = set()
        while waiting:
            node, done = waiting.pop()
            if done:
                if any(result.shape is None for result in node.outputs):
                    return node
            elif id(node) not in seen:
                seen.add(id(node))
                waiting.append((node, True))
                # Unknown shapes do not begin in a body whose inputs already have them.
                bodies = [b for b in node.bodies if all(v.shape is not None for v in b.inputs)]
                handed = [value for body in bodies for value in body.outputs]
                waiting += [(maker, False) for maker in self._before([*node.inputs, *handed])]
        return None

    def _read(self, node: Node) -> Iterator[object]:
        """The numbers, as expressions of sizes, that decide a node's result."""
        waiting, seen = [*node.inputs], set[int]()
        while waiting:
            value = waiting.pop()
            if value is None or id(value) in seen or (value.dtype or "").startswith("float"):
                continue
            seen.add(id(value))
            if value.content is not None:
                yield from value.content
            else:
                waiting += [part for maker in self._before([value]) for part in maker.inputs]

    def _before(self, values: Iterable[Value | None]) -> list[Node]:
        return [
            self._makers[id(value)]
            for value in values
            if value is not None and id(value) in self._makers
        ]


def _names(sizes: Iterable[object]) -> Iterator[str]:
    """The names of the symbols in sizes."""
    for size in sizes:
        if isinstance(size, Dim):
            yield from (symbol.name for symbol in size.symbols)
