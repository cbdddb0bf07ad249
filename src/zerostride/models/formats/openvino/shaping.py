"""Shapes in the form of an IR's ports, and their changes by steps."""

from __future__ import annotations

import itertools
from typing import Any

from ....sizes.parse import unnamed
from ...ir.graph import FileShape
from .splice import Sizes

_count = itertools.count()


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
