"""An ONNX file prepared for a converter that lacks ops: with sizes, functions and other ops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..reader import parse
from .rewriting import Rewriting, attributes_of
from .substitutes import RULES

if TYPE_CHECKING:
    import onnx

#: From this op set on axes are inputs of Squeeze, Unsqueeze and ReduceSum.
_OLDEST = 13


def with_shapes(source: Path, goal: Path, shapes: Mapping[str, Sequence[int]]) -> None:
    """Writes a copy whose inputs have these shapes. Shapes inside are left out: they may be open.

    Args:
        source: the model; its external numbers come inside.
        goal: the file to write.
        shapes: by the names of inputs.

    Raises:
        ModelError: the file cannot be read.
    """
    import onnx

    model = parse(source)
    onnx.load_external_data_for_model(model, str(source.parent))
    for value in model.graph.input:
        if value.name in shapes:
            value.type.tensor_type.ClearField("shape")
            for size in shapes[value.name]:
                value.type.tensor_type.shape.dim.add().dim_value = size
    del model.graph.value_info[:]
    for value in model.graph.output:
        for size in value.type.tensor_type.shape.dim:
            size.Clear()
    onnx.save(model, goal)


def with_functions(path: Path, lacking: frozenset[str]) -> tuple[str, ...]:
    """Writes ops in the file as the functions that the standard defines for them; which ops.

    Args:
        path: a file that :func:`with_shapes` wrote.
        lacking: the ops that are written so, where they are functions.
    """
    import onnx
    from onnx import inliner

    model = onnx.load(path)
    ops = _ops(model) & lacking - RULES.keys()
    pairs = [("", op) for op in sorted(ops)]
    if pairs:
        model = inliner.inline_selected_functions(model, pairs, inline_schema_functions=True)
        onnx.save(model, path)
    return tuple(sorted(ops - _ops(model)))


def _ops(model: onnx.ModelProto) -> set[str]:
    return {node.op_type for node in model.graph.node if node.domain in ("", "ai.onnx")}


def rewritten(path: Path, lacking: frozenset[str]) -> tuple[str, ...]:
    """Rewrites the nodes of ops that a converter lacks, in the file; the ops that were rewritten.

    Args:
        path: a file that :func:`with_shapes` wrote.
        lacking: the ops.
    """
    import onnx

    model = onnx.load(path)
    del model.graph.value_info[:]
    model = onnx.shape_inference.infer_shapes(model, data_prop=True)
    versions = {entry.domain or "ai.onnx": entry.version for entry in model.opset_import}
    if versions.get("ai.onnx", 1) < _OLDEST:
        return ()
    done = Rewriting(model).run({op: rule for op, rule in RULES.items() if op in lacking})
    if done:
        del model.graph.value_info[:]
        onnx.save(model, path)
    return done


def reads_rows(path: Path) -> bool:
    """Whether a model has a Gather, and each takes rows of a constant matrix."""
    graph = parse(path).graph
    sizes = {tensor.name: len(tensor.dims) for tensor in graph.initializer}
    gathers = [node for node in graph.node if node.op_type == "Gather"]
    return bool(gathers) and all(
        sizes.get(node.input[0]) == 2 and not attributes_of(node).get("axis", 0) for node in gathers
    )


__all__ = ["reads_rows", "rewritten", "with_functions", "with_shapes"]
