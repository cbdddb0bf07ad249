"""JAX on the CPU."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ..rows import VIEWS, Task
from .peer import Call, LeftOut, Prepared, no_in_place

_FUNCTIONS: dict[str, Any] = {
    "add": jnp.add,
    "less": jnp.less,
    "pow": jnp.power,
    "exp": jnp.exp,
    "tanh": jnp.tanh,
    "where": jnp.where,
    "multiply": jnp.multiply,
    "divide": jnp.divide,
    "clip": jnp.clip,
    "relu": jax.nn.relu,
    "leaky_relu": lambda x, alpha: jax.nn.leaky_relu(x, alpha),
    "prelu": lambda x, slope: jnp.where(x > 0, x, x * slope),
    "sigmoid": jax.nn.sigmoid,
}


def prepare(task: Task) -> Prepared:
    """A jitted function, compiled."""
    no_in_place(task, "JAX")
    if not task.expected.flags.c_contiguous:
        raise LeftOut("its results lie in C order alone")
    jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call]
    views = [VIEWS[operand.view] for operand in task.row.operands]

    def compute(*arrays: Any) -> Any:
        operands = [view(array) for view, array in zip(views, arrays, strict=True)]
        if task.row.op == "broadcast":
            return jnp.broadcast_to(operands[0], task.shape)
        return _FUNCTIONS[task.row.op](*operands, **task.row.keywords)

    inputs = tuple(map(jnp.asarray, task.bases))
    return Prepared((Call(jax.jit(compute), inputs, then=".block_until_ready()"),))
