"""`--input`: images as numbers, and the same inputs for every command."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from zerostride.cli.inputs import Image, arrays_of
from zerostride.cli.png import read_png
from zerostride.errors import ZerostrideError

COLOURS = {1: 0, 2: 4, 3: 2, 4: 6}


def guess(kind: int, left: int, up: int, corner: int) -> int:
    """The prediction of a PNG filter, as its specification words it."""
    if kind == 4:
        p = left + up - corner
        distances = (abs(p - left), abs(p - up), abs(p - corner))
        return (left, up, corner)[distances.index(min(distances))]
    return (0, left, up, (left + up) // 2)[kind]


def png(pixels: np.ndarray, kinds: list[int]) -> bytes:
    """A PNG file of the pixels, each row with its own filter."""
    height, width, samples = pixels.shape
    rows, above = b"", [0] * (width * samples)
    for kind, row in zip(kinds, pixels.reshape(height, -1).tolist(), strict=True):
        rows += bytes([kind])
        for k, value in enumerate(row):
            left, corner = (row[k - samples], above[k - samples]) if k >= samples else (0, 0)
            rows += bytes([(value - guess(kind, left, above[k], corner)) & 255])
        above = row
    head = struct.pack(">IIBBBBB", width, height, 8, COLOURS[samples], 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    chunks = (struct.pack(">I", len(b)) + k + b + struct.pack(">I", 0) for k, b in parts)
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


@pytest.mark.parametrize("samples", COLOURS)
def test_pixels_of_every_filter_are_read(tmp_path: Path, samples: int) -> None:
    rng = np.random.default_rng(samples)
    pixels = rng.integers(0, 256, (20, 7, samples), np.uint8)
    file = tmp_path / "image.png"
    file.write_bytes(png(pixels, [k % 5 for k in range(20)]))
    channels = samples - 1 if samples in (2, 4) else samples  # without alpha
    np.testing.assert_array_equal(read_png(str(file)), pixels[..., :channels])


def test_an_image_becomes_an_input(tmp_path: Path) -> None:
    pixels = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    (tmp_path / "image.png").write_bytes(png(pixels, [0, 0]))
    words = [f"x={tmp_path / 'image.png'}", "sr=16000"]
    arrays = arrays_of(words, Image((1.0, 2.0, 3.0), (255.0,)))
    assert arrays["sr"] == 16000
    expected = ((pixels - [1.0, 2.0, 3.0]) / 255).astype(np.float32).transpose(2, 0, 1)[None]
    np.testing.assert_allclose(arrays["x"], expected, rtol=1e-6)
    last = arrays_of(words, Image((1.0, 2.0, 3.0), (255.0,), "nhwc"))["x"]
    np.testing.assert_array_equal(last, arrays["x"].transpose(0, 2, 3, 1))


def test_what_is_no_image_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "image.png"
    good = png(np.zeros((2, 3, 1), np.uint8), [0, 0])
    for data in (b"", b"no image", good[:30], good[:45], good.replace(b"IDAT", b"IDOT")):
        file.write_bytes(data)
        with pytest.raises(ZerostrideError, match=r"image\.png"):
            read_png(str(file))
    file.write_bytes(good)
    with pytest.raises(ZerostrideError, match="--mean has 3 numbers"):
        Image((1.0, 2.0, 3.0)).read(str(file))
