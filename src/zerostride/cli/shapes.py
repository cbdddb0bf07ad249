"""Shapes as people write them: 2,3,4 or [2,3,4] or 2x3x4, a .npy file, a tensor of a model.

Sizes that are not known: N,C,? or 1..8,2*N; or those of a model's tensor.
"""

from __future__ import annotations

import os
import re
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ..errors import Misfit, Reason, ZerostrideError
from ..sizes import MAX_RANK, brief
from ..sizes.parse import MAX_TEXT, read, symbol
from .files import open_array

#: The most digits of a number: twice as many as a size can have, and fast to read.
_SIZE = re.compile(r"-?[0-9]{1,40}")
_CLOSING = {"[": "]", "(": ")"}


#: The most characters of a shape; a valid one has at most 64 sizes.
_LONGEST = 64 * (MAX_TEXT + 1)


def parse_shape(text: str) -> tuple[Any, ...]:
    """The shape that `text` stands for.

    Args:
        text: sizes ("2,3,4", "[2,3,4]", "(2,3,4)", "2x3x4"; "()" or "scalar" for rank 0), the name
            of a .npy file, or MODEL.onnx:TENSOR. A size that is not known is a name, "?", bounds
            as "1..8", or an expression.

    Returns:
        Whole numbers, and text or Dims for sizes that are not known.

    Raises:
        ZerostrideError: it is none of these; says what is expected.

    >>> parse_shape("2x3x4"), parse_shape("[5]"), parse_shape("()"), parse_shape("N, ?, 2*N+1")
    ((2, 3, 4), (5,), (), ('N', '?', '2*N+1'))
    """
    text = text.strip()
    if text == "scalar":
        return ()
    sizes = _numbers(text)
    if sizes is not None:
        return sizes
    if text.endswith(".npy"):
        return tuple(open_array(text).shape)
    # Tensors may have colons in their names (input:0), and so may folders.
    model, colon, tensor = text.partition(".onnx:")
    if colon:
        return _tensor_shape(f"{model}.onnx", tensor)
    why = ""
    if len(text) <= _LONGEST and text.isprintable() and not _names_a_file(text):
        try:
            return _symbols(text)
        except Misfit as misfit:
            why = f" ({misfit.detail})" if misfit.detail else ""
    raise ZerostrideError(
        f"{_cut(text)!r} is not a shape{why}: write 2,3,4 or [2,3,4] or 2x3x4 or (), N,?,1..8,2*N "
        "for sizes that are not known, or name a .npy file or MODEL.onnx:TENSOR"
    )


def _names_a_file(text: str) -> bool:
    """Whether the word is a file without a shape; names of sizes may also have a dot."""
    return text.endswith(".onnx") or ("." in text and os.path.isfile(text))


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


def _numbers(text: str) -> tuple[int, ...] | None:
    """The sizes of a list of numbers, or None if `text` is no such list."""
    words = _words(text) if text else None
    if words is None or not all(map(_SIZE.fullmatch, words)):
        return None
    return tuple(map(int, words))


def _symbols(text: str) -> tuple[Any, ...]:
    """The sizes of a list with names or expressions; raises Misfit if it is none."""
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


def _opens(text: str) -> bool:
    return text[:1] in _CLOSING and _closes(text) and text[-1] == _CLOSING[text[:1]]


def _readable(word: str) -> str:
    """The text of a size, checked; it becomes a symbol once its operand is known."""
    if word.startswith("--"):
        raise Misfit(Reason.BAD_EXTENT, f"{brief(word)} looks like an option")
    read(word)
    return word


def _cut(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."


def _tensor_shape(model: str, tensor: str) -> tuple[Any, ...]:
    from ..models.formats import read_model

    graph = read_model(Path(model))
    values = {value.name: value for value in graph.values()}
    value = values.get(tensor)
    if value is None:
        near = get_close_matches(tensor[:200], [name[:200] for name in values], n=3)
        meant = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise ZerostrideError(f"{model}: there is no tensor {_cut(tensor)!r}{meant}")
    if value.shape is None:
        raise ZerostrideError(f"{model}: the rank of tensor {_cut(tensor)!r} is not known")
    # A name in a file may have any characters; two operands may share it.
    return tuple(symbol(size) if isinstance(size, str) else size for size in value.shape)
