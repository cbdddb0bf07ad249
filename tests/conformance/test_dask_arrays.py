"""Dask arrays compared with NumPy's: lazy, of equal values, dtypes and shapes, for any chunks."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zerostride as zs

dask = pytest.importorskip("dask", reason="Dask's arrays are an optional library")
da = pytest.importorskip("dask.array", reason="Dask's arrays are an optional library")

DTYPES = ("float32", "float64", "int32", "int64", "uint8", "bool", "float16")
RULES = ("numpy", "pdpd", "paddle", "ncnn", "mnn", "onnx6", "none")
REDUCTIONS = (
    *("sum", "prod", "mean", "min", "max", "any", "all", "argmin", "argmax"),
    *("sum_of_squares", "logsumexp"),
)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Small tasks: a scheduler with threads takes longer than they do."""
    with dask.config.set(scheduler="synchronous"):
        yield


class Draw:
    """Random arrays and chunks."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def one(self, given: Any) -> Any:
        return given[int(self.rng.integers(len(given)))]

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def chunks(self, extent: int) -> tuple[int, ...]:
        """Any, those of no elements among them."""
        count = int(self.rng.integers(1, min(max(extent, 1), 4) + 1))
        ends = [0, *sorted(self.rng.integers(0, extent + 1, count - 1).tolist()), extent]
        if not self.chance(0.3):
            ends = sorted({*ends}) if extent else [0, 0]
        return tuple(b - a for a, b in itertools.pairwise(ends))

    def array(self, shape: tuple[int, ...], dtype: str | None = None) -> np.ndarray:
        dtype = dtype or self.one(DTYPES)
        values = self.rng.random(shape) * 4 - 1 if "f" in dtype else self.rng.integers(0, 5, shape)
        return np.asarray(values).astype(dtype)

    def lazy(self, array: np.ndarray) -> Any:
        return da.from_array(array, chunks=tuple(self.chunks(n) for n in array.shape))

    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        first = tuple(self.one((1, 2, 3, 4, 5, 5, 6)) for _ in range(self.rng.integers(0, 5)))
        low = int(self.rng.integers(0, len(first) + 1))
        high = len(first) if self.chance(0.6) else int(self.rng.integers(low, len(first) + 1))
        second = tuple(1 if self.chance(0.2) else n for n in first[low:high])
        if self.chance(0.2):
            first = tuple(1 if self.chance(0.3) else n for n in first)
        return first, second


def assert_same(lazy: Any, eager: Any, tolerance: float | None = None) -> None:
    """The declared and the computed array are NumPy's."""
    assert isinstance(lazy, da.Array), f"computed, or never lazy: {type(lazy)}"
    wanted = np.asarray(eager)
    value = np.asarray(lazy.compute())
    assert (lazy.dtype, value.dtype) == (wanted.dtype, wanted.dtype)
    assert (lazy.shape, value.shape) == (wanted.shape, wanted.shape)
    last = tuple(count - 1 for count in lazy.numblocks)  # the one of other extents
    extents = tuple(of[-1] for of in lazy.chunks)
    assert np.shape(lazy.blocks[last].compute() if last else value) == extents
    if tolerance is None:
        np.testing.assert_array_equal(value, wanted)
    else:
        wide = (np.asarray(x, np.float64) for x in (value, wanted))
        np.testing.assert_allclose(*wide, rtol=tolerance, atol=tolerance)


def test_comparison_can_fail() -> None:
    with pytest.raises(AssertionError):
        assert_same(da.ones(3), np.ones(3, np.float32))
    with pytest.raises(AssertionError):
        assert_same(da.ones(3), np.zeros(3))
    with pytest.raises(AssertionError):
        assert_same(np.ones(3), np.ones(3))


@pytest.mark.parametrize("rule", RULES)
def test_ops_match_numpy_under_every_rule(rule: str) -> None:
    draw, computed = Draw(RULES.index(rule)), 0
    for _ in range(150):
        shape, other = draw.shapes()
        name = draw.one(("add", "multiply", "maximum", "less", "divide", "subtract"))
        same = draw.one(("float32", "int32")) if name == "subtract" else None
        arrays = draw.array(shape, same), draw.array(other, same)
        options: dict[str, Any] = {} if rule == "numpy" else {"rule": rule}
        if rule in ("pdpd", "paddle", "onnx6") and draw.chance(0.7):
            options["axis"] = int(draw.rng.integers(-1, len(shape) + 1))
        if rule == "onnx6":
            options["broadcast"] = 1
        function = getattr(zs, name)
        wanted = refusal = None
        try:
            wanted = function(*arrays, **options)
        except zs.BroadcastError as error:
            refusal = str(error)
        if refusal is not None:
            with pytest.raises(zs.BroadcastError) as refused:
                function(*map(draw.lazy, arrays), **options)
            assert str(refused.value) == refusal
            continue
        given = [draw.lazy(arrays[0]), arrays[1] if draw.chance(0.25) else draw.lazy(arrays[1])]
        assert_same(function(*given, **options), wanted)
        computed += 1
    assert computed > 20


def test_ops_take_numbers_and_one_or_three_operands() -> None:
    draw = Draw(20)
    for _ in range(40):
        x = draw.array((5, 4), "float32")
        lazy = draw.lazy(x)
        assert_same(zs.exp(lazy), zs.exp(x))
        assert_same(zs.clip(lazy, 0, 1), zs.clip(x, 0, 1))
        assert_same(zs.clip(lazy, None, 1), zs.clip(x, None, 1))
        assert_same(zs.cast(lazy, "int8"), zs.cast(x, "int8"))
        assert_same(zs.where(lazy > 0, lazy, 2), zs.where(x > 0, x, 2))
        assert_same(zs.prelu(lazy, x[:1]), zs.prelu(x, x[:1]))
        assert_same(zs.add(lazy, 1, dtype="float64"), zs.add(x, 1, dtype="float64"))
        assert_same(zs.leaky_relu(lazy, 0.2), zs.leaky_relu(x, 0.2))
    assert_same(zs.add(da.from_array(np.float32(2)), 1), zs.add(np.float32(2), 1))


def test_rule_sees_the_whole_arrays_not_their_chunks() -> None:
    # ncnn lays (5,) along rows of (5, 5) and along columns of (5, 3) against (3,): chunks of 3 of
    # a (5, 5) array must not turn that round.
    square, row = np.arange(25.0, dtype="float32").reshape(5, 5), np.arange(5, dtype="float32")
    wanted = zs.add(square, row, rule="ncnn")
    assert not np.array_equal(wanted, square + row)
    for chunks in ((5, 5), (2, 5), (5, 2), (3, 3), (1, 1)):
        lazy = da.from_array(square, chunks=chunks)
        assert_same(zs.add(lazy, da.from_array(row, chunks=2), rule="ncnn"), wanted)


def test_engine_values_are_those_of_the_whole_arrays() -> None:
    x = np.arange(-4, 4, dtype="int32").reshape(2, 4)
    y = np.full(4, 3, "int32")
    lazy = da.from_array(x, chunks=(1, 2)), da.from_array(y, chunks=3)
    for engine in ("onnxruntime", "torch", "openvino"):
        assert_same(zs.divide(*lazy, engine=engine), zs.divide(x, y, engine=engine))
    zero = np.float64(2)  # of rank 0, which yields to the others' dtype in torch
    assert_same(
        zs.add(da.from_array(x.astype("float32"), chunks=(1, 2)), zero, engine="torch"),
        zs.add(x.astype("float32"), zero, engine="torch"),
    )


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_match_numpy(name: str) -> None:
    draw = Draw(100 + REDUCTIONS.index(name))
    for _ in range(40):
        shape = tuple(draw.one((1, 2, 3, 4, 5, 6)) for _ in range(draw.rng.integers(0, 5)))
        x = draw.array(shape)
        if x.dtype.kind == "f" and draw.chance(0.3):
            x.flat[int(draw.rng.integers(x.size))] = draw.one((np.nan, np.inf, -np.inf))
        count = int(draw.rng.integers(0, len(shape) + 1))
        axes = tuple(draw.rng.choice(len(shape), count, replace=False).tolist()) if shape else ()
        options = {"axis": None if draw.chance(0.3) else axes, "keepdims": draw.chance(0.5)}
        function = getattr(zs, name)
        tolerance = 2e-3 if x.dtype == np.float16 else 1e-6
        assert_same(function(draw.lazy(x), **options), function(x, **options), tolerance)


def test_positions_are_of_the_first_of_equals() -> None:
    x = np.zeros((6, 8), "float32")
    x[4, 5] = x[3, 2] = x[3, 7] = 9
    lazy = da.from_array(x, chunks=(2, 3))
    assert zs.argmax(lazy).compute() == 3 * 8 + 2
    x[5, 0] = x[2, 6] = np.nan
    lazy = da.from_array(x, chunks=((0, 2, 4), (3, 0, 5)))
    assert zs.argmax(lazy).compute() == zs.argmin(lazy).compute() == 2 * 8 + 6


def test_sums_of_many_chunks_are_rounded_once() -> None:
    x = np.full(100_000, 0.1, "float32")
    exact = float(x.astype("float64").sum())
    result = zs.sum(da.from_array(x, chunks=1000)).compute()
    assert abs(float(result) - exact) <= np.spacing(np.float32(exact))
    halves = da.full(4096, 3.0, chunks=16, dtype="float16")
    assert zs.sum(halves).compute() == np.float16(12288)
    # The mean is not one of means: the last chunk is shorter.
    assert zs.mean(da.arange(10, chunks=4)).compute() == 4.5


def test_logsumexp_does_not_overflow() -> None:
    x = np.array([1000.0, 1000.0, -1000.0, -np.inf, 900.0, 1000.0])
    result = zs.logsumexp(da.from_array(x, chunks=2)).compute()
    assert result == pytest.approx(1000 + np.log(3), abs=1e-12)
    halves = np.linspace(-2, 3, 40).astype("float16").reshape(4, 10)  # rounded once, not by chunk
    result = zs.logsumexp(da.from_array(halves, chunks=2), 1)
    wanted = np.log(np.exp(halves.astype("float64")).sum(1)).astype("float16")
    np.testing.assert_array_equal(result.compute(), wanted)
    for special in ([np.inf, 900.0, 800.0], [-np.inf] * 3, [np.nan, 1.0, np.inf]):
        lazy = da.from_array(np.array(special), chunks=1)
        np.testing.assert_equal(zs.logsumexp(lazy).compute(), zs.logsumexp(np.array(special)))


# Fused functions


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


PROGRAMS: dict[str, Callable[..., Any]] = {
    "chain": lambda x, b: x * b + 1,
    "centred": lambda x, b: (x - x.mean(-1, keepdims=True)) * b,
    "softmax": lambda x, b: softmax(x),
    "several": lambda x, b: (x.sum(), x * 2, b.max()),
    "dict": lambda x, b: {"a": x.T, "b": (x + b).sum(0)},
    "pairs": lambda x, b: x[:, None, :] - x[None],
    "gram": lambda x, b: (x[:, None, :] * x[None]).sum(-1),
    "variance": lambda x, b: zs.add(x, b).var(0),
    "row": lambda x, b: x / zs.sum(b) + x.argmax(1)[:, None],
    "logsumexp": lambda x, b: zs.logsumexp(x, -1),
    "sums": lambda x, b: [x.sum(0), x.sum(1), (x + b).mean()],
    "zeros": lambda x, b: np.zeros_like(x) + x.max(0),
    "larger": lambda x, b: np.broadcast_to(b, (3, *x.shape)),
    "normal row": lambda x, b: (b - b.mean()) / (b.std() + 1) * x,
    "operands": lambda x, b: (x, b, 3.0),
    "twice": lambda x, b: (x * b).sum(-1).max(0),
    "outer": lambda x, b: x.sum(1, keepdims=True) * x.sum(0, keepdims=True),
    "halves": lambda x, b: (x.astype("float16").sum(0) * 2, x.astype("float16") + 1),
    "place": lambda x, b: zs.where(x > b, x, x.argmin(0)),
    "square": lambda x, b: (x - x.mean()) ** 2,
    "new axis": lambda x, b: (x[None].mean(0) + b).sum((0, 1)),
    "pdpd": lambda x, b: zs.add(x, x[:, 0] if x.shape[1] == 1 else x.sum(1), rule="pdpd", axis=0),
}


def leaves(packed: Any) -> list[Any]:
    if isinstance(packed, dict):
        packed = list(packed.values())
    return [y for x in packed for y in leaves(x)] if isinstance(packed, tuple | list) else [packed]


@pytest.mark.parametrize("name", PROGRAMS)
def test_fused_functions_match_numpy(name: str) -> None:
    fused, draw = zs.fuse(PROGRAMS[name]), Draw(len(name) + 7)
    for _ in range(12):
        shape = tuple(draw.one((1, 2, 3, 4, 5, 6, 7)) for _ in range(2))
        x = draw.array(shape, draw.one(("float32", "float64", "float16")))
        b = draw.array(shape[1:] if draw.chance(0.6) else (1,), draw.one(("float32", "float64")))
        lazy = draw.lazy(x).rechunk({1: -1}) if draw.chance(0.3) else draw.lazy(x)
        wanted = leaves(fused(x, b))
        tasks = leaves(fused(lazy, draw.lazy(b) if draw.chance(0.5) else b))
        halves = any(np.asarray(one).dtype == np.float16 for one in (x, *wanted))
        for one, eager in zip(tasks, wanted, strict=True):
            assert_same(one, eager, 5e-3 if halves else 2e-5)
        for one, value in zip(tasks, dask.compute(*tasks), strict=True):  # in one graph
            np.testing.assert_array_equal(one.compute(), value)


def _tasks(array: Any) -> int:
    """Tasks that call something, after Dask's own optimisation."""
    (optimized,) = dask.optimize(array)
    graph = dict(optimized.dask)
    return sum(type(task).__name__ == "Task" for task in graph.values())


def test_fused_function_is_one_task_per_chunk() -> None:
    x = da.ones((80, 6), chunks=(10, -1), dtype="float32")
    for program in ("chain", "centred", "softmax"):
        fused = zs.fuse(PROGRAMS[program])
        assert _tasks(fused(x, np.float32(2))) == 8, program
    # Of two results, one task and what takes each out of it.
    both = zs.fuse(lambda x: (x + 1, x * 2))(x)
    assert _tasks(both[0]) == 8
    # Ops one by one: Dask makes one task of them, too.
    assert _tasks(zs.multiply(zs.add(x, 1), 2)) == 8
    # A sum: chunks, then a tree of four at a time.
    assert _tasks(zs.fuse(lambda x: (x * 2).sum())(x)) <= 8 + 2 + 1


def test_row_in_one_chunk_is_not_cut() -> None:
    x = da.ones((80, 6), chunks=(10, -1), dtype="float32")
    gamma = da.ones(6, chunks=2, dtype="float32")
    fused = zs.fuse(lambda x, g: (x - x.mean(-1, keepdims=True)) * g)
    assert fused(x, gamma).chunks == x.chunks
    # But what is large is not made one chunk for a row's sake.
    wide = da.ones((4, 60), chunks=(4, 10), dtype="float32")
    row = np.arange(60, dtype="float32")
    shared = zs.fuse(lambda x, r: x * (r / r.sum()))
    assert shared(wide, row).chunks == wide.chunks
    assert_same(shared(wide, row), shared(np.ones((4, 60), "float32"), row), 1e-6)


def test_gradients_match_numpy() -> None:
    rng = np.random.default_rng(3)
    x, b = rng.random((6, 5)), rng.random(5)
    lazy = da.from_array(x, chunks=(4, 2)), da.from_array(b, chunks=3)
    for name in ("chain", "centred", "softmax", "gram", "several"):
        fused = zs.fuse(PROGRAMS[name])
        wanted, pull = fused.vjp(x, b)
        result, lazy_pull = fused.vjp(*lazy)
        ones = [np.ones_like(one) for one in leaves(wanted)]
        packed = tuple(ones) if isinstance(wanted, tuple) else ones[0]
        for one, eager in zip(leaves(result), leaves(wanted), strict=True):
            assert_same(one, eager, 1e-12)
        for one, eager in zip(lazy_pull(packed), pull(packed), strict=True):
            assert_same(one, eager, 1e-12)
        (to_x, _), (eager_x, _) = lazy_pull(result), pull(wanted)  # cotangents that are lazy
        assert_same(to_x, eager_x, 1e-12)
    _, pull = zs.fuse(lambda x: x * 2).vjp(lazy[0])
    with pytest.raises(zs.BroadcastError, match=r"has shape \(3,\); the result has \(6, 5\)"):
        pull(np.ones(3))


def test_views_and_unbroadcast_are_lazy() -> None:
    draw = Draw(11)
    for _ in range(60):
        shape, other = draw.shapes()
        axis = int(draw.rng.integers(0, len(shape) + 1))
        try:
            plan = zs.plan(shape, other, rule="pdpd", axis=axis)
        except zs.BroadcastError:
            continue
        arrays = draw.array(shape), draw.array(other)
        lazy = plan.views(*map(draw.lazy, arrays))
        assert lazy[0].chunks == lazy[1].chunks
        for one, view in zip(lazy, plan.views(*arrays), strict=True):
            assert_same(one, view)
        grad = draw.array(plan.shape)
        for k in range(2):
            assert_same(plan.unbroadcast(draw.lazy(grad), k), plan.unbroadcast(grad, k), 2e-3)


def test_broadcast_is_lazy() -> None:
    x = np.arange(3, dtype="int16")
    lazy = da.from_array(x, chunks=2)
    for copy in (False, True):
        result = zs.broadcast(lazy, (3, 5), mode="explicit", axes_mapping=[0], copy=copy)
        assert_same(result, np.repeat(x[:, None], 5, 1))
        assert result.compute(scheduler="synchronous").flags.writeable is not None
    # A terabyte that nobody holds.
    large = zs.broadcast(lazy, (500_000, 500_000, 3))
    assert max(large.chunksize) < 500_000
    assert large[7, 8, 2].compute() == 2


# Stores


def test_zarr_and_mapped_files_are_read(tmp_path: Any) -> None:
    zarr = pytest.importorskip("zarr", reason="stores of chunks are an optional library")
    x = np.random.default_rng(1).random((300, 40), np.float32)
    store = zarr.open_array(
        str(tmp_path / "x.zarr"), mode="w", shape=x.shape, chunks=(64, 40), dtype="f4"
    )
    store[:] = x
    mapped = np.memmap(tmp_path / "x.bin", np.float32, "w+", shape=x.shape)
    mapped[:] = x
    fused = zs.fuse(softmax)
    for source in (da.from_zarr(store), da.from_array(mapped, chunks=(100, -1))):
        assert_same(fused(source), fused(x), 1e-6)
        assert_same(zs.sum(source, axis=0), zs.sum(x, axis=0), 1e-5)
    fused(da.from_zarr(store)).to_zarr(str(tmp_path / "y.zarr"), compute=True)
    np.testing.assert_allclose(zarr.open_array(str(tmp_path / "y.zarr"))[:], fused(x), rtol=1e-6)
    # Mapped files beside lazy arrays are cut, too.
    assert_same(zs.add(da.from_array(x, chunks=(64, 20)), mapped), x + x)


# What is refused


def test_unknown_extents_are_refused() -> None:
    x = da.ones((6, 3), chunks=2)
    some = x[x[:, 0] > 0]
    calls: list[Callable[[], Any]] = [
        lambda: zs.add(some, 1),
        lambda: zs.add(x, some),
        lambda: zs.sum(some),
        lambda: zs.fuse(lambda x: x + 1)(some),
        lambda: zs.plan((6, 3), (3,)).unbroadcast(some, 0),
    ]
    for call in calls:
        with pytest.raises(zs.BroadcastError, match="compute_chunk_sizes") as refused:
            call()
        assert refused.value.reason == "unknown_size"
    assert_same(zs.add(some.compute_chunk_sizes(), 1), np.full((6, 3), 2.0))


def test_out_and_progress_are_refused() -> None:
    x = da.ones((4, 3), chunks=2)
    fused = zs.fuse(lambda x: x + 1)
    for call in (
        lambda: zs.add(x, 1, out=x),
        lambda: zs.sum(x, out=x),
        lambda: fused(x, out=x),
        lambda: zs.broadcast(x, (2, 4, 3), out=x),
    ):
        with pytest.raises(TypeError, match=r"dask.array.store"):
            call()
    with pytest.raises(TypeError, match="ProgressBar"):
        fused(x, progress=print)
    with pytest.raises(TypeError, match="bitwise_and"):
        zs.bitwise_and(x, x)  # when it is called, not when it is computed


def test_chunks_that_contradict_their_array_are_refused() -> None:
    fused = zs.fuse(lambda x: x + 1)
    x = da.ones((4, 3), chunks=2)
    other = x.map_blocks(lambda block: block.astype("float32"), dtype="float64", meta=x._meta)
    with pytest.raises(TypeError, match="a chunk of operand 0 has float32, and its Dask array"):
        fused(other).compute()
    longer = x.map_blocks(lambda block: block[:1], dtype="float64", meta=x._meta)
    with pytest.raises(ValueError, match=r"has shape \(1, .\), and its Dask array says \(2, .\)"):
        fused(longer).compute()
    masked = x.map_blocks(np.ma.masked_array, dtype="float64", meta=x._meta)
    with pytest.raises(TypeError, match="masked array"):
        zs.add(masked, 1).compute()
    with pytest.raises(TypeError, match=r"numpy\.ma.*chunks; zerostride computes with those of"):
        zs.add(da.ma.masked_greater(x, 5), 1)


def test_mixed_libraries_are_refused() -> None:
    strict = pytest.importorskip("array_api_strict", reason="a second library")
    with pytest.raises(TypeError, match="dask"):
        zs.add(da.ones(3, chunks=2), strict.ones(3))


# The page


def test_examples_of_the_page_run() -> None:
    """Its blocks are `py`, not `python`: those run where Dask is not installed."""
    page = Path(__file__).parents[2] / "docs" / "dask.md"
    names: dict[str, object] = {}
    blocks = re.findall(r"^```py\n(.*?)^```$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 6
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)
