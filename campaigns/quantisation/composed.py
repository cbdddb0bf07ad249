"""Ops that quantise inside: products, convolutions, DynamicQuantizeLinear, FakeQuantize.

The expected results come from whole-number arithmetic and `zs.quantize`; the engines' models come
from :mod:`campaigns.quantisation.engines`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto

import zerostride as zs
from zerostride.compute.quantised import ENDS

from .draw import SCALES, Array, numbers
from .engines import model, on_onnxruntime, on_openvino, on_reference, type_number
from .judge import Result

F = np.float32
#: A model, its feeds, and what each result should be.
Question = tuple[Any, dict[str, Array], list[Array]]


def _bytes(rng: np.random.Generator, *shape: int, kind: str | None = None) -> Array:
    name = kind or str(rng.choice(["int8", "uint8"]))
    low, high = (-128, 127) if name == "int8" else (0, 255)
    numbers = rng.integers(low, high + 1, shape)
    return np.where(rng.random(shape) < 0.1, rng.choice([low, high], shape), numbers).astype(name)


def _scale(rng: np.random.Generator, *shape: int) -> Array:
    return rng.choice(SCALES, shape).astype(F)


def _wide(array: Array) -> Array:
    return array.astype(np.int64)


def _requantised(total: Array, factor: Array, zero: Array, engine: str) -> Array:
    """Sums times one factor in float32, rounded, shifted, saturated.

    The reference computes in float64, and adds the zero point before it rounds.
    """
    if engine == "onnx.reference":
        sums = total.astype(np.float64) * factor.astype(np.float64) + zero.astype(np.float64)
        return np.asarray(zs.quantize(sums, 1.0, dtype=zero.dtype.name))
    scaled = np.asarray(total.astype(F) * factor)
    return np.asarray(zs.quantize(scaled, F(1), int(zero), dtype=zero.dtype.name))


def products(a: Array, b: Array, x: Array, y: Array, *, pairs: bool) -> Array:
    """The product of two matrices minus their zero points.

    With `pairs` as ONNX Runtime computes it on x86-64 processors without VNNI, where b is int8: the
    instruction vpmaddubsw adds the products of two neighbours in int16, which saturates.
    """
    left, right = _wide(a), _wide(b)
    if not pairs or b.dtype != np.int8:
        total = left @ right
    else:
        odd = left.shape[-1] % 2
        left = np.concatenate([left, np.zeros((*left.shape[:-1], odd), np.int64)], -1)
        right = np.concatenate([right, np.zeros((odd, right.shape[-1]), np.int64)])
        total = np.zeros((*left.shape[:-1], right.shape[-1]), np.int64)
        for k in range(0, left.shape[-1], 2):
            two = left[..., k : k + 1] * right[k] + left[..., k + 1 : k + 2] * right[k + 1]
            total += np.clip(two, -(2**15), 2**15 - 1)
        left, right = _wide(a), _wide(b)
    count = left.shape[-1]
    shifts = _wide(x) * right.sum(0) + left.sum(-1, keepdims=True) * _wide(y)
    return np.asarray(total - shifts + count * _wide(x) * _wide(y))


@cache
def has_vnni() -> bool:
    """Whether the processor adds products of bytes in int32, or is not x86-64."""
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    except OSError:
        return True
    return "avx2" not in flags or "avx512_vnni" in flags or "avx_vnni" in flags


def _in_pairs(engine: str) -> bool:
    return engine == "onnxruntime" and not has_vnni()


def matmul_integer(rng: np.random.Generator, opset: int, engine: str) -> Question:
    """MatMulInteger: zero points are numbers, or one a row of a and a column of b."""
    m, k, n = (int(v) for v in rng.integers(1, 7, 3))
    batch = (2,) if rng.random() < 0.3 else ()
    a, b = _bytes(rng, *batch, m, k, kind="uint8"), _bytes(rng, k, n)
    columns = (n,) if rng.random() < 0.5 else ()
    x, y = _bytes(rng, kind="uint8"), _bytes(rng, *columns, kind=b.dtype.name)
    total = products(a, b, x, y, pairs=_in_pairs(engine))
    content, feeds = model("MatMulInteger", [a, b, x, y], {}, opset, result=TensorProto.INT32)
    return content, feeds, [total.astype(np.int32)]


def conv_integer(rng: np.random.Generator, opset: int, engine: str) -> Question:
    """ConvInteger of a window of 1, so that a product shows it."""
    x, w = _window(rng)
    p, q = _bytes(rng, kind="uint8"), _bytes(rng, kind=w.dtype.name)
    total = _convolved(x, w, p, q, pairs=False)  # the filters are the left factor
    content, feeds = model("ConvInteger", [x, w, p, q], {}, opset, result=TensorProto.INT32)
    return content, feeds, [total.astype(np.int32)]


def _convolved(x: Array, w: Array, p: Array, q: Array, *, pairs: bool) -> Array:
    """A convolution of a window of 1: a product of pixels and filters."""
    pixels = np.moveaxis(x, 1, -1)
    total = products(pixels, np.ascontiguousarray(w[..., 0, 0].T), p, q, pairs=pairs)
    return np.moveaxis(total, -1, 1)


def _window(rng: np.random.Generator) -> tuple[Array, Array]:
    channels, filters = (int(v) for v in rng.integers(1, 5, 2))
    x = _bytes(rng, 1, channels, 3, 4, kind="uint8")
    return x, _bytes(rng, filters, channels, 1, 1)


def qlinear_matmul(rng: np.random.Generator, opset: int, engine: str) -> Question:
    """QLinearMatMul with one scale each."""
    m, k, n = (int(v) for v in rng.integers(1, 7, 3))
    a, b = _bytes(rng, m, k, kind="uint8"), _bytes(rng, k, n)
    s, t, u = _scale(rng), _scale(rng), np.asarray(F(_scale(rng) * F(50)))
    x, y = _bytes(rng, kind="uint8"), _bytes(rng, kind=b.dtype.name)
    z = _bytes(rng, kind="uint8")
    total = products(a, b, x, y, pairs=_in_pairs(engine))
    wanted = _requantised(total, np.asarray(s * t / u), z, engine)
    operands = [a, s, x, b, t, y, u, z]
    content, feeds = model("QLinearMatMul", operands, {}, opset, result=type_number(z.dtype))
    return content, feeds, [wanted]


def qlinear_conv(rng: np.random.Generator, opset: int, engine: str) -> Question:
    """QLinearConv: a scale for the filters, or one for each; with a bias or without."""
    x, w = _window(rng)
    filters = len(w)
    each = rng.random() < 0.5
    s, u = _scale(rng), np.asarray(F(_scale(rng) * F(50)))
    t = _scale(rng, *((filters,) if each else ()))
    p, z = _bytes(rng, kind="uint8"), _bytes(rng, kind="uint8")
    q = np.zeros(t.shape, w.dtype) if each else _bytes(rng, kind=w.dtype.name)
    total = _convolved(x, w, p, q, pairs=_in_pairs(engine))
    operands = [x, s, p, w, t, q, u, z]
    if rng.random() < 0.5:
        bias = rng.integers(-5000, 5000, filters).astype(np.int32)
        total = total + _wide(bias).reshape(1, -1, 1, 1)
        operands.append(bias)
    factor = np.asarray(s * t / u)
    factor = factor.reshape(1, -1, 1, 1) if factor.size > 1 else factor.reshape(())
    content, feeds = model("QLinearConv", operands, {}, opset, result=type_number(z.dtype))
    return content, feeds, [_requantised(total, factor, z, engine)]


def q_gemm(rng: np.random.Generator, opset: int, engine: str) -> Question:
    """QGemm of com.microsoft: a scale for b, or one for each of its columns."""
    m, k, n = (int(v) for v in rng.integers(1, 7, 3))
    a, b = _bytes(rng, m, k, kind="uint8"), _bytes(rng, k, n)
    each = rng.random() < 0.5
    s, u = _scale(rng), np.asarray(F(_scale(rng) * F(50)))
    t = _scale(rng, *((n,) if each else ()))
    x, z = _bytes(rng, kind="uint8"), _bytes(rng, kind="uint8")
    y = np.zeros(t.shape, b.dtype) if each else _bytes(rng, kind=b.dtype.name)
    total = products(a, b, x, y, pairs=_in_pairs(engine))
    bias = None
    if rng.random() < 0.5:
        bias = rng.integers(-5000, 5000, n).astype(np.int32)
        total = total + _wide(bias)
    operands = [a, s, x, b, t, y, bias, u, z]
    content, feeds = model(
        "QGemm", operands, {}, opset, domain="com.microsoft", result=type_number(z.dtype)
    )
    return content, feeds, [_requantised(total, np.asarray(s * t / u), z, engine)]


def dynamic(rng: np.random.Generator, opset: int, engine: str) -> Question:
    """DynamicQuantizeLinear: to uint8 by the data's own range, which includes 0."""
    shape = tuple(int(n) for n in rng.integers(1, 9, 2))
    step = F(rng.choice(SCALES))
    x = ((rng.integers(-60, 60, shape) + rng.choice([0, 0.5], shape)) * step).astype(F)
    if rng.random() < 0.2:
        x = np.abs(x)
    low, high = min(F(0), x.min()), max(F(0), x.max())
    if not high > low:
        x[0, 0] = high = F(1)
    scale = F((high - low) / F(255))
    zero = zs.quantize(np.asarray(F(0) - low), scale, dtype="uint8")
    wanted = zs.quantize(x, scale, zero, dtype="uint8")
    if engine == "openvino":  # products with reciprocals, of the span and not of the scale
        scale = F((high - low) * F(1 / 255))
        zero = zs.quantize(np.asarray((F(0) - low) * F(1 / scale)), F(1), dtype="uint8")
        levels = x * F(255) * F(1 / F(high - low))
        wanted = zs.quantize(np.asarray(levels), F(1), zero, dtype="uint8")
    kind = TensorProto.UINT8
    content, feeds = model("DynamicQuantizeLinear", [x], {}, opset, outputs=3, result=kind)
    return content, feeds, [wanted, np.asarray(scale), np.asarray(zero)]


def kept_keys(rng: np.random.Generator, opset: int, engine: str) -> Question:
    """GroupQueryAttention of com.microsoft, which quantises its new keys and values.

    They are x * (1 / scale), rounded, saturated; NaN gives the highest number. Of 4 bits two lie in
    a byte, each with 8 added. The results are the keys and values with those of the past.
    """
    bits, each = int(rng.choice([4, 8])), bool(rng.integers(2))
    batch, heads, new, past = (int(n) for n in rng.integers(1, 4, 4))
    batch, features = 1 if new > 1 else batch, int(rng.choice([8, 16, 24, 40]))
    stored = f"int{bits}"
    operands: list[Array | None] = [rng.standard_normal((batch, new, heads * features)).astype(F)]
    pasts: list[Array] = []
    scales: list[Array] = []
    wanted: list[Array] = []
    for _ in range(2):
        scale = _scale(rng, *((1, heads, 1, features) if each else (1,)))
        by_head = numbers(rng, (batch, heads, new, features), scale, stored)
        operands.append(by_head.swapaxes(1, 2).reshape(batch, new, -1))
        old = rng.integers(-(1 << (bits - 1)), 1 << (bits - 1), (batch, heads, past, features))
        with np.errstate(all="ignore"):
            levels = np.clip(np.rint(by_head * (F(1) / scale)), *ENDS[stored])
        fresh = np.where(np.isnan(levels), ENDS[stored][1], levels).astype(np.int64)
        pasts.append(_held(old, bits))
        wanted.append(_held(np.concatenate([old, fresh], 2), bits))
        scales.append(scale)
    total = np.array([past + new], np.int32)
    lengths = np.full(batch, past + new - 1, np.int32)
    operands += [*pasts, lengths, total, *[None] * 5, *scales]
    kind = "PER_CHANNEL" if each else "PER_TENSOR"
    attributes: dict[str, Any] = {"k_quant_type": kind, "v_quant_type": kind}
    attributes |= {"num_heads": heads, "kv_num_heads": heads, "kv_cache_bit_width": bits}
    name = "com.microsoft"
    content, feeds = model(
        "GroupQueryAttention", operands, attributes, 21, outputs=3, domain=name, result=1
    )
    del content.graph.output[0]  # the attention itself
    for output in content.graph.output:
        output.type.tensor_type.elem_type = type_number(pasts[0].dtype)
    return content, feeds, wanted


def _held(whole: Array, bits: int) -> Array:
    """Whole numbers as the op holds them."""
    if bits == 8:
        return whole.astype(np.int8)
    halves = whole + 8
    return np.asarray(halves[..., ::2] + 16 * halves[..., 1::2]).astype(np.uint8)


#: Op and engine: the case, and the run.
COMPOSED: Mapping[tuple[str, str], tuple[Callable[..., Question], Callable[..., list[Array]]]] = {
    ("onnxruntime", "MatMulInteger"): (matmul_integer, on_onnxruntime),
    ("onnxruntime", "ConvInteger"): (conv_integer, on_onnxruntime),
    ("onnxruntime", "QLinearMatMul"): (qlinear_matmul, on_onnxruntime),
    ("onnxruntime", "QLinearConv"): (qlinear_conv, on_onnxruntime),
    ("onnxruntime", "QGemm"): (q_gemm, on_onnxruntime),
    ("onnxruntime", "DynamicQuantizeLinear"): (dynamic, on_onnxruntime),
    ("onnxruntime", "GroupQueryAttention"): (kept_keys, on_onnxruntime),
    ("onnx.reference", "MatMulInteger"): (matmul_integer, on_reference),
    ("onnx.reference", "ConvInteger"): (conv_integer, on_reference),
    ("onnx.reference", "QLinearMatMul"): (qlinear_matmul, on_reference),
    ("onnx.reference", "DynamicQuantizeLinear"): (dynamic, on_reference),
    ("openvino", "MatMulInteger"): (matmul_integer, on_openvino),
    ("openvino", "ConvInteger"): (conv_integer, on_openvino),
    ("openvino", "DynamicQuantizeLinear"): (dynamic, on_openvino),
}


def measure_composed(engine: str, op: str, seed: int, first: int, cases: int) -> Result:
    """Cases number `first` and on of an op."""
    result = Result(engine)
    question, run = COMPOSED[engine, op]
    for number in range(first, first + cases):
        rng = np.random.default_rng([seed, number, zlib.crc32(op.encode())])
        opset = int(rng.choice([10, 13, 21]) if op != "DynamicQuantizeLinear" else 11)
        content, feeds, wanted = question(rng, opset, engine)
        result.kinds[op] += 1
        try:
            answers = run(content, feeds)
        except Exception as error:  # noqa: BLE001 - whatever an engine raises is how it refuses
            result.take(f"{seed}:{number} {op}: {str(error)[-160:]!r}", wanted[0], None)
            continue
        for mine, theirs in zip(wanted, answers, strict=True):
            if mine is wanted[0] or (mine.shape != theirs.shape or (mine != theirs).any()):
                result.take(f"{seed}:{number} {op} opset={opset}", mine, theirs)
    return result
