"""Operands whose rows and columns have labels (pandas'). zerostride combines them by position.

pandas combines them by label. Operands for which the two differ are refused, because the numbers
alone would not show the difference.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .foreign import PLAIN


def check_labels(operands: Iterable[Any]) -> None:
    """Refuses operands whose axes have different labels at the same positions.

    Raises:
        TypeError: two axes of one extent that align, counted from the last, have different labels.

    >>> check_labels([[1.0, 2.0], 3])
    """
    labelled: list[tuple[int, list[Any]]] = []
    for k, operand in enumerate(operands):
        kind = type(operand)
        if kind not in PLAIN and kind.__module__.partition(".")[0] == "pandas":
            axes = getattr(operand, "axes", None)
            if axes is not None:
                _check_against(labelled, k, axes[::-1])
                labelled.append((k, axes[::-1]))


def _check_against(before: Iterable[tuple[int, list[Any]]], k: int, axes: list[Any]) -> None:
    for other, theirs in before:
        for labels, other_labels in zip(axes, theirs, strict=False):
            if len(labels) == len(other_labels) and not labels.equals(other_labels):
                raise TypeError(
                    f"operands {other} and {k} of pandas have other labels at the same places, and "
                    "are combined by place here; align them first (a.align(b)), or pass "
                    "x.to_numpy()"
                )
