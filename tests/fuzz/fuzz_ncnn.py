"""Hostile .param and .bin files: audits, data and rewrites give a result or one error.

    python tests/fuzz/fuzz_ncnn.py --cases 100000 --seed 0
    python tests/fuzz/fuzz_ncnn.py --seed 0 --case 4711     # one case again, with its traceback

Files are layers of every kind with drawn parameters, several in a row, mutated as bytes, as words
and as lines; half of them have a .bin, too short more often than not. A case fails as those of
fuzz_onnx.py do.
"""

from __future__ import annotations

import contextlib
import random
import sys
from pathlib import Path

import harness
import ncnn_draws as draws
import ncnn_models as made
from hostile_files import ended, engine_of, outcome_of, scratch

from zerostride.errors import ModelError
from zerostride.models.audit.run import audit_graph
from zerostride.models.formats.ncnn import edit, engine, read
from zerostride.models.ir.graph import Graph
from zerostride.models.ir.rewrite import SELF, Earlier, Input, Rewrite, RewriteStep
from zerostride.models.shapes import shapes as shapes_of

#: One of so many cases has the real engine asked, if it is to be asked.
ASK_EVERY = 200
ask_really = engine.ask

NUMBERS = (
    "0",
    "1",
    "-1",
    "2",
    "3",
    "7",
    "16",
    "-233",
    "-234",
    "233",
    "255",
    "65536",
    "2147483647",
    "-2147483648",
    "2147483648",
    "99999999999",
    "1e38",
    "-0.0",
    "1e999",
    "0.5",
    ".5",
    "5.",
    "1e-45",
    "00",
    "+3",
    "0x10",
    "1_000",
    "nan",
    "-inf",
)
WORDS = (
    "in0",
    "in1",
    "out0",
    "Input",
    "BinaryOp",
    "Split",
    "MemoryData",
    "Reshape",
    "Custom",
    "Convolution",
    "Gemm",
    "LSTM",
    "Concat",
    "Crop",
    "0=1",
    "1=1",
    "2=2.0",
    "-23303=3,0,1,2",
    "-23300=999999999,1",
    "3=1,",
    '6="0w,0h,-1"',
    '6="//(0w,0)"',
    '6="*(*(*(0w,0w),0w),0w)"',
    '6="max(9c,1),-1,-1"',
    "-23330=4,3,1,2,3",
    "30=1,2",
    "31=1",
    "\u001b[31m",
    "\u7d50",
    "===",
    "0=",
    "=0",
    "#",
    "\u000b",
    "\f",
    "\u0085",
    "\u00a0",
    "\u2028",
)


def ask_nobody(*_: object) -> tuple[dict[str, tuple[int, ...]], str | None]:
    """Stands in for a child process most of the time: starting one takes 300 cases' time."""
    return {}, "not asked"


def good(rng: random.Random) -> list[str]:
    """Lines of a sound file: some layers, each with inputs of its own, joined by BinaryOps."""
    lines: list[str] = []
    ends: list[str] = []
    for k in range(rng.choice((1, 1, 2, 3))):
        kind, text, shapes, results = rng.choice(draws.DRAWS)(rng)
        named = rng.random() < 0.8
        for j, shape in enumerate(shapes):
            sizes = made.sizes(shape) if named else ""
            source = rng.choice(("Input", "Input", "MemoryData")) if named else "Input"
            lines.append(f"{source} i{k}_{j} 0 1 i{k}_{j} {sizes}".rstrip())
        bottoms = [f"i{k}_{j}" for j in range(len(shapes))]
        tops = [f"o{k}_{j}" for j in range(results)]
        blobs = " ".join((*bottoms, *tops))
        lines.append(f"{kind} op{k} {len(bottoms)} {len(tops)} {blobs} {text}".rstrip())
        ends += tops
    while len(ends) > 1 and rng.random() < 0.9:
        a, b = ends.pop(), ends.pop()
        name = f"sum{len(lines)}"
        lines.append(f"BinaryOp {name} 2 1 {a} {b} {name} 0={rng.randrange(20)}")
        ends.append(name)
    return lines


def mutated_lines(rng: random.Random, lines: list[str]) -> list[str]:
    """Lines with some words exchanged, added, taken away; lines doubled, moved and dropped."""
    lines = list(lines)
    for _ in range(rng.choice((0, 1, 1, 2))):
        if not lines:
            break
        at = rng.randrange(len(lines))
        words = lines[at].split(" ")
        way = rng.randrange(8)
        where = rng.randrange(len(words))
        paired = [k for k, word in enumerate(words) if "=" in word]
        if way <= 4 and paired:
            where = rng.choice(paired)
            key, _, value = words[where].partition("=")
            parts = value.split(",")
            parts[rng.randrange(len(parts))] = rng.choice(NUMBERS)
            words[where] = f"{key}={','.join(parts)}"
        elif way <= 4:
            words[where] = rng.choice((*WORDS, *NUMBERS))
        elif way == 5 and rng.random() < 0.5:
            words.insert(where, rng.choice(WORDS))
        elif way == 5:
            del words[where]
        elif way == 6:
            lines.insert(rng.randrange(len(lines) + 1), lines[at])
            continue
        else:
            lines.insert(rng.randrange(len(lines)), lines.pop(at))
            continue
        lines[at] = " ".join(words)
    return lines


def mutated_bytes(rng: random.Random, data: bytes) -> bytes:
    """Bytes with some exchanged, cut, doubled or put in."""
    content = bytearray(data)
    for _ in range(rng.choice((0, 0, 0, 0, 0, 1, 3))):
        at = rng.randrange(len(content) + 1)
        way = rng.randrange(5)
        if way == 0 and at < len(content):
            content[at] = rng.randrange(256)
        elif way == 1:
            content[at:at] = bytes(rng.randrange(256) for _ in range(rng.randint(1, 5)))
        elif way == 2:
            del content[at : at + rng.randint(1, 20)]
        elif way == 3:
            content[at:at] = content[at : at + rng.randint(1, 200)]
        else:
            content[at:at] = rng.choice((b"\n", b"\r\n", b" ", b"\t", b"9" * 30, b",", b'"', b"="))
    return bytes(content)


def case(seed: int, number: int) -> tuple[bytes, bytes | None]:
    """The files of a case."""
    rng = random.Random(f"{seed}/{number}")
    lines = mutated_lines(rng, good(rng))
    counts = [len(lines), sum(_tops(line) for line in lines)]
    if rng.random() < 0.1:
        counts[rng.randrange(2)] = rng.choice((0, 1, 10**9, 2**31, 2**63))
    text = f"7767517\n{counts[0]} {counts[1]}\n" + "".join(f"{line}\n" for line in lines)
    data = mutated_bytes(rng, text.encode("utf-8", "replace"))
    weights = None
    if rng.random() < 0.5:
        weights = rng.randbytes(rng.choice((0, 3, 4, 40, 400, 4000)))
        if rng.random() < 0.5:
            weights = b"\0" * len(weights)
    return data, weights


def _tops(line: str) -> int:
    words = line.split()
    return min(int(words[3]), 1000) if len(words) > 3 and words[3].isdecimal() else 0


def rewrite_of(rng: random.Random, graph: Graph) -> Rewrite | None:
    """A rewrite of some node, sound or not."""
    nodes = [node for node in graph.nodes if node.place is not None and node.inputs]
    if not nodes:
        return None
    node = rng.choice(nodes)
    operands = [Input(k) for k in range(len(node.inputs))]
    at = rng.randrange(len(operands))
    value = node.inputs[at]
    shape = value.shape if value is not None and value.known else (2, 3)
    numbers = tuple(size for size in shape or () if isinstance(size, int))
    step = rng.choice(
        (
            RewriteStep("reshape", (Input(at),), shape=(1, *numbers)),
            RewriteStep("reshape", (Input(at),), shape=(-1,)),
            RewriteStep("unsqueeze", (Input(at),), axes=(0,)),
            RewriteStep("squeeze", (Input(at),), axes=(0,)),
            RewriteStep("expand", (Input(at),), shape=(2, *numbers)),
            RewriteStep("add", (Input(at), Input(at))),
        )
    )
    rest = [Earlier(0) if k == at else operand for k, operand in enumerate(operands)]
    assert node.place is not None
    return Rewrite(node.place, (step, SELF(*rest)))


def use(path: Path, rng: random.Random, number: int) -> tuple[str, str]:
    """Everything that is done with a file; the outcome, and what it said."""
    graph = read(path)
    report = audit_graph(graph, engine_of(number))
    said = str(report)
    report.to_json()
    report.to_html()
    if number % 10 == 0:
        str(shapes_of(path).to_json())
    for value in graph.values():
        if value.source is not None or value.missing is not None:
            with contextlib.suppress(ModelError):  # missing, and says so
                value.data()
    rewrite = rewrite_of(rng, graph)
    written = ""
    if rewrite is not None:
        editor = edit(path)
        try:
            editor.apply([rewrite])
        except ModelError as error:
            if str(path) not in str(error) or not str(error).isprintable():
                return f"{harness.BAD} a refusal that does not name the file: {error}", said
            written = ", rewrite refused"
        else:
            editor.save(path.with_name("new.param"))
            read(path.with_name("new.param"))
            written = ", rewritten"
    return outcome_of(report) + written, said


def run_case(seed: int, number: int) -> str:
    """How a case ended."""
    engine.ask = ask_really if number % ASK_EVERY == 0 else ask_nobody
    data, weights = case(seed, number)
    path = scratch() / "case.param"
    path.write_bytes(data)
    beside = path.with_suffix(".bin")
    beside.unlink(missing_ok=True)
    if weights is not None:
        beside.write_bytes(weights)
    return ended(path.parent, lambda: use(path, random.Random(number), number))


if __name__ == "__main__":
    sys.exit(harness.main(__file__, run_case, __doc__.splitlines()[0]))
