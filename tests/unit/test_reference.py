"""The reference backend against NumPy: values, dtypes, strides, `out`, overlaps and the adjoint."""

import operator
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zerostride as zs
from zerostride.compute.kernels import to_integer
from zerostride.compute.reference import compute, unbroadcast
from zerostride.ops import OPS

DTYPES = ("bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64", "complex64")
ARITHMETIC = ("add", "multiply", "maximum", "less", "logical_xor", "logaddexp", "bitwise_and")
COMPARISONS = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}
RULES = ("none", "numpy", "mnn", "pdpd", "paddle", "ncnn", "onnx6")


def same(actual, expected):
    """Equal in value, dtype, shape and type (a scalar is no array of rank 0)."""
    assert type(actual) is type(expected)
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    np.testing.assert_array_equal(actual, expected)


def test_comparison_can_fail():
    for wrong in (np.ones(3), np.ones(2, int), np.zeros(2), np.ones((2, 1)), np.float64(1)):
        with pytest.raises(AssertionError):
            same(wrong, np.ones(2))


def outcome(function, *args, **kwargs):
    """The result, or the kind of error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args, **kwargs)
    except (TypeError, ValueError) as error:
        return TypeError if isinstance(error, TypeError) else ValueError


@st.composite
def arrays(draw, shape, dtypes=DTYPES):
    """An array of the shape with any strides: sliced, reversed, transposed, or a list's."""
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    steps = [draw(st.sampled_from((1, 1, 2, -1, -3))) for _ in shape]
    order = draw(st.permutations(range(len(shape))))
    storage = [shape[k] * abs(steps[k]) for k in order]
    seed = draw(st.integers(0, 2**16))
    values = np.random.default_rng(seed).integers(0, 7, storage).astype(dtype)
    array = values.transpose(np.argsort(order)) if shape else values
    array = array[tuple(slice(None, None, step) for step in steps)]
    return array[tuple(slice(size) for size in shape)]


@st.composite
def shapes(draw, max_rank=6):
    """Two shapes that NumPy's rule combines."""
    result = draw(st.lists(st.integers(0, 3), max_size=max_rank))
    pair = []
    for _ in range(2):
        start = draw(st.integers(0, len(result)))
        pair.append(tuple(draw(st.sampled_from((n, n, 1))) for n in result[start:]))
    return tuple(pair)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_results_match_numpy(data):
    a, b = (data.draw(arrays(shape)) for shape in data.draw(shapes()))
    op = OPS[data.draw(st.sampled_from(ARITHMETIC))]
    expected = outcome(getattr(np, op.numpy), a, b)
    actual = outcome(getattr(zs, op.name), a, b)
    if isinstance(expected, type):
        assert actual is expected
    else:
        same(actual, expected)
        if isinstance(expected, np.ndarray):
            assert steps(actual) == steps(expected)


def steps(array):
    """The strides of axes along which there is more than one element: others step nowhere."""
    return [stride for stride, n in zip(array.strides, array.shape, strict=True) if n > 1]


def ruled(data):
    """Two shapes and the plan that some rule gives for them."""
    rule = data.draw(st.sampled_from(RULES))
    rank = st.lists(st.integers(0, 3), max_size=4).map(tuple)
    pair = data.draw(rank), data.draw(rank)
    attributes = {}
    if rule in ("pdpd", "paddle", "onnx6"):
        attributes["axis"] = data.draw(st.integers(-1, 3) | st.none())
    if rule == "onnx6":
        attributes["broadcast"] = 1
    if data.draw(st.booleans()):  # the second a run of the first: most rules take it
        start = data.draw(st.integers(0, len(pair[0])))
        end = data.draw(st.integers(start, len(pair[0])))
        pair = pair[0], pair[0][start:end]
        if "axis" in attributes:
            attributes["axis"] = start
    try:
        return zs.plan(*pair, rule=rule, **attributes)
    except zs.BroadcastError:
        return None


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_every_rule_is_a_reshape_and_numpy(data):
    plan = ruled(data)
    if plan is None:
        return
    a, b = (data.draw(arrays(shape, ("int32", "float32"))) for shape in plan.operands)
    expected = np.subtract(a.reshape(plan.aligned[0]), b.reshape(plan.aligned[1]))
    same(compute("subtract", plan, [a, b]), expected)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_unbroadcast_is_the_adjoint(data):
    plan = ruled(data)
    if plan is None:
        return
    for k, shape in enumerate(plan.operands):
        x = data.draw(arrays(shape, ("float64",)))
        g = data.draw(arrays(plan.shape, ("float64",)))
        there = unbroadcast(plan, g, k)
        assert there.shape == x.shape
        assert there.dtype == g.dtype
        # Small whole numbers: the sums are exact.
        assert (there * x).sum() == (g * plan.view(k, x)).sum()


class TestUnbroadcast:
    def test_unbroadcast_keeps_the_dtype_of_floats_and_sums_wide(self):
        plan = zs.plan((4096, 2), (2,))
        grad = np.ones((4096, 2), np.float16)
        same(unbroadcast(plan, grad, 1), np.full(2, 4096, np.float16))
        same(unbroadcast(plan, grad.astype("complex64"), 1), np.full(2, 4096, np.complex64))

    def test_unbroadcast_sums_integers_as_numpy(self):
        grad = np.full((3, 2), 100, np.int8)
        same(unbroadcast(zs.plan((3, 2), (2,)), grad, 1), grad.sum(0))

    def test_rank_0_and_empty_arrays_are_summed(self):
        same(unbroadcast(zs.plan((2, 3), ()), np.ones((2, 3)), 1), np.array(6.0))
        same(unbroadcast(zs.plan((0, 3), (3,)), np.ones((0, 3)), 1), np.zeros(3))
        same(unbroadcast(zs.plan((), ()), 2.0, 0), np.array(2.0))

    def test_dropped_axes_are_restored(self):
        plan = zs.plan((2, 3, 4), (3, 1), rule="pdpd", axis=1)
        same(unbroadcast(plan, np.ones((2, 3, 4)), 1), np.full((3, 1), 8.0))

    def test_unbroadcast_returns_a_new_array(self):
        grad = np.ones(3)
        unbroadcast(zs.plan((3,), (3,)), grad, 0)[:] = 7
        same(grad, np.ones(3))

    def test_bad_input_is_refused(self):
        plan = zs.plan((2, 3), (3,))
        with pytest.raises(zs.BroadcastError, match=r"grad has shape \(3,\)"):
            unbroadcast(plan, np.ones(3), 1)
        for k in (2, -1):
            with pytest.raises(zs.BroadcastError, match="there is no operand"):
                unbroadcast(plan, np.ones((2, 3)), k)


class TestOut:
    @settings(max_examples=60, deadline=None)
    @given(st.data())
    @pytest.mark.parametrize("name", ["add", "where", "prelu", "squared_difference"])
    def test_overlapping_out_gives_the_same_result(self, name, data):
        memory = np.arange(60.0)
        start, step = data.draw(st.integers(0, 12)), data.draw(st.sampled_from((1, 2, -1)))
        x = memory[12:36].reshape(4, 6)
        slope = memory[start : start + 6][::step][:3].repeat(2)
        out = memory[start + 6 : start + 30].reshape(4, 6)[::step]
        if out.shape != x.shape:
            x = x[: len(out)]
        operands = [x % 2 == 0, x, slope] if name == "where" else [x - 20, slope]
        operands = [x if operand is x else operand for operand in operands]
        expected = getattr(zs, name)(*[np.array(operand) for operand in operands])
        assert getattr(zs, name)(*operands, out=out) is out
        np.testing.assert_array_equal(out, expected)

    @pytest.mark.parametrize("name", ["negative", "isnan", "isinf", "isfinite"])
    @pytest.mark.parametrize("dtype", ["f", "d"])
    def test_strided_elements_are_computed_alone(self, name, dtype):
        """Where NumPy 2.4's own functions on x86 write other elements' values."""
        x = np.arange(400, dtype=dtype)
        x[::4] = np.inf
        for step in (-4, -3, -2, 2, 4, 8):
            given = x[:: 2 * step][:17]
            out = np.zeros(400, dtype if name == "negative" else bool)[::step][: given.size]
            assert compute(name, zs.plan(given.shape), [given], out) is out
            same(out, getattr(np, name)(given.copy()))

    def test_in_place_overlap_is_right(self):
        x = np.arange(6.0)
        zs.add(x[1:], x[:-1], out=x[1:])
        same(x, np.array([0.0, 1, 3, 5, 7, 9]))

    def test_out_may_be_a_tuple_of_one(self):
        out = np.empty(2)
        assert zs.add([1.0, 2.0], 1, out=(out,)) is out
        same(out, np.array([2.0, 3.0]))

    def test_out_may_have_rank_0(self):
        out = np.zeros(())
        assert zs.multiply(3, 4, out=out) is out
        assert out == 12

    def test_out_may_be_narrower_of_the_same_kind(self):
        out = np.empty(2, np.float32)
        for name in ("add", "prelu"):
            getattr(zs, name)(np.ones(2), np.ones(2), out=out)
            assert out.dtype == np.float32

    @pytest.mark.parametrize("name", ["add", "prelu", "squared_difference"])
    @pytest.mark.parametrize(
        ("out", "error", "words"),
        [
            (np.empty(3), zs.BroadcastError, r"out has shape \(3,\); the result has \(2,\)"),
            (np.empty((2, 1)), zs.BroadcastError, "out has shape"),
            (np.empty(2, int), TypeError, "same_kind"),
            ([0, 0], TypeError, "out is an array, not list"),
            ((np.empty(2), np.empty(2)), TypeError, "tuple of one"),
            (np.broadcast_to(0.0, 2), ValueError, "read-only"),
        ],
    )
    def test_bad_out_is_refused(self, name, out, error, words):
        with pytest.raises(error, match=words):
            getattr(zs, name)(np.ones(2), np.ones(2), out=out)


class TestDtypes:
    @pytest.mark.parametrize("name", ["add", "where", "prelu", "squared_difference", "maximum"])
    @pytest.mark.parametrize("dtype", DTYPES[1:])
    @pytest.mark.parametrize("number", [2, 2.5, True])
    def test_python_numbers_are_weak(self, name, dtype, number):
        x = np.ones(3, dtype)
        expected = np.add(x, number).dtype
        operands = (True, x, number) if name == "where" else (x, number)
        assert getattr(zs, name)(*operands).dtype == expected

    @pytest.mark.parametrize("name", COMPARISONS)
    @pytest.mark.parametrize("dtype", ["uint8", "int64", ">u4", "float32"])
    @pytest.mark.parametrize("number", [7, -1, 300, 2**63, 2**70, -(2**70)])
    def test_integers_that_the_dtype_cannot_hold_can_be_compared(self, name, dtype, number):
        # Rows apart, and results elsewhere: NumPy before 2.2.2 ends the process there.
        x = np.arange(24).reshape(4, 6).astype(dtype)[::2, ::-3]
        of_python = COMPARISONS[name]
        expected = [[of_python(one, number) for one in row] for row in x.tolist()]
        swapped = [[of_python(number, one) for one in row] for row in x.tolist()]
        for out in (None, np.zeros((2, 2), np.int16), np.zeros((3, 2, 2), bool)):
            for operands, values in (((x, number), expected), ((number, x), swapped)):
                layout = zs.plan(*map(np.shape, operands), rule="numpy")
                result = compute(name, layout, operands, out)
                assert result is out or result.dtype == bool
                np.testing.assert_array_equal(result, np.broadcast_to(values, result.shape))

    def test_numpy_scalars_are_not_weak(self):
        assert zs.add(np.float32(1), np.float64(2)).dtype == np.float64
        assert zs.where(True, np.ones(2, "f"), np.float64(1)).dtype == np.float64

    @pytest.mark.parametrize("name", ["subtract", "where", "prelu", "squared_difference"])
    def test_option_dtype_is_the_dtype_of_computation(self, name):
        x = np.ones(3, np.int32)
        operands = (True, x, x) if name == "where" else (x, x)
        assert getattr(zs, name)(*operands, dtype=np.float32).dtype == np.float32
        with pytest.raises(TypeError, match="same_kind"):
            getattr(zs, name)(*[np.ones(3)] * len(operands), dtype=np.int32)

    def test_rank_0_results_are_scalars(self):
        assert type(zs.add(1, 2)) is np.int64
        assert type(zs.where(True, np.float32(1), np.float32(2))) is np.float32
        assert type(zs.prelu(np.array(-1.0), 0.5)) is np.float64

    def test_numbers_alone_broadcast_under_rules_with_an_axis(self):
        same(zs.add(1, 2, rule="ncnn"), np.array([3]))
        same(zs.add(1.0, [2.0], rule="ncnn"), np.array([3.0]))

    def test_subclasses_give_plain_arrays(self):
        class Mine(np.ndarray):
            pass

        mine = np.ones(2).view(Mine)
        assert type(zs.add(mine, mine)) is np.ndarray
        assert type(zs.broadcast(mine, (3, 2))) is np.ndarray

    def test_objects_and_strings_match_numpy(self):
        same(zs.add(np.array([1, None], object)[:1], 2), np.array([3], object))
        same(zs.equal(np.array(["a", "b"]), "a"), np.array([True, False]))


@pytest.mark.parametrize(
    ("operands", "error", "words"),
    [
        (([[1], [2, 3]], 1), zs.BroadcastError, "operand 0 is not an array"),
        ((np.ma.masked_array([1.0], [True]), 1), TypeError, "masked"),
        ((None, 1), TypeError, "add of object and int"),
        (("a", 1), TypeError, "add of <U1 and int"),
        ((np.zeros(2, [("f", int)]), 1), TypeError, "add of"),
        ((np.ones(3), np.ones(2)), zs.BroadcastError, "cannot combine x and y"),
    ],
)
def test_bad_operands_are_refused(operands, error, words):
    with pytest.raises(error, match=words):
        zs.add(*operands)


def test_operands_must_have_the_plans_shapes():
    plan = zs.plan((2, 3), (3,))
    with pytest.raises(zs.BroadcastError, match="operand 1 has shape"):
        compute("add", plan, [np.ones((2, 3)), np.ones((1, 3))])
    with pytest.raises(zs.BroadcastError, match="1 operands given"):
        compute("add", plan, [np.ones((2, 3))])
    with pytest.raises(zs.BroadcastError, match="where takes 3"):
        compute("where", plan, [np.ones((2, 3)), np.ones(3)])


class TestBroadcast:
    def test_broadcast_returns_a_read_only_view(self):
        x = np.arange(3)
        view = zs.broadcast(x, (2, 3))
        assert np.shares_memory(view, x)
        assert view.strides == (0, 8)
        assert not view.flags.writeable

    def test_broadcast_copy_is_writable(self):
        x = np.arange(3)
        copied = zs.broadcast(x, (2, 3), copy=True)
        copied[0, 0] = 9
        same(x, np.arange(3))

    def test_broadcast_has_all_modes(self):
        same(zs.broadcast([5], (2,)), np.array([5, 5]))
        same(zs.broadcast(np.ones((2, 1)), (1, 3), mode="bidirectional"), np.ones((2, 3)))
        explicit = zs.broadcast([1, 2], (2, 3), mode="explicit", axes_mapping=[0])
        same(explicit, np.array([[1, 1, 1], [2, 2, 2]]))
        same(zs.broadcast(7, (0, 2)), np.zeros((0, 2), int))
        same(zs.broadcast(np.ones((2, 1)), (1, 3), engine="onnxruntime"), np.ones((2, 3)))
        same(zs.broadcast(np.ones((2, 3)), (4, -1, 3), engine="torch"), np.ones((4, 2, 3)))

    def test_wrong_arguments_of_broadcast_are_refused(self):
        for arguments in ({"axes_mapping": [0]}, {"mode": "explicit"}, {"mode": "pdpd"}):
            with pytest.raises(zs.BroadcastError):
                zs.broadcast([1, 2], (2, 2), **arguments)
        with pytest.raises(zs.BroadcastError):
            zs.broadcast([[1, 2]], (2,))


def test_prelu_multiplies_only_negative_numbers():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = np.array([np.inf, -2.0, np.nan, -0.0])
        same(zs.prelu(x, 0.0), np.array([np.inf, -0.0, np.nan, -0.0]))


def test_to_integer_converts_as_the_processor():
    values = np.array([2.9, -2.9, 2.0**31, -(2.0**31), np.nan, np.inf])
    lowest = -(2**31)
    expected = np.array([2, -2, lowest, lowest, lowest, lowest], np.int32)
    same(to_integer(values, np.dtype("int32")), expected)
    same(to_integer(np.array([2.0**63]), np.dtype("int64")), np.array([-(2**63)]))


@pytest.mark.parametrize("name", ["add", "squared_difference"])
def test_larger_out_is_filled_as_by_numpy(name: str) -> None:
    x = np.arange(3.0)
    out = np.full((2, 3), np.nan)
    assert getattr(zs, name)(x, 2.0, out=out) is out
    np.testing.assert_array_equal(out, np.broadcast_to(getattr(zs, name)(x, 2.0), (2, 3)))
