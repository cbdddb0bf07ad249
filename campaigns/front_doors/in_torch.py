"""Models of one node or two as PyTorch modules, and the door by which those get to LiteRT."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from zerostride.models.findings import Outcome
from zerostride.runtimes.convert.torch_program import archive_of, write_litert

from ..models.random_nodes import Array
from .draw import Model

Function = Callable[..., Any]


@cache
def _functions() -> Mapping[str, Function]:
    """An op of ONNX as people write it in PyTorch; its keywords are the node's attributes."""
    import torch
    from torch.nn import functional as F  # noqa: N812 - its usual name

    def gemm(a: Any, b: Any, c: Any, transA: int = 0, transB: int = 0) -> Any:  # noqa: N803
        return torch.addmm(c, a.T if transA else a, b.T if transB else b)

    def mod(a: Any, b: Any, fmod: int = 0) -> Any:
        return torch.fmod(a, b) if fmod else torch.remainder(a, b)

    def div(a: Any, b: Any) -> Any:
        return a / b if a.is_floating_point() else torch.div(a, b, rounding_mode="trunc")

    def shift(a: Any, b: Any, direction: str = "LEFT") -> Any:
        return a << b if direction == "LEFT" else a >> b

    def layer_norm(x: Any, scale: Any, bias: Any, axis: int = -1) -> Any:
        return F.layer_norm(x, x.shape[axis:], scale, bias)

    def rms_norm(x: Any, scale: Any, axis: int = -1) -> Any:
        return F.rms_norm(x, x.shape[axis:], scale)

    def group_norm(x: Any, scale: Any, bias: Any, num_groups: int = 1) -> Any:
        return F.group_norm(x, num_groups, scale, bias)

    def conv(x: Any, weight: Any, bias: Any = None) -> Any:
        return (F.conv1d, F.conv2d)[x.ndim - 3](x, weight, bias)

    binary = (
        "Add:add Sub:sub Mul:mul Pow:pow And:logical_and Or:logical_or Xor:logical_xor "
        "BitwiseAnd:bitwise_and BitwiseOr:bitwise_or BitwiseXor:bitwise_xor Equal:eq Greater:gt "
        "Less:lt GreaterOrEqual:ge LessOrEqual:le Max:maximum Min:minimum MatMul:matmul "
        "Where:where Clip:clamp"
    )
    named = dict(pair.split(":") for pair in binary.split(" "))
    return MappingProxyType(
        {
            **{op: getattr(torch, name) for op, name in named.items()},
            "BatchNormalization": lambda x, s, b, m, v: F.batch_norm(x, m, v, s, b),
            "BitShift": shift,
            "Conv": conv,
            "Div": div,
            "Expand": lambda x, target: x.expand(tuple(target)),
            "Gemm": gemm,
            "GroupNormalization": group_norm,
            "InstanceNormalization": lambda x, s, b: F.instance_norm(x, weight=s, bias=b),
            "LayerNormalization": layer_norm,
            "Mod": mod,
            "PRelu": F.prelu,
            "RMSNormalization": rms_norm,
        }
    )


#: Ops of any number of operands, and how many they have in PyTorch.
_OPERANDS: Mapping[str, int] = MappingProxyType({"Max": 2, "Min": 2})


def writes(model: Model) -> bool:
    """Whether there is a module of the model."""
    return model.opset >= 13 and all(
        step.op in _functions() and _OPERANDS.get(step.op, len(step.reads)) == len(step.reads)
        for step in model.steps
    )


def module_of(model: Model, arrays: Mapping[str, Array]) -> tuple[Any, tuple[Any, ...]]:
    """A module, with constants as buffers, and its example inputs."""
    import torch

    functions = _functions()

    class Drawn(torch.nn.Module):  # type: ignore[misc]  # PyTorch is not there for mypy
        def __init__(self) -> None:
            super().__init__()
            for part in model.operands:
                if part.constant and part.given is None:
                    self.register_buffer(part.name, torch.from_numpy(arrays[part.name]))

        def forward(self, *inputs: Any) -> Any:
            values: dict[str, Any] = dict(zip(names, inputs, strict=True))
            values |= dict(self.named_buffers())
            values |= fixed
            for step in model.steps:
                read = [values[name] for name in step.reads]
                values[step.result] = functions[step.op](*read, **step.attributes)
            return values["y"]

    names = [part.name for part in model.operands if not part.constant]
    fixed = {part.name: part.given.tolist() for part in model.operands if part.given is not None}
    return Drawn().eval(), tuple(torch.from_numpy(np.array(arrays[name])) for name in names)


class LitertTorch:
    """litert-torch in a process of its own, which stays: a start takes seconds."""

    def __init__(self) -> None:
        self._pool = self._start()

    @staticmethod
    def _start() -> ProcessPoolExecutor:
        return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _quiet)

    def __call__(self, program: Any, goal: Path) -> tuple[Outcome, str] | None:
        """Converts a program to a file; the outcome and the reason where that failed."""
        archive = goal.with_suffix(".pt2")
        archive.write_bytes(archive_of(program, program))
        try:
            failed = self._pool.submit(_convert, str(archive), str(goal)).result()
        except BrokenProcessPool:
            self._pool = self._start()
            return Outcome.CRASHED, "litert-torch ended its process"
        return None if failed is None else (Outcome.REFUSED, failed)

    def close(self) -> None:
        """Ends the process."""
        self._pool.shutdown()


def _quiet() -> None:
    import logging
    import os
    import warnings

    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(1, 2)
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)


def _convert(archive: str, goal: str) -> str | None:
    import torch

    shapes = [
        tuple(node.meta["val"].shape)
        for node in torch.export.load(archive).graph.nodes
        if node.op == "placeholder" and not node.name.startswith("b_")
    ]
    try:
        write_litert(archive, goal, shapes)
    except Exception as error:  # noqa: BLE001 - whatever it raises is an answer
        lines = [line for line in str(error).splitlines() if line.strip()]
        return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]
    return None
