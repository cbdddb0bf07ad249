"""Counts the element-wise ops of model files, and the chains that they form.

A chain is a group of element-wise ops that one pass over memory can compute: every value between
them is read by ops of the chain alone. An op or chain counts once for each place in a file. Left
out are ops of constants, arithmetic of sizes, and ops on integers (indices, quantised weights).
Sum of two operands counts as Add. A fused activation counts as the op that it is.

A chain is written as its steps: `s1` is the result of the first one. Letters are its operands,
`n` is a constant of one number. After the colon is what an operand's first reader makes of it:
`all` has the result's sizes, `one` is one number, `1of4` has the result's second axis of four.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

from zerostride.models.flow import flow
from zerostride.models.format_table import lowered
from zerostride.models.ir.graph import Graph, Node, Value
from zerostride.models.onnx_ops.kernels.pointwise import UNARY
from zerostride.models.onnx_ops.table import OPS
from zerostride.models.options import ModelOptions
from zerostride.models.transport.shape_arithmetic import shape_arithmetic

Shape = tuple[int, ...] | None

#: Ops whose result's elements each depend on one element of each operand.
ELEMENTWISE = frozenset(
    {
        *UNARY,
        *(name for name, row in OPS.items() if row.values is not None),
        *("BatchNormalization", "Cast", "Clip", "Gelu", "IsInf", "IsNaN"),
    }
)
_COMMUTATIVE = frozenset({"Add", "And", "Equal", "Max", "Mean", "Min", "Mul", "Or", "Sum", "Xor"})
#: Operands of BatchNormalization beside the data are vectors of the second axis.
_CHANNEL = "1of"


@dataclass(slots=True)
class Count:
    """The places of an op or chain: their number, their files, their operands' shapes."""

    places: int = 0
    files: set[str] = field(default_factory=set)
    shapes: Counter[tuple[Shape, ...]] = field(default_factory=Counter)

    def add(self, file: str, shapes: tuple[Shape, ...]) -> None:
        """One place more."""
        self.places += 1
        self.files.add(file)
        self.shapes[shapes] += 1

    def most_common(self) -> tuple[tuple[Shape, ...], int]:
        """The most frequent shapes, of several the largest; and how often they occur."""
        return max(self.shapes.items(), key=lambda item: (item[1], *map(_elements, item[0])))


@dataclass(frozen=True, slots=True)
class Census:
    """The counts of all files: by op and the forms of its operands, and by chain."""

    ops: dict[str, Count] = field(default_factory=lambda: defaultdict(Count))
    chains: dict[str, Count] = field(default_factory=lambda: defaultdict(Count))

    def as_dict(self, most: int) -> dict[str, Any]:
        """The most frequent ones, for JSON."""
        return {"ops": _rows(self.ops, most), "chains": _rows(self.chains, most)}


def _rows(counts: Mapping[str, Count], most: int) -> list[dict[str, Any]]:
    rows = []
    for text, count in ranked(counts)[:most]:
        shapes, often = count.most_common()
        named = {"places": count.places, "files": len(count.files), "pattern": text}
        rows.append({**named, "shapes": shapes, "places_of_shapes": often})
    return rows


def ranked(counts: Mapping[str, Count]) -> list[tuple[str, Count]]:
    """The most frequent first; of equally frequent ones those of more files."""
    return sorted(counts.items(), key=lambda item: (-item[1].places, -len(item[1].files), item[0]))


def _elements(shape: Shape) -> int:
    elements = 1
    for size in shape or ():
        elements *= size
    return 0 if shape is None else elements


def count_file(file: Path, input_shapes: Mapping[str, tuple[int, ...]], census: Census) -> None:
    """Adds a model file.

    Raises:
        ModelError: the file cannot be read.
    """
    graph = lowered(ModelOptions(input_shapes=dict(input_shapes) or None).read(file))
    count_graph(graph, file.name, census)


def count_graph(graph: Graph, file: str, census: Census) -> None:
    """Adds a graph."""
    reader = _Reader(graph)
    for node in reader.members:
        if not _integers(node):
            operands = [value for value in node.inputs if value is not None]
            forms = [reader.form(value, node) for value in operands]
            shapes = [reader.shape(value) for value in operands]
            if _op(node) in _COMMUTATIVE:
                forms, shapes = _sorted_together(forms, shapes)
            census.ops[f"{_op(node)}({', '.join(forms)})"].add(file, tuple(shapes))
    for chain in reader.chains():
        if len(chain) > 1 and not any(map(_integers, chain)):
            text, operands = reader.text(chain)
            census.chains[text].add(file, tuple(map(reader.shape, operands)))


def _sorted_together(forms: list[str], shapes: list[Shape]) -> tuple[list[str], list[Shape]]:
    pairs = sorted(zip(forms, shapes, strict=True), key=lambda pair: pair[0])
    return [form for form, _ in pairs], [shape for _, shape in pairs]


def _op(node: Node) -> str:
    return "Add" if node.op == "Sum" and len(node.inputs) == 2 else node.op


def _integers(node: Node) -> bool:
    """Whether an operand or the result is of integers."""
    values = (*node.inputs, *node.outputs)
    return any(value is not None and "int" in (value.dtype or "") for value in values)


class _Reader:
    """A graph's element-wise nodes, and what is known of its values."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.flow = flow(graph)
        self.constants = {id(value) for value in graph.values() if value.constant}
        #: Shapes that inference leaves open and the operands give.
        self.derived: dict[int, Shape] = {}
        sizing = shape_arithmetic(graph)
        self.members: list[Node] = []
        for node in graph.nodes:
            operands = [value for value in node.inputs if value is not None]
            if operands and all(id(value) in self.constants for value in operands):
                self.constants.update(map(id, node.outputs))
            elif node.onnx_op and node.op in ELEMENTWISE and id(node) not in sizing:
                self.members.append(node)
                if self.shape(node.outputs[0]) is None:
                    self.derived[id(node.outputs[0])] = _joined(map(self.shape, operands))

    def shape(self, value: Value) -> Shape:
        """A value's sizes; None unless all are numbers."""
        shape = self.flow.shape_of(value)
        if shape is None:
            return self.derived.get(id(value))
        sizes = tuple(size for size in shape if isinstance(size, int))
        return sizes if len(sizes) == len(shape) else None

    def form(self, value: Value, node: Node) -> str:
        """The part of a node's result that a value spans: "all", some axes, or "one" number."""
        shape, result = self.shape(value), self.shape(node.outputs[0])
        if shape is None or result is None:
            return "unknown"
        if all(size == 1 for size in shape):
            return "one"
        if node.op == "BatchNormalization" and value is not node.inputs[0]:
            return f"{_CHANNEL}{len(result)}"
        aligned = (1,) * (len(result) - len(shape)) + shape
        if aligned == result:
            return "all"
        axes = ",".join(str(k) for k, size in enumerate(aligned) if size == result[k] != 1)
        return f"{axes}of{len(result)}"

    def chains(self) -> Iterator[list[Node]]:
        """The element-wise nodes in groups, each in order."""
        kept = {id(value) for value in self.graph.outputs}
        for node in self.graph.nodes:
            for body in node.bodies:
                kept.update(id(value) for value in body.outputs if value is not None)
        uses = self.graph.uses
        groups = {id(node): [node] for node in self.members}
        for node in self.members:
            result = id(node.outputs[0])
            readers = [reader for reader, _ in uses.get(result, ())]
            if result not in kept and all(id(reader) in groups for reader in readers):
                for reader in readers:
                    _join(groups, node, reader)
        places = {id(node): place for place, node in enumerate(self.members)}
        for group in {id(group): group for group in groups.values()}.values():
            yield sorted(group, key=lambda node: places[id(node)])

    def text(self, chain: Sequence[Node]) -> tuple[str, list[Value]]:
        """A chain's steps, and its operands beside numbers."""
        steps: dict[int, str] = {}
        letters: dict[int, str] = {}
        operands: list[Value] = []

        def word(value: Value, node: Node) -> str:
            if id(value) in steps:
                return steps[id(value)]
            form = self.form(value, node)
            if form == "one" and id(value) in self.constants:
                return "n"
            if id(value) in letters:
                return letters[id(value)]
            letters[id(value)] = _letter(len(letters))
            operands.append(value)
            return f"{letters[id(value)]}:{form}"

        lines = []
        for node in chain:
            values = [value for value in node.inputs if value is not None]
            if _op(node) in _COMMUTATIVE:
                values.sort(key=lambda value: self._order(value, steps))
            lines.append(f"{_op(node)}({', '.join(word(value, node) for value in values)})")
            steps[id(node.outputs[0])] = f"s{len(steps) + 1}"
        return "; ".join(lines), operands

    def _order(self, value: Value, steps: Mapping[int, str]) -> int:
        """Steps before tensors, and constants last, where order means nothing."""
        return 0 if id(value) in steps else 2 if id(value) in self.constants else 1


def _letter(number: int) -> str:
    return chr(ord("a") + number % 26) + (str(number // 26) if number >= 26 else "")


def _join(groups: dict[int, list[Node]], one: Node, other: Node) -> None:
    first, second = groups[id(one)], groups[id(other)]
    if first is not second:
        first += second
        groups.update((id(node), first) for node in second)


def _joined(shapes: Iterable[Shape]) -> Shape:
    """The shape that shapes broadcast to under NumPy's rule; None where one is unknown."""
    known = list(shapes)
    reversed_shapes = [shape[::-1] for shape in known if shape is not None]
    if len(reversed_shapes) < len(known):
        return None
    return tuple(map(max, zip_longest(*reversed_shapes, fillvalue=1)))[::-1]


def report(census: Census, most: int, write: Callable[[str], None]) -> None:
    """Prints the most frequent ops and chains."""
    for title, counts in (("ops", census.ops), ("chains", census.chains)):
        write(f"{sum(count.places for count in counts.values())} {title}")
        write("places files")
        for text, count in ranked(counts)[:most]:
            shapes, often = count.most_common()
            words = " ".join("?" if shape is None else str(shape) for shape in shapes)
            write(f"{count.places:6} {len(count.files):5}  {text}  |  {often} of {words}")
