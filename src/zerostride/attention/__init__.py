"""Attention as a broadcast: where queries, keys, values and masks land, and what repeats.

`rules` has the types of a row, `rows` the ops of documents and engines, `planning` makes an
:class:`AttentionPlan` of shapes, `placing` finds the operands' places, `explain` puts a plan into
words, `compare` asks every row about the same shapes, `witness` finds numbers on which two plans
differ, `methods` has what a plan computes by these.
In: shapes and attributes. Out: AttentionPlan.
"""

from __future__ import annotations

from .compare import AttentionComparison, compare_attention
from .methods import AttentionMethods
from .plan import AttentionPlan, Difference, Operand, Space
from .planning import plan_attention

for _name, _method in vars(AttentionMethods).items():
    if callable(_method) and not _name.startswith("__"):
        _method.__qualname__ = f"{AttentionPlan.__qualname__}.{_name}"
        setattr(AttentionPlan, _name, _method)

__all__ = [
    "AttentionComparison",
    "AttentionPlan",
    "Difference",
    "Operand",
    "Space",
    "compare_attention",
    "plan_attention",
]
