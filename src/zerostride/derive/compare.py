"""The same shapes under every rule and on every engine, against one reference.

One table marks the rows that silently mean something else, and the rows that agree only at these
sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..core.alignment import Alignment, Attributes, Rule, apply, arrays_given
from ..core.plan import Plan
from ..core.rules import RULES
from ..core.strict_mode import Strict
from ..core.strict_rule import strict_row
from ..engines import ENGINES, find_engine
from ..engines.model import Divergence, Engine
from ..engines.planning import as_facts
from ..engines.releases import past_notes
from ..engines.supports import rules_of
from ..errors import BroadcastError, Misfit, Reason, default_names
from ..sizes import Asker, Shape, as_shape, is_open
from ..system.spelling import ENGINES as ENGINE_NAMES
from ..system.spelling import near
from .comparison import Compared, Comparison, Part, shape_in_words
from .release_rows import engines_asked, with_changes
from .samples import one_sample
from .size_traps import Side, Trap, size_traps

if TYPE_CHECKING:
    from ..sizes.condition import Condition
    from .regions import Kind, Meanings


def compare(
    *shapes: Any,
    reference: str = "numpy",
    axis: int | None = None,
    facts: Any = None,
    batch_axis: int | None = None,
    engine: str | None = None,
    releases: bool = False,
    op: str | None = None,
    dtype: Any = None,
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
        op: the op meant, by any engine's name for it; engines have rules of its own for some
            ("prelu"), or lack it. None: any op of their element-wise rule.
        dtype: anything that NumPy understands as a dtype: engines whose op does not take it refuse.
            None: any that they take.

    Raises:
        BroadcastError: malformed shapes, an unknown reference, op or dtype, or an axis that is not
            a number. Shapes that a rule refuses are a row, not an error.

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
    >>> rows = zs.compare((2, 3, 4), (3,), op="prelu").rows
    >>> next(row.answer.aligned[1] for row in rows if row.name == "openvino")
    (1, 3, 1)
    """
    sizes = _checked(shapes, axis)
    asked = _Asked(axis, op, dtype, engines_asked(engine, releases=releases))
    table = _compared(sizes, reference, asked, facts)
    if releases:
        table = replace(table, rows=with_changes(table.rows))
    if batch_axis is None:
        return table
    try:
        sample = one_sample(sizes, batch_axis)
    except BroadcastError as error:
        if error.reason is not Reason.WRONG_RESULT:
            raise
        return replace(table, rows=tuple(_refused_without_batch(row, error) for row in table.rows))
    inner = axis if axis is None or axis <= batch_axis else axis - 1
    without = _compared(sample, reference, replace(asked, axis=inner), facts)
    note = f"without axis {batch_axis}, the batch: {' and '.join(map(shape_in_words, sample))}"
    rows = zip(table.rows, without.rows, strict=True)
    return replace(table, rows=tuple(_asked_of_sample(row, other, note) for row, other in rows))


def _refused_without_batch(row: Compared, error: BroadcastError) -> Compared:
    """The row, refused if its engine sees one sample: the shapes have no sample."""
    if not row.per_sample:
        return row
    return replace(row, answer=error, verdict="refused", traps=(), notes=(), parts=())


def _asked_of_sample(row: Compared, sample_row: Compared, note: str) -> Compared:
    """The row for one sample if the row's engine sees one sample."""
    if not row.per_sample:
        return row
    notes = (f"{row.name} is asked {note}", *sample_row.notes)
    return replace(sample_row, notes=notes)


@dataclass(frozen=True, slots=True)
class _Asked:
    """The question to each row.

    Attributes:
        axis: for the rules that have it.
        op, dtype: of :func:`compare`.
        engines: whose rows there are; None: every rule and every engine.
    """

    axis: int | None
    op: str | None = None
    dtype: Any = None
    engines: Sequence[Engine] | None = None

    def sides(self) -> Iterator[Side]:
        """Every element-wise rule, then every engine's rules; or those of the engines alone."""
        if self.engines is None:
            for rule in RULES.values():
                if not rule.to_target:
                    yield self._with_axis(Side(rule))
        rows = map(find_engine, ENGINES) if self.engines is None else self.engines
        for engine in rows:
            asked = rules_of(engine, self.op, self.dtype)
            rules = asked.rules
            if asked.refusal is not None:
                rules = (_refusing(rules[0], asked.refusal),)
            for rule in rules:
                yield self._with_axis(Side(rule, engine=engine.title, op=asked.op))

    def _with_axis(self, side: Side) -> Side:
        attributes: dict[str, Any] = {}
        # onnx6 broadcasts only with broadcast=1, so it is asked with it.
        if "broadcast" in side.rule.attributes:
            attributes["broadcast"] = 1
        if self.axis is not None and "axis" in side.rule.attributes:
            attributes["axis"] = self.axis
        return replace(side, attributes=attributes)


def _refusing(rule: Rule, refusal: Divergence) -> Rule:
    """The rule, as one that refuses all shapes."""

    def align(asker: Asker, shapes: tuple[Shape, ...], attributes: Attributes) -> Alignment:
        raise Misfit(refusal.effect, refusal.text)

    return replace(rule, align=align)


def _compared(sizes: tuple[Shape, ...], reference: Any, asked: _Asked, facts: Any) -> Comparison:
    """Every row for these shapes."""
    judge = _reference(reference, replace(asked, engines=None))
    sides = tuple(asked.sides())
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


def _reference(name: Any, asked: _Asked) -> Side:
    if isinstance(name, Strict):
        side = _reference("numpy" if name.rule is None else name.rule, asked)
        return replace(side, rule=strict_row(side.rule, name))
    for side in asked.sides() if isinstance(name, str) else ():
        if name in (side.engine or side.rule.name, f"{side.engine} {side.rule.name}"):
            return side
    names = dict.fromkeys(side.engine or side.rule.name for side in asked.sides())
    close = near(name, names, others=ENGINE_NAMES)
    raise BroadcastError(
        f"there is no element-wise rule or engine {name!r}",
        reason=Reason.UNKNOWN_RULE,
        hint=f"did you mean {close[0]}?" if close else f"one of {', '.join(names)}",
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
        return apply(
            side.rule, shapes, side.attributes, engine=side.engine, op=side.op, facts=facts
        )
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
    if isinstance(answer, BroadcastError) and answer.reason is Reason.NOT_UNDERSTOOD:
        verdict = "unknown"
    elif isinstance(intended, BroadcastError):
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
            parts.append(Part(kind, regions.words(kind), named, region.detail))
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


#: The kinds of a row that is not the same, worst first.
_BAD: tuple[Kind, ...] = ("different", "silent", "refused")


def _row(
    side: Side, shapes: tuple[Shape, ...], judge: Side, intended: Plan | BroadcastError
) -> Compared:
    answer = side.plan(shapes)
    traps: tuple[Trap, ...] = ()
    if isinstance(answer, BroadcastError):
        verdict = "unknown" if answer.reason is Reason.NOT_UNDERSTOOD else "refused"
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
