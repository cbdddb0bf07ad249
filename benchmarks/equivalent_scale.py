"""The time and memory of comparing two models for every size, by their number of nodes.

    python -m benchmarks equivalent_scale [--nodes 100 250 500] [--keep]

The first model is a generated transformer as an exporter writes it: its batch and its length are
open, and normalisation is written out. The second is what an optimiser makes of it: normalisation
is one op, scales are before the products, transposes are joined, nodes that do nothing are gone.
Both are built here, so every run compares the same pair.

Every figure comes from a process of its own, which has compared a small pair before. Seconds are
of `zs.equivalent` with its runs. Memory is the process's peak over what it had before, and the
engine's that it starts. With --keep the run is the one that `python -m benchmarks pages` shows.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .archive import EQUIVALENT, keep
from .audit_scale import HEADS, WIDTH, Builder
from .goals import Goal
from .machine import Machine, describe
from .printing import markdown

#: The goal: a pair of so many nodes in so many seconds and bytes.
NODES, SECONDS, BYTES = 500, 10.0, 1 << 30
#: Runs of each pair; the median counts.
REPEATS = 3
_SMALL = 30

_COMPARE = """
import json, resource, sys, time
import numpy, onnx
import zerostride as zs

def peak(key="VmHWM"):
    with open("/proc/self/status") as file:
        (line,) = (line for line in file if line.startswith(key))
    return int(line.split()[1]) * 1024

zs.equivalent(sys.argv[3], sys.argv[4])
before = peak("VmRSS")
start = time.perf_counter()
result = zs.equivalent(sys.argv[1], sys.argv[2]).equivalence
seconds = time.perf_counter() - start
children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
print(json.dumps({
    "seconds": seconds, "bytes": max(0, peak() - before) + children, "verdict": result.verdict,
}))
"""


def build(nodes: int, file: Path, *, optimised: bool) -> int:
    """Writes a network, or its optimised copy.

    Args:
        nodes: of the network; its copy has as many blocks.
        file: the ONNX file.
        optimised: whether it is the copy.

    Returns:
        The number of its nodes.
    """
    import numpy as np

    builder = Builder()
    x = builder.input("x", ("batch", "length", WIDTH))
    rng = np.random.default_rng(0)
    written = 0
    while written < nodes:
        block = _Block(builder, rng, optimised=optimised)
        x = block.feed(block.attend(x))
        written += _NODES_OF_BLOCK
    builder.save(x, file)
    return len(builder.nodes)


#: Nodes of a block as an exporter writes it.
_NODES_OF_BLOCK = 47


class _Block:
    """A block of a transformer: attention and a feed-forward part, both after normalisation."""

    def __init__(self, builder: Builder, rng: Any, *, optimised: bool) -> None:
        self.node, self.constant = builder.node, builder.constant
        self.rng, self.optimised = rng, optimised

    def _weights(self, *shape: int) -> Any:
        return (self.rng.standard_normal(shape) / shape[0] ** 0.5).astype("float32")

    def _ints(self, *numbers: int) -> str:
        import numpy as np

        return self.constant(np.array(numbers, np.int64))

    def _number(self, value: float) -> str:
        import numpy as np

        return self.constant(np.float32(value))

    def _linear(self, x: str, outer: int, inner: int) -> str:
        product = self.node("MatMul", x, self.constant(self._weights(inner, outer)))
        return self.node("Add", product, self.constant(self._weights(outer)))

    def _normal(self, x: str) -> str:
        scale, bias = self.constant(self._weights(WIDTH)), self.constant(self._weights(WIDTH))
        if self.optimised:
            return self.node("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-5)
        mean = self.node("ReduceMean", x, axes=(-1,), keepdims=1)
        centred = self.node("Sub", x, mean)
        squared = self.node("Pow", centred, self._number(2))
        spread = self.node("ReduceMean", squared, axes=(-1,), keepdims=1)
        root = self.node("Sqrt", self.node("Add", spread, self._number(1e-5)))
        whole = self.node("Mul", self.node("Div", centred, root), scale)
        return self.node("Add", whole, bias)

    def attend(self, x: str) -> str:
        """Self-attention and a residual."""
        split, joined = self._ints(0, 0, HEADS, WIDTH // HEADS), self._ints(0, 0, WIDTH)
        normal = self._normal(x)
        scale = (WIDTH // HEADS) ** -0.5
        q, k, v = (self._linear(normal, WIDTH, WIDTH) for _ in "qkv")
        if self.optimised:
            q = self.node("Mul", q, self._number(scale))
        q, k, v = (self.node("Reshape", one, split) for one in (q, k, v))
        q, v = (self.node("Transpose", one, perm=(0, 2, 1, 3)) for one in (q, v))
        if self.optimised:
            k = self.node("Transpose", k, perm=(0, 2, 3, 1))
        else:
            k = self.node("Transpose", k, perm=(0, 2, 1, 3))
            k = self.node("Transpose", k, perm=(0, 1, 3, 2))
        scores = self.node("MatMul", q, k)
        if not self.optimised:
            scores = self.node("Mul", scores, self._number(scale))
        mixed = self.node("MatMul", self.node("Softmax", scores, axis=-1), v)
        mixed = self.node("Reshape", self.node("Transpose", mixed, perm=(0, 2, 1, 3)), joined)
        return self.node("Add", x, self._linear(mixed, WIDTH, WIDTH))

    def feed(self, x: str) -> str:
        """A feed-forward part and a residual."""
        wide = self.node("Relu", self._linear(self._normal(x), 4 * WIDTH, WIDTH))
        if not self.optimised:
            wide = self.node("Identity", wide)
        return self.node("Add", x, self._linear(wide, WIDTH, 4 * WIDTH))


def measure(nodes: int) -> dict[str, Any]:
    """The figures of a pair of so many nodes, the median of some runs."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("a.onnx", "b.onnx", "c.onnx", "d.onnx")]
        counts = [build(nodes, files[k], optimised=bool(k)) for k in range(2)]
        for k in range(2):
            build(_SMALL, files[2 + k], optimised=bool(k))
        runs = [json.loads(_child(*map(str, files))) for _ in range(REPEATS)]
    return {
        "nodes": counts[0],
        "other_nodes": counts[1],
        "seconds": statistics.median(run["seconds"] for run in runs),
        "bytes": max(run["bytes"] for run in runs),
        "verdict": runs[0]["verdict"],
    }


def _child(*arguments: str) -> str:
    command = [sys.executable, "-c", _COMPARE, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def judge(rows: Iterable[Mapping[str, Any]]) -> list[Goal]:
    """The goal, of the rows of at least `NODES` nodes."""
    large = [row for row in rows if row["nodes"] >= NODES]
    if not large:
        return []
    row = min(large, key=lambda one: one["nodes"])
    decided = row["verdict"] in ("equal", "rounded")
    text = f"two models of {NODES} nodes: ≤ {SECONDS:g} s, ≤ {BYTES >> 20} MiB, decided"
    value = f"{row['seconds']:.1f} s, {row['bytes'] >> 20} MiB, {row['verdict']}"
    return [Goal(text, value, decided and row["seconds"] <= SECONDS and row["bytes"] <= BYTES)]


def as_markdown(data: Mapping[str, Any]) -> str:
    """The page of a run."""
    machine = data["machine"]
    lines = [
        "# Two models compared for every size",
        "",
        "Made by `python -m benchmarks pages` of a run of `python -m benchmarks equivalent_scale "
        f"--keep` on {data['date']} ({machine['processor']}); not edited by hand.",
        "",
        "The first model is a generated transformer with two open sizes as an exporter writes it,"
        " the second what an optimiser makes of it (`benchmarks/equivalent_scale.py`). Seconds are"
        f" the median of {REPEATS} processes, with the runs that confirm the proof. Memory is the"
        " peak over that after a small comparison.",
        "",
        *markdown([_HEAD, *map(_cells, data["rows"])]),
        "",
        *markdown([_GOALS, *([g.text, g.value, _yes(g.reached)] for g in judge(data["rows"]))]),
    ]
    return "\n".join(lines) + "\n"


_HEAD = ("nodes", "of the second", "seconds", "MiB", "verdict")
_GOALS = ("goal", "measured", "reached")


def _yes(reached: bool) -> str:
    return "yes" if reached else "no"


def _cells(row: Mapping[str, Any]) -> list[str]:
    size = f"{row['bytes'] / (1 << 20):.0f}"
    return [
        str(row["nodes"]), str(row["other_nodes"]), f"{row['seconds']:.2f}", size, row["verdict"],
    ]  # fmt: skip


def _rows(sizes: Sequence[int]) -> Iterator[dict[str, Any]]:
    for nodes in sizes:
        row = measure(nodes)
        print(*_cells(row), sep="\t", flush=True)
        yield row


def main(arguments: Sequence[str]) -> int:
    """The command: prints a row for each number of nodes; with --keep keeps the run."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks equivalent_scale",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--nodes", type=int, nargs="+", default=[100, 250, NODES])
    parser.add_argument("--keep", action="store_true", help="keep it for the page")
    options = parser.parse_args(arguments)
    print(*_HEAD, sep="\t")
    rows = list(_rows(options.nodes))
    for goal in judge(rows):
        print(f"{goal.text}: {goal.value}: {'reached' if goal.reached else 'not reached'}")
    if options.keep:
        print(f"wrote {_keep(describe(), rows).name}")
    return 0


def _keep(machine: Machine, rows: Sequence[Mapping[str, Any]]) -> Path:
    from datetime import UTC, datetime

    data = {
        "machine": asdict(machine),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "rows": list(rows),
    }
    return keep(EQUIVALENT, machine, json.dumps(data, indent=1) + "\n")
