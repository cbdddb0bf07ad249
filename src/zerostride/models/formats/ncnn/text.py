"""The text of a .param file: lines of layers, each with blobs and numbered parameters.

The grammar follows ncnn's `Net::load_param` and `ParamDict::load_param`, and its document 'param
and model file structure'. A file is hostile input. Its size is bounded. Its counts are compared
with the actual numbers and never used to allocate. An error is one line that names the file, the
line and the layer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

from ....errors import ModelError, printable
from ...ir.files import content
from ...ir.readings import once_per_file

#: The first line of every file since 2017.
MAGIC = 7767517
#: The longest file. Networks of ten thousand layers take less than 2 MiB.
MAX_FILE_BYTES = 1 << 25
#: The most words and numbers in a line: a Concat of thousands of blobs, a list of anchors.
MAX_ITEMS = 1 << 16
#: ncnn reads names into 256 bytes.
MAX_NAME = 255
#: Parameters are numbered from 0 to 31 (NCNN_MAX_PARAM_COUNT).
PARAMS = 32
#: Old arrays have the key −23300 − number.
ARRAY = 23300

#: The separators of words.
SPACES = " \t\n\r\v\f"

Param: TypeAlias = int | float | str | tuple[int, ...] | tuple[float, ...]

_NO_PARAMS: Mapping[int, Param] = MappingProxyType({})
_PAIR = re.compile(r"\s+(-?[0-9]{1,6})=(?:\"([^\"]*)\"(?=\s|$)|([^\s\"]+))", re.ASCII)
_INT = re.compile(r"[+-]?[0-9]{1,20}")
_FLOAT = re.compile(r"[+-]?(?:[0-9]{1,60}\.?[0-9]{0,60}|\.[0-9]{1,60})(?:[eE][+-]?[0-9]{1,4})?")


@dataclass(frozen=True, slots=True)
class Layer:
    """A line of the file.

    Attributes:
        index: its position among the layers.
        line: its line, counted from 1.
        type, name: its type and name.
        bottoms, tops: the blobs that it reads and makes.
        params: its parameters by number.
    """

    index: int
    line: int
    type: str
    name: str
    bottoms: tuple[str, ...]
    tops: tuple[str, ...]
    params: Mapping[int, Param]

    @property
    def shown(self) -> str:
        """Its type and name in messages."""
        return f"{shown(self.type)[1:-1]} {shown(self.name)}"


@dataclass(frozen=True, slots=True)
class ParamFile:
    """The text of a .param file, read.

    Attributes:
        path: the file.
        lines: its lines, unchanged, with line ends.
        encoding: the encoding that reads and writes it.
        counts_line: position in `lines` of the counts of layers and blobs.
        layers: the layers in order.
        notes: facts about the text for the user.
    """

    path: Path
    lines: tuple[str, ...]
    encoding: str
    counts_line: int
    layers: tuple[Layer, ...]
    notes: tuple[str, ...] = ()


def shown(name: str) -> str:
    """A name of the file for messages: quoted, on one line, at most 80 characters.

    >>> shown("conv")
    "'conv'"
    """
    return repr(printable(name if len(name) <= 80 else name[:77] + "..."))


def read_text(file: Path) -> ParamFile:
    """The layers of a .param file; see :func:`parsed`."""
    return parsed(file, contents(file))


def contents(file: Path) -> bytes:
    """The bytes of a .param file."""
    return content(file, ".param", MAX_FILE_BYTES, f"a .param file ends at {MAX_FILE_BYTES}")


@once_per_file
def parsed(file: Path, data: bytes) -> ParamFile:
    """The layers in the bytes of a .param file.

    Raises:
        ModelError: it is not a valid .param; gives the reason, the line and the layer.
    """
    if b"\0" in data:
        raise ModelError(
            f"{file}: not a .param text, it holds NUL bytes; a binary .param.bin has no names, "
            "so name the text that it was made from"
        )
    try:
        text, encoding = data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        # ncnn has no encoding. Latin-1 maps every byte to its own character.
        text, encoding = data.decode("latin-1"), "latin-1"
    lines = tuple(re.findall(r"[^\n]*\n|[^\n]+", text))
    return _Parser(file, lines, encoding).whole()


class _Parser:
    def __init__(self, file: Path, lines: tuple[str, ...], encoding: str) -> None:
        self.file = file
        self.lines = lines
        self.encoding = encoding
        self.notes: list[str] = []

    def whole(self) -> ParamFile:
        """Header and layers, with a check of the header's counts."""
        filled = [k for k, line in enumerate(self.lines) if line.strip(SPACES)]
        if not filled:
            raise ModelError(f"{self.file}: the file is empty")
        self._magic(self.lines[filled[0]].split())
        if len(filled) < 2:
            raise ModelError(f"{self.file}: it ends before the counts of layers and blobs")
        here = filled[1]
        counts = self.lines[here].split()
        if len(counts) != 2:
            raise self._error(here, "two counts are wanted, of layers and of blobs")
        layer_count, blob_count = (self._count(here, word) for word in counts)
        layers = tuple(self._layer(k, line) for k, line in enumerate(filled[2:]))
        self._check(layers, layer_count, blob_count)
        return ParamFile(self.file, self.lines, self.encoding, here, layers, tuple(self.notes))

    def _magic(self, words: list[str]) -> None:
        first = words[0] if words else ""
        if first == str(MAGIC) and len(words) == 1:
            return
        if _INT.fullmatch(first) and len(words) <= 2:
            raise ModelError(
                f"{self.file}: it starts with {printable(first)[:20]} instead of {MAGIC}: a .param "
                "of an older form, which ncnn no longer reads; convert the model again"
            )
        raise ModelError(
            f"{self.file}: not an ncnn .param, its first line is not {MAGIC}; another format?"
        )

    def _check(self, layers: tuple[Layer, ...], layer_count: int, blob_count: int) -> None:
        if layer_count != len(layers):
            less = layer_count < len(layers)
            reaction = "leaves the rest out" if less else "refuses that"
            raise ModelError(
                f"{self.file}: it says {layer_count} layers and has {len(layers)}; ncnn {reaction}"
            )
        blobs: set[str] = set()
        for layer in layers:
            for name in layer.bottoms:
                if name not in blobs:
                    raise ModelError(
                        f"{self._where(layer)} reads {shown(name)}, which no layer before it makes"
                    )
            for name in layer.tops:
                if name in blobs:
                    raise ModelError(
                        f"{self._where(layer)} makes {shown(name)}, which another one makes too"
                    )
                blobs.add(name)
        if blob_count < len(blobs):
            raise ModelError(
                f"{self.file}: it says {blob_count} blobs and has {len(blobs)}; ncnn writes beyond "
                "its list there"
            )
        if blob_count > len(blobs):
            self.notes.append(f"the file says {blob_count} blobs and has {len(blobs)}")

    def _layer(self, index: int, at: int) -> Layer:
        """One line: type, name, two counts, the blobs, parameters."""
        line = self.lines[at]
        words = self._split(line, 4)
        if len(words) < 4:
            raise self._error(at, "a layer has a type, a name and two counts", words)
        blobs = self._count(at, words[2]) + self._count(at, words[3])
        if blobs > MAX_ITEMS:
            raise self._error(at, f"{blobs} blobs in one line", words)
        words = self._split(line, 4 + blobs)
        rest = f" {words.pop()}" if len(words) > 4 + blobs else ""
        if len(words) < 4 + blobs:
            message = f"{blobs} blobs are wanted, {len(words) - 4} there"
            raise self._error(at, message, words)
        for word in words:
            if len(word) > MAX_NAME or len(word.encode(self.encoding)) > MAX_NAME:
                raise self._error(at, f"a name of more than {MAX_NAME} bytes", words)
        split = 4 + int(words[2])
        bottoms, tops = tuple(words[4:split]), tuple(words[split:])
        if words[0] in ("pnnx.Input", "pnnx.Output"):
            raise ModelError(
                f"{self.file}: this is pnnx's own graph, not ncnn's; name the .ncnn.param beside it"
            )
        params = self._params(at, rest, words) if rest else _NO_PARAMS
        return Layer(index, at + 1, words[0], words[1], bottoms, tops, params)

    def _split(self, line: str, most: int) -> list[str]:
        """The first words of a line, then the rest. Splits bytes: ncnn's separators are ASCII's
        alone, and names may contain other spaces.
        """
        words = line.encode(self.encoding).split(None, most)
        return [word.decode(self.encoding) for word in words]

    def _params(self, at: int, line: str, words: list[str]) -> Mapping[int, Param]:
        params: dict[int, Param] = {}
        line = line.rstrip(SPACES)
        end = count = 0
        while end < len(line):
            pair = _PAIR.match(line, end)
            if pair is None:
                rest = shown(line[end:].strip()[:40])
                raise self._error(at, f"{rest} is no parameter as number=value", words)
            end = pair.end()
            count += 1
            number, quoted, plain = int(pair[1]), pair[2], pair[3]
            is_array = number <= -ARRAY
            number = -number - ARRAY if is_array else number
            if not 0 <= number < PARAMS or count > PARAMS * 4:
                raise self._error(at, f"parameters are numbered 0 to {PARAMS - 1}", words)
            if quoted is not None:
                if len(quoted) > MAX_NAME:
                    raise self._error(at, f"parameter {number} is a text too long", words)
                params[number] = quoted
            elif plain[0].isalpha() and not is_array:
                params[number] = plain
            else:
                params[number] = self._numbers(at, number, plain, is_array, words)
        return MappingProxyType(params)

    def _numbers(self, at: int, number: int, text: str, is_array: bool, words: list[str]) -> Param:
        parts = text.split(",")
        if len(parts) > MAX_ITEMS:
            raise self._error(at, f"parameter {number} has {len(parts)} numbers", words)
        if not is_array:
            if len(parts) > 1:  # "3=0," is a list of one number
                return self._list(at, number, parts if parts[-1] else parts[:-1], words)
            return self._number(at, number, parts[0], words)
        length = self._number(at, number, parts[0], words)
        if length != len(parts) - 1:
            message = f"parameter {number} says {length} numbers and has {len(parts) - 1}"
            raise self._error(at, message, words)
        return self._list(at, number, parts[1:], words)

    def _list(self, at: int, number: int, parts: list[str], words: list[str]) -> Param:
        numbers = [self._number(at, number, part, words) for part in parts]
        if any(isinstance(item, float) for item in numbers):
            return tuple(map(float, numbers))
        return tuple(item for item in numbers if isinstance(item, int))

    def _number(self, at: int, number: int, text: str, words: list[str]) -> int | float:
        """A number with a point or an exponent is real, otherwise whole."""
        if _INT.fullmatch(text):
            value = int(text)
            if not -(2**31) <= value < 2**31:
                raise self._error(at, f"parameter {number}: {text} needs more than 32 bits", words)
            return value
        if _FLOAT.fullmatch(text):
            return float(text)
        raise self._error(at, f"parameter {number}: {shown(text[:40])} is no number", words)

    def _count(self, at: int, word: str) -> int:
        if not (word.isascii() and word.isdigit() and len(word) <= 10):
            raise self._error(at, f"{shown(word)} is no count")
        return int(word)

    def _where(self, layer: Layer) -> str:
        return f"{self.file}: line {layer.line}: {layer.shown}"

    def _error(self, at: int, message: str, words: list[str] | None = None) -> ModelError:
        who = ""
        if words and len(words) > 1:
            who = f"{shown(words[0])[1:-1]} {shown(words[1])}: "
        return ModelError(f"{self.file}: line {at + 1}: {who}{message}")


class Params:
    """The parameters of a layer by type.

    ncnn accepts a whole number for a real one. For a real number in place of a whole one it uses
    the default; here that is an error of the file.
    """

    __slots__ = ("layer",)

    def __init__(self, layer: Layer) -> None:
        self.layer = layer

    def whole(self, number: int, default: int = 0) -> int:
        """A whole number."""
        value = self.layer.params.get(number, default)
        if not isinstance(value, int):
            raise self.wrong(number, value, "a whole number")
        return value

    def real(self, number: int, default: float = 0.0) -> float:
        """A real number."""
        value = self.layer.params.get(number, default)
        if not isinstance(value, int | float):
            raise self.wrong(number, value, "a number")
        return float(value)

    def wholes(self, number: int) -> tuple[int, ...]:
        """A list of whole numbers, empty by default."""
        value = self.layer.params.get(number, ())
        if isinstance(value, tuple) and all(isinstance(item, int) for item in value):
            return tuple(int(item) for item in value)
        raise self.wrong(number, value, "a list of whole numbers")

    def sizes(self) -> tuple[int, ...]:
        """The sizes of an Input or a MemoryData; without outer sizes there are fewer axes."""
        w, h, d, c = map(self.whole, (0, 1, 11, 2))
        if d and (c or self.layer.type == "MemoryData"):
            return (c, d, h, w)
        return (c, h, w) if c else (h, w) if h else (w,) if w else ()

    def text(self, number: int) -> str:
        """A text, empty by default."""
        value = self.layer.params.get(number, "")
        if not isinstance(value, str):
            raise self.wrong(number, value, "a text")
        return value

    def has(self, number: int) -> bool:
        """Whether the line has the parameter."""
        return number in self.layer.params

    def wrong(self, number: int, value: Param, wanted: str) -> ModelError:
        """The error for a parameter of another type."""
        return ModelError(
            f"line {self.layer.line}: {self.layer.shown}: parameter {number} "
            f"is {shown(str(value))[1:-1]}, and {wanted} is wanted"
        )


def in_order(names: Iterable[str]) -> list[str]:
    """The names of a net's inputs or outputs, in the order of the model that pnnx converted.

    pnnx numbers them so; the layers of the file have an order of their own.

    >>> in_order(["out10", "out2"]), in_order(["b", "a1"])
    (['out2', 'out10'], ['b', 'a1'])
    """
    listed = list(names)
    matches = [re.fullmatch(r"(in|out)([0-9]{1,9})", name) for name in listed]
    keys = [(match[1], int(match[2])) for match in matches if match]
    if len(keys) < len(listed):
        return listed
    return [name for _, name in sorted(zip(keys, listed, strict=True))]
