"""Layers of every type with unusual operands and parameters: no internal errors."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest

from zerostride import BroadcastError, ZerostrideError
from zerostride.engines import ENGINES
from zerostride.models.audit.run import audit_graph
from zerostride.models.format_table import lowered
from zerostride.models.formats import read_model
from zerostride.models.formats.ncnn.layers import LAYERS

SHAPES = ((), (3,), (4, 3), (2, 4, 3), (2, 2, 4, 3))


def drawn(rng: random.Random, op: str) -> str:
    """A file of one layer of a type."""
    count, outputs = rng.randint(0, 3), rng.randint(0, 2)
    lines = []
    for k in range(count):
        shape = rng.choice(SHAPES)
        keys = (0, 1, 11, 2) if len(shape) == 4 else (0, 1, 2)
        sizes = " ".join(f"{key}={size}" for key, size in zip(keys, reversed(shape), strict=False))
        lines.append(f"Input x{k} 0 1 x{k} {sizes}")
    words = [f"{rng.randint(0, 20)}={rng.choice((0, 1, 2, 3, -1, 7))}" for _ in range(3)]
    if rng.random() < 0.2:
        words.append(f"-{23300 + rng.randint(0, 20)}={rng.choice(('0', '1,2', '3,1,1,1'))}")
    blobs = [f"x{k}" for k in range(count)] + [f"o{k}" for k in range(outputs)]
    lines.append(" ".join([op, "op", str(count), str(outputs), *blobs, *words]))
    return "\n".join(["7767517", f"{len(lines)} {count + outputs}", *lines, ""])


def use(path: Path, text: str, target: str) -> None:
    path.write_text(text)
    with contextlib.suppress(ZerostrideError, BroadcastError):
        graph = read_model(path)
        lowered(graph)
        str(audit_graph(graph, ENGINES[target]))


@pytest.mark.parametrize("op", sorted(LAYERS))
def test_layer_with_any_operands_gives_no_internal_error(op: str, tmp_path: Path) -> None:
    rng = random.Random(f"odd {op}")
    for _ in range(8):
        use(tmp_path / "m.param", drawn(rng, op), rng.choice(sorted(ENGINES)))


@pytest.mark.parametrize(
    "layer",
    [
        "Gemm op 1 1 x o 2=1 3=1 5=0 8=2 9=7 11=1",  # two operands are missing one
        "PixelShuffle op 1 1 x o 0=2",  # a vector has no channels
        "Reorg op 1 1 x o 0=2",
    ],
)
def test_layers_with_former_internal_errors_are_read(layer: str, tmp_path: Path) -> None:
    use(tmp_path / "m.param", f"7767517\n2 2\nInput x 0 1 x 0=3\n{layer}\n", "numpy")
