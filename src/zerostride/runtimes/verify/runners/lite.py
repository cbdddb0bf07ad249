"""LiteRT's CPU runtime: models of one op, written as by `probe`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ....ops import Op
from ...probe.runners import litert_
from ..task import Array, Form, Task
from . import Absent, Runner, by_op, by_table, epsilon_of
from .written_out import normalisations


def load_litert() -> Runner:
    """LiteRT, through the runner of `probe`."""
    library = litert_.load()

    def run(name: str, *arrays: Array) -> Array:
        if name not in library.ops:
            raise Absent(f"no model of {name} is written here")
        return library.ops[name]({}, arrays, ())

    def call(op: Op, arrays: Sequence[Array], attrs: Mapping[str, Any]) -> Array:
        return run(str(op.names["litert"][0]), *arrays)

    def to(task: Task, arrays: Sequence[Array]) -> Sequence[Array]:
        return [library.ops["BROADCAST_TO"]({}, arrays, task.target)]

    def clip(attrs: Mapping[str, Any], x: Sequence[Array]) -> Array:
        clipped = x[0]
        for name, bound in zip(("MAXIMUM", "MINIMUM"), x[1:], strict=False):
            clipped = run(name, clipped, bound)
        return clipped

    def batch_norm(attrs: Mapping[str, Any], x: Sequence[Array]) -> Array:
        data, scale, bias, mean, variance = x
        factor = scale / np.sqrt(variance + epsilon_of(attrs))  # constants: a converter folds them
        return run("ADD", run("MUL", run("SUB", data, mean), factor), bias)

    table = {
        "Gemm": lambda attrs, x: run("ADD", run("BATCH_MATMUL", x[0], x[1]), x[2]),
        "MatMul": lambda attrs, x: run("BATCH_MATMUL", *x),
        "Clip": clip,
        "BatchNormalization": batch_norm,
        **normalisations(np.asarray, partial(run, "MUL"), partial(run, "ADD")),
    }
    return Runner(
        library.version,
        {
            Form.OP: by_op(call),
            Form.TO: to,
            Form.COMPOUND: by_table(table, np.asarray, np.asarray),
        },
    )
