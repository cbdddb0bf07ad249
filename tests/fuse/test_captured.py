"""Arrays from outside a fused function, and changes to them between calls."""

import warnings

import numpy as np
import pytest

import zerostride as zs
from zerostride.compute import native


def calls(function, x, count=3):
    """What some calls give: the first traces, the engine may know the others."""
    return [function(x).tolist() for _ in range(count)]


def set_in_place(array, **attributes):
    """Sets an array's shape or dtype; NumPy 2.5 deprecates that, and people do it still."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        for name, value in attributes.items():
            setattr(array, name, value)


def test_captured_array_reshaped_in_place_is_noticed():
    weights = np.arange(6.0)
    fused = zs.fuse(lambda x: x * weights)
    x = np.ones(6)
    assert calls(fused, x) == [[0, 1, 2, 3, 4, 5]] * 3
    set_in_place(weights, shape=(6, 1))
    wanted = (x * weights).tolist()
    assert calls(fused, x) == [wanted] * 3
    set_in_place(weights, shape=(2, 3))
    for _ in range(3):
        with pytest.raises(zs.BroadcastError, match=r"weights\)"):
            fused(x)
    set_in_place(weights, shape=(6,))
    assert calls(fused, x) == [[0, 1, 2, 3, 4, 5]] * 3


def test_captured_array_with_a_new_dtype_is_noticed():
    weights = np.arange(3.0)
    fused = zs.fuse(lambda x: x + weights)
    x = np.zeros(3)
    assert calls(fused, x) == [[0, 1, 2]] * 3
    set_in_place(weights, dtype=np.int64)
    assert calls(fused, x) == [(x + weights).tolist()] * 3


def test_captured_arrays_that_move_are_read_at_their_new_place():
    weights = np.arange(6.0)
    fused = zs.fuse(lambda x: x * weights)
    assert calls(fused, np.ones(1)) == [[0, 1, 2, 3, 4, 5]] * 3
    weights.resize(3, refcheck=False)
    assert calls(fused, np.ones(1)) == [[0, 1, 2]] * 3


def test_captured_arrays_that_stay_are_traced_once():
    weights, traced = np.arange(3.0), []
    fused = zs.fuse(lambda x: traced.append(x) or x * weights)
    calls(fused, np.ones(3))
    weights[:] = 7
    assert calls(fused, np.ones(3)) == [[7, 7, 7]] * 3
    assert len(traced) == 1


def test_pullback_of_a_reshaped_array_is_refused_or_right():
    weights = np.arange(3.0)
    _, pull = zs.vjp(lambda x: x * weights, np.ones(3))
    set_in_place(weights, shape=(3, 1))
    if native.backend() == "native":
        with pytest.raises(ValueError, match=r"operand 1 is float64 \(3, 1\)"):
            pull(np.ones(3))


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_matrices_are_refused():
    matrix = np.matrix([[1, 2], [3, 4]])
    for call in (
        lambda: zs.fuse(lambda x: x * x)(matrix),
        lambda: zs.fuse(lambda x: x * matrix)(1.0),
    ):
        with pytest.raises(TypeError, match=r"numpy\.matrix, whose \* is a matrix product"):
            call()


def test_masked_arrays_cannot_receive_results():
    for call in (zs.fuse(lambda x: x * x), lambda x, out: zs.multiply(x, x, out=out)):
        with pytest.raises(TypeError, match="out is a masked array"):
            call(np.ones(2), out=np.ma.masked_array(np.ones(2), [True, False]))


def test_captured_lists_are_read_in_each_call():
    weights = [1.0, 2.0, 3.0]
    fused = zs.fuse(lambda x: x * weights)
    assert calls(fused, np.ones(3)) == [[1, 2, 3]] * 3
    weights[0] = 7
    assert calls(fused, np.ones(3)) == [[7, 2, 3]] * 3
    weights.append(4.0)
    with pytest.raises(zs.BroadcastError, match=r"4(.|\n)*x \* weights"):
        fused(np.ones(3))
    assert calls(fused, np.ones(1)) == [[7, 2, 3, 4]] * 3
    weights[:] = [1.0, [2.0]]
    with pytest.raises(zs.BroadcastError, match=r"weights \(list\) is taken .* is no array"):
        fused(np.ones(1))


def test_arrays_in_a_list_are_read_in_each_call():
    first, second = np.array(1.0), np.array(2.0)
    fused = zs.fuse(lambda x: x * [first, second])
    assert calls(fused, np.ones(2)) == [[1, 2]] * 3
    first[...] = 5
    assert calls(fused, np.ones(2)) == [[5, 2]] * 3


def test_lists_made_by_the_function_go_to_the_engine():
    kept = zs.fuse(lambda x: x * [1, 2, 3] + (4, 5, 6))
    assert calls(kept, np.ones(3)) == [[5, 7, 9]] * 3
    assert all(type(one.given) is np.ndarray for one in kept.latest.sources)


def test_polynomial_coefficients_are_read_in_each_call():
    numbers = np.array([1.0, 2.0, 3.0])
    fused = zs.fuse(lambda x: np.polyval(numbers, x))
    x = np.array([0.0, 1.0, 2.0])
    assert calls(fused, x) == [np.polyval(numbers, x).tolist()] * 3
    numbers[:] = [3, 1, 4]
    assert calls(fused, x) == [np.polyval(numbers, x).tolist()] * 3
    assert zs.fuse(lambda x: np.polyval([1, 2], x))(x).tolist() == [2, 3, 4]


def test_captured_masked_arrays_are_refused_by_name():
    partial = np.ma.masked_array(np.ones(2), [True, False])
    for function in (lambda x: x * partial, lambda x: zs.multiply(x, partial)):
        with pytest.raises(zs.TraceError, match=r"partial \(MaskedArray of numpy\).*its mask"):
            zs.fuse(function)(np.ones(2))


class Made:
    """An array that is made whenever somebody asks for it."""

    def __array__(self, dtype=None, copy=None):
        if copy is False:
            raise ValueError("it is made")
        return np.ones(2)


class Held:
    """An array that an object holds."""

    def __init__(self):
        self.numbers = np.ones(2)

    def __array__(self, dtype=None, copy=None):
        return self.numbers


def test_array_like_objects_are_captured():
    array_like, held = Made(), Held()
    for function in (
        lambda x: x * array_like,
        lambda x: array_like * x,
        lambda x: np.add(x, array_like),
    ):
        with pytest.raises(zs.TraceError, match=r"array_like \(Made of .*no array in memory"):
            zs.fuse(function)(np.ones(2))
    fused = zs.fuse(lambda x: x * held)
    assert calls(fused, np.ones(2)) == [[1, 1]] * 3
    held.numbers = np.array([3.0, 4.0])
    assert calls(fused, np.ones(2)) == [[3, 4]] * 3


class Metres(np.ndarray):
    """An array whose arithmetic knows its unit."""

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        return NotImplemented


class Rows(np.ndarray):
    """An array of another name, with NumPy's arithmetic."""


def test_arrays_with_their_own_arithmetic_are_refused():
    x, length = np.ones(2), np.ones(2).view(Metres)
    message = "is a Metres, whose arithmetic is its own"
    for call in (
        lambda: zs.add(length, length),
        lambda: zs.add(x, length),
        lambda: zs.exp(length),
        lambda: zs.sum(length),
        lambda: zs.fuse(lambda x: x * 2)(length),
        lambda: zs.fuse(lambda x: x * 2)(x, out=length),
        lambda: zs.add(x, x, out=length),
    ):
        with pytest.raises(TypeError, match=message):
            call()
    for function in (lambda x: x * length, lambda x: length * x, lambda x: zs.add(x, length)):
        with pytest.raises(zs.TraceError, match=r"length \(Metres of .*its arithmetic"):
            zs.fuse(function)(x)
    rows = np.ones(2).view(Rows)
    assert zs.add(rows, rows).tolist() == zs.fuse(lambda x: x + rows)(rows).tolist() == [2, 2]
    assert zs.add(length.view(np.ndarray), np.asarray(length)).tolist() == [2, 2]


def test_times_are_refused_as_operands():
    second = np.timedelta64(1, "s")
    for call in (zs.fuse(lambda x: x * second), lambda x: zs.fuse(lambda x, y: x * y)(x, second)):
        with pytest.raises(TypeError, match=r"of timedelta64\[s\]"):
            call(np.ones(2))
