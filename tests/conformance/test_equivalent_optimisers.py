"""What today's optimisers make of models, compared for every size on ONNX Runtime."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from onnx import parser

import zerostride as zs
from zerostride.models.equivalence import Equivalence

sys.path.insert(0, str(Path(__file__).parents[2]))

from campaigns.equivalent.draw import patterns
from campaigns.equivalent.judge import judge
from campaigns.equivalent.optimisers import Optimiser, optimisers
from campaigns.equivalent.passes import ONNXRUNTIME_RULES, ONNXRUNTIME_TRANSFORMERS
from campaigns.equivalent.result import UNCHANGED
from campaigns.equivalent.steps import compared, results

TEXT = (
    '<ir_version: 8, opset_import: ["" : 17]> g (float[N,4] x) => (float[N,4] y)'
    " { t = Relu(x) u = Identity(t) y = Abs(u) }"
)
KINDS = ("onnxscript", "onnxruntime basic", "onnxruntime extended")


def optimised(name: str, one: onnx.ModelProto) -> Equivalence:
    result = zs.equivalent(one, installed(name).whole(one)).equivalence
    assert result is not None
    return result


def installed(name: str) -> Optimiser:
    every = optimisers()
    if name not in every:
        pytest.skip(f"{name} is not installed")
    return every[name]


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("seed", range(12))
def test_drawn_models_are_proven_equal(name: str, seed: int) -> None:
    assert optimised(name, patterns(900 + seed)).ok


@pytest.mark.slow
def test_no_verdict_is_contradicted_by_a_run() -> None:
    pytest.importorskip("onnxruntime")
    *_, tally = judge(cases=12, seed=5)
    assert not tally.faults, "\n".join(tally.faults)
    assert tally.counts["mutant", "different", "differs"] > 5


@pytest.mark.parametrize(
    "name", ["onnxsim", "onnxslim", "onnxscript", "onnxoptimizer", "onnxruntime all"]
)
def test_every_pass_makes_a_model(name: str) -> None:
    """Each pass alone: one removes the identity, most leave the model as it was, none fails."""
    one = parser.parse_model(TEXT)
    every = [result for result, _ in results(one, installed(name), compared, passes=True)]
    assert len(every) > 20
    ends = {result.step: result.end for result in every}
    assert set(ends.values()) == {"equal", UNCHANGED}, ends
    assert sum(end == UNCHANGED for end in ends.values()) > len(ends) / 2


def test_onnxruntime_has_no_optimiser_that_the_table_lacks() -> None:
    """Its log names each transformer that runs; those left out here always run."""
    installed("onnxruntime all")
    code = (
        "import sys, onnx, onnxruntime as ort\n"
        "from onnx import parser\n"
        f"m = parser.parse_model({TEXT!r})\n"
        "o = ort.SessionOptions()\n"
        "o.log_severity_level = 0\n"
        "ort.InferenceSession(m.SerializeToString(), o, providers=['CPUExecutionProvider'],\n"
        "    disabled_optimizers=set(sys.argv[1:]))\n"
    )
    disabled = [*ONNXRUNTIME_RULES, *ONNXRUNTIME_TRANSFORMERS, "NoSuchOptimiser"]
    done = subprocess.run(
        [sys.executable, "-c", code, *disabled], capture_output=True, text=True, check=True
    )
    ran = set(re.findall(r"GraphTransformer (\w+) modified", done.stderr + done.stdout))
    assert ran <= {
        *("EnsureUniqueDQForNodeUnit", "CastFloat16Transformer", "MemcpyTransformer"),
        *("FuseFp16InitializerToFp32NodeTransformer", "RemoveDuplicateCastTransformer"),
    }
    assert ran
