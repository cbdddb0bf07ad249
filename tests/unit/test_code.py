"""Source for other frameworks: NumPy's and ONNX's run here, the rest with the real engines."""

from __future__ import annotations

import builtins
import re
from typing import Any

import numpy as np
import onnx.reference
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plans import any_plan

import zerostride as zs
from zerostride.code import TARGETS, code

#: Compiling it defines names in a namespace: the pasted source, run as a person would.
execute = getattr(builtins, "exec")  # noqa: B009


def expected(plan: zs.Plan, arrays: list[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    """Each operand broadcast by repeating its elements: no views, no broadcast_to."""
    found = []
    for array, aligned in zip(arrays, plan.aligned, strict=True):
        whole = array.reshape(aligned)
        for axis, (size, full) in enumerate(zip(aligned, plan.shape, strict=True)):
            whole = np.repeat(whole, full, axis) if size != full else whole
        found.append(whole)
    return found


def inputs(plan: zs.Plan) -> list[np.ndarray[Any, Any]]:
    return [
        np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape) + 1
        for shape in plan.operands
    ]


def run_numpy(plan: zs.Plan, names: list[str]) -> list[np.ndarray[Any, Any]]:
    space = dict(zip(names, inputs(plan), strict=True))
    execute(code(plan, "numpy", names), space)
    return [space[name] for name in names]


def run_onnx(plan: zs.Plan, names: list[str]) -> list[np.ndarray[Any, Any]]:
    space: dict[str, Any] = {}
    execute(code(plan, "onnx", names), space)
    session = onnx.reference.ReferenceEvaluator(space["model"])
    found: list[np.ndarray[Any, Any]] = session.run(
        None, dict(zip(names, inputs(plan), strict=True))
    )
    return found


NAMES = ["a", "b", "shape", "result", "aligned"]


@settings(max_examples=100, deadline=None)
@given(plan=any_plan(max_rank=6, largest=4), run=st.sampled_from([run_numpy, run_onnx]))
def test_the_source_runs_and_broadcasts(plan: zs.Plan, run: Any) -> None:
    found = run(plan, NAMES[: len(plan.operands)])
    for got, want in zip(found, expected(plan, inputs(plan)), strict=True):
        assert got.shape == plan.shape
        np.testing.assert_array_equal(got, want)


def test_a_wrong_source_would_be_noticed() -> None:
    plan = zs.plan((2, 2), (2,), rule="paddle", axis=0)
    wrong = zs.plan((2, 2), (2,))
    assert not np.array_equal(run_numpy(wrong, ["a", "b"])[1], expected(plan, inputs(plan))[1])


def test_reshapes_only_where_alignment_needs_it() -> None:
    assert "reshape" not in code(zs.plan((2, 3), (3,), ()), "numpy")
    assert "y.reshape(3, 1)" in code(zs.plan((3, 4), (3,), rule="pdpd", axis=0), "numpy")


def test_plan_to_is_data() -> None:
    plan = zs.plan_to((16,), (1, 16, 5), mode="explicit", axes_mapping=[1])
    assert plan.code("torch").splitlines()[-1] == (
        "data = torch.broadcast_to(data.reshape(1, 16, 1), (1, 16, 5))"
    )


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_every_target_writes_something_that_parses(target: str) -> None:
    text = zs.plan((2, 3, 4), (3,), rule="pdpd", axis=1).code(target)
    assert "{" not in text
    if target == "ncnn":
        lines = text.splitlines()
        assert lines[0] == "7767517"
        assert int(lines[1].split()[0]) == len(lines) - 2
    else:
        compile(text, target, "exec")


@pytest.mark.parametrize("target", ["fortran", "", None, 3, ["numpy"]])
def test_unknown_targets_are_listed(target: Any) -> None:
    with pytest.raises(zs.BroadcastError, match="there is no code for") as caught:
        code(zs.plan((2,), (2,)), target)
    assert caught.value.hint is not None
    assert all(name in caught.value.hint for name in TARGETS)


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["a b", "c"], "not an identifier"),
        (["a", "class"], "not an identifier"),
        (["a\nimport os", "b"], "not an identifier"),
        (["a", "a"], "names two operands"),
        (["y"], "names two operands"),
        (["a", "b", "c"], "3 names for 2 operands"),
        (["np", "b"], "is the module's name"),
    ],
)
def test_names_that_cannot_be_used(names: list[str], says: str) -> None:
    with pytest.raises(zs.BroadcastError, match=re.escape(says)):
        code(zs.plan((2,), (2,)), "numpy", names)


@pytest.mark.parametrize(
    ("target", "shapes", "reason"),
    [
        ("paddle", ((2,) * 9, (2,)), "rank_limit"),
        ("mnn", ((1,) * 10, (1,)), "rank_limit"),
        ("mnn", ((0, 3), (3,)), "crash"),
        ("openvino", ((0, 3), (3,)), "crash"),
        ("openvino", ((2,) * 13, (2,)), "crash"),
        ("ncnn", ((0, 3), (3,)), "crash"),
    ],
)
def test_what_a_target_does_not_carry(
    target: str, shapes: tuple[tuple[int, ...], ...], reason: str
) -> None:
    with pytest.raises(zs.BroadcastError) as caught:
        code(zs.plan(*shapes), target)
    assert caught.value.reason == reason


def test_ncnn_reshapes_as_its_rule_needs() -> None:
    assert code(zs.plan((5, 5), (5,)), "ncnn", ["a", "b"]).splitlines() == [
        "7767517",
        "4 4",
        "Input a 0 1 a 0=5 1=5",
        "Input b 0 1 b 0=5",
        "Reshape b.reshape 1 1 b b.reshaped 0=5 1=1",
        "BinaryOp broadcast.add 2 1 a b.reshaped broadcast.sum 0=0",
    ]
    assert "Reshape" not in code(zs.plan((3, 5), (5,)), "ncnn")
    assert "0=1" in code(zs.plan((2, 3), ()), "ncnn")


def test_ncnn_says_what_it_cannot() -> None:
    merged = zs.plan((2, 3, 4, 5, 6), (6,))
    with pytest.raises(zs.BroadcastError, match="at most 4 axes") as caught:
        code(merged, "ncnn")
    assert "reshape" in (caught.value.hint or "")
    with pytest.raises(zs.NotExpressible):
        code(zs.plan((2, 1, 4, 1, 6), (1, 3, 1, 5, 1)), "ncnn")
    with pytest.raises(zs.BroadcastError):
        code(zs.plan((2,), (2,), (2,)), "ncnn")
    with pytest.raises(zs.BroadcastError):
        code(zs.plan_to((2,), (3, 2)), "ncnn")
