"""Ops without a row: onnx's own inference of one node, applied to our sizes.

Every distinct size goes in under its own name. A result size of that name is that size; a result
size of another name is new. Inference of one node knows no values. It may drop a condition; then
its sizes are still right for every model that runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ...sizes.dim import Number
from ..onnx_ops.sizes.facts import MAX_CONTENT, SURPRISES, UNKNOWN, Fact, OpCall, Open, Size
from ..onnx_ops.validation import HUGE, malformed, package_errors, strange_attribute

if TYPE_CHECKING:
    import onnx

#: In the second inference sizes are distinct numbers from here on.
_STAND_IN = 1009
#: Ops that read the numbers of an operand: without them inference gives nothing, or as many axes as
#: the file asks for.
_NEED_NUMBERS = frozenset({"AffineGrid", "MaxUnpool", "Loop", "Scan", "If", "SequenceMap"})


def inferred(call: OpCall) -> tuple[Fact, ...]:
    """The facts that onnx's inference gives; unknown facts for a node that may crash it."""
    nothing = (UNKNOWN,) * call.outputs
    if call.domain not in ("", "ai.onnx.ml") or call.op in _NEED_NUMBERS:
        return nothing
    try:
        import onnx
        import onnx.shape_inference
    except ImportError:
        return nothing
    errors: tuple[type[Exception], ...] = (
        *SURPRISES,
        *package_errors(),
        onnx.defs.SchemaError,
    )
    names: dict[Number, str] = {}
    inputs = ["" if fact is None else f"x{position}" for position, fact in enumerate(call.facts)]
    named = {f"x{position}": fact for position, fact in enumerate(call.facts) if fact is not None}
    types = {name: _type(fact, names) for name, fact in named.items()}
    try:
        node = onnx.helper.make_node(
            call.op,
            inputs,
            [f"y{position}" for position in range(call.outputs)],
            domain=call.domain,
            **call.attributes,
        )
        schema = onnx.defs.get_schema(call.op, call.version, call.domain)
        if not schema.has_type_and_shape_inference_function or _untrusted(call, node):
            return nothing
        opsets = [onnx.helper.make_opsetid(call.domain, call.version)]
        inferred_types = onnx.shape_inference.infer_node_outputs(
            schema, node, types, opset_imports=opsets
        )
    except errors:
        return nothing
    proof = inferred_types
    if names:
        numbers = {name: _STAND_IN + 2 * k for k, name in enumerate(names.values())}
        types = {name: _type(fact, names, numbers) for name, fact in named.items()}
        try:
            proof = onnx.shape_inference.infer_node_outputs(
                schema, node, types, opset_imports=opsets
            )
        except errors:
            proof = {}
    sizes = {name: size for size, name in names.items()}
    opened: dict[str, Open] = {}
    outputs = [f"y{k}" for k in range(call.outputs)]
    return tuple(
        _fact(inferred_types.get(name), proof.get(name), sizes, opened) for name in outputs
    )


def _untrusted(call: OpCall, node: onnx.NodeProto) -> bool:
    """Whether a node may crash the package's C++."""
    if malformed(node, {call.domain: call.version}) is not None:
        return True
    if any(strange_attribute(attribute) for attribute in node.attribute):
        return True
    ranks = [fact.shape for fact in call.facts if fact is not None and fact.shape is not None]
    return any(len(shape) > MAX_CONTENT or _huge(shape) for shape in ranks)


def _huge(shape: tuple[Any, ...]) -> bool:
    return any(isinstance(size, int) and size > HUGE for size in shape)


def _type(
    fact: Fact, names: dict[Number, str], numbers: Mapping[str, int] = MappingProxyType({})
) -> onnx.TypeProto:
    """The operand's type; a size that is not a number becomes its own name, or its number."""
    import onnx

    shape: list[int | str] | None = None
    if fact.shape is not None:
        shape = [
            size if isinstance(size, int) else names.setdefault(size, f"d{len(names)}")
            for size in fact.shape
        ]
        shape = [numbers.get(size, size) if isinstance(size, str) else size for size in shape]
    return onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, shape)


def _fact(
    inferred_type: onnx.TypeProto | None,
    proof: onnx.TypeProto | None,
    sizes: Mapping[str, Number],
    opened: dict[str, Open],
) -> Fact:
    """The inferred fact of a result; a number only if the second inference gives the same."""
    if inferred_type is None or not inferred_type.HasField("tensor_type"):
        return UNKNOWN
    tensor = inferred_type.tensor_type
    if not tensor.HasField("shape") or len(tensor.shape.dim) > MAX_CONTENT:
        return UNKNOWN
    proven = [] if proof is None else list(proof.tensor_type.shape.dim)
    shape: list[Size] = []
    for axis, entry in enumerate(tensor.shape.dim):
        if entry.HasField("dim_value"):
            # Some of the inference functions read a name as 0 and compute with it.
            same = len(proven) == len(tensor.shape.dim) and proven[axis] == entry
            shape.append(entry.dim_value if same and 0 <= entry.dim_value <= HUGE else Open())
        elif entry.dim_param in sizes:
            shape.append(sizes[entry.dim_param])
        else:
            shape.append(opened.setdefault(entry.dim_param, Open()) if entry.dim_param else Open())
    return Fact(tuple(shape))
