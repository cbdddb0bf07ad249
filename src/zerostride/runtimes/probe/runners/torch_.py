"""PyTorch on the CPU, eager."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..case import Array, Shape
from . import Attrs, Perform, Runner


def load() -> Runner:
    """Imports PyTorch."""
    torch: Any = importlib.import_module("torch")

    def tensors(function: Callable[..., Any]) -> Perform:
        def perform(attrs: Attrs, operands: Sequence[Array], target: Shape) -> Array:
            result: Array = function(*map(torch.from_numpy, operands)).numpy()
            return result

        return perform

    def to(function: Callable[..., Any]) -> Perform:
        def perform(attrs: Attrs, operands: Sequence[Array], target: Shape) -> Array:
            return np.array(function(torch.from_numpy(operands[0]), target).numpy())

        return perform

    return Runner(
        str(torch.__version__),
        {
            "add": tensors(torch.add),
            "sub": tensors(torch.sub),
            "where": tensors(torch.where),
            "prelu": tensors(torch.nn.functional.prelu),
            "expand": to(lambda data, target: data.expand(target)),
            "broadcast_to": to(torch.broadcast_to),
        },
        (RuntimeError, ValueError),
    )
