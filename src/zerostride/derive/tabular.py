"""Rows of cells as a table: text for a terminal, HTML for a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def text_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table whose columns are aligned.

    >>> text_table([("a", "b"), ("long", "")])
    ['a     b', 'long']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def html_table(rows: Sequence[Sequence[str]], notes: Sequence[str]) -> str:
    """A table whose first row is its head, and a list of notes.

    >>> html_table([("a",), ("1 < 2",)], [])
    '<div class="zerostride-table"><table><tr><th>a</tr><tr><td>1 &lt; 2</tr></table></div>'
    """
    lines: list[str] = []
    for row in rows:
        tag = "td" if lines else "th"
        lines.append(f"<tr>{''.join(f'<{tag}>{escape(cell)}' for cell in row)}</tr>")
    items = "".join(f"<li>{escape(note)}" for note in notes)
    below = f"<ul>{items}</ul>" if items else ""
    return f'<div class="zerostride-table"><table>{"".join(lines)}</table>{below}</div>'
