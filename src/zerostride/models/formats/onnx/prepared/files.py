"""An ONNX file prepared for a converter that lacks ops: with sizes, functions and other ops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING

from ..external_files import save_inside
from ..reader import parse
from .attention import COMPOUND_OPS, written_out
from .layouts import in_order as results_in_order
from .numbers import as_floats
from .rewriting import Rewriting, attributes_of, version_of
from .substitutes import IN_ORDER, RULES

if TYPE_CHECKING:
    import onnx

#: From this op set on axes are inputs of Squeeze, Unsqueeze and ReduceSum.
_OLDEST = 13
#: The op set that older ones become.
_NEWER = 17
#: The domains of the standard, and those of ops that are written out.
_STANDARD = frozenset({"", "ai.onnx"})
_DOMAINS = _STANDARD | {"com.microsoft"}
#: Ops that go first: onnx infers wrong shapes of an STFT, and a Where looks at an IsNaN.
_FIRST = frozenset({"STFT", "Where"})


def with_shapes(source: Path, goal: Path, shapes: Mapping[str, Sequence[int]]) -> None:
    """Writes a copy whose inputs have these shapes. Shapes inside are left out: they may be open.

    Args:
        source: the model; its external numbers come inside.
        goal: the file to write.
        shapes: by the names of inputs.

    Raises:
        ModelError: the file cannot be read, or numbers are missing or make it too large.
    """
    import onnx

    inside = save_inside(source, goal, "a converter needs its external data inside")
    model = _upgraded(parse(goal if inside else source))
    for value in model.graph.input:
        if value.name in shapes:
            value.type.tensor_type.ClearField("shape")
            value.type.tensor_type.shape.SetInParent()  # a scalar has a shape, too
            for size in shapes[value.name]:
                value.type.tensor_type.shape.dim.add().dim_value = size
    del model.graph.value_info[:]
    for value in model.graph.output:
        for size in value.type.tensor_type.shape.dim:
            size.Clear()
    onnx.save(model, goal)


def _upgraded(model: onnx.ModelProto) -> onnx.ModelProto:
    """A model of an old op set in a newer one, if onnx can write it so."""
    from onnx import version_converter

    if version_of(model) >= _OLDEST:
        return model
    try:
        return version_converter.convert_version(model, _NEWER)
    except (RuntimeError, ValueError):  # it refuses an op, or asserts
        return model


def with_functions(path: Path, lacking: frozenset[str]) -> tuple[str, ...]:
    """Writes ops in the file as the functions that the standard defines for them; which ops.

    Args:
        path: a file that :func:`with_shapes` wrote.
        lacking: the ops that are written so, where they are functions.
    """
    import onnx
    from onnx import inliner

    done = _written_out(path, lacking & COMPOUND_OPS)
    model = onnx.load(path)
    ops = _ops(model) & lacking - RULES.keys()
    pairs = [("", op) for op in sorted(ops)]
    if pairs:
        model = inliner.inline_selected_functions(model, pairs, inline_schema_functions=True)
        onnx.save(model, path)
    return tuple(sorted({*done, *(ops - _ops(model))}))


def _written_out(path: Path, ops: Set[str]) -> list[str]:
    """Writes attention and rotary embeddings out in the file; their ops.

    Sizes behind an op of ONNX Runtime are known once it is written out, and so the next one.
    """
    import onnx

    model, done = inferred(path, ops, _DOMAINS), []
    while model is not None:
        written = written_out(Rewriting(model), ops)
        if not written:
            break
        done += written
        model = onnx.shape_inference.infer_shapes(model, data_prop=True)
    if model is not None and done:
        save(model, path)
    return done


def _ops(model: onnx.ModelProto, domains: Set[str] = _STANDARD) -> set[str]:
    return {node.op_type for node in model.graph.node if node.domain in domains}


def rewritten(path: Path, lacking: frozenset[str]) -> tuple[str, ...]:
    """Rewrites the nodes of ops that a converter lacks, in the file; the ops that were rewritten.

    Args:
        path: a file that :func:`with_shapes` wrote.
        lacking: the ops.
    """
    done: list[str] = []
    for ops in (lacking & _FIRST, lacking - _FIRST):
        rules = {op: rule for op, rule in RULES.items() if op in ops}
        model = inferred(path, rules.keys())
        if model is not None and (changed := Rewriting(model).run(rules)):
            save(model, path)
            done += changed
    return tuple(dict.fromkeys(done))


def with_floats(path: Path) -> list[str] | None:
    """Writes truth values and whole numbers in the file as floats; which inputs are floats now.

    Args:
        path: a file that :func:`with_shapes` wrote.

    Returns:
        The inputs' names; None where nothing was written.
    """
    model = inferred(path)
    inputs = as_floats(Rewriting(model)) if model is not None else None
    if model is not None and inputs is not None:
        save(model, path)
    return inputs


def in_order(path: Path) -> None:
    """Writes results in the file so that a converter cannot keep them with the channels last.

    Args:
        path: a file that :func:`with_shapes` wrote.
    """
    model = inferred(path)
    if model is None:
        return
    graph = Rewriting(model)
    results = {value.name for value in model.graph.output}

    def laid(node: onnx.NodeProto) -> bool:
        rule = IN_ORDER.get(node.op_type)
        if rule is not None and rule(graph, node):
            return True
        return not results.isdisjoint(node.output) and results_in_order(graph, node)

    if graph.each(laid):
        save(model, path)


def inferred(
    path: Path, ops: Set[str] | None = None, domains: Set[str] = _STANDARD
) -> onnx.ModelProto | None:
    """The model with the shapes of its tensors; None for an old op set, or if it has none of `ops`.

    Inference of a large model takes long.
    """
    import onnx

    model = onnx.load(path)
    del model.graph.value_info[:]
    if version_of(model) < _OLDEST or (ops is not None and ops.isdisjoint(_ops(model, domains))):
        return None
    return onnx.shape_inference.infer_shapes(model, data_prop=True)


def save(model: onnx.ModelProto, path: Path) -> None:
    """Writes a model without the shapes of its tensors."""
    import onnx

    del model.graph.value_info[:]
    onnx.save(model, path)


def reads_rows(path: Path) -> bool:
    """Whether a model has a Gather, and each takes rows of a constant matrix."""
    graph = parse(path).graph
    sizes = {tensor.name: len(tensor.dims) for tensor in graph.initializer}
    gathers = [node for node in graph.node if node.op_type == "Gather"]
    return bool(gathers) and all(
        sizes.get(node.input[0]) == 2 and not attributes_of(node).get("axis", 0) for node in gathers
    )


__all__ = [
    "in_order",
    "inferred",
    "reads_rows",
    "rewritten",
    "save",
    "with_floats",
    "with_functions",
    "with_shapes",
]
