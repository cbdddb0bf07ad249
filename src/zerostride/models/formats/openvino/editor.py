"""Changes of an IR: bytes replaced in place, layers and edges added; the rest does not change.

New constants (shapes and axes) are appended to the .bin after its old bytes. A constant in another
shape uses the same bytes.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ....errors import ModelError
from ....system.whole_files import write_whole
from ...flow.resolved import resolved
from ...ir.graph import Node, Place
from ...ir.names import take
from ...ir.rewrite import Rewrite
from .compile import Scope
from .markup import Net, refuse
from .reader import contents, graph_of, parsed, weights_of

#: Alignment of new constants, for kernels that read whole numbers.
ALIGNMENT = 64
_ENCODING = re.compile(rb"\s*(?:\xef\xbb\xbf)?\s*<\?xml[^>]*?encoding\s*=\s*[\"']([^\"']*)[\"']")


def edit(path: Path) -> Editor:
    """An IR, open for changes.

    Raises:
        ModelError: the file cannot be read, is a fragment of a document, or is not UTF-8.
    """
    return Editor(Path(path))


class Editor:
    """An IR, open for changes; see :class:`~zerostride.models.ir.rewrite.Editor`."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.data = contents(file)
        self.net, fragment = parsed(file, self.data)
        if fragment:
            refuse(file, "layers without a net have no edges; put them into one to change them")
        encoding = _ENCODING.match(self.data[:1000])
        if encoding is not None and encoding[1].lower() not in (b"utf-8", b"us-ascii", b"ascii"):
            refuse(file, "it is not in UTF-8; save it so to change it")
        try:
            self.data.decode("utf-8")
        except UnicodeDecodeError:
            refuse(file, "it is not in UTF-8; save it so to change it")
        # With sizes from the flow: a port without sizes may be a scalar's.
        graph, _, _ = resolved(graph_of(file, self.data))
        self.nodes = {node.place: node for node in graph.nodes}
        self.names = {node.name for node in graph.nodes}
        self.names.update(value.name for value in graph.values())
        self.weights = weights_of(file)
        self.size = self.weights.stat().st_size if self.weights.exists() else None
        self.wanting = self.size is None and _has_constants(self.net)
        self.appended = bytearray()
        self._offsets: dict[bytes, int] = {}
        self.scopes: dict[Place, Scope] = {}
        self.broken = False

    def apply(self, rewrites: Sequence[Rewrite]) -> None:
        """Translates rewrites to layers.

        Raises:
            ModelError: a rewrite has no equivalent; names the layer and the reason.
        """
        self.broken = True  # until all rewrites are translated
        for rewrite in rewrites:
            node = self.nodes.get(rewrite.place)
            if node is None:
                refuse(self.file, f"there is no layer at {rewrite.place}")
            self._scope(node).rewrite(node, rewrite)
        self.broken = False

    def save(self, path: Path) -> tuple[Path, ...]:
        """Writes the .xml, and the .bin if the model has one.

        Raises:
            ModelError: a rewrite failed before, or a file cannot be written.
        """
        path = Path(path)
        if self.broken:
            refuse(self.file, "a change could not be said; nothing is written")
        if path.suffix.lower() != ".xml":
            raise ModelError(f"{path}: an IR's name ends in .xml")
        data = self._spliced()
        if data != self.data:
            parsed(path, data)
        written = [path]
        try:
            beside = weights_of(path)
            if self.wanting and beside.exists():
                refuse(path, f"{beside.name} is there, and is not this model's; remove it first")
            if self.size is not None or self.appended:
                if self.appended or not _same(beside, self.weights):
                    _write(beside, bytes(self.appended), self.weights if self.size else None)
                written.append(beside)
            _write(path, data)
        except OSError as error:
            raise ModelError(f"{path}: {error.strerror or error}") from None
        return tuple(written)

    def constant(self, numbers: Sequence[int]) -> tuple[int, int]:
        """Offset and size of whole numbers in the .bin; new ones are appended."""
        return self.stored(np.array(numbers, "<i8").tobytes())

    def stored(self, data: bytes) -> tuple[int, int]:
        """Offset and size of a constant's bytes in the .bin; new ones are appended."""
        if self.wanting:
            message = f"its weights {self.weights.name} are missing, and a constant must be added"
            refuse(self.file, message)
        if data not in self._offsets:
            base = self.size or 0
            here = base + len(self.appended)
            self.appended += bytes(-here % ALIGNMENT)
            self._offsets[data] = base + len(self.appended)
            self.appended += data
        return self._offsets[data], len(data)

    def fresh(self, name: str) -> str:
        """A name that is new to the file."""
        return take(name, self.names)

    def _scope(self, node: Node) -> Scope:
        place = (node.place or ())[:-1]
        if place not in self.scopes:
            net: Net = self.net
            for position, key in zip(place[::2], place[1::2], strict=True):
                net = net.layers[int(position)].bodies[str(key)]
            self.scopes[place] = Scope(self, net)
        return self.scopes[place]

    def _spliced(self) -> bytes:
        edits = sorted(
            (edit for scope in self.scopes.values() for edit in scope.edits()),
            key=lambda edit: (edit[0], edit[1]),
        )
        pieces, done = [], 0
        for start, stop, text in edits:
            pieces += [self.data[done:start], text]
            done = stop
        return b"".join((*pieces, self.data[done:]))


def _has_constants(net: Net) -> bool:
    """Whether a net or one of its bodies has constants in the .bin."""
    return any(
        "offset" in layer.data or any(map(_has_constants, layer.bodies.values()))
        for layer in net.layers
    )


def _same(a: Path, b: Path) -> bool:
    return a.exists() and b.exists() and os.path.samefile(a, b)


def _write(path: Path, data: bytes, before: Path | None = None) -> None:
    """Writes a file whole or not at all: the bytes of `before`, then the data."""

    def write(file: BinaryIO) -> None:
        if before is not None:
            with before.open("rb") as old:
                shutil.copyfileobj(old, file)
        file.write(data)

    write_whole((path, write))
