"""The inputs of a model on the command line: --input, and how an image becomes numbers."""

from __future__ import annotations

import functools
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
import numpy as np

from ..errors import ZerostrideError
from .files import open_array
from .options import Parsed, combine, no_words

if TYPE_CHECKING:
    from ..models.ir.graph import Array

#: The most bytes of a .json file of numbers and of an unpacked archive, and pixels of an image.
MAX_JSON, MAX_UNPACKED, MAX_PIXELS = 2**28, 2**32, 2**26
#: Files of images, as Pillow calls their formats, and the endings of their names.
_IMAGES, _ENDINGS = ("PNG", "JPEG"), (".png", ".jpg", ".jpeg")
#: Channels of an image of 8 bits, by Pillow's mode; without alpha.
_CHANNELS = {"1": "L", "L": "L", "LA": "L", "P": "RGB", "RGB": "RGB", "RGBA": "RGB"}
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Image:
    """Makes an input of the pixels of an image: (pixel - mean) / std, for each channel.

    Attributes:
        mean, std: one number, or one for each channel.
        layout: "nchw" or "nhwc".
    """

    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    layout: str = "nchw"

    def read(self, path: str) -> Array:
        """The file of an image as an array of rank 4, float32."""
        pixels = _pixels(path).astype(np.float32)
        for name, numbers in (("--mean", self.mean), ("--std", self.std)):
            if len(numbers) not in (1, pixels.shape[2]):
                raise ZerostrideError(
                    f"{name} has {len(numbers)} numbers; {path} has {pixels.shape[2]} channels"
                )
        scaled = (pixels - np.array(self.mean, np.float32)) / np.array(self.std, np.float32)
        return np.ascontiguousarray(
            scaled[None] if self.layout == "nhwc" else scaled.transpose(2, 0, 1)[None], np.float32
        )


def _pixels(path: str) -> Array:
    """The pixels as (height, width, channels), uint8: 1 channel of grey or 3 of colour.

    Raises:
        ZerostrideError: the file is no image of 8 bits a channel, or Pillow is not installed.
    """
    try:
        import PIL.Image
    except ImportError:
        raise ZerostrideError(
            f"{path}: to read an image, install Pillow: pip install 'zerostride[images]'"
        ) from None
    try:
        with PIL.Image.open(path, formats=_IMAGES) as image:
            if image.width * image.height > MAX_PIXELS:
                raise ValueError(f"{image.width} x {image.height} pixels")
            if image.mode not in _CHANNELS:
                raise ValueError(f"pixels of kind {image.mode}; 8 bits a channel are read")
            pixels = np.asarray(image.convert(_CHANNELS[image.mode]), np.uint8)
    except (OSError, ValueError, SyntaxError, PIL.Image.DecompressionBombError) as error:
        raise ZerostrideError(f"{path}: no readable image ({error})") from None
    return pixels if pixels.ndim == 3 else pixels[..., None]


def _numbers_of(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(word) for word in text.split(","))
    except ValueError:
        raise ZerostrideError(f"{text[:80]!r} is no number, and no numbers with commas") from None


_OPTIONS = (
    click.option(
        "--input",
        "inputs",
        multiple=True,
        metavar="NAME=VALUE",
        help="An input: NAME=FILE.npy, NAME=FILE.json, an image NAME=FILE.png or .jpg, or numbers, "
        "NAME=16000, NAME=[1,2,3]; or FILE.npz, whose arrays have the names of inputs. May be "
        "given again.",
    ),
    click.option(
        "--mean",
        type=Parsed("numbers", _numbers_of, no_words),
        default="0",
        metavar="NUMBERS",
        help="Of images: subtracted from pixels of 0 to 255; one number a channel, with commas.",
    ),
    click.option(
        "--std",
        type=Parsed("numbers", _numbers_of, no_words),
        default="1",
        metavar="NUMBERS",
        help="Of images: the difference is divided by it.",
    ),
    click.option(
        "--layout",
        type=click.Choice(["nchw", "nhwc"]),
        default="nchw",
        help="Of images: the order of axes that the model takes.",
    ),
)


def options(function: F) -> F:
    """Options for a model's inputs; the command gets them as `feeds`, arrays by name."""

    @functools.wraps(function)
    def command(*args: Any, **keywords: Any) -> Any:
        words = keywords.pop("inputs")
        image = Image(*(keywords.pop(name) for name in ("mean", "std", "layout")))
        return function(*args, feeds=arrays_of(words, image), **keywords)

    return cast(F, combine(*_OPTIONS)(command))


def arrays_of(words: Sequence[str], image: Image) -> dict[str, Any]:
    """Arrays by name, from the words of --input."""
    arrays: dict[str, Any] = {}
    for word in words:
        for name, array in _input(word, image).items():
            if name in arrays:
                raise ZerostrideError(f"--input: {name!r} is given twice")
            arrays[name] = array
    return arrays


def _input(word: str, image: Image) -> dict[str, Any]:
    name, equals, value = word.partition("=")
    if not equals:
        if word.lower().endswith(".npz"):
            return dict(_archive(word))
        raise ZerostrideError(f"--input {word[:80]!r}: write NAME=FILE.npy, or name an .npz file")
    if not name or not value:
        raise ZerostrideError(f"--input {word[:80]!r}: write NAME=FILE or NAME=NUMBERS")
    ending = value.lower()
    if ending.endswith(".npy"):
        return {name: open_array(value)}
    if ending.endswith(_ENDINGS):
        return {name: image.read(value)}
    if ending.endswith(".npz"):
        arrays = dict(_archive(value))
        if name not in arrays and len(arrays) != 1:
            raise ZerostrideError(
                f"{value}: it has no array {name!r} (arrays: {', '.join(arrays)})"
            )
        return {name: arrays.get(name, next(iter(arrays.values())))}
    if ending.endswith(".json"):
        return {name: _numbers(_text(value), value)}
    return {name: _numbers(value, f"--input {name}")}


def _archive(path: str) -> Mapping[str, Array]:
    try:
        with zipfile.ZipFile(path) as archive:
            weight = sum(entry.file_size for entry in archive.infolist())
        if weight > MAX_UNPACKED:
            raise ZerostrideError(f"{path}: {weight} bytes once unpacked; at most {MAX_UNPACKED}")
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except OSError as error:
        raise ZerostrideError(f"{path}: {error.strerror or error}") from None
    except ZerostrideError:
        raise
    except Exception as error:  # noqa: BLE001 - zipfile, zlib and NumPy raise of every kind
        raise ZerostrideError(f"{path}: not a readable .npz file ({error})") from None


def _text(path: str) -> str:
    try:
        if Path(path).stat().st_size > MAX_JSON:
            raise ZerostrideError(f"{path}: too large for numbers as text; give a .npy file")
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ZerostrideError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ZerostrideError(f"{path}: not a text file") from None


def _numbers(text: str, where: str) -> Any:
    """A number, or nested lists of them."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise ZerostrideError(f"{where}: {text[:80]!r} is no .npy file and no numbers") from None
    if not isinstance(data, int | float | list):
        raise ZerostrideError(f"{where}: {text[:80]!r} is no list of numbers")
    try:
        array = np.asarray(data)
    except (ValueError, RecursionError, OverflowError) as error:
        raise ZerostrideError(f"{where}: {error}") from None
    if array.dtype.kind not in "biuf":
        raise ZerostrideError(f"{where}: {text[:80]!r} is no list of numbers")
    return data
