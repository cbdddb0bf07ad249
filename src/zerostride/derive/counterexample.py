"""Counter-examples: numbers that show two plans of the same operands to differ.

Rules ask of sizes only whether two are equal and whether one is 1. So sizes can be renamed: any
one-to-one change that keeps 0 and 1 keeps every plan. The smallest such sizes make a
counter-example that a person can check by hand.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.plan import Plan
from ..errors import BroadcastError
from ..ops.floats import FLOATS
from ..sizes import Shape, elements

#: A counter-example is computed on at most so many elements.
MOST_ELEMENTS = 1 << 16

Planner = Callable[[tuple[Shape, ...]], Plan | BroadcastError]


@dataclass(frozen=True, slots=True)
class Witness:
    """Numbers that show the difference.

    Attributes:
        shapes: operand shapes, as small as they can be with the same meaning.
        op: the computed op ("add" where the node's own op is not computed here).
        index: where in the result the two differ; () if their shapes do.
        source: the number there in the model's meaning, or its result's shape.
        target: the number there on the target, its result's shape, or its failure.
        drawn: what the operands hold.
    """

    shapes: tuple[tuple[int, ...], ...]
    op: str
    index: tuple[int, ...]
    source: Any
    target: Any
    drawn: str = "counted from 0"

    @property
    def where(self) -> str:
        """The differing place, in words."""
        return f"result[{', '.join(map(str, self.index))}]" if self.index else "the result"

    @property
    def inputs(self) -> str:
        """What is computed, in words."""
        return f"{self.op} of {' and '.join(map(str, self.shapes))} {self.drawn}"

    def __str__(self) -> str:
        numbers = f"{self.source} in the model, {self.target} on the target"
        return f"{self.inputs}: {self.where} is {numbers}"


def smallest(shapes: Sequence[Shape]) -> tuple[Shape, ...]:
    """The shapes with sizes above 1 renamed 2, 3, 4 ... in order of size.

    >>> smallest([(64, 128, 1), (128, 1)])
    ((2, 3, 1), (3, 1))
    """
    # dict.fromkeys keeps the order of first occurrence, which a set would not.
    sizes = sorted(dict.fromkeys(size for shape in shapes for size in shape if size > 1))
    names = {size: small for small, size in enumerate(sizes, start=2)}
    return tuple(tuple(names.get(size, size) for size in shape) for shape in shapes)


def differing(shapes: tuple[Shape, ...], a: Plan, b: Plan, op: str = "add") -> Witness | None:
    """The first place where an op of two plans' operands gives different numbers.

    The operands are counted from 0, as floats; those of `add` go on from each other's end, so that
    all elements differ. An op without a row in :data:`~zerostride.ops.floats.FLOATS`, or one that
    shows no difference, is replaced by `add`. More than two operands are combined one after the
    other.

    Args:
        shapes: the operands' shapes.
        a, b: plans of the operands, with as many elements in their results.
        op: the op by its name in the op table.

    >>> import zerostride as zs
    >>> shapes = (2, 2), (2,)
    >>> print(differing(shapes, zs.plan(*shapes), zs.plan(*shapes, engine="ncnn")))
    add of (2, 2) and (2,) counted from 0: result[0, 1] is 6.0 in the model, 5.0 on the target
    """
    if len(shapes) < 2:
        return None
    for name in dict.fromkeys((op, "add")):
        if name not in FLOATS:
            continue
        indices = itertools.product(*map(range, a.shape))
        for index, left, right in zip(indices, _computed(a, name), _computed(b, name), strict=True):
            if left != right and not (math.isnan(left) and math.isnan(right)):
                return Witness(tuple(shapes), name, index, left, right)
    return None


def _computed(plan: Plan, op: str) -> Iterator[float]:
    """The elements of an op of counted operands, in the result's order."""
    values: Iterator[float] | None = None
    start = 0
    for k, shape in enumerate(plan.operands):
        operand = _laid_out(plan, k, start)
        values = operand if values is None else map(FLOATS[op], values, operand)
        start += elements(shape) if op == "add" else 0
    assert values is not None
    return values


def _laid_out(plan: Plan, k: int, start: int) -> Iterator[float]:
    """The elements of an operand that is counted from `start`, in the result's order."""
    shape = plan.operands[k]
    strides = plan.strides(k, [elements(shape[axis + 1 :]) for axis in range(len(shape))])
    positions = [start]
    for size, stride in zip(plan.shape, strides, strict=True):
        positions = [first + stride * i for first in positions for i in range(size)]
    return map(float, positions)


def find_witness(
    shapes: Sequence[Shape],
    source: Planner,
    target: Planner,
    op: str = "add",
    *,
    renamed: bool = True,
) -> Witness | None:
    """Numbers on which the two plans give different results, or None where none are found.

    Args:
        shapes: the operands' shapes.
        source: plans the operands as the model means them.
        target: plans them as the target does.
        op: the op to compute; see :func:`differing`.
        renamed: use the smallest sizes; otherwise the shapes as they are.
    """
    small = smallest(shapes) if renamed else tuple(shapes)
    a, b = source(small), target(small)
    if isinstance(a, BroadcastError):
        return None
    if isinstance(b, BroadcastError):
        effect = "nonsense, or a crash" if b.silent else "refused"
        return Witness(small, op, (), list(a.shape), f"{effect}: {b.detail}")
    if a == b or max(elements(a.shape), elements(b.shape)) > MOST_ELEMENTS:
        return None
    if a.shape != b.shape:
        return Witness(small, op, (), list(a.shape), list(b.shape))
    return differing(small, a, b, op)
