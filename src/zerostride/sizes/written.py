"""Shapes as people write them: 2,3,4 or [2,3,4] or (2,3,4) or 2x3x4; N,?,1..8 with open sizes."""

from __future__ import annotations

import re
from typing import Any

from ..errors import Misfit, Reason
from .parse import read
from .shapes import MAX_RANK, brief

#: The most digits of a number: twice as many as a size can have, and fast to read.
_SIZE = re.compile(r"-?[0-9]{1,40}")
_CLOSING = {"[": "]", "(": ")"}


def as_numbers(text: str) -> tuple[int, ...] | None:
    """The sizes of a list of numbers, or None if `text` is no such list.

    >>> as_numbers("2x3x4"), as_numbers("(5,)"), as_numbers("N,3")
    ((2, 3, 4), (5,), None)
    """
    words = _words(text) if text else None
    if words is None or not all(map(_SIZE.fullmatch, words)):
        return None
    return tuple(map(int, words))


def as_sizes(text: str) -> tuple[Any, ...]:
    """The sizes of a list with names or expressions; raises Misfit if it is none.

    >>> as_sizes("[N, ?, 2*N+1]")
    ('N', '?', '2*N+1')
    """
    words = _words(text) if text else None
    if words is None:
        raise Misfit(Reason.BAD_EXTENT, "")
    if "," not in text and len(words) > 1:  # an x is a letter here, not a separator
        words = [text]
        if _opens(text):
            words = [text[1:-1].strip()]
    if len(words) > MAX_RANK:
        raise Misfit(Reason.RANK_LIMIT, f"more than {MAX_RANK} sizes")
    return tuple(int(word) if _SIZE.fullmatch(word) else _readable(word) for word in words)


def _words(text: str) -> list[str] | None:
    """The sizes of a list as they are written, or None if `text` is no list."""
    opening = text[:1]
    if opening in _CLOSING and _closes(text):
        if text[-1] != _CLOSING[opening]:
            return None
        text = text[1:-1].strip()
        if not text:
            return []
    words = _parts(text) if "," in text else text.replace("×", "x").split("x")
    if "," in text and not words[-1].strip():
        words.pop()  # (3,) as Python writes it
    return [word.strip() for word in words]


def _closes(text: str) -> bool:
    """Whether the last character closes the first bracket: false for (N+1)*(M+1)."""
    if text[-1] not in _CLOSING.values():
        return text[0] == "["
    depth = 0
    for position, character in enumerate(text):
        depth += (character in _CLOSING) - (character in _CLOSING.values())
        if not depth:
            return position == len(text) - 1
    return True


def _parts(text: str) -> list[str]:
    """A list split at commas outside parentheses: bcast(N, M) is one size."""
    if not any(bracket in text for bracket in "()"):
        return text.split(",")
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == "," and depth <= 0:
            parts.append(text[start:position])
            start = position + 1
    return [*parts, text[start:]]


def _opens(text: str) -> bool:
    return text[:1] in _CLOSING and _closes(text) and text[-1] == _CLOSING[text[:1]]


def _readable(word: str) -> str:
    """The text of a size, checked; it becomes a symbol once its operand is known."""
    if word.startswith("--"):
        raise Misfit(Reason.BAD_EXTENT, f"{brief(word)} looks like an option")
    read(word)
    return word
