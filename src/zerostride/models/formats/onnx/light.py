"""An ONNX model without its weights, for shape inference and the inliner.

Both are C++ parts of the package that take and return a model as bytes. With weights the model
would be in memory five times. They read only short tensors: shapes, axes or repeats.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import onnx

#: Tensors with more bytes than this are weights: scales of a Resize have 4 for each axis.
MAX_BYTES = 1 << 10
#: The same for whole numbers, whose vectors inference follows: 8 for each of 4096 axes.
MAX_WHOLE_BYTES = 1 << 15


def light(model: onnx.ModelProto, *, whole: bool = True) -> onnx.ModelProto:
    """A copy of the model in which weights have a type and a shape but no numbers.

    The weights are marked as external data.

    Args:
        model: the model; it does not change.
        whole: also tensors in nodes lose their numbers, and functions are left out. Otherwise only
            the main graph's initialisers lose their numbers.
    """
    import onnx

    copy = onnx.ModelProto(ir_version=model.ir_version)
    copy.opset_import.extend(model.opset_import)
    if not whole:
        copy.functions.extend(model.functions)
    _copy_graph(model.graph, copy.graph, whole)
    return copy


def _copy_graph(graph: onnx.GraphProto, copy: onnx.GraphProto, whole: bool) -> None:
    for field in ("input", "output", "value_info"):
        getattr(copy, field).extend(getattr(graph, field))
    if whole:
        for node in graph.node:
            _copy_node(node, copy.node.add())
    else:
        copy.node.extend(graph.node)
    for tensor in graph.initializer:
        _copy_tensor(tensor, copy.initializer.add())
    for sparse in graph.sparse_initializer:
        copied = copy.sparse_initializer.add(dims=sparse.dims)
        _copy_tensor(sparse.values, copied.values)
        _copy_tensor(sparse.indices, copied.indices)


def _copy_node(node: onnx.NodeProto, copy: onnx.NodeProto) -> None:
    # Names that are not UTF-8 are bytes, which protobuf does not accept.
    if not node.attribute or node.ByteSize() <= MAX_BYTES or not _is_text(node.output):
        copy.CopyFrom(node)
        return
    if not _is_text((*node.input, node.name, node.op_type, node.domain)):
        copy.CopyFrom(node)
        return
    copy.name, copy.op_type, copy.domain = node.name, node.op_type, node.domain
    copy.input.extend(node.input)
    copy.output.extend(node.output)
    for attribute in node.attribute:
        copied = copy.attribute.add()
        tensor, body = attribute.HasField("t"), attribute.HasField("g")
        if not (tensor or body or attribute.graphs) or not _is_text((attribute.name,)):
            copied.CopyFrom(attribute)
            continue
        copied.name, copied.type = attribute.name, attribute.type
        if tensor:
            _copy_tensor(attribute.t, copied.t)
        if body:
            _copy_graph(attribute.g, copied.g, True)
        for part in attribute.graphs:
            _copy_graph(part, copied.graphs.add(), True)


def _copy_tensor(tensor: onnx.TensorProto, copy: onnx.TensorProto) -> None:
    import onnx

    whole = tensor.data_type in (onnx.TensorProto.INT64, onnx.TensorProto.INT32)
    most = MAX_WHOLE_BYTES if whole else MAX_BYTES
    if tensor.ByteSize() <= most or not _is_text((tensor.name,)):
        copy.CopyFrom(tensor)
        return
    copy.name, copy.data_type = tensor.name, tensor.data_type
    copy.dims.extend(tensor.dims)
    copy.data_location = onnx.TensorProto.EXTERNAL


def _is_text(names: Iterable[Any]) -> bool:
    return all(isinstance(name, str) for name in names)
