"""Operands of small floats (bfloat16, float8) beside every other dtype and Python's numbers.

The oracle is NumPy on the same operands: of each op NumPy's function, or the one it is made of.
"""

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zerostride as zs
from zerostride import plan
from zerostride.compute import reference

ml_dtypes = pytest.importorskip("ml_dtypes", reason="the small floats are its")

SMALL = [
    np.dtype(getattr(ml_dtypes, name)) for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2")
]
OWN = [np.dtype(code) for code in "?bBhHiIqQefd"]
BFLOAT16 = SMALL[0]


def _prelu(x, slope):
    return np.where(np.less(x, 0), np.multiply(x, slope), x)


def _squared_difference(x, y):
    return np.square(np.subtract(x, y))


#: Op to its number of operands and its oracle.
OPS = {
    "clip": (3, np.clip),
    "where": (3, np.where),
    "prelu": (2, _prelu),
    "squared_difference": (2, _squared_difference),
    "add": (2, np.add),
    "multiply": (2, np.multiply),
    "maximum": (2, np.maximum),
    "less": (2, np.less),
}


def arrays():
    """Arrays of numbers that every dtype holds."""
    return st.builds(
        lambda dtype, values: np.array(values).astype(dtype),
        st.sampled_from([*SMALL, *SMALL, *OWN]),
        st.lists(st.integers(0, 3), min_size=2, max_size=2),
    )


def numbers():
    return st.integers(-3, 3) | st.sampled_from([0.5, -1.5, 2.0]) | st.booleans()


def expected(name, values):
    """What NumPy makes of the operands, or TypeError."""
    try:
        with np.errstate(all="ignore"):
            result = np.asarray(OPS[name][1](*values))
    except TypeError:
        return TypeError
    dtypes = [value.dtype for value in values if isinstance(value, np.ndarray)]
    small = any(dtype in SMALL for dtype in dtypes)
    if name == "clip" and small and float not in map(type, values):
        # numpy.clip has no loop of these and answers in a wider dtype; ours keeps the common one.
        with contextlib.suppress(TypeError):
            return result.astype(np.result_type(*dtypes))
    return result


def computed(function):
    try:
        return np.asarray(function())
    except TypeError:
        return TypeError


def assert_same(result, wanted, what):
    if wanted is TypeError or result is TypeError:
        assert result is wanted, what
        return
    assert result.dtype == wanted.dtype, what
    assert np.array_equal(result.astype(float), wanted.astype(float)), what


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(sorted(OPS)), st.data())
def test_dtypes_and_values_match_numpy(name, data):
    # numpy.clip alone takes a Python number as its first operand for an array, of int64 or float64.
    first = data.draw(arrays() if name == "clip" else arrays() | numbers())
    values = [first, *(data.draw(arrays() | numbers()) for _ in range(OPS[name][0] - 1))]
    if name == "where":
        values[0] = np.array([True, False])
    if not any(isinstance(value, np.ndarray) and value.dtype in SMALL for value in values):
        values[-1] = np.array([1, 2], BFLOAT16)
    what = (name, [getattr(value, "dtype", value) for value in values])
    wanted = expected(name, values)
    shapes = plan(*map(np.shape, values))
    assert_same(computed(lambda: getattr(zs, name)(*values)), wanted, what)
    assert_same(computed(lambda: reference.compute(name, shapes, values)), wanted, what)
    fused = zs.fuse(lambda *given: getattr(zs, name)(*given))
    assert_same(computed(lambda: fused(*values)), wanted, what)
