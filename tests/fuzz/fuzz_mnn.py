"""Hostile MNN files: an audit gives a Report or one clear error for any file.

    python tests/fuzz/fuzz_mnn.py --cases 100000 --seed 0
    python tests/fuzz/fuzz_mnn.py --seed 0 --case 4711     # one case again, with its traceback

Files are small models, their bytes and numbers changed, and single ops of every type with
parameters and operands that nobody wants. A case fails if it raises anything but the errors that
the package promises, lets a control character through to a terminal, takes longer than 10 s, needs
more than a GiB, or kills the process. Every so many cases MNN is asked for shapes, in its process.
"""

from __future__ import annotations

import functools
import os
import random
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import harness
import mnn_files
from hostile_files import audited_with_data, ended, scratch

from zerostride.models.formats.mnn import schema, shapes

#: One of so many cases asks MNN: starting it takes 100 cases' time.
MNN_EVERY = 250
NUMBERS = (0, 1, 2, 3, 5, 8, 64, 255, 2**16, 2**31 - 1, -1, -2, -(2**31))
SHAPES = ((1, 4, 8, 8), (4,), (), (2, 3, 4, 5, 6), (0, 4), (-1, 4, -1, 8), (2**31 - 1,) * 4)
TEXTS = ("x", "", "a" * 300, "\x1b[31mred", "two\nlines", "../../etc/passwd", "ünïcödé")
_installed = shapes.installed


@functools.cache
def corpus() -> tuple[bytes, ...]:
    """The good files; a folder named in the environment may hold more of them."""
    small = [make() for make in mnn_files.MODELS.values()]
    more = os.environ.get("ZEROSTRIDE_MNN_FILES")
    files = sorted(Path(more).glob("*.mnn")) if more else []
    return (*small, *(file.read_bytes() for file in files if file.stat().st_size < 30_000))


def case(seed: int, number: int) -> bytes:
    """The file of a case."""
    rng = random.Random(f"mnn/{seed}/{number}")
    kind = rng.random()
    if kind < 0.4:
        data = one_op(rng)
        return changed(rng, data) if kind > 0.35 else data
    return changed(rng, rng.choice(corpus()))


def changed(rng: random.Random, data: bytes) -> bytes:
    """Bytes and numbers changed, cut, doubled and moved."""
    mutated = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        if len(mutated) < 8:
            break
        at = rng.randrange(len(mutated) - 4)
        length = rng.choice((1, 4, 8, 64))
        match rng.randrange(9):
            case 0 | 1 | 2:  # a number, an offset, a length
                struct.pack_into("<i", mutated, at & ~3, rng.choice(NUMBERS))
            case 3:  # an offset to somewhere else in the file
                struct.pack_into("<I", mutated, at & ~3, rng.randrange(len(mutated)))
            case 4:
                mutated[at] ^= 1 << rng.randrange(8)
            case 5:
                mutated[at] = rng.randrange(256)
            case 6:
                other = rng.randrange(len(mutated))
                mutated[at : at + length] = mutated[other : other + length]
            case 7:
                del mutated[at : at + length]
            case _:
                del mutated[at:]
    return bytes(mutated)


def one_op(rng: random.Random) -> bytes:
    """An op of any type, with a parameter of any numbers."""
    model = mnn_files.Model(rng.choice((0, 1, 3, 4)))
    names = []
    for k in range(rng.choice((0, 1, 2, 2, 3, 5))):
        name = f"i{k}"
        if rng.random() < 0.4:
            numbers = [rng.choice(NUMBERS) for _ in range(rng.choice((0, 1, 1, 2, 4)))]
            model.constant(name, mnn_files.np.array(numbers, "int32"))
        else:
            layout = rng.choice(("NCHW", "NHWC", "NC4HW4"))
            model.input(name, *rng.choice(SHAPES), layout=layout)
        names.append(name)
    parameter = rng.choice(sorted({*schema.FIELDS, "Convolution2D", "PRelu", "Scale", ""}))
    op = rng.choice(sorted(schema.OPS.values()))
    if rng.random() < 0.5:  # the parameter that goes with it, if there is one
        parameter = next((name for name in schema.FIELDS if name.startswith(op[:4])), parameter)
    results = " ".join(f"o{k}" for k in range(rng.choice((1, 1, 1, 2, 4))))
    fields = table(rng, parameter)
    model.op(op, " ".join(names), results, parameter, fields, layout=rng.choice(("NCHW", "NHWC")))
    if rng.random() < 0.2:
        model.ops[-1] = {**model.ops[-1], 3: rng.choice(TEXTS)}
    return model.data()


def table(rng: random.Random, parameter: str) -> dict[int, Any]:
    """The fields of a parameter, any numbers in them."""
    if parameter == "Convolution2D":
        common = {field.number: value(rng, field.kind) for field in schema.CONVOLUTION}
        count = rng.choice((0, 1, 12, 108))
        return {0: common, 1: mnn_files.Numbers("<f4", [0.5] * count)}
    if parameter in ("PRelu", "Scale"):
        count = rng.choice((0, 1, 4, 8))
        return {0: mnn_files.i32(4), 1: mnn_files.Numbers("<f4", [0.5] * count)}
    fields = schema.FIELDS.get(parameter, ())
    return {field.number: value(rng, field.kind) for field in fields if rng.random() < 0.8}


def value(rng: random.Random, kind: str) -> Any:
    if kind == "int32s":
        return mnn_files.ints(*(rng.choice(NUMBERS) for _ in range(rng.choice((0, 1, 2, 4, 70)))))
    if kind == "bool":
        return mnn_files.Scalar("?", rng.random() < 0.5)
    if kind == "int8":
        return mnn_files.i8(rng.choice((0, 1, 2, 3, 7, 127, -1)))
    if kind == "float32":
        return mnn_files.Scalar("f", rng.choice((0.0, 1.0, -1.0, float("nan"), float("inf"))))
    return mnn_files.i32(rng.choice(NUMBERS))


def run_case(seed: int, number: int) -> str:
    """How a case ended."""
    asks: Callable[[], bool] = _installed if number % MNN_EVERY == 0 else lambda: False
    shapes.installed = asks  # type: ignore[assignment]
    path = scratch() / "case.mnn"
    path.write_bytes(case(seed, number))
    return ended(path, lambda: audited_with_data(path, number))


if __name__ == "__main__":
    sys.exit(harness.main(__file__, run_case, __doc__.splitlines()[0]))
