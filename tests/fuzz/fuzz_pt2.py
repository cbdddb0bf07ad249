"""Hostile archives of torch.export: one that cannot run code, or one clear error for any file.

    python tests/fuzz/fuzz_pt2.py --cases 100000 --seed 0
    python tests/fuzz/fuzz_pt2.py --seed 0 --case 4711     # one case again, with its traceback

Files are archives with their bytes changed, and archives whose JSON has changed entries: other
operations, expressions, trees of arguments, names of weights, texts that are code. PyTorch gets
what `checked_archive` makes of a file, so a case is checked without PyTorch. It fails if that
raises anything but a ModelError that names the file, takes longer than 10 s, needs more than a GiB,
or if a second check changes the archive: then the first one left something in.
"""

from __future__ import annotations

import copy
import io
import json
import random
import sys
import zipfile
from pathlib import Path
from typing import Any

import harness
from hostile_files import ended, scratch
from pt2_archives import PROGRAM, archive

from zerostride.models.formats.pt2 import checked_archive

CODE = "__import__('os').system('touch ran')"
VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 2**63, 1e308, "", [], {}, "x" * 5000, "\x1b[31mred", "../../weight_0"),
    *(CODE, "torch.hub.load", "torch.ops.aten.add.Tensor", "torch.ops.aten.from_file.default"),
    *("_operator.add", "_operator.attrgetter", "math.floor", "collections.OrderedDict"),
    *("s0", "s0.__class__", "Symbol('s7', integer=True)", f"Symbol('s7', integer={CODE})"),
    *("Add(Symbol('s0'), Integer(1))", "9**9**9", "((((", "Max(s0, exec(s0))", "weight_1"),
)
KEYS = ("target", "expr_str", "metadata", "as_custom_obj", "custom_obj_values", "as_operator")


def case(seed: int, number: int, path: Path) -> Path:
    """Writes the file of a case."""
    rng = random.Random(f"pt2/{seed}/{number}")
    program = copy.deepcopy(PROGRAM)
    for _ in range(rng.choice((0, 1, 1, 1, 2, 4))):
        _change(rng, program)
    archive(path, program)
    if rng.random() < 0.3:
        data = bytearray(path.read_bytes())
        for _ in range(rng.choice((1, 1, 3, 10))):
            data[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(data[: rng.randrange(len(data))] if rng.random() < 0.2 else data)
    return path


def _change(rng: random.Random, program: Any) -> None:
    """Another value at some place of the JSON, or an entry more."""
    holders = list(_holders(program))
    holder = rng.choice(holders)
    if isinstance(holder, dict):
        key = rng.choice((*holder, *KEYS))
        if key in ("in_spec", "out_spec") and rng.random() < 0.8:
            holder[key] = json.dumps([1, _tree(rng)])
            return
    else:
        key = rng.randrange(len(holder)) if holder else None
    if key is None:
        holder.append(rng.choice(VALUES))
    elif rng.random() < 0.1 and key in (holder if isinstance(holder, dict) else range(len(holder))):
        del holder[key]
    else:
        holder[key] = copy.deepcopy(rng.choice((*VALUES, rng.choice(holders))))


def _holders(value: Any, deep: int = 0) -> Any:
    if isinstance(value, dict | list) and deep < 20:
        yield value
        for entry in value.values() if isinstance(value, dict) else value:
            yield from _holders(entry, deep + 1)


def _tree(rng: random.Random, deep: int = 0) -> dict[str, Any]:
    kinds = (None, "builtins.tuple", "builtins.dict", "collections.defaultdict", "os.system")
    contexts = (None, "null", "[]", '["a"]', '{"default_factory_module": "os"}', CODE, [1])
    branches = [] if deep > 3 else [_tree(rng, deep + 1) for _ in range(rng.choice((0, 0, 1, 2)))]
    kind = rng.choice(kinds) if rng.random() < 0.2 else rng.choice(kinds[:3])
    context = rng.choice(contexts) if rng.random() < 0.2 else rng.choice(contexts[:4])
    return {"type": kind, "context": context, "children_spec": branches}


def parts(data: bytes) -> dict[str, bytes]:
    """The contents of an archive, which has times, too."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return {name: file.read(name) for name in file.namelist()}


def run_case(seed: int, number: int) -> str:
    """How a case ended."""
    path = scratch() / "case.pt2"
    path.unlink(missing_ok=True)
    return ended(path, lambda: use(case(seed, number, path)))


def use(path: Path) -> tuple[str, str]:
    """Checks the archive twice; the outcome, and what a terminal would be shown."""
    once = checked_archive(path)
    path.write_bytes(once)
    if parts(checked_archive(path)) != parts(once):
        return f"{harness.BAD} a second check changes the archive", ""
    return "checked", ""


if __name__ == "__main__":
    sys.exit(harness.main(__file__, run_case, __doc__.splitlines()[0]))
