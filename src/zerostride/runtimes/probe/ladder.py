"""Cases that climb the ranks one by one, to find the highest that an engine carries."""

from __future__ import annotations

from collections.abc import Iterator

from .case import Case, Shape
from .catalogue import CatalogueRow, Draw, ShapeRoles, rows_of


def ladder(engine: str) -> Iterator[Case]:
    """For every op of the engine and every rank up to the row's highest: a few simple cases."""
    for row in rows_of(engine):
        for rank in range(row.max_rank + 1):
            for shapes in _rungs(row, rank):
                a, b, *rest = shapes
                third = rest[0] if rest else None
                yield Case(engine, row.op, a, b, third, {**row.attrs, **_attrs(row, rank)})


def _rungs(row: CatalogueRow, rank: int) -> Iterator[tuple[Shape, ...]]:
    ones = (1,) * rank
    first, last = ((2, *ones[1:]), (*ones[:-1], 3)) if rank else ((), ())
    # Neighbouring axes that stretch in turn cannot be merged, so they use every rank there is.
    turns = tuple(2 if axis % 2 and axis < 20 else 1 for axis in range(rank))
    others = tuple(2 if not axis % 2 and axis < 20 else 1 for axis in range(rank))
    both = tuple(max(pair) for pair in zip(turns, others, strict=True))
    if row.roles is ShapeRoles.WHERE:
        yield from ((first, last, ()), (turns, others, ones))
    elif row.roles is ShapeRoles.PRELU:
        yield from ((last, (3,)), (first, (1,)))
    elif row.roles is ShapeRoles.TO:
        if row.draw is Draw.IN_DIM:
            yield ones, first
            return
        yield from ((ones, first), ((), last), (turns, both))
    elif row.draw is Draw.NONE_RULE:
        yield from ((first, first), (both, both))
    elif row.draw in (Draw.PDPD, Draw.PADDLE_AXIS):
        yield from ((first, first), (both, turns))
    else:
        yield from ((first, last), (turns, others), (first, ()))


def _attrs(row: CatalogueRow, rank: int) -> dict[str, object]:
    if row.draw is Draw.NONE_RULE:
        return {"auto_broadcast": "none"}
    if row.draw is Draw.NUMPY_RULE:
        return {"auto_broadcast": "numpy"}
    if row.draw is Draw.PDPD:
        return {"auto_broadcast": "pdpd", "axis": 0}
    if row.draw is Draw.PADDLE_AXIS:
        return {"axis": -1}
    if row.draw is Draw.BROADCAST_3:
        return {"mode": "bidirectional"}
    if row.draw is Draw.IN_DIM:
        return {"broadcast_dimensions": list(range(rank))}
    return {}
