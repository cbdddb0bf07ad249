"""Shapes as the ports of an IR write them, and what steps make of them."""

from __future__ import annotations

import itertools
import math
from typing import Any

from ....sizes.parse import unnamed
from ...ir.graph import FileShape
from ...ir.rewrite import RewriteStep
from .splice import Sizes

_count = itertools.count()


def laid_out(step: RewriteStep, shape: Sizes) -> Sizes:
    """The shape that a reshape, expand, unsqueeze or squeeze makes of one.

    Raises:
        ValueError: the step does not fit the shape; says why.
    """
    if step.op in ("reshape", "expand"):
        wanted: list[int | None] = [None if n == -1 else n for n in step.shape or ()]
        if None in wanted and shape is not None and None not in shape:
            fixed = math.prod(size for size in wanted if size is not None)
            total = math.prod(size or 0 for size in shape)
            wanted[wanted.index(None)] = total // fixed if fixed else 0
        new = tuple(wanted)
        if step.op == "reshape" and _elements(new) != _elements(shape or new):
            raise ValueError(f"a reshape of {shape} to {step.shape}")
        return new
    if shape is None:
        raise ValueError(f"{step.op} of an operand whose rank is not known")
    if step.op == "unsqueeze":
        sizes = list(shape)
        for axis in step.axes:
            sizes.insert(axis, 1)
        return tuple(sizes)
    return tuple(size for axis, size in enumerate(shape) if axis not in step.axes)


def _elements(shape: tuple[int | None, ...]) -> int | None:
    """How many elements a shape has, None where that is not known."""
    sizes = [size for size in shape if size is not None]
    return math.prod(sizes) if len(sizes) == len(shape) else None


def known_sizes(shape: FileShape) -> Sizes:
    """Sizes as ports write them: numbers, or nothing."""
    if shape is None:
        return None
    return tuple(size if isinstance(size, int) else None for size in shape)


def symbols(shape: Sizes) -> Any:
    """A shape that rules can be asked of, a symbol for each size that is not known."""
    if shape is None:
        return None
    # Two sizes that are not known are not the same one.
    return tuple(unnamed(0, None, f"?{next(_count)}") if n is None else n for n in shape)


def texts(shape: Sizes) -> list[str]:
    """The sizes as the elements `dim` of a port."""
    return ["-1" if size is None else str(size) for size in shape or ()]
