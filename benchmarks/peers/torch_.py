"""PyTorch, eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ..rows import Array, Task
from .peer import Call, LeftOut, Prepared

_FUNCTIONS: dict[str, Any] = {
    "add": torch.add,
    "less": torch.lt,
    "pow": torch.pow,
    "exp": torch.exp,
    "tanh": torch.tanh,
    "where": torch.where,
    "multiply": torch.mul,
    "divide": torch.div,
    "sigmoid": torch.sigmoid,
}


def prepare(task: Task) -> Prepared:
    """The function of tensors that share the arrays' memory."""
    torch.set_num_threads(task.threads)
    torch.set_grad_enabled(False)
    if any(stride < 0 for array in task.inputs for stride in array.strides):
        raise LeftOut("no negative strides")
    inputs = tuple(map(to_tensor, task.inputs))
    out = None if task.out is None else to_tensor(task.out)
    if task.row.op == "broadcast":
        assert out is not None
        call = Call(out.copy_, inputs)
    elif task.row.in_place:
        call = Call(inputs[0].add_, inputs[1:])
    elif task.row.op in _OWN:
        return _OWN[task.row.op](task, out, *inputs)
    else:
        call = Call(_FUNCTIONS[task.row.op], inputs, {} if out is None else {"out": out})
    return Prepared((call,), lambda returned: to_array(returned, task))


def _clip(task: Task, out: Any, x: Any, low: Any, high: Any) -> Prepared:
    """Bounds of Python are cheaper than tensors."""
    call = Call(torch.clamp, (x, low.item(), high.item()), {"out": out})
    return Prepared((call,), lambda returned: to_array(returned, task))


def _leaky_relu(task: Task, out: Any, x: Any) -> Prepared:
    """torch.nn.functional's takes no output."""
    call = Call(torch._C._nn.leaky_relu, (x, task.row.alpha), {"out": out})
    return Prepared((call,), lambda returned: to_array(returned, task))


def _prelu(task: Task, _: Any, x: Any, slope: Any) -> Prepared:
    """Its slopes are of the second axis, so it gets the operand with the last axis there."""
    channels_first = x.movedim(-1, 1)
    call = Call(torch.prelu, (channels_first, slope.reshape(-1)))
    return Prepared((call,), lambda returned: to_array(returned.movedim(1, -1), task))


def _relu(task: Task, out: Any, x: Any) -> Prepared:
    """Only the first of both takes an output."""
    calls = (Call(torch.clamp_min, (x, 0), {"out": out}), Call(torch.relu, (x,)))
    return Prepared(calls, lambda returned: to_array(returned, task))


#: Ops that are not called as a function of tensors with an output.
_OWN: dict[str, Callable[..., Prepared]] = {
    "clip": _clip,
    "leaky_relu": _leaky_relu,
    "prelu": _prelu,
    "relu": _relu,
}


def to_tensor(array: Array) -> Any:
    """A tensor in an array's memory. bfloat16 travels as the bits that it is."""
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def to_array(tensor: Any, task: Task) -> Array:
    """A tensor as an array of the dtype that is expected."""
    if tensor.dtype == torch.bfloat16:
        return np.asarray(tensor.view(torch.int16).numpy()).view(task.expected.dtype)
    return np.asarray(tensor.numpy())
