"""Arithmetic of shapes: nodes that compute sizes from sizes.

Exporters write Shape, Gather, Mul, Concat in front of a Reshape. Converters compute these nodes
before the model runs, so they mean the same on every target.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from ..findings import Finding, Verdict
from ..ir.graph import Graph, Node, Value
from ..reasons import Cause

#: Ops that return the sizes of a tensor, as ONNX, OpenVINO and MNN call them.
_MAKES = frozenset({"Shape", "Size", "ShapeOf", "Rank"})
#: Ops that read sizes, axes or counts, and at which inputs.
_READS: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {
        "Broadcast": (1, 2),
        "BroadcastTo": (1,),
        "ConstantOfShape": (0,),
        "CumSum": (1,),
        "Expand": (1,),
        "ExpandDims": (1,),
        "Fill": (0,),
        "GatherElements": (2,),
        "GatherV2": (2,),
        "If": (0,),
        "Interp": (1,),
        "Interpolate": (1, 2),
        "Loop": (0,),
        "OneHot": (1,),
        "Pad": (1, 2, 3),
        "Padding": (1,),
        "Range": (0, 1, 2),
        "Reshape": (1,),
        "Resize": (1, 2, 3),
        "ScatterElements": (3,),
        "Slice": (1, 2, 3, 4),
        "SliceTf": (1, 2),
        "Split": (1,),
        "Squeeze": (1,),
        "StridedSlice": (1, 2, 3, 4),
        "Tile": (1,),
        "TopK": (1,),
        "Trilu": (1,),
        "Unsqueeze": (1,),
        "Upsample": (1,),
        "VariadicSplit": (1, 2),
    }
)
#: Ops whose numbers no converter can compute.
_RANDOM = ("Random", "Multinomial", "Bernoulli")


def shape_arithmetic(graph: Graph) -> frozenset[int]:
    """The identities of the nodes that compute sizes from sizes, for readers of sizes alone.

    Numbers that do not depend on open sizes may have any reader: to a converter they are constants.
    """
    candidates = _candidates(graph)
    if not candidates:
        return frozenset()
    kept = {id(value) for value in graph.outputs}
    for node in graph.nodes:
        for body in node.bodies:
            kept.update(id(value) for value in body.outputs if value is not None)
    uses = graph.uses
    sizing: set[int] = set()
    for node in reversed(candidates):
        if all(
            _only_sizes(value, uses, sizing, kept) or (_fixed(value) and id(value) not in kept)
            for value in node.outputs
        ):
            sizing.add(id(node))
    return frozenset(sizing)


def counted(finding: Finding) -> Finding:
    """The finding of arithmetic of shapes: the same on every target, as converters fold it.

    The finding of arithmetic that fails in the model itself is unchanged.
    """
    if finding.verdict is Verdict.SAME or finding.reason == Cause.INVALID:
        return finding
    return replace(
        finding,
        verdict=Verdict.SAME,
        reason=Cause.FOLDED,
        message="computes sizes from sizes, which converters fold",
        fix=None,
        witness=None,
        notes=(),
        when=None,
        values=None,
        divergences=(),
    )


def _candidates(graph: Graph) -> list[Node]:
    """Nodes of numbers and vectors that depend on sizes and constants alone, in order."""
    sized: set[int] = set()
    candidates = []
    for node in graph.nodes:
        if node.op in _MAKES:
            sized.update(map(id, node.outputs))
            continue
        inputs = [value for value in node.inputs if value is not None]
        free = [value for value in inputs if not value.constant]
        if not free or node.bodies or node.op.startswith(_RANDOM):
            continue
        small = all(value.shape is not None and len(value.shape) <= 1 for value in node.outputs)
        if small and all(id(value) in sized for value in free):
            sized.update(map(id, node.outputs))
            candidates.append(node)
    return candidates


def _only_sizes(
    value: Value,
    uses: Mapping[int, tuple[tuple[Node, int], ...]],
    sizing: set[int],
    kept: set[int],
) -> bool:
    """Whether a tensor is read by nothing but readers of sizes."""
    if id(value) in kept:
        return False
    return all(
        id(reader) in sizing or position in _READS.get(reader.op, ())
        for reader, position in uses.get(id(value), ())
    )


def _fixed(value: Value) -> bool:
    """Whether all numbers of a tensor are known without any open size."""
    return value.content is not None and all(isinstance(number, int) for number in value.content)


def folding_note(count: int) -> tuple[str, ...]:
    """A report's note on the nodes that are not judged."""
    if not count:
        return ()
    many = "broadcasts compute" if count > 1 else "broadcast computes"
    return (f"{count} {many} sizes from sizes: counted as the same, since converters fold that",)
