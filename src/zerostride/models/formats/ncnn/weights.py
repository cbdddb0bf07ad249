"""The weights of layers, and their positions in a .bin.

A .bin has no table. It holds the weights of the layers in order, so the position of one follows
from the lengths of all before it. The table of layers lists what each reads. A layer
that ncnn lacks may have weights of any length. It is assumed to have none, or all bytes that the
other layers leave, if the last layer then ends at the end of the file. Only the 4-byte marks of the
storage forms are read, until numbers are needed.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ...ir.files import section
from ...ir.graph import Array
from .layers import FUNCTIONS, LAYERS, loads_of
from .loads import Load
from .text import Layer

#: Marks before weights with several storage forms (`ModelBinFromDataReader::load`).
_HALF, _INT8, _FLOAT_AGAIN = 0x01306B47, 0x000D4B38, 0x0002C056
#: The table of 256 numbers before indices of a byte.
_TABLE = 256 * 4


@dataclass(frozen=True, slots=True)
class Stored:
    """Weights in a .bin.

    Attributes:
        load: name and shape.
        start, end: their bytes, with the mark and the padding to 4 bytes.
        mark: the storage form; 0 without a mark.
    """

    load: Load
    start: int
    end: int
    mark: int


@dataclass(frozen=True, slots=True)
class Weights:
    """The located weights of a .bin.

    Attributes:
        path: the file, whether it exists or not.
        stored: for each layer its weights; None for layers whose weights are not located.
        missing: why weights are not located; None if all are.
        end: the first byte after the located weights.
        size: the file's size; None without a file.
    """

    path: Path
    stored: tuple[tuple[Stored, ...] | None, ...]
    missing: str | None
    end: int
    size: int | None


def bin_path(param: Path) -> Path:
    """The .bin of a .param: the same stem, beside it."""
    name = param.name
    stem = name[: -len(".param")] if name.lower().endswith(".param") else name
    return param.with_name(stem + ".bin")


def locate(layers: Sequence[Layer], path: Path) -> Weights:
    """Locates the weights of the layers in a .bin.

    Args:
        layers: the layers of the .param.
        path: the .bin; it need not exist.

    Raises:
        ModelError: a layer's parameter has the wrong type.
    """
    size = _size(path)
    if size is None:
        return Weights(path, (None,) * len(layers), path.name, 0, None)
    try:
        with path.open("rb") as file:
            walk = _walked(layers, file, size)
    except OSError as error:
        walk = _Walk([], 0, f"{path.name}: {error.strerror or error}")
    stored = (*walk.stored, *(None,) * (len(layers) - len(walk.stored)))
    return Weights(path, stored, walk.missing, walk.end, size)


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size if path.is_file() else None
    except (OSError, ValueError):
        return None


@dataclass
class _Walk:
    """The weights located so far, their end, and why the search stopped."""

    stored: list[tuple[Stored, ...] | None]
    end: int
    missing: str | None = None


def _walked(layers: Sequence[Layer], file: BinaryIO, size: int) -> _Walk:
    """The weights of all layers, or of those before a layer of unknown length."""

    def opaque(layer: Layer) -> bool:
        return layer.type not in LAYERS and not FUNCTIONS.fullmatch(layer.type)

    here = next((k for k, layer in enumerate(layers) if opaque(layer)), len(layers))
    before = _forward(layers[:here], file, 0, size)
    if here == len(layers) or before.missing is not None:
        return before
    after = layers[here + 1 :]
    # No weights, or the bytes that the other layers leave if they all have one storage form.
    lengths = {0}
    if not any(map(opaque, after)):
        lengths |= {size - before.end - _total(after, mark) for mark in (0, _HALF)}
    for length in sorted(n for n in lengths if n >= 0):
        rest = _forward(after, file, before.end + length, size)
        if rest.missing is None and rest.end == size:
            return _Walk([*before.stored, () if not length else None, *rest.stored], size)
    before.missing = f"the weights of {layers[here].shown} before it are of unknown length"
    return before


def _total(layers: Sequence[Layer], mark: int) -> int:
    """The bytes of the layers' weights if all marked ones have one storage form."""
    return sum(
        4 + _length(mark, load.count) if load.marked else 4 * load.count
        for layer in layers
        for load in loads_of(layer)
    )


def _forward(layers: Sequence[Layer], file: BinaryIO, start: int, size: int) -> _Walk:
    """The weights of consecutive layers from a position on."""
    walk = _Walk([], start)
    for layer in layers:
        own: list[Stored] = []
        here = walk.end
        for load in loads_of(layer):
            if min(load.shape) < 0:
                walk.missing = f"the weights of {layer.shown} are of a length below 0"
                return walk
            stored = _stored(load, file, here, size)
            if stored is None:
                walk.missing = f"the file ends within the weights of {layer.shown}"
                return walk
            own.append(stored)
            here = stored.end
        walk.stored.append(tuple(own))
        walk.end = here
    return walk


def _stored(load: Load, file: BinaryIO, start: int, size: int) -> Stored | None:
    """The weights that start here; None if they end beyond the file."""
    mark = 0
    at = start
    if load.marked:
        file.seek(start)
        raw = file.read(4)
        if len(raw) < 4:
            return None
        (mark,) = struct.unpack("<I", raw)
        at += 4
    end = at + _length(mark, load.count)
    return Stored(load, start, end, mark) if end <= size else None


def _length(mark: int, count: int) -> int:
    """The bytes of weights after their mark."""
    if mark == _HALF:
        return -(-2 * count // 4) * 4
    if mark == _INT8:
        return -(-count // 4) * 4
    if mark in (0, _FLOAT_AGAIN):
        return 4 * count
    return _TABLE + -(-count // 4) * 4


def dtype_of(stored: Stored) -> str:
    """The type in which ncnn holds weights: 32-bit floats, but for what is marked as int8."""
    return "int8" if stored.mark == _INT8 else "float32"


def is_half(stored: Stored) -> bool:
    """Whether the file holds 16-bit floats, which ncnn reads as 32-bit ones."""
    return stored.mark == _HALF


def load(stored: Stored, path: Path) -> Array:
    """The numbers of weights, as ncnn holds them.

    Raises:
        ModelError: the file has gone, or is shorter than it was.
    """
    start = stored.start + (4 if stored.load.marked else 0)
    what = f"{stored.load.name} of {stored.load.shape}"
    raw = section(path, start, stored.end - start, what)
    count, shape = stored.load.count, stored.load.shape
    if is_half(stored):
        return np.frombuffer(raw, "<f2", count).astype(np.float32).reshape(shape)
    if stored.mark == _INT8:
        return np.frombuffer(raw, np.int8, count).reshape(shape)
    if stored.mark in (0, _FLOAT_AGAIN):
        return np.frombuffer(raw, "<f4", count).reshape(shape)
    table = np.frombuffer(raw, "<f4", 256)
    indices = np.frombuffer(raw, np.uint8, count, offset=_TABLE)
    numbers: Array = table[indices].reshape(shape)
    return numbers
