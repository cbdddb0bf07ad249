"""Fused functions: their names, signatures, operands, dtypes and results."""

from __future__ import annotations

import collections
import dataclasses
import gc
import inspect
import pickle
import weakref

import ml_dtypes
import numpy as np
import pytest
from fused_samples import X, Y, same, scaled

import zerostride as zs
from zerostride.fusion.calls import sort
from zerostride.fusion.function import CACHE_SIZE, Fused


def test_comparison_fails_on_other_values():
    with pytest.raises(AssertionError):
        same(scaled(X, Y), X * Y)
    with pytest.raises(AssertionError):
        same(scaled(X, Y), (X * Y + 1).astype(np.float64))


# The decorator


def test_fused_function_keeps_its_name_and_signature():
    assert scaled.__name__ == "scaled"
    assert scaled.__doc__ == "Scales and shifts."
    assert list(inspect.signature(scaled).parameters) == ["x", "y", "gain"]
    assert scaled.__module__ == "fused_samples"
    assert repr(scaled) == "<fused scaled>"
    assert isinstance(scaled, Fused)
    assert scaled.__wrapped__(2, 3) == 7


def test_decorator_works_with_and_without_arguments():
    @zs.fuse(dtype="float64")
    def wide(x):
        return x / 3

    same(wide(X), X.astype(np.float64) / 3)
    same(zs.fuse(lambda x: x / 3)(X), X / 3)
    same(zs.fuse()(lambda x: x / 3)(X), X / 3)
    assert zs.fuse(lambda x, m: np.where(m, x, 0), dtype="f4")(X, X > 1).dtype == np.float32


def test_fused_function_is_pickled_by_name():
    assert pickle.loads(pickle.dumps(scaled)) is scaled
    with pytest.raises((AttributeError, pickle.PicklingError)):
        pickle.dumps(zs.fuse(lambda x: x))


@pytest.mark.parametrize("name", ["out", "progress"])
def test_parameters_named_as_options_are_operands(name):
    namespace = {}
    exec(f"def function(x, {name}):\n    return x", namespace)
    with pytest.raises(TypeError, match=f"has a parameter '{name}'"):
        zs.fuse(namespace["function"])
    # Of NumPy's functions and zerostride's it means what it means for the call.
    out = np.empty_like(X)
    for function in (np.exp, zs.exp):
        assert zs.fuse(function)(X, out=out) is out
        np.testing.assert_allclose(out, np.exp(X), rtol=1e-6)


def test_fuse_refuses_a_non_function():
    with pytest.raises(TypeError, match="takes a function, not int"):
        zs.fuse(3)


def test_methods_are_refused():
    class Model:
        @zs.fuse
        def forward(self, x):
            return x

    with pytest.raises(zs.TraceError, match="is a method"):
        Model().forward(X)
    assert isinstance(Model.forward, Fused)


def test_unused_fused_function_is_collected():
    function = zs.fuse(lambda x: x + 1)
    function(X)
    gone = weakref.ref(function)
    del function
    gc.collect()
    assert gone() is None


# Operands and settings


def test_lists_numbers_and_scalars_are_operands():
    same(scaled([1.0, 2.0], [3.0, 4.0]), np.array([4.0, 9.0]))
    same(scaled(X, 2), X * 2 + 1)
    same(scaled(X, np.float64(2)), X * np.float64(2) + 1)
    same(scaled(np.float32(3), np.float32(4)), np.float32(13))
    assert type(scaled(3, 4)) is np.float64
    assert type(zs.fuse(lambda a: a + 1)(3)) is np.int64
    assert type(zs.fuse(lambda a: a > 1)(3)) is np.bool_
    same(zs.fuse(lambda a, b: a & b)(np.array([True, False]), True), np.array([True, False]))


def test_numbers_are_read_in_each_call():
    for number in (2, 3, -1):
        same(scaled(X, number), X * number + 1)
    for number in (2.5, 3.5, float("nan")):
        same(scaled(X, number), X * np.float32(number) + 1)
    signatures = len(scaled._compiled)
    scaled(X, 17)
    assert len(scaled._compiled) == signatures


def test_settings_of_different_types_are_different_signatures():
    seen = []

    @zs.fuse
    def function(x, *, mode):
        seen.append(mode)
        return x * 1

    modes = [1, 1.0, True, 0.0, -0.0, np.float32(1), np.float64(1), "1", None, (1,), (True,), [1]]
    modes += [{"a": 1}, {"a": True}, np.float32(-0.0), np.float32(0.0), float, np.dtype("f4"), 1j]
    for _ in range(2):
        for mode in modes:
            function(X, mode=mode)
    assert [repr(mode) for mode in seen] == [repr(mode) for mode in modes]


def test_setting_may_change_between_calls():
    function = zs.fuse(lambda x, *, powers: sum(x**power for power in powers))
    powers = [1, 2]
    same(function(X, powers=powers), X + X**2)
    powers.append(1)
    same(function(X, powers=powers), X + X**2 + X)
    same(function(X[:2], powers=[1, 2]), X[:2] + X[:2] ** 2)
    same(function(X[:2], powers=(1, 2)), X[:2] + X[:2] ** 2)


def test_arrays_passed_by_name_are_operands():
    graph = scaled.graph(X, y=Y, gain=2)
    assert graph.inputs == 2
    same(scaled(X, y=Y), X * Y + 1)
    same(scaled(X, y=Y * 2, gain=np.full(8, 3, np.float32)), (X * (Y * 2) + 1) * np.float32(3))


def test_unhashable_settings_are_supported():
    with pytest.raises(TypeError, match=r"gain= is a set, which is not hashable"):
        scaled(X, Y, gain={1})


@pytest.mark.parametrize(
    ("operand", "words"),
    [
        ("text", "operand 0 is an array of <U4"),
        (None, "unsupported operand"),  # it is passed on, as a setting
        (object(), "operand 0 is a object"),
        (np.array(["a"]), "an array of <U1"),
        (np.zeros(2, "i4,f4"), "an array of"),
        (np.array("2020", "datetime64[Y]"), "an array of datetime64"),
        (np.ma.masked_array([1.0]), "masked array"),
    ],
)
def test_non_numeric_operands_are_refused(operand, words):
    with pytest.raises(TypeError, match=words):
        zs.fuse(lambda x: x + 1)(operand)


def test_ragged_lists_are_refused():
    with pytest.raises(zs.BroadcastError, match="operand 0 is not an array"):
        zs.fuse(lambda x: x + 1)([[1], [2, 3]])


def test_missing_operand_is_pythons_error():
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'y'"):
        scaled(X)


def test_signature_is_traced_once():
    calls = []

    @zs.fuse
    def function(x):
        calls.append(x.shape)
        return x + 1

    for shape in [(3,), (4,), (3,), (3, 1), (4,)]:
        for dtype in ("float32", "float32", "int8"):
            function(np.ones(shape, dtype))
    assert len(calls) == 6
    assert function(np.ones((3,))[::-1]).tolist() == [2, 2, 2]


def test_cached_signatures_are_limited():
    function = zs.fuse(lambda x, *, k: x + k)
    for k in range(CACHE_SIZE + 10):
        same(function(Y, k=k), Y + np.float32(k))
    assert len(function._compiled) == CACHE_SIZE
    same(function(Y, k=0), Y)


def test_control_flow_may_depend_on_shapes_and_settings():
    @zs.fuse
    def function(x, *, deep=False):
        if deep and x.ndim == 2:
            for k in range(len(x)):
                x = x + k
        return x if x.dtype == np.float32 else -x

    same(function(X), X)
    same(function(X, deep=True), ((((((X + 0) + 1) + 2) + 3) + 4) + 5))
    same(function(X.astype("f8")), -X.astype("f8"))


# Layouts and dtypes


@pytest.mark.parametrize(
    "lay",
    [
        lambda a: a[::-1, ::-1],
        lambda a: np.asfortranarray(a),
        lambda a: np.repeat(a, 2, axis=1)[:, ::2],
        lambda a: np.broadcast_to(a[:1], (6, 8)),
        lambda a: np.frombuffer(b"\0" + a.tobytes(), np.float32, offset=1).reshape(a.shape),
        lambda a: a.astype(">f4"),
        lambda a: a.view(type("Sub", (np.ndarray,), {})),
    ],
    ids=[
        "backwards",
        "fortran",
        "steps",
        "stretched",
        "unaligned",
        "swapped",
        "subclass",
    ],
)
def test_arrays_may_have_any_layout(lay):
    x = lay(X)
    result = scaled(x, Y)
    assert type(result) is np.ndarray
    assert result.dtype == np.dtype("f4")
    np.testing.assert_array_equal(result, np.asarray(x) * Y + 1)


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (1, 1), (3, 0)])
def test_small_and_empty_arrays_match_numpy(shape):
    x = np.ones(shape, np.float32)
    same(zs.fuse(lambda x: x * 2 + x)(x), x * 2 + x)
    same(zs.fuse(lambda x: x.sum())(x), x.sum())
    assert isinstance(zs.fuse(lambda x: x + 1)(np.float32(1)), np.float32)


def test_dtypes_outside_the_engine_are_computed():
    z = np.array([1 + 2j, 3 - 1j], np.complex64)
    wide = np.array([1, 2, 3], np.longdouble)
    same(zs.fuse(lambda z: abs(z * z) + 1)(z), abs(z * z) + 1)
    same(zs.fuse(lambda x: np.sqrt(x) / 3)(wide), np.sqrt(wide) / 3)
    same(zs.fuse(lambda z, k: z * k)(z, 2j), z * 2j)
    same(zs.fuse(lambda x: x + 1)(np.array([1, 10**30], object)), np.array([2, 10**30 + 1], object))
    compiled = zs.fuse(lambda z: z + 1).compiled(sort([z], {}))
    assert compiled.ready.program is None
    assert "complex64" in compiled.ready.reason or zs.backend() == "reference"


@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16])
def test_16_bit_floats_are_rounded_once(dtype):
    x, y = X.astype(dtype), Y.astype(dtype)
    a, b = x.astype("f4"), y.astype("f4")
    same(zs.fuse(lambda x, y: (x * y + x) * x)(x, y), ((a * b + a) * a).astype(dtype))
    mean = (a * a).astype("f8").mean(-1, keepdims=True).astype("f4")
    result = zs.fuse(lambda x: x / np.sqrt((x * x).mean(-1, keepdims=True)))(x)
    assert result.dtype == x.dtype
    np.testing.assert_allclose(
        result.astype("f8"), a / np.sqrt(mean), rtol=float(ml_dtypes.finfo(dtype).eps)
    )


def test_numbers_beyond_a_float_become_infinite_without_a_warning():
    half = np.ones(3, np.float16)
    for number in (1e10, 10**10, -1e300):
        same(
            zs.fuse(lambda x, n=number: x + n)(half), np.full(3, np.copysign(np.inf, number), "f2")
        )
        same(
            zs.fuse(lambda x, n: x + n)(half, number), np.full(3, np.copysign(np.inf, number), "f2")
        )
    same(zs.fuse(lambda x: x * 1e300)(np.ones(3, "f4")), np.full(3, np.inf, "f4"))


def test_integer_beyond_its_dtype_is_refused():
    add, less = zs.fuse(lambda x, n: x + n), zs.fuse(lambda x, n: x < n)
    x = np.arange(3, dtype=np.uint8)
    for number in (0, 200, 255):
        same(add(x, number), x + np.uint8(number))
    for number in (-1, 256, 2**70):
        with pytest.raises(
            OverflowError, match=rf"{number} out of bounds for uint8\n.*in <lambda>"
        ):
            add(x, number)
        same(less(x, number), x < number)
    same(less(x, 1), x < 1)
    same(add(np.zeros(1, np.uint64), 2**63), np.array([2**63], np.uint64))
    same(add(np.zeros(1), 2**70), np.array([2.0**70]))


def test_negative_powers_of_integers_are_refused():
    power = zs.fuse(lambda x, n: x**n)
    same(power(np.arange(4), np.arange(4)), np.arange(4) ** np.arange(4))
    for exponent in (-1, np.array([1, -1, 2, 0])):
        with pytest.raises(ValueError, match="negative integer powers"):
            power(np.arange(4), exponent)


# Results

Pair = collections.namedtuple("Pair", "low high")


def test_results_keep_their_structure():
    @zs.fuse
    def function(x):
        return {"a": x + 1, "b": [x, 2.5, (x.sum(0),)], "c": Pair(x - 1, np.float32(3))}

    result = function(X)
    assert list(result) == ["a", "b", "c"]
    assert type(result["b"]) is list
    assert type(result["c"]) is Pair
    same(result["a"], X + 1)
    same(result["b"][0], X)
    same(result["b"][1], np.float64(2.5))
    np.testing.assert_allclose(result["b"][2][0], X.sum(0), rtol=1e-6)
    same(result["c"].low, X - 1)
    same(result["c"].high, np.float32(3))


def test_result_is_never_an_operand_or_another_result():
    weights = np.ones(8, np.float32)

    @zs.fuse
    def function(x):
        y = x + 1
        return x, x.T, weights, y, y, x[None]

    results = function(X)
    for k, one in enumerate(results):
        assert one.flags.writeable
        for other in (X, weights, *results[:k]):
            assert not np.shares_memory(one, other)
    same(results[1], X.T)
    same(results[5], X[None])


def test_function_without_results_is_supported():
    assert zs.fuse(lambda x: ())(X) == ()


def test_captured_arrays_are_read_in_each_call():
    weights = np.ones(8, np.float32)
    function = zs.fuse(lambda x: x * weights)
    same(function(X), X)
    weights[:] = 2
    same(function(X), X * 2)
    # Which array it is was settled with the signature, as documented.
    weights = np.zeros(8, np.float32)
    same(function(X), X * 2)
    same(function(X[:2]), X[:2] * 0)


@dataclasses.dataclass(frozen=True)
class Gain:
    by: float


@pytest.mark.parametrize("make", [Gain, lambda by: frozenset({by})])
def test_equal_numbers_inside_a_setting_keep_their_types(make):
    def scaled(x, *, gain):
        return x * (gain.by if isinstance(gain, Gain) else next(iter(gain)))

    fused = zs.fuse(scaled)
    x = np.ones(3, np.int8)
    assert fused(x, gain=make(1)).dtype == np.int8
    assert fused(x, gain=make(1.0)).dtype == np.float64
