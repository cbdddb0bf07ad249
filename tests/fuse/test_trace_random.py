"""Random functions of arrays, fused and with NumPy alone: shapes, dtypes and values.

What is drawn are Python functions, not graphs: operators of values with each other and with Python
numbers, ufuncs, reductions and views, with NumPy's promotion.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import zerostride as zs
from sampled import few

PROGRAMS, SEEDS = 250, range(4)
DTYPES = ("float32", "float64", "int32", "int8", "uint8", "int64", "uint16", "bool")
NUMBERS = (0, 1, 2, 3, -1, 0.5, 2.5, -1.5, True, 100)

BINARY: Sequence[Callable[[Any, Any], Any]] = (
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod),
    *(operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne),
    *(operator.and_, operator.or_, operator.xor, np.maximum, np.minimum, np.hypot),
    lambda x, y: y - x,
    lambda x, y: np.where(x > 1, x, y),
    lambda x, y: np.arctan2(abs(x) + 0.5, abs(y) + 0.5),
    lambda x, y: divmod(x, y)[1],
)
UNARY: Sequence[Callable[[Any, int | None], Any]] = (
    lambda x, _: -(x + 0),
    lambda x, _: abs(x),
    lambda x, _: np.sqrt(abs(x + 0)),
    lambda x, _: np.exp(-abs(x + 0.0)),
    lambda x, _: np.tanh(x + 0.0),
    lambda x, _: (x + 0) ** 2,
    lambda x, _: (x + 0) ** 3,
    lambda x, _: ~(x > 0),
    lambda x, _: np.floor(x),
    lambda x, _: np.sign(x + 0),
    lambda x, _: np.clip(x, -1, 2),
    lambda x, _: x.T,
    lambda x, _: x[..., None],
    lambda x, _: x[None],
    lambda x, _: x.astype("float64"),
    lambda x, _: (x > 0).astype("int8"),
    lambda x, axis: x.sum(axis),
    lambda x, axis: x.sum(axis, keepdims=True),
    lambda x, axis: (x + 0.0).mean(axis, keepdims=True),
    lambda x, axis: (x + 0.0).var(axis),
    lambda x, axis: np.max(x, axis),
    lambda x, axis: x.min(axis, keepdims=True),
    lambda x, axis: (x > 1).any(axis),
    lambda x, axis: np.argmax(x, axis),
)


def drawn(rng: np.random.Generator) -> tuple[Callable[..., Any], list[Any]]:
    """A function and its operands, the first of which is a number."""
    steps = [tuple(map(int, rng.integers(1000, size=5))) for _ in range(rng.integers(1, 9))]

    def function(number, *arrays):
        values = list(arrays)
        for which, i, j, kind, axis in steps:
            x = values[i % len(values)]
            y = values[j % len(values)] if j % 3 else (number, *NUMBERS)[j % (len(NUMBERS) + 1)]
            if kind % 2:
                values.append(BINARY[which % len(BINARY)](x, y))
            else:
                along = axis % x.ndim if x.ndim and axis % 4 else None
                values.append(UNARY[which % len(UNARY)](x, along))
        return tuple(values[len(arrays) :])

    sizes = [3, 4, 5][: rng.integers(0, 4)]
    operands: list[Any] = [NUMBERS[rng.integers(len(NUMBERS))]]
    for _ in range(rng.integers(1, 4)):
        shape = [size if rng.random() < 0.75 else 1 for size in sizes]
        values = np.asarray(rng.uniform(0, 5, shape[rng.integers(0, len(shape) + 1) :]))
        dtype = DTYPES[rng.integers(len(DTYPES))]
        signed = dtype in ("float32", "float64", "int32", "int8", "int64")
        operands.append(np.asfortranarray((values - 2 * signed).astype(dtype)))
    return function, operands


def wide(value: Any) -> Any:
    return np.asarray(value).astype(np.float64)


@pytest.mark.parametrize("seed", few(2, SEEDS))
def test_random_functions_match_numpy(seed):
    rng = np.random.default_rng(seed)
    done = 0
    for k in range(PROGRAMS):
        function, operands = drawn(rng)
        try:
            with np.errstate(all="ignore"):
                wanted = function(*operands)
        except (TypeError, ValueError, OverflowError):  # NumPy has no answer
            with pytest.raises((TypeError, ValueError, OverflowError)):
                zs.fuse(function)(*operands)
            continue
        # Halves come of truth values and bytes; their rounding is not NumPy's step by step.
        if any(np.asarray(one).dtype == np.float16 for one in wanted):
            continue
        singles = any(np.asarray(one).dtype == np.float32 for one in (*operands, *wanted))
        fused = zs.fuse(function)
        for result in (fused(*operands), fused(*operands)):  # as traced, and as known
            for one, other in zip(result, wanted, strict=True):
                assert (one.shape, one.dtype) == (np.shape(other), np.asarray(other).dtype), k
                limit = 1e-4 if singles else 1e-9
                np.testing.assert_allclose(
                    wide(one), wide(other), rtol=limit, atol=limit, err_msg=f"program {k}"
                )
        done += 1
    assert done > PROGRAMS / 3


RULES = [("numpy", None), ("pdpd", 0), ("pdpd", 1), ("paddle", -1), ("paddle", 1), ("ncnn", None)]
RULES += [("mnn", None), ("none", None), ("pdpd", None), ("onnx6", 1)]
OPS = ("add", "subtract", "multiply", "maximum", "less", "hypot", "squared_difference", "prelu")


@pytest.mark.parametrize("seed", SEEDS)
def test_random_rules_match_unfused_ops(seed):
    """Functions of zerostride, each under its rule, are those of arrays or are refused as those."""
    rng = np.random.default_rng(seed)
    done = refused = 0
    for _ in range(PROGRAMS):
        shapes = [tuple(map(int, rng.choice([1, 2, 3], size=rng.integers(0, 4)))) for _ in range(3)]
        operands = [rng.integers(-3, 4, shape).astype("float32") for shape in shapes]
        picks = [(OPS[rng.integers(len(OPS))], *RULES[rng.integers(len(RULES))]) for _ in range(2)]

        def function(x, y, z, picks=picks):
            (first, rule, axis), (second, other, place) = picks
            inner = getattr(zs, first)(x, y, rule=rule, axis=axis)
            return getattr(zs, second)(inner, z, rule=other, axis=place)

        try:
            wanted = function(*operands)
        except zs.BroadcastError as error:
            with pytest.raises(zs.BroadcastError) as caught:
                zs.fuse(function)(*operands)
            assert caught.value.place.startswith(f"{__file__}:")
            caught.value.place = ""
            assert str(caught.value) == str(error)  # noqa: PT017 - of the arrays alone
            refused += 1
            continue
        except TypeError:
            with pytest.raises(TypeError):
                zs.fuse(function)(*operands)
            continue
        result = zs.fuse(function)(*operands)
        assert (np.shape(result), result.dtype) == (np.shape(wanted), wanted.dtype)
        np.testing.assert_allclose(wide(result), wide(wanted), rtol=1e-6)
        done += 1
    assert min(done, refused) > PROGRAMS / 10
