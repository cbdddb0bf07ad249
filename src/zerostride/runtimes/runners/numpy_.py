"""NumPy, which is always installed."""

from __future__ import annotations

import numpy as np

from ...compute.kernels import KERNELS
from . import Runner, library
from .written_out import batch_normalisation, normalisations


def load() -> Runner:
    """NumPy: its own functions, and zerostride's for ops that it lacks."""
    return library(
        np.__version__,
        (ValueError,),
        functions=lambda name: KERNELS[name],
        spreads={"broadcast_to": lambda x, target, _: np.broadcast_to(x, target)},
        compounds={
            "Gemm": lambda attrs, x: np.matmul(x[0], x[1]) + x[2],
            "MatMul": lambda attrs, x: np.matmul(*x),
            "Clip": lambda attrs, x: np.clip(*x, *[None] * (3 - len(x))),
            "BatchNormalization": batch_normalisation,
            **normalisations(np.asarray),
        },
        enter=np.asarray,
        leave=np.asarray,
        named=lambda op, attrs: (op.name, attrs),
    )
