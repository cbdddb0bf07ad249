"""The main graph of an ONNX model, whose nodes are replaced by others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ....ir.names import take
from ....onnx_ops.validation import graphs_of

if TYPE_CHECKING:
    import onnx

Shape = tuple[int, ...]
#: From this op set on the axes of ReduceMax are an input.
_AXES_AS_INPUT = 18
#: Adds nodes that end in a node's results, or says that it cannot.
Rule: TypeAlias = "Callable[[Rewriting, onnx.NodeProto], bool]"


class Rewriting:
    """A graph whose nodes are replaced.

    Attributes:
        graph: the main graph; bodies are left as they are.
        version: of the op set.
        shapes: of tensors, where all sizes are known.
        types: the element types of tensors.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        from onnx import numpy_helper

        self.graph, self.version = model.graph, version_of(model)
        values = [*self.graph.input, *self.graph.value_info, *self.graph.output]
        self.shapes = {v.name: shape for v in values if (shape := _shape_of(v)) is not None}
        self.types: dict[str, int] = {v.name: v.type.tensor_type.elem_type for v in values}
        self._constants = {tensor.name: tensor for tensor in self.graph.initializer}
        for node in self.graph.node:
            if node.op_type == "Constant" and node.attribute and node.attribute[0].name == "value":
                self._constants[node.output[0]] = node.attribute[0].t
        self._array: Callable[[Any], np.ndarray[Any, Any]] = numpy_helper.to_array
        for name, tensor in self._constants.items():
            self.shapes[name] = tuple(tensor.dims)
            self.types[name] = tensor.data_type
        self.makers = {name: node for node in self.graph.node for name in node.output}
        self._names = {*self.shapes, *self.makers, *(value.name for value in values)}
        self._made: list[onnx.NodeProto] = []

    def learn(self, shapes: Mapping[str, Shape], types: Mapping[str, int]) -> None:
        """Takes sizes and element types of tensors; a constant that an input replaces is none."""
        self.shapes |= shapes
        self.types |= types
        for value in self.graph.input:
            self._constants.pop(value.name, None)

    def reserve(self, names: Iterable[str]) -> None:
        """Keeps names from being given to new tensors."""
        self._names.update(names)

    def run(self, rules: Mapping[str, Rule]) -> tuple[str, ...]:
        """Replaces the nodes of ops that have a rule, where it can; the names of their ops."""

        def rewritten(node: onnx.NodeProto) -> bool:
            rule = rules.get(node.op_type) if node.domain in ("", "ai.onnx") else None
            return rule is not None and rule(self, node)

        return tuple(dict.fromkeys(node.op_type for node in self.each(rewritten)))

    def each(
        self, rule: Callable[[onnx.NodeProto], bool], *, sweep: bool = True
    ) -> list[onnx.NodeProto]:
        """Calls a rule for each node; the nodes in whose place it added others.

        Args:
            rule: adds nodes in the place of one, or says that it cannot.
            sweep: whether the graph's own nodes go, too, if nothing reads them any more.
        """
        done: list[onnx.NodeProto] = []
        nodes = [*self.graph.node]
        kept = () if sweep else {name for node in nodes for name in node.output}
        del self.graph.node[:]
        for node in nodes:
            self._made = []
            if rule(node):
                done.append(node)
            else:
                self._made = [node]
            self.end()
        self._without_unread(kept)
        return done

    def added(self) -> list[onnx.NodeProto]:
        """The nodes that were added in the place of the present one."""
        return [*self._made]

    def end(self) -> None:
        """Puts the nodes that were added at the end of the graph."""
        self.graph.node.extend(self._made)
        self._made = []

    def _without_unread(self, names: Collection[str]) -> None:
        """Drops nodes that nothing reads any more; those that make `names` stay."""
        read = {*names, *(value.name for value in self.graph.output)}
        kept = []
        for node in reversed(self.graph.node):
            if any(name in read for name in node.output) or not node.output:
                kept.append(node)
                read |= {*node.input, *read_inside(node)}
        del self.graph.node[:]
        self.graph.node.extend(reversed(kept))

    def array(self, name: str) -> np.ndarray[Any, Any] | None:
        """A constant's numbers; None for another tensor."""
        tensor = self._constants.get(name)
        return None if tensor is None else self._array(tensor)

    def shape(self, name: str) -> Shape | None:
        """A tensor's sizes, if all are known."""
        return self.shapes.get(name)

    def dtype(self, name: str) -> str | None:
        """NumPy's name of a tensor's element type, if it is known."""
        from onnx import helper

        kind = self.types.get(name)
        return str(helper.tensor_dtype_to_np_dtype(kind)) if kind else None

    def constant(self, array: Any) -> str:
        """A new constant."""
        from onnx import numpy_helper

        name = take("zerostride_constant", self._names)
        tensor = numpy_helper.from_array(np.asarray(array), name)
        self.graph.initializer.append(tensor)
        self._constants[name] = tensor
        self.shapes[name], self.types[name] = tuple(tensor.dims), tensor.data_type
        return name

    def add(self, op: str, *inputs: str, to: str | None = None, **attributes: Any) -> str:
        """A new node of one result; the result's name."""
        result = take(f"zerostride_{op.lower()}", self._names) if to is None else to
        self.put(op, inputs, [result], **attributes)
        return result

    def put(
        self, op: str, inputs: Sequence[str], results: Sequence[str], **attributes: Any
    ) -> None:
        """A new node with these results."""
        from onnx import helper

        node = helper.make_node(op, [*inputs], [*results], results[0], **attributes)
        self._made.append(node)
        self.makers |= dict.fromkeys(results, node)

    def largest(self, name: str) -> str:
        """The largest number of each row, as a row of one."""
        if self.version < _AXES_AS_INPUT:
            return self.add("ReduceMax", name, axes=[-1], keepdims=1)
        return self.add("ReduceMax", name, self.constant(np.array([-1], np.int64)), keepdims=1)

    def ending_in(self, node: onnx.NodeProto, results: Sequence[str]) -> None:
        """Gives results the names of a node's outputs."""
        own = {name for added in self._made for name in added.output}
        names: dict[str, str] = {}
        for result, name in zip(results, node.output, strict=False):
            if name and result in own and result not in names:
                names[result] = name
            elif name:
                self.add("Identity", result, to=name)
        for added in self._made:
            for tensors in (added.input, added.output):
                tensors[:] = [names.get(tensor, tensor) for tensor in tensors]
        self.makers |= {name: added for added in self._made for name in added.output}

    def as_float(self, name: str) -> str:
        """A Cast to 32-bit floats."""
        return self.as_kind(name, "float32")

    def as_kind(self, name: str, kind: str) -> str:
        """A Cast to an element type, by NumPy's name."""
        from onnx import helper

        result = take("zerostride_cast", self._names)
        self.put("Cast", [name], [result], to=helper.np_dtype_to_tensor_dtype(np.dtype(kind)))
        return result

    def repeat(self, node: onnx.NodeProto, inputs: Sequence[str]) -> None:
        """The same node on other inputs."""
        copy = type(node)()
        copy.CopyFrom(node)
        copy.input[:] = inputs
        self._made.append(copy)
        self.makers |= dict.fromkeys(copy.output, copy)

    def again(self, node: onnx.NodeProto) -> str:
        """The same node of one result with a new name for it; the name."""
        self.repeat(node, [*node.input])
        result = take(f"zerostride_{node.op_type.lower()}", self._names)
        self._made[-1].output[:] = [result]
        self._made[-1].name = result
        self.makers[result] = self._made[-1]
        return result

    def drop_constant(self, name: str) -> None:
        """Takes a constant out, so that a node can make its name."""
        kept = [tensor for tensor in self.graph.initializer if tensor.name != name]
        self.graph.initializer.clear()
        self.graph.initializer.extend(kept)
        nodes = [node for node in self.graph.node if name not in node.output]
        del self.graph.node[:]
        self.graph.node.extend(nodes)
        del self._constants[name]

    def reshaped(self, name: str, sizes: Sequence[int], to: str | None = None) -> str:
        """A Reshape to sizes."""
        result = self.add("Reshape", name, self.constant(np.array(sizes, np.int64)), to=to)
        self.shapes[result] = tuple(sizes)
        return result


def version_of(model: onnx.ModelProto) -> int:
    """The version of the standard's op set."""
    versions: dict[str, int] = {
        entry.domain or "ai.onnx": entry.version for entry in model.opset_import
    }
    return versions.get("ai.onnx", 1)


def _shape_of(value: onnx.ValueInfoProto) -> Shape | None:
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        return None
    sizes = [dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim]
    known = tuple(size for size in sizes if size is not None)
    return known if len(known) == len(sizes) else None


def read_inside(node: onnx.NodeProto) -> Iterator[str]:
    """Yield what the bodies of a node read."""
    for attribute in node.attribute:
        for body in (attribute.g, *attribute.graphs):
            for graph in graphs_of(body):
                yield from (name for inner in graph.node for name in inner.input)
                yield from (value.name for value in graph.output)


def attributes_of(node: onnx.NodeProto) -> dict[str, Any]:
    """A node's attributes by name."""
    from onnx import helper

    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}


__all__ = ["Rewriting", "Rule", "Shape", "attributes_of", "read_inside", "version_of"]
