"""The array API standard's facts, for NumPy's arrays and for a strict library's."""

import itertools

import numpy as np
import pytest
from libraries_light import MAKERS, values_of
from standard_facts import (
    BINARY,
    EXCLUDED,
    FUNCTIONS,
    NUMPYS,
    OTHER,
    PROMOTION,
    REAL,
    SAMPLES,
    SHAPES,
    SPECIAL_OF_ONE,
    SPECIAL_OF_TWO,
    UNARY,
    shape_of_pair,
)

import zerostride as zs
from zerostride.ops import OPS

makers = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def agree(result, expected):
    """Raises unless values are equal: NaN with NaN, zeros of one sign, angles nearly."""
    values = values_of(result)
    wanted = np.broadcast_to(np.asarray(expected, values.dtype), values.shape)
    same = (values == wanted) & (np.signbit(values) == np.signbit(wanted))
    near = np.isfinite(wanted) & (wanted != 0)
    close = np.isclose(values, wanted, rtol=1e-6, atol=0) & near
    wrong = ~(same | close | ((values != values) & (wanted != wanted)))
    assert not wrong.any(), f"{values[wrong][0]!r}, expected {wanted[wrong][0]!r}"


@pytest.mark.parametrize(
    ("given", "expected"), [(0.0, -0.0), (np.nan, 1.0), (1.0, 1.1), (np.inf, -np.inf)]
)
def test_comparison_fails_on_a_wrong_result(given, expected):
    with pytest.raises(AssertionError):
        agree(np.array([given]), expected)


# Broadcasting


@makers
@pytest.mark.parametrize(("shapes", "expected"), SHAPES, ids=str)
def test_shapes_broadcast_as_the_standard_says(make, shapes, expected):
    arrays = [make(np.zeros(shape, "float32")) for shape in shapes]
    if expected is None:
        with pytest.raises(zs.BroadcastError):
            zs.add(*arrays)
    else:
        assert tuple(zs.add(*arrays).shape) == expected == zs.plan(*shapes).shape


def test_every_pair_of_small_shapes_follows_the_algorithm():
    shapes = [s for rank in range(4) for s in itertools.product((0, 1, 2, 3), repeat=rank)]
    for first, second in itertools.product(shapes, repeat=2):
        expected = shape_of_pair(first, second)
        try:
            plan = zs.plan(first, second).shape
        except zs.BroadcastError:
            plan = None
        assert plan == expected, (first, second)


# Names


def test_every_function_is_tested_or_excluded_with_a_reason():
    assert {name for name in FUNCTIONS if name not in OPS} == {*EXCLUDED} & FUNCTIONS
    assert all(EXCLUDED.values())
    assert all(hasattr(zs, name) for name in FUNCTIONS - {*EXCLUDED})
    assert {*OTHER} <= {*OPS}


# Promotion


def _samples(dtype):
    return np.array([1, 0, 1] if dtype == "bool" else [1, 2, 3], dtype)


@makers
@pytest.mark.parametrize("name", BINARY)
def test_two_arrays_promote(make, name):
    takes, gives = BINARY[name]
    for a, b in itertools.product(takes, repeat=2):
        if (a, b) not in PROMOTION:
            continue
        result = getattr(zs, name)(make(_samples(a)), make(_samples(b)))
        expected = PROMOTION[a, b] if gives == "same" else gives
        assert values_of(result).dtype.name == expected, (name, a, b)


@makers
@pytest.mark.parametrize("name", UNARY)
def test_one_array_keeps_its_dtype(make, name):
    takes, gives = UNARY[name]
    for dtype in takes:
        result = getattr(zs, name)(make(_samples(dtype)))
        assert values_of(result).dtype.name == (dtype if gives == "same" else gives), (name, dtype)


@makers
@pytest.mark.parametrize(
    ("dtype", "number"), [("int8", 2), ("uint8", 2), ("float32", 2), ("float32", 2.5)]
)
def test_a_python_number_takes_the_arrays_dtype(make, dtype, number):
    array = make(_samples(dtype))
    for result in (zs.multiply(array, number), zs.multiply(number, array)):
        assert values_of(result).dtype.name == dtype


@makers
def test_rank_0_arrays_promote_as_others(make):
    result = zs.add(make(np.float64(1.0)), make(_samples("float32")))
    assert values_of(result).dtype.name == "float64"


@makers
def test_where_promotes_its_choices(make):
    condition, x, y = make(_samples("bool")), make(_samples("int8")), make(_samples("int16"))
    result = zs.where(condition, x, y)
    assert values_of(result).dtype.name == "int16"
    agree(zs.cast(result, "float32"), [1.0, 2.0, 3.0])


# Special cases


@makers
@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("name", SPECIAL_OF_ONE)
def test_special_cases_of_unary_functions(make, dtype, name):
    for kind, expected in SPECIAL_OF_ONE[name]:
        agree(getattr(zs, name)(make(np.array(SAMPLES[kind], dtype))), expected)


@makers
@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("name", SPECIAL_OF_TWO)
def test_special_cases_of_binary_functions(make, dtype, name):
    for first, second, expected in SPECIAL_OF_TWO[name]:
        pairs = list(itertools.product(SAMPLES[first], SAMPLES[second]))
        x, y = (np.array(values, dtype) for values in zip(*pairs, strict=True))
        wanted = (
            {"first": x, "second": y}.get(expected, expected)
            if isinstance(expected, str)
            else expected
        )
        result = getattr(zs, name)(make(x), make(y))
        if (name, first, second) in NUMPYS:
            with np.errstate(all="ignore"):
                wanted = getattr(np, OPS[name].numpy)(x, y)
        agree(result, wanted)


def test_rows_of_numpys_behaviour_differ_from_the_standard():
    """Else the exclusion is not needed any more."""
    rows = {(name, a, b): want for name in SPECIAL_OF_TWO for a, b, want in SPECIAL_OF_TWO[name]}
    for (name, first, second), reason in NUMPYS.items():
        x, y = np.array([SAMPLES[first][0]]), np.array([SAMPLES[second][0]])
        with pytest.raises(AssertionError):
            agree(getattr(zs, name)(x, y), rows[name, first, second])
        assert reason


@makers
@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("round", [0.5, 1.5, 2.5, -0.5], [0.0, 2.0, 2.0, -0.0]),
        ("trunc", [-1.5, 1.5], [-1.0, 1.0]),
        ("floor", [-1.5, 1.5], [-2.0, 1.0]),
        ("ceil", [-1.5, 1.5], [-1.0, 2.0]),
    ],
)
def test_rounding_follows_the_standard(make, name, given, expected):
    agree(getattr(zs, name)(make(np.array(given))), expected)


@makers
def test_clip_passes_nan_on(make):
    agree(zs.clip(make(np.array([np.nan, 5.0, -5.0])), 0.0, 1.0), [np.nan, 1.0, 0.0])
