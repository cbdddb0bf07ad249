"""LiteRT's CPU runtime: models of one op, as the measuring writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...measure.runners import litert_
from ...ops import Op
from ..task import Array, Form, Task
from . import Absent, Runner, by_op


def load_litert() -> Runner:
    """LiteRT, through the runner that its row was measured with."""
    known = litert_.load()

    def call(op: Op, arrays: Sequence[Array], attrs: Mapping[str, Any]) -> Array:
        name = str(op.names["litert"][0])
        if name not in known.ops:
            raise Absent(f"no model of {name} is written here")
        return known.ops[name]({}, arrays, ())

    def to(task: Task, arrays: Sequence[Array]) -> Sequence[Array]:
        return [known.ops["BROADCAST_TO"]({}, arrays, task.target)]

    return Runner(known.version, {Form.OP: by_op(call), Form.TO: to})
