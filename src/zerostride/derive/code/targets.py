"""The table of frameworks that source can be written for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from ...core.plan import Plan
from .ir import ir_source
from .stablehlo import stablehlo_source


@dataclass(frozen=True, slots=True)
class Each:
    """A part that is written for every operand.

    Attributes:
        plain: if the target places the operand by itself.
        reshaped: if it must be reshaped first.
        unchanged: if it already has the result's shape; None: as `plain`.
    """

    plain: str
    reshaped: str
    unchanged: str | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """A row of the table.

    Attributes:
        parts: texts with fields in braces; empty lines are left out.
        engine: the engine whose limits apply.
        reserved: names that the source itself uses.
        max_rank: most axes that its broadcast takes, if the engine's row has no limit.
        empty: why it cannot take tensors without elements; empty if it can.
        right_aligns: it adds leading ones by itself.
        reads: the source can read open sizes from the operands' shapes.
        certain: it must be certain which axes stretch.
        ascii: names must be ASCII.
        write: writes the source for sizes that are numbers, instead of parts.
    """

    parts: tuple[str | Each, ...]
    engine: str | None = None
    reserved: frozenset[str] = frozenset()
    max_rank: int | None = None
    empty: str = ""
    right_aligns: bool = True
    reads: bool = False
    certain: bool = False
    ascii: bool = False
    write: Callable[[Plan, Sequence[str]], str] | None = None


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
        reads=True,
    )


_REPEAT = '{name} = einops.repeat({name}, "{pattern}"{sizes})'

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

#: The targets of :func:`code`. Limits come from the engines' rows. Limits that are not there (of
#: the functions used here, not of the engine's ops) were measured on the same releases.
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
        "openvino-ir": Target(
            (),
            "openvino",
            empty="OpenVINO dies compiling a Broadcast of an empty tensor",
            write=ir_source,
        ),
        "stablehlo": Target((), "jax", ascii=True, write=stablehlo_source),
        "einops": Target(
            ("import einops\n\n{comment}", Each(_REPEAT, _REPEAT)),
            reserved=frozenset({"einops"}),
            reads=True,
            certain=True,
        ),
        "ncnn": Target(
            _NCNN,
            "ncnn",
            empty="ncnn has no tensors without elements",
            right_aligns=False,
        ),
    }
)
