"""Functions that NumPy lacks: values against the C library and longer arithmetic, dtypes, ends."""

import math

import numpy as np
import pytest

import zerostride as zs
from zerostride.compute import special
from zerostride.compute.kernels import KERNELS
from zerostride.compute.reference import compute
from zerostride.compute.special import SPECIAL
from zerostride.ops import OPS

try:
    from ml_dtypes import bfloat16
except ImportError:  # it comes with onnx
    bfloat16 = np.float16
FLOATS = ("float16", "float32", "float64", bfloat16)
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
NAN, INF = math.nan, math.inf


def units(actual, expected):
    """How far apart, in units in the last place of what is expected."""
    return np.abs((actual - expected) / np.spacing(np.abs(expected)))


def samples(low, high):
    rng = np.random.default_rng(5)
    return np.concatenate([rng.uniform(low, high, 20_000), 10 ** rng.uniform(-300, 0, 500)])


def test_units_count_steps():
    assert units(np.array([1.0 + 2**-52]), np.array([1.0])) == 1


def computed(name, x):
    """By the reference backend, whichever is in use."""
    op = OPS[name]
    operands = [x, *op.parameters.values()]
    return compute(op, zs.plan(*map(np.shape, operands)), operands)


class TestErf:
    def test_erf_is_within_2_units_of_the_c_library(self):
        x = samples(-7, 7)
        expected = np.array([math.erf(value) for value in x])
        assert units(computed("erf", x), expected).max() <= 2
        np.testing.assert_array_equal(computed("erf", -x), -computed("erf", x))

    def test_functions_have_their_values_at_the_ends(self):
        given = np.array([NAN, INF, -INF, 0.0, -0.0, 6.0, 1e300, -1e300])
        expected = [NAN, 1, -1, 0, 0, 1, 1, -1]
        np.testing.assert_array_equal(computed("erf", given), expected)
        np.testing.assert_array_equal(np.signbit(computed("erf", given[3:5])), [False, True])

    def test_erf_is_rounded_once_to_float32(self):
        x = samples(-4, 4).astype("f")
        expected = np.array([math.erf(value) for value in x.astype(float)]).astype("f")
        assert units(computed("erf", x), expected).max() <= 1
        assert (computed("erf", x) != expected).mean() < 1e-3


def _longer(function):
    """By extended precision, where the platform has it."""
    return lambda x: function(x.astype(np.longdouble)).astype(x.dtype)


@pytest.mark.parametrize(
    ("name", "formula", "most"),
    [
        ("sigmoid", lambda x: 1 / (1 + np.exp(-x)), 3),
        ("softplus", lambda x: np.log1p(np.exp(x)), 3),
        ("swish", lambda x: x / (1 + np.exp(-x)), 4),
        ("mish", lambda x: x * np.tanh(np.log1p(np.exp(x))), 4),
        ("rsqrt", lambda x: 1 / np.sqrt(x), 2),
        ("elu", lambda x: np.where(x > 0, x, np.expm1(x)), 2),
        ("softsign", lambda x: x / (1 + np.abs(x)), 2),
    ],
)
def test_functions_match_their_formulas(name, formula, most):
    x = samples(0.1 if name == "rsqrt" else -30, 30)
    x = x[np.abs(x) > 1e-30]  # what is no float32 has no float32's answer
    with np.errstate(all="ignore"):
        expected = _longer(formula)(x)
    assert units(computed(name, x), expected).max() <= most
    single = x.astype("f")
    with np.errstate(all="ignore"):
        expected = formula(single.astype(float)).astype("f")
    assert units(computed(name, single), expected).max() <= 1


def test_gelu_matches_erfc():
    x = samples(-5, 9)
    expected = np.array([value / 2 * math.erfc(-value * math.sqrt(0.5)) for value in x])
    np.testing.assert_allclose(computed("gelu", x), expected, rtol=1e-14)
    far = computed("gelu", np.array([-30.0], "f") / 2.5)
    np.testing.assert_allclose(far, -6 * math.erfc(12 * math.sqrt(0.5)), rtol=1e-6)
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    np.testing.assert_allclose(
        computed("gelu_tanh", x), x * (1 + np.tanh(inner)) / 2, rtol=0, atol=3e-15
    )


#: NaN, inf, -inf, 0, -0, 2.5, -2.5 by each.
ENDS = {
    "relu": [NAN, INF, 0, 0, 0, 2.5, 0],
    "leaky_relu": [NAN, INF, -INF, 0, -0.0, 2.5, -0.01 * 2.5],
    "thresholded_relu": [0, INF, 0, 0, 0, 2.5, 0],
    "elu": [NAN, INF, -1, 0, -0.0, 2.5, math.expm1(-2.5)],
    "celu": [NAN, INF, -1, 0, -0.0, 2.5, math.expm1(-2.5)],
    "gelu": [NAN, INF, -0.0, 0, -0.0, None, None],
    "gelu_tanh": [NAN, INF, -0.0, 0, -0.0, None, None],
    "mish": [NAN, INF, -0.0, 0, -0.0, None, None],
    "swish": [NAN, INF, -0.0, 0, -0.0, None, None],
    "softplus": [NAN, INF, 0, math.log(2), math.log(2), None, None],
    "softsign": [NAN, 1, -1, 0, -0.0, 2.5 / 3.5, -2.5 / 3.5],
    "sigmoid": [NAN, 1, 0, 0.5, 0.5, None, None],
    "hard_sigmoid": [NAN, 1, 0, 0.5, 0.5, 1, 0],
    "hard_swish": [NAN, INF, -0.0, 0, -0.0, 2.5 * (2.5 / 6 + 0.5), -2.5 * (0.5 - 2.5 / 6)],
    "shrink": [0, INF, -INF, 0, 0, 2.5, -2.5],
    "reciprocal": [NAN, 0, -0.0, INF, -INF, 0.4, -0.4],
    "rsqrt": [NAN, 0, NAN, INF, -INF, 1 / math.sqrt(2.5), NAN],
}


@pytest.mark.parametrize("name", ENDS)
def test_erf_has_its_values_at_the_ends(name):
    given = np.array([NAN, INF, -INF, 0.0, -0.0, 2.5, -2.5])
    actual = getattr(zs, name)(given)
    for value, expected in zip(actual, ENDS[name], strict=True):
        if expected is not None:
            np.testing.assert_allclose(value, expected, rtol=1e-15)
            assert math.isnan(expected) or np.signbit(value) == np.signbit(expected)


def test_every_function_has_values_at_the_ends():
    assert set(ENDS) == set(SPECIAL) - {"erf", "selu"}
    x = np.array([-1.5, 2.0])
    selu = OPS["selu"].parameters
    expected = selu["gamma"] * np.where(x > 0, x, selu["alpha"] * np.expm1(x))
    np.testing.assert_allclose(zs.selu(x), expected, rtol=1e-15)


class TestDtypes:
    @pytest.mark.parametrize("name", sorted(SPECIAL))
    def test_floats_are_kept_and_integers_give_numpys_float(self, name):
        op = OPS[name]
        for dtype in FLOATS:
            kernel = KERNELS[name](np.empty(0, dtype), *op.parameters.values())
            assert kernel.dtype == dtype
            assert kernel.shape == (0,)
            assert getattr(zs, name)(np.ones(3, dtype)).dtype == dtype
        for dtype in ("bool", *INTEGERS):
            wanted = np.dtype(dtype) if name == "relu" else np.exp(np.ones(1, dtype)).dtype
            assert getattr(zs, name)(np.ones(1, dtype)).dtype == wanted
        with pytest.raises(TypeError, match=f"{name} of complex64"):
            getattr(zs, name)(np.ones(1, "F"))

    def test_parameters_promote_with_the_operand(self):
        x = np.float32([-1, 2])
        assert zs.leaky_relu(x, 0.5).dtype == np.float32
        assert zs.leaky_relu(x, np.array(0.5)).dtype == np.float64
        np.testing.assert_array_equal(zs.leaky_relu(x[:, None], [0.5, 2]), [[-0.5, -2], [2, 2]])
        np.testing.assert_array_equal(zs.shrink([-3.0, 0.5, 3.0], lambd=2, bias=1), [-2, 0, 2])
        assert zs.elu(x, dtype=float).dtype == np.float64

    def test_halves_are_computed_in_32_bits(self):
        x = np.arange(-400, 400).astype("f2") / 64
        for name in ("sigmoid", "gelu", "softsign", "hard_swish"):
            wide = getattr(zs, name)(x.astype("f")).astype("f2")
            np.testing.assert_array_equal(getattr(zs, name)(x), wide)

    def test_wrong_parameters_are_refused(self):
        with pytest.raises(TypeError, match="takes x and 1 parameters, not 2"):
            zs.elu(1.0, 1.0, 2.0)
        with pytest.raises(TypeError, match="beta is no parameter of it; it takes alpha"):
            zs.elu(1.0, beta=2.0)
        with pytest.raises(TypeError, match="alpha was given twice"):
            zs.elu(1.0, 1.0, alpha=2.0)
        with pytest.raises(zs.BroadcastError, match="takes alpha as a number"):
            zs.elu(np.ones(2, "f"), np.ones(2, "f"), engine="onnxruntime")


class TestClip:
    def test_clip_matches_numpy(self):
        rng = np.random.default_rng(0)
        x = np.array([*rng.normal(size=20), NAN, INF, -INF, 0.0])
        for low, high in ((-0.5, 0.5), (0.5, -0.5), (NAN, 1), (0, NAN), (-INF, INF)):
            np.testing.assert_array_equal(zs.clip(x, low, high), np.clip(x, low, high))
        np.testing.assert_array_equal(zs.clip(x, low=0), np.clip(x, 0, None))
        np.testing.assert_array_equal(zs.clip(x, None, 0), np.clip(x, None, 0))
        copied = zs.clip(x)
        np.testing.assert_array_equal(copied, x)
        assert not np.shares_memory(copied, x)

    def test_limits_broadcast_and_promote(self):
        x = np.arange(6, dtype=np.int8).reshape(2, 3)
        limits = np.array([[1], [4]]), np.array([3, 4, 5])
        np.testing.assert_array_equal(zs.clip(x, *limits), np.clip(x, *limits))
        assert zs.clip(x, *limits).dtype == np.clip(x, *limits).dtype
        assert zs.clip(x, -1000, 1000).dtype == np.int8
        np.testing.assert_array_equal(zs.clip(x, -1000, 3), np.minimum(x, 3))
        np.testing.assert_array_equal(zs.clip(x, -1000), x)
        np.testing.assert_array_equal(zs.clip(x, None, 1000), x)
        assert zs.clip(np.ones(2, bfloat16), 0, 1).dtype == bfloat16
        out = np.empty((2, 3), np.int8)
        assert zs.clip(x, 1, 2, out=out) is out

    def test_clip_of_a_class_is_refused(self):
        """It has an attribute `dtype`, which is no dtype."""
        with pytest.raises(TypeError, match="clip of"):
            zs.clip(np.float32, 0, 1)


class TestCast:
    @pytest.mark.parametrize("source", FLOATS)
    @pytest.mark.parametrize("target", INTEGERS)
    def test_cast_of_floats_stops_at_the_ends(self, source, target):
        given = [NAN, INF, -INF, 2.75, -2.75, -0.5, 3e4, -3e4, 1e38, -1e38]
        with np.errstate(all="ignore"):
            x = np.array(given).astype(source)
        info = np.iinfo(target)
        expected = [
            0 if math.isnan(v) else min(max(v, info.min), info.max) for v in x.astype(float)
        ]
        actual = zs.cast(x, target)
        assert actual.dtype == target
        assert actual.tolist() == [int(v) for v in expected]

    def test_cast_reaches_the_ends_of_64_bits(self):
        near = np.array([2.0**63, np.nextafter(2.0**63, 0), -(2.0**63), 2.0**64, -1.0])
        assert zs.cast(near, "int64").tolist() == [
            *(2**63 - 1, 2**63 - 1024, -(2**63), 2**63 - 1, -1),
        ]
        assert zs.cast(near, "uint64").tolist() == [2**63, 2**63 - 1024, 0, 2**64 - 1, 0]
        assert zs.cast(near.astype("f"), "int32").tolist() == [2**31 - 1] * 2 + [
            *(-(2**31), 2**31 - 1, -1),
        ]

    def test_other_casts_match_astype(self):
        assert zs.cast([300, -1], "uint8").tolist() == [44, 255]
        assert zs.cast([NAN, 0.0, -0.0, 5.0], bool).tolist() == [True, False, False, True]
        assert zs.cast([1e6], "float16").tolist() == [INF]
        assert zs.cast([True], "float32").dtype == np.float32
        assert zs.cast(2.5, int) == 2
        assert zs.cast([1j], "complex128").tolist() == [1j]
        assert zs.cast(np.ones((0, 3)), "i1").shape == (0, 3)

    def test_impossible_casts_are_refused(self):
        with pytest.raises(TypeError, match="complex numbers have no value in float32"):
            zs.cast([1j], "float32")
        with pytest.raises(TypeError, match="is no dtype of numbers"):
            zs.cast([1.0], "datetime64[s]")
        with pytest.raises(TypeError, match="is no dtype of numbers"):
            zs.cast(["1"], int)

    def test_out_receives_the_cast(self):
        out = np.empty(2, np.int32)
        assert zs.cast([1.5, NAN], "int8", out=out) is out
        assert out.tolist() == [1, 0]
        with pytest.raises(zs.BroadcastError, match="out has shape"):
            zs.cast([1.5, 2.0], "int8", out=np.empty(3, np.int8))


def test_functions_do_not_warn(recwarn):
    with np.errstate(all="raise"):
        zs.divide([1.0, 0.0], 0.0)
        zs.divide([1.0, 0.0], 0.0, engine="openvino")
        zs.exp(1e6)
        zs.log(np.array([0.0, -1.0]))
        zs.floor_divide(np.array([np.iinfo(int).min]), [-1])
        zs.add(np.float16([6e4]), np.float16([6e4]))
        zs.cast([NAN, 1e300], "int8")
        zs.erf([NAN, INF])
    assert not recwarn.list


def test_a_formula_may_convert_before_an_integer_has_to_fit(monkeypatch):
    monkeypatch.setattr(special, "formula", lambda _: lambda x, edge: np.divide(x, edge + 3.0))
    kernel = special.by_formula("softstep")
    assert kernel(np.uint8(1), -1) == 0.5
    monkeypatch.setattr(special, "formula", lambda _: np.subtract)
    kernel = special.by_formula("less")
    with pytest.raises(OverflowError):
        kernel(np.uint8(1), -1)
