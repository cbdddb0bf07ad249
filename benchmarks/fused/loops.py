"""The expressions as loops for Numba, or for plain Python without it.

Constants are float32: Python's floats would make everything float64. Rows are shared out among the
threads. bfloat16, which Numba lacks, is taken as its bits.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..rows import Array, Task
from . import functions as f

try:
    from numba import njit, prange
except ModuleNotFoundError:
    prange = range

    def njit(function: Any) -> Any:
        """As it is."""
        return function


_F = np.float32
ZERO, HALF, ONE = _F(0), _F(0.5), _F(1)
GELU_0, GELU_1 = map(_F, f.GELU)
EPSILON = _F(f.EPSILON)
EIGHTH, LOW, CAP = _F(0.125), _F(f.LOW), _F(f.CAP)
SCALE_255 = _F(1 / 255)
P0, P1, P2, P3, P4, P5, P6, P7, P8 = map(_F, f.COEFFICIENTS)
MIX, SIXTEEN = np.int32(f.MIX), np.int32(16)
VOLATILITY, DRIFT, RATE = _F(f.VOLATILITY), _F(f.RATE + f.VOLATILITY**2 / 2), _F(-f.RATE)
ROOT_HALF = _F(math.sqrt(0.5))
C0, C1, C2 = map(_F, f.CHAIN)
RESIDUAL, SCALE, THREE, SIX, ROOT_2 = map(_F, (f.RESIDUAL, f.SCALE, 3, 6, math.sqrt(2)))
L0, L1, L2, L3 = map(_F, f.LEARNED)
TURNS = f.CHAIN_TURNS
#: Functions that take arrays of one shape, each as a vector.
FLAT = frozenset(
    {
        "model_silu",
        "model_scaled_residual",
        "model_affine_hard_swish",
        "model_add_relu",
        "model_hard_swish_scaled",
        "model_two_scaled_residuals",
        "model_gelu",
        "model_add_relu6",
    }
)
#: Of bfloat16's 16 bits in float32, and what rounds to even.
BITS, LAST, ROUND = np.uint32(16), np.uint32(1), np.uint32(0x7FFF)


def arguments(task: Task) -> tuple[Array, ...]:
    """The operands and the output as a row's function takes them."""
    assert task.out is not None
    arrays = (*task.inputs, task.out)
    if task.row.name in FLAT:
        return tuple(array.reshape(-1) for array in arrays)
    if task.expected.dtype.name == "bfloat16":
        return tuple(array.view(np.uint16) for array in arrays)
    return arrays


def affine(x, mean, rstd, gamma, beta, out):
    for i in prange(x.shape[0]):
        m, r = mean[i, 0], rstd[i, 0]
        for j in range(x.shape[1]):
            out[i, j] = (x[i, j] - m) * r * gamma[j] + beta[j]


def scale_shift_relu(x, scale, shift, out):
    images, channels, height, width = x.shape
    for k in prange(images * channels):
        n, c = k // channels, k % channels
        a, b = scale[c, 0, 0], shift[c, 0, 0]
        for i in range(height):
            for j in range(width):
                out[n, c, i, j] = max(x[n, c, i, j] * a + b, ZERO)


def gelu_bias(x, bias, out):
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            v = x[i, j] + bias[j]
            out[i, j] = HALF * v * (ONE + math.tanh(GELU_0 * (v + GELU_1 * v * v * v)))


def gate(x, by, out):
    # In squares, so that what lies transposed stays in the cache.
    rows, columns = x.shape
    for block in prange((rows + 63) // 64):
        low, high = block * 64, min(block * 64 + 64, rows)
        for start in range(0, columns, 64):
            for i in range(low, high):
                for j in range(start, min(start + 64, columns)):
                    out[i, j] = x[i, j] * (ONE / (ONE + math.exp(-by[i, j])))


def squared_distance(a, b, out):
    for i in prange(a.shape[0]):
        for j in range(b.shape[1]):
            total = ZERO
            for k in range(a.shape[2]):
                d = a[i, 0, k] - b[0, j, k]
                total += d * d
            out[i, j] = total


def softmax(x, out):
    for i in prange(x.shape[0]):
        top = x[i, 0]
        for j in range(x.shape[1]):
            top = max(top, x[i, j])
        total = ZERO
        for j in range(x.shape[1]):
            e = math.exp(x[i, j] - top)
            out[i, j] = e
            total += e
        for j in range(x.shape[1]):
            out[i, j] /= total


def layer_norm(x, gamma, beta, out):
    for i in prange(x.shape[0]):
        size = np.float32(x.shape[1])
        total = ZERO
        for j in range(x.shape[1]):
            total += x[i, j]
        mean = total / size
        total = ZERO
        for j in range(x.shape[1]):
            c = x[i, j] - mean
            total += c * c
        rstd = ONE / math.sqrt(total / size + EPSILON)
        for j in range(x.shape[1]):
            out[i, j] = (x[i, j] - mean) * rstd * gamma[j] + beta[j]


def masked(scores, bias, causal, keys, out):
    batch, heads, height, width = scores.shape
    for k in prange(batch * heads):
        n, h = k // heads, k % heads
        b = bias[h, 0, 0]
        for i in range(height):
            for j in range(width):
                s = scores[n, h, i, j] * EIGHTH + b
                s = s if causal[i, j] else LOW
                s = s if keys[n, 0, 0, j] else LOW
                out[n, h, i, j] = CAP if s > CAP else s


def normalised_image(image, mean, rstd, out):
    for i in prange(image.shape[0]):
        for j in range(image.shape[1]):
            for c in range(3):
                out[i, j, c] = (np.float32(image[i, j, c]) * SCALE_255 - mean[c]) * rstd[c]


@njit
def _wide(bits):
    return np.uint32(np.uint32(bits) << BITS).view(np.float32)


@njit
def _narrow(value):
    bits = np.float32(value).view(np.uint32)
    return np.uint16((bits + ROUND + ((bits >> BITS) & LAST)) >> BITS)


def residual_rms_norm(x, residual, gamma, out):
    for i in prange(x.shape[0]):
        total = ZERO
        for j in range(x.shape[1]):
            h = _wide(x[i, j]) + _wide(residual[i, j])
            total += h * h
        rstd = ONE / math.sqrt(total / np.float32(x.shape[1]) + EPSILON)
        for j in range(x.shape[1]):
            h = _wide(x[i, j]) + _wide(residual[i, j])
            out[i, j] = _narrow(h * rstd * _wide(gamma[j]))


def grouped_softmax(scores, seen, out):
    batch, heads, group, queries, keys = scores.shape
    for k in prange(batch * heads * group):
        b, h, g = k // group // heads, k // group % heads, k % group
        for i in range(queries):
            top = LOW
            for j in range(keys):
                out[b, h, g, i, j] = scores[b, h, g, i, j] * EIGHTH if seen[i, j] else LOW
                top = max(top, out[b, h, g, i, j])
            total = ZERO
            for j in range(keys):
                e = math.exp(out[b, h, g, i, j] - top)
                out[b, h, g, i, j] = e
                total += e
            for j in range(keys):
                out[b, h, g, i, j] /= total


def dequantized_rows(q, scale, out):
    rows, size = out.shape
    for i in prange(rows):
        s = scale[i, 0]
        for j in range(size):
            out[i, j] = np.float32(q[i, j]) * s


def dequantized_int8(q, scale, out):
    rows, blocks, size = out.shape
    for i in prange(rows):
        for b in range(blocks):
            s = scale[i, b, 0]
            for j in range(size):
                out[i, b, j] = np.float32(q[i, b, j]) * s


def dequantized_int4(q, scale, shifts, out):
    rows, blocks, size, _ = out.shape
    for i in prange(rows):
        for b in range(blocks):
            s = scale[i, b, 0, 0]
            for j in range(size):
                both = np.int32(q[i, b, j, 0])
                out[i, b, j, 0] = np.float32(((both & 15) ^ 8) - 8) * s
                out[i, b, j, 1] = np.float32(((both >> 4) ^ 8) - 8) * s


def polynomial(x, out):
    for i in prange(x.shape[0]):
        v = x[i]
        y = ((((P0 * v + P1) * v + P2) * v + P3) * v + P4) * v + P5
        out[i] = ((y * v + P6) * v + P7) * v + P8


def hash_mix(x, out):
    for i in prange(x.shape[0]):
        h = np.int32(((x[i] >> SIXTEEN) ^ x[i]) * MIX)
        h = np.int32(((h >> SIXTEEN) ^ h) * MIX)
        out[i] = (h >> SIXTEEN) ^ h


def black_scholes(spot, strike, years, out):
    for i in prange(spot.shape[0]):
        s, k, t = spot[i], strike[i], years[i]
        spread = VOLATILITY * math.sqrt(t)
        d1 = (math.log(s / k) + DRIFT * t) / spread
        d2 = d1 - spread
        paid = k * math.exp(RATE * t) * (HALF + HALF * math.erf(d2 * ROOT_HALF))
        out[i] = s * (HALF + HALF * math.erf(d1 * ROOT_HALF)) - paid


def alternating(a, b, out):
    n0, n1, n2, n3, n4, n5 = out.shape
    for k in prange(n0 * n1):
        i0, i1 = k // n1, k % n1
        for i2 in range(n2):
            for i3 in range(n3):
                for i4 in range(n4):
                    u = a[i0, 0, i2, 0, i4, 0]
                    for i5 in range(n5):
                        v = b[0, i1, 0, i3, 0, i5]
                        out[i0, i1, i2, i3, i4, i5] = max((u + v) * u - v, HALF) * v + u


def chain_20(x, y, out):
    for i in prange(x.shape[0]):
        v = x[i]
        for _ in range(TURNS):
            v = max(v * C0 + y[i], C1) - C2
        out[i] = v


def small_chain(x, mean, rstd, gamma, beta, out):
    for i in prange(x.shape[0]):
        m, r = mean[i, 0], rstd[i, 0]
        for j in range(x.shape[1]):
            out[i, j] = max((x[i, j] - m) * r * gamma[j] + beta[j], ZERO)


def model_silu(x, out):
    for i in prange(x.shape[0]):
        out[i] = x[i] * (ONE / (ONE + math.exp(-x[i])))


def model_add_prelu(x, y, slope, out):
    images, rows, columns, channels = x.shape
    for k in prange(images * rows):
        n, i = k // rows, k % rows
        for j in range(columns):
            for c in range(channels):
                v = x[n, i, j, c] + y[n, i, j, c]
                out[n, i, j, c] = v if v > ZERO else v * slope[0, 0, c]


def model_scaled_residual(x, y, out):
    for i in prange(x.shape[0]):
        out[i] = x[i] * RESIDUAL + y[i]


def model_affine_hard_swish(x, out):
    for i in prange(x.shape[0]):
        v = x[i] * L0 + L1
        out[i] = v * min(max(v + THREE, ZERO), SIX) / SIX * L2 + L3


def model_add_relu(x, y, out):
    for i in prange(x.shape[0]):
        out[i] = max(x[i] + y[i], ZERO)


def model_hard_swish_scaled(x, out):
    for i in prange(x.shape[0]):
        out[i] = x[i] * min(max(x[i] + THREE, ZERO), SIX) / SIX * SCALE


def model_two_scaled_residuals(x, y, z, out):
    for i in prange(x.shape[0]):
        out[i] = (x[i] * RESIDUAL + y[i]) * RESIDUAL + z[i]


def model_batch_norm_hard_swish(x, gamma, beta, mean, variance, out):
    images, channels, height, width = x.shape
    for k in prange(images * channels):
        n, c = k // channels, k % channels
        a = gamma[c, 0, 0] / math.sqrt(variance[c, 0, 0] + EPSILON)
        b = beta[c, 0, 0] - mean[c, 0, 0] * a
        for i in range(height):
            for j in range(width):
                v = x[n, c, i, j] * a + b
                out[n, c, i, j] = v * min(max(v + THREE, ZERO), SIX) / SIX


def model_gelu(x, out):
    for i in prange(x.shape[0]):
        out[i] = (math.erf(x[i] / ROOT_2) + ONE) * x[i] * HALF


def model_add_relu6(x, y, out):
    for i in prange(x.shape[0]):
        out[i] = min(max(x[i] + y[i], ZERO), SIX)
