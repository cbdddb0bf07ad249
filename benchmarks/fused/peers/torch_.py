"""PyTorch, eager: the plain expression, or the library's own function where it has one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.functional import batch_norm, gelu, hardswish, layer_norm, relu6, rms_norm, silu

from ...peers.peer import Call, Prepared
from ...peers.torch_ import to_array, to_tensor
from ...rows import Task
from ..functions import EPSILON, LEARNED, LOW, RESIDUAL, SCALE
from ..namespaces import Functions


def _maximum(x: Any, y: Any) -> Any:
    return torch.maximum(x, y) if isinstance(y, torch.Tensor) else torch.clamp_min(x, y)


def _minimum(x: Any, y: Any) -> Any:
    return torch.minimum(x, y) if isinstance(y, torch.Tensor) else torch.clamp_max(x, y)


FUNCTIONS = Functions(
    real=torch.float32,
    bfloat16=torch.bfloat16,
    cast=lambda x, dtype: x.to(dtype),
    where=torch.where,
    maximum=_maximum,
    minimum=_minimum,
    exp=torch.exp,
    log=torch.log,
    sqrt=torch.sqrt,
    tanh=torch.tanh,
    erf=torch.erf,
    sigmoid=torch.sigmoid,
    sum=lambda x, axis, keepdims=False: torch.sum(x, axis, keepdims),
    mean=lambda x, axis, keepdims=False: torch.mean(x, axis, keepdims),
    max=lambda x, axis, keepdims=False: torch.amax(x, axis, keepdims),
)


def _prelu(x: Any, slope: Any) -> Any:
    """Its slopes are of the second axis."""
    return torch.prelu(x.movedim(-1, 1), slope.reshape(-1)).movedim(1, -1)


def _batch_norm_hard_swish(x: Any, gamma: Any, beta: Any, mean: Any, variance: Any) -> Any:
    gamma, beta, mean, variance = (v.reshape(-1) for v in (gamma, beta, mean, variance))
    return hardswish(batch_norm(x, mean, variance, gamma, beta, eps=EPSILON))


#: By row: what computes the same.
_OWN: dict[str, Callable[..., Any]] = {
    "gelu_bias": lambda x, bias: gelu(x + bias, approximate="tanh"),
    "softmax": lambda x: torch.softmax(x, -1),
    "grouped_softmax": lambda x, seen: torch.softmax(torch.where(seen, x * 0.125, LOW), -1),
    "layer_norm": lambda x, gamma, beta: layer_norm(x, x.shape[-1:], gamma, beta, EPSILON),
    "residual_rms_norm": lambda x, y, gamma: rms_norm(x + y, x.shape[-1:], gamma, EPSILON),
    "model_silu": silu,
    "model_add_prelu": lambda x, y, slope: _prelu(x + y, slope),
    "model_scaled_residual": lambda x, y: torch.add(y, x, alpha=RESIDUAL),
    "model_affine_hard_swish": lambda x: (
        hardswish(x * LEARNED[0] + LEARNED[1]) * LEARNED[2] + LEARNED[3]
    ),
    "model_add_relu": lambda x, y: torch.relu(x + y),
    "model_hard_swish_scaled": lambda x: hardswish(x) * SCALE,
    "model_two_scaled_residuals": lambda x, y, z: torch.add(
        z, torch.add(y, x, alpha=RESIDUAL), alpha=RESIDUAL
    ),
    "model_batch_norm_hard_swish": _batch_norm_hard_swish,
    "model_gelu": gelu,
    "model_add_relu6": lambda x, y: relu6(x + y),
}


def expression(task: Task) -> Callable[..., Any]:
    """The row's function of tensors."""
    function = task.row.function

    def computed(*tensors: Any) -> Any:
        return function(FUNCTIONS, *tensors)

    return computed


def tensors(task: Task) -> tuple[Any, ...]:
    """The operands, and PyTorch told how many threads it has."""
    torch.set_num_threads(task.threads)
    torch.set_grad_enabled(False)
    return tuple(map(to_tensor, task.inputs))


def prepare(task: Task) -> Prepared:
    """Functions of tensors that share the arrays' memory."""
    operands = tensors(task)
    ways = [expression(task)]
    if task.row.name in _OWN:
        ways.append(_OWN[task.row.name])
    return Prepared(
        tuple(Call(way, operands) for way in ways), lambda returned: to_array(returned, task)
    )
