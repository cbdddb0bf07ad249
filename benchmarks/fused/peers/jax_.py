"""JAX on the CPU, jitted."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ...peers.peer import Call, Prepared
from ...rows import VIEWS, Task
from ..namespaces import Functions

FUNCTIONS = Functions(
    real=jnp.float32,
    bfloat16=jnp.bfloat16,
    cast=lambda x, dtype: x.astype(dtype),
    where=jnp.where,
    maximum=jnp.maximum,
    minimum=jnp.minimum,
    exp=jnp.exp,
    log=jnp.log,
    sqrt=jnp.sqrt,
    tanh=jnp.tanh,
    erf=jax.scipy.special.erf,
    sigmoid=jax.nn.sigmoid,
    sum=jnp.sum,
    mean=jnp.mean,
    max=jnp.max,
)


def prepare(task: Task) -> Prepared:
    """A jitted function; views are part of what is jitted."""
    jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call]
    function = task.row.function
    views = [VIEWS[operand.view] for operand in task.row.operands]

    def compute(*arrays: Any) -> Any:
        return function(FUNCTIONS, *(view(a) for view, a in zip(views, arrays, strict=True)))

    inputs = tuple(map(jnp.asarray, task.bases))
    return Prepared((Call(jax.jit(compute), inputs, then=".block_until_ready()"),))
