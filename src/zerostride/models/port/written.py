"""Compound ops that a target lacks, written out before a model is ported.

The ops of the standard that stand for a node are written to a copy of the file, which the port then
reads: they are judged, rewritten and proven like the model's own. If one of them does not mean the
same on the target, the compound node stays as it is.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

from ...errors import ModelError
from ..audit.attended import lacked
from ..audit.audited import Audited, audited
from ..execute import prepare_part, run_part
from ..execute.input_ranges import input_range
from ..execute.part import Parts
from ..execute.program import readable
from ..findings import Change, Finding, Report, Verdict
from ..formats.onnx.prepared import WrittenCopy, write_out
from ..ir.graph import Array, Graph, Node, Value
from ..onnx_ops.written.table import COMPOUNDS
from ..options import ModelOptions
from ..transport.lacking import lacking_ops
from .program import Unwitnessed
from .replay import line_of
from .save import kept_if_done, staging
from .search import Ported

#: The most whole numbers of each draw; masks, lengths and positions are small ones.
_DRAWS = (1, 3, 1, 3)
#: The share of a mask's numbers that are -inf, so that a query lacks every key in some draws.
_MASKED = 0.4
#: The masks of floats among the operands.
_MASKS: Mapping[tuple[str, str], int] = MappingProxyType(
    {
        ("", "Attention"): 3,
        ("com.microsoft", "Attention"): 5,
        ("com.microsoft", "GroupQueryAttention"): 10,
        ("com.microsoft", "MultiHeadAttention"): 5,
    }
)
#: The last op set that a converter takes; a port does not change a file's op set.
_LAST_OPSETS: Mapping[str, int] = MappingProxyType({"onnx-parser": 20})
#: The difference that rounding may make, relative to the largest number.
_TOLERANCE = 1e-4
#: Nodes of more numbers are computed once, and nodes of many more not at all.
_MOST_OFTEN, _MOST = 1 << 22, 1 << 27


class Stays(Exception):  # noqa: N818 - an answer, not a fault
    """Nodes that are not written out after all, and why, by position."""

    def __init__(self, nodes: Mapping[int, str]) -> None:
        super().__init__("; ".join(nodes.values()))
        self.nodes = nodes


@dataclass(frozen=True, slots=True)
class Stage:
    """A model with compound ops written out, or as it was.

    Attributes:
        path, audited: the file that is ported, and its findings.
        changes: a change for each node that was written out.
        makers: the position of the node by the path of each node that stands for it.
        left: by path, why a compound node stays as it is.
        notes: facts for the user.
    """

    path: Path
    audited: Audited
    left: Mapping[str, str]
    changes: tuple[Change, ...] = ()
    makers: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def check(self, ported: Iterable[Ported]) -> None:
        """Checks that every node that stands for another is the same on the target, or ported.

        Raises:
            Stays: it is not.
        """
        words = {one.node.path: one.why for one in ported if one.program is None}
        lacks = lacking_ops(self.audited.graph, self.audited.question.way.name)
        for op, paths in lacks.items():
            words |= dict.fromkeys(paths, f"{self.audited.question.way.name} refuses {op}")
        stays = {
            self.makers[path]: f"written out, {path!r} is not the same there: {why}"
            for path, why in words.items()
            if path in self.makers
        }
        if stays:
            raise Stays(stays)

    def report(self, report: Report, before: Sequence[Finding]) -> Report:
        """The report of a port of the stage, as that of the model."""
        judged = {finding.node for finding in report.findings}
        left = [
            f"{path!r} is not ported: {w}" for path, w in self.left.items() if path not in judged
        ]
        report = replace(report, notes=(*report.notes, *self.notes, *left))
        if not self.changes:
            return report
        return replace(report, before=tuple(before), changes=(*self.changes, *report.changes))


@contextmanager
def written_out(
    path: Path, goal: Path | None, old: Audited, options: ModelOptions, stays: Mapping[int, str]
) -> Iterator[Stage]:
    """The model with the compound ops written out that the target lacks or means otherwise.

    Args:
        path: the model's file.
        goal: where the port goes; the copy lies beside it. None for a dry run.
        old: the model's findings.
        options: how a file is read.
        stays: nodes that stay as they are, and why, by position.

    Raises:
        Stays: a node cannot be proven.
        ModelError: the copy cannot be written, or does not compute the same.
    """
    wanted = {node.place[0]: node for node in _in_need(old) if node.place and len(node.place) == 1}
    left = {node.path: _why_not(old, node) for node in _in_need(old)}
    positions = [place for place in wanted if isinstance(place, int) and place not in stays]
    if _form_refused(old) is not None or not wanted:
        yield Stage(path, old, left)
        return
    left |= {wanted[place].path: why for place, why in stays.items()}
    with _beside(goal, path) as copy:
        result = write_out(path, copy, old.graph, positions)
        left |= {wanted[place].path: why for place, why in result.left.items()}
        if not result.nodes:
            yield Stage(path, old, left)
            return
        with kept_if_done([file for file in result.files if file.stem != copy.stem]):
            try:
                yield _stage(copy, old, options, wanted, left, result)
            except ModelError as error:
                error.args = (str(error).replace(str(copy), str(path)), *error.args[1:])
                raise


def _stage(
    copy: Path,
    old: Audited,
    options: ModelOptions,
    wanted: Mapping[int | str, Node],
    left: Mapping[str, str],
    result: WrittenCopy,
) -> Stage:
    if result.fixed:  # the names of its sizes may be gone
        options = replace(options, sizes=None, input_shapes=None)
    new = audited(options.read(copy), old.question)
    proof = _Proof(old.graph, new.graph)
    changes, stays = [], {}
    for position, names in result.nodes.items():
        try:
            changes.append(_change(proof, wanted[position], names))
        except Unwitnessed as reason:
            stays[position] = str(reason)
    if stays:
        raise Stays(stays)
    makers = {name: position for position, names in result.nodes.items() for name in names}
    notes = tuple(f"the sizes of the input {name!r} are numbers now" for name in result.fixed)
    kept = {path: why for path, why in left.items() if path not in {c.node for c in changes}}
    return Stage(copy, new, kept, tuple(changes), makers, notes)


@contextmanager
def _beside(goal: Path | None, path: Path) -> Iterator[Path]:
    """A file for the copy."""
    if goal is not None:
        with staging(goal) as copy:
            yield copy
        return
    with tempfile.TemporaryDirectory(prefix="zerostride-") as folder:
        yield Path(folder, path.name)


def _in_need(old: Audited) -> list[Node]:
    """The compound nodes that are not the same on the target."""
    lacks = lacking_ops(old.graph, old.question.way.name).values() if _has(old.graph) else ()
    refused = {path for paths in lacks for path in paths}

    def differs(node: Node) -> bool:
        finding = old.findings.get(id(node))
        if finding is None:
            return node.path in refused or lacked(node, old.question.way) is not None
        return finding.verdict is not Verdict.SAME

    return [node for node in old.graph.nodes if _compound(node) and differs(node)]


def _has(graph: Graph) -> bool:
    return any(map(_compound, graph.nodes))


def _compound(node: Node) -> bool:
    return (node.domain, node.op) in COMPOUNDS


def _why_not(old: Audited, node: Node) -> str:
    return _form_refused(old) or "a port writes out nodes of the main graph alone"


def _form_refused(old: Audited) -> str | None:
    """Why no node of this file is written out; None if nodes are."""
    way, version = old.question.way.name, old.graph.version
    if old.graph.format != "onnx":
        return "a port writes it out in ONNX files alone"
    if version > _LAST_OPSETS.get(way, version):
        return f"{way} does not take opset {version}, so it is not written out"
    return None


# The proof.


class _Proof:
    """Nodes of a model and the nodes that stand for them, computed on the same numbers."""

    def __init__(self, old: Graph, new: Graph) -> None:
        self.old, self.new = old, new
        self.parts = Parts(new)
        self.values = {
            value.name: value
            for node in self.parts.nodes
            for value in (*node.inputs, *node.outputs)
            if value is not None
        }
        self.by_name = {node.path: node for node in self.parts.nodes}

    def __call__(self, node: Node, added: Sequence[Node]) -> int:
        """The number of elements that are equal; raises where they differ.

        Raises:
            Unwitnessed: they cannot be computed.
            ModelError: they differ.
        """
        sizes = [value.shape for one in added for value in one.outputs]
        every = sum(_count(shape) for shape in sizes)
        if every > _MOST:
            raise Unwitnessed("it is too large to be computed, so it is not written out")
        wanted = [value for value in node.outputs if value.name]
        count, last = 0, ""
        for seed, most in enumerate(_DRAWS if every <= _MOST_OFTEN else _DRAWS[:1]):
            arrays = _drawn(node, seed, most)
            try:
                before = self._before(node, wanted, arrays)
                after = [self._after(node, value, arrays) for value in wanted]
            except ModelError as error:
                last = str(error)
                continue
            for old, new in zip(before, after, strict=True):
                if not _close(old, new):
                    raise ModelError(
                        f"node {node.path!r}: written out, it computes something else; "
                        "nothing was written"
                    )
                count += old.size
        if not count and last:
            raise Unwitnessed(f"it cannot be computed, so it is not written out: {last}")
        return count

    def _before(
        self, node: Node, wanted: Sequence[Value], arrays: Mapping[int, Array]
    ) -> list[Array]:
        values = {id(node.inputs[place]): array for place, array in arrays.items()}
        return run_part(self.old, prepare_part(self.old, [node], wanted), values)

    def _after(self, node: Node, result: Value, arrays: Mapping[int, Array]) -> Array:
        values = {}
        for place, array in arrays.items():
            operand = node.inputs[place]
            assert operand is not None
            if operand.name in self.values:
                values[id(self.values[operand.name])] = array
        return self.parts.before(self.values[result.name], values.keys()).run(values)


def _count(shape: Sequence[object] | None) -> int:
    count = 1
    for size in shape or ():
        count *= size if isinstance(size, int) else 1
    return count


def _drawn(node: Node, seed: int, most: int) -> dict[int, Array]:
    """Numbers for a node's operands, by position; constants have their own."""
    arrays: dict[int, Array] = {}
    names: dict[str, Array] = {}
    for place, value in enumerate(node.inputs):
        if value is None:
            continue
        if value.name not in names:
            masks = _MASKS.get((node.domain, node.op)) == place
            names[value.name] = _array(node, place, value, seed, most, masks=masks)
        arrays[place] = names[value.name]
    return arrays


def _array(node: Node, place: int, value: Value, seed: int, most: int, *, masks: bool) -> Array:
    if readable(value):
        return value.data()
    rng = np.random.default_rng([seed, place])
    shape = tuple(size for size in value.shape or () if isinstance(size, int))
    kind = np.dtype(value.dtype or "float32")
    if kind.kind == "b":
        return rng.random(shape) > _MASKED
    if kind.kind in "iu":
        meant = input_range(value, {id(value): ((node, place),)})
        low, high = (0, most) if meant is None else (int(meant.least), int(meant.most))
        return rng.integers(low, high + 1, shape).astype(kind)
    array = rng.standard_normal(shape).astype(kind)
    if masks and seed % 2:
        array = np.where(rng.random(shape) < _MASKED, np.array(-np.inf, kind), array)
    return array


def _close(before: Array, after: Array) -> bool:
    if before.shape != after.shape or before.dtype != after.dtype:
        return False
    finite = np.abs(before[np.isfinite(before)])
    most = float(finite.max(initial=0))
    return np.allclose(before, after, rtol=0, atol=_TOLERANCE * most + 1e-6, equal_nan=True)


def _change(proof: _Proof, node: Node, names: Sequence[str]) -> Change:
    added = [proof.by_name[name] for name in names if name in proof.by_name]
    elements = proof(node, added)
    ops = ", ".join(dict.fromkeys(one.op for one in added))
    lines = tuple(map(line_of, added))
    words = f"written out as ops of the standard, which give its numbers up to rounding: {ops}"
    return Change(node.path, node.op, "written out", words, (line_of(node),), lines, elements)
