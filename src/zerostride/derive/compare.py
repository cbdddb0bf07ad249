"""The same shapes under every rule and on every engine, against one reference.

One table marks the rows that silently mean something else, and the rows that agree only at these
sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.alignment import Attributes, apply, arrays_given
from ..core.plan import Plan
from ..core.rules import RULES
from ..core.strict_mode import Strict
from ..core.strict_rule import strict_row
from ..engines import ENGINES, find_engine
from ..engines.model import Engine
from ..engines.planning import as_facts
from ..engines.releases import past_notes
from ..errors import BroadcastError, Misfit, Reason, default_names
from ..sizes import Shape, as_shape, is_open
from .release_rows import engines_asked, with_changes
from .samples import one_sample
from .size_traps import Side, Trap, size_traps
from .tabular import html_table, text_table

if TYPE_CHECKING:
    from ..sizes.condition import Condition
    from .regions import Kind, Meanings


class Part(NamedTuple):
    """Open sizes at which a row does not mean the same as the reference.

    Attributes:
        kind: "different", "silent" (it goes wrong without an error) or "refused".
        when: the sizes, in words.
        values: an example.
        detail: the fault, in a phrase; empty if the alignment is at fault.
    """

    kind: str
    when: Condition
    values: Mapping[str, int]
    detail: str

    def __str__(self) -> str:
        word = {"silent": "nonsense"}.get(self.kind, self.kind)
        when = str(self.when)
        where = f" when {when}" if len(when) <= _LONGEST else " for some sizes"
        where = "" if self.when.always else where
        named = ", ".join(f"{name}={value}" for name, value in self.values.items())
        example = f", for example {named}" if named and where else ""
        return word + where + example + (f": {self.detail}" if self.detail else "")

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        when, values = str(self.when), dict(self.values)
        return {"kind": self.kind, "when": when, "values": values, "detail": self.detail}


@dataclass(frozen=True, slots=True)
class Compared:
    """The result of one rule, or of one engine's version of a rule, for the shapes.

    Attributes:
        kind: "rule" (what a document says) or "engine" (what a release does).
        name: the rule's or the engine's name.
        rule: the rule's name.
        release: the engine's measured release, or the one that was read about; empty for a rule.
        attributes: the attributes of the use of the rule.
        answer: the plan, or the error that refuses the shapes.
        verdict: against the reference: "same", "same_here" (only at these sizes: see `size_traps`),
            "different", "refused", or "only_here" (the reference refuses, this does not). With open
            sizes: "same" for all of them, "same_here" for some (see `parts`), or "unknown".
        traps: the sizes at which it would mean something else.
        notes: different behaviour of older releases of the engine on these shapes.
        parts: with open sizes: the sizes for which it is not the same.
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
    parts: tuple[Part, ...] = ()

    @property
    def run(self) -> bool:
        """Whether it was run, not only read about; False for rules."""
        return self.kind == "engine" and ENGINES[self.name].run

    @property
    def silent(self) -> bool:
        """Whether a wrong meaning would pass unnoticed."""
        if self.parts and self.verdict == "refused":
            return any(part.kind == "silent" for part in self.parts)
        if isinstance(self.answer, BroadcastError):
            return self.answer.silent
        return self.verdict == "different"

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        from .explain import as_dict  # loaded late: drawings are rarely needed

        fields: dict[str, Any] = {
            "kind": self.kind,
            "name": self.name,
            "rule": self.rule,
            "release": self.release,
            "run": self.run,
            "attributes": dict(self.attributes),
            "verdict": self.verdict,
            "silent": self.silent,
            "traps": [trap.as_dict() for trap in self.traps],
            "notes": list(self.notes),
            "parts": [part.as_dict() for part in self.parts],
        }
        if isinstance(self.answer, Plan):
            return {**fields, "plan": as_dict(self.answer), "refusal": None}
        refusal = {"reason": self.answer.reason.value, "detail": self.answer.detail}
        return {**fields, "plan": None, "refusal": refusal}


@dataclass(frozen=True, slots=True)
class Comparison:
    """The rows of a comparison; as text, data and JSON.

    Attributes:
        shapes: the operands' shapes.
        reference: the row that the others are compared with.
        rows: one for each rule, then one for each rule of each engine.
    """

    shapes: tuple[Shape, ...]
    reference: Compared
    rows: tuple[Compared, ...]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "shapes": [[_size(size) for size in shape] for shape in self.shapes],
            "reference": self.reference.as_dict(),
            "rows": [row.as_dict() for row in self.rows],
        }

    def to_json(self, indent: int | None = 2) -> str:
        """The same as a JSON document."""
        import json

        return json.dumps(self.as_dict(), indent=indent)

    def __str__(self) -> str:
        shapes = " and ".join(map(_text, self.shapes))
        which = ", for sizes from 1 up" if any(map(is_open, self.shapes)) else ""
        lines = [f"{shapes}, against {self.reference.kind} {_label(self.reference)}{which}", ""]
        lines += text_table([_HEADS, *map(_cells, self.rows)])
        notes = [f"  {note}" for note in self._notes()]
        return "\n".join([*lines, "", *notes] if notes else lines)

    def _repr_html_(self) -> str:
        """The same as a table for a notebook; it wraps where the page is narrow."""
        return html_table([_HEADS, *map(_cells, self.rows)], self._notes())

    def _notes(self) -> list[str]:
        """The lines below the table: the legend, the sizes at which rows differ, and releases."""
        legend = _OPEN_LEGEND if any(map(is_open, self.shapes)) else _LEGEND
        notes = [f"{mark} {text}" for mark, text in legend.items() if self._has(mark)]
        # A rule and the engine that uses it differ at the same sizes: each trap is printed once.
        traps = {trap.shapes: trap for row in reversed(self.rows) for trap in row.traps}
        notes += [str(trap) for trap in traps.values()]
        notes += [note for row in self.rows for note in row.notes]
        return notes + [f"{', '.join(names)}: {part}" for part, names in self._parts().items()]

    def _parts(self) -> dict[str, list[str]]:
        """The sizes that separate rules, each with the names of its rows."""
        rows: dict[str, list[str]] = {}
        for row in self.rows:
            if isinstance(row.answer, BroadcastError):
                continue  # the table shows refusals
            for part in row.parts:
                names = rows.setdefault(str(part), [])
                if _label(row) not in names:
                    names.append(_label(row))
        return rows

    def _has(self, mark: str) -> bool:
        return any(_mark(row) == mark for row in self.rows)


_HEADS = ("", "kind", "name", "release", "result", "aligned", "meaning")
_LEGEND = {
    "!": "silent: it computes something else, or nonsense, and does not say so",
    "~": "the same only at these sizes",
}
_OPEN_LEGEND = {**_LEGEND, "~": "the same for some sizes, not for all"}


def compare(
    *shapes: Any,
    reference: str = "numpy",
    axis: int | None = None,
    facts: Any = None,
    batch_axis: int | None = None,
    engine: str | None = None,
    releases: bool = False,
) -> Comparison:
    """The result of every rule and engine for element-wise operands of these shapes.

    Args:
        shapes: the operands' shapes.
        reference: the rule, or else the engine (with its default rule), that defines the meaning;
            an engine's version of a rule as "openvino pdpd";
            or :func:`zerostride.strict` of a rule, which refuses more.
        axis: for the rules that have it; the others are used without.
        facts: known conditions on open sizes; see :func:`zerostride.plan`. Open sizes are assumed
            to be at least 1.
        batch_axis: the axis of the result that counts samples. Engines whose ops see one sample
            (ncnn) are asked without it, because converters remove it. None: every engine is asked
            about the shapes as they are.
        engine: only the rows of this engine; a release of it too ("ncnn@20230517").
        releases: the rows of all measured releases of the engine, newest first; the notes say when
            the result changed.

    Raises:
        BroadcastError: malformed shapes, an unknown reference, or an axis that is not a number.
            Shapes that a rule refuses are a row, not an error.

    >>> import zerostride as zs
    >>> rows = zs.compare((3, 5), (5,)).rows
    >>> next(row.verdict for row in rows if row.name == "ncnn")
    'same_here'
    >>> rows = zs.compare(("H", "W"), ("W",)).rows
    >>> next(str(row.parts[0]) for row in rows if row.name == "ncnn")
    'different when H == W and W != 1, for example H=2, W=2'
    >>> rows = zs.compare((1, 16, 8, 8), (16, 1, 1), batch_axis=0).rows
    >>> next(row.answer for row in rows if (row.kind, row.name) == ("engine", "ncnn")).operands
    ((16, 8, 8), (16, 1, 1))
    >>> zs.compare((2, 3, 4), (3,), reference="openvino pdpd", axis=1).reference.answer.aligned[1]
    (1, 3, 1)
    """
    sizes = _checked(shapes, axis)
    rows = engines_asked(engine, releases=releases)
    judge = _reference(reference, axis)
    table = _compared(sizes, judge, axis, facts, rows)
    if releases:
        table = replace(table, rows=with_changes(table.rows))
    if batch_axis is None:
        return table
    try:
        sample = one_sample(sizes, batch_axis)
    except BroadcastError as error:
        if error.reason is not Reason.WRONG_RESULT:
            raise
        rows_left = [
            replace(row, answer=error, verdict="refused", traps=(), notes=(), parts=())
            if row.kind == "engine" and ENGINES[row.name].samples
            else row
            for row in table.rows
        ]
        return replace(table, rows=tuple(rows_left))
    inner = axis if axis is None or axis <= batch_axis else axis - 1
    without = _compared(sample, _reference(reference, inner), inner, facts, rows)
    words = f"without axis {batch_axis}, the batch: {' and '.join(map(_text, sample))}"
    answers = [
        replace(other, notes=(f"{other.name} is asked {words}", *other.notes))
        if other.kind == "engine" and ENGINES[other.name].samples
        else row
        for row, other in zip(table.rows, without.rows, strict=True)
    ]
    return replace(table, rows=tuple(answers))


def _compared(
    sizes: tuple[Shape, ...],
    judge: Side,
    axis: int | None,
    facts: Any,
    engines: Sequence[Engine] | None,
) -> Comparison:
    """Every row for these shapes."""
    sides = tuple(_sides(axis, engines))
    if any(map(is_open, sizes)):
        return _compare_open(sizes, judge, sides, as_facts(() if facts is None else facts))
    intended = judge.plan(sizes)
    return Comparison(
        sizes,
        _row(judge, sizes, judge, intended),
        tuple(_row(side, sizes, judge, intended) for side in sides),
    )


def _checked(shapes: Sequence[Any], axis: Any) -> tuple[Shape, ...]:
    """The shapes, checked. A fault that affects all rows alike is raised here."""
    try:
        if any(map(is_open, shapes)):
            from ..core.symbolic import open_shape

            sizes = tuple(map(open_shape, shapes, default_names(len(shapes))))
        else:
            sizes = tuple(map(as_shape, shapes))
        if not sizes:
            raise Misfit(Reason.OPERAND_COUNT, "no shapes given; compare takes two or more")
        if axis is not None and (isinstance(axis, bool) or not hasattr(axis, "__index__")):
            raise Misfit(Reason.ATTRIBUTE, f"axis is a whole number, not {axis!r}")
    except Misfit as misfit:
        arrays_given(shapes)
        raise BroadcastError(misfit.detail, reason=misfit.reason, shapes=shapes) from None
    return sizes


def _sides(axis: int | None, engines: Sequence[Engine] | None = None) -> Iterator[Side]:
    """The rules of these engines; None: every element-wise rule, then every engine's rules."""
    if engines is None:
        for rule in RULES.values():
            if not rule.to_target:
                yield _with_axis(Side(rule), axis)
    for engine in map(find_engine, ENGINES) if engines is None else engines:
        for rule in engine.elementwise.values():
            yield _with_axis(Side(rule, engine=engine.title), axis)


def _with_axis(side: Side, axis: int | None) -> Side:
    attributes: dict[str, Any] = {}
    # onnx6 broadcasts only with broadcast=1, so it is asked with it.
    if "broadcast" in side.rule.attributes:
        attributes["broadcast"] = 1
    if axis is not None and "axis" in side.rule.attributes:
        attributes["axis"] = axis
    return Side(side.rule, attributes, side.engine)


def _reference(name: Any, axis: int | None) -> Side:
    if isinstance(name, Strict):
        side = _reference("numpy" if name.rule is None else name.rule, axis)
        return replace(side, rule=strict_row(side.rule, name))
    for side in _sides(axis) if isinstance(name, str) else ():
        if name in (side.engine or side.rule.name, f"{side.engine} {side.rule.name}"):
            return side
    names = dict.fromkeys(side.engine or side.rule.name for side in _sides(None))
    raise BroadcastError(
        f"there is no element-wise rule or engine {name!r}",
        reason=Reason.UNKNOWN_RULE,
        hint=f"one of {', '.join(names)}",
    )


def _compare_open(
    shapes: tuple[Shape, ...], judge: Side, sides: Sequence[Side], facts: Condition
) -> Comparison:
    """The comparison for open sizes."""
    from .regions import not_empty

    context = facts & not_empty(shapes)
    intended = _open_answer(judge, shapes, facts)
    return Comparison(
        shapes,
        _open_row(judge, shapes, intended, intended, context),
        tuple(
            _open_row(side, shapes, _open_answer(side, shapes, facts), intended, context)
            for side in sides
        ),
    )


def _open_answer(side: Side, shapes: tuple[Shape, ...], facts: Condition) -> Plan | BroadcastError:
    try:
        return apply(side.rule, shapes, side.attributes, engine=side.engine, facts=facts)
    except BroadcastError as error:
        return error


def _open_row(
    side: Side,
    shapes: tuple[Shape, ...],
    answer: Plan | BroadcastError,
    intended: Plan | BroadcastError,
    context: Condition,
) -> Compared:
    from ..sizes.shapes import Answer

    parts: list[Part] = []
    if isinstance(intended, BroadcastError):
        verdict = "refused" if isinstance(answer, BroadcastError) else "only_here"
    elif (regions := _meanings(intended, side, shapes, context)) is None:
        verdict = "unknown"
    else:
        unsure = regions.possible("same") is Answer.UNKNOWN
        for kind in _BAD:
            example = regions.example(kind)
            if example is None:
                unsure = unsure or regions.possible(kind) is Answer.UNKNOWN
                continue
            region, values = example
            named = {symbol.name: values[symbol] for symbol in regions.symbols}
            simple = len(regions.regions) <= _MOST_REGIONS
            when = regions.words(kind) if simple else regions.where(kind)
            parts.append(Part(kind, when, named, region.detail))
        if not parts:
            verdict = "unknown" if unsure else "same"
        elif regions.possible("same") is not Answer.NO:
            verdict = "same_here"
        else:
            verdict = "different" if any(p.kind == "different" for p in parts) else "refused"
    return _row_of(side, answer, verdict, parts=tuple(parts))


def _meanings(
    intended: Plan, side: Side, shapes: tuple[Shape, ...], context: Condition
) -> Meanings | None:
    """The regions of a comparison; None if the sizes are too complex."""
    from .regions import meanings

    try:
        return meanings(intended, side, shapes, known=context)
    except Misfit as misfit:
        if misfit.reason is not Reason.UNKNOWN_SIZE:
            raise
        return None


#: Regions up to which their conditions are simplified; more of them take seconds.
_MOST_REGIONS = 12
#: Characters of a condition that text shows; longer ones are only in the data.
_LONGEST = 200
#: The kinds of a row that is not the same, worst first.
_BAD: tuple[Kind, ...] = ("different", "silent", "refused")


def _row(
    side: Side, shapes: tuple[Shape, ...], judge: Side, intended: Plan | BroadcastError
) -> Compared:
    answer = side.plan(shapes)
    traps: tuple[Trap, ...] = ()
    if isinstance(answer, BroadcastError):
        verdict = "refused"
    elif isinstance(intended, BroadcastError):
        verdict = "only_here"
    elif answer != intended:
        verdict = "different"
    else:
        traps = size_traps(side, shapes, judge)
        verdict = "same_here" if traps else "same"
    notes: tuple[str, ...] = ()
    if side.engine is not None and isinstance(answer, Plan):
        notes = past_notes(find_engine(side.engine), answer)
    return _row_of(side, answer, verdict, traps=traps, notes=notes)


def _row_of(
    side: Side,
    answer: Plan | BroadcastError,
    verdict: str,
    *,
    traps: tuple[Trap, ...] = (),
    notes: tuple[str, ...] = (),
    parts: tuple[Part, ...] = (),
) -> Compared:
    engine = find_engine(side.engine) if side.engine else None
    return Compared(
        "engine" if engine else "rule",
        engine.name if engine else side.rule.name,
        side.rule.name,
        engine.release if engine else "",
        side.attributes,
        answer,
        verdict,
        traps,
        notes,
        parts,
    )


def _label(row: Compared) -> str:
    several = row.kind == "engine" and len(ENGINES[row.name].elementwise) > 1
    return f"{row.name} {row.rule}" if several else row.name


def _mark(row: Compared) -> str:
    return "!" if row.silent else "~" if row.verdict == "same_here" else ""


def _cells(row: Compared) -> tuple[str, ...]:
    attributes = "".join(f" {name}={value}" for name, value in row.attributes.items())
    read = "" if row.run or row.kind == "rule" else " read, not run"
    start = (_mark(row), row.kind, _label(row) + attributes, row.release + read)
    if isinstance(row.answer, BroadcastError):
        word = "nonsense" if row.answer.silent else "refused"
        return (*start, "-", "-", f"{word}: {row.answer.detail}")
    aligned = " ".join(map(_text, row.answer.aligned))
    return (*start, _text(row.answer.shape), aligned, row.verdict.replace("_", " "))


def _size(size: Any) -> int | str:
    return size if isinstance(size, int) else str(size)


def _text(shape: Shape) -> str:
    if not is_open(shape):
        return str(shape)
    from .explain.open import shape_text

    return shape_text(shape)
