"""Rows of a table: the Gather that pnnx leaves in a file becomes ncnn's Embed."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ....system.whole_files import write_whole
from .text import Layer, ParamFile, Params, read_text
from .weights import Stored, bin_path, locate


def embed_rows(param: Path) -> int:
    """Turns each Gather of a table into an Embed, in the files; how many there were.

    pnnx writes no axis, so the caller knows that each Gather reads rows. A table that other layers
    read too, or that is no matrix, stays.

    Args:
        param: the .param; the .bin lies beside it.

    Raises:
        ModelError: the file is no .param.
        OSError: a file cannot be read or written.
    """
    parsed = read_text(param)
    weights = locate(parsed.layers, bin_path(param))
    tables = {layer.tops[0]: layer for layer in parsed.layers if layer.type == "MemoryData"}
    readers = Counter(name for layer in parsed.layers for name in layer.bottoms)
    pairs = {
        layer.index: tables[layer.bottoms[0]]
        for layer in parsed.layers
        if layer.type == "Gather"
        and len(layer.bottoms) == 2
        and layer.bottoms[0] in tables
        and readers[layer.bottoms[0]] == 1
        and _is_matrix(tables[layer.bottoms[0]])
    }
    if not pairs or weights.missing is not None:
        return 0
    gone = {table.index for table in pairs.values()}
    data = weights.path.read_bytes()
    parts = []
    for layer, stored in zip(parsed.layers, weights.stored, strict=True):
        if layer.index in pairs:
            parts += [
                _marked(data, part) for part in weights.stored[pairs[layer.index].index] or ()
            ]
        elif layer.index not in gone:
            parts += [data[part.start : part.end] for part in stored or ()]
    text = _text(parsed, pairs, gone).encode(parsed.encoding)
    whole = b"".join(parts)
    write_whole(
        (weights.path, lambda file: file.write(whole)), (param, lambda file: file.write(text))
    )
    return len(pairs)


def index_blobs(layers: Sequence[Layer]) -> set[str]:
    """The blobs that an Embed reads, or a Split before one: they hold 32-bit whole numbers."""
    indices: set[str] = set()
    for layer in reversed(layers):
        if layer.type == "Embed":
            indices.update(layer.bottoms[:1])
        if layer.type == "Split" and indices & set(layer.tops):
            indices.update(layer.bottoms)
    return indices


def _is_matrix(table: Layer) -> bool:
    params = Params(table)
    return params.whole(0) > 0 < params.whole(1) and not (params.whole(2) or params.whole(11))


def _marked(data: bytes, stored: Stored) -> bytes:
    """The numbers with a mark of their storage form, which an Embed has."""
    mark = b"" if stored.load.marked else struct.pack("<I", 0)
    return mark + data[stored.start : stored.end]


def _text(parsed: ParamFile, pairs: dict[int, Layer], gone: set[int]) -> str:
    """The .param with the new layers and without their tables."""
    lines = [*parsed.lines]
    for layer in parsed.layers:
        at = layer.line - 1
        if layer.index in gone:
            lines[at] = ""
        elif layer.index in pairs:
            table = Params(pairs[layer.index])
            width, rows = table.whole(0), table.whole(1)
            ends = f"{layer.bottoms[1]} {layer.tops[0]}"
            params = f"0={width} 1={rows} 2=0 3={width * rows}"
            lines[at] = f"Embed {layer.name} 1 1 {ends} {params}\n"
    layers, blobs = map(int, lines[parsed.counts_line].split())
    lines[parsed.counts_line] = f"{layers - len(gone)} {blobs - len(gone)}\n"
    return "".join(lines)


__all__ = ["embed_rows", "index_blobs"]
