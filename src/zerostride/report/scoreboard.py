"""The scoreboard as a self-contained page: a heat map, and each pattern's different answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..core.plan import Plan
from ..derive.scoreboard import LEGEND, MARKS, PATTERNS, Answer, Pattern, ScoreRow
from ..system.version import __version__
from .drawing import figure
from .markup import esc, page

_INTRO = (
    "Every engine and its measured releases, op for op, beside NumPy. Engines with (read) were "
    "read about, not run. A cell opens its example; the releases of a row answer alike."
)


def scoreboard_page(rows: Sequence[ScoreRow]) -> str:
    """The page of a scoreboard.

    Args:
        rows: from :func:`zerostride.derive.scoreboard.scoreboard`.
    """
    return page("Engines and patterns", "".join(_parts(rows)))


def _parts(rows: Sequence[ScoreRow]) -> Iterator[str]:
    yield '<header><p class="brand">zerostride</p><h1>Engines and patterns</h1>'
    yield f"<p>{esc(_INTRO)}</p></header><main>"
    marks = (
        f'<span class="badge heat {kind}">{MARKS[kind]}</span> {esc(words)} '
        for kind, words in LEGEND.items()
    )
    yield f'<p class="legend">{"".join(marks)}</p>'
    yield '<div class="x"><table class="t scores"><thead><tr><th scope="col">engine</th>'
    for number, pattern in enumerate(PATTERNS, 1):
        yield f'<th scope="col" title="{esc(pattern.text)}"><a href="#p{number}">{number}</a></th>'
    yield "</tr></thead><tbody>"
    for row in rows:
        yield f'<tr><th scope="row">{esc(row.name)}</th>'
        for number, (pattern, cell) in enumerate(zip(PATTERNS, row.cells, strict=True), 1):
            title = f"{row.name}, {pattern.text}: {LEGEND[cell.kind]}"
            yield f'<td><a class="heat {cell.kind}" href="#p{number}" title="{esc(title)}">'
            yield f"{cell.mark}</a></td>"
        yield "</tr>"
    yield "</tbody></table></div>"
    for number, pattern in enumerate(PATTERNS, 1):
        yield from _pattern(number, pattern, rows)
    yield f"</main><footer>Made by zerostride {esc(__version__)}.</footer>"


def _pattern(number: int, pattern: Pattern, rows: Sequence[ScoreRow]) -> Iterator[str]:
    """A pattern: NumPy's answer, then each other answer with the engines that give it."""
    yield f'<section id="p{number}"><h2>{number}. <code>{esc(pattern.text)}</code></h2>'
    yield f'<p>{esc(pattern.words[0].upper() + pattern.words[1:])}.</p><div class="plans">'
    yield _answer("NumPy", pattern.ask(None))
    yield "</div>"
    others: dict[object, list[tuple[ScoreRow, Answer]]] = {}
    for row in rows:
        cell = row.cells[number - 1]
        if cell.kind != "same":
            key = cell.answer if isinstance(cell.answer, Plan) else cell.kind
            others.setdefault(key, []).append((row, cell.answer))
    for every in others.values():
        names, (first, answer) = ", ".join(row.name for row, _ in every), every[0]
        yield f'<div class="plans">{_answer(names, answer)}</div>'
        yield f"<p><code>{esc(pattern.command(first.engine.title))}</code></p>"
    yield "</section>"


def _answer(title: str, answer: Answer) -> str:
    """A plan as a drawing, an error as its text."""
    if isinstance(answer, Plan):
        names = ["data"] if len(answer.operands) == 1 else list("ABC"[: len(answer.operands)])
        return figure(title, answer, names)
    head = f'<figure class="no"><figcaption>{esc(title)}</figcaption>'
    return f"{head}<pre>{esc(answer, lines=True)}</pre></figure>"


__all__ = ["scoreboard_page"]
