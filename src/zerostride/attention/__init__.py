"""Attention as a broadcast: where queries, keys, values and masks land, and what repeats.

`rules` has the types of a row, `rows` the ops of documents and engines, `planning` makes an
:class:`AttentionPlan` of shapes, `explain` puts it into words, `compare` asks every row about the
same shapes. In: shapes and attributes. Out: AttentionPlan.
"""

from __future__ import annotations

from .compare import AttentionComparison, compare_attention
from .plan import AttentionPlan, Difference, Operand, Space
from .planning import plan_attention

__all__ = [
    "AttentionComparison",
    "AttentionPlan",
    "Difference",
    "Operand",
    "Space",
    "compare_attention",
    "plan_attention",
]
