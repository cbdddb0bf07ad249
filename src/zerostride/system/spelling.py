"""The names that a caller may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from types import MappingProxyType

#: The most characters of a name that are compared.
_LONGEST = 200
#: Other names of engines: of their converters, packages and files.
ENGINES: Mapping[str, str] = MappingProxyType(
    {
        "mnnconvert": "mnn",
        "onnx": "onnxruntime",
        "ort": "onnxruntime",
        "paddlepaddle": "paddle",
        "pnnx": "ncnn",
        "pytorch": "torch",
        "tf": "tensorflow",
        "tflite": "litert",
        "trt": "tensorrt",
    }
)


def near(
    name: object,
    names: Iterable[str],
    most: int = 1,
    *,
    cutoff: float = 0.6,
    others: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    """The names that a word may mean, the nearest first, whatever their letters' case.

    Args:
        name: the word.
        names: the names that there are.
        most: of these.
        cutoff: from 0, anything, to 1, the word itself.
        others: names by other words for them.

    >>> near("NCNN", ["mnn", "ncnn"]), near("pnnx", ["ncnn"], others=ENGINES), near("zork", ["or"])
    (['ncnn'], ['ncnn'], [])
    """
    word = str(name)[:_LONGEST].casefold()
    if word in others:
        return [others[word]]
    by_letters = {spelling[:_LONGEST].casefold(): spelling for spelling in names}
    if word in by_letters:
        return [by_letters[word]]
    return [by_letters[each] for each in difflib.get_close_matches(word, by_letters, most, cutoff)]


def meant(name: object, names: Iterable[str], most: int = 1) -> str:
    """The end of a message: the nearest names.

    >>> meant("imgae", ["image", "mask"])
    "; did you mean 'image'?"
    """
    words = " or ".join(map(repr, near(name, names, most)))
    return f"; did you mean {words}?" if words else ""


__all__ = ["ENGINES", "meant", "near"]
