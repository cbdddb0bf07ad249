"""How a program runs on tensors.

It runs by the engine, recorded for gradients, as an op of PyTorch's, or in PyTorch's functions:

=========  =====================================================================================
NATIVE     tensors in this processor's memory: the engine reads them where they lie
RECORDED   the same where a gradient may be asked for: an `autograd.Function` whose backward pass is
           the program of gradients, run the same way, so that it may be differentiated again
OP         while PyTorch traces (torch.compile, torch.export, fake tensors): one op of PyTorch's,
           `zerostride::run`, whose results' shapes are known without values
OWN        on another device, under torch.func, forward-mode gradients and torch.jit.trace, of
           subclasses and of complex numbers with gradients: PyTorch's functions (`ops`)
=========  =====================================================================================
"""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import forward_ad

from ...fusion.evaluate import evaluate
from ...fusion.grad.vjp import GraphProgram
from .data import as_torch, from_numpy, to_numpy
from .ops import Torch

#: PyTorch's messages for a function that a dtype lacks.
_LACKS = re.compile("not implemented|not supported|does not support")
_PLAIN = frozenset({torch.Tensor, torch.nn.Parameter})


class Way(enum.Enum):
    """How a program runs; see the module."""

    NATIVE = enum.auto()
    RECORDED = enum.auto()
    OP = enum.auto()
    OWN = enum.auto()


def way_of(tensors: Sequence[Tensor]) -> Way:
    """How a program of such operands runs.

    Raises:
        TypeError: an operand is sparse, nested or quantized.
    """
    plain, recorded = True, False
    for tensor in tensors:
        plain &= type(tensor) in _PLAIN
        recorded |= tensor.requires_grad
        if tensor.layout is not torch.strided or tensor.is_quantized:
            what = "quantized" if tensor.is_quantized else str(tensor.layout).removeprefix("torch.")
            raise TypeError(
                f"a tensor is {what}, and operands are dense; use to_dense() or dequantize()"
            )
        if not tensor.is_cpu:
            return Way.OWN
    if (
        torch._C._functorch.peek_interpreter_stack() is not None
        or forward_ad._current_level >= 0
        or torch._C._get_tracing_state() is not None
    ):
        return Way.OWN
    if not plain and not all(map(_is_traced, tensors)):
        return Way.OWN
    if not plain or torch._C._len_torch_dispatch_stack():
        return Way.OP
    return Way.RECORDED if recorded and torch.is_grad_enabled() else Way.NATIVE


def _is_traced(tensor: Tensor) -> bool:
    """Whether a tensor is plain, or a stand-in of PyTorch's tracing."""
    kind = type(tensor)
    return kind in _PLAIN or kind.__module__ in (
        "torch._subclasses.fake_tensor",
        "torch._subclasses.functional_tensor",
    )


def why_not_plain(tensor: Any) -> str:
    """Why a fused function cannot capture a tensor; "" for plain data.

    >>> why_not_plain(torch.ones(3)), why_not_plain(torch.ones(3, requires_grad=True))
    ('', 'requires a gradient, which would be lost')
    """
    if not isinstance(tensor, Tensor):
        return "is a number that PyTorch traces"
    if tensor.requires_grad:
        return "requires a gradient, which would be lost"
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return "is traced by torch.func"
    if forward_ad._current_level >= 0 and forward_ad.unpack_dual(tensor).tangent is not None:
        return "has a forward-mode gradient, which would be lost"
    if not tensor.is_cpu:
        return f"lies on {tensor.device}"
    if tensor.layout is not torch.strided or tensor.is_quantized:
        return "is quantized" if tensor.is_quantized else "is sparse"
    if type(tensor) not in _PLAIN:
        name = type(tensor).__name__
        return f"is a {name}, " + (
            "by which PyTorch traces" if _is_traced(tensor) else "no tensor of plain data"
        )
    return ""


def run(program: GraphProgram, values: Sequence[Any]) -> list[Tensor]:
    """The results of a program for tensors and Python numbers, by the way that they need."""
    tensors = [value for value in values if isinstance(value, Tensor)]
    way = way_of(tensors)
    if way is Way.NATIVE:
        return native(program, values)
    if way is Way.OWN or program.odd_dtype:
        return own(program, values)
    if way is Way.OP:
        from .custom_op import run_as_op

        return run_as_op(program, values)
    return list(_Recorded.apply(program, *values))


def native(program: GraphProgram, values: Sequence[Any]) -> list[Tensor]:
    """The results by the engine, for tensors in this processor's memory."""
    arrays = [to_numpy(value) if isinstance(value, Tensor) else value for value in values]
    return [from_numpy(np.asarray(result)) for result in program.run(arrays)]


def own(program: GraphProgram, values: Sequence[Any]) -> list[Tensor]:
    """The results by PyTorch's functions: new tensors, of the operands' subclass if any."""
    device = next(value.device for value in values if isinstance(value, Tensor))
    others = {value.device for value in values if isinstance(value, Tensor)} - {device}
    if others:
        names = " and ".join(sorted(map(str, {device, *others})))
        raise TypeError(f"operands are on {names}; move them to one device with x.to(device)")
    nodes = program.graph.nodes
    try:
        results = evaluate(program.graph, values, Torch(device))
    except (NotImplementedError, RuntimeError) as error:
        if isinstance(error, NotImplementedError) or _LACKS.search(str(error)):
            raise TypeError(
                f"PyTorch has no function for these tensors, of which its own functions compute "
                f"here: {error}; convert them to another dtype"
            ) from error
        raise
    fresh = []
    for k, result in zip(program.graph.outputs, results, strict=True):
        shares = not hasattr(nodes[k], "op") or getattr(nodes[k], "op", "") == "cast"
        fresh.append(_in_kind(result.clone() if shares else result, values))
    return fresh


def _in_kind(result: Tensor, values: Sequence[Any]) -> Tensor:
    """A result that depends on no operand, converted to the operands' class."""
    classes = (value for value in values if isinstance(value, Tensor) and type(value) not in _PLAIN)
    like = next(classes, None)
    if like is None or type(result) is not Tensor:
        return result
    subclassed = like.new_empty(result.shape, dtype=result.dtype)
    return result if type(subclassed) is Tensor else subclassed.copy_(result)


#: Any to a type checker, with PyTorch installed or without.
_Function: Any = torch.autograd.Function


class _Recorded(_Function):  # type: ignore[misc]
    """A program with its gradients."""

    @staticmethod
    def forward(ctx: Any, program: GraphProgram, *values: Any) -> tuple[Tensor, ...]:
        results = native(program, values)
        ctx.program = program
        ctx.numbers = tuple(None if isinstance(value, Tensor) else value for value in values)
        ctx.save_for_backward(*(value for value in values if isinstance(value, Tensor)))
        ctx.mark_non_differentiable(
            *(result for result in results if not result.is_floating_point())
        )
        ctx.set_materialize_grads(False)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor | None) -> tuple[Any, ...]:
        saved = iter(ctx.saved_tensors)
        values = [next(saved) if number is None else number for number in ctx.numbers]
        wanted = ctx.needs_input_grad[1:]
        return (None, *pulled(ctx.program, values, cotangents, wanted))


def pulled(
    program: GraphProgram,
    values: Sequence[Any],
    cotangents: Sequence[Tensor | None],
    wanted: Sequence[bool],
) -> list[Tensor | None]:
    """As :meth:`GraphProgram.pulled`; None for each where all cotangents are 0."""
    if all(cotangent is None for cotangent in cotangents):
        return [None] * len(values)
    device = next(value.device for value in values if isinstance(value, Tensor))

    filled = [
        torch.zeros((), dtype=as_torch(np.dtype(node.dtype)), device=device).expand(node.shape)
        if cotangent is None
        else cotangent
        for node, cotangent in zip(program.outputs, cotangents, strict=True)
    ]
    return program.pulled(values, filled, wanted, run)
