"""The releases of an engine side by side, and when the answer changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..core.plan import Plan
from ..engines.model import Engine
from ..engines.releases import past_notes, releases_of, short
from ..engines.table import find_engine
from ..errors import BroadcastError, Reason

if TYPE_CHECKING:
    from .compare import Compared


def engines_asked(name: str | None, *, releases: bool) -> Sequence[Engine] | None:
    """The engines' rows that a comparison asks for; None: every engine.

    Args:
        name: the engine, or None.
        releases: all of its measured releases, newest first.
    """
    if name is None:
        if releases:
            raise BroadcastError(
                "releases are those of one engine; name it", reason=Reason.UNKNOWN_ENGINE
            )
        return None
    row = find_engine(name)
    if not releases:
        return (row,)
    return [find_engine(f"{row.name}@{release}") for release in reversed(releases_of(row))]


def with_changes(rows: Sequence[Compared]) -> tuple[Compared, ...]:
    """The rows of releases, newest first; a note where one differs from the release before it."""
    noted = []
    for k, row in enumerate(rows):
        older = next((other for other in rows[k + 1 :] if other.rule == row.rule), None)
        note = () if older is None or _same(row, older) else (_note(row, older),)
        noted.append(replace(row, notes=note))
    return tuple(noted)


def _same(row: Compared, older: Compared) -> bool:
    if isinstance(row.answer, Plan) and isinstance(older.answer, Plan):
        return row.answer == older.answer and row.parts == older.parts
    return type(row.answer) is type(older.answer) and _state(row) == _state(older)


def _state(row: Compared) -> str:
    if row.parts or row.verdict in ("same", "same_here", "unknown"):
        return "right"
    return "wrong" if row.silent or row.verdict != "refused" else "refused"


_WORDS = {
    "right": "was mended in",
    "wrong": "became wrong in",
    "refused": "is refused since",
}


def _note(row: Compared, older: Compared) -> str:
    """When the answer changed, and how, with the reports."""
    state = _state(row)
    words = _WORDS[state] if state != _state(older) else "changed in"
    details: Sequence[str] = ()
    if isinstance(row.answer, Plan):
        details = past_notes(find_engine(f"{row.name}@{row.release}"), row.answer, row.release)
    return f"{row.name}: {words} {short(row.release)}" + "".join(f"; {one}" for one in details)
