"""Older releases of engines: the newest row, with the changes since then taken back.

`changes` has the releases that were measured and the changes between them. A name such as
"ncnn@20230517" asks for the row of a release.
"""

from __future__ import annotations

import functools
from dataclasses import replace

from ..core.alignment import Rule
from ..core.plan import Plan
from ..errors import BroadcastError, Misfit, Reason
from ..sizes import Asker
from .changes import CHANGES, MEASURED, Change, place_of
from .model import Divergence, Engine, Rules

#: The prefix of pip's names of ncnn's releases.
_PREFIX = "1.0."


def short(release: str) -> str:
    """A release as users write it: ncnn's without the prefix of its wheels."""
    return release.removeprefix(_PREFIX)


def releases_of(engine: Engine) -> tuple[str, ...]:
    """The measured releases that a name may ask for, oldest first."""
    newest = short(engine.newest or engine.release)
    whole = (row.release for row in engine.older)
    older = {*MEASURED.get(engine.name, ()), *map(short, (*engine.also, *whole))} - {newest}
    return (*sorted(older, key=place_of), newest)


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
    measured = releases_of(engine)
    release = _measured(short(asked), measured)
    if release is None:
        raise BroadcastError(
            f"{engine.name} {asked!r} was not measured",
            reason=Reason.UNKNOWN_ENGINE,
            hint=f"measured: {', '.join(reversed(measured))}",
        )
    if release == measured[-1]:
        return replace(engine, asked=short(asked))
    return replace(_older(engine, release), asked=short(asked))


def installed_row(engine: Engine, version: str) -> Engine:
    """The row of an installed version of an engine.

    A version that was not measured gets the row of the newest measured release before it; one older
    than all gets the oldest.

    Args:
        engine: the newest row.
        version: as the package's metadata have it.

    >>> from zerostride.engines import ENGINES
    >>> installed_row(ENGINES["ncnn"], "1.0.20230601").release
    '20230517'
    """
    measured, version = releases_of(engine), short(_plain(version))
    place = place_of(version)
    before_all = () < place < place_of(measured[0])
    release = _measured(version, measured) or measured[0 if before_all else -1]
    if release == measured[-1]:
        return engine
    row = _older(engine, release)
    if not changes_since(engine, release) and not engine.older:
        return row
    known = "" if _begins(version, release) else ", which was not measured"
    why = f"{engine.name} {version} is installed{known}; the row of {release} is used"
    newest = f"{engine.name}@{row.newest} names that of the newest measured release"
    return replace(row, why=f"{why}; {newest}")


def _plain(version: str) -> str:
    """A version without the name of its build."""
    return version.partition("-")[0].partition("+")[0]


def _older(engine: Engine, release: str) -> Engine:
    """The row of a measured release before the newest."""
    whole = next((row for row in engine.older if short(row.release) == release), None)
    if whole is not None:
        return replace(whole, newest=short(engine.release))
    row = engine
    for change in changes_since(engine, release):
        row = _taken_back(row, change)
    run = f"{engine.name} {release}, run on generated cases by value"
    source = run if release in MEASURED.get(engine.name, ()) else engine.source
    return replace(row, release=release, newest=short(engine.release), source=source)


def release_before(release: str, other: str) -> bool:
    """Whether a release is older than another one."""
    return place_of(short(release)) < place_of(short(other))


def release_note(engine: Engine) -> list[str]:
    """The release whose row answers, and why, where that is not plain from the name."""
    asked, release = engine.asked, short(engine.release)
    if not asked or _begins(release, asked) or _begins(asked, release):
        return [engine.why] if engine.why else []
    before = f"the row of {engine.release}, the newest measured before it, is used"
    return [f"{engine.name} {engine.asked} was not measured; {before}"]


def title_of(engine: Engine, version: str) -> str:
    """The name of an installed version's row; between two measured releases, the newer one's.

    A change is recorded beside the first measured release that has it, so a new measurement is
    compared with the newer one's row.
    """
    version, measured = short(_plain(version)), releases_of(engine)
    later = (r for r in measured if _begins(version, r) or place_of(version) < place_of(r))
    return f"{engine.name}@{next(later, measured[-1])}"


def _measured(asked: str, measured: tuple[str, ...]) -> str | None:
    """The newest measured release of that name, or else the newest one before it."""
    named = [r for r in measured if _begins(r, asked) or _begins(asked, r)]
    if named:
        return named[-1]
    place = place_of(asked)
    before = [r for r in measured if place_of(r) < place]
    return before[-1] if 0 < len(before) < len(measured) else None


def _begins(release: str, part: str) -> bool:
    return f"{release}.".startswith(f"{part}.")


def changes_since(engine: Engine, release: str) -> list[Change]:
    """The changes that a release lacks, newest first."""
    place = place_of(short(release))
    return [row for row in CHANGES.get(engine.name, ()) if place_of(row.until) > place]


def _taken_back(engine: Engine, change: Change) -> Engine:
    """The row of the releases before a change."""
    if change.may:
        divergence = Divergence(
            change.fault,
            change.effect,
            change.source,
            change.run,
            functools.partial(_strikes, change),
            ops=change.ops,
            dtypes=change.dtypes,
        )
        return replace(engine, divergences=(*engine.divergences, divergence))

    def rules(newer: Rules) -> Rules:
        return {name: _older_rule(rule, change) for name, rule in newer.items()}

    if change.to_target:
        named = {op: rules(engine.ops[op]) for op in change.ops}
        if named:
            return replace(engine, ops={**engine.ops, **named})
        return replace(engine, to_target=rules(engine.to_target))
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
    if change.check is not None:
        return replace(rule, check=change.check, silent=silent, source=source)
    if change.turns is not None:
        turned = functools.partial(_turned, rule, change)
        return replace(rule, check=turned, silent=silent, source=source)
    check = functools.partial(_check, rule, change)
    return replace(rule, check=check, silent=silent, source=source)


def _check(rule: Rule, change: Change, plan: Plan, asker: Asker) -> None:
    """The rule's own check, and the fault that the change mended."""
    if change.strikes(plan, asker):
        raise Misfit(change.effect, change.fault)
    if rule.check is not None:
        rule.check(plan, asker)


def _turned(rule: Rule, change: Change, plan: Plan, asker: Asker) -> None:
    """The rule's own check, with another effect of its refusals."""
    if rule.check is None:
        return
    try:
        rule.check(plan, asker)
    except Misfit as misfit:
        if misfit.reason is not change.turns:
            raise
        raise Misfit(change.effect, misfit.detail) from None


def _strikes(change: Change, plan: Plan, asker: Asker) -> bool:
    return _of_its_kind(change, plan) and change.strikes(plan, asker)


def _of_its_kind(change: Change, plan: Plan) -> bool:
    """Whether a plan is of a Broadcast op if the change concerns those, and else is not."""
    return change.to_target is (len(plan.operands) == 1)


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
    asker, place = Asker(), place_of(short(engine.release))
    return tuple(
        row.note(engine.name)
        for row in CHANGES[engine.name]
        if place_of(row.until) <= place
        and since in ("", row.until)
        and _concerns(row, plan)
        and row.strikes(plan, asker)
    )


def change_points(engine: Engine) -> tuple[str, ...]:
    """The measured releases at which the engine changed, oldest first, after the oldest of all.

    >>> from zerostride.engines import ENGINES
    >>> change_points(ENGINES["openvino"])
    ('2024.6.0', '2026.2.1')
    """
    oldest = releases_of(engine)[0]
    changed = {row.until for row in changes_since(engine, oldest)}
    return (oldest, *sorted(changed, key=place_of))


def changed_in(engine: Engine, release: str, op: str | None, plan: Plan) -> tuple[str, ...]:
    """What releases before one did otherwise on a plan, one sentence each."""
    asker = Asker()
    return tuple(
        row.note(engine.name)
        for row in CHANGES.get(engine.name, ())
        if row.until == release and (not row.ops or op in row.ops) and _strikes(row, plan, asker)
    )


def _concerns(change: Change, plan: Plan) -> bool:
    return _of_its_kind(change, plan) and (not change.ops or plan.rule.op in change.ops)
