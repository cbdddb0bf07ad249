"""The reference of fused functions compared with NumPy written by hand."""

from __future__ import annotations

import gc
import itertools
import math
import warnings
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import zerostride as zs
from zerostride.fusion import reference
from zerostride.fusion.reference import evaluate
from zerostride.fusion.trace.graph import Apply, Constant, Graph, Input, Node, Reduce, View

BF16 = np.dtype(ml_dtypes.bfloat16)


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def op(name: str, dtype: str, *args: int, shape: tuple[int, ...], axes: Any = None) -> Apply:
    """An op whose operands lie on the result's last axes."""
    rank = len(shape)
    axes = axes or tuple(tuple(range(rank)) for _ in args)
    return Apply(name, args, axes, (dtype,) * (len(args) + 1), shape, dtype)


def run(nodes: list[Node], operands: list[Any], *outputs: int) -> list[Any]:
    return evaluate(Graph(tuple(nodes), outputs or (len(nodes) - 1,), len(operands)), operands)


def test_operands_are_aligned_by_their_axes():
    x = np.arange(24, dtype="float32").reshape(2, 3, 4)
    row = np.array([10, 20, 30], "float32")
    nodes = [Input(0, (2, 3, 4), "float32"), Input(1, (3,), "float32")]
    nodes.append(op("add", "float32", 0, 1, shape=(2, 3, 4), axes=((0, 1, 2), (1,))))
    (result,) = run(nodes, [x, row])
    assert result.dtype == "float32"
    np.testing.assert_array_equal(result, x + row[:, None])


def test_dropped_axes_of_extent_1_are_right():
    x, y = np.arange(6.0).reshape(2, 3), np.array([[5.0], [7.0]]).reshape(2, 1)
    nodes = [Input(0, (2, 3), "float64"), Input(1, (2, 1), "float64")]
    nodes.append(op("multiply", "float64", 0, 1, shape=(2, 3), axes=((0, 1), (0, None))))
    np.testing.assert_array_equal(run(nodes, [x, y])[0], x * y)


def test_both_operands_stretch_to_a_larger_result():
    nodes = [Input(0, (3, 1), "int8"), Input(1, (1,), "int8")]
    nodes.append(op("add", "int8", 0, 1, shape=(2, 3, 4), axes=((1, 2), (None,))))
    x, y = np.array([[1], [2], [100]], "int8"), np.array([100], "int8")
    expected = np.broadcast_to(x + y, (2, 3, 4))  # wraps around
    np.testing.assert_array_equal(run(nodes, [x, y])[0], expected)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_are_not_rounded_between_steps(dtype):
    x = np.array([1.0, 3.0, 7.0], np.float32).astype(np.dtype(dtype))
    nodes: list[Node] = [Input(0, (3,), dtype), Constant(3, "int64")]
    nodes.append(op("divide", dtype, 0, 1, shape=(3,), axes=((0,), ())))
    nodes.append(op("multiply", dtype, 2, 1, shape=(3,), axes=((0,), ())))
    wide = x.astype(np.float32) / np.float32(3) * np.float32(3)
    (result,) = run(nodes, [x])
    assert result.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(result, wide.astype(np.dtype(dtype)))
    # What leaves is rounded, and what goes on is not.
    both = run(nodes, [x], 2, 3)
    np.testing.assert_array_equal(both[0], (x.astype(np.float32) / 3).astype(np.dtype(dtype)))
    np.testing.assert_array_equal(both[1], result)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_cast_rounds(dtype):
    x = np.array([1.0, 2.0, 5.0], "float32")
    nodes: list[Node] = [Input(0, (3,), "float32"), Constant(3.0, "float64")]
    nodes.append(op("divide", "float32", 0, 1, shape=(3,), axes=((0,), ())))
    nodes.append(Apply("cast", (2,), ((0,),), ("float32", dtype), (3,), dtype))
    nodes.append(Apply("cast", (3,), ((0,),), (dtype, "float64"), (3,), "float64"))
    (result,) = run(nodes, [x])
    np.testing.assert_array_equal(result, (x / np.float32(3)).astype(np.dtype(dtype)).astype(float))
    # Also one that the value has already.
    again: list[Node] = [Input(0, (3,), dtype), Constant(3.0, "float64")]
    again.append(op("divide", dtype, 0, 1, shape=(3,), axes=((0,), ())))
    again.append(Apply("cast", (2,), ((0,),), (dtype, dtype), (3,), dtype))
    again.append(Apply("cast", (3,), ((0,),), (dtype, "float32"), (3,), "float32"))
    half = x.astype(np.dtype(dtype))
    (result,) = run(again, [half])
    expected = (half.astype(np.float32) / np.float32(3)).astype(np.dtype(dtype))
    np.testing.assert_array_equal(result, expected.astype(np.float32))


def test_number_is_rounded_to_the_dtype_beside_it():
    x = np.array([3.0, 7.0, 11.0, 13.0], "float16")
    nodes: list[Node] = [Input(0, (4,), "float16"), Constant(0.1, "float64")]
    nodes.append(op("multiply", "float16", 0, 1, shape=(4,), axes=((0,), ())))
    np.testing.assert_array_equal(run(nodes, [x])[0], zs.multiply(x, 0.1))
    given = [nodes[0], Input(1, (), "float64", weak=True), nodes[2]]
    np.testing.assert_array_equal(run(given, [x, 0.1])[0], zs.multiply(x, 0.1))


def test_array_converted_to_fewer_bits_is_rounded_first():
    x = np.array([1.0001, 2.0], "float32")
    nodes: list[Node] = [Input(0, (2,), "float32"), op("multiply", "float16", 0, 0, shape=(2,))]
    expected = x.astype("float16").astype("float32") ** 2
    np.testing.assert_array_equal(run(nodes, [x])[0], expected.astype("float16"))


def test_nextafter_of_halves_is_right():
    x, y = np.array([1.0, -2.0], "float16"), np.array([2.0, 0.0], "float16")
    nodes = [Input(0, (2,), "float16"), Input(1, (2,), "float16")]
    nodes.append(op("nextafter", "float16", 0, 1, shape=(2,)))
    np.testing.assert_array_equal(run(nodes, [x, y])[0], np.nextafter(x, y))


def test_numbers_beyond_a_dtype_are_right():
    x = np.array([0, 200], "uint8")

    def against(name: str, value: int, result: str) -> Any:
        nodes: list[Node] = [Input(0, (2,), "uint8"), Constant(value, "int64")]
        dtypes = ("uint8", "uint8", result)
        nodes.append(Apply(name, (0, 1), ((0,), ()), dtypes, (2,), result))
        return run(nodes, [x])[0]

    assert against("less", 300, "bool").tolist() == [True, True]
    assert against("greater", -1, "bool").tolist() == [True, True]
    assert against("equal", 256, "bool").tolist() == [False, False]
    with pytest.raises(OverflowError, match="300 out of bounds for uint8"):
        against("add", 300, "uint8")


def test_integer_division_and_remainder_follow_the_table():
    x = np.array([-128, 7, 0], "int8")
    nodes: list[Node] = [Input(0, (3,), "int8"), Constant(0, "int64"), Constant(-1, "int64")]
    nodes.append(op("floor_divide", "int8", 0, 1, shape=(3,), axes=((0,), ())))
    nodes.append(op("floor_divide", "int8", 0, 2, shape=(3,), axes=((0,), ())))
    zero, negative = run(nodes, [x], 3, 4)
    assert zero.tolist() == [0, 0, 0]
    assert negative.tolist() == [-128, -7, 0]
    nodes = [Input(0, (3,), "int8"), op("pow", "int8", 0, 0, shape=(3,))]
    with pytest.raises(ValueError, match="negative integer powers"):
        run(nodes, [x])


def test_comparison_of_mixed_integers_is_exact():
    x, y = np.array([-1, 2**62], "int64"), np.array([2**64 - 1, 2**62], "uint64")
    nodes = [Input(0, (2,), "int64"), Input(1, (2,), "uint64")]
    dtypes = ("int64", "uint64", "bool")
    nodes.append(Apply("equal", (0, 1), ((0,), (0,)), dtypes, (2,), "bool"))
    assert run(nodes, [x, y])[0].tolist() == [False, True]


# Reductions


def reduced(x: Any, name: str, over: tuple[int, ...], *, keepdims: bool, dtype: str = "") -> Any:
    own = x.dtype.name
    result = dtype or own
    shape = tuple(
        1 if axis in over else n for axis, n in enumerate(x.shape) if keepdims or axis not in over
    )
    compute = result if name in ("sum", "prod") else own
    nodes = [Input(0, x.shape, own), Reduce(name, 0, over, keepdims, compute, shape, result)]
    return run(nodes, [x])[0]


SHAPE = (3, 4, 5)
OVER = [over for n in range(4) for over in itertools.combinations(range(3), n)]


@pytest.mark.parametrize("over", OVER)
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions_match_numpy(over, keepdims):
    x = np.random.default_rng(0).integers(-9, 9, SHAPE).astype("float64")
    for name in ("sum", "prod", "min", "max", "any", "all"):
        expected = getattr(np, name)(x, axis=over, keepdims=keepdims)
        dtype = "bool" if name in ("any", "all") else ""
        result = reduced(x, name, over, keepdims=keepdims, dtype=dtype)
        np.testing.assert_array_equal(result, expected)
        assert result.dtype == np.asarray(expected).dtype or over == ()
        assert isinstance(result, np.ndarray) == bool(result.shape)


@pytest.mark.parametrize("name", ["argmin", "argmax"])
@pytest.mark.parametrize("over", OVER)
def test_positions_count_in_c_order_over_the_reduced_axes(name, over):
    x = np.random.default_rng(1).integers(0, 4, SHAPE).astype("int16")
    kept = [axis for axis in range(3) if axis not in over]
    rows = x.transpose(*kept, *over).reshape(*(SHAPE[axis] for axis in kept), -1)
    result = reduced(x, name, over, keepdims=False, dtype="int64")
    np.testing.assert_array_equal(result, getattr(rows, name)(axis=-1))
    assert result.dtype == np.int64


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_first_of_equals_and_of_nan_is_returned(dtype):
    x = np.array([[1, 5, 5, 0], [2, np.nan, 9, np.nan]], "float32").astype(np.dtype(dtype))
    assert reduced(x, "argmax", (1,), keepdims=False, dtype="int64").tolist() == [1, 1]
    assert reduced(x, "argmin", (1,), keepdims=False, dtype="int64").tolist() == [3, 1]
    lowest = reduced(x, "min", (1,), keepdims=False)
    assert lowest[0] == 0
    assert np.isnan(lowest[1].astype(float))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_are_rounded_once(dtype):
    x = np.random.default_rng(2).standard_normal((50, 3000)).astype(dtype)
    x[:, ::7] *= 1e6
    result = reduced(x, "sum", (1,), keepdims=False)
    exact = np.array([math.fsum(row.tolist()) for row in x]).astype(dtype)
    apart = np.abs(result - exact) / np.spacing(np.abs(exact))
    assert apart.max() <= (0 if dtype == "float32" else 1)


def test_product_does_not_overflow_between_steps():
    x = np.array([1e30, 1e30, 1e-30, 1e-30], "float32")
    np.testing.assert_allclose(reduced(x, "prod", (0,), keepdims=False), 1, rtol=1e-6)


def test_small_integers_are_summed_in_more_bits():
    x = np.full((2, 100), 120, "int8")
    nodes = [Input(0, x.shape, "int8"), Reduce("sum", 0, (1,), False, "int64", (2,), "int64")]
    assert run(nodes, [x])[0].tolist() == [12000, 12000]


def test_halves_are_summed_without_rounding():
    x = np.full(3000, 1.25, BF16)
    assert reduced(x, "sum", (0,), keepdims=False) == np.float32(3750).astype(BF16)


@pytest.mark.parametrize(("name", "value"), [("sum", 0), ("prod", 1), ("any", 0), ("all", 1)])
def test_reductions_of_no_elements_give_the_neutral_value(name, value):
    x = np.empty((2, 0), "float32")
    dtype = "bool" if name in ("any", "all") else ""
    result = reduced(x, name, (1,), keepdims=True, dtype=dtype)
    np.testing.assert_array_equal(result, np.full((2, 1), value))
    assert reduced(x, name, (0,), keepdims=False, dtype=dtype).shape == (0,)


@pytest.mark.parametrize("name", ["min", "max", "argmin", "argmax"])
def test_minimum_of_no_elements_is_refused(name):
    with pytest.raises(ValueError, match=r"empty|zero-size"):
        reduced(np.empty((2, 0)), name, (1,), keepdims=False)
    assert reduced(np.empty((2, 0)), name, (0,), keepdims=False).shape == (0,)


# Views, results


def test_views_move_and_insert_axes():
    x = np.arange(6, dtype="int32").reshape(2, 1, 3)
    nodes = [Input(0, (2, 1, 3), "int32"), View(0, (2, None, 0), (3, 1, 2), "int32")]
    np.testing.assert_array_equal(run(nodes, [x])[0], x[:, 0].T[:, None])


def test_results_are_new_arrays():
    x = np.arange(6.0).reshape(2, 3)
    nodes = [Input(0, (2, 3), "float64"), View(0, (1, 0), (3, 2), "float64")]
    results = run(nodes, [x], 0, 1, 1, 0)
    arrays = [x, *results]
    for one, other in itertools.combinations(arrays, 2):
        assert not np.shares_memory(one, other)
    np.testing.assert_array_equal(results[2], x.T)


def test_rank_0_gives_scalars():
    nodes: list[Node] = [Input(0, (), "float32"), op("exp", "float32", 0, shape=(), axes=((),))]
    (result,) = run(nodes, [np.asarray(0, "float32")])
    assert type(result) is np.float32
    assert result == 1
    (number,) = run([Constant(2.5, "float64")], [])
    assert type(number) is np.float64


def test_values_are_freed_after_their_last_use(monkeypatch):
    alive: list[int] = []
    seen: list[weakref.ref[Any]] = []
    gc.freeze()  # what other tests left takes long to look at

    def spy(x: Any) -> Any:
        gc.collect()
        alive.append(sum(ref() is not None for ref in seen))
        result = np.negative(x)
        seen.append(weakref.ref(result))
        return result

    monkeypatch.setattr(reference, "KERNELS", {"negative": spy})
    nodes: list[Node] = [Input(0, (8,), "float32")]
    nodes += [op("negative", "float32", k, shape=(8,)) for k in range(6)]
    run(nodes, [np.ones(8, "float32")])
    gc.unfreeze()
    assert max(alive) <= 1


@pytest.mark.parametrize("dtype", ["complex64", "complex128", "longdouble"])
def test_dtypes_outside_the_engine_are_computed(dtype):
    name = np.dtype(dtype).name
    x = np.array([1, 2.5, -3], dtype)
    nodes = [Input(0, (3,), name), op("exp", name, 0, shape=(3,))]
    nodes.append(Reduce("sum", 1, (0,), False, name, (), name))
    values, total = run(nodes, [x], 1, 2)
    np.testing.assert_array_equal(values, np.exp(x))
    np.testing.assert_allclose(total, np.exp(x).sum(), rtol=1e-6)
    assert total.dtype == np.dtype(dtype)


def test_floating_point_errors_do_not_warn():
    x = np.array([0.0, -1.0, np.inf, 1e30], "float32")
    nodes: list[Node] = [Input(0, (4,), "float32"), op("log", "float32", 0, shape=(4,))]
    nodes.append(op("multiply", "float32", 0, 0, shape=(4,)))
    nodes.append(Apply("cast", (2,), ((0,),), ("float32", "int8"), (4,), "int8"))
    nodes.append(Apply("cast", (2,), ((0,),), ("float32", "float16"), (4,), "float16"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        logs, integers, halves = run(nodes, [x], 1, 3, 4)
    assert np.isnan(logs[1])
    assert integers.tolist() == [0, 1, 127, 127]
    assert halves.tolist() == [0, 1, np.inf, np.inf]
