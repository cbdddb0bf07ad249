"""`plan` and `plan_to`: names, hints, errors, and the cache."""

from __future__ import annotations

import pickle
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plans import refusal, refused

import zerostride as zs
from zerostride.core.rules import RULES
from zerostride.engines import planning as planner

ELEMENTWISE = [name for name, rule in RULES.items() if not rule.to_target]


def refusal_to(*given: Any, **asked: Any) -> zs.BroadcastError:
    with pytest.raises(zs.BroadcastError) as caught:
        zs.plan_to(*given, **asked)
    return caught.value


# The cache.


@pytest.mark.parametrize("bad", [2.0, True, np.float64(2), np.True_, None])
def test_cached_plan_is_not_returned_for_equal_other_types(bad: Any) -> None:
    for plain in ((2, 1), (1, 2)):
        first = zs.plan(plain, (1,))
        assert zs.plan(plain, (1,)) is first  # cached
        assert refused((bad, 1), (1,)).reason == "bad_extent"
        assert refused((1, bad), (1,)).reason == "bad_extent"
        assert zs.plan(plain, (1,)) is first
    for axis in (True, 1.0, np.True_):
        assert zs.plan((2, 3, 4), (3,), rule="pdpd", axis=1).axes_mapping[1] == (1,)
        assert refused((2, 3, 4), (3,), rule="pdpd", axis=axis).reason == "attribute"
        assert zs.plan((2, 3, 4), (3,), rule="pdpd", axis=1).rule.attributes == {"axis": 1}
    for switch in (True, 1.0):
        assert zs.plan((2, 3), (3,), rule="onnx6", broadcast=1).shape == (2, 3)
        assert refused((2, 3), (3,), rule="onnx6", broadcast=switch).reason == "attribute"


def test_earlier_refusal_does_not_change_the_cache() -> None:
    planner._cached.cache_clear()
    assert refused((7.0, 1), (1,)).reason == "bad_extent"
    assert zs.plan((7, 1), (1,)).shape == (7, 1)
    assert refused((7.0, 1), (1,)).reason == "bad_extent"


def test_lists_and_numpy_integers_share_a_plan_with_plain_numbers() -> None:
    plain = zs.plan((2, 3), (3,))
    assert zs.plan([2, 3], (3,)) is plain
    assert zs.plan((np.int64(2), 3), np.array([3])) is plain


def test_other_questions_about_the_same_shapes_are_cached_separately() -> None:
    shapes = ((5, 5), (5,))
    plans = [
        zs.plan(*shapes),
        zs.plan(*shapes, rule="ncnn"),
        zs.plan(*shapes, engine="ncnn"),
        zs.plan(*shapes, rule="pdpd", axis=0),
        zs.plan(*shapes, rule="pdpd", axis=1),
        zs.plan(*shapes, engine="openvino", rule="pdpd"),
    ]
    assert [p.aligned[1] for p in plans] == [(1, 5), (5, 1), (5, 1), (5, 1), (1, 5), (5, 1)]
    assert [p.rule.engine for p in plans] == [None, None, "ncnn", None, None, "openvino"]


class Tensor:
    """An array of a library that does not let its elements be iterated over."""

    shape, dtype = (2, 3), "float32"

    def __repr__(self) -> str:
        return "Tensor()"


ARRAYS = (
    np.ones((2, 3)),
    np.ones((2, 3), int),
    np.ones(3),
    np.float64(3),
    np.array(3.0),
    np.arange(100),
    np.array([-1, 3]),
    np.ones(3, bool),
    Tensor(),
)


@pytest.mark.parametrize("array", ARRAYS, ids=repr)
def test_array_is_no_shape(array: Any) -> None:
    for asked in ({}, {"engine": "ncnn"}, {"rule": zs.strict()}, {"facts": "N > 1"}):
        error = refused(("N", 3) if "facts" in asked else (2, 3), array, **asked)
        assert error.detail == "y is an array, where shapes are expected"
        assert (error.reason, error.hint) == ("bad_extent", "pass y.shape")
        assert error.shapes[1] == np.shape(array) or isinstance(array, Tensor)
        assert len(str(error).splitlines()) == 5
    assert refused(array, array).hint == "pass x.shape and y.shape"
    assert refusal_to(array, (2, 3)).detail == "data is an array, where shapes are expected"
    assert refusal_to((3,), array).hint == "pass target.shape"
    with pytest.raises(zs.BroadcastError, match=r"pass x\.shape"):
        zs.compare(array, (3,))
    assert zs.supports("ncnn", "add", shapes=[(3,), array]).reason.startswith("y is an array")


@pytest.mark.parametrize("dtype", [int, np.uint8])
def test_vector_of_sizes_is_a_shape(dtype: Any) -> None:
    sizes = np.array([2, 3], dtype)
    assert zs.plan(sizes, (3,)) is zs.plan((2, 3), (3,))
    assert zs.plan_to((3,), sizes).shape == (2, 3)
    # A number of rank 0 may be meant as a size.
    assert "a shape is a sequence of sizes" in refused((2, 3), np.int64(3)).detail
    assert "a shape is a sequence of sizes" in refused((2, 3), sizes[0]).detail


@pytest.mark.parametrize(
    "shape", [iter((2, -3)), iter((2, 3)), (n for n in (2, 3)), {2, 3}, b"\x02"]
)
def test_iterators_and_sets_are_no_shapes(shape: Any) -> None:
    assert refused(shape, (2,)).reason == "bad_extent"
    assert refusal_to(shape, (2, 3)).reason == "bad_extent"
    assert refusal_to((2,), shape).reason == "bad_extent"


# Names.


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"rule": "nupmy"}, "unknown_rule"),
        ({"rule": ""}, "unknown_rule"),
        ({"rule": 0}, "unknown_rule"),
        ({"rule": ["numpy"]}, "unknown_rule"),
        ({"rule": "explicit"}, "unknown_rule"),
        ({"rule": "unidirectional"}, "unknown_rule"),
        ({"engine": "nccn"}, "unknown_engine"),
        ({"engine": ""}, "unknown_engine"),
        ({"engine": ["ncnn"]}, "unknown_engine"),
        ({"op": "ad"}, "unknown_op"),
        ({"op": ["add"]}, "unknown_op"),
        ({"op": ""}, "unknown_op"),
        ({"engine": "ncnn", "op": ["add"]}, "unknown_op"),
        ({"engine": "ncnn", "rule": "pdpd"}, "no_rule"),
        ({"engine": "openvino", "rule": ["pdpd"]}, "no_rule"),
        ({"engine": "openvino", "rule": ""}, "no_rule"),
        ({"engine": "openvino", "rule": "pdpd", "axis": [1]}, "attribute"),
    ],
    ids=str,
)
def test_unknown_names_are_refused(asked: Any, reason: str) -> None:
    assert refused((2, 3), (3,), **asked).reason == reason


@pytest.mark.parametrize("op", [17, ["expand"], True, 1.0, b"expand"])
def test_broadcast_op_has_a_name(op: Any) -> None:
    for engine in (None, "torch", "ncnn"):
        assert refusal_to((3,), (2, 3), op=op, engine=engine).reason in ("unknown_op", "no_op")


@pytest.mark.parametrize("mode", ["", "pdpd", "none", 0, ["numpy"], "Numpy"])
def test_unknown_modes_are_refused(mode: Any) -> None:
    error = refusal_to((3,), (2, 3), mode=mode)
    assert error.reason == "unknown_rule"
    near = "did you mean numpy?" if mode == "Numpy" else "one of numpy, bidirectional, explicit"
    assert error.hint == near


def test_op_is_known_by_any_engines_name() -> None:
    assert zs.plan((2, 3), (3,), op="Add").rule.op == "add"
    assert zs.plan((2, 3), (3,), op="elementwise_sub", engine="paddle").rule.op == "subtract"
    assert zs.plan((2, 3), (3,), op="add", engine="ncnn").rule.op == "add"
    assert zs.plan((2, 3), (3,), op=17, engine="ncnn").rule.op == "remainder"


def test_engines_own_name_for_an_op_comes_first() -> None:
    assert zs.plan((2, 3), (3,), op="Mod").rule.op == "remainder"
    assert zs.plan((2, 3), (3,), op="Mod", engine="openvino").rule.op == "fmod"


def test_selected_rule_row_is_used() -> None:
    assert planner.rule_row(None) is RULES["numpy"]
    assert planner.rule_row("numpy", to_target=True) is RULES["unidirectional"]
    assert planner.rule_row(None, engine="openvino", to_target=True).name == "unidirectional"


# plan_to.


def test_plan_to_has_one_operand_and_a_nested_mapping() -> None:
    p = zs.plan_to((16,), (1, 16, 50, 50), mode="explicit", axes_mapping=[1])
    assert p.operands == ((16,),)
    assert p.axes_mapping == ((1,),)
    assert p.aligned == ((1, 16, 1, 1),)
    assert p.stretched == ((2, 3),)
    assert (p.rule, zs.plan_to((3,), (2, 3)).rule) == ("explicit", "unidirectional")
    assert zs.plan_to((3,), (2, 3), "bidirectional").rule == "bidirectional"
    assert len(p.views(np.arange(16))) == 1


def test_plan_to_bidirectional_may_differ_from_the_target() -> None:
    assert zs.plan_to((3, 1), (2, 1, 6), mode="bidirectional").shape == (2, 3, 6)
    assert zs.plan_to((2, 3), (), mode="bidirectional").shape == (2, 3)
    assert zs.plan_to((), (), mode="bidirectional").shape == ()


@pytest.mark.parametrize("engine", ["torch", "paddle"])
def test_minus_one_keeps_the_datas_extent(engine: str) -> None:
    p = zs.plan_to((3, 4), (2, -1, 4), engine=engine)
    assert p.shape == (2, 3, 4)
    assert zs.plan_to((3, 4), (np.int64(-1), -1), engine=engine).shape == (3, 4)
    for target in ((-1, 3, 4), (2, -2, 4), (2, -1.0, 4), (2, True, 4), (-1,), "ab", None):
        error = refusal_to((3, 4), target, engine=engine)
        assert error.reason in ("bad_extent", "rank"), target


@pytest.mark.parametrize("engine", [None, "numpy", "onnxruntime", "openvino", "jax"])
def test_minus_one_is_refused_on_other_engines(engine: str | None) -> None:
    assert refusal_to((3, 4), (2, -1, 4), engine=engine).reason == "bad_extent"


# Errors.


def test_error_has_its_public_members() -> None:
    error = refused((2, 3, 4), [3], rule="numpy")
    assert isinstance(error, ValueError)
    assert (error.rule, error.reason, error.axis, error.silent) == (
        "numpy",
        "extent_mismatch",
        2,
        False,
    )
    assert error.shapes == ((2, 3, 4), (3,))
    assert error.hint == "reshape y to (3, 1)"
    assert "fix: reshape y to (3, 1)" in str(error)


def test_pickled_error_keeps_its_hint() -> None:
    error = refused((2, 3, 4), (3,))
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert (again.reason, again.axis, again.hint) == (error.reason, error.axis, error.hint)
    with pytest.raises(zs.NotExpressible) as caught:
        zs.plan((2, 1), (3,)).express("pdpd")
    assert type(pickle.loads(pickle.dumps(caught.value))) is zs.NotExpressible


def test_only_engines_are_silent() -> None:
    assert not refused((3, 5), (2, 5), rule="ncnn").silent
    assert refused((3, 5), (2, 5), engine="ncnn").silent


# Hints: what is proposed has been planned.

SHAPES = st.lists(st.sampled_from((0, 1, 2, 3)), max_size=4).map(tuple)
AXES = st.none() | st.integers(-3, 4)


def follow(error: zs.BroadcastError, shapes: list[Any], asked: dict[str, Any]) -> Any:
    """Does what a hint says; None for general advice that names no change."""
    hint = error.hint
    assert hint is not None
    names = {"x": 0, "y": 1, "data": 0}
    changed = list(shapes)
    if match := re.fullmatch(r"reshape (\w+) to (\(.*\))", hint):
        changed[names[match[1]]] = eval(match[2])
        assert np.prod(changed[names[match[1]]]) == np.prod(shapes[names[match[1]]])
    elif match := re.fullmatch(r"use (axis|axes_mapping)=(.*)", hint):
        asked = {**asked, match[1]: eval(match[2])}
    elif match := re.fullmatch(r"set broadcast=1", hint):
        asked = {**asked, "broadcast": 1}
    elif match := re.match(r"leave out (\w+)", hint):
        asked = {key: value for key, value in asked.items() if key != match[1]}
    elif hint == "swap the operands":
        changed = changed[::-1]
    elif match := re.match(r"rule '(\w+)'.* gives (\(.*\))$", hint):
        key = "mode" if "mode" in asked else "rule"
        asked = {**asked, key: match[1]}
        return changed, asked, eval(match[2])
    else:
        return None
    return changed, asked, None


@given(
    rule=st.sampled_from(ELEMENTWISE),
    shapes=st.tuples(SHAPES, SHAPES),
    axis=AXES,
    broadcast=st.sampled_from((None, None, 1, 5)),
)
@settings(max_examples=500, deadline=None)
def test_hinted_change_can_be_planned(
    rule: str, shapes: Any, axis: int | None, broadcast: int | None
) -> None:
    given_ = {"rule": rule, "axis": axis, "broadcast": broadcast}
    asked = {key: value for key, value in given_.items() if value is not None}
    error = refusal(zs.plan, *shapes, **asked)
    if error is None or error.hint is None:
        return
    followed = follow(error, list(shapes), asked)
    if followed is None:
        assert error.hint.startswith("make the shapes equal")
        return
    changed, asked, promised = followed
    assert promised in (None, zs.plan(*changed, **asked).shape)


@given(
    mode=st.sampled_from(("numpy", "explicit", "bidirectional")),
    data=SHAPES,
    target=SHAPES,
    axes=st.none() | st.lists(st.integers(-1, 4), max_size=3),
)
@settings(max_examples=400, deadline=None)
def test_hinted_change_of_a_target_can_be_planned(
    mode: str, data: Any, target: Any, axes: Any
) -> None:
    asked: dict[str, Any] = {"mode": mode}
    if axes is not None:
        asked["axes_mapping"] = axes
    error = refusal(zs.plan_to, data, target, **asked)
    if error is None or error.hint is None:
        return
    followed = follow(error, [data, target], asked)
    assert followed is not None, error.hint
    changed, asked, promised = followed
    plan = zs.plan_to(*changed, **asked)
    assert promised in (None, plan.shape)
    assert asked["mode"] == "bidirectional" or plan.shape == target


def test_hint_names_another_rule_where_no_change_helps() -> None:
    error = refused((8, 1, 6, 1), (7, 1, 5), rule="pdpd", axis=1)
    assert error.hint == "rule 'paddle' axis=1 gives (8, 7, 6, 5)"
    assert refused((1,) * 5, (5,), rule="ncnn").hint == "rule 'numpy' gives (1, 1, 1, 1, 5)"
    assert refused((2, 3), (5,)).hint is None
    # An engine cannot be told to use a rule that it does not have.
    assert refused((1,) * 5, (5,), engine="ncnn").hint is None


@pytest.mark.parametrize(
    "shapes",
    [
        (np.array([2, 3]), np.array([5])),
        ((2, "2;a"), (2,)),
        (5, 3),
        (None, (2,)),
        ((1,) * 65, -1),
        ((1,) * 65, lambda: 0),
    ],
    ids=lambda shapes: repr(shapes)[:20],
)
def test_rendering_and_hint_never_fail(shapes: Any) -> None:
    error = refused(*shapes)
    assert str(error)
    assert error.hint is None or error.hint in str(error)


# supports.


def test_supports_gives_the_reason() -> None:
    assert zs.supports("ncnn", "add", "float32", [(2, 3), (3,)])
    five = zs.supports("ncnn", "Add", "float32", [(2, 3, 4, 5, 6), (6,)])
    assert not five.ok
    assert "axes" in five.reason
    assert five.source
    assert not zs.supports("mnn", "add", "uint8", [(2,), (2,)])
    assert not zs.supports("jax", "prelu")
    assert not zs.supports("numpy", "prelu")
    assert zs.supports("jax", "lax.add")
    assert zs.supports("torch", "prelu")
    assert zs.supports("onnxruntime", "PRelu")
    assert not zs.supports("onnxruntime", "floor_divide")
    assert zs.supports("torch", "expand", None, [(3,), (2, -1)])
    assert not zs.supports("torch", "expand", None, [(3,), (-1, 3)])
    assert not zs.supports("torch", "expand", None, [(3,)])
    for asked in (("nccn",), ("ncnn", "ad"), ("ncnn", ["add"]), ("ncnn", "add", "flaot32")):
        with pytest.raises(zs.BroadcastError):
            zs.supports(*asked)


def test_op_that_the_engine_lacks_is_refused() -> None:
    with pytest.raises(zs.BroadcastError) as caught:
        zs.plan((3,), (3,), engine="ncnn", op="greater")
    assert caught.value.reason == "no_op"
    assert not zs.supports("ncnn", "greater").ok
