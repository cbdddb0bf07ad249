"""numexpr: the expression as text, split at reductions."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from ...peers.peer import Call, LeftOut, Prepared
from ...rows import Array, Task
from .. import functions as f

numexpr: Any = importlib.import_module("numexpr")
necompiler: Any = importlib.import_module("numexpr.necompiler")

_NAMES = {
    "affine": "x mean rstd gamma beta",
    "scale_shift_relu": "x scale shift",
    "gelu_bias": "x bias",
    "gate": "x by",
    "squared_distance": "a b",
    "masked": "scores bias causal keys",
    "normalised_image": "image mean rstd",
    "dequantized_rows": "q scale",
    "dequantized_int8": "q scale",
    "dequantized_int4": "q scale shifts",
    "polynomial": "x",
    "hash_mix": "x",
    "alternating": "a b",
    "chain_20": "x y",
    "small_chain": "x mean rstd gamma beta",
    "model_silu": "x",
    "model_add_prelu": "x y slope",
    "model_scaled_residual": "x y",
    "model_affine_hard_swish": "x",
    "model_add_relu": "x y",
    "model_hard_swish_scaled": "x",
    "model_two_scaled_residuals": "x y z",
    "model_add_relu6": "x y",
}


def _larger(a: str, b: str) -> str:
    """Its maximum is of doubles alone."""
    return f"where({a} > {b}, {a}, {b})"


def _chain() -> str:
    text = "x"
    for _ in range(f.CHAIN_TURNS):
        text = f"({_larger(f'({text} * c0 + y)', 'c1')} - c2)"
    return text


def _horner() -> str:
    return functools.reduce(lambda y, k: f"({y} * x + c{k})", range(1, 9), "c0")


def _between(text: str, low: str, high: str) -> str:
    return f"where({text} < {low}, {low}, where({text} > {high}, {high}, {text}))"


def _hard_swish(text: str) -> str:
    return f"({text} * {_between(f'({text} + three)', 'zero', 'six')} / six)"


_MIXED = "(({0} >> 16) ^ {0}) * mix"
_SOURCES = {
    "affine": "(x - mean) * rstd * gamma + beta",
    "scale_shift_relu": _larger("(x * scale + shift)", "zero"),
    "gelu_bias": "half * (x + bias) * (one + tanh(c0 * ((x + bias) + c1 * (x + bias) * (x + bias)"
    " * (x + bias))))",
    "gate": "x / (one + exp(-by))",
    "squared_distance": "sum((a - b) * (a - b), axis=2)",
    "masked": "where(where(keys, where(causal, scores * c0 + bias, low), low) > cap, cap,"
    " where(keys, where(causal, scores * c0 + bias, low), low))",
    "normalised_image": "(image * c0 - mean) * rstd",
    "dequantized_rows": "q * scale",
    "dequantized_int8": "q * scale",
    "dequantized_int4": "((((q >> shifts) & 15) ^ 8) - 8) * scale",
    "polynomial": _horner(),
    "alternating": _larger("((a + b) * a - b)", "half") + " * b + a",
    "chain_20": _chain(),
    "small_chain": _larger("((x - mean) * rstd * gamma + beta)", "zero"),
    "model_silu": "x / (one + exp(-x))",
    "model_add_prelu": "where(x + y > zero, x + y, (x + y) * slope)",
    "model_scaled_residual": "x * c0 + y",
    "model_affine_hard_swish": f"{_hard_swish('(x * c0 + c1)')} * c2 + c3",
    "model_add_relu": _larger("(x + y)", "zero"),
    "model_hard_swish_scaled": f"{_hard_swish('x')} * c0",
    "model_two_scaled_residuals": "(x * c0 + y) * c0 + z",
    "model_add_relu6": _between("(x + y)", "zero", "six"),
}
_HARD: dict[str, float] = {"zero": 0, "three": 3, "six": 6}
#: Numbers are operands: those in a text are doubles, and make everything double.
_NUMBERS: dict[str, dict[str, float]] = {
    "scale_shift_relu": {"zero": 0},
    "small_chain": {"zero": 0},
    "gelu_bias": {"half": 0.5, "one": 1, "c0": f.GELU[0], "c1": f.GELU[1]},
    "gate": {"one": 1},
    "masked": {"c0": 0.125, "low": f.LOW, "cap": f.CAP},
    "normalised_image": {"c0": 1 / 255},
    "polynomial": {f"c{k}": c for k, c in enumerate(f.COEFFICIENTS)},
    "alternating": {"half": 0.5},
    "chain_20": {f"c{k}": c for k, c in enumerate(f.CHAIN)},
    "model_silu": {"one": 1},
    "model_add_prelu": {"zero": 0},
    "model_scaled_residual": {"c0": f.RESIDUAL},
    "model_affine_hard_swish": _HARD | {f"c{k}": c for k, c in enumerate(f.LEARNED)},
    "model_add_relu": {"zero": 0},
    "model_hard_swish_scaled": _HARD | {"c0": f.SCALE},
    "model_two_scaled_residuals": {"c0": f.RESIDUAL},
    "model_add_relu6": {"zero": 0, "six": 6},
}


class Evaluator:
    """Evaluates texts; each is compiled when it is first met."""

    def __init__(self) -> None:
        self.programs: dict[str, Any] = {}

    def __call__(self, source: str, names: str, *arrays: Any, out: Array | None = None) -> Any:
        """The value of a text in which the arrays have these names."""
        program = self.programs.get(source)
        if program is None:
            types = [necompiler.getType(np.asarray(array)) for array in arrays]
            signature = list(zip(names.split(), types, strict=True))
            program = self.programs[source] = numexpr.NumExpr(source, signature)
        return program(*arrays, out=out, ex_uses_vml=False)


def _softmax(ev: Evaluator, x: Array, out: Array) -> Array:
    last = x.ndim - 1
    top = ev(f"max(x, axis={last})", "x", x)[..., None]
    e = ev("exp(x - top)", "x top", x, top, out=out)
    total = ev(f"sum(e, axis={last})", "e", e)[..., None]
    return ev("e / total", "e total", e, total, out=out)


def _grouped_softmax(ev: Evaluator, scores: Array, seen: Array, out: Array) -> Array:
    numbers = np.float32(0.125), np.float32(f.LOW)
    text = "where(seen, x * eighth, low)"
    return _softmax(ev, ev(text, "x seen eighth low", scores, seen, *numbers, out=out), out)


def _layer_norm(ev: Evaluator, x: Array, gamma: Array, beta: Array, out: Array) -> Array:
    size = np.float32(x.shape[1])
    mean = ev("sum(x, axis=1)", "x", x)[:, None] / size
    centred = ev("x - mean", "x mean", x, mean, out=out)
    variance = ev("sum(c * c, axis=1)", "c", centred)[:, None] / size
    rstd = 1 / np.sqrt(variance + np.float32(f.EPSILON))
    text, names = "c * rstd * gamma + beta", "c rstd gamma beta"
    return ev(text, names, centred, rstd, gamma, beta, out=out)


def _hash_mix(ev: Evaluator, x: Array, out: Array) -> Array:
    text, mix = _MIXED.format("h"), np.int32(f.MIX)
    h = ev(text, "h mix", x, mix, out=out)
    h = ev(text, "h mix", h, mix, out=out)
    return ev("(h >> 16) ^ h", "h", h, out=out)


def _batch_norm_hard_swish(
    ev: Evaluator, x: Array, gamma: Array, beta: Array, mean: Array, variance: Array, out: Array
) -> Array:
    scale = gamma / np.sqrt(variance + np.float32(f.EPSILON))
    shift = beta - mean * scale
    numbers = tuple(map(np.float32, _HARD.values()))
    names = " ".join(["x scale shift", *_HARD])
    return ev(_hard_swish("(x * scale + shift)"), names, x, scale, shift, *numbers, out=out)


_PARTS: dict[str, Callable[..., Array]] = {
    "softmax": _softmax,
    "grouped_softmax": _grouped_softmax,
    "layer_norm": _layer_norm,
    "hash_mix": _hash_mix,
    "model_batch_norm_hard_swish": _batch_norm_hard_swish,
}
_LACKS = {
    "residual_rms_norm": "no bfloat16",
    "black_scholes": "no erf",
    "model_gelu": "no erf",
}


def prepare(task: Task) -> Prepared:
    """The compiled text, or a function of several."""
    name = task.row.name
    if name in _LACKS:
        raise LeftOut(_LACKS[name])
    numexpr.set_num_threads(task.threads)
    ev = Evaluator()
    keywords = {"out": task.out}
    if name in _PARTS:
        return Prepared((Call(_PARTS[name], (ev, *task.inputs), keywords),))
    numbers = _NUMBERS.get(name, {})
    names = " ".join([_NAMES[name], *numbers])
    values = tuple(np.asarray(value, np.float32) for value in numbers.values())
    return Prepared((Call(ev, (_SOURCES[name], names, *task.inputs, *values), keywords),))
