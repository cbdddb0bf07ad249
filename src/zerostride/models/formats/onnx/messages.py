"""Messages of an ONNX file as an editor changes them: constants, attributes, shapes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...onnx_ops.validation import graphs_of, nodes_of, package_errors, refuse_functions, text

if TYPE_CHECKING:
    import onnx


def inline(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with calls of its functions replaced by their bodies.

    The inliner forgets the attributes that a call leaves out and its function has defaults of: the
    calls get them first.
    """
    import onnx.inliner

    defaults = {
        (function.domain, function.name): function.attribute_proto
        for function in model.functions
        if function.attribute_proto
    }
    if defaults:
        bodies = (function.node for function in model.functions)
        for nodes in (model.graph.node, *bodies):
            for node in nodes_of(nodes):
                present = {attribute.name for attribute in node.attribute}
                own = defaults.get((node.domain, node.op_type), ())
                node.attribute.extend(entry for entry in own if entry.name not in present)
    return onnx.inliner.inline_local_functions(model)


def inlined(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with the reader's places of nodes: functions inlined where possible."""
    if model.functions and refuse_functions(model) is None:
        try:
            return inline(model)
        except package_errors():
            pass  # the reader keeps the calls, too
    return model


def value_of(node: onnx.NodeProto) -> onnx.TensorProto | None:
    """The tensor of a Constant node; None for other forms of constants."""
    if node.op_type != "Constant" or node.domain not in ("", "ai.onnx"):
        return None
    tensor: onnx.TensorProto | None
    tensor = next((entry.t for entry in node.attribute if entry.name == "value"), None)
    return listed(node) if tensor is None else tensor


def listed(node: onnx.NodeProto) -> onnx.TensorProto | None:
    """The numbers of a Constant node in another attribute, as a tensor."""
    import onnx
    import onnx.helper

    kinds = onnx.TensorProto
    for entry in node.attribute:
        if entry.name == "value_float":
            return onnx.helper.make_tensor("", kinds.FLOAT, [], [entry.f])
        if entry.name == "value_floats":
            return onnx.helper.make_tensor("", kinds.FLOAT, [len(entry.floats)], entry.floats)
        if entry.name == "value_int":
            return onnx.helper.make_tensor("", kinds.INT64, [], [entry.i])
        if entry.name == "value_ints":
            return onnx.helper.make_tensor("", kinds.INT64, [len(entry.ints)], entry.ints)
    return None


def written(node: onnx.NodeProto) -> onnx.TensorProto:
    """The tensor of a Constant node for changes; numbers of another attribute become one."""
    import onnx

    tensor: onnx.TensorProto | None
    for entry in node.attribute:
        if entry.name == "value":
            tensor = entry.t
            return tensor
    tensor = listed(node)
    assert tensor is not None
    del node.attribute[:]
    entry = node.attribute.add(name="value", type=onnx.AttributeProto.TENSOR)
    entry.t.CopyFrom(tensor)
    written: onnx.TensorProto = entry.t
    return written


def number_tensor(attributes: Mapping[str, Any]) -> onnx.TensorProto:
    """The constant of a step "number"."""
    import numpy as np
    import onnx.helper

    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(attributes["dtype"]))
    return onnx.helper.make_tensor("", kind, [], [attributes["value"]])


def trimmed(operands: Sequence[str]) -> list[str]:
    """The operands without empty ones at the end."""
    kept = list(operands)
    while kept and not kept[-1]:
        kept.pop()
    return kept


def change_attributes(node: onnx.NodeProto, attributes: Mapping[str, Any]) -> None:
    """Sets attributes, and removes those of None; others stay as they are."""
    import onnx.helper

    kept = [entry for entry in node.attribute if entry.name not in attributes]
    if len(kept) != len(node.attribute):
        copies = [type(entry).FromString(entry.SerializeToString()) for entry in kept]
        del node.attribute[:]
        node.attribute.extend(copies)
    for name, value in attributes.items():
        if value is not None:
            node.attribute.append(onnx.helper.make_attribute(name, value))


def become(node: onnx.NodeProto, other: onnx.NodeProto) -> None:
    """Gives a node another node's fields, but not its name; equal fields are not touched."""
    name: Any = node.name
    node.CopyFrom(other)
    if not isinstance(name, bytes):  # it is not UTF-8, and cannot be written again
        node.name = name


def size_of(dim: onnx.TensorShapeProto.Dimension) -> int | str | None:
    """A size of the file: a number, a name, or None."""
    if dim.HasField("dim_value"):
        return dim.dim_value
    return text(dim.dim_param) or None


def set_shape(entry: onnx.ValueInfoProto, shape: Sequence[int | str | None]) -> None:
    """Sets the declared sizes of a tensor."""
    sizes = entry.type.tensor_type.shape
    del sizes.dim[:]
    sizes.SetInParent()
    for size in shape:
        dim = sizes.dim.add()
        if isinstance(size, int):
            dim.dim_value = size
        elif size is not None:
            dim.dim_param = size


def tensors_of(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Every tensor that may have external data, including those of the model's functions."""
    bodies: list[Any] = [model.graph, *model.functions]
    for body in bodies:
        for part in graphs_of(body):
            if part.DESCRIPTOR.name == "GraphProto":  # a function has no initializers
                yield from part.initializer
                yield from _halves(part.sparse_initializer)
            for node in part.node:
                for attribute in node.attribute:
                    yield from (attribute.t, *attribute.tensors)
                    yield from _halves((attribute.sparse_tensor, *attribute.sparse_tensors))


def _halves(sparse: Iterable[onnx.SparseTensorProto]) -> Iterator[onnx.TensorProto]:
    for tensor in sparse:
        yield from (tensor.values, tensor.indices)
