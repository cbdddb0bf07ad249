"""``python -m campaigns litert-graphs``: random .tflite graphs on LiteRT, against the source rule.

Every third graph is a chain of ops, the others are one op. LiteRT's CPU runtime computes every
tensor of a graph in a child process. The sizes and numbers of each tensor must be those of
zerostride. What zerostride says is refused, or ends the process, must be so.
"""

from __future__ import annotations

import json
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from rich.table import Table

from zerostride.engines.supports import dtype_limit
from zerostride.engines.table import ENGINES
from zerostride.errors import BroadcastError, EngineVersionWarning, Reason, ZerostrideError
from zerostride.models.audit.run import audit
from zerostride.models.execute import execute, not_executed
from zerostride.models.findings import Finding, Outcome, Verdict
from zerostride.models.flow.resolved import resolved
from zerostride.models.formats import read_model
from zerostride.models.ir.graph import Array, Graph, Node, Value
from zerostride.models.reasons import Cause
from zerostride.ops import OPS
from zerostride.runtimes.files import tensors
from zerostride.runtimes.process import CASE_SECONDS, Process, running
from zerostride.runtimes.task import Reply, ReplyKind
from zerostride.runtimes.verify.compare import compare, tolerance

from ..seeded import print_wide, progress
from .litert_draw import chain, numbers, one

#: Ends of a case: the interpreter computes the expected numbers; it refuses; its process ends; it
#: computes something else, as expected; or something happens that is not expected.
AGREES, REFUSED, ENDED, WRONG, DIFFERS = "agrees", "refused", "ended", "wrong", "DIFFERS"
_ENDS = (AGREES, REFUSED, ENDED, WRONG, DIFFERS)
_MOST_SHOWN = 20


@dataclass
class OpTally:
    """The results of the graphs of one op.

    Attributes:
        ends: graphs by their end.
        tensors: tensors whose sizes and numbers were compared.
        differing: what differs: case and words.
    """

    ends: Counter[str] = field(default_factory=Counter)
    tensors: int = 0
    differing: list[tuple[int, str]] = field(default_factory=list)


def model_of(seed: int, case: int) -> tuple[str, bytes]:
    """The op of a case, or "chain", and its file."""
    number = seed * 1_000_003 + case
    model = chain(number) if case % 3 == 2 else one(number)
    kind = "chain" if case % 3 == 2 else model.main.ops[0].kind
    return kind, model.data()


def judge(path: Path, case: int, process: Process) -> tuple[str, int, str]:
    """The end of a case, the number of compared tensors, and the differences."""
    graph = resolved(read_model(path))[0]
    findings = audit(path, "litert").findings
    nodes = {node.path: node for node in graph.nodes}
    expected = {end for finding in findings for end in expectation(finding, nodes[finding.node])}
    if not findings:
        if not all(map(_of_matrices, graph.nodes)):
            return DIFFERS, 0, "no finding"
        expected = {AGREES, REFUSED}  # nothing broadcasts; it has few element types
    expected |= {end for node in graph.nodes for end in _ends_of_numbers(node)}
    values = [value for node in graph.nodes if not node.scope for value in node.outputs]
    inputs = {
        value.name: numbers(case + place, _sizes(value), value.dtype or "")
        for place, value in enumerate(graph.inputs)
    }
    reply = tensors(process, path, inputs, [value.name for value in values])
    if reply.kind is ReplyKind.RESULT and AGREES in expected:
        if words := different(graph, values, inputs, reply):
            return DIFFERS, 0, words
        return AGREES, len(values), ""
    end = _END_OF.get(reply.kind, DIFFERS)
    # An engine that computes something else may end, too.
    if end in expected or (end in (WRONG, ENDED) and WRONG in expected):
        return end, 0, ""
    return DIFFERS, 0, f"expected: {', '.join(sorted(expected))}; LiteRT {reply.describe()}"


_END_OF = {
    ReplyKind.RESULT: WRONG,
    ReplyKind.REFUSED: REFUSED,
    ReplyKind.CRASHED: ENDED,
}
#: Ops whose float16 the runtime takes with XNNPACK alone, and the most axes of a product without.
#: Tensors inside a graph are seen without XNNPACK alone; a graph of which only outputs are asked
#: runs with it then. Both are in the engine table.
_FLOAT16 = frozenset({"SUB", "DIV", "SQUARED_DIFFERENCE", "BATCH_MATMUL"})
_PRODUCT_RANK = 5


_LARGEST = np.finfo(np.float32).max
#: A number as large is the result of a division by 0.
_HUGE = 1e30


def _of_matrices(node: Node) -> bool:
    """Whether a node is a product of two matrices, which have no batches to broadcast."""
    shapes = [value.shape for value in node.inputs if value is not None]
    return node.op == "BATCH_MATMUL" and all(s is not None and len(s) == 2 for s in shapes)


def _ends_of_numbers(node: Node) -> frozenset[str]:
    """The ends that depend on numbers, which an audit does not look at."""
    divisor = node.inputs[1] if len(node.inputs) > 1 else None
    if divisor is None:
        return frozenset()
    if node.op == "DIV" and divisor.quantised:
        return frozenset({REFUSED})  # a number that is the zero point
    # Reads the first number of a constant that has none; whether it dies of that varies.
    empty = any(v is not None and v.constant and 0 in (v.shape or ()) for v in node.inputs)
    return frozenset({ENDED} if node.op in ("ADD", "MUL") and empty else ())


def expectation(finding: Finding, node: Node) -> frozenset[str]:
    """The ends of a graph that a finding about LiteRT itself allows."""
    first = node.inputs[0]
    assert first is not None
    if node.op == "BATCH_MATMUL":
        shapes = [value.shape or () for value in node.inputs if value is not None]
        if max(map(len, shapes)) > _PRODUCT_RANK:
            return frozenset({AGREES, REFUSED})
        # Without XNNPACK it takes empty batches.
        if finding.reason == Cause.INVALID and any(0 in shape for shape in shapes):
            return frozenset({AGREES, REFUSED})
    half = first.dtype == "float16" and node.op in _FLOAT16
    source = finding.source
    if isinstance(source, BroadcastError):
        # An element type without a kernel is refused before shapes do harm.
        refused = not source.silent or half or _without_kernel(node.op, first.dtype or "")
        return frozenset({REFUSED if refused else WRONG, *({WRONG} if half else ())})
    if finding.verdict is Verdict.SAME:
        return frozenset({AGREES, REFUSED} if half else {AGREES})
    if finding.verdict is Verdict.DIFFERENT:
        return frozenset({WRONG})
    if finding.reason == Reason.CRASH:
        return frozenset({ENDED})
    # A kernel is not asked for the numbers of an empty result.
    empty = {AGREES} if 0 in (node.outputs[0].shape or ()) else set()
    return frozenset(
        {REFUSED if finding.verdict is Verdict.REFUSED else str(finding.verdict), *empty}
    )


def _without_kernel(op: str, dtype: str) -> bool:
    """Whether the runtime refuses an op on an element type."""
    row = next((row for row in OPS.values() if op in map(str, row.names.get("litert", ()))), None)
    limit = dtype_limit(ENGINES["litert"], row.name, dtype) if row is not None else None
    return limit is not None and limit.effect is Reason.DTYPE


def different(
    graph: Graph, values: Sequence[Value], inputs: Mapping[str, Array], reply: Reply
) -> str:
    """The differences between the interpreter's tensors and zerostride's, or ""."""
    if left := not_executed(graph):
        return f"not executed: {left}"
    with np.errstate(all="ignore"):
        ours = execute(graph, inputs, [value.name for value in values])
    for value, theirs in zip(values, reply.arrays, strict=True):
        expected = ours[value.name]
        if value.shape != theirs.shape:
            return f"{value.name}: {theirs.shape}, and the rule gives {value.shape}"
        if theirs.dtype != expected.dtype:
            return f"{value.name}: {theirs.dtype}, not {expected.dtype}"
        if expected.dtype == np.float32:
            # Its kernels clamp to the finite numbers, for an activation or for none.
            expected = np.nan_to_num(expected, nan=np.nan)
            theirs = np.nan_to_num(theirs, nan=np.nan)
            # What follows a clamped number is computed from it, and not from infinity.
            clamped = (np.abs(expected) == _LARGEST) & (theirs / _LARGEST * expected > _HUGE)
            theirs = np.where(clamped, expected, theirs)
        most = tolerance("litert", "pow", theirs.dtype, compound=len(values) > 1)
        agreement = compare(expected, theirs, most, steps=1 if value.quantised else 0)
        if agreement.outcome is not Outcome.AGREES:
            return f"{value.name}: {agreement.detail}"
    return ""


def _sizes(value: Value) -> tuple[int, ...]:
    assert value.shape is not None
    return tuple(size for size in value.shape if isinstance(size, int))


def run(cases: int, seed: int, first: int, as_json: bool) -> int:
    """Measures and prints; 0 where nothing differs, 1 otherwise, 2 where LiteRT does not run."""
    try:
        tallies = measure(range(first, first + cases), seed, as_json)
    except ZerostrideError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if as_json:
        print(json.dumps({kind: tally.__dict__ for kind, tally in sorted(tallies.items())}))
    else:
        _print(tallies)
    return 1 if any(tally.differing for tally in tallies.values()) else 0


def measure(cases: range, seed: int, quiet: bool = True) -> dict[str, OpTally]:
    """The tallies of so many cases, by op."""
    tallies: dict[str, OpTally] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        running("litert", CASE_SECONDS) as process,
        progress("graphs", len(cases), quiet) as advance,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", EngineVersionWarning)
        path = Path(folder, "graph.tflite")
        for case in cases:
            kind, data = model_of(seed, case)
            path.write_bytes(data)
            try:
                end, count, words = judge(path, case, process)
            except (ZerostrideError, BroadcastError) as error:
                end, count, words = DIFFERS, 0, f"zerostride: {error}"
            tally = tallies.setdefault(kind, OpTally())
            tally.ends[end] += 1
            tally.tensors += count
            if words:
                tally.differing.append((case, words))
            advance()
    return tallies


def _print(tallies: dict[str, OpTally]) -> None:
    table = Table("op", "graphs", *_ENDS, "tensors")
    for column in table.columns[1:]:
        column.justify = "right"
    for kind, tally in sorted(tallies.items()):
        counts = [tally.ends.total(), *(tally.ends[end] for end in _ENDS), tally.tensors]
        table.add_row(kind, *(f"{count:,}" for count in counts))
    print_wide(table)
    differing = [(*row, kind) for kind, tally in tallies.items() for row in tally.differing]
    for case, words, kind in sorted(differing)[:_MOST_SHOWN]:
        print(f"case {case}: {kind}: {words}")
    graphs = sum(tally.ends.total() for tally in tallies.values())
    print(f"{len(differing)} differences in {graphs:,} graphs")


__all__ = ["expectation", "judge", "measure", "model_of", "run"]
