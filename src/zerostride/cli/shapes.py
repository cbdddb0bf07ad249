"""Shapes as people write them: 2,3,4 or [2,3,4] or 2x3x4, a .npy file, a tensor of a model.

Sizes that are not known: N,C,? or 1..8,2*N; or those of a model's tensor.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..errors import Misfit, ZerostrideError
from ..sizes.parse import MAX_TEXT, symbol
from ..sizes.written import as_numbers, as_sizes
from ..system.spelling import meant
from .files import open_array

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
    sizes = as_numbers(text)
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
            return as_sizes(text)
        except Misfit as misfit:
            why = f" ({misfit.detail})" if misfit.detail else ""
    raise ZerostrideError(
        f"{_cut(text)!r} is not a shape{why}: write 2,3,4 or [2,3,4] or 2x3x4 or (), N,?,1..8,2*N "
        "for sizes that are not known, or name a .npy file or MODEL.onnx:TENSOR"
    )


def _names_a_file(text: str) -> bool:
    """Whether the word is a file without a shape; names of sizes may also have a dot."""
    return text.endswith(".onnx") or ("." in text and os.path.isfile(text))


def _cut(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."


def _tensor_shape(model: str, tensor: str) -> tuple[Any, ...]:
    from ..models.formats import read_model

    graph = read_model(Path(model))
    values = {value.name: value for value in graph.values()}
    value = values.get(tensor)
    if value is None:
        hint = meant(tensor, values, 3)
        raise ZerostrideError(f"{model}: there is no tensor {_cut(tensor)!r}{hint}")
    if value.shape is None:
        raise ZerostrideError(f"{model}: the rank of tensor {_cut(tensor)!r} is not known")
    # A name in a file may have any characters; two operands may share it.
    return tuple(symbol(size) if isinstance(size, str) else size for size in value.shape)
