"""PyTorch's torch.compile: loops of C++, compiled by the system's compiler."""

from __future__ import annotations

import shutil
from typing import Any

import torch

from ...peers.peer import Call, LeftOut, Prepared
from ...peers.torch_ import to_array, to_tensor
from ...rows import Task
from .torch_ import expression, tensors


def prepare(task: Task) -> Prepared:
    """The compiled function: one that returns its result, and one that copies it into `out`."""
    if not any(map(shutil.which, ("g++", "clang++"))):
        raise LeftOut("needs a C++ compiler")
    # Rows share the functions below: after eight of them it would compile no more, and say nothing.
    torch._dynamo.reset()
    operands = tensors(task)
    computed = expression(task)
    assert task.out is not None
    out = to_tensor(task.out)

    def into(out: Any, *tensors: Any) -> Any:
        return out.copy_(computed(*tensors))

    calls = (
        Call(torch.compile(computed, dynamic=False), operands),
        Call(torch.compile(into, dynamic=False), (out, *operands)),
    )
    return Prepared(calls, lambda returned: to_array(returned, task))
