"""Ops that ONNX's documents define by other ops: their nodes become calls of such functions.

The calls are inlined and bounded like those of a model's own functions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ...onnx_ops.validation import malformed, strange_attribute

if TYPE_CHECKING:
    import onnx

#: The domain of the functions that are added here.
DOMAIN = "zerostride.document"
#: Rounds of writing out: bodies may contain ops that are written out too.
MOST_ROUNDS = 4


def has_function(op: str, domain: str, version: int) -> bool:
    """Whether the document of an op defines it by other ops.

    >>> has_function("SoftmaxCrossEntropyLoss", "", 13), has_function("Resize", "", 13)
    (True, False)
    """
    schema = _schema(op, domain, version)
    return schema is not None and bool(schema.has_function or schema.has_context_dependent_function)


def write_out(
    model: onnx.ModelProto,
    inferred: onnx.ModelProto,
    ops: Collection[tuple[str, str]],
    versions: Mapping[str, int],
) -> int:
    """Replaces nodes of the main graph by calls of functions with their documents' bodies.

    Args:
        model: the model; its nodes and functions are changed.
        inferred: the same model with the types of its tensors.
        ops: domains and op types to write out.
        versions: the op sets' versions by domain.

    Returns:
        The number of replaced nodes. A node stays if its document's body depends on unknown types,
        or if the node contradicts its document.
    """
    import onnx

    types = dict(_types(inferred.graph))
    count = 0
    for position, node in enumerate(model.graph.node):
        if (node.domain, node.op_type) not in ops or malformed(node, versions) is not None:
            continue
        if _strange(node, versions):
            continue
        body = _function(node, types, versions)
        if body is None:
            continue
        function = onnx.FunctionProto.FromString(body)
        function.name, function.domain = f"{node.op_type}_{position}", DOMAIN
        # A document's body is valid for all op sets up to the next one with a body.
        for entry in function.opset_import:
            entry.version = versions.get(entry.domain, entry.version)
        domains = {entry.domain for entry in model.opset_import}
        model.opset_import.extend(e for e in function.opset_import if e.domain not in domains)
        if DOMAIN not in domains:
            model.opset_import.add(domain=DOMAIN, version=1)
        _set_defaults(node, versions)
        node.op_type, node.domain = function.name, DOMAIN
        model.functions.append(function)
        count += 1
    return count


def _schema(op: str, domain: str, version: int) -> Any:
    import onnx

    try:
        return onnx.defs.get_schema(op, version, domain)
    except (onnx.defs.SchemaError, TypeError):
        return None


def _strange(node: onnx.NodeProto, versions: Mapping[str, int]) -> bool:
    """Whether the node has numbers that no exporter writes; defaults do not count."""
    schema = _schema(node.op_type, node.domain, versions.get(node.domain, versions.get("", 1)))
    return any(
        strange_attribute(attribute)
        and (
            schema is None
            or attribute.name not in schema.attributes
            or attribute.i != schema.attributes[attribute.name].default_value.i
            or bool(attribute.ints)
        )
        for attribute in node.attribute
    )


def _types(graph: onnx.GraphProto) -> Iterator[tuple[str, onnx.TypeProto]]:
    import onnx.helper

    for entry in (*graph.input, *graph.value_info, *graph.output):
        if entry.type.tensor_type.elem_type:
            yield entry.name, entry.type
    for tensor in graph.initializer:
        yield tensor.name, onnx.helper.make_tensor_type_proto(tensor.data_type, tensor.dims)


def _function(
    node: onnx.NodeProto, types: Mapping[str, onnx.TypeProto], versions: Mapping[str, int]
) -> bytes | None:
    """The body in a node's document, as bytes of a function."""
    import onnx

    version = versions.get(node.domain, versions.get("", 1))
    schema = _schema(node.op_type, node.domain, version)
    if schema is None or any(name and name not in types for name in node.input):
        return None
    for plain, listed in (
        (True, schema.function_opset_versions),
        (False, schema.context_dependent_function_opset_versions),
    ):
        fitting = [number for number in listed if number <= versions.get("", number)]
        if not fitting:
            continue
        try:
            if plain:
                function = schema.get_function_with_opset_version(max(fitting))
            else:
                input_types = [types.get(name, onnx.TypeProto()) for name in node.input]
                function = schema.get_context_dependent_function_with_opset_version(
                    max(fitting),
                    node.SerializeToString(),
                    [entry.SerializeToString() for entry in input_types],
                )
        except (RuntimeError, ValueError, TypeError):
            continue  # no body for these types or attributes
        if function:
            return bytes(function)
    return None


def _set_defaults(node: onnx.NodeProto, versions: Mapping[str, int]) -> None:
    """Adds the documented defaults of missing attributes, which functions refer to."""
    schema = _schema(node.op_type, node.domain, versions.get(node.domain, versions.get("", 1)))
    present = {attribute.name for attribute in node.attribute}
    node.attribute.extend(
        row.default_value
        for name, row in schema.attributes.items()
        if name not in present and row.default_value.name
    )
