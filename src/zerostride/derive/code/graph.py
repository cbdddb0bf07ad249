"""Source of ONNX and OpenVINO models with open sizes, which the runtime determines.

Squeeze and Unsqueeze give an operand the result's axes without knowing sizes. Expand broadcasts
both ways, as Broadcast does in its mode "bidirectional". So expanding by the shape of every other
operand gives the result's shape for all sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...core.plan import Plan
from ...errors import BroadcastError, Reason
from ...sizes import Shape
from ...sizes.dim import Dim
from ..explain.facts import broadcasts_to
from ..explain.open import condition_text, namer, shape_text, shown


def onnx_code(plan: Plan, names: Sequence[str]) -> str:
    """Source that makes a model whose inputs have symbolic sizes; see :func:`.source.code`."""
    check_one_way(plan, "onnx")
    lines = ["import onnx", "from onnx import TensorProto, helper", ""]
    lines += [f"# {line}" for line in comments(plan, names)]
    nodes, constants = list(_nodes(plan, names)), list(_constants(plan, names))
    inputs = [_value(name, shape, plan) for name, shape in zip(names, plan.operands, strict=True)]
    if broadcasts_to(plan):
        inputs.append(f'helper.make_tensor_value_info("target", TensorProto.INT64, [{plan.rank}])')
    outputs = [_value(f"{name}.broadcast", plan.shape, plan) for name in names]
    for title, parts in (
        ("nodes", nodes),
        ("constants", constants),
        ("inputs", inputs),
        ("outputs", outputs),
    ):
        lines += [f"{title} = [", *(f"    {part}," for part in parts), "]"]
    lines += [
        'graph = helper.make_graph(nodes, "broadcast", inputs, outputs, constants)',
        'opset = helper.make_opsetid("", 14)',
        "model = helper.make_model(graph, opset_imports=[opset], ir_version=8)",
        "onnx.checker.check_model(model)",
    ]
    return "\n".join(lines)


def check_one_way(plan: Plan, target: str) -> None:
    """Refuses a plan whose axes land in different places for different sizes."""
    if len(set(_mappings(plan))) > 1:
        raise BroadcastError(
            "where axes land depends on sizes, and a graph has one way only",
            reason=Reason.UNKNOWN_SIZE,
            rule=plan.rule,
            shapes=plan.operands,
            headline=f"no {target} source for this plan",
            hint="bind the sizes, or take one of plan.cases",
        )


def comments(plan: Plan, names: Sequence[str]) -> list[str]:
    """The shapes, and the conditions on them."""
    text = namer(plan)
    shapes = ", ".join(
        f"{name}: {shape_text(shape, text)}"
        for name, shape in zip(names, plan.operands, strict=True)
    )
    lines = [f"{shapes} -> {shape_text(plan.shape, text)}"]
    if len(plan.conditions):
        lines.append(f"needs: {condition_text(plan.conditions, text)}; the model does not check")
    return lines


def openvino_code(plan: Plan, names: Sequence[str]) -> str:
    """Source that makes a model with dynamic inputs; see :func:`.source.code`."""
    check_one_way(plan, "openvino")
    lines = [
        "import numpy as np",
        "import openvino as ov",
        "from openvino import opset13 as op",
        "",
    ]
    lines += [f"# {line}" for line in comments(plan, names)]
    lines.append("inputs = [")
    for name, shape in zip(names, plan.operands, strict=True):
        lines.append(f'    op.parameter({dynamic(shape)}, np.float32, name="{name}"),')
    if broadcasts_to(plan):
        lines.append(f'    op.parameter([{plan.rank}], np.int64, name="target"),')
    lines += ["]", "placed = ["]
    for k in range(len(names)):
        value = f"inputs[{k}]"
        for function, axes in zip(("squeeze", "unsqueeze"), placing(plan, k), strict=True):
            if axes:
                value = f"op.{function}({value}, np.int64({axes}))"
        lines.append(f"    {value},")
    lines += ["]", "outputs = ["]
    for k in range(len(names)):
        value = f"placed[{k}]"
        targets = [f"op.shape_of(placed[{n}])" for n in range(len(names)) if n != k]
        for target in ["inputs[1]"] if broadcasts_to(plan) else targets:
            value = f'op.broadcast({value}, {target}, broadcast_spec="BIDIRECTIONAL")'
        lines.append(f"    {value},")
    return "\n".join([*lines, "]", 'model = ov.Model(outputs, inputs, "broadcast")'])


def dynamic(shape: Shape) -> list[int]:
    """A shape with -1 for open sizes."""
    return [size if isinstance(size, int) else -1 for size in shape]


def _mappings(plan: Plan) -> Iterator[tuple[tuple[int | None, ...], ...]]:
    assert plan.open is not None
    return (leaf.mapping for leaf in plan.open.accepted)


def placing(plan: Plan, k: int) -> tuple[list[int], list[int]]:
    """The operand's axes to squeeze, then the result's axes to insert."""
    mapping = next(_mappings(plan))[k]
    dropped = [axis for axis, place in enumerate(mapping) if place is None]
    return dropped, [axis for axis in range(plan.rank) if axis not in mapping]


def _nodes(plan: Plan, names: Sequence[str]) -> Iterator[str]:
    placed = []
    for k, name in enumerate(names):
        value = name
        for op, axes in zip(("Squeeze", "Unsqueeze"), placing(plan, k), strict=True):
            if axes:
                output = f"{name}.{op.lower()}d"
                yield _node(op, [value, f"{name}.{op.lower()}"], output)
                value = output
        placed.append(value)
    if broadcasts_to(plan):
        yield _node("Expand", [placed[0], "target"], f"{names[0]}.broadcast")
        return
    for name, value in zip(names, placed, strict=True):
        yield _node("Shape", [value], f"{name}.shape")
    for k, name in enumerate(names):
        value = placed[k]
        others = [other for other in names if other != name]
        if not others:
            yield _node("Identity", [value], f"{name}.broadcast")
        for n, other in enumerate(others):
            last = n == len(others) - 1
            output = f"{name}.broadcast" if last else f"{name}.expanded{n}"
            yield _node("Expand", [value, f"{other}.shape"], output)
            value = output


def _node(op: str, inputs: Sequence[str], output: str) -> str:
    operands = ", ".join(f'"{name}"' for name in inputs)
    return f'helper.make_node("{op}", [{operands}], ["{output}"])'


def _constants(plan: Plan, names: Sequence[str]) -> Iterator[str]:
    for k, name in enumerate(names):
        for op, axes in zip(("squeeze", "unsqueeze"), placing(plan, k), strict=True):
            if axes:
                kind = f"TensorProto.INT64, [{len(axes)}], {axes}"
                yield f'helper.make_tensor("{name}.{op}", {kind})'


def _value(name: str, shape: Shape, plan: Plan) -> str:
    text = namer(plan)
    sizes = [shown(size, text) if isinstance(size, Dim) else size for size in shape]
    # A size without a name of its own has none in the model either.
    named = [None if isinstance(size, str) and size[0] in "?0123456789" else size for size in sizes]
    return f'helper.make_tensor_value_info("{name}", TensorProto.FLOAT, {named})'
