"""xarray's DataArrays: dimensions align by name, and results match xarray's own arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from campaigns.__main__ import main
from campaigns.arrays import xarray_arithmetic as arrays_xarray
from campaigns.arrays.command import tallied_names

import zerostride as zs

xr = pytest.importorskip("xarray", reason="xarray is not installed")
pytestmark = pytest.mark.conformance


@pytest.fixture
def pair():
    x = xr.DataArray(
        np.arange(6.0).reshape(2, 3),
        dims=("t", "s"),
        coords={"t": [1, 2], "s": list("abc"), "of_s": ("s", [1, 1, 2])},
        attrs={"units": "m", "source": "x"},
        name="height",
    )
    y = xr.DataArray([1.0, 2.0, 3.0], dims="s", coords={"s": list("bcd")}, attrs={"units": "m"})
    return x, y


@pytest.mark.slow
def test_thousands_of_calls_match_xarray():
    tally = tallied_names(0, 3000, seed=5)
    assert tally.cases == 3000
    assert not tally.shown
    assert tally.refused < 1000


def test_comparison_finds_a_wrong_result(monkeypatch):
    right = arrays_xarray._ours
    monkeypatch.setattr(arrays_xarray, "_ours", lambda *given: right(*given).rename("other"))
    assert tallied_names(0, 30, seed=5).differing
    monkeypatch.setattr(arrays_xarray, "_ours", lambda *given: right(*given) + 1)
    assert tallied_names(0, 30, seed=5).differing


def test_command_counts_differences(capsys):
    assert main(["arrays", "--library", "xarray", "--cases", "20"]) == 0
    assert "0 differences in 20 cases" in capsys.readouterr().out


def test_plan_has_dimension_names(pair):
    x, y = pair
    plan = zs.plan(x, y)
    assert plan.shape == (2, 2)  # two labels are common
    assert plan.operands == ((2, 2), (2,))
    assert plan.rule == "xarray"
    assert plan.rule.attributes["axes"] == ("t", "s")
    assert plan == zs.plan((2, 2), (2,))
    assert zs.plan(x.T, x).operands == ((3, 2), (3, 2))  # as xarray transposes


def test_drawing_names_the_axes(pair):
    x, y = pair
    text = zs.plan(x, y).explain()
    assert text.splitlines()[1].split() == ["axes", "t", "s"]
    assert "y stretches along result axis t (absent→2)" in text
    assert ">t</text>" in zs.plan(x, y).svg()
    assert "\x1b[36m" in zs.plan(x, y).explain(color=True)


def test_views_and_unbroadcast_use_dimension_names(pair):
    x, _ = pair
    y = x.isel(t=0, drop=True)
    plan = zs.plan(x, y)
    assert [view.dims for view in plan.views(x, y)] == [("t", "s")] * 2
    grad = plan.unbroadcast(x, 1)
    assert grad.dims == ("s",)
    assert grad.values.tolist() == [3.0, 5.0, 7.0]
    with pytest.raises(zs.BroadcastError, match="grad is of"):
        plan.unbroadcast(x.T, 1)


def test_fused_functions_keep_names_and_coordinates(pair):
    x, y = pair
    scaled = zs.fuse(lambda a, b: {"product": a * b, "exp": zs.exp(a)})
    result = scaled(x, y)
    xr.testing.assert_identical(result["product"], x * y)
    assert result["exp"].dims == ("t", "s")
    with_setting = zs.fuse(lambda a, *, other, by=1: a * other + by)
    xr.testing.assert_allclose(with_setting(x, other=y, by=2), x * y + 2)


def test_dask_inside_a_dataarray_stays_lazy(pair):
    array = pytest.importorskip("dask.array", reason="dask is not installed")
    x, y = pair
    lazy = x.copy(data=array.from_array(x.values, chunks=(1, 3)))
    result = zs.add(lazy, y)
    assert type(result.data) is array.Array
    xr.testing.assert_identical(result.compute(), x + y)
    assert zs.sum(lazy, axis="t").values.tolist() == [3.0, 5.0, 7.0]
    assert zs.fuse(lambda a, b: a * b + 1)(lazy, y).compute().identical(x * y + 1)


@pytest.mark.filterwarnings("ignore:Duplicate dimension names")
def test_repeated_dimension_name_is_refused():
    twice = xr.DataArray(np.ones((2, 2)), dims=("a", "a"))
    with pytest.raises(zs.BroadcastError, match="one name twice"):
        zs.plan(twice, twice)


def test_variables_are_supported(pair):
    x, _ = pair
    variable = x.variable
    assert type(zs.add(variable, 1)) is xr.Variable
    xr.testing.assert_identical(zs.add(variable, variable), variable + variable)


def test_numbers_numpy_arrays_and_lists_may_be_mixed_in(pair):
    x, _ = pair
    xr.testing.assert_identical(zs.add(x, np.ones(3)), x + np.ones(3))
    xr.testing.assert_identical(zs.add(2, x), 2 + x)
    xr.testing.assert_identical(zs.add(x, [1.0, 2.0, 3.0]), x + np.array([1.0, 2.0, 3.0]))


def test_where_clip_and_cast_match_xarray(pair):
    x, _ = pair
    assert zs.where(x > 2, x, 0.0).attrs == x.attrs
    assert zs.clip(x, 2).values.min() == 2
    assert zs.cast(x, "int8").dtype == np.int8
    bytes_ = xr.DataArray(np.uint8([1, 200]), dims="t")
    assert zs.clip(bytes_, -5, 100).values.tolist() == [1, 100]


def test_reductions_take_names_or_positions(pair):
    x, _ = pair
    for axis in ("t", ("t",), 0, -2):
        xr.testing.assert_identical(zs.sum(x, axis=axis), x.sum("t"))
    assert zs.argmax(x, axis="s").values.tolist() == [2, 2]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x, y: zs.add(x, y, rule="pdpd"), "rule='pdpd' says where axes land"),
        (lambda x, y: zs.add(x, y, axis=0), "axis=0 says where"),
        (lambda x, y: zs.add(x, y, engine="ncnn"), "engine='ncnn' says where"),
        (lambda x, y: zs.add(x, y, out=x), "out= is not there"),
        (lambda x, y: zs.sum(x, out=x), "out= is not there"),
        (lambda x, y: zs.plan(x, y, rule="ncnn"), "not by 'ncnn'"),
        (lambda x, y: zs.plan(x, (3,)), "not of tuple"),
        (lambda x, y: zs.plan(x, x.isel(s=[0]).drop_vars("s")), "'s'"),
        (lambda x, y: zs.add(x.to_dataset(), 1), "a Dataset is many arrays"),
        (lambda x, y: zs.broadcast(x, (4, 2, 3)), "broadcast is not there"),
        (lambda x, y: zs.plan((2, 3), (3,)).views(x, y), "views of a plan of places"),
        (lambda x, y: zs.plan((2, 3), (3,)).unbroadcast(x, 1), "a plan of places"),
        (lambda x, y: zs.vjp(lambda a: a * a, x), "vjp is not there"),
        (lambda x, y: zs.fuse(lambda a: zs.sum(a, axis=0))(x), "has not the shape"),
        (lambda x, y: zs.sum(x, axis="q"), "no dimension 'q'"),
        (lambda x, y: zs.sum(x, axis=("t", "t")), "one twice"),
        (lambda x, y: zs.sum(x, axis=5), "no axis 5"),
    ],
)
def test_calls_are_refused_with_the_reason(pair, call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call(*pair)


SQUARE = xr.DataArray(np.arange(9.0).reshape(3, 3), dims=("t", "x"))
T, ALONG = xr.DataArray([1.0, 2.0, 4.0], dims="t"), xr.DataArray([1.0, 2.0, 4.0], dims="x")


@pytest.mark.parametrize(
    ("function", "operands"),
    [
        (lambda a: a.T, [SQUARE]),
        (lambda a: a.T * a, [SQUARE]),
        (lambda a: np.moveaxis(a, 0, 1) + a, [SQUARE]),
        (lambda a: a - a.mean(1), [SQUARE]),
        (lambda a: a - a.mean(-1), [SQUARE.chunk(2)]),
        (lambda a, b: a - b.mean(0, keepdims=True), [SQUARE, SQUARE.T]),
        (lambda a, b: a - np.exp(b).max(0), [SQUARE, SQUARE.T]),
        (lambda a, b: a / b.sum(-1, keepdims=True), [SQUARE, T]),
        (lambda a, b: a * b[:, None], [SQUARE, ALONG]),
        (lambda a, b: zs.multiply(a, b, rule="pdpd", axis=0), [SQUARE, ALONG]),
        (lambda a, b: {"same": a, "turned": b.T}, [SQUARE, SQUARE]),
        # Arrays without names beside what has its dimensions elsewhere.
        (lambda a, b, c: a + b * c, [SQUARE, T, T.values]),
        (lambda a, b: a + b * [1.0, 2.0, 3.0], [SQUARE, T]),
        (lambda a, b, c: b + c, [SQUARE, SQUARE.T, SQUARE.values]),
    ],
)
def test_fused_functions_refuse_exchanged_dimensions(function, operands):
    fused = zs.fuse(function)
    for _ in range(2):
        with pytest.raises(
            zs.BroadcastError, match=r"comes to lie on|by the places of axes"
        ) as caught:
            fused(*operands)
        assert "'x'" in str(caught.value)
        assert "by name" in caught.value.hint


@pytest.mark.parametrize(
    ("function", "operands", "wanted"),
    [
        (lambda a: a / a.sum(-1, keepdims=True), [SQUARE], SQUARE / SQUARE.sum("x")),
        (lambda a: a - a.mean(0), [SQUARE], SQUARE - SQUARE.mean("t")),
        (lambda a: a / a.sum(), [SQUARE], SQUARE / SQUARE.sum()),
        (lambda a, b: a / b.sum(), [SQUARE, T], SQUARE / T.sum()),
        (lambda a, b: a / b.sum(-1), [SQUARE, ALONG], SQUARE / ALONG.sum()),
        (
            lambda a, b: a / (a * b).sum(-1, keepdims=True),
            [SQUARE, T],
            SQUARE / (SQUARE * T).sum("x"),
        ),
        (lambda a, b: a * b + b, [T, SQUARE.T], T * SQUARE.T + SQUARE.T),
        (lambda a, b: a * b, [ALONG, T], ALONG * T),
        (
            lambda a, b, c: (a - b) * c + [1.0, 2.0, 3.0],
            [SQUARE, T, T.values],
            (SQUARE - T) * T.values + np.array([1.0, 2.0, 3.0]),
        ),
        (
            lambda a, b, c: a * (b + c),
            [SQUARE, ALONG, T.values],
            SQUARE * (ALONG + T.values),
        ),
        (
            lambda a, b, c: a + np.where(b > 1, b, np.zeros_like(b)) * c.sum(),
            [SQUARE, T, T.values],
            SQUARE + xr.where(T > 1, T, 0) * 7,
        ),
        # An array without names has places, and whoever turns it says where they are.
        (lambda a, b: a * b.T, [SQUARE, SQUARE.values], SQUARE * SQUARE.values.T),
    ],
)
def test_fused_functions_accept_positions_that_match_names(function, operands, wanted):
    result = zs.fuse(function)(*operands)
    assert result.dims == wanted.dims
    np.testing.assert_allclose(result.values, wanted.values)


def test_operands_may_be_passed_by_keyword():
    fused = zs.fuse(lambda a, *, other, bias, by: a * other + bias * by)
    xr.testing.assert_allclose(fused(SQUARE, other=ALONG, bias=T, by=2), SQUARE * ALONG + T * 2)
    turned = zs.fuse(lambda a, *, other, bias: a * other.T + bias)
    with pytest.raises(zs.BroadcastError, match="comes to lie on"):
        turned(SQUARE, other=SQUARE, bias=np.ones(3))


def test_xarrays_options_are_used(pair):
    x, y = pair
    with xr.set_options(arithmetic_join="exact"), pytest.raises(ValueError, match="exact"):
        zs.add(x, y)
    with xr.set_options(arithmetic_broadcast=False), pytest.raises(zs.BroadcastError, match="off"):
        zs.add(x, y)
    with (
        xr.set_options(arithmetic_compat="no_conflicts"),
        pytest.raises(TypeError, match="arithmetic_compat"),
    ):
        zs.add(x, y)
