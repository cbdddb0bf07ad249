"""Older releases of engines: the newest row, with the changes since then taken back.

`changes` has the releases that were measured and the changes between them. A name such as
"ncnn@20230517" asks for the row of a release.
"""

from __future__ import annotations

import functools
import re
from dataclasses import replace

from ..core.alignment import Rule
from ..core.plan import Plan
from ..errors import BroadcastError, Misfit, Reason
from ..sizes import Asker
from .changes import CHANGES, MEASURED, Change
from .model import Engine, Rules

#: What pip's names of ncnn's releases begin with.
_PREFIX = "1.0."


def short(release: str) -> str:
    """A release as users write it: ncnn's without the prefix of its wheels."""
    return release.removeprefix(_PREFIX)


def releases_of(engine: Engine) -> tuple[str, ...]:
    """The measured releases that a name may ask for, oldest first."""
    older = MEASURED.get(engine.name) or tuple(map(short, engine.also))
    return (*older, short(engine.release))


def release_row(engine: Engine, asked: str) -> Engine:
    """The row of an engine's release.

    Args:
        engine: the newest row.
        asked: the release, or the beginning of its name: "2024.6". One between two measured
            releases gets the row of the older one.

    Raises:
        BroadcastError: it is not a release, or it is older or newer than all that were measured.

    >>> from zerostride.engines import ENGINES
    >>> row = release_row(ENGINES["ncnn"], "20230601")
    >>> row.title, row.release
    ('ncnn@20230601', '20230517')
    """
    measured, newest = releases_of(engine), short(engine.release)
    release = _measured(short(asked), measured)
    if release is None:
        raise BroadcastError(
            f"{engine.name} {asked!r} was not measured",
            reason=Reason.UNKNOWN_ENGINE,
            hint=f"measured: {', '.join(reversed(measured))}",
        )
    if release == newest:
        return engine
    row = engine
    for change in changes_since(engine, release):
        row = _taken_back(row, change)
    run = f"{engine.name} {release}, run on generated cases by value"
    source = run if engine.name in MEASURED else engine.source
    return replace(row, release=release, asked=short(asked), source=source)


def release_before(release: str, other: str) -> bool:
    """Whether a release is older than another one."""
    return _numbers(short(release)) < _numbers(short(other))


def release_note(engine: Engine) -> list[str]:
    """The release whose row answers, where another one was asked for."""
    asked, release = engine.asked, engine.release
    if not asked or _begins(release, asked) or _begins(asked, release):
        return []
    before = f"the row of {engine.release}, the newest measured before it, is used"
    return [f"{engine.name} {engine.asked} was not measured; {before}"]


def title_of(engine: Engine, version: str) -> str:
    """The name of the row of an installed version; of one between, that of the next measured one.

    A change is recorded beside the first measured release that has it, so the next one is the row
    that a new measurement is compared with.
    """
    version = short(version.partition("-")[0].partition("+")[0])
    try:
        later = (
            one
            for one in releases_of(engine)[:-1]
            if _begins(version, one) or _numbers(version) < _numbers(one)
        )
        return next((f"{engine.name}@{release}" for release in later), engine.name)
    except ValueError:  # "2.5.0rc1"
        return engine.name


def _measured(asked: str, measured: tuple[str, ...]) -> str | None:
    """The newest measured release of that name, or else the newest one before it."""
    named = [r for r in measured if _begins(r, asked) or _begins(asked, r)]
    if named:
        return named[-1]
    try:
        place = _numbers(asked)
    except ValueError:
        return None
    before = [r for r in measured if _numbers(r) < place]
    return before[-1] if 0 < len(before) < len(measured) else None


def _begins(release: str, part: str) -> bool:
    return f"{release}.".startswith(f"{part}.")


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", release.partition("+")[0]))


def changes_since(engine: Engine, release: str) -> list[Change]:
    """The changes that a release lacks, newest first."""
    place = _numbers(short(release))
    return [row for row in CHANGES.get(engine.name, ()) if _numbers(row.until) > place]


def _taken_back(engine: Engine, change: Change) -> Engine:
    """The row of the releases before a change."""

    def rules(newer: Rules) -> Rules:
        return {name: _older_rule(rule, change) for name, rule in newer.items()}

    if not change.ops:
        usual = engine.elementwise.keys()
        own = {op: rules(table) for op, table in engine.ops.items() if table.keys() == usual}
        return replace(engine, elementwise=rules(engine.elementwise), ops={**engine.ops, **own})
    own = {op: rules(engine.ops.get(op, engine.elementwise)) for op in change.ops}
    return replace(engine, ops={**engine.ops, **own})


def _older_rule(rule: Rule, change: Change) -> Rule:
    silent, source = rule.silent | change.silent, change.source
    if change.align is not None:
        return replace(rule, align=change.align, silent=silent, source=source)
    check = functools.partial(_check, rule, change)
    return replace(rule, check=check, silent=silent, source=source)


def _check(rule: Rule, change: Change, plan: Plan, asker: Asker) -> None:
    """The rule's own check, and the fault that the change mended."""
    if change.strikes(plan, asker):
        raise Misfit(change.effect, change.fault)
    if rule.check is not None:
        rule.check(plan, asker)


def past_notes(engine: Engine, plan: Plan, since: str = "") -> tuple[str, ...]:
    """What releases before a row's did otherwise on a plan, one sentence each.

    Args:
        engine: the row.
        plan: its plan.
        since: only what changed in this release.

    >>> import zerostride as zs
    >>> from zerostride.engines import ENGINES
    >>> past_notes(ENGINES["ncnn"], zs.plan((17, 1, 128), (1, 2, 128), engine="ncnn"))[0][:20]
    'ncnn before 20230816'
    >>> past_notes(ENGINES["numpy"], zs.plan((17, 1, 128), (1, 2, 128)))
    ()
    """
    if engine.name not in CHANGES:
        return ()
    asker, place = Asker(), _numbers(short(engine.release))
    return tuple(
        row.note(engine.name)
        for row in CHANGES[engine.name]
        if _numbers(row.until) <= place
        and since in ("", row.until)
        and _concerns(row, plan)
        and row.strikes(plan, asker)
    )


def mended_notes(engine: Engine, plan: Plan) -> tuple[str, ...]:
    """The later releases that mended what a release does otherwise on a plan of the newest one."""
    if not engine.asked:
        return ()
    asker = Asker()
    return tuple(
        f"{engine.name} {row.until} mended this: {row.note(engine.name)}"
        for row in changes_since(engine, engine.release)
        if _concerns(row, plan) and row.strikes(plan, asker)
    )


def _concerns(change: Change, plan: Plan) -> bool:
    return not change.ops or plan.rule.op in change.ops
