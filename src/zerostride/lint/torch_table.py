"""PyTorch's functions that broadcast, with the number of their operands.

Left out: functions whose operands have a rank of their own (`matmul`, `cross`), and those that
broadcast because they are asked to (`broadcast_tensors`, `expand`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.nn import functional

#: By name: functions of `torch`, `torch.special` and tensors, in place too.
_NAMES = {
    **dict.fromkeys(
        (
            *("add", "sub", "subtract", "rsub", "mul", "multiply", "div", "divide", "true_divide"),
            *("floor_divide", "pow", "float_power", "fmod", "remainder", "maximum", "minimum"),
            *("fmax", "fmin", "atan2", "arctan2", "hypot", "logaddexp", "logaddexp2", "xlogy"),
            *("xlog1py", "zeta", "copysign", "nextafter", "ldexp", "heaviside", "gcd", "lcm"),
            *("eq", "ne", "not_equal", "lt", "less", "le", "less_equal", "gt", "greater"),
            *("ge", "greater_equal", "logical_and", "logical_or", "logical_xor", "bitwise_and"),
            *("bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"),
            *("isclose", "allclose", "masked_fill", "complex", "polar", "dist"),
        ),
        2,
    ),
    **dict.fromkeys(("where", "lerp", "addcmul", "addcdiv", "clamp", "clip"), 3),
}
#: Operators of tensors; `a - b` is `Tensor.sub`, other operators have functions of their own.
_OPERATORS = (
    *("add", "sub", "mul", "div", "truediv", "floordiv", "mod", "pow", "and", "or", "xor"),
    *("lshift", "rshift", "eq", "ne", "lt", "le", "gt", "ge"),
)
#: Losses that compute with an input and a target of different shapes, at most with a warning.
_LOSSES = (
    *("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "poisson_nll_loss"),
    *("gaussian_nll_loss", "hinge_embedding_loss", "soft_margin_loss"),
    *("multilabel_soft_margin_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits"),
)
#: Arguments by name that are operands, in the order of their places.
NAMED = (
    *("condition", "input", "self", "mask", "other", "exponent", "end", "target"),
    *("tensor1", "tensor2", "min", "max", "weight"),
)


def _functions() -> Iterator[tuple[Any, int]]:
    for name, count in _NAMES.items():
        for place in (torch, torch.special, torch.Tensor):
            for function in (getattr(place, name, None), getattr(place, f"{name}_", None)):
                yield function, count
    for name in _OPERATORS:
        for form in ("__{}__", "__r{}__", "__i{}__"):
            yield getattr(torch.Tensor, form.format(name), None), 2


#: The number of operands of each function. The keys are what a mode receives.
OPERANDS = {function: count for function, count in _functions() if function is not None}
LOSSES = frozenset(getattr(functional, name) for name in _LOSSES)
# One look-up for each call: losses are among the functions.
OPERANDS.update(dict.fromkeys(LOSSES, 2))

__all__ = ["LOSSES", "NAMED", "OPERANDS"]
