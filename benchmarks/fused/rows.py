"""The rows: an expression of `functions` each, with its operands and its result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..rows import Operand, Row, Shape, Task, aligned, dtype_of, make_operands, matching
from . import functions
from .namespaces import float64

#: Errors that are no mistake: some roundings of float32, one of bfloat16. A sum in plain order over
#: a thousand numbers is within it, half of float32's digits are not.
_TOLERANCE = {"float32": 4e-5, "bfloat16": 8e-3, "int32": None}


@dataclass(frozen=True)
class FusedRow(Row):
    """A row of the table."""

    #: The expression: a function of a library and of the operands.
    function: Callable[..., Any] = functions.affine
    #: The expression as a reader sees it.
    formula: str = ""
    #: The result's shape.
    shape: Shape = ()

    @property
    def title(self) -> str:
        """The row as a formula."""
        return self.formula


def _row(
    name: str, formula: str, shape: Shape, *operands: Shape | Operand, **more: Any
) -> FusedRow:
    made = tuple(o if isinstance(o, Operand) else Operand(o) for o in operands)
    dtype = more.get("dtype", "float32")
    function = getattr(functions, name)
    tolerance = _TOLERANCE[dtype]
    return FusedRow(
        name, made, tolerance=tolerance, function=function, formula=formula, shape=shape, **more
    )


def _signed(*shape: int, dtype: str = "") -> Operand:
    return Operand(shape, dtype=dtype, low=-2.0, high=2.0)


def _wide(*shape: int) -> Operand:
    """Values on both sides of the ends of a hard swish, -3 and 3."""
    return Operand(shape, low=-6.0, high=6.0)


_IMAGE = (1080, 1920, 3)
_ROWS: tuple[FusedRow, ...] = (
    _row(
        "affine",
        "(x − mean) · rstd · gamma + beta, (4096,1024), per row and per column",
        (4096, 1024),
        _signed(4096, 1024),
        (4096, 1),
        (4096, 1),
        (1024,),
        (1024,),
    ),
    _row(
        "scale_shift_relu",
        "max(x · scale + shift, 0), (8,64,56,56), per channel",
        (8, 64, 56, 56),
        _signed(8, 64, 56, 56),
        (64, 1, 1),
        (64, 1, 1),
    ),
    _row(
        "gelu_bias",
        "gelu(x + bias) by tanh, (4096,1024)",
        (4096, 1024),
        _signed(4096, 1024),
        (1024,),
    ),
    _row(
        "gate",
        "x · sigmoid(g), g transposed, (2048,2048)",
        (2048, 2048),
        _signed(2048, 2048),
        Operand((2048, 2048), "ᵀ", low=-2.0, high=2.0),
    ),
    _row(
        "squared_distance",
        "sum((a − b)², last axis), (2000,1,16) − (1,2000,16)",
        (2000, 2000),
        _signed(2000, 1, 16),
        _signed(1, 2000, 16),
    ),
    _row("softmax", "softmax over rows, (4096,1024)", (4096, 1024), _signed(4096, 1024)),
    _row(
        "layer_norm",
        "layer norm over rows, (4096,1024)",
        (4096, 1024),
        _signed(4096, 1024),
        (1024,),
        (1024,),
    ),
    _row(
        "masked",
        "where(keys, where(causal, x / 8 + bias, low), low), cut at 2, (8,12,128,128)",
        (8, 12, 128, 128),
        Operand((8, 12, 128, 128), low=-16.0, high=16.0),
        (12, 1, 1),
        Operand((128, 128), dtype="bool"),
        Operand((8, 1, 1, 128), dtype="bool"),
    ),
    _row(
        "grouped_softmax",
        "softmax over keys of where(causal, x / 8, low), 8 key heads, 4 queries each, 256 x 256",
        (2, 8, 4, 256, 256),
        Operand((2, 8, 4, 256, 256), low=-16.0, high=16.0),
        Operand((256, 256), dtype="bool"),
    ),
    _row(
        "dequantized_rows",
        "q · scale, int8 (4096,4096), a scale for each row",
        (4096, 4096),
        Operand((4096, 4096), dtype="int8"),
        (4096, 1),
    ),
    _row(
        "dequantized_int8",
        "q · scale, int8 (4096,4096), a scale for each block of 32",
        (4096, 128, 32),
        Operand((4096, 128, 32), dtype="int8"),
        (4096, 128, 1),
    ),
    _row(
        "dequantized_int4",
        "q · scale, int4 (4096,4096), two in a byte, a scale for each block of 32",
        (4096, 128, 16, 2),
        Operand((4096, 128, 16, 1), dtype="uint8"),
        (4096, 128, 1, 1),
        Operand((2,), dtype="uint8", values=(0, 4)),
    ),
    _row(
        "normalised_image",
        "(uint8 image / 255 − mean) · rstd, (1080,1920,3)",
        _IMAGE,
        Operand(_IMAGE, dtype="uint8"),
        (3,),
        (3,),
    ),
    _row(
        "residual_rms_norm",
        "RMS norm of x + residual over rows, (4096,1024)",
        (4096, 1024),
        _signed(4096, 1024),
        _signed(4096, 1024),
        (1024,),
        dtype="bfloat16",
    ),
    _row("polynomial", "polynomial of degree 8, (4194304,)", (1 << 22,), _signed(1 << 22)),
    _row(
        "hash_mix", "shifts, xors and products, (4194304,)", (1 << 22,), (1 << 22,), dtype="int32"
    ),
    _row(
        "black_scholes",
        "price of a call, (1048576,)",
        (1 << 20,),
        Operand((1 << 20,), low=80.0, high=120.0),
        Operand((1 << 20,), low=90.0, high=110.0),
        Operand((1 << 20,), low=0.25, high=2.0),
    ),
    _row(
        "alternating",
        "max((a + b) · a − b, ½) · b + a, (8,1,8,1,16,1) and (1,8,1,16,1,16)",
        (8, 8, 8, 16, 16, 16),
        (8, 1, 8, 1, 16, 1),
        (1, 8, 1, 16, 1, 16),
    ),
    _row(
        "chain_20",
        "five times max(x · ¾ + y, 0.1) − 0.05, (4194304,)",
        (1 << 22,),
        _signed(1 << 22),
        _signed(1 << 22),
    ),
    _row(
        "small_chain",
        "max((x − mean) · rstd · gamma + beta, 0), (32,64)",
        (32, 64),
        _signed(32, 64),
        (32, 1),
        (32, 1),
        (64,),
        (64,),
    ),
)


#: The ten most frequent chains of the models that `python -m campaigns chains` counts, in the order
#: of that count; the shapes are the most frequent ones, for a batch of 1. The factors,
#: addends and limits of a model are constants.
_MODEL_ROWS: tuple[FusedRow, ...] = (
    _row(
        "model_silu",
        "x · sigmoid(x), (1,96,26,26)",
        (1, 96, 26, 26),
        _signed(1, 96, 26, 26),
    ),
    _row(
        "model_add_prelu",
        "prelu(x + y), (1,2,2,128), a slope per column",
        (1, 2, 2, 128),
        _signed(1, 2, 2, 128),
        _signed(1, 2, 2, 128),
        (1, 1, 128),
    ),
    _row(
        "model_scaled_residual",
        "x · 0.2 + y, (64,64,64)",
        (64, 64, 64),
        _signed(64, 64, 64),
        _signed(64, 64, 64),
    ),
    _row(
        "model_affine_hard_swish",
        "hard_swish(x · c0 + c1) · c2 + c3, (1,240,12,80)",
        (1, 240, 12, 80),
        _wide(1, 240, 12, 80),
    ),
    _row(
        "model_add_relu",
        "max(x + y, 0), (1,12,128,62)",
        (1, 12, 128, 62),
        _signed(1, 12, 128, 62),
        _signed(1, 12, 128, 62),
    ),
    _row(
        "model_hard_swish_scaled",
        "hard_swish(x) · c, (1,240,12,80)",
        (1, 240, 12, 80),
        _wide(1, 240, 12, 80),
    ),
    _row(
        "model_two_scaled_residuals",
        "(x · 0.2 + y) · 0.2 + z, (64,64,64)",
        (64, 64, 64),
        _signed(64, 64, 64),
        _signed(64, 64, 64),
        _signed(64, 64, 64),
    ),
    _row(
        "model_batch_norm_hard_swish",
        "hard_swish(batch norm of x), (1,256,14,14), per channel",
        (1, 256, 14, 14),
        _wide(1, 256, 14, 14),
        (256, 1, 1),
        (256, 1, 1),
        (256, 1, 1),
        (256, 1, 1),
    ),
    _row(
        "model_gelu",
        "gelu(x) by erf, (1,128,20,20)",
        (1, 128, 20, 20),
        _signed(1, 128, 20, 20),
    ),
    _row(
        "model_add_relu6",
        "min(max(x + y, 0), 6), (1,2,2,288)",
        (1, 2, 2, 288),
        _wide(1, 2, 2, 288),
        _wide(1, 2, 2, 288),
    ),
)


def choose(patterns: str) -> list[FusedRow]:
    """The rows whose names match one of the patterns, parted by commas; all of them for "".

    Raises:
        ValueError: a pattern matches no row.
    """
    return matching(patterns, [*_ROWS, *_MODEL_ROWS])


def another(row: FusedRow) -> FusedRow:
    """What is computed before a row where no part of a library is to be new: a small one."""
    small, other = choose("small_chain")[0], choose("scale_shift_relu")[0]
    return small if row.name != small.name else other


def make_task(row: FusedRow, threads: int, *, judged: bool = True) -> Task:
    """A row's arrays; what is right is computed in float64, unless nobody is judged by it."""
    bases, inputs = make_operands(row)
    out = aligned(row.shape, dtype_of(row.dtype))
    expected = _right(row, inputs) if judged else out
    return Task(row, threads, bases, inputs, expected, out, None)


def _right(row: FusedRow, inputs: tuple[np.ndarray, ...]) -> np.ndarray:
    wide = [a if a.dtype.kind in "biu" else a.astype(np.float64) for a in inputs]
    found = np.asarray(row.function(float64, *wide))
    assert found.shape == row.shape, row.name
    return found.astype(dtype_of(row.dtype))
