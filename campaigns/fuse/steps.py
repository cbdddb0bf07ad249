"""The steps of random fused programs; the builder of `graph` rejects invalid steps."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from zerostride.compute.kernels import KERNELS
from zerostride.errors import BroadcastError
from zerostride.ops import OPS

from ..native.cases import Number, bfloat16, dtype_of
from .cases import SIGNS, SYMBOLS, DrawnStep
from .graph import Builder, Known

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
FLOATS = ("float32", "float64", "float16", "bfloat16")
#: What the engine does not take: the reference computes the whole program.
ODD = ("complex64", "complex128", "longdouble")
MOST_AXES = 6
INT_NUMBERS = (1, 2, 3, 0, 5, 7, -1, 100, 300)
FLOAT_NUMBERS = (0.5, 2.0, 1.0, 0.1, -1.5, 3.0, 1e-5, 0.0, -0.0, 1e10)
_RULES = ("numpy", "pdpd", "paddle", "none", "onnx6", "mnn", "ncnn")

_FLOAT_OPS = MappingProxyType(
    {
        **dict.fromkeys(("add", "subtract", "multiply"), 14),
        **dict.fromkeys(("divide", "maximum", "minimum", "where", "squared_difference"), 5),
        **dict.fromkeys(("exp", "tanh", "sigmoid", "sqrt", "square", "relu", "abs", "clip"), 3),
        **dict.fromkeys(("less", "greater", "equal", "greater_equal", "less_equal"), 2),
    }
)
_INTEGER_OPS = MappingProxyType(
    {
        **dict.fromkeys(("add", "subtract", "multiply"), 8),
        **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor", "where"), 5),
        **dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift", "bitwise_invert"), 4),
        **dict.fromkeys(("maximum", "minimum", "floor_divide", "remainder", "less", "equal"), 4),
        **dict.fromkeys(("negative", "abs", "clip", "square", "sign"), 2),
    }
)
_BOOL_OPS = MappingProxyType(
    dict.fromkeys(
        ("logical_and", "logical_or", "logical_not", "logical_xor", "where", "bitwise_invert"), 4
    )
    | dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor", "add", "multiply"), 2)
)
#: Not drawn: "cast" has its own step.
_OPS = tuple(name for name in OPS if name != "cast")
_WEIGHTS = MappingProxyType(
    {
        "f": tuple(_FLOAT_OPS.get(name, 0.7) for name in _OPS),
        "i": tuple(_INTEGER_OPS.get(name, 0.3) for name in _OPS),
        "b": tuple(_BOOL_OPS.get(name, 0.2) for name in _OPS),
    }
)
_REDUCTIONS = (
    *("sum", "sum", "sum", "mean", "mean", "max", "max", "min", "min", "prod", "any", "all"),
    *("argmax", "argmin", "var", "std", "sum_of_squares", "logsumexp"),
)
#: Methods of values alone, or functions alone.
_ONLY = MappingProxyType(
    {"var": "method", "std": "method", "sum_of_squares": "zs", "logsumexp": "zs"}
)


class Writer:
    """Writes steps that have a meaning."""

    def __init__(self, rng: random.Random, builder: Builder, most: int) -> None:
        self.rng = rng
        self.builder = builder
        self.most = most  # elements of a value
        self.steps: list[DrawnStep] = []
        self.read: set[int] = set()
        self.failures = 0

    @property
    def values(self) -> list[Known]:
        """The values that a step can read: operands, then steps."""
        return self.builder.values

    def step(self) -> None:
        """One more, or one failure more."""
        dice = self.rng.random()
        if dice < 0.76:
            step = self._op()
        elif dice < 0.87:
            step = self._reduction()
        elif dice < 0.92:
            step = self._view()
        elif dice < 0.98:
            step = self._cast()
        else:
            step = self._broadcast()
        self.put(step)

    def put(self, step: DrawnStep | None) -> int | None:
        """The value of a step that has a meaning; None of one that has not."""
        if step is None or self._too_large(step):
            self.failures += 1
            return None
        try:
            place = self.builder.step(step)
        except (BroadcastError, TypeError, ValueError, OverflowError):
            self.failures += 1
            return None
        if math.prod(place.shape) > self.most or len(place.shape) > 2 * MOST_AXES:
            self.builder.values.pop()
            self.failures += 1
            return None
        self.steps.append(step)
        self.read |= {arg for arg in step.args if not isinstance(arg, Number)}
        return len(self.values) - 1

    def _too_large(self, step: DrawnStep) -> bool:
        """Whether a result has more elements than it is to have, seen before it is planned."""
        shapes = [self.values[arg].shape for arg in step.args if not isinstance(arg, Number)]
        rank = max(map(len, shapes))
        if rank > 2 * MOST_AXES:
            return True
        if step.options.get("rule", "numpy") != "numpy":
            return False  # planned first
        padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
        extents = [min(one) if 0 in one else max(one) for one in zip(*padded, strict=True)]
        return bool(math.prod(extents) > self.most)

    def _pick(self, *families: str) -> int:
        """A value; rather a new one, or an operand that is not read yet."""
        count = len(self.values)
        weights = []
        for k, known in enumerate(self.values):
            weight = 1.0 + 3.0 * (k == count - 1) + 2.0 * (k not in self.read)
            if families and known.family not in families:
                weight *= 0.05
            weights.append(weight)
        return self.rng.choices(range(count), weights)[0]

    def _other(self, first: int) -> int:
        """A value beside another one, seldom the same."""
        family = self.values[first].family
        other = self._pick(family)
        return self._pick(family) if other == first and self.rng.random() < 0.85 else other

    def _op(self) -> DrawnStep | None:
        rng = self.rng
        first = self._pick()
        family = self.values[first].family
        name = rng.choices(_OPS, _WEIGHTS.get("i" if family in "iu" else family, _WEIGHTS["f"]))[0]
        op = OPS[name]
        args: list[int | Number] = [first]
        if name == "where":
            condition = [k for k, known in enumerate(self.values) if known.family == "b"]
            args = [rng.choice(condition) if condition and rng.random() < 0.8 else first]
        while len(args) < op.tensors:
            args.append(self._number(first) if rng.random() < 0.2 else self._other(first))
        if op.tensors == 2 and rng.random() < 0.3:
            args.reverse()
        if name == "clip":
            low = Number(rng.choice((0, 1, -1, 0.5))) if rng.random() < 0.7 else self._other(first)
            args = [first, low, Number(rng.choice((2, 6, 100, 1.5)))]
        elif op.parameters and rng.random() < 0.5:
            args += [Number(rng.choice((0.2, 0.5, 1.0, 2, 3.0))) for _ in op.parameters]
        if name == "pow":
            self._tame_power(args)
        if not any(isinstance(arg, int) and not self.values[arg].weak for arg in args):
            return None
        options = self._options(op.tensors, bool(op.parameters) or name == "clip", args)
        return DrawnStep("op", name, tuple(args), options, self._form(name, options, args))

    def _tame_power(self, args: list[int | Number]) -> None:
        """Integers to negative powers are refused; a few of them are left in."""
        base, power = args
        integers = all(
            isinstance(arg, Number) or self.values[arg].family in "iub" for arg in (base, power)
        )
        if integers and self.rng.random() < 0.95:
            args[1] = Number(self.rng.choice((0, 1, 2, 3, 4)))
        elif self.rng.random() < 0.6:
            args[1] = Number(self.rng.choice((2, 3, 0.5, 4, -1, 1, 2.0, 1.5)))

    def _number(self, beside: int) -> Number:
        rng = self.rng
        known = self.values[beside]
        value: Any = rng.choice(INT_NUMBERS if known.family in "iub" else FLOAT_NUMBERS)
        if rng.random() < 0.15:
            value = rng.choice((*INT_NUMBERS[:4], *FLOAT_NUMBERS[:3], True))
        elif rng.random() < 0.15 and known.dtype not in ODD and known.dtype != "float128":
            with np.errstate(all="ignore"):
                value = np.array([abs(value)]).astype(dtype_of(known.dtype))[0]
        return Number(value)

    def _options(self, tensors: int, parameters: bool, args: Sequence[Any]) -> dict[str, Any]:
        rng = self.rng
        options: dict[str, Any] = {}
        if tensors == 2 and not parameters and rng.random() < 0.1:
            options["rule"] = rng.choice(_RULES)
            shapes = [() if isinstance(arg, Number) else self.values[arg].shape for arg in args]
            if options["rule"] in ("pdpd", "paddle", "onnx6"):
                options["axis"] = rng.randint(0, max(len(shapes[0]) - 1, 0))
            if options["rule"] == "onnx6":
                options["broadcast"] = 1
        if rng.random() < 0.03:
            options["dtype"] = rng.choice(FLOATS[:3])
        return options

    def _form(self, name: str, options: dict[str, Any], args: Sequence[Any]) -> str:
        dice = self.rng.random()
        # A NumPy scalar on the left would be asked first.
        asked = isinstance(args[0], Number) and isinstance(args[0].value, np.generic)
        if name == "pow" and not isinstance(args[0], Number):
            # To NumPy their ** 2 is a square, of other dtypes than their power.
            asked = self.values[args[0]].dtype in ("bool", "bfloat16")
        if not options and (name in SYMBOLS or name in SIGNS) and dice < 0.55 and not asked:
            return "operator"
        plain = "rule" not in options
        if plain and isinstance(KERNELS[name], np.ufunc) and dice > 0.8:
            return "numpy"
        return "zs"

    def _reduction(self) -> DrawnStep | None:
        rng = self.rng
        arg = self._pick()
        known = self.values[arg]
        if known.weak:
            return None
        name = rng.choice(_REDUCTIONS)
        if known.family in "iub" and name == "prod" and rng.random() < 0.5:
            name = "sum"
        options: dict[str, Any] = {}
        rank = len(known.shape)
        dice = rng.random()
        if rank and dice < 0.5:
            options["axis"] = rng.choice((-1, -1, rng.randrange(rank)))
        elif rank and dice < 0.85:
            options["axis"] = tuple(sorted(rng.sample(range(rank), rng.randint(1, min(rank, 3)))))
        if rng.random() < 0.65:
            options["keepdims"] = True
        form = _ONLY.get(name) or ("method" if rng.random() < 0.3 else "zs")
        return DrawnStep("reduce", name, (arg,), options, form)

    def _view(self) -> DrawnStep | None:
        rng = self.rng
        arg = self._pick()
        shape = self.values[arg].shape
        if self.values[arg].weak:
            return None
        dice = rng.random()
        if shape and dice < 0.5:
            axes = tuple(rng.sample(range(len(shape)), len(shape)))
            return DrawnStep("view", "transpose", (arg,), {"axes": axes})
        if dice < 0.75 and 0 not in shape:
            wanted = [size for size in shape if size != 1 or rng.random() < 0.5]
            wanted.insert(rng.randint(0, len(wanted)), 1)
            return DrawnStep("view", "reshape", (arg,), {"shape": tuple(wanted)})
        key: list[Any] = [":"] * rng.randint(0, len(shape))
        key.insert(rng.randint(0, len(key)), None)
        key.append("...")
        return DrawnStep("view", "index", (arg,), {"key": tuple(key)})

    def _cast(self) -> DrawnStep | None:
        rng = self.rng
        arg = self._pick()
        if self.values[arg].weak or self.values[arg].family == "c":
            return None
        floats = FLOATS if bfloat16() else FLOATS[:3]
        dtype = rng.choice((*floats, *floats, *INTEGERS, "bool"))
        form = "method" if rng.random() < 0.5 else "zs"
        return DrawnStep("cast", "cast", (arg,), {"dtype": dtype}, form)

    def _broadcast(self) -> DrawnStep | None:
        rng = self.rng
        arg = self._pick()
        shape = tuple(
            size if size != 1 else rng.choice((1, 2, 3)) for size in self.values[arg].shape
        )
        if self.values[arg].weak:
            return None
        target = (rng.choice((1, 2, 3)), *shape) if rng.random() < 0.4 else shape
        return DrawnStep("broadcast", "broadcast", (arg,), {"target_shape": target})

    # What people write

    def idiom(self) -> None:
        """The first steps of a softmax, a norm, or a distance."""
        rng = self.rng
        x = self._pick("f")
        if not self.values[x].shape or self.values[x].weak or self.values[x].family == "c":
            return
        rank = len(self.values[x].shape)
        axis = -1 if rng.random() < 0.7 else rng.randrange(rank)
        over = {"axis": axis, "keepdims": True}
        dice = rng.random()
        if dice < 0.35:
            self._softmax(x, over)
        elif dice < 0.7:
            self._norm(x, over, centred=dice < 0.5)
        else:
            other = self._pick("f")
            difference = self.put(DrawnStep("op", "subtract", (x, other), {}, "operator"))
            square = self._then("square", difference)
            if square is not None and self.values[square].shape:
                self.put(DrawnStep("reduce", "sum", (square,), {"axis": -1}))

    def _then(self, name: str, *args: int | Number | None) -> int | None:
        if None in args:
            return None
        form = "operator" if name in SYMBOLS else "zs"
        return self.put(
            DrawnStep("op", name, tuple(arg for arg in args if arg is not None), {}, form)
        )

    def _total(self, name: str, arg: int | None, over: dict[str, Any]) -> int | None:
        return None if arg is None else self.put(DrawnStep("reduce", name, (arg,), dict(over)))

    def _softmax(self, x: int, over: dict[str, Any]) -> None:
        powers = self._then("exp", self._then("subtract", x, self._total("max", x, over)))
        self._then("divide", powers, self._total("sum", powers, over))

    def _norm(self, x: int, over: dict[str, Any], *, centred: bool) -> None:
        values: int | None = x
        if centred:
            values = self._then("subtract", x, self._total("mean", x, over))
        spread = self._total("mean", self._then("square", values), over)
        scale = self._then("rsqrt", self._then("add", spread, Number(1e-5)))
        self._then("multiply", values, scale)
