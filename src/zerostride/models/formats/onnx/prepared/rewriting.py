"""The main graph of an ONNX model, whose nodes are replaced by others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ....ir.names import take

if TYPE_CHECKING:
    import onnx

Shape = tuple[int, ...]
#: Adds nodes that end in a node's results, or says that it cannot.
Rule: TypeAlias = "Callable[[Rewriting, onnx.NodeProto], bool]"


class Rewriting:
    """A graph whose nodes are replaced.

    Attributes:
        graph: the main graph; bodies are left as they are.
        shapes: of tensors, where all sizes are known.
        types: the element types of tensors.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        from onnx import numpy_helper

        self.graph = model.graph
        values = [*self.graph.input, *self.graph.value_info, *self.graph.output]
        self.shapes = {v.name: shape for v in values if (shape := _shape_of(v)) is not None}
        self.types = {v.name: v.type.tensor_type.elem_type for v in values}
        self._constants = {tensor.name: tensor for tensor in self.graph.initializer}
        for node in self.graph.node:
            if node.op_type == "Constant" and node.attribute[0].name == "value":
                self._constants[node.output[0]] = node.attribute[0].t
        self._array: Callable[[Any], np.ndarray[Any, Any]] = numpy_helper.to_array
        for name, tensor in self._constants.items():
            self.shapes[name] = tuple(tensor.dims)
            self.types[name] = tensor.data_type
        self.makers = {name: node for node in self.graph.node for name in node.output}
        self._names = {*self.shapes, *self.makers, *(value.name for value in values)}
        self._made: list[onnx.NodeProto] = []

    def run(self, rules: Mapping[str, Rule]) -> tuple[str, ...]:
        """Replaces the nodes of ops that have a rule, where it can; the names of their ops."""
        done: list[str] = []
        nodes = [*self.graph.node]
        del self.graph.node[:]
        for node in nodes:
            rule = rules.get(node.op_type)
            self._made = []
            if rule is None or not rule(self, node):
                self._made = [node]
            else:
                done.append(node.op_type)
            self.graph.node.extend(self._made)
        self._without_unread()
        return tuple(dict.fromkeys(done))

    def _without_unread(self) -> None:
        """Drops nodes that nothing reads any more."""
        read = {value.name for value in self.graph.output}
        kept = []
        for node in reversed(self.graph.node):
            if any(name in read for name in node.output) or not node.output:
                kept.append(node)
                read |= {*node.input, *_read_inside(node)}
        del self.graph.node[:]
        self.graph.node.extend(reversed(kept))

    def array(self, name: str) -> np.ndarray[Any, Any] | None:
        """A constant's numbers; None for another tensor."""
        tensor = self._constants.get(name)
        return None if tensor is None else self._array(tensor)

    def shape(self, name: str) -> Shape | None:
        """A tensor's sizes, if all are known."""
        return self.shapes.get(name)

    def constant(self, array: Any) -> str:
        """A new constant."""
        from onnx import numpy_helper

        name = take("zerostride_constant", self._names)
        self.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def add(self, op: str, *inputs: str, to: str | None = None, **attributes: Any) -> str:
        """A new node of one result; the result's name."""
        from onnx import helper

        result = take(f"zerostride_{op.lower()}", self._names) if to is None else to
        self._made.append(helper.make_node(op, [*inputs], [result], result, **attributes))
        return result

    def reshaped(self, name: str, sizes: Sequence[int], to: str | None = None) -> str:
        """A Reshape to sizes."""
        return self.add("Reshape", name, self.constant(np.array(sizes, np.int64)), to=to)


def _shape_of(value: onnx.ValueInfoProto) -> Shape | None:
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        return None
    sizes = [dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim]
    known = tuple(size for size in sizes if size is not None)
    return known if len(known) == len(sizes) else None


def _read_inside(node: onnx.NodeProto) -> Iterator[str]:
    """Yield what the bodies of a node read."""
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            for inner in graph.node:
                yield from inner.input
                yield from _read_inside(inner)
            yield from (value.name for value in graph.output)


def attributes_of(node: onnx.NodeProto) -> dict[str, Any]:
    """A node's attributes by name."""
    from onnx import helper

    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}


__all__ = ["Rewriting", "Rule", "Shape", "attributes_of"]
