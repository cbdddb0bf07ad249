"""Results in `out=`, overlaps, mapped files, and progress."""

from __future__ import annotations

import numpy as np
import pytest
from fused_samples import RNG, X, Y, same, scaled

import zerostride as zs

# out=


def test_out_receives_the_result():
    out = np.empty_like(X)
    assert scaled(X, Y, out=out) is out
    same(out, X * Y + 1)
    assert scaled(X, Y, out=(out,)) is out
    strided = np.zeros((6, 16), np.float32)[:, ::-2]
    scaled(X, Y, out=strided)
    same(strided, X * Y + 1)
    wide = np.empty(X.shape, np.float64)
    scaled(X, Y, out=wide)
    np.testing.assert_array_equal(wide, X * Y + 1)
    larger = np.empty((3, 6, 8), np.float32)
    assert scaled(X, Y, out=larger) is larger
    np.testing.assert_array_equal(larger, np.broadcast_to(X * Y + 1, (3, 6, 8)))


def test_out_takes_several_results():
    function = zs.fuse(lambda x: (x + 1, x.sum(-1)))
    first, second = np.empty_like(X), np.empty(6, np.float32)
    result = function(X, out=(first, second))
    assert result[0] is first
    assert result[1] is second
    result = function(X, out=(None, second))
    same(result[0], X + 1)
    assert result[1] is second
    names = zs.fuse(lambda x: {"a": x + 1, "b": x + 2})
    result = names(X, out={"b": first})
    assert result["b"] is first
    same(result["a"], X + 1)


@pytest.mark.parametrize(
    ("out", "error", "words"),
    [
        (np.empty((6, 9), "f4"), zs.BroadcastError, r"out has shape \(6, 9\)"),
        (np.empty((6, 1), "f4"), zs.BroadcastError, r"out has shape \(6, 1\)"),
        (np.empty((6, 8), "i4"), TypeError, "float32, which does not become out's int32"),
        ([1], TypeError, "out is an array, not list"),
        ((np.empty((6, 8), "f4"),) * 2, TypeError, "out is an array"),
        (np.broadcast_to(np.float32(0), (6, 8)), ValueError, "read-only"),
    ],
)
def test_wrong_out_is_refused(out, error, words):
    with pytest.raises(error, match=words):
        scaled(X, Y, out=out)


def test_out_of_another_structure_is_refused():
    function = zs.fuse(lambda x: (x, x))
    with pytest.raises(TypeError, match="a tuple of 2; not ndarray"):
        function(X, out=np.empty_like(X))
    with pytest.raises(TypeError, match="a dict of 'a'; not a dict of 1"):
        zs.fuse(lambda x: {"a": x})(X, out={"b": None})


CASES = {
    "itself": lambda s: (s, s),
    "transposed": lambda s: (s, s.T),
    "backwards": lambda s: (s, s[::-1]),
    "shifted": lambda s: (s[:-1, :-1], s[1:, 1:]),
    "row": lambda s: (np.broadcast_to(s[0], s.shape), s),
    "stretched": lambda s: (s[:1], s),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x + 1) * x - x,
        lambda x: x - x.mean(-1, keepdims=True),
        lambda x: x - x.sum(0) + x.max(),
        lambda x: x + x.T if x.shape[0] == x.shape[1] else x * x,
        lambda x: (x * 2 + 1).T if x.shape[0] == x.shape[1] else x * 2,
    ],
)
@pytest.mark.parametrize("size", [5, 200])
def test_out_may_overlap_the_operands(name, function, size):
    square = RNG.integers(0, 100, (size, size)).astype(np.float64)
    fused = zs.fuse(function)
    wanted = fused(CASES[name](square.copy())[0].copy())
    x, out = CASES[name](square)
    assert fused(x, out=out) is out
    np.testing.assert_array_equal(out, np.broadcast_to(wanted, out.shape))


def test_outs_may_overlap_each_other_and_operands():
    swap = zs.fuse(lambda x, y: (y + 0, x + 0))
    a, b = np.arange(1000.0), np.arange(1000.0) * 2
    swap(a, b, out=(a, b))
    same(a, np.arange(1000.0) * 2)
    same(b, np.arange(1000.0))
    both = zs.fuse(lambda x: (x + 1, x + 2))
    c = np.arange(10.0)
    both(c.copy(), out=(c, c))
    same(c, np.arange(10.0) + 2)


def test_memmap_is_read_and_written(tmp_path):
    path = tmp_path / "data"
    source = np.memmap(path, np.float32, "w+", shape=X.shape)
    source[:] = X
    out = np.memmap(tmp_path / "out", np.float32, "w+", shape=X.shape)
    assert scaled(source, Y, out=out) is out
    np.testing.assert_array_equal(np.asarray(out), X * Y + 1)


def test_progress_must_be_callable():
    with pytest.raises(TypeError, match="progress is a function, not int"):
        scaled(X, Y, progress=3)
    same(scaled(X, Y, progress=lambda *_: None), X * Y + 1)
