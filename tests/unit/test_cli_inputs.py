"""`--input`: images as numbers, and the same inputs for every command."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from zerostride.cli.inputs import Image, arrays_of
from zerostride.errors import ZerostrideError


@pytest.mark.parametrize(
    ("mode", "channels"), [("1", 1), ("L", 1), ("LA", 1), ("P", 3), ("RGB", 3), ("RGBA", 3)]
)
@pytest.mark.parametrize("ending", ["png", "jpg"])
def test_images_of_8_bits_are_read_without_alpha(
    tmp_path: Path, mode: str, channels: int, ending: str
) -> None:
    pixels = np.full((4, 5, 3), (200, 30, 90), np.uint8)
    image = PIL.Image.fromarray(pixels).convert(mode, palette=PIL.Image.Palette.ADAPTIVE)
    file = tmp_path / f"image.{ending}"
    if ending == "jpg":
        image = image.convert("L" if channels == 1 else "RGB")
    image.save(file, quality=100)
    expected = np.asarray(image.convert("L" if channels == 1 else "RGB"))
    read = Image(layout="nhwc").read(str(file))
    assert read.shape == (1, 4, 5, channels)
    np.testing.assert_allclose(read.reshape(expected.shape), expected, atol=3)


def test_an_image_becomes_an_input(tmp_path: Path) -> None:
    pixels = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    PIL.Image.fromarray(pixels).save(tmp_path / "image.png")
    words = [f"x={tmp_path / 'image.png'}", "sr=16000"]
    arrays = arrays_of(words, Image((1.0, 2.0, 3.0), (255.0,)))
    assert arrays["sr"] == 16000
    expected = ((pixels - [1.0, 2.0, 3.0]) / 255).astype(np.float32).transpose(2, 0, 1)[None]
    np.testing.assert_allclose(arrays["x"], expected, rtol=1e-6)
    last = arrays_of(words, Image((1.0, 2.0, 3.0), (255.0,), "nhwc"))["x"]
    np.testing.assert_array_equal(last, arrays["x"].transpose(0, 2, 3, 1))


def test_what_is_no_image_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "image.png"
    PIL.Image.fromarray(np.zeros((9, 9), np.uint8)).save(file)
    good = file.read_bytes()
    for data in (b"", b"no image", good[:30], good[:45]):
        file.write_bytes(data)
        with pytest.raises(ZerostrideError, match=r"image\.png: no readable image"):
            Image().read(str(file))
    PIL.Image.fromarray(np.zeros((9, 9), np.uint16)).save(file)
    with pytest.raises(ZerostrideError, match="8 bits a channel"):
        Image().read(str(file))
    with pytest.raises(ZerostrideError, match="no readable image"):
        Image().read(str(tmp_path / "nowhere.png"))
    file.write_bytes(good)
    with pytest.raises(ZerostrideError, match="--mean has 3 numbers"):
        Image((1.0, 2.0, 3.0)).read(str(file))


def test_pillow_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(ZerostrideError, match="zerostride\\[images\\]"):
        Image().read("image.png")
