"""Calls of fused functions: signatures, results and where they go, threads, and what is refused."""

from __future__ import annotations

import collections
import gc
import inspect
import pickle
import threading
import weakref

import ml_dtypes
import numpy as np
import pytest

import zerostride as zs
from zerostride.fuse.function import CACHE_SIZE, Fused, Settled, sort
from zerostride.fuse.graph import Apply

RNG = np.random.default_rng(11)
X = RNG.uniform(0.5, 3, (6, 8)).astype(np.float32)
Y = RNG.uniform(0.5, 3, (8,)).astype(np.float32)


@zs.fuse
def scaled(x, y, *, gain=1.0):
    """Scales and shifts."""
    return (x * y + 1) * gain


@zs.fuse
def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def same(found, wanted):
    """Equal in shape, dtype and values."""
    wanted = np.asarray(wanted)
    assert (np.shape(found), found.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_array_equal(found, wanted)


def test_the_comparison_fails_where_values_differ():
    with pytest.raises(AssertionError):
        same(scaled(X, Y), X * Y)
    with pytest.raises(AssertionError):
        same(scaled(X, Y), (X * Y + 1).astype(np.float64))


# The decorator


def test_a_fused_function_is_named_as_its_function():
    assert scaled.__name__ == "scaled"
    assert scaled.__doc__ == "Scales and shifts."
    assert list(inspect.signature(scaled).parameters) == ["x", "y", "gain"]
    assert scaled.__module__ == __name__
    assert repr(scaled) == "<fused scaled>"
    assert isinstance(scaled, Fused)
    assert scaled.__wrapped__(2, 3) == 7


def test_with_and_without_arguments():
    @zs.fuse(dtype="float64")
    def wide(x):
        return x / 3

    same(wide(X), X.astype(np.float64) / 3)
    same(zs.fuse(lambda x: x / 3)(X), X / 3)
    same(zs.fuse()(lambda x: x / 3)(X), X / 3)
    assert zs.fuse(lambda x, m: np.where(m, x, 0), dtype="f4")(X, X > 1).dtype == np.float32


def test_pickled_by_name():
    assert pickle.loads(pickle.dumps(scaled)) is scaled
    with pytest.raises((AttributeError, pickle.PicklingError)):
        pickle.dumps(zs.fuse(lambda x: x))


@pytest.mark.parametrize("name", ["out", "progress"])
def test_parameters_that_a_call_has_itself(name):
    namespace = {}
    exec(f"def function(x, {name}):\n    return x", namespace)
    with pytest.raises(TypeError, match=f"has a parameter '{name}'"):
        zs.fuse(namespace["function"])
    # Of NumPy's functions and zerostride's it means what it means for the call.
    out = np.empty_like(X)
    for function in (np.exp, zs.exp):
        assert zs.fuse(function)(X, out=out) is out
        np.testing.assert_allclose(out, np.exp(X), rtol=1e-6)


def test_what_is_no_function():
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


def test_a_fused_function_is_forgotten():
    function = zs.fuse(lambda x: x + 1)
    function(X)
    gone = weakref.ref(function)
    del function
    gc.collect()
    assert gone() is None


# Operands and settings


def test_lists_numbers_and_scalars():
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


def test_settings_are_told_apart():
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


def test_a_setting_may_change_between_calls():
    function = zs.fuse(lambda x, *, powers: sum(x**power for power in powers))
    powers = [1, 2]
    same(function(X, powers=powers), X + X**2)
    powers.append(1)
    same(function(X, powers=powers), X + X**2 + X)
    same(function(X[:2], powers=[1, 2]), X[:2] + X[:2] ** 2)
    same(function(X[:2], powers=(1, 2)), X[:2] + X[:2] ** 2)


def test_arrays_by_name_are_operands():
    graph = scaled.graph(X, y=Y, gain=2)
    assert graph.inputs == 2
    same(scaled(X, y=Y), X * Y + 1)
    same(scaled(X, y=Y * 2, gain=np.full(8, 3, np.float32)), (X * (Y * 2) + 1) * np.float32(3))


def test_settings_that_are_not_hashable():
    with pytest.raises(TypeError, match=r"gain= is a set, which is not hashable"):
        scaled(X, Y, gain={1})


@pytest.mark.parametrize(
    ("operand", "words"),
    [
        ("text", "operand 0 is an array of <U4"),
        (None, "operand 0 is None"),
        (object(), "operand 0 is a object"),
        (np.array(["a"]), "an array of <U1"),
        (np.zeros(2, "i4,f4"), "an array of"),
        (np.array("2020", "datetime64[Y]"), "an array of datetime64"),
        (np.ma.masked_array([1.0]), "masked array"),
    ],
)
def test_operands_that_are_no_numbers(operand, words):
    with pytest.raises(TypeError, match=words):
        zs.fuse(lambda x: x + 1)(operand)


def test_ragged_lists():
    with pytest.raises(zs.BroadcastError, match="operand 0 is not an array"):
        zs.fuse(lambda x: x + 1)([[1], [2, 3]])


def test_a_missing_operand_is_pythons_error():
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'y'"):
        scaled(X)


def test_a_signature_is_traced_once():
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


def test_signatures_are_bounded():
    function = zs.fuse(lambda x, *, k: x + k)
    for k in range(CACHE_SIZE + 10):
        same(function(Y, k=k), Y + np.float32(k))
    assert len(function._compiled) == CACHE_SIZE
    same(function(Y, k=0), Y)


def test_control_flow_by_shapes_and_settings():
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
        lambda a: np.matrix(a),
    ],
    ids=[
        "backwards",
        "fortran",
        "steps",
        "stretched",
        "unaligned",
        "swapped",
        "subclass",
        "matrix",
    ],
)
@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_arrays_of_any_layout(lay):
    x = lay(X)
    result = scaled(x, Y)
    assert type(result) is np.ndarray
    assert result.dtype == np.dtype("f4")
    np.testing.assert_array_equal(result, np.asarray(x) * Y + 1)


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (1, 1), (3, 0)])
def test_small_and_empty(shape):
    x = np.ones(shape, np.float32)
    same(zs.fuse(lambda x: x * 2 + x)(x), x * 2 + x)
    same(zs.fuse(lambda x: x.sum())(x), x.sum())
    assert isinstance(zs.fuse(lambda x: x + 1)(np.float32(1)), np.float32)


def test_dtypes_that_the_engine_lacks():
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
def test_16_bit_floats(dtype):
    x, y = X.astype(dtype), Y.astype(dtype)
    a, b = x.astype("f4"), y.astype("f4")
    same(zs.fuse(lambda x, y: (x * y + x) * x)(x, y), ((a * b + a) * a).astype(dtype))
    mean = (a * a).astype("f8").mean(-1, keepdims=True).astype("f4")
    found = zs.fuse(lambda x: x / np.sqrt((x * x).mean(-1, keepdims=True)))(x)
    assert found.dtype == x.dtype
    np.testing.assert_allclose(
        found.astype("f8"), a / np.sqrt(mean), rtol=float(ml_dtypes.finfo(dtype).eps)
    )


def test_numbers_beyond_a_float_are_infinite_without_a_warning():
    half = np.ones(3, np.float16)
    for number in (1e10, 10**10, -1e300):
        same(
            zs.fuse(lambda x, n=number: x + n)(half), np.full(3, np.copysign(np.inf, number), "f2")
        )
        same(
            zs.fuse(lambda x, n: x + n)(half, number), np.full(3, np.copysign(np.inf, number), "f2")
        )
    same(zs.fuse(lambda x: x * 1e300)(np.ones(3, "f4")), np.full(3, np.inf, "f4"))


def test_an_integer_beyond_its_dtype():
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


def test_negative_powers_of_integers():
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

    found = function(X)
    assert list(found) == ["a", "b", "c"]
    assert type(found["b"]) is list
    assert type(found["c"]) is Pair
    same(found["a"], X + 1)
    same(found["b"][0], X)
    same(found["b"][1], np.float64(2.5))
    np.testing.assert_allclose(found["b"][2][0], X.sum(0), rtol=1e-6)
    same(found["c"].low, X - 1)
    same(found["c"].high, np.float32(3))


def test_a_result_never_is_an_operand_or_another_result():
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


def test_nothing_is_a_result():
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


# out=


def test_out_receives_the_result():
    out = np.empty_like(X)
    assert scaled(X, Y, out=out) is out
    same(out, X * Y + 1)
    assert scaled(X, Y, out=(out,)) is out
    strided = np.zeros((6, 16), np.float32)[:, ::-2]
    scaled(X, Y, out=strided)
    same(strided, X * Y + 1)
    wide = np.empty(X.shape, np.float64)
    scaled(X, Y, out=wide)
    np.testing.assert_array_equal(wide, X * Y + 1)
    larger = np.empty((3, 6, 8), np.float32)
    assert scaled(X, Y, out=larger) is larger
    np.testing.assert_array_equal(larger, np.broadcast_to(X * Y + 1, (3, 6, 8)))


def test_out_of_several_results():
    function = zs.fuse(lambda x: (x + 1, x.sum(-1)))
    first, second = np.empty_like(X), np.empty(6, np.float32)
    found = function(X, out=(first, second))
    assert found[0] is first
    assert found[1] is second
    found = function(X, out=(None, second))
    same(found[0], X + 1)
    assert found[1] is second
    names = zs.fuse(lambda x: {"a": x + 1, "b": x + 2})
    found = names(X, out={"b": first})
    assert found["b"] is first
    same(found["a"], X + 1)


@pytest.mark.parametrize(
    ("out", "error", "words"),
    [
        (np.empty((6, 9), "f4"), zs.BroadcastError, r"out has shape \(6, 9\)"),
        (np.empty((6, 1), "f4"), zs.BroadcastError, r"out has shape \(6, 1\)"),
        (np.empty((6, 8), "i4"), TypeError, "float32, which does not become out's int32"),
        ([1], TypeError, "out is an array, not list"),
        ((np.empty((6, 8), "f4"),) * 2, TypeError, "out is an array"),
        (np.broadcast_to(np.float32(0), (6, 8)), ValueError, "read-only"),
    ],
)
def test_out_that_cannot_be(out, error, words):
    with pytest.raises(error, match=words):
        scaled(X, Y, out=out)


def test_out_packed_in_another_way():
    function = zs.fuse(lambda x: (x, x))
    with pytest.raises(TypeError, match="a tuple of 2; not ndarray"):
        function(X, out=np.empty_like(X))
    with pytest.raises(TypeError, match="a dict of 'a'; not a dict of 1"):
        zs.fuse(lambda x: {"a": x})(X, out={"b": None})


CASES = {
    "itself": lambda s: (s, s),
    "transposed": lambda s: (s, s.T),
    "backwards": lambda s: (s, s[::-1]),
    "shifted": lambda s: (s[:-1, :-1], s[1:, 1:]),
    "row": lambda s: (np.broadcast_to(s[0], s.shape), s),
    "stretched": lambda s: (s[:1], s),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x + 1) * x - x,
        lambda x: x - x.mean(-1, keepdims=True),
        lambda x: x - x.sum(0) + x.max(),
        lambda x: x + x.T if x.shape[0] == x.shape[1] else x * x,
        lambda x: (x * 2 + 1).T if x.shape[0] == x.shape[1] else x * 2,
    ],
)
@pytest.mark.parametrize("size", [5, 200])
def test_out_may_overlap_the_operands(name, function, size):
    square = RNG.integers(0, 100, (size, size)).astype(np.float64)
    fused = zs.fuse(function)
    wanted = fused(CASES[name](square.copy())[0].copy())
    x, out = CASES[name](square)
    assert fused(x, out=out) is out
    np.testing.assert_array_equal(out, np.broadcast_to(wanted, out.shape))


def test_outs_may_overlap_each_other_and_operands():
    swap = zs.fuse(lambda x, y: (y + 0, x + 0))
    a, b = np.arange(1000.0), np.arange(1000.0) * 2
    swap(a, b, out=(a, b))
    same(a, np.arange(1000.0) * 2)
    same(b, np.arange(1000.0))
    both = zs.fuse(lambda x: (x + 1, x + 2))
    c = np.arange(10.0)
    both(c.copy(), out=(c, c))
    same(c, np.arange(10.0) + 2)


def test_a_memmap_is_read_and_written(tmp_path):
    path = tmp_path / "data"
    source = np.memmap(path, np.float32, "w+", shape=X.shape)
    source[:] = X
    out = np.memmap(tmp_path / "out", np.float32, "w+", shape=X.shape)
    assert scaled(source, Y, out=out) is out
    np.testing.assert_array_equal(np.asarray(out), X * Y + 1)


def test_progress_is_a_function():
    with pytest.raises(TypeError, match="progress is a function, not int"):
        scaled(X, Y, progress=3)
    same(scaled(X, Y, progress=lambda *_: None), X * Y + 1)


# Reductions that feed the rest


def test_softmax_and_layer_norm():
    found = softmax(X)
    wide = np.exp(X.astype("f8") - X.max(-1, keepdims=True))
    np.testing.assert_allclose(found, wide / wide.sum(-1, keepdims=True), rtol=1e-6)

    @zs.fuse
    def norm(x, gamma, beta):
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * gamma + beta

    wide = X.astype("f8")
    wanted = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(norm(X, Y, Y), wanted * Y + Y, rtol=1e-5, atol=1e-6)


REDUCTIONS = ["sum", "prod", "mean", "min", "max", "any", "all", "argmin", "argmax"]


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "uint16", "int64", "bool", "c16"])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_public_reductions_are_numpys(name, dtype):
    x = RNG.integers(0, 3, (3, 4, 5)).astype(dtype)
    x[1] = 0
    axes = [None, 0, -1] if name.startswith("arg") else [None, 0, -1, (0, 2), (), (-1, -3)]
    for axis in axes:
        for keepdims in (False, True):
            wanted = np.asarray(getattr(np, name)(x, axis=axis, keepdims=keepdims))
            found = np.asarray(getattr(zs, name)(x, axis=axis, keepdims=keepdims))
            assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
            np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("name", ["min", "max", "argmin", "argmax", "sum", "any", "all"])
def test_reductions_of_nan_and_infinities(name):
    x = np.array([[1, np.nan, 3], [np.inf, -np.inf, 0], [-np.inf, 2, 1]], np.float32)
    with np.errstate(invalid="ignore"):
        for axis in (None, 0, 1):
            same(np.asarray(getattr(zs, name)(x, axis)), getattr(np, name)(x, axis))


def test_reductions_of_nothing():
    x = np.empty((0, 3), np.float32)
    for name in ("sum", "prod", "any", "all"):
        for axis in (None, 0, 1):
            same(np.asarray(getattr(zs, name)(x, axis)), getattr(np, name)(x, axis))
    for name in ("min", "max", "argmin", "argmax"):
        with pytest.raises(ValueError, match=f"{name} of no elements"):
            getattr(zs, name)(x, 0)
        assert getattr(zs, name)(x, 1).shape == (0,)
    assert np.isnan(zs.mean(x))
    assert zs.logsumexp(x) == -np.inf
    assert zs.sum_of_squares(x) == 0


def test_logsumexp_is_right_for_infinities():
    inf = np.inf
    x = np.array([[1000.0, 1000], [-inf, -inf], [inf, 1], [inf, -inf], [np.nan, 1], [-1000, -1001]])
    wanted = [1000 + np.log(2), -inf, inf, inf, np.nan, np.logaddexp(-1000, -1001)]
    np.testing.assert_allclose(zs.logsumexp(x, 1), wanted)
    np.testing.assert_allclose(zs.logsumexp(x[5:], keepdims=True), [[wanted[5]]])
    ints = np.array([[100, -100, 127]], np.int8)
    np.testing.assert_allclose(zs.logsumexp(ints, -1), np.logaddexp.reduce([100.0, -100, 127]))
    with pytest.raises(TypeError, match="real numbers"):
        zs.logsumexp(np.array([1j]))


def test_sums_of_squares_do_not_wrap():
    same(zs.sum_of_squares(np.full(1000, 127, np.int8)), np.int64(127**2 * 1000))
    assert zs.sum_of_squares(np.full(3, 200, np.float16)) == np.float16(np.inf)
    assert zs.mean(zs.square(np.full(3, 200.0, np.float32)).astype("f2")) == 40000


def test_reductions_have_a_dtype_and_an_out():
    x = np.full((2, 3), 100, np.int8)
    same(zs.sum(x, dtype="int8"), np.sum(x, dtype="int8"))
    same(zs.sum(X, axis=[0], dtype=np.float64), np.sum(X.astype("f8"), 0))
    assert zs.mean(x, dtype="float32").dtype == np.float32
    out = np.empty(2, np.float64)
    assert zs.sum(x, 1, out=out) is out
    assert out.tolist() == [300, 300]
    line = np.arange(4.0)
    zs.sum(line[None], 0, out=line)
    same(line, np.arange(4.0))
    with pytest.raises(zs.BroadcastError, match="axis 2 of an array of 2 axes"):
        zs.sum(x, 2)
    assert zs.max(3) == 3
    assert zs.argmax(np.float64(3)) == 0


def test_variances():
    wide = RNG.standard_normal((5, 7)) + 1e6
    found = zs.fuse(lambda x: (x.var(0), x.std(1, ddof=1), np.var(x)))(wide)
    np.testing.assert_allclose(found[0], wide.var(0), rtol=1e-9)
    np.testing.assert_allclose(found[1], wide.std(1, ddof=1), rtol=1e-9)
    np.testing.assert_allclose(found[2], wide.var(), rtol=1e-9)


# Calls that never enter Python


@pytest.mark.skipif(zs.backend() == "reference", reason="that is the engine's")
def test_known_calls_never_enter_python(monkeypatch):
    weights = np.ones(8, np.float32)
    one, two = zs.fuse(lambda x, n: x * weights + n), zs.fuse(lambda x: (x + 1, x.max()))
    one(X, 1.5)
    two(X)
    gains = [scaled(X, Y, gain=gain) for gain in (1, 1.0, 2)]
    enter = Fused._call
    monkeypatch.setattr(Fused, "_call", lambda *_, **__: pytest.fail("Python was entered"))
    monkeypatch.setattr(Settled, "_call", lambda *_, **__: pytest.fail("Python was entered"))
    for k, gain in enumerate((1, 1.0, 2)):
        same(enter(scaled, X, Y, gain=gain), gains[k])
        assert enter(scaled, X, Y, gain=gain, out=gains[k]) is gains[k]
    weights[:] = 3
    same(one(X, 2.5), X * weights + np.float32(2.5))
    out = np.empty_like(X)
    assert one(X, 4.0, out=out) is out
    same(out, X * weights + 4)
    found = two(X)
    assert type(found) is tuple
    same(found[0], X + 1)


@pytest.mark.parametrize(
    "call",
    [
        lambda f: f(X.astype("f8"), 2.0),
        lambda f: f(X[:3], 2.0),
        lambda f: f(X.astype(">f4"), 2.0),
        lambda f: f(X.tolist(), 2.0),
        lambda f: f(X, np.float64(2)),
        lambda f: f(X, 2),
        lambda f: f(X, True),
        lambda f: f(X, n=2.0),
        lambda f: f(X, 2.0, out=(np.empty_like(X),)),
        lambda f: f(X, 2.0, out=np.empty(X.shape)),
    ],
)
def test_other_calls_of_a_known_function(call):
    fused = zs.fuse(lambda x, n: x * n + 1)
    fused(X, 2.0)
    fused(X, 2.0)
    again = zs.fuse(fused.__wrapped__)
    same(call(fused), call(again))


# Fused functions within others, and threads


def test_a_fused_function_within_another_is_part_of_it():
    outer = zs.fuse(lambda x: softmax(x * 2) + scaled(x, y=x, gain=2.0))
    graph = outer.graph(X)
    assert sum(isinstance(node, Apply) for node in graph.nodes) > 5
    np.testing.assert_allclose(outer(X), softmax(X * 2) + scaled(X, X, gain=2.0), rtol=1e-6)
    wide = zs.fuse(lambda x: x / 3, dtype="float64")
    assert zs.fuse(lambda x: wide(x))(X).dtype == np.float64
    narrow = zs.fuse(lambda x: x * np.arange(8.0) * np.float64(3), dtype="float32")
    assert narrow(X).dtype == np.float32
    both = zs.fuse(lambda x: (narrow(x), x * np.float64(3)))(X)
    assert [one.dtype.name for one in both] == ["float32", "float64"]
    with pytest.raises(zs.TraceError, match="out= in a fused function"):
        zs.fuse(lambda x: scaled(x, x, out=np.ones(3)))(X)


def test_a_fused_call_of_arrays_alone_is_a_captured_array():
    function = zs.fuse(lambda x: x + softmax(Y))
    np.testing.assert_allclose(function(X), X + softmax(Y))
    assert function.graph(X).inputs == 2


def test_an_error_leaves_the_function_usable():
    function = zs.fuse(lambda x, y: x + y)
    for _ in range(2):
        with pytest.raises(zs.BroadcastError):
            function(X, np.ones(3))
    same(function(X, Y), X + Y)


def test_calls_from_many_threads():
    function = zs.fuse(lambda x, n: (np.exp(x - x.max(-1, keepdims=True)) * n).sum(-1))
    sizes = [3, 17, 64]
    operands = {size: RNG.standard_normal((50, size)) for size in sizes}
    wanted = {size: zs.fuse(function.__wrapped__)(x, 2.0) for size, x in operands.items()}
    failures = []

    def work(seed):
        rng = np.random.default_rng(seed)
        try:
            for _ in range(60):
                size = int(rng.choice(sizes))
                same(function(operands[size], 2.0), wanted[size])
        except BaseException as error:  # noqa: BLE001 - seen by the test
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(function._compiled) == len(sizes)


def test_a_sum_over_no_axes_does_not_round():
    x = np.array([2.859375, 1.21875], ml_dtypes.bfloat16)  # their mean has more than 8 bits
    result = zs.fuse(lambda a: a / zs.sum(zs.mean(a)))(x)
    mean = x.astype(np.float32).sum() / 2
    assert np.array_equal(result, (x.astype(np.float32) / mean).astype(ml_dtypes.bfloat16))


def test_a_slope_that_no_unsigned_integer_has_a_use_for():
    x = np.array([1, 2], np.uint32)
    assert np.array_equal(zs.fuse(lambda a: zs.prelu(a, -1))(x), zs.prelu(x, -1))
