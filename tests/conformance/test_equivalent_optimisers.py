"""What today's optimisers make of models, compared for every size on ONNX Runtime."""

from __future__ import annotations

import sys
from pathlib import Path

import onnx
import pytest
from onnx import parser

import zerostride as zs
from zerostride.models.equivalence import Equivalence, Sameness

sys.path.insert(0, str(Path(__file__).parents[2]))

from campaigns.equivalent.draw import draw
from campaigns.equivalent.judge import judge
from campaigns.equivalent.optimisers import optimisers

HEAD = '<ir_version: 8, opset_import: ["" : 17]> g '
KINDS = ("onnxscript", "onnxruntime basic", "onnxruntime extended")


def model(text: str) -> onnx.ModelProto:
    return parser.parse_model(HEAD + text)


def optimised(name: str, one: onnx.ModelProto) -> Equivalence:
    pytest.importorskip("onnxscript" if name == "onnxscript" else "onnxruntime")
    result = zs.equivalent(one, dict(optimisers())[name](one)).equivalence
    assert result is not None
    return result


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("seed", range(12))
def test_drawn_models_are_proven_equal(name: str, seed: int) -> None:
    assert optimised(name, draw(900 + seed)).ok


def test_no_verdict_is_contradicted_by_a_run() -> None:
    pytest.importorskip("onnxruntime")
    *_, tally = judge(cases=12, seed=5)
    assert not tally.faults, "\n".join(tally.faults)
    assert tally.counts["mutant", "different", "differs"] > 5


def test_onnxscript_drops_a_small_number() -> None:
    """0.7.2 takes 1e-8 for 0: the logarithm of silence becomes minus infinity."""
    result = optimised(
        "onnxscript",
        model(
            "(float[N,4] x) => (float[a,b] y) <float e={0.00000001}>"
            " { r = Relu(x) t = Add(r, e) y = Log(t) }"
        ),
    )
    assert result.verdict is Sameness.DIFFERENT
    difference = result.outputs[0].difference
    assert difference is not None
    assert difference.engine.startswith("onnxruntime")


def test_onnxruntime_turns_a_difference_round() -> None:
    """1.32 takes mean - x for x - mean where it joins a normalisation, at its default level."""
    result = optimised(
        "onnxruntime extended",
        model(
            "(float[N,4] x) => (float[a,b] y) <float two={2}, float e={0.001},"
            " float[4] g={1,2,3,4}, float[4] c={1,1,1,1}> { m = ReduceMean<axes=[-1]>(x)"
            " d = Sub(m, x) p = Pow(d, two)"
            " v = ReduceMean<axes=[-1]>(p) w = Add(v, e) r = Sqrt(w) q = Div(d, r) s = Mul(q, g)"
            " y = Add(s, c) }"
        ),
    )
    assert result.verdict is Sameness.DIFFERENT
    difference = result.outputs[0].difference
    assert difference is not None
    assert difference.error > 0.1
