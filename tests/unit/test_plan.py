"""The Plan: its members by name, its value semantics, its views."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import pickle
from typing import Any

import numpy as np
import pytest

import zerostride as zs
from zerostride.core.plan import RuleUse


def pdpd() -> zs.Plan:
    return zs.plan((2, 3, 4, 5), (3, 4), rule="pdpd", axis=1)


def test_plan_has_its_members() -> None:
    p = pdpd()
    assert p.shape == (2, 3, 4, 5)
    assert p.operands == ((2, 3, 4, 5), (3, 4))
    assert p.axes_mapping == ((0, 1, 2, 3), (1, 2))
    assert p.aligned == ((2, 3, 4, 5), (1, 3, 4, 1))
    assert p.stretched == ((), (0, 3))
    assert p.rank == 4
    assert p.rule == "pdpd"
    assert p.rule.attributes == {"axis": 1}
    assert p.rule.engine is None
    assert repr(p) == "<Plan (2, 3, 4, 5), (3, 4) -> (2, 3, 4, 5) by rule 'pdpd' axis=1>"


def test_operands_are_plain_tuples() -> None:
    p = zs.plan([np.int32(2), 3], np.array([3]))
    assert p.operands == ((2, 3), (3,))
    assert all(type(size) is int for shape in (*p.operands, p.shape) for size in shape)


def test_dropped_axis_maps_to_none() -> None:
    p = zs.plan((2, 3, 4), (3, 1), rule="pdpd", axis=1)
    assert p.axes_mapping == ((0, 1, 2), (1, None))
    assert p.aligned[1] == (1, 3, 1)
    assert p.strides(1, (4, 4)) == (0, 4, 0)


def test_one_to_zero_is_stretched_and_one_to_one_is_not() -> None:
    p = zs.plan((1, 1), (0, 1))
    assert p.shape == (0, 1)
    assert p.stretched == ((0,), ())
    (view, _) = p.views(np.ones((1, 1)), np.ones((0, 1)))
    assert view.shape == (0, 1)


def test_column_and_vector_are_two_sided() -> None:
    assert zs.plan((4, 1), (4,)).two_sided
    assert not zs.plan((4, 1), (4, 4)).two_sided
    assert not zs.plan((4, 1), (1, 1)).two_sided
    assert not zs.plan((4, 1), (4,), (4, 4)).two_sided


# Value semantics.


def test_equality_and_hash_depend_on_shape_and_aligned() -> None:
    p = pdpd()
    same = [
        zs.plan((2, 3, 4, 5), (3, 4, 1)),
        zs.plan((2, 3, 4, 5), (1, 3, 4, 1), rule="ncnn"),
        zs.plan((2, 3, 4, 5), (3, 4), rule="paddle", axis=1),
        zs.plan((2, 3, 4, 5), (3, 4), rule="pdpd", axis=1, engine="openvino"),
    ]
    for q in same:
        assert p == q
        assert hash(p) == hash(q)
    assert len({p, *same}) == 1
    assert {q.rule for q in same} == {"numpy", "ncnn", "paddle", "pdpd"}


@pytest.mark.parametrize(
    "other",
    [
        zs.plan((2, 3, 4, 5), (3, 1, 1)),
        zs.plan((2, 3, 4, 5), (4, 5)),
        zs.plan((3, 4, 1), (2, 3, 4, 5)),  # operand order is meaning
        zs.plan((2, 3, 4, 5), (3, 4, 1), (1,)),
        zs.plan((2, 3, 4, 5)),
        ((2, 3, 4, 5), ((2, 3, 4, 5), (1, 3, 4, 1))),
        None,
    ],
    ids=repr,
)
def test_different_alignments_are_unequal(other: Any) -> None:
    assert pdpd() != other


def test_different_result_shapes_are_unequal() -> None:
    assert zs.plan_to((3,), (2, 3)).aligned == zs.plan_to((3,), (4, 3)).aligned
    assert zs.plan_to((3,), (2, 3)) != zs.plan_to((3,), (4, 3))
    assert zs.plan_to((3,), (2, 3)) == zs.plan_to((1, 3), (2, 1), mode="bidirectional")


@pytest.mark.parametrize("name", ["shape", "operands", "axes_mapping", "rule", "aligned", "new"])
def test_plan_is_frozen(name: str) -> None:
    p = pdpd()
    with pytest.raises((dataclasses.FrozenInstanceError, TypeError)):
        setattr(p, name, ())
    with pytest.raises(dataclasses.FrozenInstanceError):
        del p.shape


def test_rules_attributes_are_frozen_copies() -> None:
    axes = [1]
    p = zs.plan_to((16,), (1, 16), mode="explicit", axes_mapping=axes)
    axes[0] = 0
    assert p.rule.attributes == {"axes_mapping": (1,)}
    with pytest.raises(TypeError):
        p.rule.attributes["axes_mapping"] = (0,)  # type: ignore[index]
    assert p.rule.label == "rule 'explicit' axes_mapping=[1]"


@pytest.mark.parametrize(
    "p",
    [
        pdpd(),
        zs.plan((), ()),
        zs.plan((2, 3), (3, 1), rule="pdpd", axis=1),
        zs.plan_to((16,), (1, 16), mode="explicit", axes_mapping=np.array([1])),
        zs.plan((5, 5), (5,), engine="ncnn"),
    ],
    ids=repr,
)
def test_pickle_and_copy_keep_everything(p: zs.Plan) -> None:
    copies = [pickle.loads(pickle.dumps(p, k)) for k in range(2, pickle.HIGHEST_PROTOCOL + 1)]
    for q in (*copies, copy.copy(p), copy.deepcopy(p)):
        assert q == p
        assert hash(q) == hash(p)
        for name in ("shape", "operands", "axes_mapping", "aligned", "stretched", "rule"):
            assert getattr(q, name) == getattr(p, name)
        assert q.rule.attributes == p.rule.attributes
        assert (q.rule.engine, q.rule.op) == (p.rule.engine, p.rule.op)


def test_rule_use_is_a_string_with_attributes() -> None:
    use = RuleUse("pdpd", {"axis": 1}, engine="openvino", op="add")
    assert use == "pdpd"
    assert type(use.name) is str
    assert use.label == "openvino's rule 'pdpd' axis=1"


@pytest.mark.parametrize(
    ("shape", "operands", "mapping"),
    [
        ((2, 3), ((2, 3),), ((1, 0),)),  # transposes
        ((3, 3), ((3, 3),), ((0, 0),)),  # repeats
        ((2, 3), ((2,),), ((2,),)),  # leaves the result
        ((2, 3), ((2,),), ((None,),)),  # drops more than a 1
        ((2, 3), ((2,),), ((1,),)),  # 2 cannot become 3
        ((2, 3), ((2,),), ((0, 1),)),  # places for axes there are not
    ],
)
def test_invalid_plan_cannot_be_made(shape: Any, operands: Any, mapping: Any) -> None:
    with pytest.raises(AssertionError):
        zs.Plan(shape, operands, mapping, RuleUse("test"))


# Views and strides.


def test_views_are_read_only_with_stride_zero_where_stretched() -> None:
    p = pdpd()
    a, b = np.zeros(p.operands[0]), np.arange(12.0).reshape(3, 4)
    views = p.views(a, b)
    for k, (array, view) in enumerate(zip((a, b), views, strict=True)):
        assert view.shape == p.shape
        assert np.shares_memory(view, array)
        assert not view.flags.writeable
        assert all(view.strides[axis] == 0 for axis in p.stretched[k])
        assert view.strides == p.strides(k, array.strides)
    b[1, 2] = -7
    assert (views[1][:, 1, 2, :] == -7).all()
    with pytest.raises(ValueError, match="read-only"):
        views[1][0, 0, 0, 0] = 1


def test_views_of_strided_fortran_and_negative_arrays_do_not_copy() -> None:
    p = zs.plan((2, 3, 4), (3, 1), rule="pdpd", axis=1)
    base = np.arange(240).reshape(4, 6, 10)
    arrays = (base[::2, ::-2, 1:9:2], np.asfortranarray(base[0])[::2, :1])
    for array, view in zip(arrays, p.views(*arrays), strict=True):
        assert np.shares_memory(view, array)
    assert (p.views(*arrays)[1] == arrays[1].reshape(1, 3, 1)).all()


def test_views_take_lists_and_scalars() -> None:
    x, y = zs.plan((2,), ()).views([1, 2], 5)
    assert (x + y).tolist() == [6, 7]


@pytest.mark.parametrize("arrays", [(), (np.zeros((2, 3)),), (np.zeros((2, 3)),) * 3])
def test_views_need_one_array_per_operand(arrays: Any) -> None:
    with pytest.raises(zs.BroadcastError) as caught:
        zs.plan((2, 3), (3,)).views(*arrays)
    assert caught.value.reason == "operand_count"


def test_views_need_the_planned_shape() -> None:
    p = zs.plan((2, 3), (3,))
    for wrong in (np.zeros((3, 1)), np.zeros((1, 3)), np.zeros(1), 0):
        with pytest.raises(zs.BroadcastError) as caught:
            p.views(np.zeros((2, 3)), wrong)
        assert caught.value.reason == "extent_mismatch"


def test_strides_have_the_given_unit_and_one_per_axis() -> None:
    p = zs.plan((2, 3, 4), (3, 1))
    assert p.strides(0, (12, 4, 1)) == (12, 4, 1)
    assert p.strides(1, (1, 1)) == (0, 1, 0)
    with pytest.raises(zs.BroadcastError) as caught:
        p.strides(1, (1,))
    assert caught.value.reason == "rank"
    for k in (2, -1):
        with pytest.raises(zs.BroadcastError, match="there is no operand"):
            p.strides(k, (1, 1))


def test_strides_address_the_elements_of_the_views() -> None:
    for a, b in (((3, 5), (5,)), ((5, 5), (5,)), ((2, 1, 3), (1, 4, 1)), ((1, 3), (0, 1))):
        p = zs.plan(a, b, rule="ncnn")
        for k, shape in enumerate(p.operands):
            array = np.arange(int(np.prod(shape))).reshape(shape)
            strides = p.strides(k, [s // array.itemsize for s in array.strides])
            view = p.view(k, array)
            for index in itertools.product(*map(range, p.shape)):
                offset = sum(i * s for i, s in zip(index, strides, strict=True))
                assert array.reshape(-1)[offset] == view[index]


def test_sixty_four_axes_can_be_viewed() -> None:
    p = zs.plan((1,) * 63 + (2,), (1,) * 64)
    x, y = p.views(np.arange(2).reshape(p.operands[0]), np.ones(p.operands[1]))
    assert x.shape == y.shape == p.shape
    assert y.strides[63] == 0


@pytest.mark.parametrize(
    "name", ["explain", "svg", "_repr_html_", "express", "code", "unbroadcast"]
)
def test_attached_methods_are_callable(name: str) -> None:
    assert callable(getattr(pdpd(), name))
