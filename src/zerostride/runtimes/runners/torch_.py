"""PyTorch on the CPU, eager."""

from __future__ import annotations

import importlib
from typing import Any

from . import Attrs, Function, Runner, epsilon_of, library, own_names


def load() -> Runner:
    """Imports PyTorch."""
    torch: Any = importlib.import_module("torch")
    nn: Any = importlib.import_module("torch.nn.functional")
    return library(
        str(torch.__version__),
        (RuntimeError, ValueError),
        functions=lambda name: getattr(torch, name),
        spreads={
            "expand": lambda x, target, _: x.expand(target),
            "broadcast_to": lambda x, target, _: torch.broadcast_to(x, target),
        },
        compounds=compounds(torch, nn),
        enter=torch.from_numpy,
        leave=lambda result: result.numpy(),
        named=own_names("torch"),
    )


def compounds(torch: Any, nn: Any) -> dict[str, Function]:
    """Functions of attributes and operands by ONNX op.

    Args:
        torch: the package.
        nn: its torch.nn.functional.
    """

    def axes(attrs: Attrs, data: Any) -> list[int]:
        return list(data.shape[attrs.get("axis", -1) :])

    return {
        "Gemm": lambda attrs, x: torch.addmm(x[2], x[0], x[1]),
        "MatMul": lambda attrs, x: torch.matmul(*x),
        "Clip": lambda attrs, x: torch.clamp(*x),
        "BatchNormalization": lambda attrs, x: nn.batch_norm(
            x[0], x[3], x[4], x[1], x[2], eps=epsilon_of(attrs)
        ),
        "InstanceNormalization": lambda attrs, x: nn.instance_norm(
            x[0], None, None, x[1], x[2], eps=epsilon_of(attrs)
        ),
        "GroupNormalization": lambda attrs, x: nn.group_norm(
            x[0], attrs["num_groups"], x[1], x[2], epsilon_of(attrs)
        ),
        "LayerNormalization": lambda attrs, x: nn.layer_norm(
            x[0], axes(attrs, x[0]), *x[1:], eps=epsilon_of(attrs)
        ),
        "RMSNormalization": lambda attrs, x: nn.rms_norm(
            x[0], axes(attrs, x[0]), x[1], eps=epsilon_of(attrs)
        ),
        "PRelu": lambda attrs, x: nn.prelu(*x),
    }
