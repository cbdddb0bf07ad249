"""The new form of every operand of every broadcast when a model's images become channels-last.

Converters from NCHW to NHWC transpose images, and guess by equal sizes to which axis a constant
such as (512, 1, 1) or (32,) belongs. This module derives it: a broadcast's plan has the result axis
of every operand axis, and the image's layout has the new place of that axis. So the operand becomes
its aligned form with the axes in the new order. Each answer is checked on random data: the data
under the model's plan, transposed, must equal the changed operand under NumPy's rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...core.alignment import apply
from ...core.plan import Plan, RuleUse
from ...core.rules import RULES
from ...derive.express import Expression
from ...errors import BroadcastError, ZerostrideError
from ...sizes import Shape
from ..findings import Finding, Verdict
from ..format_table import lowered, module_of
from ..ir.graph import Graph
from ..ir.moves import at_rank
from ..ir.site import Kind, Operand, Site
from ..layout.images import Layouts, Perm, follow
from ..layout.proof import prove
from ..reasons import Cause
from ..transport.ways import canonical
from .judged_site import Judgement, sizes_of

#: The layouts that a user can choose.
LAYOUTS = ("nhwc",)
_JUDGED = frozenset({Kind.ELEMENTWISE, Kind.WHERE, Kind.PRELU, Kind.EXPAND})
#: Kinds whose other operands are vectors along the channels, in any layout.
_OF_CHANNELS = frozenset({Kind.CHANNEL, Kind.CLIP})
_NUMPY = RULES["numpy"]


@dataclass(frozen=True, slots=True)
class Move:
    """The change of one operand, for a user of a converter.

    Attributes:
        name: the operand.
        before, after: its shape now, and channels-last.
        perm: its aligned form's axes in their new order.
        how: "stays", "image" (the converter transposes it), "reshape" or "transpose".
        constant: whether it is a constant, which is changed in the file; otherwise an op before
            the node changes it.
    """

    name: str
    before: tuple[Any, ...]
    after: tuple[Any, ...]
    perm: Perm
    how: str
    constant: bool

    @property
    def changes(self) -> bool:
        """Whether a converter that only transposes images gets it wrong."""
        return self.how in ("reshape", "transpose")

    def describe(self) -> str:
        """In words."""
        if self.how == "stays":
            return f"{self.name!r} stays {_text(self.before)}"
        if self.how == "image":
            return f"{self.name!r} is an image: {_text(self.before)} is {_text(self.after)} then"
        verb = {"reshape": "reshape", "transpose": "transpose"}[self.how]
        order = f" (axes {_text(self.perm)} of its aligned form)" if verb == "transpose" else ""
        what = "the constant " if self.constant else "put an op before the node: "
        return f"{what}{self.name!r}: {verb} {_text(self.before)} to {_text(self.after)}{order}"


@dataclass(frozen=True, slots=True)
class Relayout(Expression):
    """The fix of a finding about the layout: an Expression whose operands may be transposed.

    Attributes:
        moves: the change of each operand.
    """

    moves: tuple[Move, ...] = ()

    def describe(self, names: Sequence[Any] = ()) -> str:
        """The change in a line."""
        named = [str(name) for name in names] or [move.name for move in self.moves]
        changes = [
            replace(move, name=name).describe()
            for move, name in zip(self.moves, named, strict=False)
            if move.changes
        ]
        return "; ".join(changes) or "nothing to change"

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        data = Expression.as_dict(self)
        moves = [
            {
                "operand": move.name,
                "before": [_plain(size) for size in move.before],
                "after": [_plain(size) for size in move.after],
                "perm": move.perm,
                "how": move.how,
                "constant": move.constant,
            }
            for move in self.moves
        ]
        return {**data, "moves": moves}


def _plain(size: Any) -> Any:
    return size if isinstance(size, int) else str(size)


def _text(shape: Sequence[Any]) -> str:
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def check_layout(layout: str | None) -> None:
    """Refuses a layout that is not known."""
    if layout is not None and layout not in LAYOUTS:
        raise ZerostrideError(f"there is no layout {layout!r}; known: {', '.join(LAYOUTS)}")


def layout_findings(graph: Graph) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """A finding for every broadcast, and notes on places where the layout cannot be followed.

    Args:
        graph: the model, with resolved sizes.
    """
    layouts = follow(lowered(graph))
    find = module_of(graph).find_site
    sites = [site for node in graph.nodes if (site := find(node)) is not None]
    return tuple(_judgement(site, layouts).of(site) for site in sites), tuple(layouts.notes)


def _says(
    message: str,
    source: Plan | BroadcastError | None = None,
    target: Plan | BroadcastError | None = None,
    verdict: Verdict = Verdict.UNKNOWN,
    **more: Any,
) -> Judgement:
    return Judgement(source, target, verdict, Cause.LAYOUT, f"channels-last{message}", **more)


def _judgement(site: Site, layouts: Layouts) -> Judgement:
    images = [layouts.of(part.tensor) for part in site.operands]
    if site.kind not in _JUDGED:
        return _other(site, images)
    shapes = tuple(sizes_of(part) for part in site.operands)
    unknown = next((part for part in site.operands if part.shape is None), None)
    if unknown is not None or any(None in (part.shape or ()) for part in site.operands):
        return _says(f": a size of {(unknown or site.operands[0]).name!r} is not known")
    try:
        plan = site.plan(shapes)
    except BroadcastError as error:
        return _says(f": the model itself does not broadcast here: {error.detail}", error)
    if plan.open is not None and len(plan.open.accepted) > 1:
        return _says(": how the operands lie depends on sizes that are not known", plan)
    perm = next((p for p in images if p is not None and len(p) == plan.rank), None)
    if perm is not None:
        return _moved(site, plan, perm, images)
    message = ": no operand is an image, nothing changes"
    if any(p is not None for p in images):
        message = ": the image has fewer axes than the result, so it is put back before"
    return _says(message, plan, plan, Verdict.SAME)


def _other(site: Site, images: Sequence[Perm | None]) -> Judgement:
    """The finding of a kind whose operands do not lie on single axes of an image."""
    message, verdict = ": no operand is an image, nothing changes", Verdict.SAME
    if any(perm is not None for perm in images):
        message = ": the image is put back into the model's order before this op"
        if site.kind in _OF_CHANNELS:
            message = ": vectors along the channels stay as they are"
        elif site.kind in (Kind.CUSTOM, Kind.NOT_MODELLED):
            message = f": nothing is known of the axes of {site.node.op}"
            verdict = Verdict.UNKNOWN
    return _says(message, verdict=verdict)


def _moved(site: Site, plan: Plan, perm: Perm, images: Sequence[Perm | None]) -> Judgement:
    """The finding of a broadcast with an image: the changes of its operands."""
    moves = _moves(site, plan, perm, images)
    after = tuple(move.after for move in moves)
    result = tuple(plan.shape[axis] for axis in perm)
    rows = tuple((len(move.after), move.how) for move in moves)
    name = (canonical(site) or "add") if site.kind is not Kind.EXPAND else ""
    proof = prove(plan, plan.operands, perm, rows, name)
    if proof.fault is not None:
        return _says(f": {moves[proof.fault].name!r} as changed is not what the model means", plan)
    notes = (*_traps(site, plan), proof.words)
    changes = [move for move in moves if move.changes]
    if not changes:
        message = ": nothing changes but the image itself"
        return _says(message, plan, _planned(site, after), Verdict.SAME, notes=notes)
    left = tuple(m.after if m.how == "image" else m.before for m in moves)
    rule = RuleUse("unidirectional" if site.kind is Kind.EXPAND else "numpy")
    changed = tuple(move.changes for move in moves)
    fix = Relayout(after, {}, False, (), result, rule, changed, moves=moves)
    stay = tuple(m.describe() for m in moves if not m.changes)
    return _says(
        ", " + "; ".join(move.describe() for move in changes),
        plan,
        _planned(site, left),
        Verdict.DIFFERENT,
        fix=fix,
        witness=proof.witness,
        notes=(*stay, *notes),
    )


def _planned(site: Site, shapes: tuple[Shape, ...]) -> Plan | BroadcastError:
    try:
        return apply(RULES["bidirectional"] if site.kind is Kind.EXPAND else _NUMPY, shapes, {})
    except BroadcastError as error:
        return error


def _moves(site: Site, plan: Plan, perm: Perm, images: Sequence[Perm | None]) -> tuple[Move, ...]:
    moves = []
    for k, part in enumerate(site.operands):
        if k >= len(plan.aligned):  # the target of a Broadcast op: a list of sizes
            moves.append(_target(part, perm))
        else:
            moves.append(_move(part, plan, k, perm, images[k]))
    return tuple(moves)


def _target(part: Operand, perm: Perm) -> Move:
    """The target sizes of an Expand in the new order, all axes named."""
    before = sizes_of(part)
    whole = at_rank(before, len(perm))
    after = tuple(whole[axis] for axis in perm)
    how = "stays" if after == before else "reshape"
    return Move(part.name, before, after, perm, how, part.constant)


def _move(part: Operand, plan: Plan, k: int, perm: Perm, image: Perm | None) -> Move:
    before = plan.operands[k]
    aligned = plan.aligned[k]
    whole = tuple(aligned[axis] for axis in perm)
    if image is not None and len(image) == len(before) == plan.rank and image == perm:
        return Move(part.name, before, whole, perm, "image", part.constant)
    # Leading ones are not needed, but an operand keeps its number of axes.
    after = whole
    while len(after) > len(before) and after[0] == 1:
        after = after[1:]
    filled = [axis for axis in range(plan.rank) if aligned[axis] != 1]
    moved = [axis for axis in perm if aligned[axis] != 1]
    how = "transpose"
    if image is None and filled == moved:
        how = "stays" if after == before else "reshape"
    return Move(part.name, before, after, perm, how, part.constant)


# Sizes that mislead.


def _traps(site: Site, plan: Plan) -> tuple[str, ...]:
    """Notes on equal sizes by which a converter may guess the wrong axis."""
    traps = []
    for part, shape, aligned in zip(site.operands, plan.operands, plan.aligned, strict=False):
        if len(shape) == plan.rank:
            continue  # its axes are unambiguous
        for axis, size in enumerate(aligned):
            twins = [a for a, other in enumerate(plan.shape) if a != axis and other == size]
            if size == 1 or not twins:
                continue
            where = (
                f"axes {', '.join(map(str, twins))} have" if twins[1:] else f"axis {twins[0]} has"
            )
            traps.append(
                f"{part.name!r} lies on axis {axis} of the result; {where} the size {size} too, so "
                "who matches sizes may put it elsewhere"
            )
    return tuple(dict.fromkeys(traps))
