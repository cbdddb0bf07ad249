"""`zerostride::run`: a program as one op of PyTorch's, for torch.compile and torch.export.

A program is stored in PyTorch's graphs as text. So a traced graph, or one that was exported and
loaded in another process, needs only zerostride to run.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...fusion.grad.vjp import GraphProgram
from ...fusion.trace.graph import Apply, Constant, Graph, Input, Node, Reduce, View
from ...fusion.trace.tracing import Operand
from .data import as_torch
from .running import pulled, run

_NODES: dict[str, type[Any]] = {
    kind.__name__: kind for kind in (Input, Constant, Apply, Reduce, View)
}


def text_of(program: GraphProgram) -> str:
    """A program as text.

    >>> x = Input(0, (2,), "float32")
    >>> program = GraphProgram(Graph((x,), (0,), 1), (Operand((2,), "float32"),))
    >>> program_of(text_of(program)).graph == program.graph
    True
    """
    text = vars(program).get("_text")
    if text is None:
        graph = program.graph
        nodes = [[type(node).__name__, *_fields(node)] for node in graph.nodes]
        operands = [_fields(operand) for operand in program.operands]
        text = json.dumps([nodes, graph.outputs, operands], separators=(",", ":"))
        vars(program)["_text"] = text
    return str(text)


@functools.lru_cache(4096)
def program_of(text: str) -> GraphProgram:
    """The program of a text."""
    nodes, outputs, operands = json.loads(text)
    graph_nodes: list[Node] = [_NODES[kind](*map(_tuples, values)) for kind, *values in nodes]
    inputs = tuple(Operand(*map(_tuples, values)) for values in operands)
    return GraphProgram(Graph(tuple(graph_nodes), tuple(outputs), len(inputs)), inputs)


def _fields(value: Any) -> list[Any]:
    return [getattr(value, field.name) for field in fields(value)]


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


# The op

_SCHEMA = "(Tensor[] tensors, Scalar[] numbers, str kinds, str program) -> Tensor[]"
_TENSOR, _NUMBER = "tn"
_MOST = 2**63 - 1


def run_as_op(program: GraphProgram, values: Sequence[Any]) -> list[Tensor]:
    """A program's results, as PyTorch traces them."""
    tensors = [value for value in values if isinstance(value, Tensor)]
    # Integers of more than 64 bits are constants of the program.
    numbers = [
        value if type(value) is not int or abs(value) <= _MOST else 0
        for value in values
        if not isinstance(value, Tensor)
    ]
    kinds = "".join(_TENSOR if isinstance(value, Tensor) else _NUMBER for value in values)
    return list(_run(tensors, numbers, kinds, text_of(program)))


def _values(kinds: str, tensors: Sequence[Tensor], numbers: Sequence[Any]) -> list[Any]:
    """The operands in the program's order."""
    arrays, others = iter(tensors), iter(numbers)
    return [next(arrays if kind == _TENSOR else others) for kind in kinds]


def _computed(
    tensors: Sequence[Tensor], numbers: Sequence[Any], kinds: str, program: str
) -> list[Tensor]:
    return run(program_of(program), _values(kinds, tensors, numbers))


def _shaped(
    tensors: Sequence[Tensor], numbers: Sequence[Any], kinds: str, program: str
) -> list[Tensor]:
    return [
        torch.empty(node.shape, dtype=as_torch(np.dtype(node.dtype)), device=tensors[0].device)
        for node in program_of(program).outputs
    ]


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    tensors, ctx.numbers, ctx.kinds, ctx.program = inputs
    ctx.save_for_backward(*tensors)
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, cotangents: Sequence[Tensor | None]) -> tuple[Any, ...]:
    values = _values(ctx.kinds, ctx.saved_tensors, ctx.numbers)
    wanted = iter(ctx.needs_input_grad[0])
    mask = [kind == _TENSOR and next(wanted) for kind in ctx.kinds]
    results = pulled(program_of(ctx.program), values, cotangents, mask)
    pairs = zip(ctx.kinds, results, strict=True)
    gradients = [gradient for kind, gradient in pairs if kind == _TENSOR]
    # An empty list counts as one of tensors, a list of numbers as one thing.
    return gradients, None if ctx.numbers else [], None, None


_run: Any = torch.library.custom_op("zerostride::run", _computed, mutates_args=(), schema=_SCHEMA)
_run.register_fake(_shaped)
_run.register_autograd(_backward, setup_context=_setup_context)
