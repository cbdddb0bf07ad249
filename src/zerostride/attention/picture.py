"""The drawing of an attention as SVG: operands in six axes, and the keys that each query sees."""

from __future__ import annotations

from collections.abc import Iterator

from ..derive.explain.picture import box, card, label, line
from .explain import explain, repeats
from .plan import AXES, AttentionPlan

#: Widths, heights and distances in pixels; of a character and of a square of the grid, too.
_PAD, _LEFT, _WIDE, _GAP, _ROW, _CHAR, _SQUARE = 16, 90, 76, 8, 38, 8.6, 12
#: The most queries and keys whose squares are drawn.
_MOST = 40


def svg(plan: AttentionPlan) -> str:
    """The drawing as an SVG document; a hatched box with an arrow is an axis of stride 0.

    Args:
        plan: any plan.

    >>> import zerostride as zs
    >>> plan = zs.plan_attention((1, 4, 3, 8), (1, 2, 5, 8), (1, 2, 5, 8), causal=True)
    >>> picture = svg(plan)
    >>> picture.count('class="zs-hatch"'), picture.count('class="zs-result"')
    (4, 6)
    """
    text = explain(plan).split("\n")
    title, facts = text[0], [row.strip() for row in text[len(plan.operands) + 3 :]]
    parts = [line(_PAD, _PAD + 14, title, "zs-head")]
    top = _PAD + 48
    for k, name in enumerate(AXES):
        parts.append(line(_place(k) + _WIDE / 2, top - 8, name, "zs-dim zs-small zs-mid"))
    for n, operand in enumerate(plan.operands):
        y = top + _ROW * n
        parts.append(label(_LEFT - 14, y + 19, operand.name, operand.name, ""))
        wide = repeats(plan, operand)
        for k, (size, step) in enumerate(zip(operand.sizes, operand.strides, strict=True)):
            cell = str(size) if step != 0 or size != 1 else None
            parts += box(_place(k), y, _WIDE, cell, "wide" if AXES[k] in wide else "box")
    top += _ROW * len(plan.operands) + 4
    squares, top = _grid(plan, top)
    parts += squares
    for fact in facts:
        parts.append(line(_PAD, top + 12, fact, "zs-dim"))
        top += 22
    longest = max(map(len, (title, *facts)))
    width = max(_place(len(AXES)) - _GAP, _PAD + round(longest * _CHAR)) + _PAD
    return card(title, ". ".join(facts), parts, width, top + 8)


def html(plan: AttentionPlan) -> str:
    """The HTML for a notebook."""
    return f'<div class="zerostride-plan">{svg(plan)}</div>'


def _place(axis: int) -> int:
    return _LEFT + axis * (_WIDE + _GAP)


def _grid(plan: AttentionPlan, top: int) -> tuple[list[str], int]:
    """A square for each query and key, filled where the query sees the key; and where it ends."""
    queries, keys = plan.space.query, plan.space.key
    small = isinstance(queries, int) and isinstance(keys, int) and max(queries, keys) <= _MOST
    if not small or not queries or not keys or plan.offset is None:
        return [], top
    parts = [label(_LEFT - 14, top + 20, "sees", "the keys that each query sees", "")]
    for query in range(int(queries)):
        seen = set(_seen(plan, query))
        for key in range(int(keys)):
            kind = "zs-result" if key in seen else "zs-none"
            x, y, side = _LEFT + key * _SQUARE, top + 8 + query * _SQUARE, _SQUARE - 2
            parts.append(f'<rect class="{kind}" x="{x}" y="{y}" width="{side}" height="{side}"/>')
    words = "a row for each query, a column for each key"
    words += "; the mask may hide more" if plan.mask is not None else ""
    parts.append(line(_LEFT + int(keys) * _SQUARE + _GAP, top + 18, words, "zs-dim zs-small"))
    return parts, top + 8 + int(queries) * _SQUARE + 12


def _seen(plan: AttentionPlan, query: int) -> Iterator[int]:
    """The keys that a query sees by its place."""
    last = query + int(plan.offset or 0)
    first = 0 if plan.window is None else query + int(plan.own or 0) - plan.window + 1
    yield from range(max(0, first), min(int(plan.space.key), last + 1))


__all__ = ["html", "svg"]
