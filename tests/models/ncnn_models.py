"""Writes ncnn files: .param texts, their inputs and weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from zerostride.models.formats.ncnn import read
from zerostride.models.ir.graph import Graph

Shape = tuple[int, ...]
KEYS = {1: (0,), 2: (1, 0), 3: (2, 1, 0), 4: (2, 11, 1, 0)}


def sizes(shape: Shape) -> str:
    """A shape as Input and MemoryData have it: "0=5 1=4 2=3" for (3, 4, 5)."""
    pairs = sorted(zip(KEYS[len(shape)], shape, strict=True))
    return " ".join(f"{key}={size}" for key, size in pairs)


def param(*lines: str) -> str:
    """The text of a .param of these layers, counted."""
    blobs = sum(int(line.split()[3]) for line in lines)
    return f"7767517\n{len(lines)} {blobs}\n" + "".join(f"{line}\n" for line in lines)


def inputs(*shapes: Shape) -> list[str]:
    """Inputs called in0, in1, ..."""
    return [f"Input in{k} 0 1 in{k} {sizes(shape)}" for k, shape in enumerate(shapes)]


def write(folder: Path, text: str, weights: bytes | None = None, name: str = "m") -> Path:
    """The files; the .param's path."""
    path = folder / f"{name}.param"
    path.write_bytes(text.encode())
    if weights is not None:
        (folder / f"{name}.bin").write_bytes(weights)
    return path


def graph(folder: Path, text: str, weights: bytes | None = None) -> Graph:
    """The graph of a text."""
    return read(write(folder, text, weights))


def floats(*arrays: Any, mark: bool = False) -> bytes:
    """Numbers as a .bin has them."""
    tag = b"\0\0\0\0" if mark else b""
    return b"".join(tag + np.ascontiguousarray(a, "<f4").tobytes() for a in arrays)


def shapes_of(model: Graph) -> dict[str, Any]:
    """Shapes of all values by name."""
    return {value.name: value.shape for value in model.values()}
