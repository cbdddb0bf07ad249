"""`Plan.unbroadcast` by the fused path: the same sums, dtypes and errors as NumPy's."""

import re

import numpy as np
import pytest

import zerostride as zs
from zerostride.compute import reference
from zerostride.fusion.grad import adjoint
from zerostride.fusion.grad.adjoint import unbroadcast

PLANS = [
    zs.plan((256, 70), (70,)),
    zs.plan((256, 70), (256, 1)),
    zs.plan((256, 70), ()),
    zs.plan((1, 70), (256, 1)),
    zs.plan((6, 3, 40, 25), (3, 40), rule="pdpd", axis=1),
    zs.plan((180, 95), (95, 1), rule="pdpd", axis=1),
    zs.plan((5, 4, 7, 3, 2, 30), (1, 4, 1, 3, 1, 30)),
    zs.plan((5, 4, 7, 3, 2, 30), (5, 1, 7, 1, 2, 1)),
]
DTYPES = ["bool", "int8", "uint32", "int64", "float16", "float32", "float64", "complex64"]


def grads(shape, dtype, rng):
    """Small whole numbers, whose sums are exact in every dtype, in several layouts."""
    whole = rng.integers(0, 3, shape).astype(dtype)
    yield whole
    yield np.asfortranarray(whole)
    yield np.repeat(whole, 2, axis=-1)[..., ::2]
    yield whole[::-1]
    yield np.broadcast_to(whole[:1], shape)


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: f"{plan.shape}")
@pytest.mark.parametrize("dtype", DTYPES)
def test_unbroadcast_is_numpys_sum(plan, dtype):
    for grad in grads(plan.shape, dtype, np.random.default_rng(0)):
        for k in range(2):
            expected = reference.unbroadcast(plan, grad, k)
            actual = unbroadcast(plan, grad, k)
            assert actual.dtype == expected.dtype
            assert type(actual) is np.ndarray
            assert actual.shape == plan.operands[k]
            np.testing.assert_array_equal(actual, expected)
            assert not np.shares_memory(actual, grad)


def test_floats_are_summed_as_exactly_as_by_numpy():
    grad = np.random.default_rng(1).normal(size=(3000, 20)).astype("float32")
    exact = grad.astype("float64").sum(0)
    error = np.abs(unbroadcast(zs.plan((3000, 20), (20,)), grad, 1) - exact).max()
    assert error <= np.abs(grad.sum(0) - exact).max() + 1e-6


def test_halves_are_summed_in_32_bits():
    plan = zs.plan((4096, 2), (2,))
    assert unbroadcast(plan, np.ones((4096, 2), "float16"), 1).tolist() == [4096, 4096]
    many = np.full((4096, 2), 100, "float16")
    assert unbroadcast(plan, many, 1).tolist() == [np.inf, np.inf]  # and no warning


def test_plan_method_computes_the_same():
    plan = zs.plan((4, 3, 40, 25), (3, 40), rule="pdpd", axis=1)
    grad = np.random.default_rng(2).normal(size=plan.shape)
    np.testing.assert_allclose(plan.unbroadcast(grad, 1), grad.sum((0, 3)), rtol=1e-12)


def test_large_sums_take_the_fused_path(monkeypatch):
    seen = []

    def noted(x, axis, keepdims):
        seen.append(x)
        return reference.summed(x, axis)

    monkeypatch.setattr(adjoint, "backend", lambda: "native")
    monkeypatch.setattr(adjoint, "fused_sum", noted)
    unbroadcast(zs.plan((200, 100), (100,)), np.ones((200, 100)), 1)
    unbroadcast(zs.plan((2, 3), (3,)), np.ones((2, 3)), 1)
    unbroadcast(zs.plan((200, 100), (100,)), np.ones((200, 100), "complex64"), 1)
    unbroadcast(zs.plan((200, 100), (100,)), np.ones((200, 100)), 0)
    assert len(seen) == 1


def test_errors_match_the_reference():
    plan = zs.plan((100, 100), (100,))
    with pytest.raises(zs.BroadcastError, match=re.escape("grad has shape (100,)")):
        unbroadcast(plan, np.ones(100), 1)
    for k in (2, -1):
        with pytest.raises(zs.BroadcastError, match="there is no operand"):
            unbroadcast(plan, np.ones((100, 100)), k)
    large = zs.plan((0, 2**62), (1, 2**62))  # a sum of none of them has more bytes than there are
    with pytest.raises(zs.BroadcastError) as caught:
        unbroadcast(large, np.empty(large.shape, "bool"), 1)
    assert caught.value.reason == "too_large"
