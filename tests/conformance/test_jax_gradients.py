"""Gradients of JAX arrays, by JAX, through the functions that zerostride lowers to."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jax", reason="its arrays and transforms are what is tested")

import jax
import jax.numpy as jnp
from array_samples import UNDER, softmax
from campaigns.gradients.command import BOUND, Result, _alone, check_ops, judge
from campaigns.gradients.draw import draw
from jax.test_util import check_grads

import zerostride as zs
from zerostride.fusion.grad.table import RULES

pytestmark = [pytest.mark.conformance, pytest.mark.usefixtures("with_64_bits")]


def by_grad(program, cotangents):
    """Results and gradients of a program by jax.vjp through one fused function."""
    fused = zs.fuse(lambda *operands: program(*operands))
    arrays = [jnp.asarray(array) for array in program.operands]
    floats = [k for k, array in enumerate(arrays) if array.dtype == np.float64]

    def of_floats(*given):
        values = list(arrays)
        for k, value in zip(floats, given, strict=True):
            values[k] = value
        return fused(*values)

    result, pull = jax.vjp(of_floats, *(arrays[k] for k in floats))
    single = len(program.outputs) == 1
    results = [result] if single else list(result)
    given = [
        jnp.asarray(one) if part.dtype == np.float64 else np.zeros(part.shape, jax.dtypes.float0)
        for one, part in zip(cotangents, results, strict=True)
    ]
    rest = iter(pull(given[0] if single else tuple(given)))
    gradients = [np.asarray(next(rest)) if k in floats else None for k in range(len(arrays))]
    return [np.asarray(one) for one in results], gradients


def test_gradients_of_random_programs_match_autograd():
    pytest.importorskip("torch", reason="torch.autograd says what the gradients are")
    result = Result()
    for case in range(4):
        judge(draw(12, case), f"12:{case}", result, by_grad)
    assert not result.differences, result.differences[0]
    assert result.worst < BOUND


@pytest.mark.slow
def test_gradients_of_every_op_match_finite_differences():
    result = Result()
    check_ops(3, result, by_grad)
    assert not result.differences, result.differences[0]


@pytest.mark.parametrize("name", ["multiply", "gelu", "elu"])
def test_check_grads_accepts_every_op_twice(name):
    arrays = [jnp.asarray(array[:2, :2]) for array in _alone(name, 5).operands]
    check_grads(getattr(zs, name), arrays, order=2, modes=("fwd", "rev"))
    assert name in RULES


@pytest.mark.parametrize(("rule", "one", "other", "more"), UNDER)
def test_check_grads_accepts_ops_under_rules(rule, one, other, more):
    numbers = np.random.default_rng(2)
    arrays = [jnp.asarray(numbers.uniform(0.5, 2, shape)) for shape in (one, other)]
    check_grads(lambda x, y: zs.divide(x, y, rule=rule, **more), arrays, order=2)


@pytest.mark.slow
def test_fused_gradients_match_jax():
    x = jnp.asarray(np.random.default_rng(0).normal(size=(2, 5)))
    check_grads(lambda x: softmax(x, 2.0), (x,), order=2)
    expected = jax.hessian(lambda x: jax.nn.softmax(x * 2)[0].sum())(x)
    assert jnp.allclose(jax.hessian(lambda x: softmax(x, 2.0)[0].sum())(x), expected)
    result, pull = softmax.vjp(x, 2.0)
    (to_x, _), wanted = pull(result), jax.vjp(lambda x: jax.nn.softmax(x * 2), x)[1](result)[0]
    assert isinstance(to_x, jax.Array)
    assert jnp.allclose(to_x, wanted)

    def under(x):
        result, pull = softmax.vjp(x, 2.0)
        return pull(result)[0]

    assert jnp.allclose(jax.jit(under)(x), wanted)
    plan = zs.plan((2, 3), (3,))
    assert (
        jax.grad(lambda g: plan.unbroadcast(g, 1)[1])(jnp.ones((2, 3))).tolist() == [[0, 1, 0]] * 2
    )
