"""Today's optimisers on the models of `examples/optimisers.json`, and the passes that do it."""

from __future__ import annotations

import importlib.metadata
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import zerostride as zs
from zerostride.models.equivalence import Equivalence

sys.path.insert(0, str(Path(__file__).parents[2]))

from campaigns.equivalent.optimisers import optimisers
from campaigns.equivalent.passes import Optimise
from campaigns.equivalent.steps import compared as compared_models
from campaigns.equivalent.steps import results

EXAMPLES = Path(__file__).parents[2] / "examples"
TABLE = json.loads((EXAMPLES / "optimisers.json").read_text("utf-8"))
FAULTS: list[dict[str, Any]] = TABLE["faults"]
each_fault = pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault["id"])


def file(fault: dict[str, Any], part: str) -> Path:
    return EXAMPLES / "optimisers" / f"{fault['id']}-{part}.onnx"


def needs(fault: dict[str, Any]) -> None:
    """Skips without the release of the row's tool that the table names."""
    name = fault["tool"].split()[0]
    pytest.importorskip(name, reason="the optimiser is an extra, not a test need")
    if importlib.metadata.version(name) != TABLE["releases"][name]:
        pytest.skip(f"another release of {name} than the one that the table names")


def compared(fault: dict[str, Any], optimise: Optimise) -> Equivalence:
    """The row's first model beside what an optimiser makes of it."""
    model = onnx.load(file(fault, "before"))
    result = zs.equivalent(model, optimise(model)).equivalence
    assert result is not None
    return result


def shows(fault: dict[str, Any], result: Equivalence) -> bool:
    """Whether a comparison shows the row's fault."""
    if fault["effect"] == "changed":
        return result.outputs[0].difference is not None
    return result.narrower is not None


@each_fault
def test_todays_release_does_what_the_row_says(fault: dict[str, Any]) -> None:
    needs(fault)
    optimise = optimisers()[fault["tool"]].whole
    result = compared(fault, optimise)
    assert shows(fault, result) == (fault["today"] != "mended")
    if fault["today"] == "mended":
        assert result.ok
    else:
        written = optimise(onnx.load(file(fault, "before")))
        assert zs.equivalent(file(fault, "after"), written).ok, "the file is not what it writes"


@each_fault
def test_the_named_pass_does_it(fault: dict[str, Any]) -> None:
    needs(fault)
    if fault["today"] == "mended":
        pytest.skip("the installed release has no such fault")
    optimiser = optimisers()[fault["tool"]]
    if optimiser.without is not None:
        assert compared(fault, optimiser.without(fault["pass"])).ok
    assert shows(fault, compared(fault, optimiser.passes()[fault["pass"]]))


@each_fault
def test_the_campaign_names_the_pass(fault: dict[str, Any]) -> None:
    needs(fault)
    model = onnx.load(file(fault, "before"))
    every = results(model, optimisers()[fault["tool"]], compared_models, passes=False)
    ends = {result.step: result.end for result, _ in every}
    named = [step for step, end in ends.items() if step and end == "different"]
    if fault["today"] == "mended":
        assert list(ends) == [""]
    else:
        assert fault["pass"] in named
        assert len(named) < 5, "all passes would be no answer"


@pytest.mark.parametrize(
    "fault", [f for f in FAULTS if "onnxruntime" in f["tool"]], ids=lambda fault: fault["id"]
)
def test_onnxruntime_does_it_at_its_default_level(fault: dict[str, Any]) -> None:
    """The model works without optimisation, and changes or fails with it."""
    needs(fault)
    import onnxruntime

    before = onnx.load(file(fault, "before"))
    dims = before.graph.input[0].type.tensor_type.shape.dim
    shape = [dim.dim_value or fault["sizes"][dim.dim_param] for dim in dims]
    feeds = {"x": np.random.default_rng(0).random(shape, "float32")}

    def run(*, optimised: bool) -> Any:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        if not optimised:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(before.SerializeToString(), options)
        return session.run(None, feeds)[0]

    plain = run(optimised=False)
    if fault["effect"] == "refuses":
        with pytest.raises(Exception, match="broadcast"):
            run(optimised=True)
    else:
        assert not np.allclose(plain, run(optimised=True), atol=1e-2)
