"""Floor 0: the functions of sizes that are no polynomials, one row each.

A row of `FUNCTIONS` says how an application is written, evaluated, bounded and substituted in; what
the function means to a solver is in `solve.axioms`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from .dim import (
    FUNCTIONS,
    Call,
    Dim,
    Function,
    Interval,
    Number,
    Symbol,
    bounds,
    dim,
    made,
    of_atom,
    plain,
)
from .sizes import Answer

if TYPE_CHECKING:
    from .condition import Condition


def floordiv(size: Number, divisor: Number) -> Dim:
    """``size // divisor``, rounded down; taken apart where a part divides.

    >>> print(floordiv(dim(3), 2), floordiv(Dim("4*N + 3"), 2), floordiv(Dim("N*H"), Dim("H")))
    1 2*N + 1 H*N // H
    """
    size, divisor = dim(size), dim(divisor)
    if not divisor.terms:
        if divisor.const == 0:
            raise ZeroDivisionError("a size divided by 0")
        if divisor.const < 0:
            size, divisor = -size, -divisor
        by = divisor.const
        whole = tuple((m, f // by) for m, f in size.terms if f % by == 0)
        rest = tuple((m, f) for m, f in size.terms if f % by)
        quotient, remainder = divmod(size.const, by)
        if not rest:
            return made(quotient, whole)
        low, high = bounds(made(remainder, rest))
        if low is not None and high is not None and low // by == high // by:
            return made(quotient + low // by, whole)
        return made(quotient, whole) + of_atom(Call("floordiv", (made(remainder, rest), divisor)))
    if size == divisor and (bounds(divisor)[0] or 0) > 0:
        return dim(1)
    if not size.terms and size.const == 0 and (bounds(divisor)[0] or 0) > 0:
        return dim(0)
    return of_atom(Call("floordiv", (size, divisor)))


def _floordiv_value(arguments: tuple[Any, ...], values: Mapping[Symbol, int]) -> int:
    size, divisor = (argument.evaluate(values) for argument in arguments)
    if divisor == 0:
        raise ZeroDivisionError("a size divided by 0")
    return int(size // divisor)


def _floordiv_bounds(arguments: tuple[Any, ...]) -> Interval:
    (low, high), (least, most) = map(bounds, arguments)
    if least is None or least <= 0:
        least = 1  # a quotient exists for none but these
        if most is not None and most < 1:
            return None, None
    ends = [None if most is None else most, least]
    if low is None or low < 0:
        below = None if low is None else low // least
    else:
        below = 0 if ends[0] is None else low // ends[0]
    above: int | None
    if high is None:
        above = None
    elif high < 0:
        above = -1 if most is None else high // most
    else:
        above = high // least
    return below, above


def _listed(word: str) -> Callable[[tuple[Any, ...], Callable[[Symbol], str]], str]:
    def text(arguments: tuple[Any, ...], name: Callable[[Symbol], str]) -> str:
        return f"{word}({', '.join(size.write(name) for size in arguments)})"

    return text


def _grouped(size: Dim, name: Callable[[Symbol], str]) -> str:
    text = size.write(name)
    return f"({text})" if " " in text else text


def maximum(*sizes: Number) -> Dim:
    """The greatest of several sizes; left out is what is known not to be."""
    return _extreme("max", sizes)


def minimum(*sizes: Number) -> Dim:
    """The least of several sizes."""
    return _extreme("min", sizes)


def _extreme(function: str, sizes: Iterable[Number]) -> Dim:
    sign = 1 if function == "max" else -1
    kept: list[Dim] = []
    for size in dict.fromkeys(map(dim, sizes)):
        if any((bounds((other - size) * sign)[0] or -1) >= 0 or other == size for other in kept):
            continue
        at_least = [(bounds((size - other) * sign)[0], other) for other in kept]
        kept = [other for least, other in at_least if least is None or least < 0] + [size]
    if len(kept) == 1:
        return kept[0]
    return of_atom(Call(function, tuple(sorted(kept, key=str))))


def _extreme_bounds(arguments: tuple[Any, ...], pick: Callable[..., int]) -> Interval:
    lows, highs = zip(*map(bounds, arguments), strict=True)
    if pick is max:
        known = [low for low in lows if low is not None]
        return max(known, default=None), None if None in highs else max(highs)
    known = [high for high in highs if high is not None]
    return None if None in lows else min(lows), min(known, default=None)


def broadcast_size(*sizes: Number) -> Dim:
    """What sizes that broadcast together become: the one that is not 1.

    A size that cannot be 1 is the answer. It says nothing of sizes that do not broadcast.

    >>> print(broadcast_size(Dim("N"), 1), broadcast_size(Dim("N"), 5))
    N 5
    >>> print(broadcast_size(Dim("N"), Dim("M")))
    bcast(M, N)
    """
    kept: dict[Dim, None] = {}
    for size in map(dim, sizes):
        answer = size.is_one()
        if answer is Answer.NO:
            return size
        if answer is Answer.YES:
            continue
        call = size.terms[0][0][0] if not size.const and len(size.terms) == 1 else None
        if isinstance(call, Call) and call.function == "bcast" and of_atom(call) == size:
            kept.update(dict.fromkeys(call.arguments))
        else:
            kept[size] = None
    if not kept:
        return dim(1)
    if len(kept) == 1:
        return next(iter(kept))
    return of_atom(Call("bcast", tuple(sorted(kept, key=_sorted_words))))


def _sorted_words(size: Dim) -> str:
    return size.words


def _broadcast_value(arguments: tuple[Any, ...], values: Mapping[Symbol, int]) -> int:
    found = {argument.evaluate(values) for argument in arguments}
    if len(found) > 1:
        found.discard(1)
    if len(found) > 1:
        raise ArithmeticError(f"sizes {sorted(found)} do not broadcast")
    return int(found.pop())


def _broadcast_bounds(arguments: tuple[Any, ...]) -> Interval:
    lows, highs = zip(*map(bounds, arguments), strict=True)
    return (
        None if None in lows else min(lows),
        None if None in highs else max(highs),
    )


def _choose_value(arguments: tuple[Any, ...], values: Mapping[Symbol, int]) -> int:
    for condition, size in arguments:
        if condition.evaluate(values):
            return int(dim(size).evaluate(values))
    raise ArithmeticError("none of the cases holds")


def _choose_substitute(arguments: tuple[Any, ...], values: Mapping[Symbol, Number]) -> Number:
    return choose((c.substitute(values), dim(size).substitute(values)) for c, size in arguments)


def choose(cases: Iterable[tuple[Condition, Number]]) -> Number:
    """The size of the first case that holds; one size where all cases have the same."""
    kept = [(condition, plain(size)) for condition, size in cases if not condition.never]
    for position, (condition, _) in enumerate(kept):
        if condition.always:
            del kept[position + 1 :]
            break
    if len({size for _, size in kept}) == 1:
        return kept[0][1]
    return of_atom(Call("choose", tuple(kept)))


def _choose_sizes(arguments: tuple[Any, ...]) -> Iterator[Number]:
    for condition, size in arguments:
        yield size
        yield from condition.sizes()


FUNCTIONS.update(
    {
        "floordiv": Function(
            lambda arguments, name: " // ".join(_grouped(size, name) for size in arguments),
            _floordiv_value,
            _floordiv_bounds,
            lambda arguments, values: floordiv(*(a.substitute(values) for a in arguments)),
        ),
        "max": Function(
            _listed("max"),
            lambda arguments, values: max(a.evaluate(values) for a in arguments),
            lambda arguments: _extreme_bounds(arguments, max),
            lambda arguments, values: maximum(*(a.substitute(values) for a in arguments)),
        ),
        "min": Function(
            _listed("min"),
            lambda arguments, values: min(a.evaluate(values) for a in arguments),
            lambda arguments: _extreme_bounds(arguments, min),
            lambda arguments, values: minimum(*(a.substitute(values) for a in arguments)),
        ),
        "bcast": Function(
            _listed("bcast"),
            _broadcast_value,
            _broadcast_bounds,
            lambda arguments, values: broadcast_size(*(a.substitute(values) for a in arguments)),
        ),
        "choose": Function(
            lambda arguments, name: " or ".join(
                dict.fromkeys(dim(size).write(name) for _, size in arguments)
            ),
            _choose_value,
            lambda arguments: _broadcast_bounds(tuple(size for _, size in arguments)),
            _choose_substitute,
            _choose_sizes,
        ),
    }
)
