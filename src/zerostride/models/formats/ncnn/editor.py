"""Rewrites of a .param and its .bin.

Lines that no rewrite touches stay byte for byte; the .bin only gets insertions. A reshape becomes a
Reshape layer, an unsqueeze an ExpandDims, a squeeze a Squeeze, an expand a Tile (which copies, so
no number changes). A MemoryData with one reader gets its new sizes in its own line. One with more
readers gets a twin right after it; the twin's numbers follow its own in the .bin. A blob with a
second reader gets a Split, which ncnn requires.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from ....errors import ModelError
from ....system.whole_files import write_whole
from ...ir.graph import Graph, Node
from ...ir.rewrite import Rewrite
from .layers import LAYERS
from .program import LayerProgram, parameter
from .reader import graph_of
from .text import SPACES, Layer, ParamFile, contents, parsed
from .weights import Weights, bin_path, locate

_WORD = re.compile(r"\S+", re.ASCII)


def edit(path: Path) -> NcnnEditor:
    """The file, open for changes; ModelError if it cannot be read."""
    return NcnnEditor(path)


@dataclass
class _Line:
    """A new line of a layer.

    Attributes:
        type, name, bottoms, tops: its words.
        params: the text of its parameters, with the space before it.
    """

    type: str
    name: str
    bottoms: Sequence[str]
    tops: Sequence[str]
    params: str = ""

    def text(self) -> str:
        """The line as ncnn's own tools write it."""
        blobs = " ".join((*self.bottoms, *self.tops))
        counts = f"{len(self.bottoms)} {len(self.tops)}"
        return f"{self.type:<16} {self.name:<24} {counts} {blobs}{self.params}"


@dataclass
class _Changes:
    """Changes of the file.

    Attributes:
        lines: by layer, the lines that replace its own.
        twins: by MemoryData, lines that go after it.
    """

    lines: dict[int, list[_Line]] = field(default_factory=dict)
    twins: dict[int, list[_Line]] = field(default_factory=dict)


class NcnnEditor:
    """A .param and its .bin, open for changes."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        data = contents(self.path)
        self.graph: Graph = graph_of(self.path, data)
        self.parsed: ParamFile = parsed(self.path, data)
        self.weights: Weights = locate(self.parsed.layers, bin_path(self.path))
        layers = self.parsed.layers
        self.taken = {name for layer in layers for name in (layer.name, *layer.tops)}
        self.maker = {name: layer for layer in layers for name in layer.tops}
        self.readers = Counter(name for layer in layers for name in layer.bottoms)
        self.nodes: Mapping[int, Node] = {
            int(node.place[0]): node for node in self.graph.nodes if node.place is not None
        }
        self._changes = _Changes()
        self._twins: dict[tuple[int, tuple[int, ...]], str] = {}
        self._failed = False

    def apply(self, rewrites: Sequence[Rewrite]) -> None:
        """Translates the rewrites to layers.

        Raises:
            ModelError: a rewrite has no equivalent; names the layer and the reason.
        """
        self._failed = True
        for rewrite in rewrites:
            self._one(rewrite)
        self._failed = False

    def _one(self, rewrite: Rewrite) -> None:
        place = rewrite.place
        index = place[0] if len(place) == 1 else -1
        if not isinstance(index, int) or index not in self.nodes:
            raise ModelError(f"{self.path}: no layer stands at {place}")
        layer = self.parsed.layers[index]
        if index in self._changes.lines:
            raise self.refusal(layer, "it is rewritten twice")
        LayerProgram(self, layer, self.nodes[index], rewrite).write()

    # Used by programs.

    def refusal(self, layer: Layer, message: str) -> ModelError:
        """An error that names a layer."""
        return ModelError(f"{self.path}: line {layer.line}: {layer.shown}: {message}")

    def fresh(self, base: str) -> str:
        """A name that is new to the file, for a layer and its blob."""
        base = base[:200]
        count, name = 0, base
        while name in self.taken or len(name.encode(self.parsed.encoding, "replace")) > 255:
            count += 1
            name = f"{base}_{count}"
        self.taken.add(name)
        return name

    def resized(self, memory: Layer, shape: tuple[int, ...], *, alone: bool) -> str:
        """The blob of a MemoryData in a new shape: itself, or a twin."""
        if alone and self.readers[memory.tops[0]] == 1:
            text = self.changed(memory, _sizes(shape))
            line = _Line(memory.type, memory.name, (), memory.tops, text)
            self._changes.lines[memory.index] = [line]
            return memory.tops[0]
        key = (memory.index, shape)
        if key not in self._twins:
            if self.weights.stored[memory.index] is None:
                reason = self.weights.missing or "its data are missing"
                raise self.refusal(memory, f"it needs a twin of another shape, but {reason}")
            name = self.fresh(f"{memory.name}_reshaped")
            line = _Line(memory.type, name, (), (name,), self.changed(memory, _sizes(shape)))
            self._changes.twins.setdefault(memory.index, []).append(line)
            self._twins[key] = name
        return self._twins[key]

    def changed(self, layer: Layer, values: Mapping[int, object]) -> str:
        """The text of a layer's parameters with some changed or removed (None)."""
        line = self.parsed.lines[layer.line - 1]
        words = list(_WORD.finditer(line))
        start = words[3 + len(layer.bottoms) + len(layer.tops)].end()
        text = line[start:].rstrip(SPACES)
        for number, value in values.items():
            keys = f"(?:{number}|-{23300 + number})"
            text = re.sub(rf'\s+{keys}=(?:"[^"]*"|\S+)', "", text, flags=re.ASCII)
            if value is not None:
                text += f" {parameter(number, value)}"
        return text

    def put(self, layer: Layer, lines: Sequence[_Line]) -> None:
        """Records a program's lines for a layer."""
        row = LAYERS.get(layer.type)
        has_weights = row is not None and row.weights is not None
        if has_weights and all(line.name != layer.name for line in lines):
            raise self.refusal(layer, "it has weights, so it cannot be replaced by other layers")
        self._changes.lines[layer.index] = list(lines)

    @staticmethod
    def line(
        kind: str, name: str, bottoms: Sequence[str], tops: Sequence[str], params: str = ""
    ) -> _Line:
        """A new line."""
        return _Line(kind, name, bottoms, tops, params)

    # The file.

    def text(self) -> str:
        """The text of the changed .param."""
        changes, lines = self._changes, list(self.parsed.lines)
        usual = "\r\n" if lines[0].endswith("\r\n") else "\n"
        added_layers = added_blobs = 0
        for layer in self.parsed.layers:
            at = layer.line - 1
            raw = self.parsed.lines[at]
            bare = raw.rstrip("\r\n")
            end = raw[len(bare) :]
            own = changes.lines.get(layer.index)
            twins = changes.twins.get(layer.index, [])
            new = [*(own or ()), *twins]
            if not new:
                continue
            texts = [bare] if own is None else []
            texts += [line.text() for line in new]
            lines[at] = (end or usual).join(texts) + end
            added_layers += len(texts) - 1
            added_blobs += sum(len(line.tops) for line in new)
            added_blobs -= len(layer.tops) if own is not None else 0
        if added_layers or added_blobs:
            lines[self.parsed.counts_line] = self._counts(added_layers, added_blobs)
        return "".join(lines)

    def _counts(self, layers: int, blobs: int) -> str:
        line = self.parsed.lines[self.parsed.counts_line]
        more = iter((layers, blobs))
        return re.sub(r"\d+", lambda match: str(int(match[0]) + next(more)), line, count=2)

    def save(self, path: Path) -> tuple[Path, ...]:
        """Writes the .param, and the .bin beside it if the original has one.

        Raises:
            ModelError: a file cannot be written, or a rewrite failed before.
        """
        if self._failed:
            raise ModelError(f"{self.path}: a rewrite failed; nothing is written")
        path = Path(path)
        writes: list[tuple[Path, Callable[[BinaryIO], object]]] = []
        data = self.text().encode(self.parsed.encoding)
        if self.weights.size is not None:
            writes.append((bin_path(path), self._copy_weights))
        writes.append((path, lambda file: file.write(data)))
        try:
            write_whole(*writes)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else None
            raise ModelError(f"{path}: {reason or error}") from None
        return tuple(target for target, _ in reversed(writes))

    def _copy_weights(self, file: BinaryIO) -> None:
        """Writes the .bin, with the numbers of each twin after those of its original."""
        with self.weights.path.open("rb") as source:
            for index in sorted(self._changes.twins):
                stored = self.weights.stored[index] or ()
                for load in stored:
                    _copy(source, file, load.end - source.tell())
                    for _ in self._changes.twins[index]:
                        source.seek(load.start)
                        _copy(source, file, load.end - load.start)
            _copy(source, file, None)


def _copy(source: BinaryIO, target: BinaryIO, count: int | None) -> None:
    """Copies bytes from one file to another: `count`, or all the rest."""
    left = count
    while left is None or left > 0:
        chunk = source.read(1 << 20 if left is None else min(left, 1 << 20))
        if not chunk:
            return
        target.write(chunk)
        left = None if left is None else left - len(chunk)


def _sizes(shape: tuple[int, ...]) -> Mapping[int, object]:
    """The parameters of a MemoryData of a shape."""
    keys = {1: (0,), 2: (1, 0), 3: (2, 1, 0), 4: (2, 11, 1, 0)}[len(shape)]
    sizes = dict(zip(keys, shape, strict=True))
    return {number: sizes.get(number) for number in (0, 1, 11, 2)}
