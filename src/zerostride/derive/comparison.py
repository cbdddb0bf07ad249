"""The rows of :func:`zerostride.compare`: as text, as a notebook's table, and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.alignment import Attributes
from ..core.plan import Plan
from ..engines import ENGINES
from ..errors import BroadcastError, Reason
from ..sizes import Shape, is_open
from .size_traps import Trap
from .tabular import html_table, text_table

if TYPE_CHECKING:
    from ..sizes.condition import Condition


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
            "different", "refused", "only_here" (the reference refuses, this does not), or "unknown"
            (an engine that was not understood). With open sizes: "same" for all of them,
            "same_here" for some (see `parts`), or "unknown".
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
    def per_sample(self) -> bool:
        """Whether it is an engine whose ops see one sample, without the batch axis."""
        return self.kind == "engine" and bool(ENGINES[self.name].samples)

    @property
    def silent(self) -> bool:
        """Whether a wrong meaning would pass unnoticed."""
        if self.parts and self.verdict == "refused":
            return any(part.kind == "silent" for part in self.parts)
        if isinstance(self.answer, BroadcastError) and not self.needs_sizes:
            return self.answer.silent
        return self.verdict == "different"

    @property
    def needs_sizes(self) -> bool:
        """Whether no one plan holds for all sizes: its rank depends on them, for example."""
        answer = self.answer
        return isinstance(answer, BroadcastError) and answer.reason is Reason.UNKNOWN_SIZE

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


@dataclass(frozen=True, slots=True, repr=False)
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
        shapes = " and ".join(map(shape_in_words, self.shapes))
        which = ", for sizes from 1 up" if any(map(is_open, self.shapes)) else ""
        lines = [f"{shapes}, against {self.reference.kind} {_label(self.reference)}{which}", ""]
        lines += text_table([_HEADS, *map(_cells, self.rows)])
        notes = [f"  {note}" for note in self._notes()]
        return "\n".join([*lines, "", *notes] if notes else lines)

    def __repr__(self) -> str:
        shapes = " and ".join(map(shape_in_words, self.shapes))
        return f"<Comparison: {shapes}, {len(self.rows)} rows; print it to read them>"

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
            if isinstance(row.answer, BroadcastError) and not row.needs_sizes:
                continue  # the table shows refusals
            for part in row.parts:
                names = rows.setdefault(str(part), [])
                if _label(row) not in names:
                    names.append(_label(row))
        return rows

    def _has(self, mark: str) -> bool:
        return any(_mark(row) == mark for row in self.rows)


#: Characters of a condition that text shows; longer ones are only in the data.
_LONGEST = 200
_HEADS = ("", "kind", "name", "release", "result", "aligned", "meaning")
_LEGEND = {
    "!": "silent: it computes something else, or nonsense, and does not say so",
    "~": "the same only at these sizes",
}
_OPEN_LEGEND = {**_LEGEND, "~": "the same for some sizes, not for all"}


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
        word = "refused"
        if row.answer.silent:
            word = "nonsense"
        elif row.needs_sizes or row.answer.reason is Reason.NOT_UNDERSTOOD:
            word = row.verdict.replace("_", " ")
        return (*start, "-", "-", f"{word}: {row.answer.detail}")
    aligned = " ".join(map(shape_in_words, row.answer.aligned))
    return (*start, shape_in_words(row.answer.shape), aligned, row.verdict.replace("_", " "))


def _size(size: Any) -> int | str:
    return size if isinstance(size, int) else str(size)


def shape_in_words(shape: Shape) -> str:
    """A shape as a comparison prints it."""
    if not is_open(shape):
        return str(shape)
    from .explain.open import shape_text

    return shape_text(shape)
