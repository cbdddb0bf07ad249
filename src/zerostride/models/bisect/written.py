"""Reads the other side's file: its own broadcasts, and the node that it writes wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ...core.plan import Plan
from ...errors import BroadcastError, ModelError
from ..execute.broadcasts import PLANNED
from ..execute.part import Part, Parts
from ..format_table import module_of
from ..ir.graph import Array, Graph, Node, Value
from ..ir.site import Site
from ..judging import judged
from .layouts import layouts
from .sides import Fault, Other

#: Nodes of the other file that are looked at for one fault.
_MOST_NODES = 24
#: The most numbers of an attribute that are shown.
_MOST_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Written:
    """A node of the other file that has not the result of the model's node.

    Attributes:
        node: the other file's node.
        file: the other file's name.
        held: the shape that it gives there.
        meant: the node of the model whose result belongs there.
        shape: the shape of that.
    """

    node: Node
    file: str
    held: tuple[int, ...]
    meant: Node
    shape: tuple[int, ...]

    def describe(self) -> str:
        """The two nodes, in words."""
        what = f"the shape {self.held}, and" if self.held != self.shape else "other numbers than"
        gives = f" gives {self.shape}" if self.held != self.shape else ""
        written = ", ".join(f"{key}={shown(a)}" for key, a in self.node.attributes.items())
        return (
            f"{self.node.path} ({self.node.op}) of {self.file} gives {what} {self.meant.path} "
            f"({self.meant.op}) of the model{gives}; with the model's numbers there, the nodes "
            f"after it in {self.file} are right"
            + (f". It is written as {written}" if written else "")
        )

    def fix(self) -> str:
        """The advice, in words."""
        return (
            f"change {self.node.path} in {self.file}, or write {self.meant.path} in another way "
            "before the conversion"
        )


class OtherPart:
    """The last nodes of the other file before a fault's tensor, with the shapes that they had.

    Args:
        fault: the fault.
        other: the other side's file.
        side: its tensors.
    """

    def __init__(self, fault: Fault, other: Graph, side: Other) -> None:
        self._side, self._fault = side, fault
        self._file = Path(other.path).name
        self._graph = other.with_values(partial(measured, side))
        self._parts = Parts(self._graph)
        self._places = {id(node): k for k, node in enumerate(self._parts.nodes)}
        made = (value for node in self._graph.nodes for value in node.outputs)
        self._result = next((value for value in made if value.name == fault.other), None)

    def broadcast(self) -> tuple[str, str, tuple[Plan, Plan]] | None:
        """The result's broadcast if it is another than the model's: words, what to do, plans."""
        part, values = self._fault.part, self._fault.values
        site = module_of(part.graph).find_site(part.nodes[-1])
        node, file_plan = next(self.plans(), (None, None))
        made = self._result is not None and node is self._parts.maker_of(self._result)
        if (
            site is None
            or site.kind not in PLANNED
            or node is None
            or file_plan is None
            or not made
        ):
            return None
        arrays = operands(part, values, site)
        try:
            model_plan = site.plan(tuple(array.shape for array in arrays or ()))
        except BroadcastError:
            return None
        if _placed(model_plan) == _placed(file_plan):
            return None
        read, meant = (_listed(plan) for plan in (file_plan, model_plan))
        words = (
            f"{node.path} ({node.op}) of {self._file} broadcasts {read}; the model means {meant}"
        )
        shapes = " and ".join(map(str, model_plan.aligned))
        fix = f"reshape the operands of {node.path} in {self._file} to {shapes}"
        return words, fix, (model_plan, file_plan)

    def fails(self) -> bool:
        """Whether a node does not broadcast by the file's own rule, on the shapes that it had."""
        return any(isinstance(plan, BroadcastError) for _, plan in self._planned())

    def plans(self) -> Iterator[tuple[Node, Plan]]:
        """Yield the nodes that broadcast and how, on the shapes that they had, from the result."""
        for node, plan in self._planned():
            if isinstance(plan, Plan):
                yield node, plan

    def _planned(self) -> Iterator[tuple[Node, Plan | BroadcastError]]:
        module = module_of(self._graph)
        for node in self._nodes():
            site = module.find_site(node)
            if site is None or site.kind not in PLANNED:
                continue
            shapes = [self._shape(value) for value in site.node.inputs if value is not None]
            try:
                yield node, site.plan(tuple(shapes[: len(site.operands)]))
            except BroadcastError as error:
                yield node, error

    def wrong(self, most: float) -> Written | None:
        """The first node that with the model's numbers makes the rest of the file right, or None.

        Args:
            most: the tolerance of one node.
        """
        expected = self._fault.expected
        if expected is None or self._result is None:
            return None
        meant = list(self._meant())
        for node in self._after_operands(most):
            for value in node.outputs:
                held = self._fetch(value)
                if value is self._result or held is None:
                    continue
                for theirs, array in meant:
                    agrees = _alike(held, array, most)
                    if not agrees and self._rights(value, array, expected, most):
                        return Written(node, self._file, held.shape, theirs, array.shape)
        return None

    def _after_operands(self, most: float) -> Iterator[Node]:
        """Yield the nodes after the first ones that have the operands of the model's part."""
        nodes, first = self._nodes()[::-1], 0
        for operand in self._fault.values.values():
            for k, node in enumerate(nodes):
                arrays = (self._fetch(value) for value in node.outputs)
                if any(a is not None and _alike(a, operand, most) for a in arrays):
                    first = max(first, k + 1)
                    break
        yield from nodes[first:]

    def _nodes(self) -> list[Node]:
        """The nodes before the result, the last one first."""
        found: dict[int, Node] = {}
        left = [self._result] if self._result is not None else []
        while left and len(found) < _MOST_NODES:
            node = self._parts.maker_of(left.pop(0))
            if node is not None and id(node) not in found:
                found[id(node)] = node
                left += [value for value in node.inputs if value is not None]
        return sorted(found.values(), key=lambda node: -self._places[id(node)])

    def _fetch(self, value: Value) -> Array | None:
        return self._side.fetch(value.name) if value.name in self._side.names else None

    def _shape(self, value: Value) -> tuple[int, ...]:
        array = self._fetch(value)
        shape = value.shape or () if array is None else array.shape
        return tuple(size for size in shape if isinstance(size, int))

    def _meant(self) -> Iterator[tuple[Node, Array]]:
        """Yield the tensors inside the fault's part of the model, and the nodes that make them."""
        part = self._fault.part
        for node in part.nodes[:-1]:
            for value in node.outputs:
                try:
                    yield node, part.run(self._fault.values, value)
                except ModelError:
                    continue

    def _rights(self, value: Value, array: Array, expected: Array, most: float) -> bool:
        """Whether the rest of the file gives the model's result if it has an array in a place."""
        part, values = self._rest(value)
        for shaped in _forms(array):
            try:
                result = part.run({**values, id(value): shaped})
            except ModelError:
                continue
            if _alike(result, expected, most):
                return True
        return False

    def _rest(self, value: Value) -> tuple[Part, dict[int, Array]]:
        """The nodes from a value to the result, and the numbers that they read besides it."""
        later = {id(value)}
        for node in self._parts.nodes:
            if any(id(v) in later for v in node.inputs if v is not None):
                later |= {id(v) for v in node.outputs}
        names, inputs = self._side.names, self._side.inputs
        made = (v for node in self._parts.nodes for v in node.outputs if v.name in names)
        given = (v for v in self._graph.inputs if v.name in inputs)
        known = {id(v) for v in (*made, *given)} - later
        assert self._result is not None
        part = self._parts.before(self._result, {id(value), *known})
        # A large file has many tensors, and few of them are read here.
        arrays = {
            id(v): inputs[v.name] if v.name in inputs else self._fetch(v)
            for v in part.operands
            if v is not value
        }
        return part, {key: array for key, array in arrays.items() if array is not None}


def operands(part: Part, values: Mapping[int, Array], site: Site) -> list[Array] | None:
    """The arrays of a site's operands in a part of a model; None where one is not computed."""
    try:
        return [_array(part, values, value_of(site, k)) for k in range(len(site.operands))]
    except (ModelError, StopIteration):
        return None


def value_of(site: Site, k: int) -> Value:
    """The value that is a site's operand."""
    name = site.operands[k].name
    return next(v for v in site.node.inputs if v is not None and v.name == name)


def _array(part: Part, values: Mapping[int, Array], value: Value) -> Array:
    return values[id(value)] if id(value) in values else part.run(values, value)


def _placed(plan: Plan) -> tuple[tuple[int, ...], ...]:
    """The result's shape and the operands' shapes in it, without axes of extent 1 of the result."""
    kept = [axis for axis, size in enumerate(plan.shape) if size != 1]
    return tuple(tuple(shape[k] for k in kept) for shape in (plan.shape, *plan.aligned))


def _listed(plan: Plan) -> str:
    return f"{' and '.join(map(str, plan.operands))} to {plan.shape}"


def measured(side: Other, value: Value, _: int) -> Value:
    """The value with the shape that it had; what a node means may depend on that."""
    array = side.inputs.get(value.name)
    array = side.fetch(value.name) if array is None and value.name in side.names else array
    return value if array is None else replace(value, shape=array.shape)


def _forms(array: Array) -> Iterator[Array]:
    """Yield the array, and the array of one sample, as engines without a batch axis have it."""
    yield array
    if array.ndim > 1 and array.shape[0] == 1:
        yield array[0]


def _alike(a: Array, b: Array, most: float) -> bool:
    ways = layouts(a.shape, b.shape)
    return any(way.order is None and judged(b, way.read(a), most).agrees for way in ways)


def shown(attribute: object) -> str:
    """An attribute for a reader; long lists are cut."""
    if isinstance(attribute, tuple | list) and len(attribute) > _MOST_SHOWN:
        return f"({', '.join(map(str, attribute[:_MOST_SHOWN]))}, ...)"
    return str(attribute)
