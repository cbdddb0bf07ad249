"""Every tensor of a file by its engine, in chunks, spilled to disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from ...models.ir.files import write_scratch
from ...models.ir.graph import Graph, Value
from ..files import tensors
from ..process import Process
from ..task import Array, Reply, ReplyKind

#: The most bytes of tensors that an engine is asked for at once, and the most tensors.
CHUNK_BYTES, CHUNK_TENSORS = 2**26, 64
#: Bytes that a tensor of unknown size counts for.
_UNKNOWN = 2**22
Progress = Callable[[int, int], None]


class Spilled:
    """Tensors on disk, each in a file of its own, mapped into memory when it is read.

    Attributes:
        names: the tensors that the engine gave.
        failures: why it did not give the others, by name.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, Path] = {}
        self.failures: dict[str, str] = {}
        folder.mkdir()

    @property
    def names(self) -> tuple[str, ...]:
        """The tensors on disk, in the order in which they were asked for."""
        return tuple(self._files)

    def put(self, name: str, array: Array) -> None:
        """Writes a tensor."""
        path = self._folder / f"{len(self._files)}.npy"
        write_scratch(path, lambda path: np.save(path, array, allow_pickle=False))
        self._files[name] = path

    def fetch(self, name: str) -> Array | None:
        """A mapped tensor, or None."""
        path = self._files.get(name)
        return None if path is None else np.asarray(np.load(path, mmap_mode="r"))


def computed(graph: Graph) -> list[Value]:
    """The tensors that the nodes of the main graph make, each once."""
    values = (v for node in graph.nodes if not node.scope for v in node.outputs)
    return list({v.name: v for v in values if v.name and not v.constant}.values())


def collect(
    process: Process,
    file: Path,
    inputs: Mapping[str, Array],
    values: Sequence[Value],
    spilled: Spilled,
    progress: Progress | None = None,
) -> None:
    """Asks for tensors in chunks and spills them.

    A chunk that the engine refuses or dies of is asked for in halves, so that one tensor does not
    stop the others; that tensor's answer is among the failures.
    """
    chunks = list(_chunks(values))
    total, done = len(values), 0
    while chunks:
        chunk = chunks.pop(0)
        names = [value.name for value in chunk]
        reply = tensors(process, file, inputs, names)
        if reply.kind is ReplyKind.RESULT:
            for name, array in zip(names, reply.arrays, strict=True):
                spilled.put(name, array)
        elif len(chunk) > 1:
            middle = len(chunk) // 2
            chunks[:0] = [chunk[:middle], chunk[middle:]]
            continue
        else:
            spilled.failures[names[0]] = _words(process.engine, reply)
        done += len(chunk)
        if progress is not None:
            progress(done, total)


def _words(engine: str, reply: Reply) -> str:
    return f"{engine} {reply.kind}: {reply.message}"


def _chunks(values: Sequence[Value]) -> list[Sequence[Value]]:
    chunks: list[list[Value]] = [[]]
    room = CHUNK_BYTES
    for value in values:
        need = _bytes(value)
        if chunks[-1] and (need > room or len(chunks[-1]) == CHUNK_TENSORS):
            chunks.append([])
            room = CHUNK_BYTES
        chunks[-1].append(value)
        room -= need
    return list(chunks) if values else []


def _bytes(value: Value) -> int:
    if value.shape is None or not value.known:
        return _UNKNOWN
    return 8 * int(np.prod([int(size) for size in value.shape if isinstance(size, int)]))
