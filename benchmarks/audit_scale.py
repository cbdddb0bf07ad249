"""The time and memory of an audit by the model's number of nodes, without loading.

    python benchmarks/audit_scale.py [--nodes 1000 10000 100000] [--kind KIND] [--target ncnn]
                                     [--weights MB] [--json]

Three sorts of ONNX models are generated: `blocks` is a deep transformer whose blocks differ in
names alone, some of their constants shared; in `shapes` no two nodes have the same shapes;
`dynamic` is `blocks` with a batch and a length that are free. `--weights` spreads that many MB of
initialisers over the model.

Every figure comes from a process of its own. *Load* is onnx.load, what every tool pays; *audit* is
the time of the whole audit without that, by the clock; *cpu* is the same in seconds in which the
process was busy, and growth is that of it. Memory is its peak over what it had after its imports,
that of the inference it starts included, beside the size of the file.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

#: Width of the generated transformer.
WIDTH = 8
#: Heads of its attention.
HEADS = 2
KINDS = ("blocks", "shapes", "dynamic")

_LOAD = """
import sys, time
import onnx
start, busy = time.perf_counter(), time.process_time()
onnx.load(sys.argv[1])
print(time.perf_counter() - start, time.process_time() - busy)
"""

_AUDIT = """
import json, resource, sys, time
import numpy, onnx, onnx.shape_inference, onnx.inliner, onnx.numpy_helper, onnx.checker
from zerostride.models.audit.run import audit
import zerostride.models.formats.onnx.format

def peak(key="VmHWM"):
    # Not getrusage, whose peak starts with what the parent had.
    with open("/proc/self/status") as file:
        (line,) = (line for line in file if line.startswith(key))
    return int(line.split()[1]) * 1024

before = peak("VmRSS")
start, busy = time.perf_counter(), time.process_time()
report = audit(sys.argv[1], target=sys.argv[2])
middle, idle = time.perf_counter(), time.process_time()
used = peak() - before
shown = time.perf_counter()
length = len(report.to_json())
written = time.perf_counter()
str(report)
said = time.perf_counter()
print(json.dumps({
    "audit": middle - start, "cpu": idle - busy, "json": written - shown, "text": said - written,
    "bytes": used + resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024,
    "findings": len(report.findings), "ok": report.ok, "json_bytes": length,
    "counts": report.counts, "notes": report.notes[:5],
}))
"""


class Builder:
    """A graph that grows node by node."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: list[Any] = []

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Adds a node; returns the name of its result."""
        from onnx import helper

        name = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=f"n_{name}", **attributes))
        return name

    def constant(self, array: Any) -> str:
        """Adds an initialiser; returns its name."""
        from onnx import numpy_helper

        name = f"c_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def input(self, name: str, shape: Any) -> str:
        """Adds a graph input; returns its name."""
        from onnx import TensorProto, helper

        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return name

    def save(self, result: str, file: Path) -> None:
        """Writes the model."""
        from onnx import TensorProto, helper, save

        output = helper.make_tensor_value_info(result, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "g", self.inputs, [output], self.constants)
        opset = [helper.make_opsetid("", 17)]
        save(helper.make_model(graph, opset_imports=opset, ir_version=8), str(file))


def transformer(build: Builder, nodes: int, shape: Any, megabytes: int) -> str:
    """Blocks of attention, normalisation written out, and a feed-forward part."""
    import numpy as np

    rng = np.random.default_rng(0)
    x = build.input("x", shape)
    mask = build.input("mask", (1, 1, *shape[1:2], *shape[1:2]))
    blocks = max(nodes // 27, 1)
    rows = max(megabytes * 250_000 // (blocks * WIDTH), 1) if megabytes else 4 * WIDTH
    epsilon = build.constant(np.float32(1e-5))
    two = build.constant(np.float32(2))
    scale = build.constant(np.full((1,), 0.5, np.float32))
    split = build.constant(np.array([0, 0, HEADS, WIDTH // HEADS], np.int64))
    joined = build.constant(np.array([0, 0, WIDTH], np.int64))
    shared = build.constant(rng.standard_normal((WIDTH, WIDTH), np.float32))
    while len(build.nodes) < nodes:
        weight = build.constant(rng.standard_normal((WIDTH, WIDTH), np.float32))
        q, k = (
            build.node("Transpose", build.node("Reshape", part, split), perm=(0, 2, 1, 3))
            for part in (build.node("MatMul", x, weight), build.node("MatMul", x, shared))
        )
        scores = build.node("MatMul", q, build.node("Transpose", k, perm=(0, 1, 3, 2)))
        scores = build.node("Add", build.node("Mul", scores, scale), mask)
        mixed = build.node("MatMul", build.node("Softmax", scores, axis=-1), k)
        mixed = build.node("Reshape", build.node("Transpose", mixed, perm=(0, 2, 1, 3)), joined)
        x = build.node("Add", x, mixed)
        mean = build.node("ReduceMean", x, axes=(-1,), keepdims=1)
        centred = build.node("Sub", x, mean)
        spread = build.node("ReduceMean", build.node("Pow", centred, two), axes=(-1,), keepdims=1)
        normal = build.node("Div", centred, build.node("Sqrt", build.node("Add", spread, epsilon)))
        gain = build.constant(rng.standard_normal(WIDTH, np.float32))
        normal = build.node("Add", build.node("Mul", normal, gain), gain)
        up = build.constant(rng.standard_normal((WIDTH, rows), np.float32))
        down = build.constant(np.zeros((rows, WIDTH), np.float32)) if not megabytes else None
        wide = build.node("Relu", build.node("MatMul", normal, up))
        if down is None:
            wide = build.node("MatMul", wide, build.node("Transpose", up, perm=(1, 0)))
        else:
            wide = build.node("MatMul", wide, down)
        x = build.node("Add", x, wide)
    return x


def unlike(build: Builder, nodes: int) -> str:
    """Additions and products of which no two have the same shapes."""
    column = build.input("column", (3, 1))
    row = total = ""
    while len(build.nodes) < nodes:
        size = len(build.nodes) + 2
        row = build.input(f"x_{size}", (1, 2, 1, size))
        total = build.node("Add", row, column)
        total = build.node("Mul", total, row)
        total = build.node("Sub", row, build.node("ReduceMean", total, axes=(1,), keepdims=0))
    return total


def generate(kind: str, nodes: int, file: Path, megabytes: int = 0) -> None:
    """Writes a model of a sort and a number of nodes."""
    build = Builder()
    if kind == "shapes":
        result = unlike(build, nodes)
    else:
        shape = ("batch", "length", WIDTH) if kind == "dynamic" else (1, 6, WIDTH)
        result = transformer(build, nodes, shape, megabytes)
    build.save(result, file)


def measure(kind: str, nodes: int, target: str, megabytes: int) -> dict[str, Any]:
    """The figures of one model."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "m.onnx"
        generate(kind, nodes, file, megabytes)
        loads = [tuple(map(float, _child(_LOAD, str(file)).split())) for _ in range(3)]
        load, busy = map(min, zip(*loads, strict=True))
        found: dict[str, Any] = json.loads(_child(_AUDIT, str(file), target))
        size = file.stat().st_size
    beyond = {"audit": found["audit"] - load, "cpu": found["cpu"] - busy}
    row = {"kind": kind, "nodes": nodes, "file_bytes": size, "load": load, **found, **beyond}
    return {**row, "memory_ratio": found["bytes"] / size}


def _child(program: str, *arguments: str) -> str:
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def rows(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A row for each sort and number of nodes."""
    for kind in options.kind or KINDS:
        last = None
        for nodes in options.nodes:
            row = measure(kind, nodes, options.target, options.weights)
            row["growth"] = None if last is None else row["cpu"] / last["cpu"]
            last = row
            yield row


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--kind", choices=KINDS, action="append")
    parser.add_argument("--target", default="ncnn")
    parser.add_argument("--weights", type=int, default=0, metavar="MB")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.json:
        print(json.dumps(list(rows(options)), indent=1))
        return 0
    print(
        f"{'model':8} {'nodes':>8} {'file MB':>8} {'load s':>7} {'audit s':>8} {'cpu s':>7} "
        f"{'growth':>7} {'peak MB':>8} {'of file':>8} {'findings':>9} {'json s':>7} {'text s':>7}"
    )
    for row in rows(options):
        growth = "" if row["growth"] is None else f"{row['growth']:.1f}"
        print(
            f"{row['kind']:8} {row['nodes']:8} {row['file_bytes'] / 1e6:8.1f} {row['load']:7.2f} "
            f"{row['audit']:8.2f} {row['cpu']:7.2f} {growth:>7} {row['bytes'] / 1e6:8.0f} "
            f"{row['memory_ratio']:8.2f} {row['findings']:9} {row['json']:7.2f} {row['text']:7.2f}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
