"""Fingerprints of terms: an order of terms that does not depend on which model is read first."""

from __future__ import annotations

import zlib

import numpy as np

from ...ir.graph import Array
from .term import UNORDERED, Term

#: Numbers of a constant that are looked at, and their significant digits: not those that rounding
#: changes.
_MOST_NUMBERS, _DIGITS = 16, 3


def fingerprint(term: Term, known: dict[int, int]) -> int:
    """A number that terms have in common which are the same but for rounding.

    Args:
        term: the term.
        known: the fingerprints of terms by their number, which it adds to.
    """
    if term.number not in known:
        args = [fingerprint(arg, known) for arg in term.args]
        if term.op in UNORDERED:
            args.sort()
        numbers = [] if term.data is None else _numbers(term.data)
        places = [place.words for place in term.places]
        words = repr((term.op, tuple(map(str, term.shape)), places, args, numbers))
        known[term.number] = zlib.crc32(words.encode())
    return known[term.number]


def _numbers(data: Array) -> list[str]:
    flat = data.ravel()
    step = max(1, len(flat) // _MOST_NUMBERS)
    kept = flat[::step][:_MOST_NUMBERS]
    if data.dtype.kind not in "fc":
        return [str(number) for number in kept.tolist()]
    largest = float(np.abs(data).max(initial=0.0, where=np.isfinite(data))) or 1.0
    return [f"{number + 0:.{_DIGITS}f}" for number in (kept / largest).tolist()]


__all__ = ["fingerprint"]
