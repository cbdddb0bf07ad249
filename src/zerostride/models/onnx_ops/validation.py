"""Checks of a file before the onnx package's C++ works on it.

Shape inference and the inliner do not validate models. A node with too few inputs has ended the
process with a segmentation fault (tests/fuzz/fuzz_onnx.py finds such files), a function that calls
itself has overflowed the stack, one that doubles itself thirty times fills any memory. The checks
are cheap, and every model that a checker passes satisfies them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from ..ir.graph import MALFORMED

if TYPE_CHECKING:
    import onnx

#: Most nodes after inlining; the largest models in use have about 100,000.
MAX_INLINED = 1_000_000
#: Positions of operands with one number for each axis of a result. Inference makes a result of as
#: many axes as that tensor declares numbers, even if that takes all memory.
_ONE_NUMBER_AN_AXIS: Mapping[str, tuple[int, ...]] = {
    "AffineGrid": (1,),
    "ConstantOfShape": (0,),
    "Expand": (1,),
    "MaxUnpool": (2,),
    "Pad": (1,),
    "Reshape": (1,),
    "Resize": (1, 2, 3),
    "Tile": (1,),
    "Unsqueeze": (1,),
    "Upsample": (1,),
}
#: Einsum's equation: letters, at most one ellipsis per term. Inference has hung on others.
_TERM = rb"[A-Za-z]*(?:\.\.\.)?[A-Za-z]*"
_EQUATION = re.compile(rb"%b(?:,%b)*(?:->%b)?" % (_TERM, _TERM, _TERM))
#: A version of the op set above all.
_NEWEST = 1 << 20
#: More axes than any framework supports, and few enough for fast inference.
MAX_AXES = 4096


def text(field: Any) -> str:
    """A text field of a file; protobuf gives bytes if they are not UTF-8."""
    return field.decode("utf-8", "backslashreplace") if isinstance(field, bytes) else str(field)


def graphs_of(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """A graph and every body in it."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from graphs_of(attribute.g)
            for body in attribute.graphs:
                yield from graphs_of(body)


def nodes_of(nodes: Sequence[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Nodes with those of their bodies, in a fixed order."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from nodes_of(attribute.g.node)
            for body in attribute.graphs:
                yield from nodes_of(body.node)


def refuse_functions(model: onnx.ModelProto) -> str | None:
    """Why a model's functions cannot be inlined, or None."""
    bodies: dict[tuple[str, str], onnx.FunctionProto] = {}
    for function in model.functions:
        key = (function.domain, function.name)
        if key in bodies:
            return f"the function {function.name!r} is defined twice"
        bodies[key] = function
    sizes: dict[tuple[str, str], int] = {}
    for key in bodies:
        reason = _measure(key, bodies, sizes)
        if reason is not None:
            return reason
    total = sum(sizes.get((n.domain, n.op_type), 1) for n in nodes_of(model.graph.node))
    return f"they would become {total} nodes" if total > MAX_INLINED else None


def _measure(
    start: tuple[str, str],
    bodies: Mapping[tuple[str, str], onnx.FunctionProto],
    sizes: dict[tuple[str, str], int],
) -> str | None:
    """Counts the nodes that a call becomes; returns the reason if it never ends.

    Uses its own stack: a chain of calls may be longer than Python's recursion limit.
    """
    calls: dict[tuple[str, str], list[tuple[str, str]]] = {}
    stack = [start]
    while stack:
        key = stack[-1]
        if key in sizes:
            stack.pop()
            continue
        if key not in calls:
            calls[key] = [(n.domain, n.op_type) for n in nodes_of(bodies[key].node)]
            open_calls = {call for call in calls[key] if call in bodies and call not in sizes}
            if any(call in calls for call in open_calls):
                return f"the function {key[1]!r} calls itself, directly or through others"
            stack += open_calls
        else:
            # The stack may name a call twice; all functions that it needs are measured by now.
            sizes[key] = sum(sizes.get(call, 1) for call in calls[key])
            stack.pop()
    return None


def mark_malformed(model: onnx.ModelProto, versions: Mapping[str, int], notes: list[str]) -> None:
    """Moves every malformed node of a model to a domain of its own.

    Inference skips unknown operators of domains that a model imports, and no table of ops knows
    these.

    Args:
        model: changed.
        versions: the op sets' versions by domain.
        notes: receives a sentence for each such node.
    """
    long = _long_vectors(model.graph)
    for node in nodes_of(model.graph.node):
        wrong = malformed(node, versions) or _too_many_axes(node, long)
        if wrong is not None:
            notes.append(f"node {node.name or node.op_type!r} is malformed: {wrong}")
            node.domain = MALFORMED
    model.opset_import.add(domain=MALFORMED, version=1)


def _long_vectors(graph: onnx.GraphProto) -> Mapping[str, int]:
    """Vectors too long to be shapes, with their declared lengths."""
    ranks = {}
    for part in graphs_of(graph):
        for entry in (*part.input, *part.value_info, *part.output):
            dims = entry.type.tensor_type.shape.dim
            if len(dims) == 1 and dims[0].dim_value > MAX_AXES:
                ranks[entry.name] = dims[0].dim_value
        for tensor in part.initializer:
            if len(tensor.dims) == 1 and tensor.dims[0] > MAX_AXES:
                ranks[tensor.name] = tensor.dims[0]
    return ranks


def _too_many_axes(node: onnx.NodeProto, long: Mapping[str, int]) -> str | None:
    for position in _ONE_NUMBER_AN_AXIS.get(node.op_type, ()) if long else ():
        if position < len(node.input) and node.input[position] in long:
            return f"its result would have {long[node.input[position]]} axes"
    return None


@cache
def _schema(op: str, domain: str, version: int) -> Any:
    import onnx

    try:
        return onnx.defs.get_schema(op, version, domain)
    except onnx.defs.SchemaError:
        return None  # a custom op, or a version that the installed package does not know


@cache
def _attribute_types(
    op: str, domain: str, version: int
) -> tuple[Mapping[str, int], frozenset[str]]:
    """The documented type of each attribute, and the required attributes."""
    rows = _schema(op, domain, version).attributes
    required = frozenset(name for name, row in rows.items() if row.required)
    return {name: int(row.type.value) for name, row in rows.items()}, required


def malformed(node: onnx.NodeProto, versions: Mapping[str, int]) -> str | None:
    """The contradiction between a node and its operator's document, or None."""
    domain = "" if node.domain == "ai.onnx" else node.domain
    key = (node.op_type, domain, versions.get(node.domain, versions.get(domain, 1)))
    # Protobuf gives bytes for text that is not UTF-8; no operator has such a name.
    if not all(isinstance(part, str) for part in key[:2]):
        return None
    if domain == "" and _schema(*key) is None:
        key = (*key[:2], _NEWEST)  # an op that is newer than the file says
    schema = _schema(*key)
    if schema is None:
        return None
    for what, count, least, most in (
        ("input", len(node.input), schema.min_input, schema.max_input),
        ("output", len(node.output), schema.min_output, schema.max_output),
    ):
        if not least <= count <= most:
            return f"{count} {what}s; {node.op_type} has {least} to {most}"
    types, required = _attribute_types(*key)
    seen: set[str] = set()
    for attribute in node.attribute:
        name = attribute.name
        if name in seen:
            return f"the attribute {name!r} is there twice"
        seen.add(name)
        if attribute.type != types.get(name, attribute.type) and not attribute.ref_attr_name:
            return f"the attribute {name!r} has another type than in {node.op_type}'s document"
        if name == "equation" and not _EQUATION.fullmatch(attribute.s.replace(b" ", b"")):
            return "its equation is no Einstein sum"
    missing = sorted(required - seen)
    return f"the attribute {missing[0]!r} is missing" if missing else None


def strange(model: onnx.ModelProto) -> bool:
    """Whether a model has numbers that no exporter writes, or ops, that may crash inference.

    A false positive is harmless: inference then runs in a child process.
    """
    ranges = False
    for node in nodes_of(model.graph.node):
        if node.op_type in _UNGUARDED:
            return True
        ranges = ranges or node.op_type == "Range"
        for attribute in node.attribute:
            if strange_attribute(attribute):
                return True
    return _strange_sizes(model.graph, LONG if ranges else HUGE) or (ranges and _long_range(model))


#: Ops whose inference ends the process where the type of an input is unknown.
_UNGUARDED = frozenset({"DictVectorizer", "LabelEncoder", "RegexFullMatch", "TreeEnsemble"})
#: Sizes above HUGE are invalid; vectors and Ranges above LONG are too long to list their numbers.
HUGE, LONG = 1 << 40, 1 << 20
#: Integer attributes that may be negative, by a part of their name.
_SIGNED = re.compile(rb"ax[ei]s|pads|starts|ends|shape|ignore_index|seed|value|perm|keepdims|dtype")
#: Integer attributes that are divisors or counts.
_POSITIVE = re.compile(rb"strides|dilations|kernel_shape|blocksize|group|num_|_size|block")


def strange_attribute(attribute: onnx.AttributeProto) -> bool:
    """Whether an attribute has a number that no exporter writes."""
    if attribute.type not in (_INT, _INTS) and not (attribute.ints or attribute.i):
        return False
    values = attribute.ints or ((attribute.i,) if attribute.i else ())
    signed, positive = _sort_of(text(attribute.name))
    if positive and attribute.type == _INT and not attribute.i:
        return True
    if signed or not values:
        return False
    return bool(min(values) < positive or max(values) > LONG)


#: Numbers of ONNX's kinds of attribute.
_INT, _INTS = 2, 7


@lru_cache(4096)
def _sort_of(name: str) -> tuple[bool, bool]:
    """Whether an integer attribute of that name may be negative, and whether it must be above 0."""
    spelled = name.encode("utf-8", "replace")
    return bool(_SIGNED.search(spelled)), bool(_POSITIVE.search(spelled))


def _strange_sizes(graph: onnx.GraphProto, most: int) -> bool:
    """Whether a size is above `most`, or a vector too long to list its numbers.

    Inference follows the numbers in vectors one by one, because they may be shapes.
    """
    return any(
        max(shape) > most or (len(shape) == 1 and shape[0] > LONG) for shape in _shapes_of(graph)
    )


def _shapes_of(graph: onnx.GraphProto) -> Iterator[Sequence[int]]:
    """The declared shapes of a file that have an axis."""
    for part in graphs_of(graph):
        for entries in (part.input, part.value_info, part.output):
            for entry in entries:
                if dims := entry.type.tensor_type.shape.dim:
                    yield [dim.dim_value for dim in dims]
        for tensor in part.initializer:
            if tensor.dims:
                yield tensor.dims
        for node in part.node:
            for attribute in node.attribute:
                if attribute.HasField("t") and attribute.t.dims:
                    yield attribute.t.dims


def _long_range(model: onnx.ModelProto) -> bool:
    """Whether a constant of the model may make a Range very long; not so the bounds of a Slice."""
    import onnx.numpy_helper

    parts = list(graphs_of(model.graph))
    nodes = [node for part in parts for node in part.node]
    read = {name for node in nodes if node.op_type != "Slice" for name in node.input}
    read |= {value.name for part in parts for value in part.output}
    named = [(tensor.name, tensor) for part in parts for tensor in part.initializer]
    for node in nodes:
        if node.op_type == "Constant":
            named += [(node.output[0], attribute.t) for attribute in node.attribute]
    for name, tensor in named:
        if name not in read or len(tensor.dims) > 1 or sum(tensor.dims) > 1:
            continue
        if tensor.data_location:
            continue
        try:
            values = onnx.numpy_helper.to_array(tensor).astype(float)
        except (ValueError, TypeError, KeyError):
            return True
        # INT64_MAX is a common end of slices, and no limit of a Range.
        if any(LONG < abs(value) < 2.0**63 for value in values.flat):
            return True
    return False


def package_errors() -> tuple[type[Exception], ...]:
    """The exceptions of the onnx package for models that it cannot process.

    Its C++ exceptions become Python's by their type, so the list is long.
    """
    import onnx.checker
    import onnx.shape_inference
    from google.protobuf.message import Error

    return (
        Error,
        IndexError,
        MemoryError,
        OverflowError,
        RuntimeError,
        TypeError,
        ValueError,
        onnx.checker.ValidationError,
        onnx.shape_inference.InferenceError,
    )
