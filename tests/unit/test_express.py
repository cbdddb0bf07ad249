"""Plans expressed in another rule: results are equal, and refusals are right."""

from __future__ import annotations

import copy
import itertools
import pickle
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import zerostride as zs
from sampled import few
from zerostride.core.rules import RULES
from zerostride.core.symbolic import symbols
from zerostride.engines import ENGINES
from zerostride.sizes.dim import dim

Shape = tuple[int, ...]
ELEMENTWISE = [name for name, rule in RULES.items() if not rule.to_target]
#: Where an expression may be asked for: rule, engine.
PLACES = [(name, None) for name in ELEMENTWISE] + [
    (name, engine.name) for engine in ENGINES.values() for name in engine.elementwise
]


@lru_cache
def sample() -> tuple[zs.Plan, ...]:
    """Every meaning that small shapes have under four rules that align differently."""
    shapes = [s for rank in range(4) for s in itertools.product((1, 2), repeat=rank)]
    shapes += [(0,), (0, 2), (2, 0), (3,), (3, 1), (1, 3), (2, 3), (3, 2)]
    rules: list[dict[str, Any]] = [
        {"rule": "numpy"},
        {"rule": "ncnn"},
        {"rule": "paddle", "axis": 0},
        {"rule": "pdpd", "axis": 0},
    ]
    table = {}
    for a, b, asked in itertools.product(shapes, shapes, rules):
        try:
            plan = zs.plan(a, b, **asked)
        except zs.BroadcastError:
            continue
        table[plan] = plan
    return tuple(table)


def means(plan: zs.Plan, shapes: Any, swapped: bool, **asked: Any) -> bool:
    """Whether planning `shapes` gives what `plan` means."""
    try:
        result = zs.plan(*shapes, **asked)
    except zs.BroadcastError:
        return False
    aligned = result.aligned[::-1] if swapped else result.aligned
    return (result.shape, aligned) == (plan.shape, plan.aligned)


def insertions(shape: Shape, most: int) -> Iterator[Shape]:
    """`shape` without its ones, and with ones put in at all places, up to a rank."""
    core = [size for size in shape if size != 1]
    for rank in range(len(core), most + 1):
        for axes in itertools.combinations(range(rank), len(core)):
            row = [1] * rank
            for size, axis in zip(core, axes, strict=True):
                row[axis] = size
            yield tuple(row)


def attributes_of(rule: str, rank: int) -> list[dict[str, int]]:
    if rule in ("pdpd", "paddle"):
        return [{}, *({"axis": axis} for axis in range(-1, rank))]
    if rule == "onnx6":
        return [{}, {"broadcast": 1}, *({"broadcast": 1, "axis": axis} for axis in range(rank))]
    return [{}]


def has_some_way(plan: zs.Plan, rule: str, engine: str | None) -> bool:
    """By brute force, in both operand orders."""
    most = plan.rank + 1
    for pair in itertools.product(*(tuple(insertions(s, most)) for s in plan.aligned)):
        for asked in attributes_of(rule, most):
            for swapped in (False, True):
                shapes = pair[::-1] if swapped else pair
                if means(plan, shapes, swapped, rule=rule, engine=engine, **asked):
                    return True
    return False


def check_laid_out(plan: zs.Plan, e: Any, engine: str | None) -> None:
    """Each operand broadcast by itself lands where the plan has it; then shapes are identical."""
    for k, (axes, shape) in enumerate(zip(e.explicit, e.shapes, strict=True)):
        assert shape == plan.shape
        if axes is None:
            assert plan.aligned[k] == plan.operands[k] == plan.shape
            continue
        laid = zs.plan_to(
            plan.operands[k], shape, mode="explicit", axes_mapping=axes, engine=engine
        )
        assert (laid.shape, laid.aligned) == (plan.shape, (plan.aligned[k],))
    assert zs.plan(*e.shapes, engine=engine).shape == plan.shape


@pytest.mark.parametrize("part", few(1, [4, 1]))
@pytest.mark.parametrize(("rule", "engine"), PLACES)
def test_expressed_plan_is_equal_and_refusals_are_right(
    rule: str, engine: str | None, part: int
) -> None:
    expressed = refused = 0
    for k, plan in enumerate(sample()[::part]):
        try:
            e = plan.express(rule, engine=engine)
        except zs.NotExpressible:
            # All rules by brute force; engines' versions on a part, and once at least.
            if engine is None or k % 4 == 0 or not refused:
                refused += 1
                assert not has_some_way(plan, rule, engine), plan
            continue
        expressed += 1
        if e.merged_axes:
            assert (plan.rank, e.merged_axes, e.result_shape) == (0, ((),), (1,))
            continue
        assert e.result_shape == plan.shape
        if e.explicit:
            check_laid_out(plan, e, engine)
            continue
        assert means(plan, e.shapes, e.swapped, rule=rule, engine=engine, **e.attributes), plan
        for new, old in zip(e.shapes, plan.operands[:: -1 if e.swapped else 1], strict=True):
            assert np.prod(new) == np.prod(old)
    assert expressed > 20 // part
    assert refused or expressed == len(sample()[::part])


def test_smallest_change_comes_first() -> None:
    assert zs.plan((2, 3), (3,)).express("numpy").describe() == "nothing to change"
    e = zs.plan((5, 5), (5,)).express("ncnn")
    assert (e.shapes, e.attributes, e.swapped, e.changed) == (
        ((5, 5), (1, 5)),
        {},
        False,
        (False, True),
    )
    assert zs.plan((2, 3, 4), (3, 1)).express("pdpd").describe() == "nothing to change"
    placed = zs.plan((2, 3, 4), (3,), rule="paddle", axis=1)
    assert placed.express("pdpd").describe() == "set axis=1"
    e = zs.plan((3,), (2, 3)).express("pdpd")
    assert e.swapped
    assert e.shapes == ((2, 3), (3,))
    assert e.describe() == "swap the operands"


def test_broadcast_op_is_expressed_in_other_modes() -> None:
    p = zs.plan_to((16,), (1, 16, 5, 5), mode="explicit", axes_mapping=[1])
    for mode in ("numpy", "unidirectional", "bidirectional"):
        data, target = p.express(mode).shapes
        assert data == (16, 1, 1) or data == (1, 16, 1, 1)
        assert zs.plan_to(data, target, mode=RULES_OF.get(mode, mode)) == p
    same = p.express("explicit")
    assert (same.attributes, same.changed) == ({"axes_mapping": (1,)}, (False,))
    back = zs.plan_to((16, 1, 1), (1, 16, 5, 5)).express("explicit")
    assert (back.attributes, back.changed) == ({"axes_mapping": (1, 2, 3)}, (False,))
    for engine in ("mnn", "paddle"):  # rules of that name are element-wise
        expression = p.express(engine)
        assert zs.plan_to(*expression.shapes, engine=engine) == p
    with pytest.raises(zs.NotExpressible):
        p.express("ncnn")  # which has no such op
    onnx = p.express("onnxruntime")
    assert zs.plan_to(*onnx.shapes, engine="onnxruntime") == p
    many = zs.plan_to((2,) * 6, (2,) * 12, mode="explicit", axes_mapping=range(6, 12))
    assert many.express("explicit").changed == (False,)


RULES_OF = {"unidirectional": "numpy"}


def test_three_operands_are_expressed() -> None:
    p = zs.plan((2, 3, 4), (3, 1), (4,))
    assert zs.plan(*p.express("mnn").shapes, rule="mnn") == p
    for rule in ("none", "ncnn", "pdpd"):
        with pytest.raises(zs.NotExpressible):
            p.express(rule)


# Merging.


def groupings(rank: int, most: int) -> Iterator[list[tuple[int, ...]]]:
    """Every way to cut the axes into at most `most` runs."""
    for count in range(1, most + 1):
        for cuts in itertools.combinations(range(1, rank), count - 1):
            edges = (0, *cuts, rank)
            yield [tuple(range(a, b)) for a, b in itertools.pairwise(edges)]


def fold(shape: Shape, groups: Any) -> Shape:
    return tuple(int(np.prod([shape[axis] for axis in group], dtype=int)) for group in groups)


def computes_the_same(plan: zs.Plan, shapes: Any, swapped: bool, rule: str) -> bool:
    """Index probes through the merged plan, reshaped, against the plan's own views."""
    arrays = [np.arange(int(np.prod(s))).reshape(s) for s in plan.operands]
    ordered = arrays[::-1] if swapped else arrays
    reshaped = [array.reshape(shape) for array, shape in zip(ordered, shapes, strict=True)]
    try:
        views = zs.plan(*shapes, rule=rule).views(*reshaped)
    except zs.BroadcastError:
        return False
    views = views[::-1] if swapped else views
    return all(
        view.size == wanted.size and np.array_equal(view.reshape(plan.shape), wanted)
        for view, wanted in zip(views, plan.views(*arrays), strict=True)
    )


def pairs_of_rank(rank: int) -> Iterator[zs.Plan]:
    # Extents differ, so that no two axes can be mistaken for each other.
    wide = (2, 3, 2, 3, 2, 3)[:rank]
    full = list(itertools.product(*((1, size) for size in wide)))
    for a in full[:: 1 if rank == 5 else 3]:
        for b in full[-1:] + full[:: 5 if rank == 5 else 11]:
            yield zs.plan(a, b)


@pytest.mark.parametrize("rank", [5, 6])
def test_merged_axes_compute_the_same(rank: int) -> None:
    merged = refused = 0
    for plan in pairs_of_rank(rank):
        try:
            e = plan.express("ncnn")
        except zs.NotExpressible as error:
            refused += error.reason == "rank_limit"
            for groups in groupings(rank, 4):
                shapes = [fold(aligned, groups) for aligned in plan.aligned]
                assert not computes_the_same(plan, shapes, False, "ncnn"), (plan, groups)
            continue
        merged += 1
        assert [axis for group in e.merged_axes for axis in group] == list(range(rank))
        assert e.result_shape == fold(plan.shape, e.merged_axes)
        assert len(e.result_shape) <= 4
        assert computes_the_same(plan, e.shapes, e.swapped, "ncnn"), plan
    assert merged > 50
    assert refused > 3


def test_merging_is_reported_and_only_done_for_a_rank_limit() -> None:
    e = zs.plan((2, 3, 4, 5, 6), (6,)).express("ncnn")
    assert e.merged_axes
    assert "reshape it back" in e.describe()
    assert zs.plan((2, 3, 4, 5), (5,)).express("ncnn").merged_axes == ()
    with pytest.raises(zs.NotExpressible) as caught:
        zs.plan((2, 1, 4), (1, 3, 1)).express("pdpd")
    assert caught.value.reason == "no_rule"


def test_scalar_is_a_vector_of_one_on_ncnn() -> None:
    e = zs.plan((), ()).express("ncnn")
    assert (e.shapes, e.merged_axes, e.result_shape) == (((1,), (1,)), ((),), (1,))


# The value.


def test_cached_expression_is_immutable() -> None:
    plan = zs.plan((2, 3, 4), (3,), rule="paddle", axis=1)
    first = plan.express("pdpd")
    first.attributes["axis"] = 99  # type: ignore[index]
    assert plan.express("pdpd").attributes == {"axis": 1}


def test_equal_plans_of_other_shapes_have_their_own_answers() -> None:
    long, short = zs.plan((5, 5), (1, 5)), zs.plan((5, 5), (5,))
    assert long == short
    assert (long.express("ncnn").changed, short.express("ncnn").changed) == (
        (False, False),
        (False, True),
    )


def test_expression_can_be_pickled_and_is_json() -> None:
    e = zs.plan((2, 3, 4, 5, 6), (3, 1, 1, 1), rule="paddle", axis=1).express("ncnn")
    for again in (pickle.loads(pickle.dumps(e)), copy.deepcopy(e)):
        assert again == e
    assert e.as_dict()["rule"] == "ncnn"
    assert e.as_dict()["shapes"] == e.shapes


@pytest.mark.parametrize(
    ("rule", "engine", "reason"),
    [
        ("nccn", None, "unknown_rule"),
        (None, None, "unknown_rule"),
        (["ncnn"], None, "unknown_rule"),
        ("numpy", "nccn", "unknown_engine"),
        ("numpy", ["ncnn"], "unknown_engine"),
        ("pdpd", "ncnn", "no_rule"),
        (["pdpd"], "openvino", "no_rule"),
    ],
)
def test_unknown_names_are_refused(rule: Any, engine: Any, reason: str) -> None:
    with pytest.raises(zs.BroadcastError) as caught:
        zs.plan((2, 3), (3,)).express(rule, engine=engine)
    assert caught.value.reason == reason


# Sizes that are not known.

SIZES = [1, 2, 3, "N", "M", "K", "?", "1..3", "2*N", "N*M"]


@st.composite
def open_plan(draw: st.DrawFn) -> zs.Plan:
    name = draw(st.sampled_from(["numpy", "pdpd", "paddle", "ncnn", "none"]))
    shape = st.lists(st.sampled_from(SIZES), max_size=3)
    axis = draw(st.sampled_from([None, 0, 1])) if "axis" in RULES[name].attributes else None
    facts = draw(st.sampled_from([None, "N >= 2", "M == N"]))
    try:
        plan = zs.plan(draw(shape), draw(shape), rule=name, axis=axis, facts=facts)
    except zs.BroadcastError:
        assume(False)
    assume(plan.open is not None)
    return plan


@settings(max_examples=150, deadline=None)
@given(
    plan=open_plan(),
    rule=st.sampled_from(["numpy", "pdpd", "paddle", "ncnn", "none", "mnn"]),
    numbers=st.lists(st.lists(st.integers(0, 3), min_size=8, max_size=8), min_size=6, max_size=6),
)
def test_expression_of_symbols_holds_for_numbers(
    plan: zs.Plan, rule: str, numbers: list[list[int]]
) -> None:
    try:
        expression = plan.express(rule)
    except zs.NotExpressible:
        return
    for row in numbers:
        values = dict(zip(symbols(plan), row, strict=False))
        try:
            bound = plan.bind(values)
        except zs.BroadcastError:
            continue
        if expression.only_if is not None and not expression.only_if.evaluate(values):
            continue
        shapes = [tuple(dim(size).evaluate(values) for size in s) for s in expression.shapes]
        result = zs.plan(*shapes, rule=rule, **expression.attributes)
        assert result.shape == bound.shape
        assert result.aligned[:: -1 if expression.swapped else 1] == bound.aligned


@pytest.mark.parametrize(
    ("plan", "rule", "words"),
    [
        (zs.plan(("H", "W"), ("W",)), "ncnn", "reshape y to (1, W)"),
        (zs.plan(("H", "W"), ("W",)), "none", "reshape y to (1, W), only if H == 1"),
        (zs.plan(("N", 3), ("M", 3)), "none", "nothing to change, only if M == N"),
        (zs.plan(("N", "C", 5), ("C",), rule="pdpd", axis=1), "numpy", "reshape y to (C, 1)"),
        (
            zs.plan(("N", "C", "D", "H", "W"), ("C", 1, 1, 1), rule="numpy"),
            "ncnn",
            "reshape x to (N, C, D, H*W), reshape y to (1, C, 1, 1), "
            "the result has shape (N, C, D, H*W) then: reshape it back",
        ),
        (zs.plan_to(("N",), ("M", 4, "K")), "explicit", "set axes_mapping=[2]"),
    ],
)
def test_expression_of_symbols_is_described(plan: zs.Plan, rule: str, words: str) -> None:
    assert plan.express(rule).describe() == words


def test_plans_that_differ_only_in_facts_have_their_own_answers() -> None:
    shapes = ("N", 3), ("N", 3)
    assert zs.plan(*shapes) == zs.plan(*shapes, facts="N >= 1")
    wide = zs.plan(("N", 3), ("M", 3), facts="N >= 2")
    square = zs.plan(("N", 3), ("M", 3), facts=["N >= 2", "M == N"])
    assert wide.express("none").only_if is not None
    assert square.express("none").only_if is None


def test_axes_that_may_stretch_are_not_merged() -> None:
    with pytest.raises(zs.NotExpressible):
        zs.plan(("N", "C", "D", "H", "W"), ("C", 1, "H", 1)).express("ncnn")
    with pytest.raises(zs.NotExpressible):
        zs.plan((2, 3, 4, "N", 6), (1, 3, 1, "M", 6)).express("ncnn")


def test_condition_of_an_expression_is_data() -> None:
    data = zs.plan(("N", 3), ("M", 3)).express("none").as_dict()
    assert data["only_if"] == "M == N"
    assert data["shapes"] == (("N", 3), ("M", 3))
    assert zs.plan((2,), (2,)).express("none").as_dict()["only_if"] is None
