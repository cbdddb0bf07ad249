"""The proof that each rewrite of a port gives the same for every size."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import parser

import zerostride as zs
from zerostride.models.equivalence import Sameness
from zerostride.models.equivalent.node_proofs import NodeProofs
from zerostride.models.flow.resolved import resolved
from zerostride.models.formats import read_model
from zerostride.models.ir.graph import Graph
from zerostride.sizes.condition import ALWAYS

EXAMPLES = Path(__file__).parents[2] / "examples"
MODELS = [*sorted(EXAMPLES.glob("bugs/*.onnx")), *sorted(EXAMPLES.glob("*_dynamic.onnx"))]
HEAD = '<ir_version: 8, opset_import: ["" : 17]> net '


@pytest.mark.parametrize("target", ["ncnn", "tosa", "litert"])
@pytest.mark.parametrize("file", MODELS, ids=lambda file: file.stem)
def test_every_rewrite_is_proven(file: Path, target: str, tmp_path: Path) -> None:
    report = zs.port(file, target, tmp_path / "out.onnx", via="none")
    # A normalisation that is written out is the same but for rounding.
    ends = {change.every_size for change in report.changes}
    assert ends <= ({"equal", "rounded"} if target == "tosa" else {"equal"})


def graph(text: str, tmp_path: Path, name: str) -> Graph:
    file = tmp_path / f"{name}.onnx"
    onnx.save(parser.parse_model(HEAD + text), file)
    return resolved(read_model(file), ALWAYS)[0]


@pytest.mark.parametrize(
    ("axis", "scale", "verdict"),
    [
        (1, 1, Sameness.EQUAL),
        (0, 1, Sameness.UNDECIDED),  # columns instead of rows
        (1, 2, Sameness.UNDECIDED),
    ],
)
def test_a_wrong_rewrite_is_not(axis: int, scale: int, verdict: Sameness, tmp_path: Path) -> None:
    inputs = "(float[N,T,T] x, float[N,T] gain) => (float[N,T,T] y)"
    before = graph(
        f"{inputs} <int64[1] k={{1}}> {{ g = Unsqueeze(gain, k) y = Mul(x, g) }}",
        tmp_path,
        "before",
    )
    after = graph(
        f"{inputs} <int64[1] k={{1}}, int64[1] z={{{axis}}}, float s={{{scale}}}>"
        " { g = Unsqueeze(gain, k) h = Transpose<perm=[0,2,1]>(x) i = Transpose<perm=[0,2,1]>(h)"
        " j = Squeeze(g, k) l = Unsqueeze(j, z) m = Mul(i, l) y = Mul(m, s) }"
        if axis
        else f"{inputs} <int64[1] k={{1}}, int64[1] z={{2}}>"
        " { g = Unsqueeze(gain, k) j = Squeeze(g, k) l = Unsqueeze(j, z) y = Mul(x, l) }",
        tmp_path,
        "after",
    )
    old = (before, before.nodes[1])
    new = (after, after.nodes[1:])
    assert NodeProofs().verdict(old, new, ALWAYS) is verdict
