"""Gradients of fused expressions against torch.autograd: a sample of the campaign."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("torch", reason="its autograd is what gradients are held against")

from zerostride.fuse.vjp_table import RULES, STEPS
from zerostride.measure.__main__ import main
from zerostride.measure.gradients import BOUND, Result, judge, measure, ours
from zerostride.measure.gradients_draw import MOST_STEPS, REDUCTIONS, draw

pytestmark = pytest.mark.conformance


def test_programs_have_pytorch_s_gradients():
    result = measure(400, seed=1)
    assert not result.differences, result.differences
    assert result.cases == 400
    assert 0 < result.worst < BOUND
    assert max(result.steps) == MOST_STEPS
    missing = ({*RULES} | {*REDUCTIONS} | (STEPS - {"nextafter"})) - {*result.ops}
    assert not missing, missing


def test_wrong_gradients_are_found():
    def wrong(program, cotangents):
        results, gradients = ours(program, cotangents)
        return results, [None if one is None else one * (1 + 1e-6) for one in gradients]

    result = Result()
    for case in range(20):
        judge(draw(2, case), f"2:{case}", result, wrong)
    assert result.differing > 10
    assert "gradient" in result.differences[0].text
    assert "return" in result.differences[0].code


@pytest.mark.parametrize("change", ["shape", "dtype", "missing"])
def test_wrong_shapes_and_dtypes_are_found(change):
    def wrong(program, cotangents):
        results, (first, *rest) = ours(program, cotangents)
        first = np.asarray(first)
        changed = {"shape": first[None], "dtype": first.astype("float32"), "missing": None}
        return results, [changed[change], *rest]

    result = Result()
    program = next(
        made for made in (draw(3, case) for case in range(20)) if made.operands[0].dtype == float
    )
    judge(program, "3", result, wrong)
    assert result.differing == 1


def test_programs_are_the_same_for_the_same_seed():
    one, other = draw(4, 7), draw(4, 7)
    assert one.steps == other.steps
    assert all(map(np.array_equal, one.operands, other.operands))


def test_the_command(capsys):
    assert main(["gradients", "--cases", "5", "--seed", "5", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["cases"] == 5
    assert found["differing"] == 0
