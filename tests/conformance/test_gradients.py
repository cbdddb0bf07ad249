"""Gradients of fused functions compared with torch.autograd: a sample of the campaign."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch", reason="its autograd is what gradients are held against")

from campaigns.__main__ import main
from campaigns.gradients.command import BOUND, Result, judge, measure, own_results
from campaigns.gradients.draw import MOST_STEPS, REDUCTIONS, draw
from campaigns.gradients.in_torch import Judged

from zerostride.fusion.grad.table import RULES, STEPS

pytestmark = pytest.mark.conformance


def test_gradients_of_programs_match_pytorch():
    result = measure(400, seed=1)
    assert not result.differences, result.differences
    assert result.cases == 400
    assert 0 < result.worst < BOUND
    assert max(result.steps) == MOST_STEPS
    missing = ({*RULES} | {*REDUCTIONS} | (STEPS - {"nextafter"})) - {*result.ops}
    assert not missing, missing


def test_comparison_finds_wrong_gradients():
    def wrong(program, cotangents):
        results, gradients = own_results(program, cotangents)
        return results, [None if one is None else one * (1 + 1e-6) for one in gradients]

    result = Result()
    for case in range(20):
        judge(draw(2, case), f"2:{case}", result, wrong)
    assert result.differing > 10
    assert "gradient" in result.differences[0].text
    assert "return" in result.differences[0].code


#: A rounding of a gradient, and of the float32 in which 16-bit floats are computed.
ROUNDING = {"float64": 1e-12, "float32": 1e-6, "float16": 1e-3, "bfloat16": 8e-3}


@pytest.mark.parametrize("half", ["float16", "bfloat16"])
def test_narrow_operands_are_rounded_once(half):
    """The same programs with operands of several dtypes, beside float64's gradients of them."""
    if half == "bfloat16":
        half = pytest.importorskip("ml_dtypes").bfloat16
    judged = 0
    for case in range(60):
        program, rng = draw(6, case), np.random.default_rng(case)
        if half != "float16" and any(x.dtype == np.int64 for x in program.operands):
            continue  # which NumPy does not promote with it
        dtypes = [
            rng.choice([np.dtype("float64"), np.dtype("float32"), np.dtype(half)])
            if x.dtype == np.float64
            else x.dtype
            for x in program.operands
        ]
        narrow = [x.astype(dtype) for x, dtype in zip(program.operands, dtypes, strict=True)]
        wide = [x.astype(given.dtype) for x, given in zip(narrow, program.operands, strict=True)]
        shapes = map(np.shape, Judged(replace(program, operands=tuple(wide))).results)
        cotangents = [np.asarray(rng.integers(-2, 3, shape) / 2.0) for shape in shapes]
        expected = Judged(replace(program, operands=tuple(wide)), cotangents)
        _, gradients = own_results(replace(program, operands=tuple(narrow)), cotangents)
        for x, mine, theirs in zip(narrow, gradients, expected.gradients, strict=True):
            if theirs is None:
                assert mine is None
                continue
            assert mine.dtype == x.dtype
            error = np.max(np.abs(mine.astype("float64") - theirs), initial=0) / expected.scale
            inside = max(ROUNDING[x.dtype.name], 1e-6)  # of float32 on the way
            assert error <= inside, case
            judged += 1
    assert judged > 60


@pytest.mark.parametrize("change", ["shape", "dtype", "missing"])
def test_comparison_finds_wrong_shapes_and_dtypes(change):
    def wrong(program, cotangents):
        results, (first, *rest) = own_results(program, cotangents)
        first = np.asarray(first)
        changed = {"shape": first[None], "dtype": first.astype("float32"), "missing": None}
        return results, [changed[change], *rest]

    result = Result()
    program = next(
        program
        for program in (draw(3, case) for case in range(20))
        if program.operands[0].dtype == float
    )
    judge(program, "3", result, wrong)
    assert result.differing == 1


def test_same_seed_draws_the_same_programs():
    one, other = draw(4, 7), draw(4, 7)
    assert one.steps == other.steps
    assert all(map(np.array_equal, one.operands, other.operands))


def test_command_prints_json(capsys):
    assert main(["gradients", "--cases", "5", "--seed", "5", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["cases"] == 5
    assert document["differing"] == 0
