"""Shapes in the form of an IR's ports, and their changes by steps."""

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
    """The shape after a reshape, expand, unsqueeze or squeeze.

    Raises:
        ValueError: the step does not fit the shape; gives the reason.
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
    """The number of elements; None if it is unknown."""
    sizes = [size for size in shape if size is not None]
    return math.prod(sizes) if len(sizes) == len(shape) else None


def known_sizes(shape: FileShape) -> Sizes:
    """Sizes in the form of ports: numbers or None."""
    if shape is None:
        return None
    return tuple(size if isinstance(size, int) else None for size in shape)


def symbols(shape: Sizes) -> Any:
    """A shape for rules, with a symbol for each unknown size."""
    if shape is None:
        return None
    # Unknown sizes are distinct.
    return tuple(unnamed(0, None, f"?{next(_count)}") if n is None else n for n in shape)


def texts(shape: Sizes) -> list[str]:
    """The sizes as the elements `dim` of a port."""
    return ["-1" if size is None else str(size) for size in shape or ()]
