"""Arrays of other libraries: results of the same library, without copies; refusals."""

from __future__ import annotations

import subprocess
import sys
import types

import numpy as np
import pytest
from libraries_light import MAKERS, values_of

import zerostride as zs
from zerostride.arrays import dispatch
from zerostride.arrays.dlpack import to_numpy
from zerostride.arrays.table import ROWS, find_row
from zerostride.compute import foreign, native

strict = pytest.importorskip("array_api_strict", reason="array_api_strict is not installed")
both = pytest.mark.parametrize("make", [MAKERS["strict"], MAKERS["elsewhere"]])
ELSEWHERE = strict.Device("device1")


def pointer(array):
    return to_numpy(array).ctypes.data


# In kind


@both
def test_every_call_returns_arrays_of_the_library_on_the_device(make):
    x, y = make([[1.0, 2.0], [3.0, 4.0]]), make([10.0, 20.0])
    plan = zs.plan((2, 2), (2,), rule="pdpd", axis=0)
    fused = zs.fuse(lambda a, b: {"out": zs.add(a, b, rule="pdpd", axis=0)})
    value, pullback = zs.vjp(lambda a: zs.sum(a * a), x)
    answers = [
        zs.add(x, y, rule="pdpd", axis=0),
        zs.sum(x, axis=1, keepdims=True),
        zs.broadcast(y, (2, 2), mode="explicit", axes_mapping=[0], copy=True),
        *plan.views(x, y),
        plan.unbroadcast(x, 1),
        fused(x, y)["out"],
        value,
        pullback(make(1.0))[0],
        zs.where(x > x, x, 0.0),
        zs.cast(x, "int32"),
        zs.clip(x, 2),
        zs.gelu_tanh(x),
    ]
    for answer in answers:
        assert type(answer) is type(x)
        assert answer.device == x.device
    assert values_of(answers[0]).tolist() == [[11.0, 12.0], [23.0, 24.0]]
    assert values_of(answers[5]).tolist() == [3.0, 7.0]
    assert values_of(answers[6]).tolist() == [[11.0, 12.0], [23.0, 24.0]]
    assert values_of(answers[8]).tolist() == [[2.0, 4.0], [6.0, 8.0]]


@both
def test_rank_0_result_is_an_array_of_the_library(make):
    assert zs.add(make(1.0), 2.0).shape == ()
    assert values_of(zs.sum(make([1.0, 2.0]))) == 3.0


@both
def test_python_numbers_are_weak(make):
    assert values_of(zs.multiply(make(np.float32([1, 2])), 0.5)).dtype == np.float32
    assert values_of(zs.add(True, make(np.int8([1])))).tolist() == [2]


@both
@pytest.mark.parametrize("name", ["argmin", "argmax"])
def test_positions_over_no_rows_are_empty(make, name):
    x = make(np.ones((0, 3), np.float32))
    for keepdims, shape in ((False, (0,)), (True, (0, 1))):
        result = values_of(getattr(zs, name)(x, axis=1, keepdims=keepdims))
        assert (result.shape, result.dtype) == (shape, np.dtype("int64"))


@both
@pytest.mark.parametrize("function", [zs.multiply, zs.prelu, zs.fuse(zs.prelu)])
def test_number_beyond_the_dtype_is_refused(make, function):
    with pytest.raises(OverflowError, match="-1 out of bounds for uint8"):
        function(make(np.uint8([1, 2])), -1)


@both
def test_dtype_may_be_the_librarys(make):
    assert values_of(zs.cast(make([1.5]), strict.int16)).dtype == np.int16
    assert values_of(zs.add(make([1]), 1, dtype=strict.float32)).dtype == np.float32
    assert values_of(zs.sum(make([1.5]), dtype=strict.float32)).dtype == np.float32


@both
def test_out_is_written_and_returned(make):
    x, out = make([1.0, 2.0]), make([0.0, 0.0])
    assert zs.add(x, 1, out=out) is out
    assert zs.add(x, 1, out=(out,)) is out
    assert values_of(out).tolist() == [2.0, 3.0]
    assert zs.sum(x, axis=0, keepdims=True, out=make([0.0])).shape == (1,)
    double = zs.fuse(lambda a: (a * 2, a * 3))
    results = double(x, out=(out, None))
    assert results[0] is out
    assert values_of(results[1]).tolist() == [3.0, 6.0]
    wide = make([[0.0, 0.0], [0.0, 0.0]])
    assert zs.broadcast(x, (2, 2), out=wide) is wide
    assert values_of(wide).tolist() == [[1.0, 2.0], [1.0, 2.0]]


@both
def test_clip_and_comparison_take_limits_beyond_the_dtype(make):
    assert values_of(zs.clip(make(np.uint8([1, 200])), -5, 100)).tolist() == [1, 100]
    assert values_of(zs.less(make(np.uint8([1])), 300)).tolist() == [True]


def test_engine_semantics_need_memory_that_can_be_read():
    x, y = strict.asarray(np.float32([[1, 2], [3, 4]])), strict.asarray(np.float32([10, 20]))
    expected = zs.add(np.float32([[1, 2], [3, 4]]), np.float32([10, 20]), engine="ncnn")
    assert values_of(zs.add(x, y, engine="ncnn")).tolist() == expected.tolist()


def test_engine_semantics_of_one_tensor_match_numpys():
    x, numpys = strict.asarray(np.float32([1, 4])), np.float32([1, 4])
    for call in (
        lambda a: zs.sqrt(a, engine="ncnn"),
        lambda a: zs.leaky_relu(a, 0.1, engine="torch"),
        lambda a: zs.clip(a, 2, 3, engine="torch"),
        lambda a: zs.clip(a, None, None, rule="numpy"),
        lambda a: zs.clip(a, 2, None, rule="numpy"),
    ):
        assert values_of(call(x)).tolist() == call(numpys).tolist()
    with pytest.raises(zs.BroadcastError, match="takes alpha as a number"):
        zs.leaky_relu(x, x, engine="torch")


def test_vjp_on_a_device_gives_gradients_of_the_operands_dtype():
    x = strict.asarray(np.float32([1, 2, 3]), device=ELSEWHERE)
    total, pullback = zs.vjp(lambda a: (zs.sum(a * a), a > 1), x)
    (grad,) = pullback((1.0, None))
    assert values_of(grad).dtype == np.float32
    assert values_of(grad).tolist() == [2.0, 4.0, 6.0]
    assert values_of(pullback((None, None))[0]).tolist() == [0.0, 0.0, 0.0]
    assert zs.vjp(lambda a: zs.sum(a), zs.cast(x, "int32"))[1](None) == (None,)
    with pytest.raises(zs.BroadcastError, match="cotangent of result 0"):
        pullback((x, None))
    with pytest.raises(TypeError, match="its cotangent is None"):
        pullback((1.0, x))
    assert total[0].device == ELSEWHERE


def test_fused_functions_on_a_device_compute_all_nodes():
    numpys = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
    weight = np.float32([1, 2, 3])

    def body(a, w, *, scale=2):
        b = zs.add(a, w, rule="pdpd", axis=1) * scale
        return {
            "mean": b.mean(axis=(0, 2)),
            "where": zs.where(b > 10, b, -1),
            "turned": b.T[:, None],
            "arg": zs.argmax(b, axis=-1, keepdims=True),
            "cast": zs.cast(b, "int16"),
            "any": zs.any(b > 3),
            "norm": zs.logsumexp(b, axis=-1),
            "same": a,
            "constant": w * 0 + 3,
        }

    fused = zs.fuse(body)
    expected = fused(numpys, weight, scale=3)
    there = [strict.asarray(one, device=ELSEWHERE) for one in (numpys, weight)]
    result = fused(*there, scale=3)
    for name, value in expected.items():
        values = values_of(result[name])
        assert values.dtype == value.dtype, name
        np.testing.assert_allclose(values, value, rtol=1e-6, err_msg=name)
    assert result["same"] is not there[0]


# Without copies


def test_memory_is_read_and_returned_in_place(monkeypatch):
    """The engine is given the array's own memory, and its result's memory is the answer's."""
    if native.backend() == "reference":
        pytest.skip("there is no engine")
    seen = []
    monkeypatch.setattr(
        "zerostride.arrays.direct._function",
        lambda name: lambda *values: seen.append((values, np.add(*values))) or seen[-1][1],
    )
    x, y = strict.asarray(np.zeros((64, 3))), strict.asarray(np.ones(3))
    answer = zs.add(x, y)
    ((values, result),) = seen
    assert [value.ctypes.data for value in values] == [pointer(x), pointer(y)]
    assert pointer(answer) == result.ctypes.data


def test_out_is_written_in_place():
    out = strict.asarray(np.zeros(3))
    before = pointer(out)
    zs.add(strict.asarray(np.ones(3)), 1, out=out)
    assert pointer(out) == before
    assert values_of(out).tolist() == [2.0, 2.0, 2.0]


def test_views_share_the_arrays_memory_with_stride_0():
    x = strict.asarray(np.arange(3.0))
    (view,) = zs.plan_to((3,), (4, 3)).views(x)
    assert pointer(view) == pointer(x)
    assert to_numpy(view).strides == (0, 8)


# What is refused


@pytest.mark.parametrize(
    ("operands", "words"),
    [
        (lambda x: (x, np.ones(2)), "operand 1 is an array of NumPy"),
        (lambda x: (np.ones(2), x), "operand 0 is an array of NumPy"),
        (lambda x: (x, [1.0, 2.0]), "operand 1 is a list"),
        (lambda x: (x, None), "operand 1 is a NoneType"),
    ],
)
def test_mixed_libraries_are_refused(operands, words):
    with pytest.raises(TypeError, match=words) as error:
        zs.add(*operands(strict.asarray([1.0, 2.0])))
    assert "array_api_strict.asarray(x)" in str(error.value)


def test_numpy_scalar_is_not_a_python_number():
    with pytest.raises(TypeError, match=r"operand 1 is a scalar of NumPy; .* x\.item\(\)"):
        zs.add(strict.asarray([1.0]), np.float64(2))


def test_fused_calls_refuse_mixed_libraries():
    with pytest.raises(TypeError, match="operand 1 is an array of NumPy"):
        zs.fuse(lambda a, b: a + b)(strict.asarray([1.0]), np.ones(1))
    with pytest.raises(TypeError, match="an array of NumPy"):
        zs.fuse(lambda a, *, bias: a + bias)(strict.asarray([1.0]), bias=np.ones(1))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: zs.add(x, x, out=np.zeros(2)), "out is an array of NumPy"),
        (lambda x: zs.sqrt(zs.cast(x, "int8")), "float16 .* which array_api_strict does not have"),
        (lambda x: zs.add(x, strict.asarray([1.0, 2.0], device=ELSEWHERE)), "device"),
        (lambda x: zs.cast(x, "float16"), "does not have"),
    ],
)
def test_calls_in_memory_are_refused_with_the_reason(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call(strict.asarray([1.0, 2.0]))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: zs.erf(x), "namespace has no erf"),
        (lambda x: zs.gelu(x), "namespace has no erf"),
        (lambda x: zs.add(x, x, engine="torch"), "engine='torch' is computed in this processor"),
        (lambda x: zs.cast(x, "float16"), "has no float16"),
        (lambda x: zs.less(zs.cast(x, "complex64"), x), "has no less of complex"),
        (lambda x: zs.pow(zs.cast(x, "int32"), -1), "negative integer powers"),
        (lambda x: zs.sum(x, axis=3), "axis 3"),
        (lambda x: zs.max(zs.cast(x[:0], "float32")), "no elements"),
        (lambda x: zs.add(x, 1, out=strict.zeros(3, device=ELSEWHERE)), "out has shape"),
        (lambda x: zs.add(x, 1, out=strict.zeros(2, dtype=strict.int8, device=ELSEWHERE)), "fit"),
        (lambda x: zs.plan((3,)).views(x), "shape"),
        (lambda x: zs.plan((3,)).unbroadcast(x, 0), "shape"),
    ],
)
def test_calls_on_a_device_are_refused_with_the_reason(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call(strict.asarray([1.0, 2.0], device=ELSEWHERE))


# Finding them


class Unknown:
    """An array of a library that has no row: it follows the array API."""

    def __init__(self, array):
        self.array = np.asarray(array)
        self.shape, self.dtype, self.device = self.array.shape, self.array.dtype, "cpu"

    def __dlpack__(self, **more):
        return self.array.__dlpack__(**more)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __array_namespace__(self, api_version=None):
        namespace = types.SimpleNamespace(**dict.fromkeys(("float64", "int64"), True))
        namespace.asarray = Unknown
        return namespace


def test_library_without_a_row_uses_the_generic_adapter():
    answer = zs.add(Unknown([1.0, 2.0]), 1)
    assert type(answer) is Unknown
    assert answer.array.tolist() == [2.0, 3.0]


def test_subclass_of_a_librarys_array_belongs_to_the_library():
    row = find_row(type(strict.asarray(1.0)))
    subclass = type("Mine", (type(strict.asarray(1.0)),), {})
    assert row is not None
    assert find_row(subclass) is row


def test_numpy_arrays_are_not_foreign():
    for value in (np.ones(1), np.float32(1), np.ma.ones(1), [1], 1, None, "a", object()):
        assert not foreign.is_foreign(value)


def test_rows_are_complete():
    for row in ROWS:
        assert row.module.startswith("zerostride.arrays.")
        assert row.made != row.lowered
    assert len({row.name for row in ROWS}) == len(ROWS)


def test_symbolic_plan_takes_arrays_for_their_shapes():
    plan = zs.plan(("N", 3), (3,))
    x, y = strict.zeros((4, 3)), strict.ones(3)
    assert plan.bind(x, y).shape == plan.guard()(x, y).shape == (4, 3)
    assert [view.shape for view in plan.views(x, y)] == [(4, 3), (4, 3)]


def test_no_array_library_is_imported():
    code = (
        "import sys, numpy as np, zerostride as zs; zs.add(np.ones(3), [1, 2, 3]); "
        "zs.fuse(lambda x: x + 1)(np.ones(3)); zs.sum([1.0]); "
        "found = {'torch', 'jax', 'dask', 'xarray', 'array_api_strict', 'array_api_compat', "
        "'zerostride.arrays.dispatch', 'zerostride.arrays.generic'} & set(sys.modules); "
        "assert not found, found"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_dispatch_needs_one_library():
    assert dispatch.adapter_of((strict.asarray(1.0), 2)) is dispatch.adapter_of((strict.zeros(1),))
