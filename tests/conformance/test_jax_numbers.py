"""Python numbers beside JAX arrays of 16-bit floats: JAX's dtypes in every kind of call."""

from __future__ import annotations

import functools

import numpy as np
import own_numbers
import pytest

pytest.importorskip("jax", reason="its arrays and transforms are what is tested")

import jax
import jax.numpy as jnp
from own_numbers import NUMBERS, VALUES, expected

import zerostride as zs

pytestmark = pytest.mark.conformance

HALVES = {"bfloat16": jnp.bfloat16, "float16": jnp.float16}
CASES = [(half, number) for half in HALVES for number in NUMBERS]
#: Calls from this size on go another way, by the operands' bytes.
LARGE = 1 << 18


@pytest.fixture(params=[False, True], ids=["32 bits", "64 bits"])
def _bits(request):
    with jax.enable_x64(request.param):
        yield


def operands(half):
    return jnp.array(VALUES, HALVES[half]), jnp.arange(len(VALUES)) % 2 == 0


def to_numpy(array):
    return np.asarray(array), array.dtype


def check(results, half, number):
    assert jnp.result_type(jnp.ones(2, HALVES[half]), number) == HALVES[half]
    own_numbers.check(results, expected(HALVES[half], number), to_numpy, half)


def every(half, number):
    return functools.partial(own_numbers.every, calls=tuple(expected(HALVES[half], number)))


@pytest.mark.parametrize(("half", "number"), CASES)
@pytest.mark.usefixtures("_bits")
def test_every_op_gives_the_dtype_of_jax(half, number):
    x, c = operands(half)
    check(every(half, number)(x, c, number), half, number)


@pytest.mark.parametrize(("half", "number"), CASES)
def test_every_fused_op_gives_the_dtype_of_jax(half, number):
    """The number is an operand of the call, or stands in the function."""
    x, c = operands(half)
    call = every(half, number)
    for _ in range(3):  # the engine answers the later ones alone
        check(zs.fuse(lambda x, c, n: call(x, c, n))(x, c, number), half, number)
        check(zs.fuse(lambda x, c: call(x, c, number))(x, c), half, number)


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.usefixtures("_bits")
def test_every_op_under_jit_gives_the_dtype_of_jax(half):
    """XLA computes it: the same as with the number as an array; a number may be an operand, too."""
    x, c = operands(half)
    call = every(half, 0.3)
    wanted = jax.jit(lambda x, c: call(x, c, jnp.asarray(0.3, HALVES[half])))(x, c)
    for results in (jax.jit(lambda x, c: call(x, c, 0.3))(x, c), jax.jit(call)(x, c, 0.3)):
        for name, one, right in zip(expected(HALVES[half], 0.3), results, wanted, strict=True):
            assert one.dtype == right.dtype, name
            assert own_numbers.same(np.asarray(one), np.asarray(right)), name


@pytest.mark.parametrize("half", HALVES)
def test_every_op_under_transformations_gives_the_dtype_of_jax(half):
    x, c = operands(half)
    call = every(half, 0.3)
    dtypes = [one.dtype for one in call(x, c, 0.3)]
    assert [one.dtype for one in jax.eval_shape(lambda x, c: call(x, c, 0.3), x, c)] == dtypes
    mapped = jax.eval_shape(jax.vmap(lambda x, c: call(x, c, 0.3)), x, c)
    assert [one.dtype for one in mapped] == dtypes
    smooth = [one for one in expected(HALVES[half], 0.3) if not one.startswith("nextafter")]

    def total(x):
        results = own_numbers.every(x, c, 0.3, smooth)  # JAX has no slope of nextafter
        return sum(one.sum() for one in results if one.dtype == x.dtype)

    assert jax.eval_shape(jax.grad(total), x).dtype == HALVES[half]


def test_jaxs_own_functions_give_the_same_dtype():
    x, c = operands("bfloat16")
    for name in ("add", "subtract", "multiply", "divide", "floor_divide", "fmod", "copysign"):
        for number in (0.5, 0.3, 1):
            assert getattr(zs, name)(x, number).dtype == getattr(jnp, name)(x, number).dtype
            assert getattr(zs, name)(number, x).dtype == getattr(jnp, name)(number, x).dtype
    assert zs.pow(x, 0.3).dtype == (x**0.3).dtype == jnp.bfloat16
    assert zs.where(c, x, 0.3).dtype == jnp.where(c, x, 0.3).dtype == jnp.bfloat16
    assert zs.clip(x, 0.1, 0.3).dtype == jnp.clip(x, 0.1, 0.3).dtype == jnp.bfloat16


def test_large_arrays_and_other_functions_take_numbers():
    x = jnp.ones(LARGE, jnp.bfloat16)
    fused = zs.fuse(lambda x: (x**0.5, 0.3 / x, np.select([x > 0], [x], 0.3), np.round(x, 2)))
    for given in (x, x[:3]):
        assert zs.multiply(given, 0.3).dtype == jnp.bfloat16
        assert zs.where(given > 0, given, 0.3).dtype == jnp.bfloat16
        assert {one.dtype for one in fused(given)} == {jnp.dtype("bfloat16")}
        assert {one.dtype for one in jax.jit(fused)(given)} == {jnp.dtype("bfloat16")}
    result, pull = zs.vjp(lambda x: x * 0.3, x)
    assert result.dtype == pull(jnp.ones_like(result))[0].dtype == jnp.bfloat16
    graph = zs.fuse(lambda x: x * 0.3).graph(x)
    assert graph.nodes[graph.outputs[0]].dtype == "bfloat16"


def test_other_dtypes_promote_as_in_numpy():
    """Of NumPy's own arrays, of integers, and where NumPy's values are asked for."""
    x, c = operands("bfloat16")
    brain = np.asarray(x)
    fused = zs.fuse(lambda x: x * 0.3)
    for given, dtype in ((x, jnp.bfloat16), (brain, np.float32), (x, jnp.bfloat16)):
        assert fused(given).dtype == dtype  # a signature of its own for each
        assert fused(given).dtype == dtype
    assert zs.add(brain, 0.3).dtype == np.float32
    added = functools.partial(zs.add, b=0.3, engine="numpy")
    assert added(x).dtype == jax.jit(added)(x).dtype == jnp.float32
    with jax.enable_x64(True):
        assert zs.add(jnp.ones(2, jnp.int32), 0.3).dtype == jnp.float64
        assert zs.where(c, 0.3, 0.5).dtype == jnp.float64
        assert zs.add(x, 0.3j).dtype == jnp.complex64


def test_weakly_typed_jax_numbers_promote_as_python_numbers():
    """A Python float that went through jit is one still."""
    x, _ = operands("bfloat16")
    for function in (zs.multiply, zs.fuse(lambda x, n: x * n)):
        assert jax.jit(function)(x, 0.3).dtype == jnp.bfloat16
        assert function(x, jnp.asarray(0.3)).dtype == (x * jnp.asarray(0.3)).dtype == jnp.bfloat16


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_floats_of_8_bits(name):
    x = jnp.ones(3, name)
    for call in (lambda x: zs.multiply(x, 0.3), zs.fuse(lambda x: x * 0.3)):
        assert call(x).dtype == jax.jit(call)(x).dtype == (x * 0.3).dtype == name
