"""Gradients of fused functions: finite differences, kinks, every dtype and rule."""

import re

import numpy as np
import pytest
from campaigns.gradients.command import Result, check_ops, own_results

import zerostride as zs
from zerostride.fusion.grad.table import RULES, STEPS
from zerostride.ops import COMPARISONS, OPS

NAN = float("nan")


def gradients(function, *arrays, cotangent=None, **static):
    """Of a function with one result, for a cotangent of ones."""
    result, pullback = zs.fuse(lambda *x, **y: function(*x, **y)).vjp(*arrays, **static)
    return pullback(np.ones_like(result) if cotangent is None else cotangent)


def gradient(function, x, **more):
    return gradients(function, np.asarray(x), **more)[0]


def same(actual, expected, dtype="float64"):
    assert np.dtype(actual.dtype) == np.dtype(dtype)
    np.testing.assert_array_equal(actual, np.asarray(expected, dtype), strict=False)
    assert np.shape(actual) == np.shape(expected)


def close(actual, expected, rtol=1e-12):
    assert actual.shape == np.shape(expected)
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol)


# Every op


def test_every_op_has_a_gradient_rule_or_is_listed_without():
    rest = {name for name in OPS if name.startswith(("bitwise", "logical", "is"))}
    assert {*OPS} == {*RULES} | STEPS | COMPARISONS | rest | {"cast"}
    assert all(len(rules) == OPS[name].operands for name, rules in RULES.items())


def test_ops_and_reductions_match_finite_differences():
    result = Result()
    check_ops(0, result)
    assert not result.differences, result.differences
    assert 0 < result.worst_of_differences < 1e-8


def test_comparison_with_finite_differences_can_fail():
    def wrong(program, cotangents):
        results, gradients = own_results(program, cotangents)
        return results, [None if one is None else one * 1.001 for one in gradients]

    result = Result()
    check_ops(0, result, wrong)
    assert result.differing > len(RULES) // 2


@pytest.mark.parametrize("name", sorted(STEPS - {"floor_divide", "nextafter"}))
def test_steps_have_slope_0(name):
    same(gradient(getattr(zs, name), [0.3, -1.7]), [0.0, 0.0])
    same(gradient(lambda x: x * getattr(zs, name)(x), [1.7]), [getattr(np, name)(1.7)])


# Where there is no derivative

KINKS = [
    ("maximum", ([1, 1, NAN, 1], [1, 2, 1, NAN]), [[0.5, 0, 1, 1], [0.5, 1, 1, 1]]),
    ("minimum", ([1, 1, NAN, 1], [1, 2, 1, NAN]), [[0.5, 1, 1, 1], [0.5, 0, 1, 1]]),
    ("fmax", ([1, 1, NAN, 1, NAN], [1, 2, 1, NAN, NAN]), [[1, 0, 0, 1, 1], [0, 1, 1, 0, 0]]),
    ("fmin", ([1, 1, NAN, 1, NAN], [1, 2, 1, NAN, NAN]), [[1, 1, 0, 1, 1], [0, 0, 1, 0, 0]]),
    ("abs", ([0, -0.0],), [[0, 0]]),
    ("copysign", ([0, -1, 1], [-1, 1, -1]), [[0, -1, -1], [0, 0, 0]]),
    ("relu", ([0, NAN],), [[0, 1]]),
    ("leaky_relu", ([0, -1], [0.1, 0.1]), [[0.1, 0.1], [0, -1]]),
    ("prelu", ([0, -1], [0.25, 0.25]), [[0.25, 0.25], [0, -1]]),
    ("elu", ([0], [0.5]), [[0.5], [0]]),
    ("celu", ([0], [0.5]), [[1], [0]]),
    ("hard_swish", ([-3, 3, 0],), [[0, 1, 0.5]]),
    (
        "clip",
        ([1, 2, 3, 0, 5, 1], [1, 1, 1, 1, 1, 4], [3, 3, 3, 3, 3, 2]),
        [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 1, 1]],
    ),
    ("clip", ([1, 2.5, 5], [3, 3, 3], [2, 2, 2]), [[0, 0, 0], [0, 0, 0], [1, 1, 1]]),
    ("hard_sigmoid", ([0, 1], [1, 1], [0, 0]), [[0, 0], [0, 0], [0, 0]]),
    ("shrink", ([-0.5, 0.5], [0, 0], [0.5, 0.5]), [[0, 0], [0, 0], [0, 0]]),
    ("heaviside", ([0, 1], [0.5, 0.5]), [[0, 0], [1, 0]]),
    ("atan2", ([0], [0]), [[0], [0]]),
    ("hypot", ([0], [0]), [[NAN], [NAN]]),
    ("pow", ([0, 0, 0, 2], [0, 1, 2, 0]), [[0, 1, 0, 0], [0, 0, 0, np.log(2)]]),
]


@pytest.mark.parametrize(("name", "operands", "expected"), KINKS)
def test_kinks_have_the_slopes_of_the_table(name, operands, expected):
    arrays = [np.array(one, "float64") for one in operands]
    for actual, wanted in zip(gradients(getattr(zs, name), *arrays), expected, strict=True):
        np.testing.assert_array_equal(actual, np.array(wanted, "float64"))


def test_equal_extremes_share_the_gradient():
    same(gradient(zs.max, [1.0, 2.0, 2.0, 0.0]), [0, 0.5, 0.5, 0])
    np.testing.assert_array_equal(gradient(zs.max, [1.0, NAN, 2.0]), [NAN] * 3)
    rows = gradient(lambda x: zs.min(x, axis=1), [[1.0, 1.0, 1.0, 2.0], [3.0, 2.0, 4.0, 2.0]])
    close(rows, [[1 / 3, 1 / 3, 1 / 3, 0], [0, 0.5, 0, 0.5]])


@pytest.mark.parametrize(
    ("x", "expected"),
    [([2.0, 3.0, 4.0], [12, 8, 6]), ([2.0, 0.0, 4.0], [0, 8, 0]), ([0.0, 0.0, 4.0], [0, 0, 0])],
)
def test_products_with_zeros_have_the_right_gradient(x, expected):
    same(gradient(zs.prod, x), expected)


def test_deviation_of_equals_has_slope_0():
    same(gradient(lambda x: x.std(), [2.0, 2.0]), [0, 0])
    norms = gradient(lambda x: np.linalg.norm(x, axis=1), [[0.0, 0.0], [3.0, 4.0]])
    close(norms, [[0, 0], [0.6, 0.8]])
    same(gradient(lambda x: np.sqrt((x - 1).sum()), [1.0, 1.0]), [np.inf] * 2)


def test_clip_with_one_limit_has_its_gradient():
    same(gradient(lambda x: zs.clip(x, 1, None), [0.0, 1, 2]), [0, 1, 1])
    same(gradient(lambda x: np.clip(x, None, 1), [0.0, 1, 2]), [1, 1, 0])


@pytest.mark.parametrize("power", [0, 1, 2, 3, 4, 0.5, -1, 2.5])
def test_powers_by_numbers_have_their_gradient(power):
    x = np.array([0.5, 1.5, 2.0])
    close(gradient(lambda x: x**power, x), power * x ** (power - 1.0))
    close(gradient(lambda x: zs.pow(x, power), x), power * x ** (power - 1.0))


def test_power_of_a_number_has_its_gradient():
    x = np.array([-1.0, 0.5, 2.0])
    close(gradient(lambda x: 2.0**x, x), 2.0**x * np.log(2))


# Shapes


def test_row_gradient_is_summed_to_its_shape():
    x, row = np.arange(6.0).reshape(2, 3), np.array([1.0, 2.0, 3.0])
    dx, drow = gradients(lambda x, row: x * row, x, row)
    same(dx, np.broadcast_to(row, (2, 3)))
    same(drow, x.sum(0))


def test_rules_decide_the_summed_axes():
    rng = np.random.default_rng(0)
    x, y, g = rng.normal(size=(2, 3, 4, 5)), rng.normal(size=(3, 4)), rng.normal(size=(2, 3, 4, 5))
    dx, dy = gradients(lambda x, y: zs.multiply(x, y, rule="pdpd", axis=1), x, y, cotangent=g)
    close(dx, g * y[:, :, None])
    close(dy, (g * x).sum((0, 3)))


def test_dropped_axes_are_restored():
    plan = zs.plan((2, 3), (3, 1), rule="pdpd", axis=1)
    assert plan.axes_mapping[1] == (1, None)
    x, y = np.ones((2, 3)), np.ones((3, 1))
    _, dy = gradients(lambda x, y: zs.multiply(x, y, rule="pdpd", axis=1), x, y)
    same(dy, np.full((3, 1), 2.0))


def test_rank_0_and_numbers_have_gradients():
    x = np.arange(4.0)
    dx, da, db = gradients(lambda x, a, b: x * a + b, x, np.array(3.0), 2.0)
    same(dx, np.full(4, 3.0))
    same(da, 6.0)
    same(db, 4.0)
    assert gradients(lambda x, a: x * a, x, 3)[1] is None


def test_operand_used_often_sums_its_gradients():
    x = np.array([1.0, 2.0])
    same(gradient(lambda x: x * x + x * 3 - x, x), 2 * x + 2)
    dx = gradient(lambda x: x[:, None] * x, x)
    same(dx, [6.0, 6.0])


def test_array_given_twice_has_two_gradients():
    x = np.array([1.0, 2.0])
    one, other = gradients(lambda a, b: a * a * b, x, x)
    same(one, 2 * x * x)
    same(other, x * x)


def test_views_are_inverted():
    rng = np.random.default_rng(1)
    x, y, g = rng.normal(size=(2, 3)), rng.normal(size=(3, 1, 2)), rng.normal(size=(3, 4, 2))
    z = rng.normal(size=(4, 1))
    dx, dy, dz = gradients(lambda x, y, z: x.T[:, None] * y + z, x, y, z, cotangent=g)
    close(dx, (g * y).sum(1).T)
    close(dy, (g * x.T[:, None]).sum(1, keepdims=True))
    close(dz, g.sum((0, 2))[:, None])


def test_broadcast_gradient_is_summed():
    x, g = np.array([1.0, 2.0]), np.arange(6.0).reshape(2, 3)

    def stretched(x):
        return zs.broadcast(x, (2, 3), mode="explicit", axes_mapping=[0])

    same(gradient(stretched, x, cotangent=g), g.sum(1))
    same(gradient(lambda x: stretched(x) * x[:, None], x, cotangent=g), 2 * x * g.sum(1))


def test_strides_do_not_matter():
    base = np.arange(24.0).reshape(4, 6)
    x, y = base[::-2, ::2], np.broadcast_to(np.array([2.0]), (2, 3))
    dx, dy = gradients(lambda x, y: x * x * y, x, y)
    same(dx, 4 * x)
    same(dy, x * x)


def test_gradients_of_reductions_stretch_back():
    x = np.arange(6.0).reshape(2, 3)
    same(gradient(zs.sum, x), np.ones((2, 3)))
    same(gradient(lambda x: zs.mean(x, axis=0), x), np.full((2, 3), 0.5))
    same(gradient(lambda x: zs.sum(x * 2, axis=1, keepdims=True), x), np.full((2, 3), 2.0))


def test_sum_of_a_stretched_value_counts_its_copies():
    x, y = np.ones((4, 3)), np.ones(3)
    _, dy = gradients(lambda x, y: zs.sum(x + y), x, y)
    same(dy, np.full(3, 4.0))


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
def test_empty_operands_have_empty_gradients(shape):
    x = np.ones(shape)
    y = np.ones(shape[-1:] if shape[-1] else 1)
    dx, dy = gradients(lambda x, y: zs.sum(x * y + 1), x, y)
    assert dx.shape == shape
    same(dy, np.zeros_like(y))


def test_softmax_and_norms_have_the_right_gradient():
    rng = np.random.default_rng(2)
    x, g = rng.normal(size=(5, 7)), rng.normal(size=(5, 7))

    def softmax(x):
        e = zs.exp(x - zs.max(x, axis=1, keepdims=True))
        return e / zs.sum(e, axis=1, keepdims=True)

    y = zs.fuse(softmax)(x)
    close(gradient(softmax, x, cotangent=g), y * (g - (g * y).sum(1, keepdims=True)))

    def norm(x):
        centred = x - zs.mean(x, axis=1, keepdims=True)
        return centred * zs.rsqrt(zs.mean(centred * centred, axis=1, keepdims=True) + 1e-5)

    z, scale = zs.fuse(norm)(x), 1 / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    expected = scale * (g - g.mean(1, keepdims=True) - z * (g * z).mean(1, keepdims=True))
    close(gradient(norm, x, cotangent=g), expected, 1e-11)
    close(gradient(lambda x: zs.logsumexp(x, axis=1), x), y)


def test_maximum_subtracted_by_softmax_has_no_gradient():
    def softmax(x, shift):
        e = zs.exp(x - zs.max(shift, axis=1, keepdims=True))
        return e / zs.sum(e, axis=1, keepdims=True)

    x = np.random.default_rng(3).normal(size=(3, 4))
    _, dshift = gradients(softmax, x, x.copy(), cotangent=x)
    same(dshift, np.zeros((3, 4)))


# Results


def test_several_results_have_gradients():
    x = np.array([1.0, 2.0])
    (total, parts), pullback = zs.fuse(lambda x: (zs.sum(x * x), {"y": x * 3, "up": x > 1})).vjp(x)
    assert total == 5
    assert parts["up"].tolist() == [False, True]
    same(pullback((1.0, {"y": np.ones(2), "up": None}))[0], 2 * x + 3)
    same(pullback((None, {"y": np.ones(2)}))[0], [3.0, 3.0])
    same(pullback((2.0, None))[0], 4 * x)


def test_result_returned_twice_sums_its_cotangents():
    x = np.array([1.0, 2.0])
    _, pullback = zs.fuse(lambda x: (x * x, x * x)).vjp(x)
    same(pullback((np.ones(2), np.full(2, 10.0)))[0], 22 * x)


def test_operand_returned_as_result_has_a_gradient():
    x, y = np.array([1.0, 2.0]), np.ones(2)
    dx, dy = gradients(lambda x, y: x, x, y, cotangent=np.array([3.0, 4.0]))
    same(dx, [3.0, 4.0])
    same(dy, [0.0, 0.0])


def test_pullback_may_be_called_again():
    x = np.array([1.0, 2.0])
    _, pullback = zs.fuse(lambda x: x * x).vjp(x)
    first = pullback(np.ones(2))
    same(pullback(np.full(2, 3.0))[0], 6 * x)
    same(first[0], 2 * x)


def test_gradients_are_new_arrays():
    x, g = np.ones(2), np.ones(2)
    _, pullback = zs.fuse(lambda x, y: x + y).vjp(x, x)
    one, other = pullback(g)
    one[:] = 7
    assert g.tolist() == other.tolist() == [1, 1]


def test_keyword_arguments_have_no_gradient():
    x = np.array([1.0, -2.0])
    same(gradient(lambda x, *, slope: zs.where(x < 0, x * slope, x), x, slope=0.25), [1.0, 0.25])


def test_arrays_passed_by_name_have_no_gradient():
    x, bias = np.ones(2), np.array([3.0, 4.0])
    (dx,) = gradients(lambda x, *, bias: x * bias, x, bias=bias)
    same(dx, bias)


def test_results_without_gradient_give_zeros():
    result, pullback = zs.fuse(lambda x: x > 1).vjp(np.array([1.0, 2.0]))
    assert result.tolist() == [False, True]
    assert pullback.graph is None
    same(pullback(None)[0], [0.0, 0.0])


def test_captured_arrays_are_not_operands():
    other = np.array([3.0, 4.0])
    (dx,) = gradients(lambda x: x * other, np.ones(2))
    same(dx, other)


# Dtypes


def test_integers_and_bools_have_no_gradient():
    x, n, c = np.ones(3), np.arange(3), np.array([True, False, True])
    dx, dn, dc = gradients(lambda x, n, c: zs.where(c, x * n, 0.0), x, n, c)
    same(dx, [0.0, 0.0, 2.0])
    assert dn is None
    assert dc is None


def test_gradients_have_the_operands_dtypes():
    x, y = np.ones((2, 3), "float32"), np.full(3, 2.0)
    dx, dy = gradients(lambda x, y: x * y, x, y)
    same(dx, np.full((2, 3), 2.0), "float32")
    same(dy, np.full(3, 2.0))
    (dx,) = gradients(lambda x: zs.cast(x, "float64") * 3, x)
    same(dx, np.full((2, 3), 3.0), "float32")
    (dx,) = gradients(lambda x: zs.cast(zs.cast(x, "int32"), "float32"), x)
    same(dx, np.zeros((2, 3)), "float32")


def test_option_dtype_keeps_the_operands_gradient_dtypes():
    x = np.array([1.0, 2.0], "float32")
    result, pullback = zs.fuse(lambda x: x * x, dtype="float64").vjp(x)
    assert result.dtype == "float64"
    same(pullback(np.ones(2))[0], 2 * x, "float32")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_are_rounded_once(dtype):
    dtype = np.dtype(pytest.importorskip("ml_dtypes").bfloat16 if dtype == "bfloat16" else dtype)
    rng = np.random.default_rng(4)
    x, row = (rng.uniform(0.5, 2, shape).astype(dtype) for shape in ((300, 4), (4,)))
    g = rng.normal(size=(300, 4)).astype(dtype)
    dx, drow = gradients(lambda x, row: zs.gelu_tanh(x * row) / row, x, row, cotangent=g)
    wide = [one.astype("float32") for one in (x, row, g)]
    wx, wrow = gradients(lambda x, row: zs.gelu_tanh(x * row) / row, *wide[:2], cotangent=wide[2])
    np.testing.assert_array_equal(dx.view("i2"), wx.astype(dtype).view("i2"))
    np.testing.assert_array_equal(drow.view("i2"), wrow.astype(dtype).view("i2"))


def test_complex_numbers_are_refused():
    with pytest.raises(TypeError, match="complex"):
        zs.fuse(lambda x: x * 2).vjp(np.ones(2, "complex128"))
    with pytest.raises(TypeError, match="complex"):
        zs.fuse(lambda x: x * 2j).vjp(np.ones(2))


# Cotangents


def test_cotangents_have_the_results_shapes():
    _, pullback = zs.fuse(lambda x: x * 2).vjp(np.ones((2, 3)))
    with pytest.raises(zs.BroadcastError, match=re.escape("shape (3,); the result has (2, 3)")):
        pullback(np.ones(3))
    with pytest.raises(TypeError, match="result 0: complex"):
        pullback(np.ones((2, 3), "complex128"))
    with pytest.raises(TypeError, match="packed"):
        zs.fuse(lambda x: (x, x * 2)).vjp(np.ones(2))[1](np.ones(2))


def test_bool_results_have_no_cotangent():
    _, pullback = zs.fuse(lambda x: (x * 2, x > 1)).vjp(np.ones(2))
    with pytest.raises(TypeError, match="None"):
        pullback((np.ones(2), np.ones(2)))


def test_cotangents_are_converted():
    _, pullback = zs.fuse(lambda x: x * 2).vjp(np.ones(2, "float32"))
    same(pullback([1, 2])[0], [2.0, 4.0], "float32")


# The function


def test_vjp_takes_a_plain_function():
    x = np.array([1.0, 2.0])
    result, pullback = zs.vjp(lambda x: zs.sum(x * x), x)
    assert result == 5
    same(pullback(1.0)[0], 2 * x)


def test_vjp_takes_a_function_of_zerostride():
    x, y = np.array([[1.0, 5.0]]), np.array([3.0, 4.0])
    _, pullback = zs.vjp(zs.maximum, x, y, rule="numpy")
    dx, dy = pullback(np.array([[10.0, 20.0]]))
    same(dx, [[0.0, 20.0]])
    same(dy, [10.0, 0.0])


def test_gradient_graphs_are_cached():
    fused = zs.fuse(lambda x: x * x)
    _, first = fused.vjp(np.ones(3))
    _, second = fused.vjp(np.zeros(3))
    assert first.graph is second.graph
