"""`out=`: accepted arrays, and errors, in every kind of call."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

import zerostride as zs
from zerostride.arrays.generic import check_target
from zerostride.compute.outputs import check_places

X = np.arange(6.0).reshape(2, 3)
single = zs.fuse(lambda x: x * x + 1)
both = zs.fuse(lambda x: (x + 1, x * 2))
named = zs.fuse(lambda x: {"a": [x + 1, x * 2]})
#: Calls whose result has X's shape, by what the caller wrote for `out`.
CALLS = {
    "add": ("out", lambda out: zs.add(X, 1, out=out)),
    "add, a tuple of one": ("out", lambda out: zs.add(X, 1, out=(out,))),
    "add by a rule": ("out", lambda out: zs.add(X, np.ones(2), rule="pdpd", axis=0, out=out)),
    "add by an engine": ("out", lambda out: zs.add(X, X, engine="torch", out=out)),
    "squared_difference": ("out", lambda out: zs.squared_difference(X, 1, out=out)),
    "where": ("out", lambda out: zs.where(X > 1, X, 0.0, out=out)),
    "prelu": ("out", lambda out: zs.prelu(X, np.ones(3), out=out)),
    "clip": ("out", lambda out: zs.clip(X, 1, 2, out=out)),
    "exp": ("out", lambda out: zs.exp(X, out=out)),
    "leaky_relu": ("out", lambda out: zs.leaky_relu(X, 0.1, out=out)),
    "cast": ("out", lambda out: zs.cast(X, "float64", out=out)),
    "broadcast": ("out", lambda out: zs.broadcast(np.arange(3.0), (2, 3), out=out)),
    "sum": ("out", lambda out: zs.sum(X[None], axis=0, out=out)),
    "max": ("out", lambda out: zs.max(X[None], axis=0, out=out)),
    "fused": ("out", lambda out: single(X, out=out)),
    "fused, two results": ("out[1]", lambda out: both(X, out=(None, out))),
    "fused, a dict": ("out['a'][1]", lambda out: named(X, out={"a": [None, out]})),
}
calls = pytest.mark.parametrize("call", CALLS)


def over(shape, strides):
    """An array of its own memory with these strides, in elements; all zeros."""
    size = 1 + sum(abs(step) * (n - 1) for step, n in zip(strides, shape, strict=True))
    first = sum(-step * (n - 1) for step, n in zip(strides, shape, strict=True) if step < 0)
    return as_strided(np.zeros(size)[first:], shape, tuple(8 * step for step in strides))


# An `out` that lies on itself


@calls
@pytest.mark.parametrize(
    ("strides", "axis", "apart"),
    [((0, 1), 0, 0), ((3, 0), 1, 0), ((0, 0), 0, 0), ((1, 1), 0, 8), ((-2, 1), 0, 16)],
)
def test_out_with_shared_elements_is_refused(call, strides, axis, apart):
    name, function = CALLS[call]
    out = over((2, 3), strides)
    for _ in range(2):
        with pytest.raises(ValueError, match="lies on itself") as caught:
            function(out)
        message = str(caught.value)
        assert message.startswith(f"{name} lies on itself: its {(2, 3)[axis]} elements along axis ")
        assert f"along axis {axis} are {apart} bytes apart" in message
        assert f"{name}.copy()" in message
        assert not out.any()  # nothing was written
        # The same call as the engine knows it.
        function(np.empty((2, 3)))


@calls
@pytest.mark.parametrize(
    "strides",
    # The third and the fourth lie within each other, and no two elements on one place.
    [(3, 1), (1, 2), (3, 2), (2, 3), (-3, 1), (7, -2), (1, 5)],
)
def test_any_other_layout_is_written(call, strides):
    function = CALLS[call][1]
    out = over((2, 3), strides)
    wanted = np.empty((2, 3))
    function(wanted)
    assert wanted.any()
    function(out)
    np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("shape", [(2, 1), (0, 3), ()])
def test_stride_0_along_one_element_is_accepted(shape):
    x = np.ones(shape)
    out = as_strided(np.zeros(1), shape, (8, 0)[: len(shape)])
    zs.add(x, 1, out=out)
    zs.fuse(lambda x: x + 1)(x, out=out)
    np.testing.assert_array_equal(out, x + 1)


def test_larger_out_is_checked_as_a_whole():
    stretched = over((4, 2, 3), (0, 3, 1))
    for call in ("add", "broadcast", "fused", "fused, two results"):
        with pytest.raises(ValueError, match="along axis 0 are 0 bytes apart"):
            CALLS[call][1](stretched)


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(-12, 12)), min_size=1, max_size=3),
    st.integers(1, 4),
)
def test_overlaps_are_compared_by_bytes(axes, itemsize):
    shape, strides = zip(*axes, strict=True)
    starts = [
        sum(k * step for k, step in zip(place, strides, strict=True))
        for place in itertools.product(*map(range, shape))
    ]
    taken = [start + byte for start in starts for byte in range(itemsize)]
    if len(taken) == len(set(taken)):
        check_places(shape, strides, itemsize)
        return
    with pytest.raises(ValueError, match="lies on itself"):
        check_places(shape, strides, itemsize)


@given(st.lists(st.tuples(st.integers(2, 3), st.integers(-9, 9)), min_size=1, max_size=3))
def test_named_axis_is_one_of_shared_elements(axes):
    shape, strides = zip(*axes, strict=True)
    try:
        check_places(shape, strides, 8)
    except ValueError as error:
        axis = int(str(error).partition("axis ")[2].partition(" ")[0])
    else:
        return
    places = list(itertools.product(*map(range, shape)))
    starts = [sum(k * step for k, step in zip(place, strides, strict=True)) for place in places]
    assert any(
        abs(starts[i] - starts[j]) < 8 and places[i][axis] != places[j][axis]
        for i, j in itertools.combinations(range(len(places)), 2)
    )


# An `out` of another shape


@calls
@pytest.mark.parametrize(
    ("shape", "axis", "here"),
    [((2, 4), 1, "4"), ((3, 3), 0, "3"), ((3,), 0, "none"), ((), 0, "none"), ((5, 2, 1), 1, "1")],
)
def test_wrong_shape_is_refused_with_its_axis(call, shape, axis, here):
    name, function = CALLS[call]
    with pytest.raises(zs.BroadcastError) as caught:
        function(np.empty(shape))
    error = caught.value
    assert error.detail == (
        f"{name} has shape {shape}; the result has (2, 3), which is {(2, 3)[axis]} along axis "
        f"{axis}, where {name} has {here}"
    )
    assert error.axis == axis
    assert error.reason == "extent_mismatch"
    assert error.hint == "give an out of shape (2, 3)"
    assert str(error).splitlines()[0] == f"{name} does not fit the result"


def test_known_operands_are_shown():
    with pytest.raises(zs.BroadcastError) as caught:
        zs.add(X, [1.0, 2.0, 3.0], out=np.empty(3))
    assert str(caught.value).splitlines()[1:3] == ["  x  (2, 3)", "  y  (3,)"]
    with pytest.raises(zs.BroadcastError) as caught:
        zs.broadcast([1.0, 2.0, 3.0], (2, 3), out=np.empty(3))
    assert str(caught.value).splitlines()[1] == "  data  (3,)"


@calls
def test_larger_shape_is_filled(call):
    wanted, out = np.empty((2, 3)), np.zeros((4, 2, 3))
    CALLS[call][1](wanted)
    CALLS[call][1](out)
    np.testing.assert_array_equal(out, np.broadcast_to(wanted, out.shape))


def test_nothing_is_written_if_the_second_out_is_wrong():
    first = np.zeros((2, 3))
    for second in (np.empty((2, 4)), over((2, 3), (0, 1))):
        with pytest.raises(ValueError, match=r"^out\[1\]"):
            both(X, out=(first, second))
    assert not first.any()


class Held:
    """What a library says of an array on a device, whose memory is not read here."""

    def __init__(self, shape, strides):
        self.shape, self.strides = shape, strides


def test_arrays_on_a_device_are_checked_by_their_strides():
    dtype = np.dtype("f4")
    check_target(Held((2, 3), (12, 4)), (2, 3), dtype, None)
    with pytest.raises(ValueError, match="along axis 0 are 0 bytes apart"):
        check_target(Held((2, 3), (0, 4)), (2, 3), dtype, None)
    with pytest.raises(zs.BroadcastError, match="out has shape"):
        check_target(Held((2, 4), (16, 4)), (2, 3), dtype, None)
