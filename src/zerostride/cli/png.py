"""Pixels of a PNG file: 8 bits a sample, not interlaced (PNG specification, 3rd edition)."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..errors import ZerostrideError

if TYPE_CHECKING:
    from ..models.ir.graph import Array

_MARK = b"\x89PNG\r\n\x1a\n"
#: Samples of a pixel, by the colour type: grey, RGB, palette, grey and alpha, RGBA.
_SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_PALETTE = 3
#: The most pixels of an image.
MAX_PIXELS = 2**26


def read_png(path: str) -> Array:
    """The pixels as (height, width, channels), uint8: 1 channel of grey or 3 of colour.

    Raises:
        ZerostrideError: the file cannot be read, or is of another kind of PNG.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ZerostrideError(f"{path}: {error.strerror or error}") from None
    try:
        return _pixels(data)
    except (ValueError, IndexError, KeyError, struct.error, zlib.error) as error:
        raise ZerostrideError(f"{path}: not a readable .png file ({error})") from None


def _pixels(data: bytes) -> Array:
    if not data.startswith(_MARK):
        raise ValueError("its first bytes are not those of a PNG")
    parts: dict[bytes, bytes] = {}
    at = len(_MARK)
    while at < len(data):
        (length,) = struct.unpack_from(">I", data, at)
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        parts[kind] = parts.get(kind, b"") + body
        at += 12 + length
    width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", parts[b"IHDR"])
    if depth != 8 or interlaced:
        raise ValueError(f"{depth} bits a sample, interlaced: {interlaced}; 8 bits and 0 are read")
    samples = _SAMPLES[colour]
    if not 0 < width * height <= MAX_PIXELS:
        raise ValueError(f"{width} x {height} pixels")
    size = height * (1 + width * samples)
    raw = zlib.decompressobj().decompress(parts[b"IDAT"], size)
    rows = np.frombuffer(raw, np.uint8).reshape(height, 1 + width * samples)
    image = _unfiltered(rows, samples).reshape(height, width, samples)
    if colour == _PALETTE:
        return np.frombuffer(parts[b"PLTE"], np.uint8).reshape(-1, 3)[image[..., 0]]
    return image[..., : samples - 1] if samples in (2, 4) else image


def _unfiltered(rows: Array, samples: int) -> Array:
    """The samples of each row, after its filter is undone."""
    image = np.zeros((len(rows), rows.shape[1] - 1), np.uint8)
    above = np.zeros(rows.shape[1] - 1, np.uint8)
    for k, row in enumerate(rows):
        kind, line = int(row[0]), row[1:].copy()
        if kind == 2:
            line += above
        elif kind:
            _undo(kind, line, above, samples)
        image[k] = above = line
    return image


def _undo(kind: int, line: Array, above: Array, samples: int) -> None:
    """Undoes a filter whose samples depend on those to their left."""
    values, up = line.tolist(), above.tolist()
    for k, value in enumerate(values):
        left, corner = (values[k - samples], up[k - samples]) if k >= samples else (0, 0)
        if kind == 1:
            guess = left
        elif kind == 3:
            guess = (left + up[k]) // 2
        elif kind == 4:
            guess = _nearest(left, up[k], corner)
        else:
            raise ValueError(f"filter {kind}")
        values[k] = (value + guess) & 255
    line[:] = values


def _nearest(left: int, up: int, corner: int) -> int:
    """The sample that is nearest to left + up - corner (filter 4, of Paeth)."""
    near = left + up - corner
    return min((left, up, corner), key=lambda sample: abs(near - sample))
