"""The functions of sizes that are not polynomials, one row each.

A row of `ROWS` says how an application is written, evaluated, bounded and substituted in.
`axioms.meaning` has its meaning for the solver.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from .atoms import Applied, Function, Interval, Number, Symbol, bounds, structure
from .dim import (
    MAX_TERMS,
    Dim,
    applied,
    dim,
    dim_of_terms,
    lone_call,
    of_atom,
    plain,
    size_order,
)
from .shapes import Answer

if TYPE_CHECKING:
    from .condition import Condition


def floordiv(size: Number, divisor: Number) -> Dim:
    """``size // divisor``, rounded down; taken apart where a part divides.

    >>> print(floordiv(dim(3), 2), floordiv(Dim("4*N + 3"), 2), floordiv(Dim("N*H"), Dim("H")))
    1 2*N + 1 H*N // H
    >>> print(floordiv(floordiv(Dim("N + 1"), 2) + 1, 2))
    (N + 3) // 4
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
            return dim_of_terms(quotient, whole)
        inner = dim_of_terms(remainder, rest)
        low, high = bounds(inner)
        if low is not None and high is not None and low // by == high // by:
            return dim_of_terms(quotient + low // by, whole)
        if (flat := _flat(inner, by)) is not None:
            return dim_of_terms(quotient, whole) + floordiv(*flat)
        return dim_of_terms(quotient, whole) + applied("floordiv", (inner, divisor))
    if size == divisor and _at_least(divisor, 1):
        return dim(1)
    if size == 0 and _at_least(divisor, 1):
        return dim(0)
    return applied("floordiv", (size, divisor))


def exact_quotient(size: Number, divisor: Number) -> Dim | None:
    """The quotient of two sizes, if the division of polynomials leaves no remainder.

    A divisor that is 0 is not checked.

    >>> print(exact_quotient(Dim("N*H"), Dim("H")), exact_quotient(Dim("N + 1"), 2))
    N None
    """
    rest, divisor = dim(size), dim(divisor)
    if divisor == 0:
        return None
    lead, lead_factor = divisor.terms[0] if divisor.terms else ((), divisor.const)
    quotient = dim(0)
    for _ in range(MAX_TERMS):
        if rest == 0:
            return quotient
        monomial, factor = rest.terms[0] if rest.terms else ((), rest.const)
        left = list(monomial)
        for atom in lead:
            if atom not in left:
                return None
            left.remove(atom)
        if factor % lead_factor:
            return None
        part = factor // lead_factor
        step = dim_of_terms(0, ((tuple(left), part),)) if left else dim(part)
        quotient, rest = quotient + step, rest - step * divisor
    return None


def _flat(size: Dim, by: int) -> tuple[Dim, int] | None:
    """``(x + y // m) // n`` as numerator and divisor of ``(m*x + y) // (m*n)``; None for other
    forms.

    So sizes that are halved repeatedly stay short, and are equal however they were computed.
    """
    quotients = [
        atom
        for (atom, *more), factor in size.terms
        if factor == 1 and not more and isinstance(atom, Applied) and atom.function == "floordiv"
    ]
    if len(quotients) != 1:
        return None
    whole, divisor = quotients[0].arguments
    if divisor.terms or divisor.const < 1:
        return None
    return (size - of_atom(quotients[0])) * divisor.const + whole, divisor.const * by


def _floordiv_value(arguments: tuple[Any, ...], values: Mapping[Symbol, int]) -> int:
    size, divisor = (argument.evaluate(values) for argument in arguments)
    return int(size // _divisor(divisor))


def _floordiv_substitute(arguments: tuple[Any, ...], values: Mapping[Symbol, Number]) -> Number:
    size, divisor = (argument.substitute(values) for argument in arguments)
    return floordiv(size, divisor if divisor.terms else _divisor(divisor.const))


def _divisor(number: int) -> int:
    """A divisor of sizes. An expression has no value where it is below 1."""
    if number < 1:
        raise ZeroDivisionError(f"a size divided by {number}")
    return number


def _floordiv_bounds(arguments: tuple[Any, ...]) -> Interval:
    (low, high), (least, most) = map(bounds, arguments)
    if least is None or least <= 0:
        least = 1  # a quotient exists for these alone
        if most is not None and most < 1:
            return None, None
    if low is None or low < 0:
        below = None if low is None else low // least
    else:
        below = 0 if most is None else low // most
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


def _quotient(arguments: tuple[Any, ...], name: Callable[[Symbol], str]) -> str:
    whole, divisor = arguments
    return f"{grouped(whole, name)} // {grouped(divisor, name, factor=True)}"


def grouped(size: Dim, name: Callable[[Symbol], str], *, factor: bool = False) -> str:
    """A size as text before ``//`` or ``%``, or as a `factor` after it, in parentheses if need be.

    >>> from zerostride.sizes.dim import name_of
    >>> print(*(grouped(Dim(text), name_of) for text in ("N + 1", "2*N", "max(N, 2)")))
    (N + 1) 2*N max(2, N)
    """
    text = size.write(name)
    if not size.terms:
        return text
    ((*_, last), times), *more = size.terms
    loose = isinstance(last, Applied) and last.function in ("floordiv", "choose")
    product = len(size.terms[0][0]) > 1 or times != 1
    return f"({text})" if more or size.const or (factor and product) or loose else text


def maximum(*sizes: Number) -> Dim:
    """The greatest of several sizes, without those known not to be."""
    return _extreme("max", sizes)


def minimum(*sizes: Number) -> Dim:
    """The least of several sizes."""
    return _extreme("min", sizes)


def _extreme(function: str, sizes: Iterable[Number]) -> Dim:
    sign = 1 if function == "max" else -1
    arguments: list[Dim] = []
    # In order, so that the same sizes give the same result in any order.
    for size in sorted(set(map(dim, sizes)), key=size_order):
        if any(_at_least((other - size) * sign, 0) for other in arguments):
            continue
        arguments = [other for other in arguments if not _at_least((size - other) * sign, 0)]
        arguments.append(size)
    return arguments[0] if len(arguments) == 1 else applied(function, tuple(arguments))


def _at_least(size: Dim, number: int) -> bool:
    low = bounds(size)[0]
    return low is not None and low >= number


def _extreme_bounds(arguments: tuple[Any, ...], pick: Callable[..., int]) -> Interval:
    lows, highs = zip(*map(bounds, arguments), strict=True)
    if pick is max:
        finite = [low for low in lows if low is not None]
        return max(finite, default=None), None if None in highs else max(highs)
    finite = [high for high in highs if high is not None]
    return None if None in lows else min(lows), min(finite, default=None)


def broadcast_size(*sizes: Number) -> Dim:
    """What sizes that broadcast together become: the one that is not 1.

    A size that cannot be 1 is the result. Whether the sizes broadcast is not checked, except that
    two numbers that do not broadcast give a size that does not exist.

    >>> print(broadcast_size(Dim("N"), 1), broadcast_size(Dim("N"), 5))
    N 5
    >>> print(broadcast_size(Dim("N"), Dim("M")))
    bcast(M, N)
    """
    every = list(itertools.chain.from_iterable(map(_broadcast_arguments, map(dim, sizes))))
    numbers = dict.fromkeys(size for size in every if not size.terms and size.const != 1)
    if len(numbers) > 1:
        return applied("bcast", tuple(sorted(numbers, key=size_order)))
    if numbers:
        return next(iter(numbers))
    arguments: dict[Dim, None] = {}
    for size in every:
        answer = size.is_one()
        if answer is Answer.NO:
            return size
        if answer is Answer.UNKNOWN:
            arguments[size] = None
    if not arguments:
        return dim(1)
    if len(arguments) == 1:
        return next(iter(arguments))
    return applied("bcast", tuple(sorted(arguments, key=size_order)))


def _broadcast_arguments(size: Dim) -> Iterable[Dim]:
    """The sizes that a size broadcasts, or itself: nested broadcasts are flattened."""
    call = lone_call(size)
    return call.arguments if call is not None and call.function == "bcast" else (size,)


def _broadcast_value(arguments: tuple[Any, ...], values: Mapping[Symbol, int]) -> int:
    numbers = {argument.evaluate(values) for argument in arguments}
    if len(numbers) > 1:
        numbers.discard(1)
    if len(numbers) > 1:
        raise ArithmeticError(f"sizes {sorted(numbers)} do not broadcast")
    return int(numbers.pop())


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
    cases = ((condition.substitute(values), size) for condition, size in arguments)
    return choose((c, _if_chosen(size, values)) for c, size in cases if not c.never)


def _if_chosen(size: Number, values: Mapping[Symbol, Number]) -> Number:
    """The size of one case; it may not exist where another case is chosen."""
    try:
        return dim(size).substitute(values)
    except OverflowError:
        raise
    except ArithmeticError:
        return of_atom(Applied("floordiv", (dim(0), dim(0))))


def choose(cases: Iterable[tuple[Condition, Number]]) -> Number:
    """The size of the first case that holds; one plain size if all cases have the same.

    Raises:
        ArithmeticError: none of the cases can hold.
    """
    pairs = [(condition, plain(size)) for condition, size in cases if not condition.never]
    for position, (condition, _) in enumerate(pairs):
        if condition.always:
            del pairs[position + 1 :]
            break
    if not pairs:
        raise ArithmeticError("none of the cases holds")
    if len({size for _, size in pairs}) == 1:
        return pairs[0][1]
    return applied("choose", tuple(pairs))


def _choose_sizes(arguments: tuple[Any, ...]) -> Iterator[Number]:
    for condition, size in arguments:
        yield size
        yield from condition.sizes()


def _choose_order(case: tuple[Condition, Number]) -> tuple[Any, ...]:
    from .condition import order_of

    return order_of(case[0]), structure(case[1])


ROWS: Mapping[str, Function] = {
    "floordiv": Function(
        _quotient,
        _floordiv_value,
        _floordiv_bounds,
        _floordiv_substitute,
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
        _choose_order,
    ),
}
