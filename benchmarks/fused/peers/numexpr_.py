"""numexpr: the expression as text, split at reductions."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from ...peers.peer import Call, LeftOut, Prepared
from ...rows import Array, Task
from .. import functions as f
from .texts import HARD, MIXED, NAMES, NUMBERS, SOURCES, hard_swish

numexpr: Any = importlib.import_module("numexpr")
necompiler: Any = importlib.import_module("numexpr.necompiler")


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
    text, mix = MIXED.format("h"), np.int32(f.MIX)
    h = ev(text, "h mix", x, mix, out=out)
    h = ev(text, "h mix", h, mix, out=out)
    return ev("(h >> 16) ^ h", "h", h, out=out)


def _batch_norm_hard_swish(
    ev: Evaluator, x: Array, gamma: Array, beta: Array, mean: Array, variance: Array, out: Array
) -> Array:
    scale = gamma / np.sqrt(variance + np.float32(f.EPSILON))
    shift = beta - mean * scale
    numbers = tuple(map(np.float32, HARD.values()))
    names = " ".join(["x scale shift", *HARD])
    return ev(hard_swish("(x * scale + shift)"), names, x, scale, shift, *numbers, out=out)


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
    numbers = NUMBERS.get(name, {})
    names = " ".join([NAMES[name], *numbers])
    values = tuple(np.asarray(value, np.float32) for value in numbers.values())
    return Prepared((Call(ev, (SOURCES[name], names, *task.inputs, *values), keywords),))
