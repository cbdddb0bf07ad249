"""Rows of the array libraries NumPy, PyTorch, TensorFlow and JAX, and of ExecuTorch."""

from __future__ import annotations

from dataclasses import replace

from ..core.rules import RULES
from ..errors import Reason
from ..ops import OPS
from . import aligns, limits
from .model import Divergence, Engine, always
from .rows import (
    NUMPY_RULE,
    ONE_SLOPE,
    ONE_WAY,
    frozen,
    measured,
    modes,
    rows,
)

_TORCH = measured("PyTorch 2.13.0")
_NP = measured("NumPy 2.5.5")
#: The full run was of 0.10; on 0.12 the probe's cases were run.
_JAX = "JAX 0.10.2, run: 20,000 generated cases by value; 0.12.0, run: 4,637; 0 disagreements"
_TF = measured("TensorFlow 2.21.0")
_EXECUTORCH = (
    "ExecuTorch 1.5.1, portable kernels, run: 420 generated cases by value, 0 disagreements"
)

_IN_DIM = replace(RULES["explicit"], align=aligns.jax_dims, silent=frozenset({Reason.WRONG_RESULT}))
_LAX = replace(
    NUMPY_RULE, align=aligns.equal_ranks_or_scalar, summary="Operands of one rank, or scalars."
)

NUMPY = Engine(
    "numpy",
    "2.5",
    "numpy",
    "numpy",
    _NP,
    rows(NUMPY_RULE, source=_NP),
    modes(_NP, numpy=ONE_WAY),
    divergences=(
        Divergence(
            "subtract does not take truth values",
            Reason.DTYPE,
            _NP,
            strikes=always,
            ops=frozen("subtract"),
            dtypes=frozen("bool"),
        ),
        Divergence(
            "bitwise ops and shifts do not take floats",
            Reason.DTYPE,
            _NP,
            strikes=always,
            ops=frozen("bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift"),
            dtypes=frozen("float16 float32 float64"),
        ),
    ),
    also=("2.2", "2.3", "2.4"),
)

TORCH = Engine(
    "torch",
    "2.13",
    "torch",
    "torch",
    _TORCH,
    rows(NUMPY_RULE, source=_TORCH),
    modes(_TORCH, numpy=ONE_WAY),
    ops={"prelu": rows(ONE_SLOPE, source=_TORCH)},
    keeps=True,
    divergences=(
        Divergence(
            "the CPU has no kernels for uint16, uint32 and uint64 but to multiply, divide, select "
            "and ask for equality",
            Reason.DTYPE,
            _TORCH,
            strikes=always,
            ops=frozen(
                "add subtract floor_divide remainder fmod pow maximum minimum fmax fmin heaviside "
                "less less_equal greater greater_equal logical_and logical_or logical_xor "
                "bitwise_left_shift bitwise_right_shift prelu"
            ),
            dtypes=frozen("uint16 uint32 uint64"),
        ),
        Divergence(
            "prelu has no kernel for integers and truth values",
            Reason.DTYPE,
            _TORCH,
            strikes=always,
            ops=frozen("prelu"),
            dtypes=frozen("int8 uint8 int16 int32 int64 bool"),
        ),
    ),
)

#: Ops of PyTorch that are not of its core, which alone ExecuTorch lowers.
_NOT_LOWERED = frozen(
    "fmax fmin hypot copysign nextafter logaddexp2 bitwise_left_shift bitwise_right_shift"
)

EXECUTORCH = Engine(
    "executorch",
    "1.5",
    "executorch",
    "executorch",
    _EXECUTORCH,
    rows(replace(NUMPY_RULE, max_rank=16), source=_EXECUTORCH),
    modes(_EXECUTORCH, numpy=replace(ONE_WAY, max_rank=16)),
    ops={"prelu": rows(replace(ONE_SLOPE, max_rank=16), source=_EXECUTORCH)},
    tensor_rank=16,
    keeps=True,
    has=frozenset(op.name for op in OPS.values() if "torch" in op.names) - _NOT_LOWERED,
)

TENSORFLOW = Engine(
    "tensorflow",
    "2.21",
    "tensorflow-cpu",
    "tensorflow",
    _TF,
    rows(replace(NUMPY_RULE, check=limits.tensorflow_runs), source=_TF),
    modes(_TF, numpy=replace(ONE_WAY, check=limits.tensorflow_runs)),
    ops={
        "where": rows(replace(NUMPY_RULE, check=limits.tensorflow_where), source=_TF),
    },
    divergences=(
        Divergence(
            "operands whose axes do not merge into 5 runs are refused "
            "(UnimplementedError), unless the result is empty; XLA lifts that",
            Reason.RANK_LIMIT,
            _TF,
        ),
        Divergence(
            "where (SelectV2) refuses more than 8 axes, unless the result is empty",
            Reason.RANK_LIMIT,
            _TF,
        ),
        Divergence(
            "the operator == on shapes that do not combine is False, not an error",
            Reason.WRONG_RESULT,
            _TF,
        ),
    ),
)

JAX = Engine(
    "jax",
    "0.12",
    "jax",
    "jax",
    _JAX,
    rows(NUMPY_RULE, source=_JAX),
    modes(_JAX, numpy=ONE_WAY, explicit=_IN_DIM),
    ops={"lax.add": rows(_LAX, source=_JAX)},
    divergences=(
        Divergence(
            "broadcast_in_dim with no dimensions returns data of the target's rank "
            "unchanged, whatever the target",
            Reason.WRONG_RESULT,
            _JAX,
        ),
        Divergence(
            "broadcast_in_dim ignores unsorted dimensions when the data have the "
            "target's shape: they come back untransposed",
            Reason.WRONG_RESULT,
            _JAX,
        ),
    ),
    also=("0.10",),
)
