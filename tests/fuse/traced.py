"""Traced functions, evaluated and compared with their results on arrays."""

import numpy as np

from zerostride.fusion.reference import evaluate
from zerostride.fusion.trace.tracing import trace

RNG = np.random.default_rng(7)
X = RNG.uniform(0.5, 3, (3, 4)).astype(np.float32)
Y = RNG.uniform(0.5, 3, (4,)).astype(np.float32)
N = RNG.integers(0, 7, (3, 4)).astype(np.int32)
M = RNG.integers(1, 5, (3, 1)).astype(np.int32)
B = RNG.random((3, 4)) < 0.5


def computed(function, *operands, **static):
    """What a function's graph comes to, packed as the function packs it."""
    graph, structure, captured = trace(function, operands, static)
    return structure.pack(evaluate(graph, [*operands, *captured]))


def check(function, *operands, exact=True, **static):
    """A function's graph gives what the function gives."""
    result = computed(function, *operands, **static)
    with np.errstate(all="ignore"):
        wanted = function(*operands, **static)
    pairs = zip(result, wanted, strict=True) if isinstance(wanted, tuple) else [(result, wanted)]
    for one, other in pairs:
        other = np.asarray(other)
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        if exact:
            np.testing.assert_array_equal(one, other)
        else:
            np.testing.assert_allclose(one, other, rtol=3e-6, atol=1e-7)


#: The names of operators.
ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
BITS = ("and_", "or_", "xor", "lshift", "rshift")
