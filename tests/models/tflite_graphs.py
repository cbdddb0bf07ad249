"""Random LiteRT graphs of ops that broadcast, by seed."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
from tflite_files import Model

#: Ops of two floats; each is right for numbers from 0.5 to 2.
BINARY = ("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE")
COMPARED = ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")
ACTIVATIONS = ("NONE", "NONE", "NONE", "RELU", "RELU6", "RELU_N1_TO_1")
_ACTIVATED = frozenset({"ADD", "SUB", "MUL", "DIV"})

Shape = tuple[int, ...]


def shapes(rng: random.Random, most: int = 5) -> tuple[Shape, Shape]:
    """Two shapes, by NumPy's rule in most cases."""
    rank = rng.choice((1, 2, 3, 4, 4, 4, most))
    whole = [rng.choice((1, 2, 3, 4)) for _ in range(rank)]

    def part() -> Shape:
        kept = rng.randrange(rank + 1) if rng.random() < 0.5 else rank
        sizes = [1 if rng.random() < 0.3 else size for size in whole[rank - kept :]]
        if sizes and rng.random() < 0.05:
            sizes[rng.randrange(len(sizes))] += 1
        return tuple(sizes)

    pair = (part(), tuple(whole)) if rng.random() < 0.5 else (tuple(whole), part())
    return pair if rng.random() < 0.8 else (part(), part())


def one(seed: int) -> Model:
    """One op that broadcasts, on any shapes."""
    rng = random.Random(f"tflite one/{seed}")
    kind = rng.choice((*BINARY, *COMPARED, "PRELU", "SELECT_V2", "SELECT", "BROADCAST_TO"))
    a, b = shapes(rng, rng.choice((5, 6, 8)))
    model = Model()
    graph = model.main
    if kind == "BROADCAST_TO":
        graph.input("x0", *a)
        graph.constant("target", np.array(b, np.int32))
        graph.op(kind, "x0 target", "y")
    elif kind.startswith("SELECT"):
        condition = rng.choice((a, b, a[:1], ()))
        graph.input("x0", *condition, dtype="bool")
        graph.input("x1", *a)
        last = b if kind == "SELECT_V2" else a
        _second(rng, model, "x2", last)
        # Where every operand is one number, the result keeps the size that the file says.
        graph.add("y", whole(condition, a, last), ranked=False)
        graph.op(kind, "x0 x1 x2", "y")
    else:
        graph.input("x0", *a)
        _second(rng, model, "x1", b)
        graph.add("y", (), "bool" if kind in COMPARED else "float32", ranked=False)
        graph.op(kind, "x0 x1", "y", **_options(rng, kind))
    graph.output("y")
    return model


def whole(*operands: Shape) -> Shape:
    try:
        return np.broadcast_shapes(*operands)
    except ValueError:
        return ()


def _second(rng: random.Random, model: Model, name: str, shape: Shape) -> None:
    if rng.random() < 0.5:
        model.main.constant(name, _numbers(rng, shape))
    else:
        model.main.input(name, *shape)


def _numbers(rng: random.Random, shape: Sequence[int]) -> np.ndarray:
    values = np.random.default_rng(rng.randrange(2**32)).uniform(0.5, 2, shape)
    return values.astype(np.float32)


def _options(rng: random.Random, kind: str) -> dict[str, str]:
    if kind not in _ACTIVATED:
        return {}
    return {"fused_activation_function": rng.choice(ACTIVATIONS)}


def chain(seed: int) -> Model:
    """Up to eight ops, each on an earlier tensor and another that broadcasts with it."""
    rng = random.Random(f"tflite chain/{seed}")
    model = Model()
    graph = model.main
    rank = rng.choice((2, 3, 4, 4, 5))
    whole = tuple(rng.choice((1, 2, 3, 4)) for _ in range(rank))
    made = [graph.input("x", *whole)]
    halves = 0
    for k in range(rng.choice((1, 2, 3, 5, 8))):
        kind = rng.choice((*BINARY, "PRELU", "SELECT_V2"))
        first, name = rng.choice(made), f"t{k}"
        kept = rng.randrange(1, rank + 1) if rng.random() < 0.4 else rank
        shape = tuple(1 if rng.random() < 0.3 else size for size in whole[rank - kept :])
        if rng.random() < 0.2 and shape[0] != 1:
            shape = shape[: rng.randrange(len(shape) + 1)] and shape[-1:]
        other = f"c{k}"
        if rng.random() < 0.5:
            graph.constant(other, _numbers(rng, shape))
        elif rng.random() < 0.3:
            graph.constant(f"h{k}", _numbers(rng, shape).astype(np.float16))
            graph.op("DEQUANTIZE", f"h{k}", other)
            halves += 1
        else:
            graph.input(other, *shape)
        operands = [first, other]
        if kind not in ("PRELU", "SELECT_V2") and rng.random() < 0.4:
            operands.reverse()
        if kind == "SELECT_V2":
            graph.add(f"m{k}", (), "bool", ranked=False)
            graph.op("LESS", f"{first} {other}", f"m{k}")
            operands.insert(0, f"m{k}")
        graph.op(kind, " ".join(operands), name, **_options(rng, kind))
        made.append(name)
    graph.output(*dict.fromkeys((made[-1], *rng.sample(made[1:], 1))))
    return model
