"""Shapes as people write them: 2,3,4 or [2,3,4] or 2x3x4, a .npy file, a tensor of a model."""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path

from ..errors import ZerostrideError
from .files import open_array

#: Forty digits are twice what a size can have, and few enough to be a number at once.
_SIZE = re.compile(r"-?[0-9]{1,40}")
_CLOSING = {"[": "]", "(": ")"}


def parse_shape(text: str) -> tuple[int, ...]:
    """The shape that `text` stands for.

    Args:
        text: sizes ("2,3,4", "[2,3,4]", "(2,3,4)", "2x3x4"; "()" or "scalar" for rank 0), the name
            of a .npy file, or MODEL.onnx:TENSOR.

    Raises:
        ZerostrideError: it is none of these; says what is expected.

    >>> parse_shape("2x3x4"), parse_shape("[5]"), parse_shape("()")
    ((2, 3, 4), (5,), ())
    """
    text = text.strip()
    if text == "scalar":
        return ()
    sizes = _sizes(text)
    if sizes is not None:
        return sizes
    if text.endswith(".npy"):
        return tuple(open_array(text).shape)
    # Tensors may have colons in their names (input:0), and so may folders.
    model, colon, tensor = text.partition(".onnx:")
    if colon:
        return _tensor_shape(f"{model}.onnx", tensor)
    raise ZerostrideError(
        f"{_cut(text)!r} is not a shape: write 2,3,4 or [2,3,4] or 2x3x4 or (), or name a .npy "
        "file or MODEL.onnx:TENSOR"
    )


def _sizes(text: str) -> tuple[int, ...] | None:
    """The sizes of a list of them, or None if `text` is no such list."""
    opening = text[:1]
    if opening in _CLOSING:
        if text[-1] != _CLOSING[opening]:
            return None
        text = text[1:-1].strip()
        if not text:
            return ()
    words = text.split(",") if "," in text else text.replace("×", "x").split("x")
    if "," in text and not words[-1].strip():
        words.pop()  # (3,) as Python writes it
    words = [word.strip() for word in words]
    return tuple(map(int, words)) if all(map(_SIZE.fullmatch, words)) else None


def _cut(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."


def _tensor_shape(model: str, tensor: str) -> tuple[int, ...]:
    from ..models.onnx import read_onnx

    graph = read_onnx(Path(model))
    values = {value.name: value for value in graph.values()}
    found = values.get(tensor)
    if found is None:
        near = get_close_matches(tensor[:200], [name[:200] for name in values], n=3)
        meant = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise ZerostrideError(f"{model}: there is no tensor {_cut(tensor)!r}{meant}")
    if found.shape is None:
        raise ZerostrideError(f"{model}: the rank of tensor {_cut(tensor)!r} is not known")
    if not found.known:
        sizes = ", ".join("?" if size is None else str(size) for size in found.shape)
        raise ZerostrideError(
            f"{model}: tensor {_cut(tensor)!r} has sizes that are not numbers: ({sizes})"
        )
    return tuple(size for size in found.shape if isinstance(size, int))
