"""Random cases of ops that move a window over a plane, or scale one. The ops: execute_rows.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from execute_cases import Made, Rng, floats


def windows(op: str) -> Callable[[Rng], Made]:
    def make(rng: Rng) -> Made:
        rank = int(rng.integers(1, 4))
        groups = int(rng.choice([1, 2]))
        x = floats(rng, (2, 4, *rng.integers(5, 8, rank)))
        size = rng.integers(1, 4, rank).tolist()
        table: dict[str, Any] = {"strides": rng.integers(1, 3, rank).tolist()}
        if rng.integers(2):
            table["pads"] = [int(rng.integers(0, k)) for k in size * 2]
        else:
            table["auto_pad"] = ("SAME_UPPER", "SAME_LOWER", "VALID")[rng.integers(3)]
        if op == "Conv":
            table |= {"group": groups, "dilations": rng.integers(1, 3, rank).tolist()}
            return table, [x, floats(rng, (6, 4 // groups, *size)), floats(rng, (6,))]
        table |= {"kernel_shape": size}
        if "pads" in table:
            table["ceil_mode"] = int(rng.integers(2))
        if op == "AveragePool":
            table["count_include_pad"] = int(rng.integers(2))
        return table, [x]

    return make


def local_norms(rng: Rng) -> Made:
    x = floats(rng, (2, int(rng.integers(1, 7)), *rng.integers(1, 4, 2)))
    # ONNX Runtime takes odd sizes alone.
    return {"size": int(rng.choice([1, 3, 5])), "alpha": 0.1, "beta": 0.6, "bias": 1.5}, [x]


def small_windows(rng: Rng) -> Made:
    x = rng.integers(0, 200, (2, 3, 6, 5)).astype(np.uint8)
    weight = rng.integers(0, 200, (4, 3, 2, 3)).astype(np.uint8)
    more = [np.uint8(rng.integers(0, 9)), np.uint8(rng.integers(0, 9))][: rng.integers(0, 3)]
    pads = {"pads": rng.integers(0, 2, 4).tolist()} if not more else {}
    return pads, [x, weight, *more]


def resizes(rng: Rng) -> Made:
    mode = ("nearest", "linear", "cubic")[rng.integers(3)]
    x = floats(rng, (1, 2, *rng.integers(2, 6, 2)))
    sizes = rng.integers(1, 9, 2)
    places = ["half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"]
    by_scales = bool(rng.integers(2))
    # Where scales align corners, ONNX Runtime rounds the resized length down; ONNX does not.
    place = places[rng.integers(3 if by_scales else 4)]
    drawn: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": place}
    if mode == "nearest":
        roundings = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
        drawn["nearest_mode"] = roundings[rng.integers(4)]
    if mode == "cubic":
        drawn |= {"cubic_coeff_a": -0.5, "exclude_outside": int(rng.integers(2))}
    if by_scales:
        return drawn, [x, None, np.array([1, 1, *rng.choice([0.5, 1, 1.5, 2, 3], 2)], np.float32)]
    return drawn, [x, None, None, np.array([1, 2, *sizes], np.int64)]


def upsamples(rng: Rng) -> Made:
    x = floats(rng, (1, 2, *rng.integers(1, 5, 2)))
    scales = np.array([1, 1, *rng.choice([1, 1.5, 2, 3], 2)], np.float32)
    return {"mode": ("nearest", "linear")[rng.integers(2)]}, [x, scales]


def transposed_windows(rng: Rng) -> Made:
    rank, groups = int(rng.integers(1, 4)), int(rng.choice([1, 2]))
    x = floats(rng, (2, 4, *rng.integers(2, 5, rank)))
    size, strides = rng.integers(1, 4, rank), rng.integers(1, 3, rank)
    drawn: dict[str, Any] = {"strides": strides.tolist(), "group": groups}
    drawn["dilations"] = rng.integers(1, 3, rank).tolist()
    if rng.integers(2):
        drawn["pads"] = rng.integers(0, 2, 2 * rank).tolist()
    else:
        # Kernels shorter than a step leave gaps that padding does not fill: runtimes differ.
        size = np.maximum(size, strides)
        drawn["auto_pad"] = ("SAME_UPPER", "SAME_LOWER", "VALID")[rng.integers(3)]
    if rng.integers(2):
        drawn["output_padding"] = [int(rng.integers(0, step)) for step in strides]
    return drawn, [x, floats(rng, (4, 3, *size)), floats(rng, (3 * groups,))]
