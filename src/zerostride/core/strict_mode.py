"""Strict mode refuses broadcasts that are more often accidents than meant.

There are three: two operands that stretch against each other ((N, 1) against (N,) makes (N, N)),
operands of lower rank than the result, whose missing axes a rule has to guess, and results larger
than a limit. :func:`strict` makes the limits; they are passed in the place of a rule's name, or
used as a context. `strict_rule` checks them. `planning` looks up the limits in force, which are
part of the key of a cached plan. `WATCHES` are told of contexts: `lint.torch_watch` then checks
PyTorch's own operations, too.
"""

from __future__ import annotations

import functools
import inspect
import math
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from ..errors import Reason

if TYPE_CHECKING:
    from types import TracebackType

_F = TypeVar("_F", bound=Callable[..., Any])
_LEVELS = ("error", "warn", "log")
#: The words of ZEROSTRIDE_STRICT, each with its level; "" is no strict mode.
_WORDS = {"error": "error", "1": "error", "warn": "warn", "log": "log", "off": "", "0": "", "": ""}


class Strict(str):
    """Limits, with the name of the rule that they apply to; made by :func:`zerostride.strict`.

    It is a string, so it can stand wherever a rule's name does. It is also a context manager and a
    decorator of functions. It is immutable: it may be used repeatedly, nested, and by many threads
    at once.

    Attributes:
        rule: the rule's name; None is the default of the call or of its engine.
        max_growth: how many times the elements of its largest operand a result may have; None: any.
        two_sided: whether operands may stretch against each other.
        new_axes: whether operands may have fewer axes than the result.
        level: "error": other broadcasts are refused; "warn": they are computed with a warning;
            "log": with a record of the logger "zerostride.strict".
        exempt: modules of other packages whose own PyTorch code is not checked.
    """

    __slots__ = ("exempt", "level", "max_growth", "new_axes", "rule", "two_sided")
    rule: str | None
    max_growth: float | None
    two_sided: bool
    new_axes: bool
    level: str
    exempt: tuple[str, ...]

    def __new__(
        cls,
        rule: str | None = None,
        max_growth: float | None = None,
        two_sided: bool = False,
        new_axes: bool = False,
        level: str = "error",
        exempt: tuple[str, ...] = (),
    ) -> Strict:
        """Limits, already checked."""
        words = [] if rule is None else [repr(str(rule))]
        words += [] if max_growth is None else [f"max_growth={max_growth}"]
        words += ["two_sided=True"] * two_sided + ["new_axes=True"] * new_axes
        words += [] if level == "error" else [f"level={level!r}"]
        words += [f"exempt={exempt!r}"] if exempt else []
        # The string value is unique for each set of limits: comparison and hashing use it.
        self = super().__new__(cls, f"zs.strict({', '.join(words)})")
        self.rule, self.max_growth = rule, max_growth
        self.two_sided, self.new_axes, self.level = two_sided, new_axes, level
        self.exempt = exempt
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        values = self.rule, self.max_growth, self.two_sided, self.new_axes, self.level, self.exempt
        return Strict, values

    def __repr__(self) -> str:
        return str(self)

    def allowing(self, reason: Reason, growth: int) -> Strict:
        """The same limits with one more allowance; `growth` is the growth of the present plan."""
        return Strict(
            self.rule,
            growth if reason is Reason.GROWTH else self.max_growth,
            self.two_sided or reason is Reason.TWO_SIDED,
            self.new_axes or reason is Reason.NEW_AXES,
            self.level,
            self.exempt,
        )

    # Use as a context.

    def __enter__(self) -> Strict:
        if self.rule is not None:
            raise TypeError(
                f"{self} names a rule, and a context holds for all rules: leave {self.rule!r} out"
            )
        check_engine()
        IN_FORCE.set(_Frame(self, IN_FORCE.get()))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        IN_FORCE.set(_without(IN_FORCE.get(), self))

    def __call__(self, function: _F) -> _F:
        """The function with these limits in force while it runs."""
        if not callable(function):
            raise TypeError(f"zs.strict decorates functions, not a {type(function).__name__}")
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(
                "a generator's caller runs between its yields, and would be in the context, too: "
                "open `with zs.strict():` inside of it, where nothing is yielded"
            )

        async def later(*args: Any, **named: Any) -> Any:
            with self:
                return await function(*args, **named)

        def now(*args: Any, **named: Any) -> Any:
            with self:
                return function(*args, **named)

        run: Any = later if inspect.iscoroutinefunction(function) else now
        return cast(_F, functools.wraps(function)(run))


@overload
def strict(rule: _F, /) -> _F: ...
@overload
def strict(
    rule: str | None = None,
    *,
    max_growth: float | None = None,
    two_sided: bool = False,
    new_axes: bool = False,
    level: str = "error",
    exempt: Sequence[str] = (),
) -> Strict: ...
def strict(
    rule: Any = None,
    *,
    max_growth: float | None = None,
    two_sided: bool = False,
    new_axes: bool = False,
    level: str = "error",
    exempt: Sequence[str] = (),
) -> Any:
    """Refuses broadcasts that are more often accidents than meant; each can be allowed.

    As an option it takes the place of a rule's name. As a context manager or a decorator it applies
    to every plan and computation of zerostride that the thread, or the asynchronous task, makes
    inside: fused functions, calls with cached plans, arrays of other libraries. The innermost
    context decides alone. An option of a call overrides all contexts, so a single call can be
    allowed more than the rest.

    A context also watches PyTorch's own operations in this thread: `predicted - target` of (N, 1)
    and (N,), `torch.where`, and losses of an input and a target of different shapes. The error
    begins with the line. A bias of (C,) on (N, C), `x[:, None] - y` and lines that end in
    `# broadcast: ok` are no accidents there. docs/strict.md has the exact conditions.

    A generator has no context of its own: a context that it opens around a `yield` also applies in
    its caller until the generator continues. Yield outside of the block, pass the option to each
    call, or run the steps in a copy: `contextvars.copy_context().run(next, generator)`.

    Args:
        rule: the rule's name, or None for the default of the call or of its engine; not in a
            context, which holds for all rules. Or the function that `@zs.strict` decorates.
        max_growth: how many times the elements of its largest operand a result may have, at least
            1. None is any number. It also holds of Broadcast ops (:func:`zerostride.broadcast`).
        two_sided: allow operands that stretch against each other, so that none has the result's
            shape: (N, 1) against (N,), or an outer product.
        new_axes: allow operands of fewer axes than the result. Numbers and other operands of rank 0
            always are. Where a Broadcast op's target is written down, its axes are no new ones.
        level: "error" refuses such broadcasts; "warn" computes them, with an
            AccidentalBroadcastWarning, once for each combination of shapes; "log" computes them,
            with a record of the logger "zerostride.strict".
        exempt: names of modules or packages whose own PyTorch code is not checked: ("kornia",).

    Returns:
        A :class:`Strict`; as a decorator, the function with the mode in force during its calls.

    Raises:
        TypeError: `max_growth` is no number, an allowance is no truth value, `rule` no name,
            `exempt` no tuple of names; when entered: it names a rule.
        ValueError: `max_growth` is less than 1, or `level` is another word.

    A refusal is a BroadcastError of reason "two_sided", "new_axes" or "growth". A context does not
    affect functions that only ask what engines or files mean (`audit`, `compare`, `supports`).

    >>> import numpy as np, zerostride as zs
    >>> predicted, target = np.ones((3, 1)), np.ones(3)
    >>> try:
    ...     zs.subtract(predicted, target, rule=zs.strict())
    ... except zs.BroadcastError as error:
    ...     print(error)
    strict mode refuses what rule 'numpy' makes of x and y
      x  3 1
      y  . 3
           ^ result axis 1: x stretches here and y along axis 0, so the result has 9 elements, 3 \
times the largest operand's
      fix: reshape y to (3, 1); or allow it: zs.strict(two_sided=True, new_axes=True)
    >>> zs.subtract(predicted, target[None, :], rule=zs.strict(two_sided=True)).shape
    (3, 3)
    """
    decorated = callable(rule) and not isinstance(rule, str)
    if isinstance(rule, Strict) or not (rule is None or decorated or isinstance(rule, str)):
        raise TypeError(f"a rule's name is a string, not {rule!r}")
    allowances: dict[str, Any] = {"two_sided": two_sided, "new_axes": new_axes}
    for name, value in allowances.items():
        if not isinstance(value, bool):
            raise TypeError(f"{name} is True or False, not {value!r}")
    if max_growth is not None:
        number: Any = max_growth
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise TypeError(f"max_growth is a number, not {max_growth!r}")
        if not 1 <= max_growth < math.inf:
            raise ValueError(f"max_growth is 1 or more, not {max_growth}; None allows any growth")
    if level.__class__ is not str or level not in _LEVELS:
        raise ValueError(f"level is 'error', 'warn' or 'log', not {level!r}")
    named: Any = exempt
    if not isinstance(named, tuple | list) or not all(isinstance(name, str) for name in named):
        raise TypeError(f"exempt is a tuple of names of modules, not {exempt!r}")
    modules = tuple(named)
    values = (None if decorated else rule, max_growth, two_sided, new_axes, level, modules)
    limits = _PLAIN if values == _PLAIN_VALUES else Strict(*values)
    return limits(rule) if decorated else limits


#: The limits without allowances, which a loop may ask for at each step.
_PLAIN = Strict()
_PLAIN_VALUES = (None, None, False, False, "error", ())


# Contexts in force.

#: Callbacks that count open contexts: the native engine then routes its calls through Python.
HOLDERS: list[Callable[[int], object]] = []
#: Callbacks that are told of each context when it begins; each returns what to call at its end.
WATCHES: list[Callable[[Strict], Callable[[], object]]] = []
#: The reason why contexts could not apply, if there is one.
FAULTS: list[str] = []


class _Frame:
    """An entered context. It counts as long as a thread or task may be in it.

    A task that was started inside keeps the context after the block has ended, because contexts are
    copied. So the count covers the frame's lifetime, not the time from enter to exit.
    """

    __slots__ = ("closers", "holders", "limits", "outer")

    def __init__(self, limits: Strict, outer: _Frame | None) -> None:
        self.limits = limits
        self.outer = outer
        self.holders = tuple(HOLDERS)
        for hold in self.holders:
            hold(1)
        self.closers: list[Callable[[], object]] = []
        for watch in WATCHES:
            self.closers.append(watch(limits))

    def __del__(self) -> None:
        for hold in self.holders:  # its own reference: modules lose their names when Python ends
            hold(-1)
        for close in self.closers:
            close()


def _of_environment() -> _Frame | None:
    """The context of the whole process, by ZEROSTRIDE_STRICT.

    An unknown word is "error", with a warning: a typing error must not turn a check off.
    """
    word = os.environ.get("ZEROSTRIDE_STRICT", "").strip().lower()
    if word not in _WORDS:
        known = ", ".join(filter(None, _WORDS))
        words = f"ZEROSTRIDE_STRICT is {word!r}; it is {known} or unset, and counts as error"
        warnings.warn(words, RuntimeWarning, stacklevel=2)
    level = _WORDS.get(word, "error")
    return _Frame(Strict(level=level), None) if level else None


#: The context of every thread and task that has entered none.
_DEFAULT = _of_environment()
#: The innermost context of this thread or asynchronous task.
IN_FORCE: ContextVar[_Frame | None] = ContextVar("zerostride.strict", default=_DEFAULT)


def add_holder(hold: Callable[[int], object]) -> None:
    """Adds a callback that counts contexts from now on, and the process's own."""
    HOLDERS.append(hold)
    if _DEFAULT is not None:
        hold(1)  # until the process ends


def add_watch(watch: Callable[[Strict], Callable[[], object]]) -> None:
    """Adds a callback that is told of contexts from now on, and of the process's own."""
    WATCHES.append(watch)
    if _DEFAULT is not None:
        _DEFAULT.closers.append(watch(_DEFAULT.limits))


def check_engine() -> None:
    """Refuses contexts that could not apply.

    Raises:
        RuntimeError: the native engine was built without support for contexts.
    """
    if FAULTS:
        raise RuntimeError(f"zs.strict() as a context: {FAULTS[0]}")


def _without(frame: _Frame | None, limits: Strict) -> _Frame | None:
    """The frames in force after a context ends: usually those around it.

    Generators may end their contexts out of order. The contexts that were entered later then stay.
    A context of another thread or task is not among the frames.
    """
    inner: list[Strict] = []
    at = frame
    while at is not None and at.limits is not limits:
        inner.append(at.limits)
        at = at.outer
    if at is None:
        return frame
    rest = at.outer
    for entered in reversed(inner):
        rest = _Frame(entered, rest)
    return rest


def in_force() -> Strict | None:
    """The limits in force here, or None."""
    frame = IN_FORCE.get()
    return None if frame is None else frame.limits


@contextmanager
def unrestricted() -> Iterator[None]:
    """A context for the package's own computations, which users cannot change."""
    token = IN_FORCE.set(None)
    try:
        yield
    finally:
        IN_FORCE.reset(token)


__all__ = ["IN_FORCE", "Strict", "in_force", "strict", "unrestricted"]
