"""The same attention under every op of every engine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..derive.tabular import html_table, text_table
from ..errors import BroadcastError
from ..sizes import Shape
from .plan import Asked, AttentionPlan, Difference
from .planning import plan_asked, plan_attention
from .rows import ROWS, find_rule
from .rules import AttentionRule


@dataclass(frozen=True, slots=True)
class AttentionRow:
    """What one op means.

    Attributes:
        rule: the op.
        answer: the plan, or the error that refuses the shapes.
        verdict: "same", "same_here" (unless a query lacks every key), "different", "refused", or
            "nonsense" (it computes something else and does not say so).
        differences: what it means otherwise.
    """

    rule: AttentionRule
    answer: AttentionPlan | BroadcastError
    verdict: str
    differences: tuple[Difference, ...] = ()

    @property
    def silent(self) -> bool:
        """Whether a wrong meaning would pass unnoticed."""
        return self.verdict in ("different", "nonsense")


_LEGEND = {
    "!": "silent: it computes something else, and does not say so",
    "~": "the same where every query has a key",
}


@dataclass(frozen=True, slots=True)
class AttentionComparison:
    """The rows of a comparison; as text, data and JSON."""

    reference: AttentionPlan
    rows: tuple[AttentionRow, ...]

    def as_dict(self) -> Mapping[str, Any]:
        """For JSON."""
        return {
            "reference": self.reference.as_dict(),
            "rows": [
                {
                    "engine": row.rule.engine or None,
                    "op": row.rule.op,
                    "source": row.rule.source,
                    "run": row.rule.run,
                    "verdict": row.verdict,
                    "differences": [each._asdict() for each in row.differences],
                    "refusal": row.answer.detail if isinstance(row.answer, Exception) else None,
                }
                for row in self.rows
            ],
        }

    def to_json(self, indent: int | None = 2) -> str:
        """The same as a JSON document."""
        return json.dumps(self.as_dict(), indent=indent)

    def _table(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = [("", "engine", "op", "meaning")]
        for row in self.rows:
            words = "; ".join(map(str, row.differences))
            if isinstance(row.answer, BroadcastError):
                words = row.answer.detail
            verdict = row.verdict.replace("_", " ")
            meaning = f"{verdict}: {words}" if words else verdict
            mark = "!" if row.silent else "~" if row.verdict == "same_here" else ""
            rows.append((mark, row.rule.engine or "ONNX", row.rule.op, meaning))
        return rows

    def __str__(self) -> str:
        names = [operand.shape for operand in self.reference.operands]
        head = f"{', '.join(map(str, names))}, against {self.reference.rule.name}"
        table = self._table()
        marks = {row[0] for row in table}
        notes = [f"  {mark} {words}" for mark, words in _LEGEND.items() if mark in marks]
        return "\n".join([head, "", *text_table(table), *(["", *notes] if notes else ())])

    def _repr_html_(self) -> str:
        return html_table(self._table(), [])


def compare_attention(
    *shapes: Any, engine: str | None = None, reference: str | None = None, **how: Any
) -> AttentionComparison:
    """One call of attention, as every op of every engine means it.

    Args:
        shapes: of query, key, value and, if there is one, the mask.
        engine: the rows of this engine alone.
        reference: the engine whose first op defines the meaning; None: ONNX's document.
        how: the other arguments of :func:`plan_attention`.

    >>> import zerostride as zs
    >>> table = zs.compare_attention((1, 4, 3, 8), (1, 4, 5, 8), (1, 4, 5, 8), (3, 1))
    >>> [(row.rule.engine, row.verdict) for row in table.rows if row.rule.engine == "torch"][0]
    ('torch', 'different')
    """
    return compared(plan_attention(*shapes, engine=reference, **how), engine)


def compared(plan: AttentionPlan, engine: str | None) -> AttentionComparison:
    """Every row against a plan; see :meth:`AttentionPlan.compare`."""
    if engine is not None:
        find_rule(engine, None)  # refuses an unknown name
    rules = ROWS[engine] if engine is not None else [row for rows in ROWS.values() for row in rows]
    return AttentionComparison(plan, tuple(_row(plan, rule) for rule in rules))


def _row(plan: AttentionPlan, rule: AttentionRule) -> AttentionRow:
    try:
        answer = plan_asked(rule, laid_for(rule, plan))
    except BroadcastError as error:
        return AttentionRow(rule, error, "nonsense" if error.silent else "refused")
    differences = plan.differences(answer)
    codes = {each.code for each in differences}
    verdict = "same_here" if codes == {"empty_row"} else "different" if codes else "same"
    return AttentionRow(rule, answer, verdict, differences)


def laid_for(rule: AttentionRule, plan: AttentionPlan) -> Asked:
    """The same call in a layout that another op has: heads side by side, or one sample.

    >>> import zerostride as zs
    >>> plan = zs.plan_attention((2, 4, 3, 8), (2, 2, 5, 8), (2, 2, 5, 8))
    >>> laid_for(find_rule("onnxruntime", "MultiHeadAttention"), plan).shapes
    ((2, 3, 32), (2, 5, 16), (2, 5, 16))
    """
    asked, space = plan.asked, plan.space
    if plan.layout in rule.layouts.get(len(asked.shapes[0]), ()):
        return asked
    lengths = (space.query, space.key - plan.past, space.key - plan.past)
    heads = (space.kv_head * space.group, *(operand.sizes[1] for operand in plan.operands[1:3]))
    features = (space.feature, space.feature, space.value_feature)
    batches = [operand.sizes[0] for operand in plan.operands[:3]]
    every = list(zip(batches, heads, lengths, features, strict=True))
    rest = tuple(_of_samples(mask) if plan.layout == "bsd" else mask for mask in asked.shapes[3:])
    if "bshd" in rule.layouts.get(4, ()):
        rows = tuple((b, s, h, d) for b, h, s, d in every)
        return replace(asked, shapes=(*rows, *rest), heads=None)
    if 4 in rule.layouts:
        return replace(asked, shapes=(*every, *rest), heads=None)
    if "hsd" in rule.layouts.get(3, ()):
        return replace(asked, shapes=(*(row[1:] for row in every), *map(_sample, rest)), heads=None)
    shapes: tuple[Shape, ...] = tuple((b, s, h * d) for b, h, s, d in every)
    numbers: Any = heads[:2]
    if 3 not in rule.layouts:
        shapes, rest = tuple(shape[1:] for shape in shapes), tuple(map(_sample, rest))
    return replace(asked, shapes=(*shapes, *rest), heads=numbers)


def _of_samples(mask: Shape) -> Shape:
    """A mask beside operands without an axis of heads: its first of three axes is the batch."""
    return (mask[0], 1, *mask[1:]) if len(mask) == 3 else mask


def _sample(mask: Shape) -> Shape:
    """A mask without its batch: an engine that sees one sample is handed that of the sample."""
    return mask[1:] if len(mask) == 4 else mask
