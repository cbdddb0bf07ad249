"""Calls that the engine knows, nested fused functions, and calls from many threads."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from fused_samples import RNG, X, Y, same, scaled, softmax

import zerostride as zs
from zerostride.fusion.function import Fused, Settled
from zerostride.fusion.trace.graph import Apply

# Calls that never enter Python


@pytest.mark.skipif(zs.backend() == "reference", reason="that is the engine's")
def test_known_calls_never_enter_python(monkeypatch):
    weights = np.ones(8, np.float32)
    one, two = zs.fuse(lambda x, n: x * weights + n), zs.fuse(lambda x: (x + 1, x.max()))
    one(X, 1.5)
    two(X)
    gains = [scaled(X, Y, gain=gain) for gain in (1, 1.0, 2)]
    enter = Fused._call
    monkeypatch.setattr(Fused, "_call", lambda *_, **__: pytest.fail("Python was entered"))
    monkeypatch.setattr(Settled, "_call", lambda *_, **__: pytest.fail("Python was entered"))
    for k, gain in enumerate((1, 1.0, 2)):
        same(enter(scaled, X, Y, gain=gain), gains[k])
        assert enter(scaled, X, Y, gain=gain, out=gains[k]) is gains[k]
    weights[:] = 3
    same(one(X, 2.5), X * weights + np.float32(2.5))
    out = np.empty_like(X)
    assert one(X, 4.0, out=out) is out
    same(out, X * weights + 4)
    result = two(X)
    assert type(result) is tuple
    same(result[0], X + 1)


@pytest.mark.parametrize(
    "call",
    [
        lambda f: f(X.astype("f8"), 2.0),
        lambda f: f(X[:3], 2.0),
        lambda f: f(X.astype(">f4"), 2.0),
        lambda f: f(X.tolist(), 2.0),
        lambda f: f(X, np.float64(2)),
        lambda f: f(X, 2),
        lambda f: f(X, True),
        lambda f: f(X, n=2.0),
        lambda f: f(X, 2.0, out=(np.empty_like(X),)),
        lambda f: f(X, 2.0, out=np.empty(X.shape)),
    ],
)
def test_other_calls_of_a_known_function_are_right(call):
    fused = zs.fuse(lambda x, n: x * n + 1)
    fused(X, 2.0)
    fused(X, 2.0)
    again = zs.fuse(fused.__wrapped__)
    same(call(fused), call(again))


# Fused functions within others, and threads


def test_fused_function_inside_another_is_inlined():
    outer = zs.fuse(lambda x: softmax(x * 2) + scaled(x, y=x, gain=2.0))
    graph = outer.graph(X)
    assert sum(isinstance(node, Apply) for node in graph.nodes) > 5
    np.testing.assert_allclose(outer(X), softmax(X * 2) + scaled(X, X, gain=2.0), rtol=1e-6)
    wide = zs.fuse(lambda x: x / 3, dtype="float64")
    assert zs.fuse(lambda x: wide(x))(X).dtype == np.float64
    narrow = zs.fuse(lambda x: x * np.arange(8.0) * np.float64(3), dtype="float32")
    assert narrow(X).dtype == np.float32
    both = zs.fuse(lambda x: (narrow(x), x * np.float64(3)))(X)
    assert [one.dtype.name for one in both] == ["float32", "float64"]
    with pytest.raises(zs.TraceError, match="out= in a fused function"):
        zs.fuse(lambda x: scaled(x, x, out=np.ones(3)))(X)


def test_fused_call_on_arrays_alone_is_a_captured_array():
    function = zs.fuse(lambda x: x + softmax(Y))
    np.testing.assert_allclose(function(X), X + softmax(Y))
    assert function.graph(X).inputs == 2


def test_error_leaves_the_function_usable():
    function = zs.fuse(lambda x, y: x + y)
    for _ in range(2):
        with pytest.raises(zs.BroadcastError):
            function(X, np.ones(3))
    same(function(X, Y), X + Y)


def test_calls_from_many_threads_are_right():
    function = zs.fuse(lambda x, n: (np.exp(x - x.max(-1, keepdims=True)) * n).sum(-1))
    sizes = [3, 17, 64]
    operands = {size: RNG.standard_normal((50, size)) for size in sizes}
    wanted = {size: zs.fuse(function.__wrapped__)(x, 2.0) for size, x in operands.items()}
    failures = []

    def work(seed):
        rng = np.random.default_rng(seed)
        try:
            for _ in range(60):
                size = int(rng.choice(sizes))
                same(function(operands[size], 2.0), wanted[size])
        except BaseException as error:  # noqa: BLE001 - seen by the test
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(function._compiled) == len(sizes)
