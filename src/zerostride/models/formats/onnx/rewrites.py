"""The shapes of constant operands in a rewrite, without the file."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from ...ir.rewrite import Input, Rewrite, RewriteStep


def last_shapes(
    rewrite: Rewrite, sizes: Callable[[int], tuple[int, ...] | None]
) -> dict[int, tuple[int, ...]]:
    """The shape in which each constant operand is used, if it is only read reshaped.

    Chains of moves are followed. An operand that is also read in its own shape, or in two shapes,
    or expanded, is left out.
    """
    shapes: dict[int, tuple[int, tuple[int, ...]]] = {}  # step to operand and its shape there
    used: dict[int, set[tuple[int, ...] | None]] = {}
    for k, step in enumerate(rewrite.steps):
        for ref in step.operands:
            moves = step.op in ("reshape", "squeeze", "unsqueeze")
            if isinstance(ref, Input):
                at, shape = ref.position, sizes(ref.position)
            elif ref.step in shapes:
                at, shape = shapes[ref.step]
            else:
                continue
            if shape is None:
                continue
            after = moved(step, shape) if moves else None
            if after is not None:
                shapes[k] = (at, after)
            else:
                used.setdefault(at, set()).add(None if isinstance(ref, Input) else shape)
    result = {}
    for at, final in used.items():
        if len(final) == 1 and None not in final:
            (shape,) = final
            assert shape is not None
            result[at] = shape
    return result


def moved(step: RewriteStep, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape after a reshape, a squeeze or an unsqueeze; None if the step does not fit."""
    if step.op == "unsqueeze":
        rest = iter(shape)
        rank = len(shape) + len(step.axes)
        return tuple(1 if axis in step.axes else next(rest) for axis in range(rank))
    if step.op == "squeeze":
        return tuple(size for axis, size in enumerate(shape) if axis not in step.axes)
    wanted = list(step.shape or ())
    if -1 in wanted:
        others = math.prod(size for size in wanted if size != -1)
        if not others or math.prod(shape) % others:
            return None
        wanted[wanted.index(-1)] = math.prod(shape) // others
    return tuple(wanted) if math.prod(wanted) == math.prod(shape) else None


def times(old: tuple[int, ...] | None, new: Sequence[int]) -> tuple[int, ...] | None:
    """The repeats per axis that expand a tensor; None if it cannot be expanded."""
    if old is None or len(old) != len(new):
        return None
    if any(a != b and a != 1 for a, b in zip(old, new, strict=True)):
        return None
    return tuple(1 if a == b else b for a, b in zip(old, new, strict=True))


def constant_steps(rewrite: Rewrite, shapes: Mapping[int, tuple[int, ...]]) -> dict[int, int]:
    """The steps that a constant of another shape replaces: step to operand."""
    counts: dict[int, int] = {}
    for k, step in enumerate(rewrite.steps):
        if step.op not in ("reshape", "squeeze", "unsqueeze"):
            continue
        (ref,) = step.operands
        at = ref.position if isinstance(ref, Input) else counts.get(ref.step)
        if at is not None and at in shapes:
            counts[k] = at
    return counts
