"""The culprit of a file that its engine refuses as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ...models.bisection import Culprit
from ...models.ir.graph import Graph
from ...models.judging import Difference, Judged


def refused_file(file: Path, graph: Graph, engine: str, failures: Mapping[str, str]) -> Culprit:
    """The layers that a converter left over, or the file where it left none."""
    message = next(iter(failures.values()), "")
    # pnnx keeps what it cannot write for ncnn under PyTorch's names, which have dots.
    left = [node for node in graph.nodes if engine == "ncnn" and "." in node.op]
    cause = fix = ""
    if left:
        ops = ", ".join(sorted({node.op for node in left}))
        cause = f"the converter left layers in {file.name} that {engine} lacks: {ops}"
        fix = "write these nodes in ops that the converter knows, and convert again"
    node = left[0] if left else None
    return Culprit(
        node.path if node is not None else file.name,
        node.op if node is not None else "",
        tuple(node.path for node in left),
        node.outputs[0].name if node is not None and node.outputs else "",
        file.name,
        (),
        float("inf"),
        Judged(Difference.MISSING, float("inf"), detail=message),
        cause=cause or f"{engine} computes no tensor of the file: {message}",
        fix=fix,
    )
