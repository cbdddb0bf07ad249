"""Conditions as text that Python reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from .atoms import Applied, Symbol
from .dim import Dim, dim_of_terms, of_atom
from .functions import grouped

if TYPE_CHECKING:
    from .condition import Condition


def write_parts(parts: Sequence[Condition], name: Callable[[Symbol], str]) -> Iterator[str]:
    """The parts of an *and*, each as text; the lower and upper bound of a size in one text."""
    ends = {part.size.terms: part for part in parts if part.kind == ">="}
    for part in parts:
        other = ends.get(tuple((monomial, -factor) for monomial, factor in part.size.terms))
        if other is None or ends.get(part.size.terms) is not part or _remainder(part.size):
            yield f"({part.write(name)})" if part.kind == "or" else part.write(name)
        elif part.size.terms[0][1] > 0:
            middle = dim_of_terms(0, part.size.terms).write(name)
            yield f"{-part.size.const} <= {middle} <= {other.size.const}"


def write_atom(kind: str, size: Dim, name: Callable[[Symbol], str]) -> str:
    """``size kind 0`` with the negative terms moved to the other side."""
    sign = kind
    if (remainder := _remainder(size)) is not None:
        whole, divisor, factor, rest = remainder
        sign = "<=" if factor < 0 and kind == ">=" else kind
        return f"{grouped(whole, name)} % {divisor} {sign} {rest}"
    left = dim_of_terms(0, tuple((m, factor) for m, factor in size.terms if factor > 0))
    right = dim_of_terms(0, tuple((m, -factor) for m, factor in size.terms if factor < 0))
    if left.terms and right.terms:
        left, right = (left + size.const, right) if size.const > 0 else (left, right - size.const)
    elif left.terms:
        right = right - size.const
    else:
        left, right, sign = right, left + size.const, "<=" if kind == ">=" else kind
    return f"{left.write(name)} {sign} {right.write(name)}"


def _remainder(size: Dim) -> tuple[Dim, int, int, int] | None:
    """``(x, n, sign, r)`` if the size is ``sign * (x % n - r)`` with sign 1 or -1."""
    for monomial, factor in size.terms:
        call = monomial[0]
        if len(monomial) != 1 or not isinstance(call, Applied) or call.function != "floordiv":
            continue
        whole, divisor = call.arguments
        if divisor == abs(factor):
            sign = -1 if factor > 0 else 1
            rest = whole - of_atom(call) * divisor - size * sign
            if not rest.terms:
                return whole, divisor.const, sign, rest.const
    return None


__all__ = ["write_atom", "write_parts"]
