"""The drawing as SVG, and as HTML for notebooks.

It is self-contained: no scripts, no external fonts or pictures, no ids (several drawings share a
page). It has its own background card, because a picture cannot detect the page's theme.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from ...core.plan import Plan
from .facts import (
    Block,
    axis_names,
    blocks,
    cells,
    facts,
    headline,
    names_of,
    result_cells,
    stretching,
)

#: Width of a character of 14 px monospace; fonts differ, so this is a wide estimate.
_CHAR = 8.6
_ROW, _BOX_HEIGHT, _GAP, _PAD = 38, 28, 8, 16
_HEAD, _NOTE = 30, 22
_LEAST_BOX = 40
#: Characters of a name or headline that are drawn; the element's title has the full text.
_LONGEST_NAME, _LONGEST_LINE = 28, 110
_HATCH = 7

_STYLE = """
.zs-card{fill:#fff;stroke:#d0d7de}.zs-text{fill:#1f2328;font:14px ui-monospace,Menlo,Consolas,
'DejaVu Sans Mono',monospace}.zs-head{font-weight:600}.zs-dim{fill:#656d76}.zs-small{font-size:11px}
.zs-mid{text-anchor:middle}.zs-end{text-anchor:end}.zs-box{fill:#ddf4ff;stroke:#54aeff}
.zs-wide{fill:#fff8c5;stroke:#bf8700}.zs-none{fill:none;stroke:#afb8c1;stroke-dasharray:3 3}
.zs-result{fill:#dafbe1;stroke:#2da44e}.zs-hatch{fill:none;stroke:#bf8700;stroke-opacity:.35}
.zs-arrow{fill:none;stroke:#9a6700;stroke-width:1.5}.zs-warn{fill:#bc4c00;font-weight:600}
@media (prefers-color-scheme:dark){.zs-card{fill:#0d1117;stroke:#30363d}.zs-text{fill:#e6edf3}
.zs-dim{fill:#9198a1}.zs-box{fill:#0c2d6b;stroke:#388bfd}.zs-wide{fill:#3b2300;stroke:#d29922}
.zs-none{stroke:#484f58}.zs-result{fill:#033a16;stroke:#2ea043}.zs-hatch{stroke:#d29922}
.zs-arrow{stroke:#e3b341}.zs-warn{fill:#f0883e}}
"""


def svg(plan: Plan, names: Sequence[Any] = ()) -> str:
    """The aligned drawing as an SVG document: a box an axis, hatched with an arrow if it stretches.

    Args:
        plan: any plan.
        names: what to call the operands and, after them, the result; escaped.

    >>> import zerostride as zs
    >>> svg(zs.plan((2, 3), (3,)), ["<script>"]).count("<script")
    0
    """
    named = names_of(plan, names)
    labels = [_shortened(name, _LONGEST_NAME) for name in named]
    drawn, closing = blocks(plan, names)
    tables = [_rows(block.plan, names) for block in drawn]
    every = [row for rows in tables for row in rows]
    called = axis_names(plan)
    widths = [
        max(_LEAST_BOX, round(max(len(row[axis] or "") for row in [*every, called]) * _CHAR) + 16)
        for axis in range(plan.rank)
    ]
    left = round(_PAD + max(map(len, labels)) * _CHAR + 14)
    lefts = [left + sum(widths[:axis]) + _GAP * axis for axis in range(plan.rank)]
    title = headline(plan, names)
    head = _shortened(title, _LONGEST_LINE)

    parts: list[str] = []
    longest = len(head)
    top = _PAD + _HEAD
    for block, rows in zip(drawn, tables, strict=True):
        if block.title:
            name = _shortened(block.title, _LONGEST_LINE)
            parts.append(line(_PAD, top + 8, name, "zs-head"))
            longest = max(longest, len(name))
            top += _NOTE
        top += 18
        parts += _table(block.plan, rows, top, left, lefts, widths, labels, named)
        top += _ROW * len(rows)
        for note, classes in _notes(block):
            parts.append(line(_PAD, top + 12, note, classes))
            longest = max(longest, len(note))
            top += _NOTE
    for fact in closing:
        note = _shortened(fact.text, _LONGEST_LINE)
        parts.append(line(_PAD, top + 12, note, "zs-dim"))
        longest = max(longest, len(note))
        top += _NOTE
    right = lefts[-1] + widths[-1] if lefts else left + _LEAST_BOX
    width = max(right, _PAD + round(longest * _CHAR)) + _PAD
    height = top + 8

    description = ". ".join(text for _, text in facts(plan, names))
    return card(title, description, [line(_PAD, _PAD + 14, head, "zs-head"), *parts], width, height)


def card(title: str, description: str, parts: Sequence[str], width: int, height: int) -> str:
    """A drawing on its background.

    Args:
        title, description: what a screen reader says; escaped.
        parts: the elements of the drawing.
        width, height: in pixels.
    """
    start = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">',
        f"<title>{escape(title)}</title><desc>{escape(description)}</desc><style>{_STYLE}</style>",
        f'<rect class="zs-card" x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="6"/>',
    ]
    return "\n".join([*start, *parts, "</svg>"])


def _rows(plan: Plan, names: Sequence[Any]) -> list[Sequence[str | None]]:
    return [
        *cells(plan, names),
        result_cells(plan, names),
    ]


def _table(
    plan: Plan,
    rows: Sequence[Sequence[str | None]],
    top: int,
    left: int,
    lefts: Sequence[int],
    widths: Sequence[int],
    labels: Sequence[str],
    named: Sequence[str],
) -> Iterator[str]:
    """The boxes of one plan, with the numbers or names of the axes above them."""
    called = axis_names(plan)
    for axis, (x, w) in enumerate(zip(lefts, widths, strict=True)):
        yield line(x + w / 2, top - 8, called[axis], "zs-dim zs-small zs-mid")
    for n, row in enumerate(rows):
        y = top + _ROW * n
        last = n == len(rows) - 1
        stretched = () if last else stretching(plan, n)
        yield label(left - 14, y + 19, labels[n], named[n], "zs-head" if last else "")
        if not row:
            yield line(left, y + 19, "()", "")
        for axis, cell in enumerate(row):
            kind = "result" if last else "wide" if axis in stretched else "box"
            yield from box(lefts[axis], y, widths[axis], cell, kind)


#: Facts below the boxes, which the boxes do not show.
_NOTED = frozenset({"dropped", "may_stretch", "needs", "given", "legend"})


def _notes(block: Block) -> Iterator[tuple[str, str]]:
    for kind, text in block.facts:
        if kind in _NOTED:
            yield _shortened(text, _LONGEST_LINE), "zs-dim"
    if any(kind == "two_sided" for kind, _ in block.facts):
        yield _warning(block.plan), "zs-warn"


def html(plan: Plan) -> str:
    """The HTML for a notebook: the picture, then the facts as a list.

    >>> import zerostride as zs
    >>> html(zs.plan((2, 3), (3,))).count("<li>")
    2
    """
    items = "".join(
        f"<li>{'<strong>Warning:</strong> ' if kind == 'two_sided' else ''}{escape(text)}</li>"
        for kind, text in facts(plan)
    )
    return f'<div class="zerostride-plan">{svg(plan)}<ul>{items}</ul></div>'


def _warning(plan: Plan) -> str:
    count = sum(map(bool, plan.stretched))
    there = " at some sizes" if plan.open is not None else ""
    return f"WARNING: {'both' if count == 2 else count} operands stretch{there}"


def _shortened(text: str, most: int) -> str:
    """The beginning and the end: tensor names often differ at the end."""
    if len(text) <= most:
        return text
    half = (most - 1) // 2
    return f"{text[:half]}…{text[-half:]}"


def line(x: float, y: float, text: str, classes: str) -> str:
    """A line of text."""
    return f'<text class="zs-text {classes}" x="{x:g}" y="{y:g}">{escape(text)}</text>'


def label(x: float, y: float, text: str, whole: str, classes: str) -> str:
    """A name that ends at x, with the whole one as its title."""
    return (
        f'<text class="zs-text zs-end {classes}" x="{x:g}" y="{y:g}">'
        f"<title>{escape(whole)}</title>{escape(text)}</text>"
    )


def box(x: float, y: float, width: int, cell: str | None, kind: str) -> Iterator[str]:
    """One cell: a box; hatched with an arrow below its text where it stretches."""
    wide = kind == "wide"
    shown = kind if cell is not None or wide else "none"
    yield (
        f'<rect class="zs-{shown}" x="{x:g}" y="{y:g}" width="{width}" height="{_BOX_HEIGHT}" '
        'rx="4"' + (' stroke-dasharray="3 3"' if wide and cell is None else "") + "/>"
    )
    if wide:
        yield f'<path class="zs-hatch" d="{_hatching(x, y, width, _BOX_HEIGHT)}"/>'
        end, low = x + width - 6, y + _BOX_HEIGHT - 5
        yield (f'<path class="zs-arrow" d="M{x + 6:g} {low:g}H{end:g}m-4 -3l4 3l-4 3"/>')
    yield line(x + width / 2, y + (17 if wide else 19), "·" if cell is None else cell, "zs-mid")


def _hatching(x: float, y: float, width: float, height: float) -> str:
    """Diagonals through a box, cut off at its edges."""
    lines = []
    for reach in range(_HATCH, int(width + height), _HATCH):
        low, high = max(0.0, reach - height), min(float(reach), width)
        lines.append(f"M{x + low:g} {y + reach - low:g}L{x + high:g} {y + reach - high:g}")
    return "".join(lines)
