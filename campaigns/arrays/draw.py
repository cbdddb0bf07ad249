"""Seeded calls with arrays of a library: every kind of call, under every rule."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from zerostride.ops import OPS

from ..native.cases import DrawnCall, Number, Shape, View, dtype_of
from ..native.draw import Desk, number
from ..native.shapes import by_rule, result_shape, spoiled, thinned, within

#: Rules of element-wise ops, and of broadcasts to a target.
ELEMENTWISE = ("numpy", "none", "pdpd", "paddle", "onnx6", "ncnn", "mnn")
TO_TARGET = ("unidirectional", "bidirectional", "explicit")
#: Kinds of calls, and how often each is drawn.
_KINDS = {"op": 6, "views": 1, "unbroadcast": 1, "fused": 1, "reduction": 1}
REDUCTIONS = (
    *("sum", "prod", "mean", "min", "max", "any", "all", "argmin", "argmax"),
    *("sum_of_squares", "logsumexp"),
)
#: Ranks that every library takes.
_MOST_AXES = 8


@dataclass(frozen=True, slots=True)
class ArrayCase:
    """A call with arrays.

    Attributes:
        kind: "op"; "views", "unbroadcast", "fused" of the same operands; "reduction" of the first;
            "broadcast" to a target.
        call: the operands, `out` and the rule; an op of the table.
        more: what else the kind takes: the target and its mode, the reduction's name and options,
            the operand whose gradient is asked for.
    """

    kind: str
    call: DrawnCall
    more: dict[str, Any]


def cases(
    rule: str, dtypes: Sequence[str], first: int, count: int, seed: int, *, writes: bool
) -> Iterator[tuple[int, ArrayCase]]:
    """Cases of a rule, each with its number; every one has a seed of its own.

    >>> [k for k, _ in cases("ncnn", ["float32"], 5, 2, 0, writes=True)]
    [5, 6]
    """
    for k in range(first, first + count):
        rng = random.Random(f"arrays:{seed}:{rule}:{k}")
        if rule in TO_TARGET:
            yield k, _to_target(rng, rule, dtypes, writes)
        else:
            yield k, _by_rule(rng, rule, dtypes, writes)


def _by_rule(rng: random.Random, rule: str, dtypes: Sequence[str], writes: bool) -> ArrayCase:
    kind = rng.choices(list(_KINDS), list(_KINDS.values()))[0]
    shape = result_shape(rng)
    while len(shape) > _MOST_AXES:
        shape = result_shape(rng)
    if math.prod(shape) > 20_000:  # threads are another campaign's
        shape = within(rng, len(shape), 5000)
    op = OPS[rng.choice(list(OPS))]
    if kind != "op" or rule != "numpy":
        op = OPS[
            rng.choice(
                [name for name, one in OPS.items() if one.tensors == 2 and not one.parameters]
            )
        ]
    shapes: list[Shape]
    options: dict[str, Any]
    if rule == "numpy":
        count = op.operands if rng.random() < 0.5 else op.tensors
        shapes = [
            thinned(rng, shape[int(rng.random() * 2) :] if rng.random() < 0.3 else shape)
            for _ in range(count)
        ]
        options = {"rule": rule} if op.tensors > 1 and rng.random() < 0.3 else {}
        if rng.random() < 0.03:
            shapes[0] = spoiled(rng, shapes[0])
    else:
        shapes, options = by_rule(rng, shape, rule)
    names = [rng.choice(dtypes)] * len(shapes)
    if rng.random() < 0.3:
        names = [rng.choice(dtypes) for _ in shapes]
    if op.name == "where" and rng.random() < 0.8:
        names[0] = "bool"
    if op.name == "cast" or (kind == "op" and rng.random() < 0.06):
        options = {**options, "dtype": rng.choice(dtypes)}
    desk = Desk(rng, "small" if kind in ("fused", "reduction", "unbroadcast") else None)
    operands: list[View | Number] = []
    for k, (size, name) in enumerate(zip(shapes, names, strict=True)):
        if k and kind == "op" and rng.random() < 0.12:
            operands.append(number(rng, name))
        elif k < op.tensors:
            operands.append(desk.operand(size, name, operands))
        else:
            operands.append(desk.parameter(size, "float32" if name == "bool" else name))
    out = None
    if kind == "op" and writes and rng.random() < 0.15:
        out = desk.fresh(shape, rng.choice(dtypes))
    call = DrawnCall(op.name, tuple(desk.memories), tuple(desk.moved(_own(operands))), out, options)
    return ArrayCase(kind, call, _more(rng, kind, shapes, dtypes))


def _own(operands: Sequence[View | Number]) -> list[View | Number]:
    """Without NumPy's scalars, which are no numbers of another library."""
    return [
        Number(one.value.item()) if isinstance(one, Number) and hasattr(one.value, "dtype") else one
        for one in operands
    ]


def _more(
    rng: random.Random, kind: str, shapes: Sequence[Shape], dtypes: Sequence[str]
) -> dict[str, Any]:
    if kind == "unbroadcast":
        return {"k": rng.randrange(2), "dtype": rng.choice(dtypes)}
    if kind == "fused":
        return {"body": rng.randrange(3), "axis": rng.choice((None, -1, 0))}
    if kind != "reduction":
        return {}
    rank = len(shapes[0])
    axis: Any = None
    if rng.random() < 0.7 and rank:
        axis = tuple(rng.sample(range(-rank, 0), rng.randint(0, rank)))
        if len(axis) == 1 and rng.random() < 0.7:
            (axis,) = axis
        if isinstance(axis, tuple) and len({k % rank for k in axis}) < len(axis):
            axis = None
    return {"name": rng.choice(REDUCTIONS), "axis": axis, "keepdims": rng.random() < 0.4}


def _to_target(rng: random.Random, rule: str, dtypes: Sequence[str], writes: bool) -> ArrayCase:
    shape = within(rng, rng.randint(0, 5), 3000)
    name = rng.choice(dtypes)
    more: dict[str, Any] = {"mode": "numpy" if rule == "unidirectional" else rule}
    if rule == "explicit":
        axes = sorted(rng.sample(range(len(shape)), rng.randint(0, len(shape))))
        data = tuple(shape[axis] for axis in axes)
        more["axes_mapping"] = tuple(axes)
    else:
        data = thinned(rng, shape[int(rng.random() * (len(shape) + 1)) :])
        if rule == "bidirectional":
            shape = thinned(rng, shape)
    if rng.random() < 0.05:
        data = spoiled(rng, data)
    more |= {"target_shape": shape, "copy": rng.random() < 0.4}
    desk = Desk(rng, None)
    operand = desk.operand(data, name, [])
    out = desk.fresh(shape, name) if writes and rng.random() < 0.2 else None
    return ArrayCase(
        "broadcast", DrawnCall("positive", tuple(desk.memories), (operand,), out, {}), more
    )


__all__ = ["ELEMENTWISE", "TO_TARGET", "ArrayCase", "cases", "dtype_of"]
