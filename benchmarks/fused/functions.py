"""The benchmarked expressions: each function once, for every library.

`xp` is the library's functions (`namespaces`); operators are those of its arrays. `xp.real` is the
float that a function computes in, so that float64 can be asked for what is right.
"""

from __future__ import annotations

import math
from typing import Any

#: What masked scores are set to, and what they are cut at.
LOW, CAP = -1e4, 2.0
EPSILON = 1e-5
#: sqrt(2 / pi), and the cube's weight, of the approximation of gelu by tanh.
GELU = (math.sqrt(2 / math.pi), 0.044715)
#: Of exp's series: degree 8 first.
COEFFICIENTS = tuple(1 / math.factorial(k) for k in range(8, -1, -1))
#: An odd number whose products mix well; it fits into int32.
MIX = 0x45D9F3B
RATE, VOLATILITY = 0.03, 0.2
#: Of each of the chain's five turns.
CHAIN_TURNS, CHAIN = 5, (0.75, 0.1, 0.05)
#: Of a residual block, and of the hard swish after a product by a learned number.
RESIDUAL, SCALE = 0.2, 0.2
#: Learned numbers before and after a hard swish: factor, term, factor, term.
LEARNED = (0.9431690573692322, 0.5042971968650818, 0.47632309794425964, -0.007573243696242571)


def affine(xp: Any, x: Any, mean: Any, rstd: Any, gamma: Any, beta: Any) -> Any:
    return (x - mean) * rstd * gamma + beta


def scale_shift_relu(xp: Any, x: Any, scale: Any, shift: Any) -> Any:
    return xp.maximum(x * scale + shift, 0)


def gelu_bias(xp: Any, x: Any, bias: Any) -> Any:
    v = x + bias
    return 0.5 * v * (1 + xp.tanh(GELU[0] * (v + GELU[1] * v * v * v)))


def gate(xp: Any, x: Any, by: Any) -> Any:
    return x * xp.sigmoid(by)


def squared_distance(xp: Any, a: Any, b: Any) -> Any:
    d = a - b
    return xp.sum(d * d, axis=-1)


def softmax(xp: Any, x: Any) -> Any:
    e = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True)


def layer_norm(xp: Any, x: Any, gamma: Any, beta: Any) -> Any:
    centred = x - xp.mean(x, axis=-1, keepdims=True)
    variance = xp.mean(centred * centred, axis=-1, keepdims=True)
    return centred / xp.sqrt(variance + EPSILON) * gamma + beta


def masked(xp: Any, scores: Any, bias: Any, causal: Any, keys: Any) -> Any:
    s = scores * 0.125 + bias
    s = xp.where(causal, s, LOW)
    s = xp.where(keys, s, LOW)
    return xp.where(s > CAP, CAP, s)


def grouped_softmax(xp: Any, scores: Any, seen: Any) -> Any:
    return softmax(xp, xp.where(seen, scores * 0.125, LOW))


def dequantized_rows(xp: Any, q: Any, scale: Any) -> Any:
    return xp.cast(q, xp.real) * scale


def dequantized_int8(xp: Any, q: Any, scale: Any) -> Any:
    return xp.cast(q, xp.real) * scale


def dequantized_int4(xp: Any, q: Any, scale: Any, shifts: Any) -> Any:
    return (xp.cast(((q >> shifts) & 15) ^ 8, xp.real) - 8) * scale


def normalised_image(xp: Any, image: Any, mean: Any, rstd: Any) -> Any:
    return (xp.cast(image, xp.real) * (1 / 255) - mean) * rstd


def residual_rms_norm(xp: Any, x: Any, residual: Any, gamma: Any) -> Any:
    h = xp.cast(x, xp.real) + xp.cast(residual, xp.real)
    mean = xp.mean(h * h, axis=-1, keepdims=True)
    return xp.cast(h / xp.sqrt(mean + EPSILON) * xp.cast(gamma, xp.real), xp.bfloat16)


def polynomial(xp: Any, x: Any) -> Any:
    y = x * COEFFICIENTS[0] + COEFFICIENTS[1]
    for c in COEFFICIENTS[2:]:
        y = y * x + c
    return y


def hash_mix(xp: Any, x: Any) -> Any:
    h = ((x >> 16) ^ x) * MIX
    h = ((h >> 16) ^ h) * MIX
    return (h >> 16) ^ h


def black_scholes(xp: Any, spot: Any, strike: Any, years: Any) -> Any:
    spread = VOLATILITY * xp.sqrt(years)
    d1 = (xp.log(spot / strike) + (RATE + VOLATILITY**2 / 2) * years) / spread
    d2 = d1 - spread
    root = math.sqrt(0.5)
    paid = strike * xp.exp(-RATE * years) * (0.5 + 0.5 * xp.erf(d2 * root))
    return spot * (0.5 + 0.5 * xp.erf(d1 * root)) - paid


def alternating(xp: Any, a: Any, b: Any) -> Any:
    return xp.maximum((a + b) * a - b, 0.5) * b + a


def chain_20(xp: Any, x: Any, y: Any) -> Any:
    for _ in range(CHAIN_TURNS):
        x = xp.maximum(x * CHAIN[0] + y, CHAIN[1]) - CHAIN[2]
    return x


def small_chain(xp: Any, x: Any, mean: Any, rstd: Any, gamma: Any, beta: Any) -> Any:
    return xp.maximum((x - mean) * rstd * gamma + beta, 0)


# The ten most frequent chains of the models that `python -m campaigns chains` counts, in the order
# of that count, with the models' constants.


def model_silu(xp: Any, x: Any) -> Any:
    return x * xp.sigmoid(x)


def model_add_prelu(xp: Any, x: Any, y: Any, slope: Any) -> Any:
    v = x + y
    return xp.where(v > 0, v, v * slope)


def model_scaled_residual(xp: Any, x: Any, y: Any) -> Any:
    return x * RESIDUAL + y


def model_affine_hard_swish(xp: Any, x: Any) -> Any:
    factor, term, factor_after, term_after = LEARNED
    return _hard_swish(xp, x * factor + term) * factor_after + term_after


def model_add_relu(xp: Any, x: Any, y: Any) -> Any:
    return xp.maximum(x + y, 0)


def model_hard_swish_scaled(xp: Any, x: Any) -> Any:
    return _hard_swish(xp, x) * SCALE


def model_two_scaled_residuals(xp: Any, x: Any, y: Any, z: Any) -> Any:
    return (x * RESIDUAL + y) * RESIDUAL + z


def model_batch_norm_hard_swish(
    xp: Any, x: Any, gamma: Any, beta: Any, mean: Any, variance: Any
) -> Any:
    return _hard_swish(xp, (x - mean) / xp.sqrt(variance + EPSILON) * gamma + beta)


def model_gelu(xp: Any, x: Any) -> Any:
    return (xp.erf(x / math.sqrt(2)) + 1) * x * 0.5


def model_add_relu6(xp: Any, x: Any, y: Any) -> Any:
    return xp.minimum(xp.maximum(x + y, 0), 6)


def _hard_swish(xp: Any, x: Any) -> Any:
    return x * xp.minimum(xp.maximum(x + 3, 0), 6) / 6
