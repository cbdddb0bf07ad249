"""Hostile LiteRT files through every public function: results, or the package's own errors.

    python tests/fuzz/fuzz_tflite.py --cases 100000 --seed 0
    python tests/fuzz/fuzz_tflite.py --seed 0 --case 4711     # one case again, with its traceback

Files are small models, their bytes and numbers changed, and single ops of every type with options
and operands that nobody wants. Each is audited, ported (half of them for a file), its shapes are
asked, it is run on random inputs, its constants are read, and some are verified. A case fails if
any of these raises anything but the errors that the package promises, lets a control character
through to a terminal, takes longer than 10 s, needs more than a GiB, or kills the process.
"""

from __future__ import annotations

import functools
import os
import random
import sys
from pathlib import Path
from typing import Any

import harness  # noqa: F401 - it finds the writers of models
import numpy as np
import tflite_files
from every_command import kept, run_on
from fuzz_mnn import changed
from hostile_files import scratch

from zerostride.models.formats.tflite import schema

NUMBERS = (0, 1, 2, 3, 5, 8, 64, 255, 2**16, 2**31 - 1, -1, -2, -(2**31))
SHAPES = ((1, 4, 4, 8), (4,), (), (2, 3, 4, 5, 6), (0, 4), (1, 4, 1, 8), (2**31 - 1,) * 4, (1,) * 9)
TEXTS = ("x", "", "a" * 300, "\x1b[31mred", "two\nlines", "../../etc/passwd", "ünïcödé")
DTYPES = ("float32", "float32", "float32", "int32", "int8", "bool", "int64", "float16", "string")


@functools.cache
def corpus() -> tuple[bytes, ...]:
    """The good files; a folder named in the environment may hold more of them."""
    small = [make().data() for make in tflite_files.MODELS.values()]
    more = os.environ.get("ZEROSTRIDE_TFLITE_FILES")
    files = sorted(Path(more).glob("*.tflite")) if more else []
    return (*small, *(file.read_bytes() for file in files if file.stat().st_size < 250_000))


def case(seed: int, number: int) -> bytes:
    """The file of a case."""
    rng = random.Random(f"tflite/{seed}/{number}")
    kind = rng.random()
    if kind < 0.5:
        data = one_op(rng)
        return changed(rng, data) if kind > 0.42 else data
    return (bent if kind < 0.85 else changed)(rng, rng.choice(corpus()))


def bent(rng: random.Random, data: bytes) -> bytes:
    """A few small numbers changed, which leaves most files readable."""
    mutated = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        small = [at for at in range(8, len(mutated) - 4, 4) if mutated[at + 1 : at + 4] == bytes(3)]
        at = rng.choice(small)
        mutated[at] = rng.choice((0, 1, 2, 3, 4, 5, 8, 255, (mutated[at] + 1) % 256))
    return bytes(mutated)


def one_op(rng: random.Random) -> bytes:
    """An op of any type, with options of any numbers."""
    model = tflite_files.Model()
    graph = model.main
    op = rng.choice(sorted(schema.NUMBERS))
    dtype = rng.choice(DTYPES)
    for k in range(rng.choice((0, 1, 2, 2, 3, 4))):
        if rng.random() < 0.4:
            count = rng.choice((0, 1, 1, 2, 3, 4))
            values = np.array([rng.choice(NUMBERS) for _ in range(count)], "int64").astype("int32")
            graph.constant(f"i{k}", values if rng.random() < 0.9 else values[:1].reshape(-1, 1))
        else:
            scales = (0.5,) * rng.choice((0, 0, 0, 1, 4)) if dtype == "int8" else ()
            signature = rng.choice(((), (), (-1, -1, -1, -1)))
            graph.input(
                f"i{k}",
                *rng.choice(SHAPES),
                dtype=dtype,
                scales=scales,
                signature=signature,
                axis=rng.choice((0, 3, 7)),
            )
    names = [tensor.name for tensor in graph.tensors]
    for k in range(rng.choice((1, 1, 1, 2, 4))):
        graph.add(f"o{k}", rng.choice(SHAPES), rng.choice(DTYPES), ranked=rng.random() < 0.5)
    results = [f"o{k}" for k in range(len(graph.tensors) - len(names))]
    if rng.random() < 0.2:
        graph.tensors[0].name = rng.choice(TEXTS)
    if rng.random() < 0.3:
        _, inner = model.graph()
        inner.input("a", 2, 3)
        inner.op(rng.choice(("ADD", "WHILE", "IF", "CALL")), "a a", "b", **options(rng, "WHILE"))
        inner.output("b")
    operands = [k if rng.random() < 0.95 else -1 for k in range(len(names))]
    numbers = [len(names) + k for k in range(len(results))]
    version = rng.choice((1, 1, 2, 5))
    graph.ops.append(
        tflite_files.Op(op, tuple(operands), tuple(numbers), options(rng, op), version)
    )
    graph.outputs += numbers
    return model.data()


def options(rng: random.Random, op: str) -> dict[str, Any]:
    """Options of an op, any numbers in them."""
    rows = schema.OPTIONS.get(schema.options_of(op) or "", ())
    return {row.name: value(rng, row.kind) for row in rows if rng.random() < 0.7}


def value(rng: random.Random, kind: str) -> Any:
    if kind == "int32s":
        return tuple(rng.choice(NUMBERS) for _ in range(rng.choice((0, 1, 2, 4, 70))))
    if kind == "bool":
        return rng.random() < 0.5
    if kind == "int8":
        return rng.choice((0, 1, 2, 3, 7, 127, -1))
    if kind == "float32":
        return rng.choice((0.0, 1.0, -1.0, float("nan"), float("inf")))
    return rng.choice((0, 1, 2, 3, 2**31 - 1)) if kind == "uint32" else rng.choice(NUMBERS)


def run_case(seed: int, number: int) -> str:
    """How a case ended."""
    path = scratch() / "case.tflite"
    path.write_bytes(case(seed, number))
    return run_on(path, number)


if __name__ == "__main__":
    sys.exit(kept(__file__, run_case, __doc__.splitlines()[0]))
