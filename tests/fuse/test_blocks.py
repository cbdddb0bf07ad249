"""Programs in blocks: the same results, in order, and only where blocks are independent."""

from __future__ import annotations

import numpy as np
import pytest

import zerostride as zs
from zerostride.compute import native
from zerostride.fusion.schedule import blocks

pytestmark = pytest.mark.skipif(
    native.backend() == "reference", reason="the reference computes everything at once"
)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 4096)


@zs.fuse
def affine(x, mean, gamma):
    return (x - mean) * gamma + 1


@zs.fuse
def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@zs.fuse
def total(x):
    return (x * x).sum()


@zs.fuse
def two(x, y):
    return {"sum": x + y, "rows": (x * y).sum(-1)}


@zs.fuse
def standardised(x):
    return x - x.mean(0)


def mapped(tmp_path, name, array):
    file = np.memmap(tmp_path / name, array.dtype, "w+", shape=array.shape)
    file[...] = array
    return file


def draw(*shape):
    return np.random.default_rng(3).random(shape, np.float32)


def told(function, *operands, **more):
    """The result, and what progress was called with."""
    seen = []
    return function(*operands, progress=lambda *args: seen.append(args), **more), seen


def test_mapped_files_are_computed_in_blocks(tmp_path):
    x, mean, gamma = draw(500, 30), draw(500, 1), draw(30)
    file = mapped(tmp_path, "x", x)
    out = mapped(tmp_path, "out", np.zeros_like(x))
    result, seen = told(affine, file, mean, gamma, out=out)
    assert result is out
    assert np.array_equal(out, (x - mean) * gamma + 1)
    assert len(seen) > 20
    assert seen == sorted(seen)
    assert seen[-1] == (15000, 15000)


def test_blocks_follow_the_files_axis(tmp_path, monkeypatch):
    x = draw(40, 300)
    file = mapped(tmp_path, "x", x)
    cut = []
    true = blocks.cuts
    monkeypatch.setattr(blocks, "cuts", lambda *args: cut.append(args[1:]) or true(*args))
    assert np.array_equal(affine(file.T, 0, np.float32(2)), (x.T - 0) * 2 + 1)
    assert cut == [(0, 1)]


def test_blocks_have_whole_rows(tmp_path):
    x = draw(400, 50)
    result, seen = told(softmax, mapped(tmp_path, "x", x))
    # Sums may differ in the last bit: a block has other rows beside one.
    np.testing.assert_allclose(result, softmax(x), rtol=4e-7)
    assert len(seen) > 10


def test_several_results_are_computed_in_blocks(tmp_path):
    x, y = draw(400, 50), draw(50)
    result, seen = told(two, mapped(tmp_path, "x", x), y)
    assert np.array_equal(result["sum"], x + y)
    np.testing.assert_allclose(result["rows"], two(x, y)["rows"], rtol=4e-7)
    assert len(seen) > 10


@pytest.mark.parametrize("function", [total, standardised])
def test_whole_array_results_are_computed_at_once(function, tmp_path):
    x = draw(400, 50)
    result, seen = told(function, mapped(tmp_path, "x", x))
    assert np.array_equal(result, function(x))
    assert seen == [(result.size, result.size)]


def test_mapped_file_is_written_in_place(tmp_path):
    x, gamma = draw(500, 30), draw(30)
    file = mapped(tmp_path, "x", x)
    result, seen = told(affine, file, np.float32(1), gamma, out=file)
    assert result is file
    assert len(seen) > 10
    assert np.array_equal(file, (x - 1) * gamma + 1)


def test_output_over_later_operands_is_computed_correctly(tmp_path):
    x = draw(501, 30)
    file = mapped(tmp_path, "x", x)
    result, seen = told(affine, file[:-1], np.float32(1), np.float32(2), out=file[1:])
    assert len(seen) == 1
    assert np.array_equal(result, (x[:-1] - 1) * 2 + 1)
    assert np.array_equal(file[1:], (x[:-1] - 1) * 2 + 1)
    # The same memory a second time, stretched: the first block writes the row that all others read.
    file[...] = np.resize(x, file.shape)
    result, seen = told(affine, file, file[:1], np.float32(2), out=file)
    assert np.array_equal(file, (x - x[:1]) * 2 + 1)


def test_progress_works_without_a_file():
    x = draw(500, 30)
    result, seen = told(affine, x, 0, np.float32(2))
    assert np.array_equal(result, (x - 0) * 2 + 1)
    assert len(seen) > 10


def test_progress_must_be_callable():
    with pytest.raises(TypeError, match="progress is a function, not int"):
        affine(draw(3, 3), 0, 1, progress=3)
