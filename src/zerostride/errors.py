"""Errors and their reasons, and the one place that puts them into words.

An inner function raises a small :class:`Misfit`: the fault and its axis. The caller that knows the
rule and the shapes turns it into a :class:`BroadcastError` once. The error is rendered only when it
is printed, because most callers only ask whether a plan exists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any


class Reason(StrEnum):
    """Why shapes are refused: a code that programs can compare, stable across releases."""

    BAD_EXTENT = "bad_extent"  # not a whole number, or negative
    TOO_LARGE = "too_large"  # more than 2^63 - 1 elements
    OPERAND_COUNT = "operand_count"
    ATTRIBUTE = "attribute"  # missing, extra or malformed attribute
    AXIS_RANGE = "axis_range"  # an axis outside what the rule allows
    OVERRUN = "overrun"  # an operand placed at `axis` sticks out of the result
    DUPLICATE_AXES = "duplicate_axes"
    TRANSPOSES = "transposes"  # axes would have to change their order
    RANK = "rank"  # an operand's rank against the other's
    RANK_LIMIT = "rank_limit"  # more axes than the rule or engine carries
    EXTENT_MISMATCH = "extent_mismatch"  # sizes differ and neither is 1
    ONE_WAY = "one_way"  # it would fit if the other operand might stretch
    NOT_IDENTICAL = "not_identical"  # the rule stretches nothing
    UNKNOWN_SIZE = "unknown_size"  # a size must be a number and is open
    UNKNOWN_RULE = "unknown_rule"
    UNKNOWN_ENGINE = "unknown_engine"
    UNKNOWN_OP = "unknown_op"
    NO_RULE = "no_rule"  # the engine lacks the rule
    NO_OP = "no_op"  # the engine lacks the op
    DTYPE = "dtype"  # the engine lacks the op for this dtype
    CRASH = "crash"  # a valid plan that kills the engine
    WRONG_RESULT = "wrong_result"  # the engine answers, and the answer is wrong
    LIMIT = "limit"  # a limit of the engine beyond its rule
    NOT_UNDERSTOOD = "not_understood"  # the engine's answers fit no hypothesis here
    TWO_SIDED = "two_sided"  # strict mode: operands that stretch against each other
    NEW_AXES = "new_axes"  # strict mode: an operand of fewer axes than the result
    GROWTH = "growth"  # strict mode: a result much larger than its operands
    PLUGIN = "plugin"  # another package's rule failed


#: Reasons for which :func:`zerostride.strict` refuses shapes that the rule combines.
STRICT = frozenset({Reason.TWO_SIDED, Reason.NEW_AXES, Reason.GROWTH})


class Misfit(Exception):  # noqa: N818 - internal, never seen by a user
    """A small fact raised by an inner function; `alignment.apply` makes a BroadcastError of it."""

    def __init__(
        self,
        reason: Reason,
        detail: str,
        *,
        axis: int | None = None,
        rows: Sequence[Sequence[Any]] = (),
    ) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail
        self.axis = axis
        self.rows = tuple(tuple(row) for row in rows)


class ZerostrideError(Exception):
    """Base of errors about files and input: one clear line, no traceback for users."""


class BadInput(ZerostrideError):  # noqa: N818 - said to a person, not raised at a caller
    """The command line has an unusable argument; the message is one line."""


class ArgumentError(ZerostrideError, TypeError):
    """An argument of a function on models that cannot be used. It says what the argument is for."""


class ModelError(ZerostrideError, ValueError):
    """A model file that cannot be read. It says which file, what is wrong, and what to do."""


class TraceError(ZerostrideError, TypeError):
    """A function that cannot be fused. It says what, at which line, and what to write instead.

    Attributes:
        detail: what cannot be done, in a phrase.
        place: the user's file, line and source, as it is printed; "" where there is none.
        hint: what to write instead, or None.

    >>> print(TraceError("a value has no truth value", "f.py:3 in f", "use zs.where"))
    a value has no truth value
      f.py:3 in f
      fix: use zs.where
    """

    def __init__(self, detail: str, place: str = "", hint: str | None = None) -> None:
        super().__init__(detail, place, hint)
        self.detail = detail
        self.place = place
        self.hint = hint

    def __str__(self) -> str:
        lines = [self.detail, *(f"  {line}" for line in self.place.splitlines())]
        return "\n".join([*lines, f"  fix: {self.hint}"] if self.hint else lines)


class PluginWarning(UserWarning):
    """A row of another package is left out. It says which, and why."""


class EngineVersionWarning(UserWarning):
    """The installed release of an engine is not the one whose behaviour was measured."""


class AccidentalBroadcastWarning(UserWarning):
    """A broadcast that strict mode of the level "warn" finds; the text is that of the refusal."""


class BroadcastError(ValueError):
    """Shapes that a rule or an engine does not combine.

    Attributes:
        rule: the rule's name (a :class:`~zerostride.core.plan.RuleUse` with its attributes).
        shapes: the shapes as the caller wrote them.
        axis: the result axis at fault, or None where no single axis is.
        reason: a :class:`Reason`, which is also a plain string.
        detail: what is wrong, in a phrase.
        hint: what to do, or None. A shape that a hint proposes has itself been planned.
        silent: True where the engine would not refuse, but compute nonsense or crash.
        place: in a function that is being fused, the user's line; "" elsewhere.

    >>> import zerostride as zs
    >>> try:
    ...     zs.plan((2, 3, 4), (3,))
    ... except zs.BroadcastError as error:
    ...     print(error)
    rule 'numpy' cannot combine x and y
      x  2 3 4
      y  . . 3
             ^ result axis 2: 4 against 3, and neither is 1
      fix: reshape y to (3, 1)
    """

    def __init__(
        self,
        detail: str,
        *,
        reason: Reason,
        rule: str = "",
        shapes: Sequence[Any] = (),
        axis: int | None = None,
        hint: str | Callable[[], str | None] | None = None,
        silent: bool = False,
        rows: Sequence[Sequence[Any]] = (),
        names: Sequence[str] = (),
        headline: str = "",
        place: str = "",
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.place = place
        self.reason = reason
        self.rule = rule
        self.shapes = tuple(shapes)
        self.axis = axis
        self.silent = silent
        self.rows = tuple(tuple(row) for row in rows)
        self.names = tuple(names)
        self.headline = headline
        self._hint = hint

    @property
    def hint(self) -> str | None:
        """What to do about it; computed (and planned) on first access."""
        if callable(self._hint):
            self._hint = self._hint()
        return self._hint

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (
            type(self),
            self.detail,
            {
                "reason": self.reason,
                "rule": self.rule,
                "shapes": self.shapes,
                "axis": self.axis,
                "hint": self.hint,
                "silent": self.silent,
                "rows": self.rows,
                "names": self.names,
                "headline": self.headline,
                "place": self.place,
            },
        )

    def __str__(self) -> str:
        return "\n".join([render(self), *(f"  {line}" for line in self.place.splitlines())])


class AccidentalBroadcastError(BroadcastError):
    """Strict mode refuses an operation of another library; the text begins with its line."""

    def __str__(self) -> str:
        return self.detail


class NotExpressible(BroadcastError):  # noqa: N818 - the contract's name
    """Another rule cannot express the plan, however the operands are reshaped."""


def _rebuild(kind: type[BroadcastError], detail: str, fields: dict[str, Any]) -> BroadcastError:
    return kind(detail, **fields)


def default_names(count: int) -> tuple[str, ...]:
    """Names for unnamed operands: x, y, z, w, then x4, x5 ...

    >>> default_names(2)
    ('x', 'y')
    """
    return tuple("xyzw"[i] if i < 4 else f"x{i}" for i in range(count))


def operand_names(names: Sequence[Any], count: int) -> tuple[str, ...]:
    """The given names, made safe to print; defaults for the rest.

    >>> operand_names(["mask"], 2)
    ('mask', 'y')
    """
    called = as_names(names)
    return (*map(printable, called[:count]), *default_names(count)[len(called) :])


def as_names(names: Any) -> Sequence[Any]:
    """A sequence of names as it is; raises BroadcastError for anything else.

    One word is no list of names: its letters would become the names.
    """
    if isinstance(names, Sequence) and not isinstance(names, str | bytes):
        return names
    shown = repr(names)
    raise BroadcastError(
        f"names are a list with one name for each operand, not {cut(printable(shown), 40)}",
        reason=Reason.ATTRIBUTE,
        hint=f"write [{shown}]" if isinstance(names, str) else "write ['a', 'b']",
    )


def printable(name: Any) -> str:
    """A name on one line: names from model files may hold line ends or escape codes.

    >>> printable("a\\nb")
    'a\\\\nb'
    """
    text = str(name)
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )


#: Characters of a printed line: 64 columns, the largest rank, of one size each. Sizes and names
#: come from files, and one may have a million characters.
LONGEST_LINE = 64 * (60 + 1)


def cut(text: str, most: int = LONGEST_LINE) -> str:
    """A line with its middle cut out if it is longer than `most`.

    >>> cut("x" * 50, 9)
    'xxx...xxx'
    """
    if len(text) <= most:
        return text
    tail = (most - 3) // 2
    return f"{text[: most - 3 - tail]}...{text[-tail:]}"


#: Turns a cell, padded to its column's width, into what is printed: (text, row, axis) -> text.
Paint = Callable[[str, int, int], str]


def columns(
    names: Sequence[str], rows: Sequence[Sequence[Any]], paint: Paint | None = None
) -> list[str]:
    """Rows of sizes in columns, with a dot where an operand has no axis.

    >>> columns(("x", "y"), ((2, 30), (None, 30)))
    ['x  2 30', 'y  . 30']
    """
    name_width = max(map(len, names), default=0)
    widths = _widths(rows)
    lines = []
    for n, (name, row) in enumerate(zip(names, rows, strict=True)):
        cells = [f"{_cell(size):>{width}}" for size, width in zip(row, widths, strict=False)]
        if paint is not None:
            cells = [paint(cell, n, axis) for axis, cell in enumerate(cells)]
        lines.append(f"{name:<{name_width}}  " + (" ".join(cells) or "()"))
    return lines


def column_end(names: Sequence[str], rows: Sequence[Sequence[Any]], axis: int) -> int:
    """The column of the last digit of `axis` in the lines of :func:`columns`.

    >>> column_end(("x", "y"), ((2, 30), (None, 30)), 1)
    6
    """
    return max(map(len, names), default=0) + 2 + sum(_widths(rows)[: axis + 1]) + axis - 1


def _widths(rows: Sequence[Sequence[Any]]) -> list[int]:
    rank = max(map(len, rows), default=0)
    return [max(len(_cell(row[k])) for row in rows if k < len(row)) for k in range(rank)]


#: Characters of a size that a column shows: files may give sizes long names.
_LONGEST_CELL = 60


def _cell(size: Any) -> str:
    return "." if size is None else cut(str(size), _LONGEST_CELL)


def render(error: BroadcastError, names: Sequence[str] = (), *, hint: bool = True) -> str:
    """Renders an error: the rule, every shape in columns, the axis marked, and a checked fix.

    Args:
        error: what went wrong.
        names: names for the operands, if the reader knows them by other names.
        hint: whether to add the error's own hint, which makes the rule accept the shapes. A caller
            that knows the intent has a better one and leaves it out.

    Shapes stand in columns only if the rule has aligned them. Otherwise they are printed as they
    were written, because columns would suggest an alignment.
    """
    called = names or error.names
    names = operand_names(called, len(error.shapes))
    lines = [error.headline or _headline(error, names)]
    if error.rows and error.axis is not None:
        names = operand_names(called, len(error.rows))
        lines += ["  " + line for line in columns(names, error.rows)]
        mark = column_end(names, error.rows, error.axis)
        lines.append("  " + " " * mark + f"^ result axis {error.axis}: {error.detail}")
    else:
        width = max(map(len, names), default=0)
        for name, shape in zip(names, error.shapes, strict=True):
            lines.append(f"  {name:<{width}}  {_as_written(shape)}")
        lines.append("  " + error.detail)
    if error.silent:
        lines.append(
            "  careful: the engine itself does not refuse; it computes nonsense or crashes"
        )
    if hint and error.hint:
        lines.append("  fix: " + error.hint)
    return "\n".join(map(cut, lines))


#: Characters of a malformed shape that are shown; a rank-64 shape of small sizes fits.
_LONGEST_SHAPE = 240


def _as_written(shape: Any) -> str:
    text = printable(repr(shape))
    if isinstance(shape, tuple) and any(hasattr(size, "equal_to") for size in shape):
        sizes = ", ".join(map(str, shape))  # open sizes are shown by their names
        text = f"({sizes},)" if len(shape) == 1 else f"({sizes})"
    return cut(text, _LONGEST_SHAPE)


def _headline(error: BroadcastError, names: Sequence[str]) -> str:
    label = (
        getattr(error.rule, "label", f"rule {str(error.rule)!r}") if error.rule else "zerostride"
    )
    if error.reason in STRICT:
        listed = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
        return f"strict mode refuses what {label} makes of {listed}"
    if len(names) > 1:
        return f"{label} cannot combine {', '.join(names[:-1])} and {names[-1]}"
    return f"{label} cannot use {names[0]}" if names else f"{label} refuses"
