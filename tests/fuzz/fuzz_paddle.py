"""Hostile models of Paddle through every public function: results, or the package's own errors.

    python tests/fuzz/fuzz_paddle.py --cases 100000 --seed 0
    python tests/fuzz/fuzz_paddle.py --seed 0 --case 4711     # one case again, with its traceback

Half of the files are .json, half .pdmodel: small models, their bytes, entries and numbers changed,
and single ops of every known name with attributes and operands that nobody wants; some have weights
beside them, whole or changed. Each is audited, ported, its shapes are asked, it is run on random
inputs, its constants are read, and some are verified. A case fails if any of these raises anything
but the errors that the package promises, lets a control character through to a terminal, takes
longer than 10 s, needs more than a GiB, or kills the process.
"""

from __future__ import annotations

import functools
import json
import os
import random
import sys
from pathlib import Path
from typing import Any

import harness  # noqa: F401 - it finds the writers of models
import numpy as np
import paddle_files
from every_command import kept, run_on
from fuzz_mnn import changed
from hostile_files import scratch

from zerostride.models.formats.paddle import sites
from zerostride.models.formats.paddle.schema import OLD

NUMBERS = (0, 1, 2, 3, 4, 5, 8, 64, 255, 2**16, 2**31 - 1, 2**63 - 1, -1, -2, -(2**31), -(2**63))
SHAPES = ((1, 4, 4, 8), (4,), (), (2, 3, 4, 5, 6), (0, 4), (-1, 4, 1, 8), (2**31,) * 4)
TEXTS = ("x", "", "a" * 300, "\x1b[31mred", "two\nlines", "../../etc/passwd", "ünïcödé", "NCHW")
DTYPES = ("float32", "float32", "float32", "int32", "int64", "bool", "int8", "float16", "bfloat16")
ATTRIBUTES = (
    "axis axes perm keepdim reduce_all begin_norm_axis epsilon strides paddings dilations "
    "groups data_format padding_algorithm kernel_size ksize pooling_type adaptive "
    "global_pooling ceil_mode exclusive transpose_x transpose_y trans_x trans_y alpha beta "
    "mode shape dtype value scale bias num sections start_axis stop_axis decrease_axis starts "
    "ends dim keep_dim is_test use_global_stats x_num_col_dims y_num_col_dims out_h out_w "
    "align_corners align_mode upscale_factor y diagonal k depth porder flatten keepdims "
    "largest sorted negative_slope output_padding pad_value"
)
#: Every op's name in PIR programs that a table knows, and a few others.
NAMES = sorted(
    {*sites.ROWS, *sites.LOWERED, *sites.SIZES, *sites.STILL, "brand_new", "if", "while"}
)


@functools.cache
def corpus() -> tuple[tuple[str, bytes, bytes], ...]:
    """The good files and their weights; a folder named in the environment may hold more."""
    models = [make() for make in paddle_files.MODELS.values()]
    files = [(one.suffix, one.program(), paddle_files.weights(one.weights)) for one in models]
    more = os.environ.get("ZEROSTRIDE_PADDLE_FILES")
    for file in sorted(Path(more).iterdir()) if more else []:
        if file.suffix in (".json", ".pdmodel") and file.stat().st_size < 250_000:
            beside = file.with_suffix(".pdiparams")
            held = beside.read_bytes() if beside.is_file() else b""
            files.append((file.suffix, file.read_bytes(), held))
    return tuple(files)


def case(seed: int, number: int) -> tuple[str, bytes, bytes]:
    """The end of a case's name, its bytes and those of its weights."""
    rng = random.Random(f"paddle/{seed}/{number}")
    kind = rng.random()
    if kind < 0.5:
        suffix, data, held = one_op(rng) if kind < 0.25 else one_old_op(rng)
        return suffix, changed(rng, data) if rng.random() < 0.15 else data, held
    suffix, data, held = rng.choice(corpus())
    if rng.random() < 0.3:
        held = changed(rng, held) if held else rng.randbytes(40)
    if suffix == ".json" and kind < 0.85:
        return suffix, bent(rng, data), held
    return suffix, (changed if kind > 0.7 else small)(rng, data), held


def small(rng: random.Random, data: bytes) -> bytes:
    """A few bytes changed to small numbers, which leaves many files readable."""
    mutated = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        mutated[rng.randrange(len(mutated))] = rng.choice(
            (0, 1, 2, 3, 4, 5, 8, 255, rng.randrange(256))
        )
    return bytes(mutated)


def bent(rng: random.Random, data: bytes) -> bytes:
    """Entries of the JSON changed, left out, doubled, or put in each other's place."""
    program = json.loads(data)
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        places = list(walk(program))
        if not places:
            break
        holder, key = rng.choice(places)
        match rng.randrange(6):
            case 0:
                del holder[key]
            case 1:
                holder[key] = rng.choice((None, True, [], {}, 1.5, rng.choice(NUMBERS), "x"))
            case 2:
                other, name = rng.choice(places)
                if depth(other[name]) < 30:
                    holder[key] = json.loads(json.dumps(other[name]))
            case 3 if isinstance(holder, list):
                holder.insert(rng.randrange(len(holder)), holder[key])
            case _:
                holder[key] = other_value(rng, holder[key])
        if len(json.dumps(program)) > 200_000:
            break
    return json.dumps(program).encode()


def walk(entry: Any) -> Any:
    """Every place of JSON: what holds it, and its key."""
    pairs = entry.items() if isinstance(entry, dict) else enumerate(entry)
    for key, value in list(pairs):
        yield entry, key
        if isinstance(value, (dict, list)):
            yield from walk(value)


def depth(entry: Any) -> int:
    """How deep lists and objects are within each other."""
    if not isinstance(entry, (dict, list)):
        return 0
    parts = entry.values() if isinstance(entry, dict) else entry
    return 1 + max(map(depth, parts), default=0)


def other_value(rng: random.Random, value: Any) -> Any:
    """A value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice((*NUMBERS, value + 1, value - 1))
    if isinstance(value, float):
        return rng.choice((0.0, -1.0, 1e308, float("nan"), float("inf")))
    if isinstance(value, str):
        name = rng.choice((f"1.{rng.choice(NAMES)}", "0.combine", "0.split", "2.yield"))
        return name if "." in value else rng.choice(TEXTS)
    return rng.sample(value, len(value)) if isinstance(value, list) else value


def attributes(rng: random.Random) -> dict[str, Any]:
    """Attributes of any numbers."""
    names = rng.sample(ATTRIBUTES.split(), rng.choice((0, 2, 4, 8)))
    return {name: attribute(rng) for name in names}


def attribute(rng: random.Random) -> Any:
    match rng.randrange(6):
        case 0:
            return rng.random() < 0.5
        case 1:
            return rng.choice((0.0, 0.5, 1.0, -1.0, float("nan"), float("inf")))
        case 2:
            return rng.choice(TEXTS)
        case 3 | 4:
            return tuple(small_number(rng) for _ in range(rng.choice((0, 1, 2, 4, 6, 70))))
        case _:
            return small_number(rng)


def small_number(rng: random.Random) -> int:
    return rng.choice(NUMBERS) if rng.random() < 0.3 else rng.choice((-2, -1, 0, 1, 2, 3))


def one_op(rng: random.Random) -> tuple[str, bytes, bytes]:
    """An op of a PIR program."""
    model = paddle_files.Pir()
    operands: list[str | int] = []
    for k in range(rng.choice((0, 1, 1, 2, 2, 3, 5))):
        match rng.randrange(5):
            case 0:
                operands.append(model.ints(*(small_number(rng) for _ in range(rng.randrange(5)))))
            case 1:
                dtype = rng.choice(("float32", "int32", "int64", "bool"))
                operands.append(model.full(rng.choice((0.0, 1.0, -1.0, 2.0)), 1, dtype=dtype))
            case 2 if k:
                model.weight(f"w{k}", np.ones(4, np.float32))
                operands.append(f"w{k}")
            case _:
                operands.append(model.input(f"i{k}", *rng.choice(SHAPES), dtype=rng.choice(DTYPES)))
        if rng.random() < 0.05:
            operands[-1] = 0
    results = [(rng.choice(SHAPES), rng.choice(DTYPES)) for _ in range(rng.choice((1, 1, 1, 2, 6)))]
    name = rng.choice(NAMES) + rng.choice(("", "", "_"))
    numbers = model.op(name, operands, results, **attributes(rng))
    if rng.random() < 0.1:
        block = {"args": [], "ops": [dict(model.ops[-1])]}
        model.ops[-1]["regions"] = [{"blocks": [block]} for _ in range(rng.choice((1, 2)))]
    model.outputs += [f"%{number}" for number in numbers]
    return ".json", model.program(), paddle_files.weights(model.weights)


def one_old_op(rng: random.Random) -> tuple[str, bytes, bytes]:
    """An op of an old program."""
    model = paddle_files.Program()
    kind = rng.choice(sorted(OLD))
    row = OLD[kind]
    slots: dict[str, list[str]] = {}
    for k, alternatives in enumerate(row.operands):
        slot = rng.choice(alternatives).strip("*+@")
        count = rng.choice((1, 1, 2, 3)) if alternatives[0].endswith("*") else 1
        for n in range(count if slot and rng.random() < 0.9 else 0):
            name = f"v{k}{n}"
            if rng.random() < 0.2:
                model.weight(name, np.array([small_number(rng) % 7], "int64"))
            else:
                model.input(name, *rng.choice(SHAPES), dtype=rng.choice(DTYPES))
            slots.setdefault(slot, []).append(name)
    words = attributes(rng)
    for alternatives in row.operands:
        words |= {word[1:]: attribute(rng) for word in alternatives if word.startswith("@")}
    outputs = {slot: f"o{k}" for k, slot in enumerate(row.outputs)}
    if rng.random() < 0.1:
        outputs = dict.fromkeys(outputs, "v00")
    words.pop("shape", None) if rng.random() < 0.3 else None
    if kind in ("fill_constant", "assign_value"):
        words |= {"shape": [2, 2], "dtype": rng.choice((0, 3, 5, 22)), "value": 1.5}
    model.op(kind, slots, outputs, rng.choice(SHAPES), rng.choice(DTYPES), **words)
    model.outputs += list(outputs.values())
    return ".pdmodel", model.program(), paddle_files.weights(model.weights)


def run_case(seed: int, number: int) -> str:
    """How a case ended."""
    suffix, data, held = case(seed, number)
    path = scratch() / f"case{suffix}"
    path.write_bytes(data)
    beside = path.with_suffix(".pdiparams")
    beside.unlink(missing_ok=True)
    if held:
        beside.write_bytes(held)
    return run_on(path, number)


if __name__ == "__main__":
    sys.exit(kept(__file__, run_case, __doc__.splitlines()[0]))
