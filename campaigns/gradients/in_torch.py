"""The same programs in PyTorch: every op written out, every operand aligned by its Plan."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import zerostride as zs

from .program import Array, Element, Reduction, SmoothProgram, Turn


def functions(torch: Any) -> Mapping[str, Callable[..., Any]]:
    """For each op of the table that may have a gradient, PyTorch's function of laid out tensors."""
    f = torch.nn.functional
    where = torch.where

    def copied(name: str) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(torch, name)
        return function

    def clip(x: Any, low: Any, high: Any) -> Any:
        return torch.clip(x, low, high)

    def selu(x: Any, alpha: Any, gamma: Any) -> Any:
        return gamma * where(x > 0, x, alpha * torch.expm1(torch.minimum(x, 0 * x)))

    return {
        **{
            name: copied(name)
            for name in (
                *("add", "subtract", "multiply", "divide", "remainder", "fmod", "pow"),
                *("maximum", "minimum", "fmax", "fmin", "copysign", "hypot", "atan2"),
                *("logaddexp", "logaddexp2", "where", "negative", "abs", "sign", "sqrt", "rsqrt"),
                *("reciprocal", "square", "exp", "expm1", "log", "log1p", "log2", "log10", "sin"),
                *("cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh"),
                *("atanh", "sigmoid", "erf", "floor", "ceil", "round", "trunc", "relu"),
            )
        },
        "clip": clip,
        "floor_divide": lambda a, b: torch.div(a, b, rounding_mode="floor"),
        "positive": lambda x: x.clone(),
        # PyTorch has no gradient of it: its second argument is the result where the first is 0.
        "heaviside": lambda a, b: where(a == 0, b, (a > 0).to(b.dtype)),
        "squared_difference": lambda a, b: (a - b) ** 2,
        "prelu": lambda x, slope: where(x < 0, x * slope, x),
        "leaky_relu": lambda x, alpha: where(x < 0, x * alpha, x),
        "thresholded_relu": lambda x, alpha: where(x > alpha, x, 0.0),
        "elu": lambda x, alpha: where(x > 0, x, alpha * torch.expm1(torch.minimum(x, 0 * x))),
        "selu": selu,
        "celu": lambda x, alpha: where(
            x > 0, x, alpha * torch.expm1(torch.minimum(x, 0 * x) / alpha)
        ),
        "gelu": f.gelu,
        "gelu_tanh": lambda x: f.gelu(x, approximate="tanh"),
        # PyTorch's own stops being smooth at its threshold of 20.
        "softplus": lambda x: torch.logaddexp(x, torch.zeros_like(x)),
        "softsign": f.softsign,
        "mish": lambda x: x * torch.tanh(torch.logaddexp(x, torch.zeros_like(x))),
        "swish": lambda x, alpha: x * torch.sigmoid(alpha * x),
        "hard_sigmoid": lambda x, alpha, beta: torch.clip(alpha * x + beta, 0, 1),
        "hard_swish": f.hardswish,
        "shrink": lambda x, bias, lambd: where(
            x < -lambd, x + bias, where(x > lambd, x - bias, 0.0)
        ),
    }


def reductions(torch: Any) -> Mapping[str, Callable[[Any, tuple[int, ...], bool], Any]]:
    """For each reduction, PyTorch's, of a tensor, axes and whether they stay."""

    def prod(x: Any, axes: tuple[int, ...], keep: bool) -> Any:
        for axis in sorted(axes, reverse=True):
            x = torch.prod(x, axis, keepdim=keep)
        return x

    return {
        "sum": lambda x, axes, keep: torch.sum(x, axes, keepdim=keep),
        "mean": lambda x, axes, keep: torch.mean(x, axes, keepdim=keep),
        "prod": prod,
        "min": lambda x, axes, keep: torch.amin(x, axes, keepdim=keep),
        "max": lambda x, axes, keep: torch.amax(x, axes, keepdim=keep),
        "sum_of_squares": lambda x, axes, keep: torch.sum(x * x, axes, keepdim=keep),
        "logsumexp": lambda x, axes, keep: torch.logsumexp(x, axes, keepdim=keep),
    }


class Judged:
    """PyTorch's results and gradients of a program, and the largest intermediate value.

    Attributes:
        results: the outputs' values.
        gradients: for each operand, an array, or None where it has none.
        scale: the largest cotangent times the largest value of any node, at least 1: rounding
            errors are in proportion to it.
    """

    def __init__(self, program: SmoothProgram, cotangents: Sequence[Array] | None = None) -> None:
        import torch

        leaves = []
        for array in program.operands:
            leaf = torch.from_numpy(array.copy(order="C"))
            leaves.append(leaf.requires_grad_() if leaf.is_floating_point() else leaf)
        values = _values(torch, program, leaves)
        held = [value for value in values if value.requires_grad]
        for value in held:
            value.retain_grad()
        outputs = [values[k] for k in program.outputs]
        self.results = [output.detach().numpy() for output in outputs]
        if cotangents is not None:
            pairs = [
                (output, torch.from_numpy(given.copy()))
                for output, given in zip(outputs, cotangents, strict=True)
                if output.requires_grad
            ]
            if pairs:
                # One scalar, so that a node that is an output twice has both cotangents.
                sum((output * given).sum() for output, given in pairs).backward()
        self.gradients = [
            None
            if not leaf.requires_grad
            else torch.zeros_like(leaf).numpy()
            if leaf.grad is None
            else leaf.grad.numpy()
            for leaf in leaves
        ]
        sizes = [1.0]
        for value in held:
            if value.grad is not None and value.numel():
                size = max(1.0, float(value.detach().abs().max()))
                sizes.append(size * float(value.grad.abs().max()))
        self.scale = max(sizes) if all(map(math.isfinite, sizes)) else math.inf


def _values(torch: Any, program: SmoothProgram, leaves: Sequence[Any]) -> list[Any]:
    """Every value of the program as a tensor."""
    elements, folds = functions(torch), reductions(torch)
    values = list(leaves)
    for step in program.steps:
        match step:
            case Element(op, args, options):
                given = [
                    values[arg] if isinstance(arg, int) else torch.tensor(arg, dtype=torch.float64)
                    for arg in args
                ]
                plan = zs.plan(*(tuple(x.shape) for x in given), **dict(options))
                laid = [
                    x.reshape(aligned).expand(plan.shape)
                    for x, aligned in zip(given, plan.aligned, strict=True)
                ]
                # As NumPy promotes them; PyTorch computes integers among numbers in float32.
                first = 1 if op == "where" else 0
                laid[first:] = [x.to(torch.float64) for x in laid[first:]]
                values.append(elements[op](*laid))
            case Reduction(op, arg, axis, keepdims):
                x = values[arg]
                axes = tuple(range(x.ndim)) if axis is None else axis
                values.append(folds[op](x, axes, keepdims) if x.ndim else _of_one(op, x))
            case Turn(arg, order, new):
                turned = values[arg].permute(order)
                values.append(turned if new is None else turned.unsqueeze(new))
    return values


def _of_one(op: str, x: Any) -> Any:
    """A reduction of a tensor without axes."""
    return x * x if op == "sum_of_squares" else x.clone()
