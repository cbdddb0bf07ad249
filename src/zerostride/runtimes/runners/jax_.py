"""JAX on the CPU, with its defaults."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from . import Runner, library, own_names
from .written_out import batch_normalisation, normalisations


def load() -> Runner:
    """Imports JAX, kept off accelerators."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    jax: Any = importlib.import_module("jax")
    jnp: Any = importlib.import_module("jax.numpy")

    def function_of(name: str) -> Callable[..., Any]:
        home, _, word = name.rpartition(".")
        function: Callable[..., Any] = getattr(jax.lax if home == "lax" else jnp, word)
        return function

    return library(
        str(jax.__version__),
        (ValueError, TypeError),
        functions=function_of,
        spreads={
            "broadcast_to": lambda x, target, _: jnp.broadcast_to(x, target),
            "broadcast_in_dim": lambda x, target, attrs: jax.lax.broadcast_in_dim(
                x, target, tuple(attrs["broadcast_dimensions"])
            ),
        },
        compounds={
            "Gemm": lambda attrs, x: jnp.matmul(x[0], x[1]) + x[2],
            "MatMul": lambda attrs, x: jnp.matmul(*x),
            "Clip": lambda attrs, x: jnp.clip(*x),
            "BatchNormalization": batch_normalisation,
            **normalisations(jnp.asarray),
        },
        enter=jnp.asarray,
        leave=np.asarray,
        named=own_names("jax"),
    )
