"""Random programs of differentiable ops, drawn with values away from kinks.

A program is operands and steps; each step reads operands, earlier steps, or numbers. It is drawn
by computing it: a step whose arguments are outside of the op's domain, or so near to where it has
no derivative that rounding could decide, is drawn again.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import zerostride as zs
from zerostride.errors import BroadcastError
from zerostride.fusion.grad.table import STEPS
from zerostride.ops import COMPARISONS, OPS

from .program import (
    CLEAR,
    LARGEST,
    SMOOTH,
    Argument,
    Array,
    Element,
    Reduction,
    Shape,
    SmoothProgram,
    Step,
    Turn,
    apply,
    far,
    value_of,
)

#: Steps of a program, and elements of any of its values: enough for every axis to matter.
MOST_STEPS, MOST_ELEMENTS = 12, 240
#: Draws of one step before the program is left as it is.
_TRIES = 40
_RULES = ("numpy", "numpy", "numpy", "pdpd", "paddle", "ncnn", "mnn", "onnx6", "bidirectional")


#: Functions of one or more tensors, parameters left to their defaults or drawn.
ELEMENTS = tuple(
    name
    for name, op in OPS.items()
    if name not in ("cast", "nextafter")
    and not name.startswith(("bitwise", "logical", "is"))
    and name not in COMPARISONS
)
REDUCTIONS = (
    "sum",
    "sum",
    "mean",
    "mean",
    "prod",
    "min",
    "max",
    "sum_of_squares",
    "logsumexp",
)


# Drawing


def draw(seed: int, case: int) -> SmoothProgram:
    """The program of a seed and a number."""
    rng = random.Random(f"{seed}:{case}")
    numbers = np.random.default_rng([seed, case])
    operands = [_operand(rng, numbers, _shape(rng)) for _ in range(rng.choice((1, 1, 1, 2)))]
    if all(x.dtype != np.float64 for x in operands):
        operands[0] = _operand(rng, numbers, operands[0].shape, "float64")
    # Operands may still be added while steps are drawn, so steps are told apart by numbers from
    # 1,000 on until all is drawn.
    values: dict[int, Array] = dict(enumerate(operands))
    steps: list[Step] = []
    for _ in range(rng.randint(1, MOST_STEPS)):
        drawn = _step(rng, numbers, values, operands)
        if drawn is None:
            break
        step, value = drawn
        values[_FIRST + len(steps)] = value
        steps.append(step)
    return _finished(rng, operands, steps, values)


#: Numbers of steps while operands are still added.
_FIRST = 1000


def _finished(
    rng: random.Random, operands: list[Array], steps: list[Step], values: dict[int, Array]
) -> SmoothProgram:
    def number(arg: Argument) -> Argument:
        if not isinstance(arg, int) or arg < _FIRST:
            return arg
        return arg - _FIRST + len(operands)

    def place(arg: int) -> int:
        return int(number(arg))

    entries: list[Step] = []
    for step in steps:
        match step:
            case Element(op, args, options):
                entries.append(Element(op, tuple(map(number, args)), options))
            case Reduction(op, arg, axis, keepdims):
                entries.append(Reduction(op, place(arg), axis, keepdims))
            case Turn(arg, order, new):
                entries.append(Turn(place(arg), order, new))
    read = {arg for step in entries for arg in _read(step)}
    count = len(operands) + len(entries)
    # All that nobody reads is a result, so that gradients come from everywhere.
    outputs = [k for k in range(len(operands), count) if k not in read] or [count - 1]
    floats = [place(k) for k, value in values.items() if value.dtype == np.float64]
    while rng.random() < 0.2:
        outputs.append(rng.choice(floats))
    return SmoothProgram(tuple(operands), tuple(entries), tuple(outputs))


def _read(step: Step) -> tuple[Argument, ...]:
    """The values that a step reads, numbers aside."""
    args = step.args if isinstance(step, Element) else (step.arg,)
    return tuple(arg for arg in args if isinstance(arg, int))


def _shape(rng: random.Random) -> Shape:
    shape = tuple(rng.choice((1, 2, 2, 3, 3, 4, 5)) for _ in range(rng.choice((0, 1, 2, 2, 3, 4))))
    while np.prod(shape) > MOST_ELEMENTS // 2:
        shape = shape[1:]
    return shape


def _operand(
    rng: random.Random, numbers: np.random.Generator, shape: Shape, dtype: str | None = None
) -> Array:
    """Values of both signs with any strides; sometimes integers or truth values."""
    dtype = dtype or rng.choices(("float64", "int64", "bool"), (12, 1, 1))[0]
    larger = tuple(n * rng.choice((1, 1, 2)) for n in shape)
    if dtype == "float64":
        low = rng.choice((-3.0, -1.0, 0.3, 1.2))
        data = numbers.uniform(low, max(low + 1, rng.choice((0.9, 3.0))), larger)
    else:
        data = numbers.integers(0 if dtype == "bool" else -3, 4, larger).astype(dtype)
    order = list(range(len(shape)))
    if rng.random() < 0.3:
        rng.shuffle(order)
        data = data.transpose(order).copy(order="C").transpose(np.argsort(order))
    view = _stepped(data, [wide // n for wide, n in zip(larger, shape, strict=True)])
    if rng.random() < 0.15:
        view = _stepped(view, [rng.choice((1, -1)) for _ in shape])
    if shape and rng.random() < 0.1:
        axis = rng.randrange(len(shape))
        view = np.broadcast_to(view.take([0], axis), shape)
    return view


def _stepped(x: Array, steps: list[int]) -> Array:
    """Every so manieth element along each axis; at rank 0 an array, too."""
    index: tuple[Any, ...] = (*(slice(None, None, step) for step in steps), ...)
    view: Array = x[index]
    return view


def _step(
    rng: random.Random,
    numbers: np.random.Generator,
    values: dict[int, Array],
    operands: list[Array],
) -> tuple[Step, Array] | None:
    """A step that is smooth, with its value; None if none was found."""
    for _ in range(_TRIES):
        fresh: list[Array] = []
        dice = rng.random()
        step: Step | None
        if dice < 0.16:
            step = _reduction(rng, values)
        elif dice < 0.22:
            step = _turn(rng, values)
        else:
            step = _element(rng, numbers, values, len(operands), fresh)
        if step is None:
            continue
        extended = values | {len(operands) + k: x for k, x in enumerate(fresh)}
        value = _judged(step, extended)
        if value is not None:
            values.update(extended)
            operands += fresh
            return step, value
    return None


def _judged(step: Step, values: dict[int, Array]) -> Array | None:
    """A step's value, or None where it is not smooth, too large or refused by the rule."""
    held = _Held(values)
    if isinstance(step, Element):
        smooth = SMOOTH.get(step.op)
        try:
            plan = zs.plan(
                *(np.shape(value_of(arg, held)) for arg in step.args), **dict(step.options)
            )
        except BroadcastError:
            return None
        if np.prod(plan.shape) > MOST_ELEMENTS:
            return None
        views = [plan.view(k, value_of(arg, held)) for k, arg in enumerate(step.args)]
        if smooth is not None and not smooth(*views):
            return None
    if isinstance(step, Reduction) and not _reducible(step, held[step.arg]):
        return None
    value = np.asarray(apply(step, held))
    if value.dtype != np.float64 or not np.all(np.abs(value) < LARGEST):
        return None
    return value


class _Held(list[Array]):
    """Values by their numbers while a program is drawn."""

    def __init__(self, values: dict[int, Array]) -> None:
        super().__init__()
        self.values = values

    def __getitem__(self, place: Any) -> Any:
        return self.values[place]


def _reducible(step: Reduction, x: Array) -> bool:
    """Whether the least or largest is one by a margin, and a product far from 0."""
    if step.op == "prod":
        return far(x)
    if step.op not in ("min", "max"):
        return True
    axes = tuple(range(x.ndim)) if step.axis is None else step.axis
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    rows = x.transpose(*kept, *axes).reshape(*(x.shape[axis] for axis in kept), -1)
    if rows.shape[-1] < 2:
        return True
    rows = np.sort(rows if step.op == "max" else -rows, axis=-1)
    return bool(np.all(rows[..., -1] - rows[..., -2] > CLEAR))


def _floats(values: dict[int, Array]) -> list[int]:
    return [k for k, value in values.items() if value.dtype == np.float64]


def _latest(rng: random.Random, places: list[int]) -> int:
    """Rather a late one, so that programs are deep."""
    return places[-1] if rng.random() < 0.7 else rng.choice(places)


def _reduction(rng: random.Random, values: dict[int, Array]) -> Step:
    arg = _latest(rng, _floats(values))
    rank = values[arg].ndim
    axis: tuple[int, ...] | None = tuple(k for k in range(rank) if rng.random() < 0.5)
    if rng.random() < 0.2 or not axis:
        axis = None
    return Reduction(rng.choice(REDUCTIONS), arg, axis, rng.random() < 0.6)


def _turn(rng: random.Random, values: dict[int, Array]) -> Step | None:
    arg = _latest(rng, _floats(values))
    order = list(range(values[arg].ndim))
    rng.shuffle(order)
    new = rng.randint(0, len(order)) if rng.random() < 0.4 and len(order) < 5 else None
    return Turn(arg, tuple(order), new)


def _element(
    rng: random.Random,
    numbers: np.random.Generator,
    values: dict[int, Array],
    count: int,
    fresh: list[Array],
) -> Step:
    """An op on values that there are, on new operands (added to `fresh`) or on numbers."""
    op = OPS[rng.choice(ELEMENTS)]
    if op.name in STEPS and rng.random() < 0.7:  # they end what gradients flow through
        op = OPS[rng.choice(ELEMENTS)]
    first = _latest(rng, _floats(values))
    options: dict[str, Any] = {}
    args: list[Argument] = [first]
    if op.tensors > 1 and op.name not in ("where", "clip"):
        options["rule"] = rng.choice(_RULES)
        if options["rule"] in ("pdpd", "paddle", "onnx6") and rng.random() < 0.8:
            options["axis"] = rng.randint(0, max(values[first].ndim - 1, 0))
        if options["rule"] == "onnx6":
            options["broadcast"] = 1
    for k in range(1, op.operands):
        dice = rng.random()
        if dice < 0.2 or (k >= op.tensors and dice < 0.7):
            args.append(rng.choice((0.1, 0.5, 1.0, 2.0, 3.0, -0.5, -2.0, rng.uniform(-2, 2))))
        elif dice < 0.6:
            args.append(rng.choice(list(values)))
        else:
            fresh.append(_operand(rng, numbers, _beside(rng, values[first].shape)))
            args.append(count + len(fresh) - 1)
    if op.name == "where":  # the condition comes first
        conditions = [k for k, value in values.items() if value.dtype == bool]
        if conditions and rng.random() < 0.7:
            args[2] = first
            args[0] = rng.choice(conditions)
        else:
            fresh.append(_operand(rng, numbers, _beside(rng, values[first].shape), "bool"))
            args[0] = count + len(fresh) - 1
            args[1] = first
    elif len(args) > 1 and rng.random() < 0.3 and op.tensors == 2:
        args[:2] = args[1::-1]
    return Element(op.name, tuple(args), tuple(options.items()))


def _beside(rng: random.Random, shape: Shape) -> Shape:
    """A shape that some rule may combine with another one."""
    sizes = [1 if rng.random() < 0.25 else n for n in shape]
    first = rng.randint(0, len(sizes)) if rng.random() < 0.5 else 0
    last = rng.randint(first, len(sizes)) if rng.random() < 0.4 else len(sizes)
    if rng.random() < 0.1:
        first, sizes = 0, [rng.choice((1, 2, 3)), *sizes[:4]]
    return tuple(sizes[first:last])
