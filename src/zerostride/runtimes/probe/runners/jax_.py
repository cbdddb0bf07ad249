"""JAX on the CPU."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..case import Array, Shape
from . import Attrs, Perform, Runner, elementwise


def load() -> Runner:
    """Imports JAX, kept off accelerators."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    jax: Any = importlib.import_module("jax")
    jnp: Any = importlib.import_module("jax.numpy")

    def array(function: Callable[..., Any]) -> Perform:
        return elementwise(
            lambda *operands: function(*map(jnp.asarray, operands)), lambda r: np.asarray(r)
        )

    def broadcast_to(attrs: Attrs, operands: Sequence[Array], target: Shape) -> Array:
        return np.asarray(jnp.broadcast_to(jnp.asarray(operands[0]), target))

    def in_dim(attrs: Attrs, operands: Sequence[Array], target: Shape) -> Array:
        axes = tuple(attrs["broadcast_dimensions"])
        return np.asarray(jax.lax.broadcast_in_dim(jnp.asarray(operands[0]), target, axes))

    return Runner(
        str(jax.__version__),
        {
            "add": array(jnp.add),
            "subtract": array(jnp.subtract),
            "lax.add": array(jax.lax.add),
            "broadcast_to": broadcast_to,
            "broadcast_in_dim": in_dim,
        },
        (ValueError, TypeError),
    )
