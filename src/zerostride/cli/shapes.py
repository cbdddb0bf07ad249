"""Shapes as people write them: 2,3,4 or [2,3,4] or 2x3x4, a .npy file, a tensor of a model."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ZerostrideError

_SIZES = re.compile(r"[\[(]?\s*((?:-?\d+\s*(?:[,x]\s*-?\d+\s*)*,?\s*)?)[\])]?", re.ASCII)


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
    sizes = _SIZES.fullmatch(text)
    if sizes is not None and text:
        return tuple(int(size) for size in re.findall(r"-?\d+", sizes[1]))
    if text.endswith(".npy"):
        return tuple(open_array(text).shape)
    model, colon, tensor = text.rpartition(":")
    if colon and model.endswith(".onnx"):
        return _tensor_shape(model, tensor)
    raise ZerostrideError(
        f"{text!r} is not a shape: write 2,3,4 or [2,3,4] or 2x3x4 or (), or name a .npy file or "
        "MODEL.onnx:TENSOR"
    )


def open_array(path: str) -> np.ndarray[Any, Any]:
    """A .npy file, mapped and not read; never unpickled.

    Raises:
        ZerostrideError: it cannot be opened, or holds no plain array.
    """
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise ZerostrideError(f"{path}: {error.strerror or error}") from None
    except (ValueError, EOFError) as error:
        raise ZerostrideError(f"{path}: not a plain .npy array ({error})") from None
    if not isinstance(array, np.ndarray):
        raise ZerostrideError(f"{path}: an archive of arrays; give a single .npy file")
    return array


def _tensor_shape(model: str, tensor: str) -> tuple[int, ...]:
    from ..models.onnx import read_onnx

    graph = read_onnx(Path(model))
    found = next((value for value in graph.values() if value.name == tensor), None)
    if found is None:
        raise ZerostrideError(f"{model}: there is no tensor {tensor!r}")
    if found.shape is None or not found.known:
        sizes = "its rank" if found.shape is None else f"every size of ({found.shape})"
        raise ZerostrideError(f"{model}: {sizes} of tensor {tensor!r} is not known")
    return tuple(size for size in found.shape if isinstance(size, int))
