"""OpenVINO's FakeQuantize: bounds that broadcast, and the level of each number.

The levels are compared exactly. The numbers that levels stand for are not: their last bit depends
on what OpenVINO fuses the op with.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import zerostride as zs

from .draw import Array
from .engines import _core
from .judge import Result

F = np.float32
LEVELS = (3, 16, 255, 256)


def fake_quantised(x: Array, bounds: list[Array], levels: int) -> Array:
    """The result of one FakeQuantize on the CPU."""
    import openvino
    import openvino.opset13 as ops

    data = ops.parameter(x.shape, np.float32)
    node = ops.fake_quantize(data, *map(ops.constant, bounds), levels)
    compiled = _core().compile_model(openvino.Model([node], [data]), "CPU")
    return np.array(compiled(x)[0])


def level_of(x: Array, low: Array, high: Array, levels: int) -> Array:
    """x * steps + shift in float32, rounded to even, from 0 to levels - 1; NaN gives 0."""
    most = F(levels - 1)
    with np.errstate(all="ignore"):
        steps = most / (high - low)
        places = np.rint(x * steps + -low * steps)
    return np.where(np.isnan(places), F(0), np.clip(places, F(0), most))


def draw(rng: np.random.Generator) -> tuple[Array, list[Array], int]:
    """Numbers, four bounds and the count of levels; bounds are 1 where they repeat."""
    shape = tuple(int(n) for n in rng.integers(1, 6, rng.integers(1, 5)))
    own = tuple(n if rng.random() < 0.4 else 1 for n in shape) if rng.random() < 0.7 else ()
    levels = int(rng.choice(LEVELS))
    low = np.asarray(-rng.choice([0, 1, 2.5, 0.37, 12.8], own), F)
    high = np.asarray(low + rng.choice([1, 2.55, 25.5, 0.3], own), F)
    bounds = [low, high, low, high]
    if rng.random() < 0.5:
        bounds[2] = np.asarray(-rng.choice([0, 1, 128], own), F)
        bounds[3] = np.asarray(bounds[2] + rng.choice([1, 255, 2], own), F)
    step = (high - low) / F(levels - 1)
    whole = rng.integers(-2, levels + 2, shape) + rng.choice([0, 0.5, 0.3], shape)
    x = np.asarray(low + whole * step, F)
    hard = rng.choice([np.nan, np.inf, -np.inf, 3e9, 0], shape)
    return np.where(rng.random(shape) < 0.1, hard, x).astype(F), bounds, levels


def measure_ranges(seed: int, first: int, cases: int) -> Result:
    """Cases number `first` and on of FakeQuantize."""
    result = Result("openvino")
    for number in range(first, first + cases):
        x, bounds, levels = draw(np.random.default_rng([seed, number, 7]))
        low, high, least, most = bounds
        result.kinds["FakeQuantize"] += 1
        # The bounds lie on the data as a scale on a tensor does.
        axis = 0 if x.ndim == 1 else None
        plan = zs.plan_quantization(x.shape, low.shape, axis=axis if low.size > 1 else None)
        assert plan.plan.aligned[1] in (low.shape, (1,) * x.ndim)
        answer = fake_quantised(x, bounds, levels)
        mine: Any = level_of(x, low, high, levels)
        theirs = np.rint((answer - least) / ((most - least) / F(levels - 1)))
        result.take(f"{seed}:{number} FakeQuantize {levels} {x.shape} {low.shape}", mine, theirs)
    return result
