"""Programs of differentiable ops as data, and the smooth ranges of each op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import zerostride as zs

Array = NDArray[Any]
Shape = tuple[int, ...]
#: An operand or a step, by its number (operands first), or a number of the program.
Argument = int | float

#: Values and slopes stay below this, so that errors do.
LARGEST = 100.0
#: How far from a kink or a pole values stay.
CLEAR = 1e-3


@dataclass(frozen=True, slots=True)
class Element:
    """An op of the op table under a rule."""

    op: str
    args: tuple[Argument, ...]
    options: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Reduction:
    """A reduction of one value over some axes; None for all."""

    op: str
    arg: int
    axis: tuple[int, ...] | None
    keepdims: bool


@dataclass(frozen=True, slots=True)
class Turn:
    """The axes in another order, and then one of extent 1 put in at `new`, if that is a place."""

    arg: int
    order: tuple[int, ...]
    new: int | None


Step = Element | Reduction | Turn


@dataclass(frozen=True, slots=True)
class SmoothProgram:
    """Operands, steps, and which values are the results."""

    operands: tuple[Array, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]

    def __call__(self, *operands: Any) -> Any:
        """Runs it: on arrays, or on what a fused function is traced with."""
        values = list(operands)
        for step in self.steps:
            values.append(apply(step, values))
        results = tuple(values[k] for k in self.outputs)
        return results if len(results) > 1 else results[0]


def apply(step: Step, values: Sequence[Any]) -> Any:
    """A step on the values before it."""
    match step:
        case Element(op, args, options):
            return getattr(zs, op)(*(value_of(arg, values) for arg in args), **dict(options))
        case Reduction(op, arg, axis, keepdims):
            return getattr(zs, op)(values[arg], axis=axis, keepdims=keepdims)
        case Turn(arg, order, new):
            turned = values[arg].transpose(order) if order else values[arg]
            if new is None:
                return turned
            return turned[(*[slice(None)] * new, None)]


def value_of(arg: Argument, values: Sequence[Any]) -> Any:
    """The value of an argument."""
    return values[arg] if isinstance(arg, int) else arg


def source(program: SmoothProgram) -> str:
    """The program as Python, with the operands' shapes and strides."""
    count = len(program.operands)
    names = [f"x{k}" for k in range(count)] + [f"v{k}" for k in range(len(program.steps))]
    lines = [
        f"{name} = array({x.shape}, {x.dtype}, strides={x.strides})"
        for name, x in zip(names, program.operands, strict=False)
    ]
    for name, step in zip(names[count:], program.steps, strict=True):
        lines.append(f"{name} = {_written(step, names)}")
    return "\n".join([*lines, f"return {', '.join(names[k] for k in program.outputs)}"])


def _written(step: Step, names: Sequence[str]) -> str:
    match step:
        case Element(op, args, options):
            listed = [names[arg] if isinstance(arg, int) else repr(arg) for arg in args]
            return f"zs.{op}({', '.join([*listed, *(f'{k}={v!r}' for k, v in options)])})"
        case Reduction(op, arg, axis, keepdims):
            return f"zs.{op}({names[arg]}, axis={axis}, keepdims={keepdims})"
        case Turn(arg, order, new):
            put = "" if new is None else f"[{':, ' * new}None]"
            return f"{names[arg]}.transpose({order}){put}"


# Where an op is smooth.


def off(x: Any, *kinks: float) -> bool:
    """Whether no element is near one of these numbers."""
    return all(bool(np.all(np.abs(np.subtract(x, kink)) > CLEAR)) for kink in kinks)


def _inside(low: float, high: float) -> Callable[[Any], bool]:
    return lambda x: bool(np.all((np.asarray(x) > low) & (np.asarray(x) < high)))


def far(x: Any) -> bool:
    """Whether no element is so near 0 that its reciprocal is large."""
    return bool(np.all(np.abs(x) > 0.2))


def _whole(a: Any, b: Any) -> bool:
    """Whether a quotient is far from 0 in its divisor and from whole numbers."""
    return far(b) and _fraction(np.divide(a, b))


def _fraction(x: Any) -> bool:
    return off(np.subtract(x, np.round(x)), 0.0)


def _positive(x: Any) -> bool:
    return bool(np.all(np.asarray(x) > 0.2))


#: For each differentiable op, whether it is smooth at its arguments; those that are not named are
#: smooth everywhere.
SMOOTH: dict[str, Callable[..., bool]] = {
    "divide": lambda a, b: far(b),
    "remainder": _whole,
    "fmod": _whole,
    "pow": lambda a, b: _inside(0.3, 5)(a) and _inside(-3, 3)(b),
    **dict.fromkeys(
        ("maximum", "minimum", "fmax", "fmin"), lambda a, b: off(np.subtract(a, b), 0.0)
    ),
    "heaviside": lambda a, b: off(a, 0.0),
    "copysign": lambda a, b: off(a, 0.0) and off(b, 0.0),
    "hypot": lambda a, b: far(np.hypot(a, b)),
    "atan2": lambda a, b: far(np.hypot(a, b)),
    "clip": lambda x, low, high: (
        off(np.subtract(x, low), 0.0)
        and off(np.subtract(x, high), 0.0)
        and bool(np.all(np.less(low, high)))
    ),
    "abs": lambda x: off(x, 0.0),
    "sqrt": _positive,
    "rsqrt": _positive,
    "reciprocal": far,
    "exp": _inside(-20, 4),
    "expm1": _inside(-20, 4),
    **dict.fromkeys(("log", "log2", "log10"), _positive),
    "log1p": _inside(-0.8, LARGEST),
    "tan": lambda x: bool(np.all(np.abs(np.cos(x)) > 0.2)),
    **dict.fromkeys(("asin", "acos", "atanh"), _inside(-0.9, 0.9)),
    "sinh": _inside(-4, 4),
    "cosh": _inside(-4, 4),
    "acosh": _inside(1.1, LARGEST),
    **dict.fromkeys(("prelu", "leaky_relu"), lambda x, slope: off(x, 0.0)),
    "relu": lambda x: off(x, 0.0),
    "thresholded_relu": lambda x, alpha: off(np.subtract(x, alpha), 0.0),
    "elu": lambda x, alpha: off(x, 0.0),
    "selu": lambda x, alpha, gamma: off(x, 0.0),
    "celu": lambda x, alpha: off(x, 0.0) and _positive(alpha),
    "softsign": lambda x: off(x, 0.0),
    "hard_sigmoid": lambda x, alpha, beta: off(np.multiply(x, alpha) + beta, 0.0, 1.0),
    "hard_swish": lambda x: off(x, -3.0, 3.0),
    "shrink": lambda x, bias, lambd: (
        off(np.subtract(x, lambd), 0.0) and off(np.add(x, lambd), 0.0) and _positive(lambd)
    ),
    **dict.fromkeys(("sign", "floor", "ceil", "trunc"), _fraction),
    "round": lambda x: _fraction(np.subtract(x, 0.5)),
    "floor_divide": _whole,
}
