"""What today's optimisers make of models, compared for every size on ONNX Runtime."""

from __future__ import annotations

import sys
from pathlib import Path

import onnx
import pytest

import zerostride as zs
from zerostride.models.equivalence import Equivalence

sys.path.insert(0, str(Path(__file__).parents[2]))

from campaigns.equivalent.draw import draw
from campaigns.equivalent.judge import judge
from campaigns.equivalent.optimisers import optimisers

KINDS = ("onnxscript", "onnxruntime basic", "onnxruntime extended")


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
