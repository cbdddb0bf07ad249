"""Paddle on the CPU: dynamic mode, and the old static programs whose ops have an `axis`."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..case import Array, Shape
from . import Attrs, Perform, Runner


def load() -> Runner:
    """Imports Paddle."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        paddle: Any = importlib.import_module("paddle")
    executor = paddle.static.Executor(paddle.CPUPlace())

    def dynamic(function: Callable[..., Any]) -> Perform:
        def perform(attrs: Attrs, operands: Sequence[Array], target: Shape) -> Array:
            return np.asarray(function(*map(paddle.to_tensor, operands)).numpy())

        return perform

    def to(function: Callable[..., Any]) -> Perform:
        def perform(attrs: Attrs, operands: Sequence[Array], target: Shape) -> Array:
            result = function(paddle.to_tensor(operands[0]), list(target))
            return np.asarray(result.numpy())

        return perform

    def old_program(op: str, inputs: dict[str, Array], attrs: dict[str, Any]) -> Array:
        """Runs one op of the old intermediate representation, which alone has `axis`."""
        paddle.enable_static()
        try:
            with paddle.pir_utils.OldIrGuard():
                program = paddle.static.Program()
                with paddle.static.program_guard(program, paddle.static.Program()):
                    block = program.global_block()
                    variables = {}
                    for name, array in inputs.items():
                        variable = block.create_var(
                            name=name, shape=list(array.shape), dtype=str(array.dtype)
                        )
                        variable.desc.set_need_check_feed(False)
                        variables[name] = [variable]
                    result = block.create_var(name="Out", dtype=str(inputs["X"].dtype))
                    block.append_op(
                        type=op, inputs=variables, outputs={"Out": [result]}, attrs=attrs
                    )
                    return np.asarray(
                        executor.run(program, feed=inputs, fetch_list=[result.name])[0]
                    )
        finally:
            paddle.disable_static()

    def elementwise_op(op: str) -> Perform:
        def perform(attrs: Attrs, operands: Sequence[Array], target: Shape) -> Array:
            return old_program(op, dict(zip("XY", operands, strict=True)), dict(attrs))

        return perform

    def expand_v2(attrs: Attrs, operands: Sequence[Array], target: Shape) -> Array:
        return old_program("expand_v2", {"X": operands[0]}, {"shape": list(target)})

    return Runner(
        str(paddle.__version__),
        {
            **{
                op: elementwise_op(op)
                for op in ("elementwise_add", "elementwise_sub", "elementwise_max")
            },
            "add": dynamic(paddle.add),
            "subtract": dynamic(paddle.subtract),
            "prelu": dynamic(paddle.nn.functional.prelu),
            "where": dynamic(paddle.where),
            "expand": to(paddle.expand),
            "broadcast_to": to(paddle.broadcast_to),
            "expand_v2": expand_v2,
        },
        # Paddle's checks surface as these; AssertionError is raised by its Python layers.
        (ValueError, RuntimeError, OSError, AssertionError),
    )
