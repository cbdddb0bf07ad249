"""Python's integers and bools among the operands: they follow Python exactly."""

import itertools
import operator

import numpy as np
import pytest

import zerostride as zs
from zerostride.fusion.trace.integers import PYTHON, integers_of
from zerostride.fusion.trace.tracing import trace

BINARY = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.and_,
    operator.or_,
    operator.xor,
    operator.lshift,
    operator.rshift,
    operator.pow,
    operator.lt,
    operator.eq,
]
NUMBERS = [0, 1, -3, 7, 62, 2**53 + 1, 2**62, -(2**63), 2**63 - 1, 2**64, True, False]


def outcome(function, *operands):
    """What a function gives, or the error that it raises."""
    with np.errstate(all="ignore"):
        try:
            return np.asarray(function(*operands))
        except (ArithmeticError, ValueError) as error:
            return type(error)


def same(result, wanted):
    if isinstance(wanted, type):
        assert result is wanted
    else:
        assert isinstance(result, np.ndarray), (result, wanted)
        assert result.dtype == wanted.dtype
        np.testing.assert_array_equal(result, wanted)


def test_comparison_fails_on_other_values():
    for result, wanted in (
        (np.ones(1), np.zeros(1)),
        (np.ones(1), ValueError),
        (ValueError, TypeError),
    ):
        with pytest.raises(AssertionError):
            same(result, wanted)


def is_hopeless(apply, a, b):
    """Numbers of billions of digits."""
    return apply in (operator.lshift, operator.pow) and b > 100


@pytest.mark.parametrize("apply", BINARY)
@pytest.mark.parametrize("dtype", ["float64", "int8", "float32", "uint64"])
def test_operators_of_two_integers_match_python(apply, dtype):
    x = np.array([1, 2], dtype)
    fused = zs.fuse(lambda x, a, b: x * apply(a, b))
    for a, b in itertools.product(NUMBERS, repeat=2):
        if not is_hopeless(apply, a, b):
            same(outcome(fused, x, a, b), outcome(lambda a, b: x * apply(a, b), a, b))


@pytest.mark.parametrize("apply", [operator.neg, operator.pos, operator.abs, operator.invert])
def test_operators_of_one_integer_match_python(apply):
    x = np.array([1, 2], np.int16)
    fused = zs.fuse(lambda x, a: x + apply(a) % 1000)
    for a in NUMBERS:
        if not (apply is operator.invert and type(a) is bool):  # which Python warns of
            same(outcome(fused, x, a), outcome(lambda a: x + apply(a) % 1000, a))


def test_integer_result_beyond_a_dtype_is_refused():
    fused = zs.fuse(lambda x, k: x + (k + 100))
    x = np.ones(2, np.int8)
    assert fused(x, 20).tolist() == [121, 121]
    with pytest.raises(OverflowError, match=r"200 out of bounds for int8\n.*\n +fused = zs\.fuse"):
        fused(x, 100)
    assert fused(x, 26).tolist() == [127, 127]


def test_division_by_zero_is_pythons_error_at_its_line():
    fused = zs.fuse(lambda x, k: x * (1 // k))
    assert fused(np.ones(1), 1).tolist() == [1]
    with pytest.raises(ZeroDivisionError, match=r"test_integers\.py:\d+ in <lambda>"):
        fused(np.ones(1), 0)


def test_numpy_and_zerostride_functions_compute_in_64_bits():
    for function in (np.multiply, zs.multiply):
        fused = zs.fuse(lambda x, k, f=function: x * f(k, k))
        assert fused(np.ones(1), 2**40).tolist() == [0]
        assert fused(np.ones(1), 3).tolist() == [9]


def test_one_trace_serves_all_64_bit_numbers():
    traced = []

    @zs.fuse
    def function(x, k):
        traced.append(k)
        return x * (k * k - 1)

    for k in range(50):
        assert function(np.ones(1), k).tolist() == [k * k - 1]
    assert len(traced) == 1
    for _ in range(3):
        assert function(np.ones(1), 2**40).tolist() == [float(2**80 - 1)]
    assert len(traced) == 2


def test_bools_are_integers_among_numbers_and_bools_among_arrays():
    x = np.ones(2, np.float32)
    fused = zs.fuse(lambda x, flag: x * (flag + flag))
    assert fused(x, True).tolist() == [2, 2]
    assert fused(x, False).tolist() == [0, 0]
    kept = zs.fuse(
        lambda x, flag: (x * (flag * 3), x * flag, zs.where(flag, x, -x), (x > 0) & flag)
    )
    for flag in (True, False):
        wanted = (x * (flag * 3), x * flag, np.where(flag, x, -x), (x > 0) & flag)
        for result, one in zip(kept(x, flag), wanted, strict=True):
            same(result, one)


def test_integers_and_bools_combine_as_in_python():
    fused = zs.fuse(lambda x, k, flag: x * (k * flag + (k & flag) + (flag < k) * 2))
    for k, flag in itertools.product([3, 2**62, -1], [True, False]):
        same(
            outcome(fused, np.ones(2), k, flag),
            np.ones(2) * (k * flag + (k & flag) + (flag < k) * 2),
        )


def test_integer_beyond_every_dtype_cannot_be_a_result():
    fused = zs.fuse(lambda x, k: (x, k * k))
    assert fused(np.ones(1), 3)[1] == 9
    with pytest.raises(OverflowError, match=r"is returned, which no dtype holds\n.*test_integers"):
        fused(np.ones(1), 2**40)


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 2**53 + 1])
@pytest.mark.parametrize("name", ["add", "floordiv", "and_", "truediv", "mod"])
def test_numbers_of_the_function_combine_with_them(name, number):
    apply = getattr(operator, name)
    for function in (lambda x, k: x * apply(k, number), lambda x, k: x * apply(number, k)):
        for k in (3, 2**62, 0):
            same(outcome(zs.fuse(function), np.ones(1), k), outcome(function, np.ones(1), k))


def test_arrays_beside_them_have_gradients():
    result, pull = zs.vjp(lambda x, k: x * (k * k), np.ones(2), 2**40)
    assert result.tolist() == [2.0**80] * 2
    to_x, to_k = pull(np.ones(2))
    assert to_x.tolist() == [2.0**80] * 2
    assert to_k is None


def test_functions_without_python_integers_cost_nothing_more():
    graph = trace(lambda x, s: x * s + 2, [np.ones(2), 1.5])
    assert not graph.integers
    assert graph.integers.beyond([np.ones(2), 1.5]) == ()
    assert integers_of(graph.graph, frozenset()) == graph.integers


def test_every_operator_is_in_the_table():
    x = np.ones(1)
    for name, function in PYTHON.items():
        unary = name in ("negative", "positive", "abs", "bitwise_invert")
        graph = trace(lambda x, k, f=function, u=unary: (x, f(k) if u else f(k, 5)), [x, 3])
        assert name in [getattr(node, "op", "") for node in graph.graph.nodes]
