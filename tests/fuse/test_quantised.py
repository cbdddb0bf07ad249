"""`quantize`, `dequantize`, `fake_quantize`: values beside loops over elements, and gradients."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import zerostride as zs
from zerostride.compute import quantised
from zerostride.quantisation import QUANTIZERS

pytest.importorskip("ml_dtypes", reason="it has the types of 4 bits; the onnx package brings it")

#: Ties of both signs, their neighbours, the ends of types, huge numbers, infinity and NaN.
HARD = np.concatenate(
    [
        np.arange(-4.5, 5, 0.5),
        np.nextafter(np.float32([0.5, 1.5, 2.5]), np.float32(9)),
        [126.5, 127.5, -128.5, 254.5, 255.5, 1e9, -3e9, 3e38, -3e38, np.inf, -np.inf, np.nan],
    ]
).astype(np.float32)


def nearest(x: np.float32, scale: np.float32) -> int:
    """x / scale as float32, rounded to the nearest whole number, ties to even."""
    quotient = Fraction(float(np.float32(x / scale)))
    return round(quotient)  # Python rounds ties to even


def quantised_element(x: Any, scale: Any, zero: int, low: int, high: int) -> int:
    if math.isnan(x):
        return low
    with np.errstate(over="ignore"):
        quotient = np.float32(x / scale)
    if math.isinf(quotient):
        return high if quotient > 0 else low
    return min(max(nearest(x, scale) + zero, low), high)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int4", "uint4", "int2"])
@pytest.mark.parametrize("scale", [1.0, 0.1, 0.3, 7.0])
def test_quantize_rounds_ties_to_even_and_saturates(dtype: str, scale: float) -> None:
    low, high = quantised.ENDS[dtype]
    for zero in {low, 0, 1, high}:
        with np.errstate(over="ignore"):
            x = HARD * np.float32(scale)
        result = zs.quantize(x, np.float32(scale), zero, dtype=dtype)
        wanted = [quantised_element(v, np.float32(scale), zero, low, high) for v in x]
        assert result.astype(int).tolist() == wanted
        assert result.dtype.name == dtype


PLACES: tuple[tuple[tuple[int, ...], dict[str, Any]], ...] = (
    ((), {}),
    ((1,), {}),
    ((6,), {}),
    ((4,), {"axis": 0}),
    ((4, 1), {}),
    ((4, 6), {}),
    ((4, 3), {"block": 2}),
    ((2, 6), {"axis": 0, "block": 2}),
    ((4, 2), {"block": 4}),  # the last block is cut off
    ((2, 3), {"axis": (0, 1), "block": (2, 2)}),
)


@pytest.mark.parametrize(("shape", "places"), PLACES)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int4"])
def test_placements_beside_a_loop(
    shape: tuple[int, ...], places: dict[str, Any], dtype: str
) -> None:
    rng = np.random.default_rng(3)
    x = rng.uniform(-9, 9, (4, 6)).astype(np.float32)
    scale = rng.uniform(0.1, 2, shape).astype(np.float32)
    zero = rng.integers(0, 5, shape)
    low, high = quantised.ENDS[dtype]
    result = zs.quantize(x, scale, zero, dtype=dtype, **places)
    back = zs.dequantize(result, scale, zero, **places)
    for i, j in np.ndindex(x.shape):
        place = _place(shape, places, i, j)
        s, z = scale[place], int(zero[place])
        assert int(result[i, j]) == quantised_element(x[i, j], s, z, low, high)
        assert back[i, j] == np.float32(int(result[i, j]) - z) * s


def _place(shape: tuple[int, ...], places: dict[str, Any], i: int, j: int) -> tuple[int, ...]:
    if "block" in places:
        if isinstance(places["block"], tuple):
            return i // 2, j // 2
        block = places["block"]
        return (i // block, j) if places.get("axis") == 0 else (i, j // block)
    if len(shape) == 2:
        return i, 0 if shape[1] == 1 else j
    if shape in ((), (1,)):
        return (0,) * len(shape)
    return (i,) if places.get("axis") == 0 else (j,)


def test_one_pass_computes_what_numpy_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    x = np.concatenate([HARD, rng.normal(0, 99, 94).astype(np.float32)]).reshape(8, -1)
    x = x[:, :16]
    scale, zero = rng.uniform(0.1, 2, (8, 4)).astype(np.float32), rng.integers(-9, 9, (8, 4))
    for dtype in ("int8", "int16"):
        places = {"axis": 1, "block": 4}
        fast = zs.quantize(x, scale, zero, dtype=dtype, **places)
        slow = quantised.quantised(quantised.quantization(x, scale, zero, dtype, places))
        assert np.array_equal(fast, slow)
        assert fast.dtype == slow.dtype
        back = zs.dequantize(fast, scale, zero, **places)
        call = quantised.dequantization(fast, scale, zero, places)
        assert np.array_equal(back, quantised.dequantised(call))


@pytest.mark.parametrize("engine", sorted(set(QUANTIZERS) - {"mnn", "ncnn"}))
def test_engines_differ_where_their_rows_say(engine: str) -> None:
    x = np.float32([0.5, 1.5, 2.5, 3e9])
    result = zs.quantize(x, np.float32(1), 3, dtype="int8", engine=engine).tolist()
    before = engine in ("openvino", "torch")
    assert result[:3] == ([4, 4, 6] if before else [3, 5, 5])
    assert result[3] == (-128 if engine == "onnx.reference" else 127)


def test_ncnn_adds_half_and_has_minus_127_as_its_lowest() -> None:
    x = np.float32([0.5, -0.5, 2.5, 0.49999997, -128, 3e9, np.nan])
    result = zs.quantize(x, np.float32(1), dtype="int8", engine="ncnn")
    assert result.tolist() == [1, -1, 3, 1, -127, -127, -127]


def test_mnn_adds_half_and_saturates() -> None:
    x = np.float32([[0.5, -1.5, 0.49999997, -300, 3e9, np.nan]])
    result = zs.quantize(x, np.float32(1), dtype="int8", engine="mnn")
    assert result.tolist() == [[1, -2, 1, -128, 127, 127]]


def test_litert_rounds_otherwise_by_axis() -> None:
    x = np.float32([[0.5, 2.5, 3e9], [0.5, 2.5, -3e9]])
    by_tensor = zs.quantize(x, np.float32(1), dtype="int8", engine="litert")
    by_axis = zs.quantize(x, np.float32([1, 1]), axis=0, dtype="int8", engine="litert")
    assert by_tensor.tolist() == [[0, 2, 127], [0, 2, -128]]
    assert by_axis.tolist() == [[1, 3, -128], [1, 3, -128]]


def test_litert_rounds_the_last_elements_of_int16_otherwise() -> None:
    x = np.full(11, 0.5, np.float32)
    result = zs.quantize(x, np.float32(1), dtype="int16", engine="litert")
    assert result.tolist() == [0] * 8 + [1] * 3
    assert zs.quantize(x[:8], np.float32(1), dtype="int16", engine="litert").tolist() == [0] * 8


def test_float16_is_divided_in_float16_from_opset_23_on() -> None:
    scale = np.float16(0.3)
    many = np.arange(-3000, 3000).astype(np.float16) * np.float16(0.01)
    a = zs.quantize(many, scale, engine="onnxruntime", opset=21, dtype="int8")
    b = zs.quantize(many, scale, engine="onnxruntime", opset=23, dtype="int8")
    assert (a != b).any()


def test_float8_saturates() -> None:
    x = np.float32([1, 1e9, -np.inf, np.nan])
    result = zs.quantize(x, 1, dtype="float8_e4m3fn").astype(np.float32)
    assert result[:3].tolist() == [1.0, 448.0, -448.0]
    assert np.isnan(result[3])


def test_dequantize_of_int32_beyond_float32() -> None:
    q = np.array([2**31 - 1, -(2**31)], np.int32)
    assert zs.dequantize(q, 1.0, 3).tolist() == [float(np.float32(2**31 - 4)), -float(2**31)]
    wrapped = zs.dequantize(q, 1.0, 3, engine="onnxruntime")
    assert wrapped.tolist() == [float(2**31), float(2**31)]


def test_packed_bytes_have_the_first_number_in_the_low_half() -> None:
    q = np.arange(256, dtype=np.uint8).reshape(16, 16)
    for name, offset in (("uint4", 0), ("int4", 8)):
        result = zs.dequantize(q, np.float32(1), packed=name)
        for i, j in itertools.product(range(16), range(16)):
            for half, value in enumerate((q[i, j] & 15, q[i, j] >> 4)):
                signed = (int(value) ^ offset) - offset
                assert result[i, 2 * j + half] == signed


#: The numbers of an axis, and the places of its scales.
RUNS: tuple[tuple[int, tuple[int, ...], dict[str, Any]], ...] = (
    (6, (3,), {"axis": 0}),
    (6, (6,), {}),
    (16, (16,), {}),
    (16, (3, 16), {}),
    (16, (), {}),
    (16, (3, 2), {"block": 8}),
    (12, (3, 3), {"block": 4}),
    (6, (3, 2), {"block": 3}),  # blocks end within a byte
    (18, (3, 3), {"block": 8}),  # the last block is cut off
    (8, (1, 8), {"axis": 0, "block": 3}),
)


@pytest.mark.parametrize(("numbers", "shape", "places"), RUNS)
@pytest.mark.parametrize("name", ["int4", "uint4"])
@pytest.mark.parametrize("zeros", [False, True])
def test_packed_numbers_are_those_of_unpacked_ones(
    numbers: int, shape: tuple[int, ...], places: dict[str, Any], name: str, zeros: bool
) -> None:
    rng = np.random.default_rng(7)
    low, _ = quantised.ENDS[name]
    whole = rng.integers(0, 16, (3, numbers), dtype=np.uint8)
    packed = whole[:, ::2] | whole[:, 1::2] << 4
    signed = (whole.astype(np.int8) ^ -low) + low if low else whole.astype(np.int8)
    scale = rng.uniform(0.1, 2, shape).astype(np.float32)
    zero = rng.integers(low, low + 16, shape).astype(np.int8) if zeros else None
    wanted = zs.dequantize(signed, scale, zero, **places)
    small = whole.view(np.dtype(getattr(pytest.importorskip("ml_dtypes"), name)))
    for q, more in ((packed, {"packed": name}), (small, {})):
        out = np.empty((3, numbers), np.float32)
        for kind in (np.ascontiguousarray, np.asfortranarray):
            assert np.array_equal(zs.dequantize(kind(q), scale, zero, **places, **more), wanted)
        assert zs.dequantize(q, scale, zero, **places, **more, out=out) is out
        assert np.array_equal(out, wanted)


@pytest.mark.parametrize(("shape", "places"), PLACES)
def test_results_go_into_out(shape: tuple[int, ...], places: dict[str, Any]) -> None:
    rng = np.random.default_rng(2)
    x, scale = rng.normal(0, 9, (4, 6)).astype(np.float32), np.full(shape, 0.5, np.float32)
    q = zs.quantize(x, scale, dtype="int8", **places)
    for out in (np.empty((4, 6), np.int8), np.empty((6, 4), np.int8).T, np.empty((4, 12), np.int8)):
        into = out[:, ::2] if out.shape[1] == 12 else out
        assert zs.quantize(x, scale, dtype="int8", **places, out=into) is into
        assert np.array_equal(into, q)
    for dtype in (None, "float32", "float64"):
        into = np.empty((4, 6), dtype or "float32")
        assert zs.dequantize(q, scale, **places, dtype=dtype, out=into) is into
        assert np.array_equal(into, zs.dequantize(q, scale, **places, dtype=dtype))


@pytest.mark.parametrize(
    ("out", "words"),
    [
        (np.empty((2, 4), np.int8), "shape"),
        (np.empty((2, 3), np.uint8), "does not become out's uint8"),
        ([[0, 0, 0]] * 2, "array"),
    ],
)
def test_an_out_that_does_not_fit_is_refused(out: Any, words: str) -> None:
    calls: tuple[Callable[[], Any], ...] = (
        lambda: zs.quantize(np.zeros((2, 3), np.float32), 1, dtype="int8", out=out),
        lambda: zs.quantize(np.zeros((2, 3)), 1.0, dtype="int8", out=out),
    )
    for call in calls:
        with pytest.raises((TypeError, zs.BroadcastError), match=words):
            call()


def test_packed_numbers_are_exact_on_openvino() -> None:
    """Of 4 bits they are constants there, which are dequantised as in ONNX."""
    q, scale = np.uint8([0x21, 0xF3]), np.float32(0.1)
    for engine in (None, "openvino"):
        result = zs.dequantize(q, scale, 5, packed="int4", engine=engine)
        assert result.tolist() == [float(np.float32(n - 5) * scale) for n in (1, 2, 3, -1)]
    with pytest.raises(zs.BroadcastError) as caught:
        zs.dequantize(q, scale, packed="int4", engine="torch")
    assert caught.value.reason == "dtype"


def test_arrays_of_other_libraries_give_their_own() -> None:
    torch = pytest.importorskip("torch", reason="an array library is an extra")
    x = torch.tensor([[0.5, 1.5], [2.5, -3.0]])
    q = zs.quantize(x, torch.tensor([0.5, 1.0]), axis=0, dtype="int8")
    assert isinstance(q, torch.Tensor)
    assert q.dtype == torch.int8
    assert q.tolist() == [[1, 3], [2, -3]]
    assert zs.dequantize(q, torch.tensor([0.5, 1.0]), axis=0).tolist() == [[0.5, 1.5], [2.0, -3.0]]
    out = torch.empty(2, 2)
    assert zs.dequantize(q, torch.tensor([0.5, 1.0]), axis=0, out=out) is out
    assert out.tolist() == [[0.5, 1.5], [2.0, -3.0]]
    with pytest.raises(TypeError, match="requires a gradient"):
        zs.quantize(x.requires_grad_(), 1.0)


REFUSED: tuple[tuple[Callable[[], Any], str], ...] = (
    (lambda: zs.quantize(np.zeros(3), 1.0, dtype="int32"), "dtype"),
    (lambda: zs.quantize(np.zeros(3, np.float32), 1, 300, dtype="int8"), "attribute"),
    (lambda: zs.quantize(np.zeros(3, np.float32), 1, 0.5, dtype="int8"), "attribute"),
    (lambda: zs.quantize(np.zeros(3, np.float32), 1, 1, dtype="float8_e5m2"), "attribute"),
    (lambda: zs.quantize(np.zeros(3), 1.0, engine="openvino"), "dtype"),
    (lambda: zs.dequantize(np.zeros(3, np.int64), 1.0), "dtype"),
    (lambda: zs.dequantize(np.zeros(3, np.int8), 1.0, packed="int4"), "attribute"),
    (lambda: zs.fake_quantize(np.zeros((2, 5)), np.ones((2, 2)), block=3), "extent_mismatch"),
    (lambda: zs.fake_quantize(np.zeros(3), 1.0, dtype="float32"), "dtype"),
)


@pytest.mark.parametrize(("call", "reason"), REFUSED)
def test_refusals_have_a_reason(call: Callable[[], Any], reason: str) -> None:
    with pytest.raises(zs.BroadcastError) as caught:
        call()
    assert caught.value.reason == reason


def test_fake_quantize_is_quantize_and_back() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(0, 40, (4, 6)).astype(np.float32)
    for shape, places in PLACES:
        if shape == (4, 2):
            continue
        scale = rng.uniform(0.1, 1, shape).astype(np.float32)
        zero = rng.integers(-3, 3, shape)
        wanted = zs.dequantize(
            zs.quantize(x, scale, zero, dtype="int8", **places), scale, zero, **places
        )
        assert np.array_equal(zs.fake_quantize(x, scale, zero, dtype="int8", **places), wanted)


def test_gradient_goes_straight_through() -> None:
    x = np.float32([[0.3, 1.4, 999], [-999, 0.25, -0.2]])
    scale = np.float32([0.5, 0.25])

    def through(x: Any, scale: Any) -> Any:
        return zs.fake_quantize(x, scale, axis=0, dtype="int8")

    result, pullback = zs.fuse(through).vjp(x, scale)
    by_x, by_scale = pullback(np.ones_like(result))
    assert by_x.tolist() == [[1, 1, 0], [0, 1, 1]]
    # A step's own gradient: the rounding error where inside, the end of the type where outside.
    quotient = x / scale[:, None]
    ends = np.clip(np.rint(quotient), -128, 127)
    error = np.where(np.abs(quotient) < 127, ends - quotient, ends)
    assert np.allclose(by_scale, error.sum(axis=1))


def test_fused_function_names_the_way_around_a_block() -> None:
    function = zs.fuse(lambda x, s: zs.fake_quantize(x, s, block=2))
    with pytest.raises(zs.BroadcastError, match="reshape x to"):
        function(np.ones((2, 4), np.float32), np.ones((2, 2), np.float32))
    with pytest.raises(TypeError, match="fake_quantize"):
        zs.fuse(lambda x: zs.quantize(x, 1.0))(np.ones(3, np.float32))
