"""Counter-examples: numbers that show two plans of the same operands to differ.

Rules ask of sizes only whether two are equal and whether one is 1. So sizes can be renamed: any
one-to-one change that keeps 0 and 1 keeps every plan. The smallest such sizes make a
counter-example that a person can check by hand.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.plan import Plan
from ..errors import BroadcastError
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


def differing_sum(shapes: tuple[Shape, ...], a: Plan, b: Plan) -> Witness | None:
    """The first place where two plans of a result's shape add different elements.

    The operands are counted from 0, each from the last one's end. The numbers are floats.

    >>> import zerostride as zs
    >>> shapes = (2, 2), (2,)
    >>> print(differing_sum(shapes, zs.plan(*shapes), zs.plan(*shapes, engine="ncnn")))
    add of (2, 2) and (2,) counted from 0: result[0, 1] is 6.0 in the model, 5.0 on the target
    """
    for index, left, right in zip(
        itertools.product(*map(range, a.shape)), _sums(a), _sums(b), strict=True
    ):
        if left != right:
            return Witness(shapes, "add", index, left, right)
    return None


def _sums(plan: Plan) -> Iterator[float]:
    """The elements of a sum of operands that are counted from 0, in the result's order."""
    start = 0
    steps = [0] * plan.rank
    for k, shape in enumerate(plan.operands):
        strides = tuple(elements(shape[axis + 1 :]) for axis in range(len(shape)))
        steps = [a + b for a, b in zip(steps, plan.strides(k, strides), strict=True)]
        start += elements(shape)
    # Operand k begins where the operands before it end.
    ends = itertools.accumulate(map(elements, plan.operands[:-1]))
    first = sum(ends)
    for index in itertools.product(*map(range, plan.shape)):
        yield float(first + sum(map(int.__mul__, index, steps)))


def find_witness(
    shapes: Sequence[Shape],
    source: Planner,
    target: Planner,
    op: str = "add",
    *,
    renamed: bool = True,
    by_value: Callable[[tuple[Shape, ...], Plan, Plan], Witness | None] = differing_sum,
) -> Witness | None:
    """Numbers on which the two plans give different results, or None where none are found.

    Args:
        shapes: the operands' shapes.
        source: plans the operands as the model means them.
        target: plans them as the target does.
        op: the op that `by_value` computes.
        renamed: use the smallest sizes; otherwise the shapes as they are.
        by_value: compares the numbers of two plans whose results have one shape.
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
    return by_value(small, a, b)
