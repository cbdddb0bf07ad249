"""Sizes and conditions as Python expressions, in the variables of a source."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

from ...sizes.condition import Condition, eq, ge, ne
from ...sizes.dim import Applied, Atom, Dim, Number, Symbol, calls, dim, of_atom
from ...sizes.solve import exists

#: The variable of each symbol, function of sizes, and whole expression on an axis.
Words: TypeAlias = dict[Symbol | Applied | Dim, str]


def size_code(size: Number, words: Words) -> str:
    """A size as an expression of Python.

    >>> N, M = (dim(Dim(name)) for name in "NM")
    >>> from zerostride.sizes.functions import broadcast_size
    >>> words = {symbol: symbol.name for symbol in (N * M).symbols}
    >>> size_code(2 * N + 1, words), size_code(broadcast_size(N, M), words)
    ('2*N + 1', 'M if N == 1 else N')
    """
    size = _in_variables(dim(size), words)
    parts: list[str] = []
    for monomial, factor in size.terms:
        alone = len(size.terms) == 1 and not size.const and factor == 1 and len(monomial) == 1
        product = "*".join(_atom_code(atom, words, alone) for atom in monomial)
        text = product if abs(factor) == 1 else f"{abs(factor)}*{product}"
        sign = ("-" if factor < 0 else "") if not parts else (" - " if factor < 0 else " + ")
        parts.append(sign + text)
    if size.const or not parts:
        sign = "" if not parts else " - " if size.const < 0 else " + "
        parts.append(f"{sign}{abs(size.const) if parts else size.const}")
    return "".join(parts)


#: Sizes being rewritten: rewriting one in terms of itself would not end.
Busy: TypeAlias = frozenset[Dim]


def _in_variables(size: Dim, words: Words, busy: Busy = frozenset()) -> Dim:
    """The size in terms of variables, also of functions and expressions, as far as possible."""
    if size not in busy and any(symbol not in words for symbol in size.symbols):
        busy = busy | {size}
        for whole, word in words.items():
            if isinstance(whole, Dim):
                for rest, times in ((size - whole, 1), (size + whole, -1)):
                    if all(
                        _is_told(atom, words, busy)
                        for monomial, _ in rest.terms
                        for atom in monomial
                    ):
                        return _in_variables(rest, words, busy) + of_atom(_variable(word)) * times
    total = dim(size.const)
    for monomial, factor in size.terms:
        product = dim(factor)
        for atom in monomial:
            is_read = isinstance(atom, Applied) and atom in words
            product = product * of_atom(_variable(words[atom]) if is_read else atom)
        total = total + product
    return total


def _variable(word: str) -> Symbol:
    """A symbol for a variable of the source: unnamed, with an identifier as name, unlike those of
    sizes.
    """
    return Symbol(word, named=False)


def _is_told(atom: Atom, words: Words, busy: Busy = frozenset()) -> bool:
    if atom in words or isinstance(atom, Symbol):
        return atom in words
    if atom.function == "choose":
        return all(
            tells(words, size, busy) and decides(words, when, busy) for when, size in atom.arguments
        )
    return all(tells(words, size, busy) for size in atom.arguments)


def tells(words: Words, size: Number, busy: Busy = frozenset()) -> bool:
    """Whether the variables that were read determine a size."""
    atoms = _atoms(_in_variables(dim(size), words, busy))
    return all(_is_told(atom, words, busy) or _is_variable(atom) for atom in atoms)


def _atoms(size: Dim) -> Iterator[Atom]:
    return (atom for monomial, _ in size.terms for atom in monomial)


def decides(words: Words, condition: Condition, busy: Busy = frozenset()) -> bool:
    """Whether the variables that were read decide a condition."""
    return all(tells(words, size, busy) for size in condition.sizes())


def _is_variable(atom: Atom) -> bool:
    return isinstance(atom, Symbol) and not atom.named and atom.name.isidentifier()


def _atom_code(atom: Atom, words: Words, alone: bool) -> str:
    if isinstance(atom, Symbol):
        return atom.name if _is_variable(atom) else words[atom]
    if atom.function in ("max", "min"):
        return f"{atom.function}({', '.join(size_code(a, words) for a in atom.arguments)})"
    if atom.function == "floordiv":
        whole, divisor = (factor_code(size_code(size, words)) for size in atom.arguments)
        text = f"{whole} // {divisor}"
    elif atom.function == "bcast":
        *others, last = atom.arguments
        text = size_code(last, words)
        for size in others:
            text = f"{size_code(size, words)} if {closed(text)} == 1 else {text}"
    else:
        *cases, (_, last) = atom.arguments
        text = size_code(last, words)
        for when, size in reversed(cases):
            text = f"{closed(size_code(size, words))} if {condition_code(when, words)} else {text}"
    return text if alone else f"({text})"


def factor_code(text: str) -> str:
    """An expression as a factor."""
    return text if re.fullmatch(r"[\w.\[\]]+", text) else f"({text})"


def closed(text: str) -> str:
    """An expression as an operand."""
    return f"({text})" if " if " in text else text


_COMPARED: dict[str, Callable[[Number, Number], Condition]] = {"==": eq, "!=": ne, ">=": ge}


def condition_code(condition: Condition, words: Words) -> str:
    """A condition as a Python expression, false if one of its sizes does not exist."""
    if condition.kind in ("true", "false"):
        return "True" if condition.kind == "true" else "False"
    if condition.kind in ("and", "or"):
        parts = [
            f"({condition_code(part, words)})"
            if condition.kind == "and" and part.kind == "or"
            else condition_code(part, words)
            for part in condition.parts
        ]
        return f" {condition.kind} ".join(parts)
    size = _in_variables(condition.size, words)
    there = exists(size)
    also = "" if there.always else f"{condition_code(there, words)} and "
    if any(call.function in ("bcast", "choose") for call in calls(size)):
        text = size_code(size, words)
        return f"{also}{closed(text)} {condition.kind} 0"
    return also + _COMPARED[condition.kind](size, 0).write(
        lambda symbol: words.get(symbol, symbol.name)
    )
