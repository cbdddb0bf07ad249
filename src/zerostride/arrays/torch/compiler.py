"""Registers zerostride with torch.compile; imported after PyTorch's compiler (`watch`).

The front end, Dynamo, reads the bytecode of functions that a compiled function calls. zerostride's
functions are excluded: each is written into the graph as a call, and becomes an op (`custom_op`)
when that graph is traced.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._dynamo import trace_rules

from ...compute import functions, unary
from ...fusion import reductions
from ...fusion.function import EXISTING
from ...fusion.trace.reducing import TRACED
from ...lint import checks
from ...ops import OPS

#: The looks of strict mode, and what is left of them in a graph: they hand operands on.
_HANDED_ON: dict[Any, Any] = {
    checks.against: lambda left, right: right,
    checks.pair: lambda left, right: (left, right),
    checks.args: lambda function, /, *operands: operands,
    checks.args_of: lambda root, path, /, *operands: operands,
}


def register() -> None:
    """Registers every public function, and all existing fused functions, with the compiler."""
    # The package's own frames run as they are where a graph breaks at a call.
    trace_rules.add(__name__.partition(".")[0])
    # What strict mode writes into code under test would break each of its graphs.
    while _HANDED_ON:  # once: a second time is refused
        original, handed_on = _HANDED_ON.popitem()
        # Of the package's own files nothing is read.
        handed_on.__code__ = handed_on.__code__.replace(co_filename="<zerostride>")
        torch._dynamo.substitute_in_graph(original)(handed_on)
    callables = [getattr(functions, name, None) or getattr(unary, name) for name in OPS]
    callables += [getattr(reductions, name) for name in TRACED if hasattr(reductions, name)]
    callables += EXISTING
    for function in (*callables, functions.broadcast):
        allow(function)


def allow(function: Any) -> None:
    """Has the compiler write calls of a function into graphs unchanged."""
    allow_in_graph: Any = torch.compiler.allow_in_graph
    try:
        allow_in_graph(function)
    except TypeError:  # the engine's functions have no weak references, and live for ever
        trace_rules._allowed_callable_ids.add(id(function))
