"""Floor 3: the same shapes under every rule and on every engine, against one reference.

The answer to "what would this mean elsewhere?" in one table: a row that means something else while
nothing complains is marked, and so is one that agrees only at the sizes given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .alignment import Attributes
from .dims import Shape, as_shape
from .engines import ENGINES
from .engines.history import past_notes
from .errors import BroadcastError, Misfit, Reason
from .plan import Plan
from .rules import RULES
from .traps import Side, Trap, size_traps


@dataclass(frozen=True, slots=True)
class Row:
    """What one rule, or one engine's version of a rule, makes of the shapes.

    Attributes:
        kind: "rule" (what a document says) or "engine" (what a release does).
        name: the rule's or the engine's name.
        rule: the rule's name.
        release: the engine's measured release; empty for a rule.
        attributes: what the rule was used with.
        answer: the plan, or the error that refuses the shapes.
        verdict: against the reference: "same", "same_here" (only at these sizes: see `traps`),
            "different", "refused", or "only_here" (the reference refuses, this does not).
        traps: the sizes at which it would mean something else.
        notes: what older releases of the engine did with these shapes, where that was otherwise.
    """

    kind: str
    name: str
    rule: str
    release: str
    attributes: Attributes
    answer: Plan | BroadcastError
    verdict: str
    traps: tuple[Trap, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def silent(self) -> bool:
        """Whether a wrong meaning would pass unnoticed."""
        if isinstance(self.answer, BroadcastError):
            return self.answer.silent
        return self.verdict == "different"

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        from .explain import as_dict  # drawings are loaded by those who ask for them

        said: dict[str, Any] = {
            "kind": self.kind,
            "name": self.name,
            "rule": self.rule,
            "release": self.release,
            "attributes": dict(self.attributes),
            "verdict": self.verdict,
            "silent": self.silent,
            "traps": [trap.as_dict() for trap in self.traps],
            "notes": list(self.notes),
        }
        if isinstance(self.answer, Plan):
            return {**said, "plan": as_dict(self.answer), "refusal": None}
        refusal = {"reason": self.answer.reason.value, "detail": self.answer.detail}
        return {**said, "plan": None, "refusal": refusal}


@dataclass(frozen=True, slots=True)
class Comparison:
    """The rows of a comparison; as text, data and JSON.

    Attributes:
        shapes: the operands' shapes.
        reference: the row that the others are held against.
        rows: one a rule, then one for each rule of each engine.
    """

    shapes: tuple[Shape, ...]
    reference: Row
    rows: tuple[Row, ...]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "shapes": [list(shape) for shape in self.shapes],
            "reference": self.reference.as_dict(),
            "rows": [row.as_dict() for row in self.rows],
        }

    def to_json(self, indent: int | None = 2) -> str:
        """The same as a JSON document."""
        import json

        return json.dumps(self.as_dict(), indent=indent)

    def __str__(self) -> str:
        shapes = " and ".join(map(str, self.shapes))
        lines = [f"{shapes}, against {self.reference.kind} {_label(self.reference)}", ""]
        heads = ("", "kind", "name", "release", "result", "aligned", "meaning")
        lines += _table([heads, *map(_cells, self.rows)])
        notes = [f"  {mark} {text}" for mark, text in _LEGEND.items() if self._has(mark)]
        # A rule and the engine that has it part at the same sizes: once is enough.
        told = {trap.shapes: trap for row in reversed(self.rows) for trap in row.traps}
        notes += [f"  {trap}" for trap in told.values()]
        notes += [f"  {note}" for row in self.rows for note in row.notes]
        return "\n".join([*lines, "", *notes] if notes else lines)

    def _has(self, mark: str) -> bool:
        return any(_mark(row) == mark for row in self.rows)


_LEGEND = {
    "!": "silent: it computes something else, or nonsense, and does not say so",
    "~": "the same only at these sizes",
}


def compare(*shapes: Any, reference: str = "numpy", axis: int | None = None) -> Comparison:
    """What every rule and every engine makes of element-wise operands of these shapes.

    Args:
        shapes: the operands' shapes.
        reference: the rule, or else the engine (with its default rule), that says what is meant.
        axis: for the rules that have it; the others are asked without.

    Raises:
        BroadcastError: malformed shapes, an unknown reference, or an axis that is not a number.
            Shapes that a rule refuses are a row, not an error.

    >>> import zerostride as zs
    >>> rows = zs.compare((3, 5), (5,)).rows
    >>> next(row.verdict for row in rows if row.name == "ncnn")
    'same_here'
    """
    sizes = _checked(shapes, axis)
    judge = _reference(reference, axis)
    meant = judge.plan(sizes)
    return Comparison(
        sizes,
        _row(judge, sizes, judge, meant),
        tuple(_row(side, sizes, judge, meant) for side in _sides(axis)),
    )


def _checked(shapes: Sequence[Any], axis: Any) -> tuple[Shape, ...]:
    """The shapes, well-formed; what is wrong with all rows alike is an error of its own."""
    try:
        sizes = tuple(map(as_shape, shapes))
        if not sizes:
            raise Misfit(Reason.OPERAND_COUNT, "no shapes given; compare takes two or more")
        if axis is not None and (isinstance(axis, bool) or not hasattr(axis, "__index__")):
            raise Misfit(Reason.ATTRIBUTE, f"axis is a whole number, not {axis!r}")
    except Misfit as misfit:
        raise BroadcastError(misfit.detail, reason=misfit.reason, shapes=shapes) from None
    return sizes


def _sides(axis: int | None) -> Iterator[Side]:
    """Every element-wise rule, then every engine's rules."""
    for rule in RULES.values():
        if not rule.to_target:
            yield _with_axis(Side(rule), axis)
    for engine in ENGINES.values():
        for rule in engine.elementwise.values():
            yield _with_axis(Side(rule, engine=engine.name), axis)


def _with_axis(side: Side, axis: int | None) -> Side:
    attributes: dict[str, Any] = {}
    # onnx6 broadcasts only where it is told to; asked about a broadcast, it is.
    if "broadcast" in side.rule.attributes:
        attributes["broadcast"] = 1
    if axis is not None and "axis" in side.rule.attributes:
        attributes["axis"] = axis
    return Side(side.rule, attributes, side.engine)


def _reference(name: Any, axis: int | None) -> Side:
    for side in _sides(axis):
        if name == (side.engine or side.rule.name):
            return side
    known = dict.fromkeys(side.engine or side.rule.name for side in _sides(None))
    raise BroadcastError(
        f"there is no element-wise rule or engine {name!r}",
        reason=Reason.UNKNOWN_RULE,
        hint=f"one of {', '.join(known)}",
    )


def _row(side: Side, shapes: tuple[Shape, ...], judge: Side, meant: Plan | BroadcastError) -> Row:
    answer = side.plan(shapes)
    traps: tuple[Trap, ...] = ()
    if isinstance(answer, BroadcastError):
        verdict = "refused"
    elif isinstance(meant, BroadcastError):
        verdict = "only_here"
    elif answer != meant:
        verdict = "different"
    else:
        traps = size_traps(side, shapes, judge)
        verdict = "same_here" if traps else "same"
    engine = ENGINES[side.engine] if side.engine else None
    return Row(
        "engine" if engine else "rule",
        engine.name if engine else side.rule.name,
        side.rule.name,
        engine.release if engine else "",
        side.attributes,
        answer,
        verdict,
        traps,
        past_notes(side.engine, answer) if isinstance(answer, Plan) else (),
    )


def _label(row: Row) -> str:
    several = row.kind == "engine" and len(ENGINES[row.name].elementwise) > 1
    return f"{row.name} {row.rule}" if several else row.name


def _mark(row: Row) -> str:
    return "!" if row.silent else "~" if row.verdict == "same_here" else ""


def _cells(row: Row) -> tuple[str, ...]:
    attributes = "".join(f" {name}={value}" for name, value in row.attributes.items())
    start = (_mark(row), row.kind, _label(row) + attributes, row.release)
    if isinstance(row.answer, BroadcastError):
        word = "nonsense" if row.answer.silent else "refused"
        return (*start, "-", "-", f"{word}: {row.answer.detail}")
    aligned = " ".join(map(str, row.answer.aligned))
    return (*start, str(row.answer.shape), aligned, row.verdict.replace("_", " "))


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
