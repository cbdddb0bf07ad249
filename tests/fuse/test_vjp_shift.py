"""Maxima that do not change results: every claim is tested with other numbers."""

import random
from dataclasses import replace

import numpy as np

import zerostride as zs
from zerostride.fusion.grad.stabilizer import unmoved
from zerostride.fusion.reference import evaluate
from zerostride.fusion.trace.graph import Graph, Input
from zerostride.fusion.trace.tracing import Operand, Tracer

SHAPE = (3, 4)
ONES = ("exp", "log", "negative", "reciprocal", "square", "sqrt", "rsqrt", "tanh", "positive")
TWOS = ("add", "subtract", "multiply", "divide", "maximum")


def drawn(rng):
    """A graph of the ops that softmax and its like are made of, and its maximum's number."""
    tracer = Tracer([Operand(SHAPE, "float64"), Operand(SHAPE, "float64")])
    x, y = tracer.operand(0), tracer.operand(1)
    m = tracer.reduce("max", x, (1,), True, "float64", "float64")
    values = [x, y, m, x - m, tracer.apply("exp", (x - m,))]
    for _ in range(rng.randint(1, 6)):
        dice, late = rng.random(), rng.choice(values[-2:])
        try:
            if dice < 0.35:
                values.append(tracer.apply(rng.choice(ONES), (late,)))
            elif dice < 0.7:
                values.append(tracer.apply(rng.choice(TWOS), (rng.choice(values), late)))
            elif dice < 0.8:
                number = rng.choice((0, float("-inf"), rng.choice(values)))
                values.append(tracer.apply("where", (y > 0, rng.choice(values), number)))
            elif late.ndim == 2 and dice < 0.95:
                op, axes = rng.choice(("sum", "max")), rng.choice(((0,), (1,), (1,), (0, 1)))
                values.append(
                    tracer.reduce(op, late, axes, rng.random() < 0.8, "float64", "float64")
                )
            elif late.ndim == 2:
                values.append(late.T)
        except zs.BroadcastError:
            continue
    graph, *_ = tracer.finish([values[-1].node])
    return graph


def moves(graph, k, rng):
    """Whether an output changes with the value of a node."""
    operands = [rng.normal(size=SHAPE), rng.normal(size=SHAPE)]
    node = graph.nodes[k]
    (value,) = evaluate(replace(graph, outputs=(k,)), operands)
    free = Graph(
        (*graph.nodes[:k], Input(2, node.shape, node.dtype), *graph.nodes[k + 1 :]),
        graph.outputs,
        3,
    )
    shifted = value + rng.uniform(0.1, 0.3, np.shape(value))
    (one,), (other,) = evaluate(free, [*operands, value]), evaluate(free, [*operands, shifted])
    return not np.allclose(one, other, 1e-8, 1e-9, equal_nan=True)


def test_shift_invariance_is_never_claimed_wrongly():
    claims = 0
    for case in range(3000):
        graph = drawn(random.Random(case))
        for k in unmoved(graph):
            assert not moves(graph, k, np.random.default_rng(case)), (case, k, graph)
            claims += 1
    assert claims > 30


def test_check_of_shift_invariance_can_fail():
    graph = zs.fuse(lambda x: zs.exp(x - zs.max(x, axis=1, keepdims=True))).graph(np.ones(SHAPE))
    assert not unmoved(graph)
    assert moves(graph, 1, np.random.default_rng(0))


def found(function):
    return len(unmoved(zs.fuse(function).graph(np.ones(SHAPE))))


def test_softmax_and_similar_functions_are_shift_invariant():
    def softmax(x, keep=True):
        e = zs.exp(x - zs.max(x, axis=1, keepdims=True))
        return e / zs.sum(e, axis=1, keepdims=True)

    def log_softmax(x):
        shifted = x - zs.max(x, axis=1, keepdims=True)
        return shifted - zs.log(zs.sum(zs.exp(shifted), axis=1, keepdims=True))

    def masked(x):
        x = zs.where(x > 0, x, -np.inf)
        e = zs.where(x > 0, zs.exp(x - zs.max(x, axis=1, keepdims=True)), 0)
        return e / zs.sum(e, axis=1, keepdims=True)

    assert found(softmax) == found(log_softmax) == found(masked) == 1
    assert found(lambda x: softmax(x.T).T) == 1
    assert found(lambda x: zs.logsumexp(x, axis=1)) == 1
    assert found(lambda x: zs.logsumexp(x, axis=(0, 1), keepdims=True)) == 1
    assert found(lambda x: x - zs.max(x)) == 0
