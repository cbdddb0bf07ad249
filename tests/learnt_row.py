"""Learnt rows in the words of a file."""

from __future__ import annotations

from typing import Any

from zerostride.engines.learnt import Deviation, Form, LearntRow, Literal

RIGHT = Form("right", "all")


def row_of(*deviations: tuple[str, Any], form: Form = RIGHT) -> LearntRow:
    """A row whose deviations are written as "literal & literal"."""
    rows = tuple(
        Deviation(tuple(map(Literal.read, words.split(" & "))), then) for words, then in deviations
    )
    return LearntRow(form, rows)
