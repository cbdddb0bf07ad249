"""Plans of open sizes compared with plans of numbers."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from campaigns.shapes import exhaustion
from campaigns.shapes.exhaustion import Asked, exhaust, rules, sample

import zerostride as zs
from sampled import few
from zerostride.sizes.condition import ALWAYS


@pytest.mark.parametrize("asked", few(8, rules(1)), ids=str)
def test_all_pairs_up_to_rank_1_match_concrete_plans(asked: Asked) -> None:
    tally = exhaust(asked, 1)
    assert tally.exceptions == []
    assert tally.pairs == 81
    assert tally.assignments > 600


@pytest.mark.parametrize("seed", range(2))
def test_samples_of_rank_3_and_4_match_concrete_plans(seed: int) -> None:
    tally = sample(1500, seed)
    assert tally.exceptions == []
    assert tally.plans > 100


WRONG = {
    "conditions": (lambda plan: ALWAYS, "the condition"),
    "bind": (lambda plan: lambda *shapes, **sizes: zs.plan((7,), (7,)), "bound"),
    "cases": (lambda plan: (plan, plan), "cases hold"),
}


@pytest.mark.parametrize("name", WRONG)
def test_comparison_finds_a_wrong_plan(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    answer, message = WRONG[name]
    kept = getattr(zs.Plan, name)
    right = kept.fget if isinstance(kept, property) else lambda plan: kept.__get__(plan)
    wrong = property(lambda plan: answer(plan) if plan.open else right(plan))
    monkeypatch.setattr(zs.Plan, name, wrong)
    tally = exhaust(Asked("numpy"), 1)
    assert any(message in exception for exception in tally.exceptions)


def test_comparison_finds_a_loose_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zs.Dim, "interval", property(lambda size: (0, None)))
    tally = exhaust(Asked("numpy"), 1)
    assert any("is at least 0, found 1" in exception for exception in tally.exceptions)
    assert any("has no end" in exception for exception in tally.exceptions)


def test_comparison_covers_every_rule() -> None:
    asked = rules(2)
    assert {a.rule for a in asked} >= {
        *("none", "numpy", "pdpd", "paddle", "ncnn", "mnn", "onnx6"),
        *("bidirectional", "explicit"),
    }
    assert exhaustion.SIZES == (1, 2, "N", "M", "?", "0..1", "1..3", "2*N")


# What the shapes say.

SHAPES: list[tuple[tuple[Any, ...], dict[str, Any], tuple[Any, ...], str]] = [
    ((("N", 1, "H"), ("C", "H")), {}, ("N", "C", "H"), "always"),
    ((("N",), (1,)), {}, ("N",), "always"),
    ((("N",), (5,)), {}, (5,), "N == 5 or N == 1"),
    ((("N",), (0,)), {}, (0,), "N == 0 or N == 1"),
    ((("N",), (2,)), {"rule": "none"}, (2,), "N == 2"),
    ((("N", "2*N"), ("N", "N")), {}, ("N", "2*N"), "N == 0 or N == 1"),
    (((2, "N"), ("N",)), {"rule": "pdpd"}, (2, "N"), "always"),
    ((("N",), (5,)), {"facts": "N >= 2"}, (5,), "N == 5"),
    ((("H",), ("W",)), {"facts": "H == W"}, ("H",), "always"),
    ((("1..3",), (2,)), {}, (2,), "x[0] == 2 or x[0] == 1"),
]


@pytest.mark.parametrize(("shapes", "asked", "shape", "needs"), SHAPES)
def test_plan_has_its_shape_and_condition(
    shapes: tuple[Any, ...], asked: dict[str, Any], shape: tuple[Any, ...], needs: str
) -> None:
    plan = zs.plan(*shapes, **asked)
    assert plan.shape == shape
    assert str(plan.conditions) == needs


@pytest.mark.parametrize(
    ("shapes", "asked"),
    [
        (((2,), ("N",), (3,)), {}),
        ((("2*N",), (5,)), {}),
        ((("2..3",), (5,)), {}),
        ((("N", "N"), (2, 3)), {"facts": "N >= 2"}),
        ((("N",), (5,)), {"facts": "N % 8 == 0"}),
        ((("3..",), ("M",)), {"facts": "M == 2"}),
        ((("8*N",), ("12*M",)), {"facts": ["N >= 1", "N <= 2", "M >= 1", "N != 3*M"]}),
    ],
)
def test_impossible_condition_is_refused(shapes: tuple[Any, ...], asked: dict[str, Any]) -> None:
    with pytest.raises(zs.BroadcastError) as caught:
        zs.plan(*shapes, **asked)
    assert caught.value.reason == "extent_mismatch"
    assert "None" not in str(caught.value)


def test_alignment_that_depends_on_sizes_gives_cases() -> None:
    plan = zs.plan(("H", "W"), ("W",), rule="ncnn")
    assert [str(case.conditions) for case in plan.cases] == ["H == W", "H != W"]
    assert [case.aligned[1] for case in plan.cases] == [("W", 1), (1, "W")]
    assert plan.axes_mapping == ((0, 1), (...,))
    assert plan.bind(H=4, W=4).axes_mapping == ((0, 1), (0,))
    assert plan.bind(H=3, W=4).axes_mapping == ((0, 1), (1,))
    trailing = zs.plan((2, 3, 4), (3, "K"), rule="pdpd", axis=1)
    assert [case.axes_mapping[1] for case in trailing.cases] == [(1, None), (1, 2)]
    assert zs.plan(("N", "M"), ("M",)).cases == ()


def test_engines_have_their_own_conditions() -> None:
    assert zs.plan(("N",), ("M",), engine="ncnn").conditions(N=0, M=1) is False
    assert zs.plan(("N",), ("M",)).conditions(N=0, M=1) is True
    refused = zs.plan(("H", "W"), ("H", "W"), engine="openvino").bind(H=0, W=3)
    assert refused.shape == (0, 3)


# Binding.


def test_plan_is_bound_by_name_by_shape_and_in_part() -> None:
    plan = zs.plan(("N", "?", "2*H"), ("C", "2*H"))
    whole = zs.plan((2, 5, 6), (5, 6))
    assert plan.bind({"N": 2, "x[1]": 5}, C=5, H=3) == whole
    assert plan.bind((2, 5, 6), (5, 6)) == whole
    assert plan.bind((2, 5, 6), None, C=5) == whole
    part = plan.bind(N=2, H=3)
    assert part.operands == ((2, "?", 6), ("C", 6))
    assert part.bind({"x[1]": 5}, C=5) == whole
    assert plan.bind(N="B").operands[0] == ("B", "?", "2*H")
    assert whole.bind() is whole
    assert whole.bind((2, 5, 6), (5, 6)) is whole


@pytest.mark.parametrize(
    ("shapes", "sizes", "words"),
    [
        ((), {"N": 2, "M": 3}, "for N=2, M=3: 2 against 3, and neither is 1"),
        ((), {"Q": 2}, "there is no size 'Q' to bind; there are: N, M"),
        ((), {"N": -2}, "-2"),
        ((), {"N": 2.5}, "2.5"),
        (((2, 3),), {}, "1 shape for a plan of 2 operands"),
        (((2,), (2, 3)), {}, "x has rank 1"),
        (((2, 4), (2, 3)), {}, "axis 1 of x is 4"),
        (((2, 3), (2, 3)), {"N": 4}, "axis 0 of x is 2"),
    ],
)
def test_contradicting_values_are_refused(shapes: Any, sizes: dict[str, Any], words: str) -> None:
    with pytest.raises(zs.BroadcastError) as caught:
        zs.plan(("N", 3), ("M", 3)).bind(*shapes, **sizes)
    assert words in caught.value.detail


def test_facts_are_checked_when_binding() -> None:
    plan = zs.plan(("N",), ("M",), facts=["N % 8 == 0", "M <= 8"])
    assert plan.bind(N=8, M=8).shape == (8,)
    with pytest.raises(zs.BroadcastError, match="contradicts what is given"):
        plan.bind(N=4, M=4)
    with pytest.raises(zs.BroadcastError, match="outside its bounds"):
        zs.plan(("1..3",), (2,)).bind({"x[0]": 4})


def test_guard_checks_arrays_and_shapes() -> None:
    check = zs.plan(("N", 3), ("M", 3)).guard()
    assert check(np.zeros((4, 3)), np.zeros((1, 3))).shape == (4, 3)
    with pytest.raises(zs.BroadcastError, match="4 against 2"):
        check((4, 3), (2, 3))
    assert str(check) == "M == N or N == 1 or M == 1"


def test_views_ask_for_a_target_size_that_no_array_has() -> None:
    with pytest.raises(zs.BroadcastError, match="a view needs all sizes as numbers"):
        zs.plan_to((), ("N",)).views(np.float32(1))


def test_views_bind_by_arrays_and_other_methods_ask_for_numbers() -> None:
    plan = zs.plan(("N", 3), (3,))
    a, b = plan.views(np.ones((2, 3)), np.arange(3.0))
    assert (a + b).tolist() == [[1, 2, 3]] * 2
    for ask in (
        lambda: plan.view(0, np.ones((2, 3))),
        lambda: plan.strides(0, (24, 8)),
        lambda: plan.unbroadcast(np.ones((2, 3)), 1),
    ):
        with pytest.raises(zs.BroadcastError) as caught:
            ask()
        assert caught.value.reason == "unknown_size"


def test_symbolic_plans_are_values() -> None:
    plan = zs.plan(("N", 1), ("N", 5))
    assert plan == zs.plan(("N", 1), ("N", 5)) == zs.plan((zs.Dim("N"), 1), [zs.Dim("N"), 5])
    assert plan == zs.plan(("N", 1), ("N", 5), rule="mnn")
    assert plan != zs.plan(("M", 1), ("M", 5))
    assert hash(plan) == hash(zs.plan(("N", 1), ("N", 5)))
    assert pickle.loads(pickle.dumps(plan)) == plan
    assert zs.plan(("3", 1), ("1*2",)) == zs.plan((3, 1), (2,))


def test_targets_may_be_symbolic() -> None:
    plan = zs.plan_to(("N",), (2, "N", "M"), "explicit", [1])
    assert plan.shape == (2, "N", "M")
    assert len(plan.conditions) == 0
    assert zs.plan_to((1, "C"), ("N", "C")).shape == ("N", "C")
    assert zs.plan_to((4,), ("N",)).conditions == zs.Condition.parse("N == 4")
    assert zs.plan_to(("N", 4), (-1, 4), engine="torch").shape == ("N", 4)


# What a reader who tried to break it found.


def test_negative_size_beside_a_symbol_is_refused() -> None:
    with pytest.raises(zs.BroadcastError) as caught:
        zs.plan((-3, "N"), ("N",))
    assert caught.value.reason == "bad_extent"
    assert str(zs.plan(("N - 5",), (1,)).conditions) == "N >= 5"
    assert str(zs.plan(("N % 3",), (1,)).conditions) == "always"


@pytest.mark.parametrize("rule", ["pdpd", "paddle", "onnx6", "ncnn"])
def test_every_plan_can_be_pickled(rule: str) -> None:
    more = {"broadcast": 1} if rule == "onnx6" else {}
    plan = zs.plan(("N", "K"), ("N", "K"), rule=rule, **more)
    twin = pickle.loads(pickle.dumps(plan))
    assert twin == plan
    assert twin.bind(N=2, K=3) == plan.bind(N=2, K=3)


def test_python_keywords_are_names_of_sizes() -> None:
    assert zs.plan(("self", 3), ("lambda", 3)).bind({"lambda": 1}, self=3).shape == (3, 3)


def test_contradicting_facts_are_refused() -> None:
    with pytest.raises(zs.BroadcastError, match="holds for no values"):
        zs.plan(("N",), ("M",), facts=["N >= 3", "N <= 2"])


def test_missing_sizes_are_not_bound() -> None:
    plan = zs.plan(("bcast(N, M)", "K"), (1, "K"))
    with pytest.raises(zs.BroadcastError, match="do not broadcast"):
        plan.bind(N=2, M=0, K=3)
    with pytest.raises(zs.BroadcastError, match="do not broadcast"):
        zs.plan_to((), ("bcast(N, M)",)).bind(N=0, M=2)


def test_many_operands_are_simplified_in_time() -> None:
    operands = [tuple(pair) for pair in zip("acegikmo", "bdfhjlnp", strict=True)]
    assert len(zs.plan(*operands).conditions) == 56


def test_code_of_nonlinear_sizes_is_valid() -> None:
    source = zs.plan(("M",), ("N%2", "N*N"), facts="N != 1").code("numpy")
    assert "always" not in source
    compile(source, "source", "exec")
