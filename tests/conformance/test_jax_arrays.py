"""JAX arrays as operands: in memory, under jit and under vmap."""

from __future__ import annotations

import re

import numpy as np
import pytest

pytest.importorskip("jax", reason="its arrays and transforms are what is tested")

import jax
import jax.numpy as jnp
from array_samples import UNDER, softmax
from campaigns.arrays.command import RULES as PLANS
from campaigns.arrays.command import tallied
from campaigns.arrays.libraries import ROWS

import zerostride as zs

pytestmark = [pytest.mark.conformance, pytest.mark.usefixtures("with_64_bits")]


@zs.fuse
def scaled(x, bias):
    return zs.add(x, bias, rule="pdpd", axis=1) * 2


# Values


@pytest.mark.parametrize("rule", PLANS)
def test_generated_cases_match_the_reference(rule):
    tally = tallied(ROWS["jax"], rule, 0, 60, seed=4)
    assert tally.cases == 60
    assert not tally.differing, tally.shown


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
def test_every_op_under_jit_has_the_references_values(dtype):
    """Each op of the table on ordinary numbers of several shapes, beside NumPy's arrays."""
    from zerostride.ops import OPS

    numbers = np.random.default_rng(0)
    whole = dtype in ("int32", "uint8")
    given = {}
    for name, op in OPS.items():
        if name == "cast" or name.startswith("bitwise") != whole:
            continue
        high = 0.9 if name in ("asin", "acos", "atanh") else 3
        values = [
            numbers.integers(0, 9, shape) if whole else numbers.uniform(0.1, high, shape)
            for shape in [(3, 4), (4,), (3, 1)][: op.operands]
        ]
        if name == "acosh":
            values[0] = values[0] + 1
        given[name] = [value.astype(dtype) for value in values]

    def computed(arrays):
        return {name: getattr(zs, name)(*operands) for name, operands in arrays.items()}

    expected = computed(given)
    result = jax.jit(computed)(jax.tree_util.tree_map(jnp.asarray, given))
    bound = 1e-5 if dtype == "float32" else 1e-13
    for name, wanted in expected.items():
        assert result[name].dtype == np.asarray(wanted).dtype, name
        np.testing.assert_allclose(result[name], wanted, bound, bound, err_msg=name)
    assert len(result) > (4 if whole else 70)


@pytest.mark.parametrize(("rule", "one", "other", "more"), UNDER)
def test_vmap_matches_a_loop(rule, one, other, more):
    numbers = np.random.default_rng(1)
    x, y = (jnp.asarray(numbers.normal(size=(5, *shape))) for shape in (one, other))

    def function(a, b):
        return zs.multiply(a, b, rule=rule, **more) + softmax(a, 1.0)

    looped = jnp.stack([function(a, b) for a, b in zip(x, y, strict=True)])
    assert jnp.allclose(jax.vmap(function)(x, y), looped)
    assert jnp.allclose(
        jax.jit(jax.vmap(function, in_axes=(0, None)))(x, y[0]),
        jnp.stack([function(a, y[0]) for a in x]),
    )


def test_plan_becomes_broadcast_in_dim():
    def primitives(function, *arrays):
        text = str(jax.make_jaxpr(function)(*arrays))
        return set(re.findall(r"= (\w+)[\[ ]", text))

    for rule, one, other, more in UNDER:
        x, y = jnp.ones(one), jnp.ones(other)
        ops = primitives(lambda x, y: zs.add(x, y, rule=rule, **more), x, y)  # noqa: B023
        assert ops <= {"add", "broadcast_in_dim", "squeeze"}, (rule, ops)
    ops = primitives(scaled, jnp.ones((2, 3, 4)), jnp.ones(3))
    assert ops == {"add", "broadcast_in_dim", "mul"}
    dropped = primitives(
        lambda x, y: zs.add(x, y, rule="pdpd", axis=1), jnp.ones((2, 3)), jnp.ones((3, 1))
    )
    assert dropped == {"add", "broadcast_in_dim", "squeeze"}
    ops = primitives(
        lambda x: zs.broadcast(x, (2, 3), mode="explicit", axes_mapping=[0]), jnp.ones(2)
    )
    assert ops == {"broadcast_in_dim"}


def test_reductions_under_jit_match_numpy():
    x = jnp.asarray(np.random.default_rng(0).normal(size=(2, 3, 4)))
    for name in (
        "sum",
        "prod",
        "mean",
        "min",
        "max",
        "any",
        "all",
        "argmin",
        "argmax",
        "logsumexp",
    ):
        for axis in (None, 1, (0, 2)):

            def function(x, name=name, axis=axis):
                return getattr(zs, name)(x, axis=axis, keepdims=True)

            result, expected = jax.jit(function)(x), function(np.asarray(x))
            assert result.dtype == expected.dtype
            assert np.allclose(result, expected), (name, axis)


def test_whole_powers_and_quotients_match():
    a = jnp.asarray([3, -1, 2, 5, 0, -128], jnp.int8)
    b = jnp.asarray([70, 3, 7, 0, 0, -1], jnp.int8)
    for name in ("floor_divide", "remainder", "fmod"):
        function = getattr(zs, name)
        assert jnp.array_equal(jax.jit(function)(a, b), function(a, b)), name
    powers = jax.jit(zs.pow)(a, jnp.abs(b))
    assert jnp.array_equal(powers, zs.pow(a, jnp.abs(b)))


# Where they lie, and their dtypes


def test_memory_is_read_in_place(monkeypatch):
    from zerostride.arrays.jax import adapter as jax_arrays

    seen = []
    lowered = jax_arrays.lowered

    def lowering(values):
        arrays = lowered(values)
        for value, array in zip(values, arrays, strict=True):
            seen.append((value.unsafe_buffer_pointer(), array.ctypes.data, array.flags.writeable))
        return arrays

    monkeypatch.setattr(jax_arrays, "lowered", lowering)
    x = jnp.arange(12, dtype=jnp.float32).reshape(3, 4)
    large = jnp.ones((512, 512), jnp.float32)
    for one in (x, x.astype(jnp.bfloat16), large):
        assert isinstance(zs.add(one, one), jax.Array)
    assert len(seen) >= 6
    assert all(theirs == ours and not writable for theirs, ours, writable in seen)


def test_large_results_are_made_in_jaxs_memory(monkeypatch):
    from zerostride.arrays.jax import adapter as jax_arrays

    entries = []
    aligned = jax_arrays.aligned

    def aligning(shape, dtype):
        entries.append(aligned(shape, dtype))
        return entries[-1]

    monkeypatch.setattr(jax_arrays, "aligned", aligning)
    x = jnp.ones((512, 512), jnp.float32)
    assert zs.add(x, 1).unsafe_buffer_pointer() == entries[-1].ctypes.data
    assert scaled(x[None], x[0, :1]).unsafe_buffer_pointer() == entries[-1].ctypes.data
    assert jnp.array_equal(zs.exp(x * 0), x)


def test_results_are_ordinary_jax_arrays(monkeypatch):
    """By the function that `jax.device_put` ends in, which is looked at before it is relied on."""
    from zerostride.arrays.jax import data as jax_data

    assert jax_data._put() is not None
    near = jnp.ones(3)
    placed = jax.device_put(near, jax.local_devices()[0])
    results = [
        np.arange(6).reshape(2, 3).astype(dtype)
        for dtype in ("bool", "int8", "uint16", "int64", "float16", "float64", "complex64")
    ]
    results += [np.asarray(jnp.ones(2, jnp.bfloat16)), np.float32(1), np.zeros((0, 2), "float32")]
    results += [results[0].T, np.broadcast_to(np.float32(2), (2, 3))]
    for bits in (True, False):
        with jax.enable_x64(bits):
            for like in (near, placed):
                for result in results:
                    with monkeypatch.context() as without:
                        without.setattr(jax_data, "_put", lambda: None)
                        slow = jax_data.raised(result, like)
                    fast = jax_data.raised(result, like)
                    assert type(fast) is type(slow)
                    assert (fast.dtype, fast.shape) == (slow.dtype, slow.shape)
                    assert not fast.weak_type
                    assert fast.committed == like.committed
                    assert fast.sharding == slow.sharding
                    assert jnp.array_equal(fast, slow)
    with jax.default_device(jax.local_devices()[0]):
        assert zs.add(near, near).tolist() == [2, 2, 2]


def test_memory_of_other_owners_is_not_taken():
    given = _aligned_zeros()
    (_, view) = zs.plan((4,), (4,)).views(jnp.ones(4), given)
    given[:] = 1
    assert view.tolist() == [0] * 4


def _aligned_zeros():
    """NumPy's array whose memory JAX could take as its own."""
    memory = np.zeros(64 + 16, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + 16].view(np.float32)


def test_complex_numbers_are_rounded_by_parts():
    x = jnp.asarray([0.4 + 2.5j, -1.5 - 0.2j])
    for call in (lambda function: function, jax.jit):
        assert call(zs.round)(x).tolist() == [2j, -2 - 0j]


def test_dtypes_with_x64():
    half, whole = jnp.ones(2, jnp.float16), jnp.ones(2, jnp.int32)
    for call in (lambda function: function, jax.jit):
        assert call(zs.add)(half, whole).dtype == jnp.float64
        assert call(zs.divide)(whole, whole).dtype == jnp.float64
        assert call(zs.sum)(whole).dtype == jnp.int64
        assert call(lambda x: zs.add(x, 2.0))(half).dtype == jnp.float16
        assert call(lambda x: zs.cast(x, "bfloat16"))(half).dtype == jnp.bfloat16
        assert call(zs.add)(half, np.ones(2)).dtype == jnp.float64


def test_dtypes_without_x64():
    with jax.enable_x64(False):
        half, whole = jnp.ones(2, jnp.float16), jnp.ones(2, jnp.int32)
        for call in (lambda function: function, jax.jit):
            assert call(zs.add)(half, whole).dtype == jnp.float32
            assert call(zs.divide)(whole, whole).dtype == jnp.float32
            assert call(zs.sum)(whole).dtype == jnp.int32
            assert call(zs.argmax)(half).dtype == jnp.int32
            assert call(zs.add)(half, np.ones(2)).dtype == jnp.float32
            assert call(lambda x: zs.cast(x, "float64"))(half).dtype == jnp.float32
            assert call(lambda x: softmax(x, 1.0))(half).dtype == jnp.float16


def test_weakly_typed_numbers_promote_as_python_numbers():
    half = jnp.ones(2, jnp.float16)
    assert jax.jit(lambda x, s: zs.multiply(x, s))(half, 2.0).dtype == jnp.float16
    assert zs.multiply(half, jnp.asarray(2.0)).dtype == jnp.float16
    assert zs.multiply(half, jnp.asarray(2.0, jnp.float32)).dtype == jnp.float32
    assert jax.jit(softmax)(half, 2.0).dtype == jnp.float16
    assert jax.grad(lambda s: zs.sum(zs.multiply(half, s)).astype(float))(2.0) == 2


def test_numpy_arrays_may_be_mixed_with_jax_arrays():
    x = jnp.ones((2, 3))
    assert isinstance(zs.add(x, np.arange(3)), jax.Array)
    assert isinstance(zs.add(np.arange(3), x), jax.Array)
    assert isinstance(scaled(x, np.arange(3.0)), jax.Array)
    assert jax.jit(lambda x: scaled(x, np.arange(3.0)))(x).tolist() == [[2, 4, 6]] * 2
    assert zs.add(x, [1, 2, 3]).tolist() == [[2, 3, 4]] * 2


def test_settings_and_structures_work_under_jit():
    weights = np.array([1.0, 2.0])

    @zs.fuse
    def several(x, *, gain=1, bias=None):
        y = x * gain if bias is None else x * gain + bias
        return {"y": y * weights, "sums": (y.sum(-1), y.max())}

    x = jnp.ones((3, 2))
    result = jax.jit(lambda x, bias: several(x, gain=3, bias=bias))(x, jnp.ones(2))
    assert result["y"].tolist() == [[4, 8]] * 3
    assert result["sums"][1] == 4
    assert jnp.array_equal(several(x, gain=3, bias=jnp.ones(2))["y"], result["y"])


# What is refused


def test_out_and_other_unsupported_arguments_are_refused():
    x = jnp.ones(3)
    with pytest.raises(TypeError, match="JAX's arrays are not written to"):
        zs.add(x, 1, out=x)
    with pytest.raises(TypeError, match="out"):
        zs.add(x, 1, out=np.empty(3))
    with pytest.raises(TypeError, match="JAX's arrays are not written to"):
        softmax(x, 1.0, out=x)
    with pytest.raises(zs.BroadcastError):
        jax.jit(zs.add)(x, jnp.ones(4))
    with pytest.raises(TypeError, match="holds no numbers"):
        zs.add(jax.random.key(0), 1)
    with pytest.raises(zs.BroadcastError, match="own values of divide on int32"):
        jax.jit(lambda a: zs.divide(a, a, engine="onnxruntime"))(jnp.ones(3, jnp.int32))
    with pytest.raises(TypeError, match="progress="):
        jax.jit(lambda x: softmax(x, 1.0, progress=print))(x)
    with pytest.raises(TypeError, match="holds arrays in a list"):
        softmax(x, 1.0, more=[x])
    with pytest.raises(zs.BroadcastError, match="operand 0 has shape"):
        zs.plan((2, 3)).views(x)


def test_open_sizes_are_refused():
    from jax import export

    shape = export.symbolic_shape("a, 3")
    for function in (softmax, scaled):
        with pytest.raises(zs.BroadcastError, match=r"\(a, 3\), whose sizes are not all known"):
            export.export(jax.jit(lambda x, f=function: f(x, x)))(
                jax.ShapeDtypeStruct(shape, jnp.float32)
            )
