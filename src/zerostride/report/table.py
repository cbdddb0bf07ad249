"""Tables that fit a width: cells fold, and whole columns move to lines below their row.

Nothing is left out to save room, except that a column without any text is not shown.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import NamedTuple, TypeAlias

#: Blanks between columns, and before what stands below a row.
_GAP, _BELOW = 2, 4
#: A column does not fold to fewer characters; a table that needs more overflows.
_LEAST = 12


class Line(NamedTuple):
    """A line for a terminal: its text, and the style of its first `painted` characters."""

    text: str
    painted: int = 0
    style: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column.

    Attributes:
        title: its heading.
        most: the most characters of a line.
        folds: whether long cells take several lines; if not, they are cut.
        right: whether it is aligned to the right.
        roomy: whether it moves below its row where the width is too small.
    """

    title: str
    most: int | None = None
    folds: bool = True
    right: bool = False
    roomy: bool = False


@dataclass(frozen=True, slots=True)
class Heading:
    """A line over the rows that follow, across all columns; its mark has the style."""

    mark: str
    text: str
    style: str = ""


Row: TypeAlias = Sequence[str] | Heading


def table(
    columns: Sequence[Column], rows: Sequence[Row], width: int, styles: Sequence[str] = ()
) -> list[Line]:
    """The lines of a table.

    Args:
        columns: the columns.
        rows: a cell for each column, or a heading.
        width: the most characters of a line.
        styles: the style of each row's first cell; none if there are no more.

    >>> rows = [["1", "Add", "(5,5) (5)"], ["12", "Mul", "(3,5) (5)"]]
    >>> columns = [Column("nodes", right=True), Column("op"), Column("shapes", roomy=True)]
    >>> print("\\n".join(line.text for line in table(columns, rows[:1], 80)))
    nodes  op   shapes
        1  Add  (5,5) (5)
    >>> print("\\n".join(line.text for line in table(columns, rows, 12)))
    nodes  op
        1  Add
        shapes:
        (5,5)
        (5)
       12  Mul
        shapes:
        (3,5)
        (5)
    """
    cells = [row for row in rows if not isinstance(row, Heading)]
    shown = [k for k, _ in enumerate(columns) if any(row[k] for row in cells)]
    widths = {k: _natural(columns[k], [row[k] for row in cells]) for k in shown}
    layouts = [*_layouts(columns, widths, width)]
    fitting = [layout for layout in layouts if _total(layout) <= width] or layouts[-1:]
    tables = [_laid_out(columns, rows, width, styles, layout, shown) for layout in fitting]
    return min(reversed(tables), key=len)


def _laid_out(
    columns: Sequence[Column],
    rows: Sequence[Row],
    width: int,
    styles: Sequence[str],
    layout: Mapping[int, int],
    shown: Sequence[int],
) -> list[Line]:
    """The lines where the columns of a layout, with their widths, stand beside one another."""
    below = [k for k in shown if k not in layout]
    titles = (_placed(columns[k].title, room, columns[k].right) for k, room in layout.items())
    title = (" " * _GAP).join(titles).rstrip()
    lines = [Line(title, len(title), "bold")] if title else []
    for row, style in zip(rows, chain(styles, repeat("")), strict=False):
        if isinstance(row, Heading):
            lines += headed(row, width)
            continue
        lines += _row_lines(columns, row, layout, style)
        words = "  ".join(f"{columns[k].title}: {row[k]}".lstrip(": ") for k in below if row[k])
        lines += [Line(part) for part in wrapped(words, width, " " * _BELOW) if words]
    return lines


def headed(heading: Heading, width: int) -> list[Line]:
    """A mark and a text after it, on as many lines as it needs."""
    first, *others = wrapped(f"{heading.mark}  {heading.text}", width)
    return [
        Line(first, len(heading.mark), heading.style),
        *(
            Line(" " * _BELOW + part)
            for part in wrapped(" ".join(others), width - _BELOW)
            if others
        ),
    ]


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """The text in lines of at most so many characters, broken at blanks where there are any.

    >>> wrapped("reshape a to (1, 5)", 12), wrapped("", 5), wrapped("abcdef", 4)
    (['reshape a to', '(1, 5)'], [''], ['abcd', 'ef'])
    """
    width = max(width - len(indent), 1)
    lines, line = list[str](), ""
    for word in _words(text, width):
        if line and cells_of(line) + cells_of(word.rstrip()) > width:
            lines.append(line.rstrip())
            line = ""
        line += word
    return [indent + line for line in (*lines, line.rstrip())]


def _words(text: str, width: int) -> Iterator[str]:
    """The words, each with the blanks after it; words that are too long in pieces."""
    for word in _with_blanks(text):
        while cells_of(word.rstrip()) > width:
            end = next(k for k in range(width, 0, -1) if k == 1 or cells_of(word[:k]) <= width)
            yield word[:end]
            word = word[end:]
        yield word


def _with_blanks(text: str) -> list[str]:
    words = list[str]()
    for part in text.split(" "):
        if part or not words:
            words.append(part + " ")
        else:
            words[-1] += " "
    return [*words[:-1], words[-1][:-1]]


def cells_of(text: str) -> int:
    """The cells of a terminal that a text takes: wide characters take two.

    >>> cells_of("ab"), cells_of("\\u5c42")
    (2, 2)
    """
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(one) else 1 + (unicodedata.east_asian_width(one) in "WF")
        for one in text
    )


def _natural(column: Column, cells: Sequence[str]) -> int:
    widest = max(map(cells_of, (column.title, *cells)))
    return min(widest, column.most or widest)


def _layouts(
    columns: Sequence[Column], widths: Mapping[int, int], width: int
) -> Iterator[dict[int, int]]:
    """The widths of the columns beside one another: of all, then with fewer roomy ones."""
    beside = dict(widths)
    yield _narrowed(columns, beside, width)
    for roomy in [k for k in reversed(beside) if columns[k].roomy]:
        if _total(beside) <= width:
            return
        del beside[roomy]
        yield _narrowed(columns, beside, width)


def _narrowed(columns: Sequence[Column], widths: Mapping[int, int], width: int) -> dict[int, int]:
    """The widths after columns that fold are narrowed until they fit, the widest first."""
    narrowed = dict(widths)
    while (excess := _total(narrowed) - width) > 0:
        folding = [k for k in narrowed if columns[k].folds and narrowed[k] > _LEAST]
        if not folding:
            break
        widest = max(folding, key=lambda k: narrowed[k])
        next_widest = max((narrowed[k] for k in folding if k != widest), default=_LEAST)
        least = next_widest if next_widest < narrowed[widest] else narrowed[widest] - 1
        narrowed[widest] = max(narrowed[widest] - excess, least)
    return narrowed


def _total(widths: Mapping[int, int]) -> int:
    return sum(widths.values()) + _GAP * (len(widths) - 1)


def _row_lines(
    columns: Sequence[Column], row: Sequence[str], widths: Mapping[int, int], style: str
) -> Iterator[Line]:
    """The lines of a row, as many as its longest cell needs."""
    folded = {
        k: wrapped(row[k], room) if columns[k].folds else [_cut(row[k], room)]
        for k, room in widths.items()
    }
    for number in range(max(map(len, folded.values()), default=0)):
        parts = [lines[number] if number < len(lines) else "" for lines in folded.values()]
        placed = [
            _placed(part, widths[k], columns[k].right)
            for k, part in zip(widths, parts, strict=True)
        ]
        yield Line((" " * _GAP).join(placed).rstrip(), len(parts[0]) if style else 0, style)


def _cut(text: str, room: int) -> str:
    if cells_of(text) <= room:
        return text
    while cells_of(text) > room - 1:
        text = text[:-1]
    return f"{text}…"


def _placed(text: str, width: int, right: bool) -> str:
    blanks = " " * (width - cells_of(text))
    return blanks + text if right else text + blanks
