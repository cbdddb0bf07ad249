"""Gradients where functions have no finite derivative, compared with torch.autograd."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="its autograd is what gradients are held against")

import zerostride as zs  # noqa: E402

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.filterwarnings("ignore:std.*degrees of freedom"),
]

NAN, INF = np.nan, np.inf
#: PyTorch has some constants in fewer digits.
RTOL = 1e-7
f = torch.nn.functional


def square_sum(x):
    return (x * x).sum(-1)


#: A row each: what zerostride computes, what PyTorch does, and the operands.
UNARY = {
    "abs": (zs.abs, torch.abs, [0.0, -0.0, INF, -INF, 2]),
    "sign": (zs.sign, torch.sign, [0.0, -0.0, 1]),
    "relu": (zs.relu, torch.relu, [0.0, -0.0, NAN, -1, 1]),
    "sqrt": (zs.sqrt, torch.sqrt, [0.0, 4, INF, -1, NAN]),
    "rsqrt": (zs.rsqrt, torch.rsqrt, [0.0, 4, -1, NAN]),
    "reciprocal": (zs.reciprocal, torch.reciprocal, [0.0, -0.0, INF, 2]),
    "square": (zs.square, torch.square, [0.0, NAN]),
    "log": (zs.log, torch.log, [0.0, -1, INF, 2, NAN]),
    "log1p": (zs.log1p, torch.log1p, [-1.0, -2, 0, INF]),
    "log2": (zs.log2, torch.log2, [0.0, 1]),
    "log10": (zs.log10, torch.log10, [0.0, 1]),
    "exp": (zs.exp, torch.exp, [-INF, 0, 1, 800]),
    "expm1": (zs.expm1, torch.expm1, [-INF, 0, 1]),
    "asin": (zs.asin, torch.asin, [1.0, -1, 0, 2]),
    "acos": (zs.acos, torch.acos, [1.0, -1, 0, 2]),
    "atan": (zs.atan, torch.atan, [INF, -INF, 0]),
    "acosh": (zs.acosh, torch.acosh, [1.0, 2, 0.5]),
    "atanh": (zs.atanh, torch.atanh, [1.0, -1, 0]),
    "asinh": (zs.asinh, torch.asinh, [0.0, INF]),
    "tanh": (zs.tanh, torch.tanh, [INF, -INF, 0, NAN]),
    "sigmoid": (zs.sigmoid, torch.sigmoid, [INF, -INF, 0, NAN]),
    "erf": (zs.erf, torch.erf, [INF, -INF, 0]),
    "gelu": (zs.gelu, f.gelu, [0.0, -0.0, 1]),
    "gelu_tanh": (zs.gelu_tanh, lambda x: f.gelu(x, approximate="tanh"), [0.0, -0.0]),
    "softplus": (zs.softplus, f.softplus, [-INF, 0, 10]),
    "softsign": (zs.softsign, f.softsign, [0.0, -0.0]),
    "mish": (zs.mish, f.mish, [0.0, 1]),
    "floor": (zs.floor, torch.floor, [0.0, 1, 1.5]),
    "ceil": (zs.ceil, torch.ceil, [0.0, 1, 1.5]),
    "round": (zs.round, torch.round, [0.5, 1.5, 0]),
    "trunc": (zs.trunc, torch.trunc, [0.0, 1, -1]),
    "hard_swish": (zs.hard_swish, f.hardswish, [-3.0, 3, 0, NAN]),
    "hard_sigmoid": (lambda x: zs.hard_sigmoid(x, 1 / 6, 0.5), f.hardsigmoid, [-3.0, 3, 0]),
    "leaky_relu": (
        lambda x: zs.leaky_relu(x, 0.1),
        lambda x: f.leaky_relu(x, 0.1),
        [0.0, -0.0, -1, NAN],
    ),
    "elu": (lambda x: zs.elu(x, 1.5), lambda x: f.elu(x, 1.5), [0.0, -0.0, -1]),
    "celu": (lambda x: zs.celu(x, 1.5), lambda x: f.celu(x, 1.5), [0.0, -0.0, -1]),
    "selu": (zs.selu, f.selu, [0.0, -0.0, -1]),
    "thresholded": (
        lambda x: zs.thresholded_relu(x, 1.0),
        lambda x: f.threshold(x, 1.0, 0.0),
        [1.0, 2, 0],
    ),
    "shrink": (lambda x: zs.shrink(x, 0.5, 0.5), lambda x: f.softshrink(x, 0.5), [0.5, -0.5, 1]),
    "hardtanh": (lambda x: zs.clip(x, -1, 1), f.hardtanh, [2.0, 0]),
    "clip by numbers": (
        lambda x: zs.clip(x, 1.0, 3.0),
        lambda x: torch.clip(x, 1.0, 3.0),
        [1.0, 3, 2, 0, 4, NAN],
    ),
    "clip from below": (
        lambda x: zs.clip(x, 1.0, None),
        lambda x: torch.clip(x, min=1.0),
        [1.0, 2, 0, NAN],
    ),
    "clip from above": (
        lambda x: zs.clip(x, None, 1.0),
        lambda x: torch.clip(x, max=1.0),
        [1.0, 2, 0, NAN],
    ),
    "clip, limits crossed": (
        lambda x: zs.clip(x, 3.0, 2.0),
        lambda x: torch.clip(x, 3.0, 2.0),
        [1.0, 2, 2.5, 3, 4],
    ),
    "maximum with a number": (
        lambda x: zs.maximum(x, 0.0),
        lambda x: torch.maximum(x, torch.zeros_like(x)),
        [0.0, 1, -1, NAN],
    ),
    "x ** 0": (lambda x: x**0, lambda x: x**0, [0.0, 1, INF, NAN]),
    "x ** 0.5": (lambda x: x**0.5, lambda x: x**0.5, [0.0, 4]),
    "x ** 1": (lambda x: x**1, lambda x: x**1, [0.0, NAN]),
    "x ** 1.5": (lambda x: x**1.5, lambda x: x**1.5, [0.0, 4, -1]),
    "x ** 2": (lambda x: x**2, lambda x: x**2, [0.0, NAN]),
    "x ** 3": (lambda x: x**3, lambda x: x**3, [0.0, -1]),
    "x ** -1": (lambda x: x**-1, lambda x: x**-1, [0.0, -0.0, 2]),
    "0 ** x": (lambda x: 0.0**x, lambda x: 0.0**x, [0.0, 1, -1, NAN]),
    "2 ** x": (lambda x: 2.0**x, lambda x: 2.0**x, [0.0, -INF, NAN]),
    "(-2) ** x": (lambda x: (-2.0) ** x, lambda x: (-2.0) ** x, [0.0, 2, 1]),
    "1 / x": (lambda x: 1 / x, lambda x: 1 / x, [0.0, -0.0, INF]),
    "x % 1": (lambda x: x % 1, lambda x: x % 1, [0.0, 1, -1, 1.5]),
}

BINARY = {
    "maximum": (zs.maximum, torch.maximum, [1.0, 1, NAN, 1, NAN, INF], [1.0, 2, 1, NAN, NAN, INF]),
    "minimum": (zs.minimum, torch.minimum, [1.0, 1, NAN, 1, NAN, INF], [1.0, 2, 1, NAN, NAN, INF]),
    "fmax": (zs.fmax, torch.fmax, [1.0, 1, NAN, 1, NAN], [1.0, 2, 1, NAN, NAN]),
    "fmin": (zs.fmin, torch.fmin, [1.0, 1, NAN, 1, NAN], [1.0, 2, 1, NAN, NAN]),
    "pow": (
        zs.pow,
        torch.pow,
        [0.0, 0, 0, 0, 2, -2, 0, 1, NAN, 0],
        [0.0, 1, 2, 0.5, 0, 2, -1, NAN, 0, NAN],
    ),
    "atan2": (zs.atan2, torch.atan2, [0.0, 0, -0.0, 1, 0, INF], [0.0, -0.0, 0, 0, -1, INF]),
    "hypot": (zs.hypot, torch.hypot, [0.0, 0, 3, INF], [0.0, 1, 4, 1]),
    "fmod": (zs.fmod, torch.fmod, [0.0, 3, -3, 5.5], [1.0, 3, 2, -2]),
    "remainder": (zs.remainder, torch.remainder, [0.0, 3, -3, 5.5, 1, -1], [1.0, 3, 2, -2, 0, 3]),
    "divide": (zs.divide, torch.divide, [0.0, 1, 0, INF], [1.0, 0, 0, INF]),
    "copysign": (zs.copysign, torch.copysign, [0.0, -0.0, 1, -1, 1], [1.0, 1, -1, 0, -0.0]),
    "logaddexp": (zs.logaddexp, torch.logaddexp, [-INF, -INF, 0, INF, 1], [-INF, 0, 0, 0, 1]),
    "logaddexp2": (zs.logaddexp2, torch.logaddexp2, [-INF, 0, 1], [0, 0, 1]),
    "prelu": (
        zs.prelu,
        lambda x, w: torch.where(x > 0, x, w * x),
        [0.0, -0.0, -1, 1, NAN],
        [0.25] * 5,
    ),
    "where": (
        lambda x, y: zs.where(x > 0, x, y),
        lambda x, y: torch.where(x > 0, x, y),
        [0.0, 1, NAN],
        [1.0, 1, 1],
    ),
    "where that hides a NaN": (
        lambda x, y: zs.where(x > 0, zs.log(x), y),
        lambda x, y: torch.where(x > 0, torch.log(x), y),
        [0.0, 1, -1],
        [1.0, 1, 1],
    ),
    "0 x": (lambda x, y: x * y, lambda x, y: x * y, [0.0, INF, NAN], [INF, 0, 0]),
    "logical": (lambda x, y: (x > y) * x, lambda x, y: (x > y) * x, [1.0, 2, NAN], [1.0, 1, 1]),
    "clip by x": (
        lambda x, y: zs.clip(x, y, 3.0),
        lambda x, y: torch.clip(x, y, torch.full_like(y, 3)),
        [1.0, 2, 0, 3, 5],
        [1.0, 1, 1, 1, 4],
    ),
}

ROWS = {
    "ties": [1.0, 2, 2, 0],
    "equals": [3.0, 3, 3],
    "one": [3.0],
    "zeros": [0.0, 0, 0],
    "one zero": [0.0, 2, 3],
    "two zeros": [0.0, 2, 0],
    "nan": [NAN, 2, 1],
    "nans": [NAN, NAN, 1],
    "infinite": [INF, 2, 1],
    "infinities": [INF, INF, 1],
    "-infinite": [-INF, 2, 1],
    "all -infinite": [-INF, -INF],
    "mixed zeros": [0.0, -0.0, -1],
}
REDUCTIONS = {
    "sum": (lambda x: x.sum(-1), lambda x: x.sum(-1)),
    "mean": (lambda x: x.mean(-1), lambda x: x.mean(-1)),
    "prod": (lambda x: x.prod(-1), lambda x: x.prod(-1)),
    "max": (lambda x: x.max(-1), lambda x: torch.amax(x, -1)),
    "min": (lambda x: x.min(-1), lambda x: torch.amin(x, -1)),
    "var": (lambda x: x.var(-1), lambda x: x.var(-1, correction=0)),
    "std": (lambda x: x.std(-1), lambda x: x.std(-1, correction=0)),
    "std, ddof": (lambda x: x.std(-1, ddof=1), lambda x: x.std(-1)),
    "logsumexp": (lambda x: zs.logsumexp(x, -1), lambda x: torch.logsumexp(x, -1)),
    "sum of squares": (lambda x: zs.sum_of_squares(x, -1), square_sum),
    "norm": (lambda x: np.linalg.norm(x, axis=-1), lambda x: torch.linalg.vector_norm(x, dim=-1)),
    "norm 1": (
        lambda x: np.linalg.norm(x, 1, axis=-1),
        lambda x: torch.linalg.vector_norm(x, 1, dim=-1),
    ),
    "norm inf": (
        lambda x: np.linalg.norm(x, np.inf, axis=-1),
        lambda x: torch.linalg.vector_norm(x, np.inf, dim=-1),
    ),
    "root of squares": (lambda x: np.sqrt((x * x).sum(-1)), lambda x: (x * x).sum(-1).sqrt()),
    "softmax": (
        lambda x: (
            np.exp(x - x.max(-1, keepdims=True))
            / np.exp(x - x.max(-1, keepdims=True)).sum(-1, keepdims=True)
            * x
        ).sum(-1),
        lambda x: (torch.softmax(x, -1) * x).sum(-1),
    ),
    "abs max": (lambda x: abs(x).max(-1), lambda x: torch.amax(abs(x), -1)),
}
#: Where the answer is another one on purpose, and is in the documentation: a NaN stays one, what is
#: infinite has no variance, and a root of squares is the norm that it is.
OTHERWISE = {
    ("norm 1", "nan"): [NAN, 1, 1],
    ("norm 1", "nans"): [NAN, NAN, 1],
    ("norm inf", "nan"): [NAN, NAN, NAN],
    ("norm inf", "nans"): [NAN, NAN, NAN],
    ("var", "infinite"): [NAN, NAN, NAN],
    ("var", "infinities"): [NAN, NAN, NAN],
    ("var", "-infinite"): [NAN, NAN, NAN],
    ("root of squares", "zeros"): [0, 0, 0],
}


def pair(ours, theirs, *operands):
    """Gradients of a function, each way."""
    arrays = [np.array(one, "float64") for one in operands]
    result, pull = zs.vjp(ours, *arrays)
    leaves = [torch.tensor(one, requires_grad=True) for one in arrays]
    value = theirs(*leaves)
    value.backward(torch.ones_like(value))
    np.testing.assert_allclose(result, value.detach().numpy(), rtol=RTOL)
    wanted = [np.zeros(x.shape) if x.grad is None else x.grad.numpy() for x in leaves]
    return pull(np.ones_like(result)), wanted


def check(ours, theirs, *operands):
    for slope, wanted in zip(*pair(ours, theirs, *operands), strict=True):
        np.testing.assert_allclose(slope, wanted, rtol=RTOL)


@pytest.mark.parametrize("name", UNARY)
def test_slopes_of_unary_functions_match_pytorch(name):
    check(*UNARY[name])


@pytest.mark.parametrize("name", BINARY)
def test_slopes_of_binary_functions_match_pytorch(name):
    check(*BINARY[name])


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_slopes_of_reductions_match_pytorch_or_the_listed_exceptions(name, row):
    if (name, row) not in OTHERWISE:
        check(*REDUCTIONS[name], ROWS[row])
        return
    (slope,), (wanted,) = pair(*REDUCTIONS[name], ROWS[row])
    np.testing.assert_array_equal(slope, OTHERWISE[name, row])
    assert not np.array_equal(wanted, slope, equal_nan=True)  # else the row is out of date


def test_slope_at_a_nan_is_nan():
    (slope,), (wanted,) = pair(zs.abs, torch.abs, [NAN])
    assert np.isnan(slope)
    assert wanted == 0


@pytest.mark.parametrize("options", [{"keepdims": True}, {"ddof": 1}, {"axis": None}])
def test_deviation_of_equals_has_the_same_slope_in_other_forms(options):
    x = np.full((2, 3), 0.5)
    axis = options.pop("axis", -1)
    for dtype in ("float64", "float32", "float16"):
        _, pull = zs.vjp(lambda x: (x.std(axis, **options) * 2).sum(), x.astype(dtype))
        assert (pull(1.0)[0] == 0).all()
    rows = zs.vjp(lambda x: np.sqrt(zs.sum_of_squares(x, -1)[:, None]), x * [[0], [1]])[1]
    np.testing.assert_allclose(rows(np.ones((2, 1)))[0], [[0] * 3, [3**-0.5] * 3])


def test_comparison_fails_on_other_gradients():
    with pytest.raises(AssertionError):
        check(zs.abs, lambda x: 2 * torch.abs(x) - torch.abs(x).detach(), [1.0])
