"""The releases of an engine side by side, and when the answer changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from ..core.plan import Plan
from ..engines.changes import CHANGES
from ..engines.model import Engine
from ..engines.planning import engine_plan
from ..engines.releases import (
    change_points,
    changed_in,
    past_notes,
    release_before,
    releases_of,
    short,
)
from ..engines.table import find_engine
from ..errors import BroadcastError, Reason
from ..sizes import Shape

if TYPE_CHECKING:
    from .comparison import Compared

Answer: TypeAlias = Plan | BroadcastError


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


def history(
    engine: Engine, shapes: Sequence[Shape], op: str | None, answer: Answer, meant: Plan
) -> tuple[str, ...]:
    """When an engine's answer became what it is in a release, and whether a later one mended it.

    Args:
        engine: the row of the release.
        shapes: the operands', numbers alone.
        op: the op.
        answer: the release's answer for these shapes; where planning them gives another one, the
            history of that is not told.
        meant: the plan that is meant.

    >>> import zerostride as zs
    >>> meant = zs.plan((5, 2), (2,))
    >>> row = find_engine("ncnn@20230517")
    >>> history(row, ((5, 2), (2,)), None, _planned(row.title, ((5, 2), (2,)), None), meant)[0][:30]
    'ncnn: was mended in 20230816; '
    """
    if engine.name not in CHANGES:
        return ()
    points = change_points(engine)
    now = sum(not release_before(engine.release, point) for point in points) - 1
    answers = [_planned(f"{engine.name}@{point}", shapes, op) for point in points]
    if now < 0 or not _equal(answers[now], answer):
        return ()
    states = [_state_of(one, meant) for one in answers]
    told = [k for k in range(1, now + 1) if states[k] != states[k - 1]][-1:]
    told += [k for k in range(now + 1, len(points)) if states[k] != states[k - 1]][:1]
    notes = []
    for k in told:
        newer = answers[k]
        details = changed_in(engine, points[k], op, newer if isinstance(newer, Plan) else meant)
        notes.append("; ".join([f"{engine.name}: {_WORDS[states[k]]} {points[k]}", *details]))
    return tuple(notes)


def _planned(name: str, shapes: Sequence[Shape], op: str | None) -> Answer:
    try:
        return engine_plan(*shapes, engine=name, op=op)
    except BroadcastError as error:
        return error


def _equal(one: Answer, other: Answer) -> bool:
    if isinstance(one, Plan) or isinstance(other, Plan):
        return one == other
    return one.silent == other.silent


def _state_of(answer: Answer, meant: Plan) -> str:
    if isinstance(answer, Plan):
        return "right" if answer == meant else "wrong"
    return "wrong" if answer.silent else "refused"


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
