"""Operands whose rows and columns have labels (pandas'), which are combined by place here.

pandas itself combines by label. Where both give the same there is nothing to say; where they do not
the operands are refused, because the numbers alone would not show it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .foreign import PLAIN


def check_labels(operands: Iterable[Any]) -> None:
    """Refuses operands whose axes have other labels at the same places.

    Raises:
        TypeError: two axes of one extent that meet, counted from the last, have other labels.

    >>> check_labels([[1.0, 2.0], 3])
    """
    found: list[tuple[int, list[Any]]] = []
    for k, one in enumerate(operands):
        kind = type(one)
        if kind not in PLAIN and kind.__module__.partition(".")[0] == "pandas":
            axes = getattr(one, "axes", None)
            if axes is not None:
                _check_against(found, k, axes[::-1])
                found.append((k, axes[::-1]))


def _check_against(before: Iterable[tuple[int, list[Any]]], k: int, axes: list[Any]) -> None:
    for other, theirs in before:
        for one, its in zip(axes, theirs, strict=False):
            if len(one) == len(its) and not one.equals(its):
                raise TypeError(
                    f"operands {other} and {k} of pandas have other labels at the same places, and "
                    "are combined by place here; align them first (a.align(b)), or pass "
                    "x.to_numpy()"
                )
