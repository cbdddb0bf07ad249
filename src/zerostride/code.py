"""Floor 3: a plan as source that a person can paste into another framework.

One table, :data:`TARGETS`: a target is a sequence of parts, each a text that is written once or an
:class:`Each` that is written for every operand. Reshapes appear only where a target's own
right-alignment would not put the operand in the same place.
"""

from __future__ import annotations

import keyword
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from .dims import Asker, Shape
from .engines import ENGINES
from .errors import BroadcastError, Reason
from .explain.facts import names_of
from .express import express
from .plan import Plan
from .rules import whdc


@dataclass(frozen=True, slots=True)
class Each:
    """What is written for every operand.

    Attributes:
        plain: where the target puts the operand in place by itself.
        reshaped: where it must be reshaped first.
        unchanged: where it has the result's shape already; None: as `plain`.
    """

    plain: str
    reshaped: str
    unchanged: str | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """A row of the table.

    Attributes:
        parts: texts with fields in braces; lines that turn out empty are left out.
        engine: the engine whose limits hold.
        reserved: names that the source itself uses.
        max_rank: most axes that its broadcast takes, where the engine's row does not say.
        empty: why it cannot take tensors without elements, or nothing.
        right_aligns: it puts ones in front by itself.
    """

    parts: tuple[str | Each, ...]
    engine: str | None = None
    reserved: frozenset[str] = frozenset()
    max_rank: int | None = None
    empty: str = ""
    right_aligns: bool = True


def _library(
    module: str,
    broadcast: str,
    reshape: str,
    engine: str,
    *,
    max_rank: int | None = None,
    empty: str = "",
    skips: bool = False,
) -> Target:
    """A row for a library of functions: one assignment an operand."""
    assign = "{name} = "
    plain = assign + broadcast.replace("{value}", "{name}")
    return Target(
        (
            f"import {module}\n\n{{comment}}",
            Each(plain, assign + broadcast.replace("{value}", reshape), "" if skips else None),
        ),
        engine,
        frozenset({module.split()[-1]}),
        max_rank,
        empty,
    )


_ONNX_INPUT = '    helper.make_tensor_value_info("{name}", TensorProto.FLOAT, {operand_list}),'
_ONNX_OUTPUT = '    helper.make_tensor_value_info("{name}.broadcast", TensorProto.FLOAT, {list}),'
_ONNX = (
    "import onnx\nfrom onnx import TensorProto, helper\n\n{comment}\nnodes = [",
    Each(
        '    helper.make_node("Expand", ["{name}", "result.shape"], ["{name}.broadcast"]),',
        '    helper.make_node("Reshape", ["{name}", "{name}.aligned"], ["{name}.reshaped"], '
        "allowzero=1),\n"
        '    helper.make_node("Expand", ["{name}.reshaped", "result.shape"], '
        '["{name}.broadcast"]),',
    ),
    "]\nconstants = [\n"
    '    helper.make_tensor("result.shape", TensorProto.INT64, [{rank}], {list}),',
    Each(
        "",
        '    helper.make_tensor("{name}.aligned", TensorProto.INT64, [{rank}], {aligned_list}),',
    ),
    "]\ninputs = [",
    Each(_ONNX_INPUT, _ONNX_INPUT),
    "]\noutputs = [",
    Each(_ONNX_OUTPUT, _ONNX_OUTPUT),
    "]\n"
    'graph = helper.make_graph(nodes, "broadcast", inputs, outputs, constants)\n'
    'model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)\n'
    "onnx.checker.check_model(model)",
)

_OPENVINO_PARAMETER = '    op.parameter({operand_list}, np.float32, name="{name}"),'
_OPENVINO = (
    "import numpy as np\nimport openvino as ov\nfrom openvino import opset13 as op\n\n{comment}\n"
    "inputs = [",
    Each(_OPENVINO_PARAMETER, _OPENVINO_PARAMETER),
    "]\noutputs = [",
    Each(
        "    op.broadcast(inputs[{k}], np.int64({list})),",
        "    op.broadcast(\n"
        "        op.reshape(inputs[{k}], np.int64({aligned_list}), special_zero=False),\n"
        "        np.int64({list}),\n"
        "    ),",
        "    inputs[{k}],",
    ),
    ']\nmodel = ov.Model(outputs, inputs, "broadcast")',
)

_NCNN_INPUT = "Input {name} 0 1 {name} {operand_params}"
_NCNN = (
    "7767517\n{layers} {blobs}",
    Each(_NCNN_INPUT, _NCNN_INPUT),
    Each("", "Reshape {name}.reshape 1 1 {name} {name}.reshaped {aligned_params}"),
    "BinaryOp broadcast.add 2 1 {bottoms} broadcast.sum 0=0",
)

#: What :func:`code` can write. Limits come from the engines' rows; what those do not say (the
#: functions used here, not the engine's ops) was run on the same releases.
TARGETS: Mapping[str, Target] = MappingProxyType(
    {
        "numpy": _library(
            "numpy as np",
            "np.broadcast_to({value}, {shape})",
            "{name}.reshape({aligned_arguments})",
            "numpy",
        ),
        "torch": _library(
            "torch",
            "torch.broadcast_to({value}, {shape})",
            "{name}.reshape({aligned_arguments})",
            "torch",
        ),
        "jax": _library(
            "jax.numpy as jnp",
            "jnp.broadcast_to({value}, {shape})",
            "{name}.reshape({aligned_arguments})",
            "jax",
        ),
        "tensorflow": _library(
            "tensorflow as tf",
            "tf.broadcast_to({value}, {shape})",
            "tf.reshape({name}, {aligned})",
            "tensorflow",
        ),
        "paddle": _library(
            "paddle",
            "paddle.broadcast_to({value}, {shape})",
            "paddle.reshape({name}, {aligned})",
            "paddle",
            max_rank=8,
        ),
        "mnn": _library(
            "MNN.expr as F",
            "F.broadcast_to({value}, {list})",
            "F.reshape({name}, {aligned_list})",
            "mnn",
            empty="MNN cannot read tensors without elements",
            skips=True,
        ),
        "onnx": Target(_ONNX),
        "openvino": Target(
            _OPENVINO, "openvino", empty="OpenVINO dies compiling a Broadcast of an empty tensor"
        ),
        "ncnn": Target(
            _NCNN,
            "ncnn",
            empty="ncnn has no tensors without elements",
            right_aligns=False,
        ),
    }
)


def code(plan: Plan, target: str, names: Sequence[str] = ()) -> str:
    """Source that does a plan's broadcast in another framework.

    Args:
        plan: any plan.
        target: a key of :data:`TARGETS`. For onnx and openvino the source makes a `model` with one
            output an operand; for ncnn it is the text of a .param file that adds the two operands.
        names: what to call the operands: identifiers, distinct.

    Raises:
        BroadcastError: an unknown target, a name that cannot be used, or a plan that the target's
            measured release does not carry.
        NotExpressible: ncnn has no way to say the plan.

    >>> import zerostride as zs
    >>> print(code(zs.plan((5, 5), (5,)), "ncnn"))
    7767517
    4 4
    Input x 0 1 x 0=5 1=5
    Input y 0 1 y 0=5
    Reshape y.reshape 1 1 y y.reshaped 0=5 1=1
    BinaryOp broadcast.add 2 1 x y.reshaped broadcast.sum 0=0
    """
    row = TARGETS.get(str(target))
    if row is None:
        raise BroadcastError(
            f"there is no code for {target!r}",
            reason=Reason.UNKNOWN_ENGINE,
            hint=f"one of {', '.join(TARGETS)}",
        )
    called = _checked_names(plan, row, target, names)
    _check_limits(plan, row, target)
    operands = _ncnn_operands(plan, called) if target == "ncnn" else _operands(plan, row, called)
    return _written(row.parts, operands, _common(plan, operands))


def _checked_names(plan: Plan, row: Target, target: str, names: Sequence[str]) -> tuple[str, ...]:
    called = names_of(plan, names)[:-1]
    wrong = None
    if len(names) > len(called):
        wrong = f"{len(names)} names for {len(called)} operands"
    for n, name in enumerate(called):
        if not name.isidentifier() or keyword.iskeyword(name):
            wrong = f"{name!r} is not an identifier"
        elif name in row.reserved:
            wrong = f"{name!r} is the module's name in the source"
        elif name in called[:n]:
            wrong = f"{name!r} names two operands"
    if wrong is None:
        return called
    raise BroadcastError(
        f"{wrong}; the source for {target} needs distinct identifiers",
        reason=Reason.ATTRIBUTE,
        rule=plan.rule,
        headline=f"no {target} source for this plan",
        hint="pass other names, or none",
    )


def _check_limits(plan: Plan, row: Target, target: str) -> None:
    """Refuses what the target's measured release is known not to carry."""
    engine = ENGINES.get(row.engine or "")
    limits = [row.max_rank]
    if engine is not None:
        limits += [rule.max_rank for rule in engine.to_target.values()]
    most = min((limit for limit in limits if limit is not None), default=None)
    reason, detail = Reason.CRASH, ""
    if row.empty and (0 in plan.shape or any(0 in shape for shape in plan.operands)):
        detail = row.empty
    elif most is not None and plan.rank > most:
        reason, detail = Reason.RANK_LIMIT, f"{plan.rank} axes; {target} broadcasts at most {most}"
    elif engine is not None:
        for divergence in engine.divergences:
            if divergence.strikes is not None and divergence.strikes(plan, Asker()):
                reason, detail = divergence.effect, divergence.text
    if detail:
        raise BroadcastError(
            detail,
            reason=reason,
            rule=plan.rule,
            shapes=plan.operands,
            names=names_of(plan),
            headline=f"no {target} source for this plan",
        )


@dataclass(frozen=True, slots=True)
class _Operand:
    name: str
    shape: Shape
    aligned: Shape
    reshapes: bool
    stretches: bool


def _operands(plan: Plan, row: Target, names: Sequence[str]) -> list[_Operand]:
    rows = zip(names, plan.operands, plan.aligned, plan.stretched, strict=True)
    return [
        _Operand(
            name,
            shape,
            aligned,
            (1,) * (plan.rank - len(shape)) + shape != aligned,
            bool(stretched) or len(shape) != plan.rank,
        )
        for name, shape, aligned, stretched in rows
    ]


def _ncnn_operands(plan: Plan, names: Sequence[str]) -> list[_Operand]:
    """The operands in the order, and with the shapes, in which BinaryOp means the plan."""
    said = express(plan, None, engine="ncnn")
    pairs = list(zip(names, plan.operands, strict=True))[:: -1 if said.swapped else 1]
    if said.merged_axes and plan.rank:
        raise BroadcastError(
            f"a .param file has at most 4 axes; the plan has {plan.rank}",
            reason=Reason.RANK_LIMIT,
            rule=plan.rule,
            shapes=plan.operands,
            names=names,
            headline="no ncnn source for this plan",
            hint=f"merge axes before: {said.describe(names)}",
        )
    return [
        # ncnn has no rank 0: a scalar is a vector of length 1.
        _Operand(name, shape or (1,), wanted or (1,), (wanted or (1,)) != (shape or (1,)), True)
        for (name, shape), wanted in zip(pairs, said.shapes, strict=True)
    ]


def _common(plan: Plan, operands: Sequence[_Operand]) -> dict[str, Any]:
    """The fields that are the same for all operands."""
    shapes = ", ".join(f"{operand.name}: {operand.shape}" for operand in operands)
    reshapes = sum(operand.reshapes for operand in operands)
    count = len(operands) + reshapes + 1
    return {
        "comment": f"# {shapes} -> {plan.shape}",
        "shape": plan.shape,
        "list": list(plan.shape),
        "rank": plan.rank,
        "layers": count,
        "blobs": count,
        "bottoms": " ".join(o.name + ".reshaped" * o.reshapes for o in operands),
    }


def _written(
    parts: Sequence[str | Each], operands: Sequence[_Operand], common: Mapping[str, Any]
) -> str:
    lines = []
    for part in parts:
        if isinstance(part, str):
            lines.append(part.format(**common))
            continue
        for k, operand in enumerate(operands):
            template = part.reshaped if operand.reshapes else part.plain
            if not operand.reshapes and not operand.stretches and part.unchanged is not None:
                template = part.unchanged
            lines.append(template.format(**common, **_fields(operand, k)))
    return "\n".join(line for line in lines if line)


def _fields(operand: _Operand, k: int) -> dict[str, Any]:
    return {
        "k": k,
        "name": operand.name,
        "operand_list": list(operand.shape),
        "operand_params": _params(operand.shape),
        "aligned": operand.aligned,
        "aligned_list": list(operand.aligned),
        "aligned_arguments": ", ".join(map(str, operand.aligned)) or "()",
        "aligned_params": _params(operand.aligned),
    }


#: Parameters of ncnn's Input and Reshape for [w], [w,h], [w,h,c] and [w,h,d,c]
#: (ncnn, operators.md, 'Reshape': 0 = w, 1 = h, 11 = d, 2 = c).
_PARAMS = ((), (0,), (0, 1), (0, 1, 2), (0, 1, 11, 2))


def _params(shape: Shape) -> str:
    if len(shape) >= len(_PARAMS):
        return ""
    return " ".join(
        f"{key}={size}" for key, size in zip(_PARAMS[len(shape)], whdc(shape), strict=True)
    )
