"""Small random models of a few common ops, whose inputs have symbolic sizes."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import small
from onnx import ModelProto

#: Names of sizes; several models of one name would say less.
NAMES = ("N", "M", "K")
#: Sizes that are tried for each name.
SIZES = (1, 2, 3, 4)


def random_model(seed: int) -> ModelProto:
    """A model of two to six nodes; most work for some sizes, some for none."""
    draw = random.Random(seed)
    rank = draw.choice((1, 2, 2, 3, 3, 4))
    inputs = {f"x{k}": _shape(draw, max(1, rank - draw.randint(0, 1))) for k in range(2)}
    weights: dict[str, Any] = {"one": np.ones(draw.choice(((), (1,), (3,), (2, 3))), np.float32)}
    nodes: list[Any] = []
    there = [*inputs]
    for k in range(draw.randint(2, 6)):
        name = f"t{k}"
        nodes.append(_node(draw, there, name, f"n{k}", weights))
        there.append(name)
    nodes.append(small.node("Relu", there[-1], name="last"))
    return small.model(nodes, inputs, weights)


def _shape(draw: random.Random, rank: int) -> tuple[int | str, ...]:
    return tuple(draw.choice((*NAMES, *NAMES, 1, 3)) for _ in range(rank))


def _node(
    draw: random.Random, there: list[str], words: str, name: str, weights: dict[str, Any]
) -> Any:
    some = draw.choice(there)
    match draw.randrange(8):
        case 0:
            return small.node("Concat", f"{some} {some}", words, name=name, axis=0)
        case 1:
            target = draw.choice(((-1,), (0, -1), (1, -1), (-1, 1), (2, -1)))
            weights[f"{words}s"] = np.array(target)
            return small.node("Reshape", f"{some} {words}s", words, name=name)
        case 2:
            for key, value in (("b", [0]), ("e", [9999]), ("a", [0]), ("p", [2])):
                weights[f"{words}{key}"] = np.array(value)
            halved = f"{some} {words}b {words}e {words}a {words}p"
            return small.node("Slice", halved, words, name=name)
        case 3:
            return small.node("MatMul", f"{some} {draw.choice(there)}", words, name=name)
        case 4:
            parts = " ".join([some, draw.choice(there), draw.choice(there)])
            return small.node(draw.choice(("Max", "Sum")), parts, words, name=name)
        case _:
            other = draw.choice([*there, "one"])
            return small.node(
                draw.choice(("Add", "Mul", "Sub")), f"{some} {other}", words, name=name
            )
