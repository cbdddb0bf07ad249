"""Fused rows as texts in numexpr's syntax, which blosc2 reads too."""

from __future__ import annotations

import functools

from .. import functions as f

NAMES = {
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


def hard_swish(text: str) -> str:
    """x · clip(x + 3, 0, 6) / 6 of a text."""
    return f"({text} * {_between(f'({text} + three)', 'zero', 'six')} / six)"


MIXED = "(({0} >> 16) ^ {0}) * mix"
SOURCES = {
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
    "model_affine_hard_swish": f"{hard_swish('(x * c0 + c1)')} * c2 + c3",
    "model_add_relu": _larger("(x + y)", "zero"),
    "model_hard_swish_scaled": f"{hard_swish('x')} * c0",
    "model_two_scaled_residuals": "(x * c0 + y) * c0 + z",
    "model_add_relu6": _between("(x + y)", "zero", "six"),
}
HARD: dict[str, float] = {"zero": 0, "three": 3, "six": 6}
#: Numbers are operands: those in a text are doubles, and make everything double.
NUMBERS: dict[str, dict[str, float]] = {
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
    "model_affine_hard_swish": HARD | {f"c{k}": c for k, c in enumerate(f.LEARNED)},
    "model_add_relu": {"zero": 0},
    "model_hard_swish_scaled": HARD | {"c0": f.SCALE},
    "model_two_scaled_residuals": {"c0": f.RESIDUAL},
    "model_add_relu6": {"zero": 0, "six": 6},
}
