"""`zs.grad` and `zs.value_and_grad`: gradients of functions whose result is one number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import zerostride as zs

W = np.array([[1.0, -2.0], [0.5, 3.0]], np.float32)
X = np.array([2.0, 4.0], np.float32)


def loss(w: Any, x: Any, *, power: int = 2) -> Any:
    return zs.sum((w * x) ** power)


def test_gradient_of_one_operand() -> None:
    value, gradient = zs.value_and_grad(loss)(W, X)
    assert value == loss(W, X)
    np.testing.assert_array_equal(gradient, 2 * W * X * X)
    assert gradient.dtype == np.float32
    np.testing.assert_array_equal(zs.grad(loss)(W, X), gradient)


def test_gradients_of_several_operands() -> None:
    gradients = zs.grad(loss, argnums=(1, 0))(W, X)
    assert isinstance(gradients, tuple)
    np.testing.assert_array_equal(gradients[0], (2 * W * X * W).sum(0))
    np.testing.assert_array_equal(gradients[1], 2 * W * X * X)
    np.testing.assert_array_equal(zs.grad(loss, argnums=-1)(W, X), gradients[0])
    places = zs.grad(loss, argnums=(k for k in (1, 0)))
    for gradient, again in zip(gradients, places(W, X), strict=True):
        np.testing.assert_array_equal(again, gradient)
    assert len(places(W, X)) == 2  # a second call, after the generator has ended


def test_settings_and_fused_functions() -> None:
    np.testing.assert_allclose(zs.grad(zs.fuse(loss))(W, X, power=3), 3 * (W * X) ** 2 * X)


def test_gradient_beside_none() -> None:
    def masked(w: Any, mask: Any, x: Any) -> Any:
        return zs.sum(w * x if mask is None else w * x * mask)

    np.testing.assert_array_equal(zs.grad(masked, argnums=2)(W, None, X), W.sum(0))
    np.testing.assert_array_equal(zs.grad(masked)(W, W, X), X * W)


def test_a_function_keeps_its_name() -> None:
    assert zs.grad(loss).__name__ == zs.value_and_grad(loss).__name__ == "loss"


@pytest.mark.parametrize(
    ("function", "operands", "argnums", "error", "words"),
    [
        (lambda x: x * 2, (X,), 0, TypeError, "the result is an array of shape (2,); reduce it"),
        (lambda x: (zs.sum(x), 1.0), (X,), 0, TypeError, "the result is a tuple; reduce it"),
        (lambda x: zs.sum(x), (X,), 1, ValueError, "argnums 1: the call has 1 operands by place"),
        (lambda x: x * x, (3,), 0, TypeError, "the result is of int64; pass floats"),
        (zs.grad(lambda x: x * x), (3.0,), 0, zs.TraceError, "in a fused function, or of a gradi"),
        (lambda x, k: zs.sum(x * k), (X, np.arange(2)), 1, TypeError, "operand 1 has no gradient"),
        (lambda x, k: zs.sum(x * k), (X, True), -1, TypeError, "operand 1 has no gradient"),
    ],
    ids=["array", "tuple", "missing", "of_int", "of_gradient", "integers", "truth"],
)
def test_what_has_no_gradient(
    function: Any, operands: Any, argnums: int, error: type[Exception], words: str
) -> None:
    with pytest.raises(error) as caught:
        zs.grad(function, argnums)(*operands)
    assert words in str(caught.value)


@pytest.mark.parametrize("argnums", [True, (0, False), None, 1.0, "0"])
def test_places_are_integers(argnums: Any) -> None:
    with pytest.raises(TypeError, match="argnums are the places of operands, as integers"):
        zs.grad(loss, argnums)
    assert isinstance(zs.grad(loss, np.int64(1))(W, X), np.ndarray)  # type: ignore[arg-type]


def test_what_is_no_function_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match="a gradient is of a function, not of int"):
        zs.grad(3)  # type: ignore[arg-type]


# None as an operand.


def scaled(x: Any, scale: Any = None, shift: Any = None) -> Any:
    y = x if scale is None else x * scale
    return y if shift is None else y + shift


def test_none_is_a_setting() -> None:
    fused = zs.fuse(scaled)
    for scale in (None, X):
        for shift in (None, W):
            np.testing.assert_array_equal(fused(W, scale, shift), scaled(W, scale, shift))
    out = np.empty_like(W)
    assert fused(W, None, W, out=out) is out
    np.testing.assert_array_equal(out, 2 * W)
    assert "add" in str(fused.explain(W, None, W))
    assert len(fused.graph(W, None, W).nodes) == 3


def test_none_that_the_function_cannot_take_shows_its_line() -> None:
    with pytest.raises(TypeError, match=r"x \+ y"):
        zs.fuse(lambda x, y: x + y)(X, None)


# Numbers that are others in each call.


COUNT = [10]


def counted(x: Any) -> Any:
    COUNT[0] += 1
    return x * COUNT[0]


RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + np.random.rand(2),
        lambda x: x + RNG.random(2),
        lambda x: x * RNG.random(),
        lambda x: x * float(RNG.random()),
        lambda x: (x, RNG.random()),
        counted,
    ],
    ids=["global", "generator", "number", "float", "result", "count"],
)
def test_numbers_that_change_are_refused(function: Any) -> None:
    with pytest.raises(zs.TraceError) as caught:
        zs.fuse(function)(X)
    assert "other numbers here each time" in str(caught.value)
    assert "make them an operand" in str(caught.value)
    assert __file__ in str(caught.value)


def test_numbers_that_stay_are_taken() -> None:
    table = np.array([1.0, float("nan")], np.float32)
    gain = 0.1

    def steady(x: Any) -> Any:
        seeded = np.random.default_rng(0).random(2).astype(np.float32)
        return x * gain + table + seeded + x.shape[0] + np.float32("nan") + [1.0, 2.0] + zs.gelu(x)

    np.testing.assert_allclose(zs.fuse(steady)(X), steady(X), rtol=1e-6)


def test_objects_that_stay_are_taken() -> None:
    fused = zs.fuse(lambda x: x * np.array([1.0, 2.0]).astype(object))
    np.testing.assert_array_equal(fused(X), X * [1, 2])


def test_a_first_call_may_prepare_what_later_ones_use() -> None:
    kept: dict[str, float] = {}

    def prepared(x: Any) -> Any:
        if not kept:
            kept["gain"] = float(np.sqrt(2.0))
            assert (x * (kept["gain"] + 1)).shape == x.shape
        return x * kept["gain"]

    np.testing.assert_array_equal(zs.fuse(prepared)(X), X * kept["gain"])


def test_a_function_of_literals_and_outer_arrays_is_called_once() -> None:
    calls = []

    def plain(x: Any) -> Any:
        calls.append(1)
        return (x * 2 + 0.5) * W + (-1)

    zs.fuse(plain)(X)
    assert len(calls) == 1
