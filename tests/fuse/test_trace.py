"""Functions become graphs: the nodes of every operator and function, and refusals."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from traced import ARITHMETIC, BITS, COMPARISONS, RNG, B, M, N, X, Y, check, computed

import zerostride as zs
from zerostride.fusion.trace.graph import Apply, Constant, Input, Reduce, View
from zerostride.fusion.trace.tracing import Operand, operand_of, trace
from zerostride.ops import OPS


def test_comparison_fails_on_other_values():
    with pytest.raises(AssertionError):
        check(lambda x: x + (0 if isinstance(x, np.ndarray) else 1), X)


# Operators


@pytest.mark.parametrize("name", [*ARITHMETIC, *COMPARISONS])
@pytest.mark.parametrize("other", [Y, 2, 1.5, np.float64(1.5), np.float32(2), N], ids=repr)
def test_operators_of_floats_match_numpy_on_both_sides(name, other):
    apply = getattr(operator, name)
    exact = name != "pow"
    check(lambda x, y: apply(x, y), X, other, exact=exact)
    check(lambda x: apply(x, other), X, exact=exact)
    check(lambda x: apply(other, x), X, exact=exact)


def power(x, y):
    """x**y as NumPy has it from 2.3 on; before, it squares x in x's dtype, whatever that of 2."""
    return np.power(x, y) if isinstance(x, np.ndarray) else x**y


@pytest.mark.parametrize("name", [*ARITHMETIC, *COMPARISONS, *BITS])
@pytest.mark.parametrize("other", [M, 2, np.int64(2), np.int8(1)], ids=repr)
def test_operators_of_integers_match_numpy_on_both_sides(name, other):
    apply = power if name == "pow" else getattr(operator, name)
    check(lambda x, y: apply(x, y), N, other)
    check(lambda x: apply(x, other), N)
    if name not in ("floordiv", "mod", "truediv"):
        check(lambda x: apply(other, x), N)


@pytest.mark.parametrize("name", ["and_", "or_", "xor", "eq", "ne", "lt", "add", "mul"])
def test_operators_of_bools_match_numpy(name):
    apply = getattr(operator, name)
    check(lambda x, y: apply(x, y), B, ~B)
    check(lambda x: apply(True, x), B)


def test_unary_operators_match_numpy():
    check(lambda x: (-x, +x, abs(-x)), X)
    check(lambda x: (-x, +x, abs(x - 3), ~x), N)
    check(lambda x: ~x, B)
    check(lambda x: (divmod(x, 2), divmod(7, x + 1))[0], N)


@pytest.mark.parametrize("power", [0, 1, 2, 3, 4, 5, -1, 0.5, 2.0, -2])
def test_powers_become_products_where_exact(power):
    check(lambda x: x**power, X, exact=False)
    ops = {
        node.op for node in trace(lambda x: x**power, [X]).graph.nodes if isinstance(node, Apply)
    }
    assert ("pow" in ops) == (power in (0, 5, -2))


@pytest.mark.parametrize("power", [0, 1, 2, 3, 4, 5, 0.5, 1.0])
def test_powers_of_integers_match_numpy(power):
    check(lambda x: x**power, N, exact=isinstance(power, int))


def test_power_of_a_bool_matches_numpy():
    check(lambda x: x**2, B)


# zerostride's functions, NumPy's ufuncs


def samples(op, dtype):
    """Operands in every op's domain."""
    if np.dtype(dtype) == np.bool_:
        return [B, ~B, B][: op.operands]
    low = 0.1 if np.dtype(dtype).kind == "f" else 1
    high = 0.9 if np.dtype(dtype).kind == "f" else 4
    values = [RNG.uniform(low, high, (3, 4)).astype(dtype) for _ in range(op.operands)]
    if op.name == "where":
        values[0] = B
    if op.name == "acosh":
        values[0] = values[0] + np.asarray(1, dtype)
    return values


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "bool", "float16"])
@pytest.mark.parametrize("op", OPS.values(), ids=lambda op: op.name)
def test_every_op_gives_the_unfused_result(op, dtype):
    function = getattr(zs, op.name)
    operands = samples(op, dtype)
    more = ["int16"] if op.name == "cast" else []
    try:
        wanted = function(*operands, *more)
    except TypeError:
        with pytest.raises(TypeError, match=r"test_trace\.py:\d+ in"):
            trace(lambda *given: function(*given, *more), operands)
        return
    result = computed(lambda *given: function(*given, *more), *operands)
    assert result.dtype == wanted.dtype
    limit = {"float16": 2e-3, "float64": 1e-14}.get(result.dtype.name, 2e-6)
    np.testing.assert_allclose(
        result.astype(np.float64), wanted.astype(np.float64), rtol=limit, atol=limit
    )


UFUNCS = [one for one in vars(np).values() if isinstance(one, np.ufunc)]
#: Neither in the op table nor made of its ops.
FOREIGN = {
    *("cbrt", "frexp", "gcd", "isnat", "lcm", "ldexp", "matmul", "matvec", "modf", "spacing"),
    *("vecdot", "vecmat", "bitwise_count"),
}


@pytest.mark.parametrize("ufunc", sorted({*UFUNCS}, key=lambda one: one.__name__), ids=str)
def test_every_ufunc_matches_numpy_or_is_refused(ufunc):
    whole = ufunc.__name__.startswith(("bitwise", "left", "right", "invert", "gcd", "lcm"))
    operands = [N if whole else X / 4 + (ufunc is np.arccosh) for _ in range(ufunc.nin)]
    if ufunc.__name__ in FOREIGN:
        with pytest.raises(zs.TraceError, match=f"numpy.{ufunc.__name__} is no op"):
            trace(lambda *given: ufunc(*given), operands)
    else:
        check(lambda *given: ufunc(*given), *operands, exact=False)


@pytest.mark.parametrize("ufunc", [np.rint, np.exp2, np.fabs, np.deg2rad, np.signbit, np.sqrt])
def test_ufuncs_of_integers_are_computed_in_numpys_dtype(ufunc):
    check(lambda x: ufunc(x), N, exact=False)
    check(lambda x: ufunc(x), N.astype(np.int8), exact=False)


@pytest.mark.parametrize("ufunc", [np.deg2rad, np.rad2deg])
def test_angles_have_numpys_bits(ufunc):
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    halves = halves[np.isfinite(halves)]
    with np.errstate(all="ignore"):
        for x in (halves, halves.astype(np.float32) / 3, halves.astype(np.float64) / 3):
            np.testing.assert_array_equal(zs.fuse(lambda x: ufunc(x))(x), ufunc(x))


def test_ufuncs_take_a_dtype():
    check(lambda x, y: np.add(x, y, dtype=np.float64), X, Y)
    check(lambda x: np.multiply(x, 2, dtype="int64"), N)
    check(lambda x: np.exp2(x, dtype="float64"), X, exact=False)


def test_arrays_and_scalars_may_be_on_the_left():
    check(lambda x: (Y - x, np.float32(2) / x, np.float64(2) * x, np.int64(1) + x), X)
    check(lambda x: np.arange(4) < x, X)
    check(lambda x: x + [1.0, 2.0, 3.0, 4.0], X)  # noqa: RUF005 - an array's sum


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("where", lambda x: np.where(x > 1, x, 0)),
        ("where numbers", lambda x: np.where(x > 1, 1.0, 0.0)),
        ("clip", lambda x: np.clip(x, 1, 2)),
        ("clip low", lambda x: np.clip(x, 1, None)),
        ("clip by name", lambda x: np.clip(x, min=1, max=2)),
        ("clip method", lambda x: x.clip(1, 2)),
        ("broadcast_to", lambda x: np.broadcast_to(x, (2, 3, 4))),
        ("expand_dims", lambda x: np.expand_dims(x, (0, -1))),
        ("squeeze", lambda x: np.squeeze(x[None, :, None], 0)),
        ("transpose", lambda x: np.transpose(x, (1, 0))),
        ("moveaxis", lambda x: np.moveaxis(x[None], 0, -1)),
        ("swapaxes", lambda x: np.swapaxes(x, 0, 1)),
        ("reshape", lambda x: np.reshape(x, (3, 1, -1))),
        ("zeros_like", lambda x: x + np.zeros_like(x)),
        ("ones_like", lambda x: np.ones_like(x)),
        ("full_like", lambda x: np.full_like(x, 7, dtype="int8")),
        ("round", lambda x: np.round(x)),
        ("sum", lambda x: np.sum(x.astype("int64"), axis=1, keepdims=True)),
        ("max", lambda x: np.max(x, -1)),
        ("amin", lambda x: np.amin(x, 0)),
        ("any", lambda x: np.any(x > 2, axis=0)),
        ("argmax", lambda x: np.argmax(x, axis=1)),
        ("count_nonzero", lambda x: np.count_nonzero(x > 1, axis=0)),
        ("astype", lambda x: np.astype(x, "float64")),
        ("copy", lambda x: np.copy(x)),
        ("decimals", lambda x: np.round(x.astype("float64"), 2) + x.round(-1)),
        ("full_like of a row", lambda x: np.full_like(x, [1, 2, 3, 4])),
        ("zeros_like of a size", lambda x: np.zeros_like(x, shape=4) + np.ones_like(x, "i4")),
        ("ones_like of a shape", lambda x: np.ones_like(x, shape=[2, 1])),
        ("norm", lambda x: np.linalg.norm(x.astype("i4")) + np.linalg.norm(x.astype("i4"), "fro")),
        ("norms", lambda x: np.linalg.norm(x, 1, 0) + np.linalg.norm(x, np.inf, -1).max()),
        ("vector_norm", lambda x: np.linalg.vector_norm(x - 1, axis=0, keepdims=True, ord=-np.inf)),
        ("nan_to_num", lambda x: np.nan_to_num(np.log(x - 2) / (x > 1), nan=5, posinf=7)),
        (
            "nan_to_num of largest",
            lambda x: np.nan_to_num(1 / (x * 0)) - np.nan_to_num(-1 / (x * 0)),
        ),
        ("isclose", lambda x: np.isclose(x / 3 * 3, x) & np.isclose(1 / (x * 0), np.inf)),
        ("isclose of nan", lambda x: np.isclose(np.log(-x), np.nan, equal_nan=True)),
        ("allclose", lambda x: np.allclose(x.astype("i4"), x.astype("i4") + 1)),
        ("ptp", lambda x: np.ptp(x, axis=0)),
        ("ravel", lambda x: np.ravel(x.sum(1, keepdims=True))),
        ("flatten", lambda x: x.sum(0, keepdims=True).flatten()),
        ("real", lambda x: np.real(x) + x.real + x.conj() + x.conjugate()),
        ("imag", lambda x: np.imag(x) + x.imag),
        ("correction", lambda x: np.std(x.astype("float64"), axis=0, correction=1) > 0.3),
        ("sum where all", lambda x: np.sum(x.astype("int64"), where=True)),
        ("add.reduce", lambda x: np.add.reduce(x.astype("int32"))),
        ("maximum.reduce", lambda x: np.maximum.reduce(x, axis=1, keepdims=True)),
        ("logical_or.reduce", lambda x: np.logical_or.reduce(x > 2)),
        ("result_type", lambda x: x.astype(np.result_type(x, np.float64))),
        ("shape", lambda x: x * np.shape(x)[0] + np.ndim(x) + np.size(x) + len(x)),
    ],
)
def test_numpy_functions_match_numpy(name, function):
    check(function, X)


@pytest.mark.parametrize("name", ["mean", "var", "std", "sum", "prod"])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1)])
def test_numpy_reductions_match_numpy(name, axis):
    check(lambda x: getattr(np, name)(x, axis=axis), X, exact=False)
    check(lambda x: getattr(x, name)(axis=axis, keepdims=True), N, exact=False)


def test_ops_of_different_rules_may_be_mixed():
    a, b = RNG.random((2, 3, 4)), RNG.random(3)

    def function(x, y):
        z = zs.add(x, y, rule="pdpd", axis=1) * 2
        return zs.multiply(z, zs.where(y > 0.5, y, 0.0), rule="paddle", axis=1)

    check(function, a, b)
    nodes = trace(function, [a, b]).graph.nodes
    assert [node.axes[1] for node in nodes if isinstance(node, Apply) and len(node.shape) == 3] == [
        (1,), (), (1,)
    ]  # fmt: skip
    check(lambda x, y: zs.add(x, y, rule="ncnn"), np.ones((5, 5)), np.arange(5.0))
    check(lambda x: zs.broadcast(x, (3, 2), mode="explicit", axes_mapping=[0]), b)


def test_views_compose_and_equal_views_are_shared():
    graph = trace(lambda x: x.T[None, :, :].transpose(0, 2, 1).squeeze() + x, [X]).graph
    assert [type(node) for node in graph.nodes] == [Input, Apply]
    graph = trace(lambda x: (x[:, None], np.expand_dims(x, 1), x.reshape(3, 1, 4)), [X]).graph
    assert sum(isinstance(node, View) for node in graph.nodes) == 1
    check(lambda x: (x[...], x[:, :], x[None, ..., None], x.T[:, None], x.mT), X)
    check(lambda x: (x[0], x[:, 0, None], x[0, 0], x[-1:], x[..., 0]), X[:1, :1])


# Graphs


def test_equal_nodes_are_shared_and_unused_nodes_removed():
    def function(x, y, unused):
        np.exp(unused)
        return (x + y) * (x + y), (x + y).sum()

    graph, structure, captured = trace(function, [X, Y, X])
    ops = [node.op for node in graph.nodes if isinstance(node, Apply | Reduce)]
    assert ops == ["add", "multiply", "sum"]
    assert graph.inputs == 3
    assert structure.count == 2
    assert captured == ()


def test_zeros_of_both_signs_are_two_constants():
    result = computed(lambda x: (np.copysign(x, 0.0), np.copysign(x, -0.0)), X)
    assert (result[0] > 0).all()
    assert (result[1] < 0).all()


def test_expression_of_numbers_is_a_constant():
    def function(x, n):
        one = n.tracer.apply("exp", (n.tracer.lift(1.0),))
        return x * one

    graph = trace(function, [X, 2.0]).graph
    constants = [node for node in graph.nodes if isinstance(node, Constant)]
    assert [node.value for node in constants] == [float(np.exp(1.0))]


def test_python_numbers_are_weak_and_numpys_are_not():
    half = np.ones(3, np.float16)
    assert computed(lambda x: x * 2.5, half).dtype == np.float16
    assert computed(lambda x, n: x * n, half, 2.5).dtype == np.float16
    assert computed(lambda x: x * np.float32(2.5), half).dtype == np.float32
    assert computed(lambda x, n: x * n, half, np.float64(2)).dtype == np.float64
    # Python's operators keep a number weak; NumPy's functions make an array of it.
    assert computed(lambda x, n: x * (n * 2 + 1), half, 2.5).dtype == np.float16
    assert computed(lambda x, n: x * np.add(n, 1), half, 2.5).dtype == np.float64
    assert computed(lambda n: n / 2, 3) == 1.5
    graph = trace(lambda x, n: x * n, [half, 2.5]).graph
    assert graph.nodes[1] == Input(1, (), "float64", weak=True)


def test_signature_depends_on_shape_and_dtype():
    assert operand_of([[1, 2]]) == Operand((1, 2), "int64")
    assert operand_of(True) == Operand((), "bool")
    assert operand_of(3) == Operand((), "int64", weak=True)
    assert trace(lambda x: x + 1, [Operand((2, 3), "int8")]).graph.nodes[-1].dtype == "int8"


SCALE = np.ones(4, np.float32)


def test_captured_arrays_are_operands_by_identity():
    shift = np.arange(4.0)
    trace_ = trace(lambda x: (x * SCALE + shift) * SCALE - np.int8(1), [X])
    assert [one is other for one, other in zip(trace_.captured, (SCALE, shift), strict=True)] == [
        True, True
    ]  # fmt: skip
    assert trace_.graph.inputs == 3
    check(lambda x: (x * SCALE + shift) * SCALE - np.int8(1), X)
    assert trace(lambda x: (x * shift, x)[1], [X]).captured == ()


def test_complex_numbers_and_long_doubles_match_numpy():
    z = np.array([1 + 2j, -3j])
    check(lambda x: (abs(x), x * x + 1j, x.sum(), x == 1), z)
    check(lambda x: x + 1j, X)
    check(lambda x: x * np.complex64(2j), X)
    wide = np.array([1, 2], np.longdouble)
    check(lambda x: (x / 3, np.sqrt(x), x + np.longdouble(1)), wide)


def test_complex_numbers_are_true_unless_0():
    z = np.array([0, 1j, 2 - 1j])
    check(lambda z: np.where(z, z, 5), z)
    check(lambda z: zs.where(z, 1, 0), z)
    check(lambda z: (np.logical_or(z, 0), np.logical_and(z, z), ~np.logical_not(z)), z)
    check(lambda z: np.logical_xor(z, np.array([True, True, False])), z)


def test_16_bit_floats_are_rounded_once():
    x = RNG.standard_normal(64).astype(np.float16)
    wide = x.astype(np.float32)
    result = computed(lambda x: x * x + x, x)
    np.testing.assert_array_equal(result, (wide * wide + wide).astype(np.float16))
    big = np.full(1000, 60000, np.float16)
    assert computed(lambda x: x.mean(), big) == 60000
    many = np.ones(70000, np.float16)
    assert computed(lambda x: x.mean(), many) == 1
    assert computed(lambda x: x.var(), big) == 0
    # A cast is a rounding, though nothing else changes.
    cast = computed(lambda x: (x * x).astype("float16") + x, x)
    np.testing.assert_array_equal(
        cast, ((wide * wide).astype("f2").astype("f4") + wide).astype("f2")
    )


def test_option_dtype_converts_the_operands():
    graph, _, _ = trace(
        lambda x, m: zs.where(m, x, 0) / 255, [N.astype(np.uint8), B], {}, "float32"
    )
    assert graph.nodes[-1].dtype == "float32"
    with pytest.raises(TypeError, match="float32 operands do not become dtype=int32"):
        trace(lambda x: x, [X], {}, "int32")
    # As the function alone, where NumPy has no function to ask for a dtype.
    check(lambda x: zs.sigmoid(x, dtype="float64"), X, exact=False)
    check(lambda x: zs.add(x, 1, dtype="float16"), X)
    check(lambda x: zs.relu(x, dtype="int16"), N)


def test_in_place_operators_match_numpy():
    def function(x):
        y = x * 2
        z = y
        y += 1
        y *= 3
        y **= 2
        z //= 2
        return y, z

    check(function, X)
    check(function, N)

    def narrow(x):
        y = x + np.float32(0)
        y += np.float64(1.5)
        return y

    check(narrow, X)

    def counted(x, n):
        m = n
        n += 1
        total = x.sum()
        before = total
        total += x
        copy = x.copy()
        copy *= n
        cast = x.astype(x.dtype)
        cast += m
        itself = cast.astype(x.dtype, copy=False)
        itself += 1
        return total, before, copy, cast

    check(counted, N, 3)
    check(counted, N, np.int32(3))


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (lambda x: operator.iadd(x, 1), zs.TraceError, "write x = x \\+ y"),
        (lambda x: operator.iadd((x * 2).T, 1), zs.TraceError, "write x = x \\+ y"),
        (lambda x: (y := x * 2, y.T, operator.iadd(y, 1)), zs.TraceError, "there is a view"),
        (lambda x: operator.iadd((x * 2).sum(0), x), ValueError, "non-broadcastable"),
        (lambda x: operator.iadd(x.astype("i4"), 1.5), TypeError, "does not become int32"),
    ],
)
def test_unsupported_in_place_operators_are_refused(function, error, words):
    with pytest.raises(error, match=words):
        trace(function, [X])
