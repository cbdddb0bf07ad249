"""Functions that cannot be fused are refused at the user's line."""

from __future__ import annotations

import enum
import operator
import re
from pathlib import Path

import numpy as np
import pytest
from traced import COMPARISONS, X, check, computed

import zerostride as zs
from zerostride.fusion.trace.tracing import trace

# Refusals

#: A function each, what is wrong with it, and what its error proposes.
REFUSED = {
    "if": (lambda x: 1 if x.sum() > 0 else 2, "no truth value", "zs.where"),
    "and": (lambda x: x > 0 and x < 1, "no truth value", "zs.where"),
    "chained": (lambda x: 0 < x < 1, "no truth value", "zs.where"),
    "in": (lambda x: 3 in x, "`in` a value", "zs.any"),
    "float": (lambda x: float(x.sum()), "float\\(\\)", "keyword argument"),
    "int": (lambda x: int(x.sum()), "int\\(\\)", "keyword argument"),
    "complex": (lambda x: complex(x.sum()), "complex\\(\\)", "keyword argument"),
    "index": (lambda x: [1, 2][x.sum()], "as an index", "keyword argument"),
    "range": (lambda x: range(x.sum()), "as an index", "keyword argument"),
    "item": (lambda x: x.item(), "numbers of a value", "keyword argument"),
    "round": (lambda x: round(x), "round\\(\\)", "zs.round"),
    "tens": (lambda x: np.round(x.astype(int), -2), "to tens", "x // 100 * 100"),
    "iteration": (lambda x: [row for row in x], "iteration", "outside"),  # noqa: C416
    "unpacking": (lambda x: (lambda a, b, c: a)(*x), "iteration", "outside"),
    "builtin": (lambda x: sum(x), "iteration", "outside"),
    "assignment": (lambda x: operator.setitem(x, 0, 1), "assignment", "zs.where"),
    "another library's option": (lambda x: x.sum(dim=0), "with dim=", "write axis="),
    "name of an axis": (lambda x: x.sum("rows"), "'rows' is a name", "count the axis"),
    "element": (lambda x: x[0], "one of 3 elements", "zs.where"),
    "slice": (lambda x: x[1:], "a slice of 3", "zs.where"),
    "reversed": (lambda x: x[::-1], "a slice of 3", "zs.where"),
    "mask": (lambda x: x[x > 0], "chosen by values", "zs.where"),
    "places": (lambda x: x[[0, 1]], "chosen by values", "zs.where"),
    "asarray": (lambda x: np.asarray(x), "made a NumPy array", "ufuncs"),
    "matmul": (lambda x: x @ x, "matrix product", "outside"),
    "np.matmul": (lambda x: np.matmul(x, x), "numpy.matmul", "outside"),
    "dot": (lambda x: np.dot(x, x), "numpy.dot", "zs.sum"),
    "norm": (lambda x: np.linalg.norm(x, "nuc"), "norm of matrices", "outside"),
    "norm of an order": (lambda x: np.linalg.norm(x, 3, axis=0), "norm of order 3", "outside"),
    "array_equal": (lambda x: np.array_equal(x, x), "numpy.array_equal", "zs.all"),
    "copyto": (lambda x: np.copyto(x, 1), "numpy.copyto", "zs.where"),
    "cbrt": (lambda x: np.cbrt(x), "numpy.cbrt", "copysign"),
    "polynomial": (lambda x: np.polyval(x.sum(0), x), "coefficients", "by keyword"),
    "cumsum": (lambda x: np.cumsum(x), "numpy.cumsum", "outside"),
    "cumsum method": (lambda x: x.cumsum(), ".cumsum", "astype"),
    "concatenate": (lambda x: np.concatenate([x, x]), "numpy.concatenate", "outside"),
    "stack": (lambda x: np.stack([x, x]), "numpy.stack", "outside"),
    "accumulate": (lambda x: np.add.accumulate(x), "numpy.add.accumulate", "outside"),
    "outer": (lambda x: np.multiply.outer(x, x), "numpy.multiply.outer", "outside"),
    "nonzero": (lambda x: np.where(x), "places", "outside"),
    "reshape": (lambda x: x.reshape(12), "merges or splits", "outside"),
    "ravel": (lambda x: x.ravel(), "merges or splits", "outside"),
    "sum where method": (lambda x: x.sum(where=x > 0), "sum with where=", "zs.where"),
    "max initial": (lambda x: x.max(0, initial=1), "max with initial=", "combine"),
    "std mean": (lambda x: np.std(x, mean=1), "std with mean=", "leave it out"),
    "none": (lambda x: x + None, "and None cannot be", "numbers"),
    "none on the left": (lambda x: None * x, "and None cannot be", "numbers"),
    "power of none": (lambda x: x**None, "and None cannot be", "numbers"),
    "text": (lambda x: x + "text", "and str cannot be", "numbers"),
    "order of none": (lambda x: x < None, "and None cannot be", "numbers"),
    "order of none on the left": (lambda x: None < x, "and None cannot be", "numbers"),  # noqa: SIM300
    "order of text": (lambda x: x < "text", "and str cannot be", "numbers"),
    "order of a range": (lambda x: range(3) > x, "and range cannot be", "numbers"),
    "view": (lambda x: x.view(np.int32), ".view", "astype"),
    "put": (lambda x: x.put([0], 1), ".put", "astype"),
    "flatten": (lambda x: np.reshape(x, -1), "merges or splits", "outside"),
    "ufunc out": (lambda x: np.add(x, 1, out=np.ones((3, 4))), "out=", "the fused call"),
    "ufunc where": (lambda x: np.add(x, 1, where=x > 0), "where=", "zs.where"),
    "ufunc casting": (lambda x: np.add(x, 1, casting="no"), "casting=", "astype"),
    "zs out": (lambda x: zs.add(x, 1, out=np.ones((3, 4))), "out=", "the fused call"),
    "sum out": (lambda x: x.sum(out=np.ones(())), "out=", "the fused call"),
    "sum where": (lambda x: np.sum(x, where=x > 0), "where=", "zs.where"),
    "sum initial": (lambda x: np.sum(x, initial=1), "initial=", "+ initial"),
    "engine": (lambda x: zs.add(x, 1, engine="torch"), "engine's values", "rule"),
    "engine of one": (lambda x: zs.relu(x, engine="torch"), "engine's values", "rule"),
    "engine's clip": (lambda x: zs.clip(x, 0, engine="torch"), "engine's values", "rule"),
    "shape": (lambda x: setattr(x, "shape", (4, 3)), "set in place", "reshape"),
    "dtype": (lambda x: setattr(x * 2, "dtype", np.int32), "set in place", "astype"),
    "string": (lambda x: "text", "not str", "outside"),
    "nothing": (lambda x: None, "not None", "outside"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_untraceable_expression_is_refused_at_its_line(name):
    function, words, fix = REFUSED[name]
    with pytest.raises(zs.TraceError, match=words) as caught:
        trace(function, [X])
    error = caught.value
    assert isinstance(error, TypeError)
    assert isinstance(error, zs.ZerostrideError)
    assert fix in str(error).split("fix: ")[1]
    line = function.__code__.co_firstlineno
    assert f"{Path(__file__).name}:{line} in <lambda>" in error.place
    source = Path(__file__).read_text().splitlines()[line - 1].strip()
    assert source[:160] in str(error)


def test_error_names_the_users_innermost_line():
    def inner(x):
        return x if x.any() else -x  # here

    with pytest.raises(zs.TraceError, match=r"in inner\n.*# here"):
        trace(lambda x: inner(x) + 1, [X])


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (lambda x: x + np.zeros(7), zs.BroadcastError, "4 against 7"),
        (lambda x: zs.add(x, np.zeros(3), rule="none"), zs.BroadcastError, "rank 1"),
        (lambda x: zs.add(x, 1, rule="nope"), zs.BroadcastError, "nope"),
        (lambda x: x & 1, TypeError, "bitwise_and of float32 and int"),
        (lambda x: np.where(x > 0, x, "a"), TypeError, "operand is of <U1"),
        (lambda x: x.astype("i1") + 300, OverflowError, "300 out of bounds for int8"),
        (lambda x: x.astype("i4") ** -1, ValueError, "negative integer powers"),
        (lambda x: x.sum(2), zs.BroadcastError, "axis 2 of an array of 2 axes"),
        (lambda x: x.sum((0, -2)), zs.BroadcastError, "names one twice"),
        (lambda x: x[0:0].max() if False else x.reshape(5, 5), zs.TraceError, "merges"),
        (lambda x: x.T[0, 0, 0], IndexError, "3 indices"),
        (lambda x: x[..., None, ...], IndexError, "ellipsis"),
        (lambda x: x.nonsense, AttributeError, "nonsense"),
        (lambda x: x.astype("S3"), TypeError, "no dtype of numbers"),
        (lambda x: (x > 0).mean(dtype="int8"), TypeError, "a mean is no int8"),
        (lambda x: len(x.sum()), TypeError, "unsized"),
        (lambda x: x + np.ma.masked_array([1.0, 2, 3, 4]), TypeError, "masked"),
        (lambda x: np.mean(x, nonsense=1), TypeError, "nonsense"),
        (lambda x: zs.sum(x, axis="a"), zs.BroadcastError, "a whole number or several"),
        (lambda x: x.astype("nonsense"), TypeError, "nonsense"),
        (lambda x: np.zeros_like(x, shape=(3, 0)).min(1), ValueError, "of no elements"),
        (lambda x: x + 1 // 0, ZeroDivisionError, "by zero"),
        (lambda x: zs.add(x), TypeError, "positional"),
    ],
)
def test_errors_of_the_function_alone_name_its_line(function, error, words):
    with pytest.raises(error, match=words) as caught:
        trace(function, [X])
    line = function.__code__.co_firstlineno
    source = Path(__file__).read_text().splitlines()[line - 1].strip()
    places = re.findall(rf"test_refused\.py:{line} in <lambda>\n +(.*)", str(caught.value))
    assert places == [source]


def test_error_raised_by_the_user_is_unchanged():
    def function(x):
        raise ValueError("of the user")

    with pytest.raises(ValueError, match=r"^of the user$"):
        trace(function, [X])

    def asserting(x):
        try:
            return x.sum(5)
        except zs.BroadcastError as error:
            raise TypeError("two axes") from error

    with pytest.raises(TypeError, match=r"^two axes$"):
        trace(asserting, [X])


def test_other_errors_have_their_line_in_a_note():
    with pytest.raises(KeyError) as caught:
        trace(lambda x: x + {}["gain"], [X])
    assert "in <lambda>" in caught.value.__notes__[0]


def test_masked_array_is_refused_as_operand():
    with pytest.raises(TypeError, match="masked array"):
        trace(lambda x: x + 1, [np.ma.masked_array([1.0])])


def test_values_cannot_be_used_after_their_call():
    kept = []
    trace(lambda x: kept.append(x) or x, [X])
    with pytest.raises(zs.TraceError, match="the call that this value belongs to is over"):
        kept[0] + 1
    with pytest.raises(zs.TraceError, match="the call that this value belongs to is over"):
        trace(lambda x: x + kept[0], [X])
    with pytest.raises(zs.TraceError, match="one fused function is used in another"):
        trace(lambda x: trace(lambda y: x + y, [X]) and x, [X])


# Comparisons with integers that no operand reaches have one answer.


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("number", [-1, 0, 255, 256, 10**30, -(10**30)])
def test_comparisons_beyond_the_range_match_numpy(name, number):
    apply = getattr(operator, name)
    x = np.array([0, 7, 255], np.uint8)
    for function in (lambda x: apply(x, number), lambda x: apply(number, x)):
        assert computed(function, x).tolist() == [bool(apply(int(one), number)) for one in x] or (
            computed(function, x).tolist() == [bool(apply(number, int(one))) for one in x]
        )
    np.testing.assert_array_equal(computed(lambda x: apply(x, number), x), apply(x, number))
    np.testing.assert_array_equal(computed(lambda x: apply(number, x), x), apply(number, x))


def test_unreachable_limit_of_clip_has_no_effect():
    x = np.array([0, 7, 255], np.uint8)
    check(lambda x: zs.clip(x, -5, 300), x)
    check(lambda x: zs.clip(x, 3, 1000), x)


@pytest.mark.parametrize("number", [-1, 300, -200])
def test_where_converts_integers_as_numpy(number):
    x = np.array([0, 7, 255], np.uint8)
    given = zs.fuse(lambda x, n: zs.where(x > 1, n, x))
    try:
        wanted = np.where(x > 1, number, x)
    except OverflowError as error:  # from NumPy 2.5 on, and then everywhere
        refused = pytest.raises(OverflowError, match=f"^{error}")
        for call in (
            lambda: zs.where(x > 1, number, x),
            lambda: computed(lambda x: np.where(x > 1, x, number), x),
            lambda: computed(lambda x: zs.where(x > 1, number, x), x),
            lambda: zs.fuse(lambda x: zs.where(x > 1, number, x))(x),
            lambda: given(x, number),
        ):
            with refused:
                call()
        assert given(x, 3).tolist() == [0, 3, 3]
    else:
        check(lambda x: np.where(x > 1, x, number), x)
        for result in (
            zs.where(x > 1, number, x),
            computed(lambda x: zs.where(x > 1, number, x), x),
            zs.fuse(lambda x: zs.where(x > 1, number, x))(x),
            given(x, number),
        ):
            np.testing.assert_array_equal(result, wanted)


class Kind(enum.IntEnum):
    CAT = 1


def test_enum_members_are_numbers():
    x = np.array([0, 1, 2])
    assert zs.fuse(lambda a: np.where(a == Kind.CAT, 10, 0))(x).tolist() == [0, 10, 0]
    assert zs.fuse(lambda a: a * Kind.CAT + Kind.CAT)(x).tolist() == [1, 2, 3]


@pytest.mark.parametrize("other", [None, "text", range(3), b"x"])
def test_non_number_is_refused_in_comparisons(other):
    with pytest.raises(zs.TraceError, match="cannot be combined or compared"):
        zs.fuse(lambda a: a == other)(np.arange(3))
    with pytest.raises(zs.TraceError, match="cannot be combined or compared"):
        zs.fuse(lambda a: a != other)(np.arange(3))
