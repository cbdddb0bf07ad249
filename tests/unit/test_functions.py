"""The public functions: one per op, with the documented signature, under rules and engines."""

import doctest
import inspect

import numpy as np
import pytest

import zerostride as zs
from zerostride.ops import OPS

#: Ops whose domain ends at 1.
NEAR_0 = {"asin", "acos", "atanh"}
INTEGERS = np.array([7, -7, 7, -7], np.int32), np.array([2, 2, -2, -2], np.int32)
NAN_FIRST, NAN_SECOND = np.array([np.nan, 1], "f"), np.array([2, np.nan], "f")


@pytest.mark.parametrize("op", OPS.values(), ids=lambda op: op.name)
def test_every_op_has_a_documented_function(op):
    function = getattr(zs, op.name)
    assert function.__name__ == op.name
    assert op.name in zs.__all__
    assert op.summary in function.__doc__
    names = list(inspect.signature(function).parameters)
    more = ["rule", "axis", "engine", "out", "dtype"]
    if op.tensors == 1:
        more = ["dtype", "out"] if op.name == "cast" else more[2:]
    assert names[op.operands : op.operands + len(more)] == more


@pytest.mark.parametrize("op", OPS.values(), ids=lambda op: op.name)
def test_docstring_example_is_right(op):
    """Functions made from the table are no functions to a finder of examples."""
    function = getattr(zs, op.name)
    examples = doctest.DocTestParser().get_doctest(function.__doc__, {}, op.name, None, 0)
    result = doctest.DocTestRunner(verbose=False).run(examples)
    assert result.attempted == 2
    assert not result.failed


def test_aliases_are_the_same_function():
    assert zs.power is zs.pow
    assert zs.silu is zs.swish
    for op in OPS.values():
        if op.numpy and op.operands < 3:
            numbers = (0, 2)[: op.operands] if op.name in NEAR_0 else (5, 2)[: op.operands]
            expected = getattr(np, op.numpy)(*numbers)
            np.testing.assert_allclose(getattr(zs, op.name)(*numbers), expected, rtol=1e-15)


def test_nextafter_of_a_16_bit_float_has_16_bits():
    x, y = np.float16([1, 2, 0]), np.float16([2, 1, 1])
    np.testing.assert_array_equal(zs.nextafter(x, y), np.nextafter(x, y))


class TestRules:
    def test_axis_aligns_the_second_operand(self):
        a, b = np.zeros((2, 3, 4)), np.arange(3.0)
        expected = a + b[:, None]
        np.testing.assert_array_equal(zs.add(a, b, rule="pdpd", axis=1), expected)
        np.testing.assert_array_equal(zs.add(a, b, "pdpd", 1), expected)
        np.testing.assert_array_equal(zs.add(b, a, rule="paddle", axis=1), expected)

    def test_onnx6_needs_broadcast(self):
        a, b = np.zeros((2, 3)), np.arange(2.0)
        expected = a + b[:, None]
        actual = zs.add(a, b, rule="onnx6", axis=0, broadcast=1)
        np.testing.assert_array_equal(actual, expected)
        with pytest.raises(zs.BroadcastError):
            zs.add(a, b, rule="onnx6")

    def test_where_and_prelu_broadcast(self):
        c = np.array([True, False])
        np.testing.assert_array_equal(zs.where(c, [[1], [2]], 0), [[1, 0], [2, 0]])
        np.testing.assert_array_equal(zs.where(c=c, a=1, b=[3, 4]), [1, 4])
        np.testing.assert_array_equal(zs.prelu(x=[-1.0, 1.0], slope=[2.0, 2.0]), [-2, 1])

    @pytest.mark.parametrize("operands", [(np.int8([2, -2]), 300), (300, np.int8([2, -2]))])
    def test_number_that_does_not_fit_the_dtype_is_refused(self, operands):
        for function in (zs.multiply, zs.prelu):
            with pytest.raises(OverflowError, match="300"):
                function(*operands)

    @pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
    def test_imaginary_parts_are_never_dropped(self, dtype):
        """NumPy does, without a word, on the way to ml_dtypes' floats."""
        to = np.dtype(pytest.importorskip("ml_dtypes", reason="bfloat16 is its").bfloat16)
        to = to if dtype == "bfloat16" else np.dtype(dtype)
        x, out = np.complex64([3 + 4j]), np.zeros(1, to)
        fused = zs.fuse(lambda x: x + 1)
        for call in (
            lambda: zs.add(x, 1, dtype=to),
            lambda: zs.add(x, 1, out=out),
            lambda: zs.add(np.ones(1, to), 1j, out=out),
            lambda: zs.add(np.ones(1), 1, dtype="complex64", out=out),
            lambda: zs.where(True, x, 1, out=out),
            lambda: zs.broadcast(x, (1,), out=out),
            lambda: zs.sum(x, axis=-1, keepdims=True, out=out),
            lambda: fused(x, out=out),
            lambda: zs.fuse(lambda x: x + 1, dtype=to)(x),
        ):
            with pytest.raises(TypeError, match="complex"):
                call()
        assert out == 0
        assert zs.abs(x, out=out) == 5
        assert zs.equal(x, x, out=out) == 1

    def test_errors_show_the_shapes(self):
        with pytest.raises(zs.BroadcastError, match="2 3 4") as caught:
            zs.add(np.ones((2, 3, 4)), np.ones(3))
        assert caught.value.shapes == ((2, 3, 4), (3,))
        for arguments in ({"axis": 1}, {"rule": "nunpy"}, {"engine": "ncn"}, {"broadcast": 1}):
            with pytest.raises(zs.BroadcastError):
                zs.add(1, 2, **arguments)


class TestEngines:
    """What each engine was measured to compute; tests/conformance asks the engines themselves."""

    def test_engine_decides_the_alignment(self):
        a, b = np.zeros((2, 2), "f"), np.array([1, 2], "f")
        np.testing.assert_array_equal(zs.add(a, b, engine="ncnn"), [[1, 1], [2, 2]])
        np.testing.assert_array_equal(zs.add(a, b, engine="torch"), [[1, 2], [1, 2]])

    @pytest.mark.parametrize("engine", ["onnxruntime", "openvino", "paddle", "mnn"])
    def test_integer_division_truncates(self, engine):
        result = zs.divide(*INTEGERS, engine=engine)
        np.testing.assert_array_equal(result, [3, -3, -3, 3])
        assert result.dtype == np.int32

    @pytest.mark.parametrize(
        ("engine", "dtype"), [("torch", "f4"), ("jax", "f4"), ("tensorflow", "f8"), ("numpy", "f8")]
    )
    def test_integer_division_gives_floats(self, engine, dtype):
        result = zs.divide(*INTEGERS, engine=engine)
        np.testing.assert_array_equal(result, [3.5, -3.5, -3.5, 3.5])
        assert result.dtype == dtype

    @pytest.mark.parametrize("engine", ["onnxruntime", "openvino", "paddle", "torch", "jax"])
    def test_integer_remainder_has_the_engines_sign(self, engine):
        np.testing.assert_array_equal(zs.remainder(*INTEGERS, engine=engine), [1, 1, -1, -1])

    def test_mnn_has_exchanged_integer_remainders(self):
        np.testing.assert_array_equal(zs.remainder(*INTEGERS, engine="mnn"), [1, -1, 1, -1])
        np.testing.assert_array_equal(zs.fmod(*INTEGERS, engine="mnn"), [1, 1, -1, -1])

    def test_ncnn_remainder_is_to_the_nearest(self):
        x, y = np.array([7.5, -7.5], "f"), np.array([2, 2], "f")
        np.testing.assert_array_equal(zs.remainder(x, y, engine="ncnn"), [-0.5, 0.5])

    @pytest.mark.parametrize("engine", ["onnxruntime", "torch", "paddle", "tensorflow", "mnn"])
    def test_integers_divided_by_zero_are_refused(self, engine):
        op = zs.divide if engine == "onnxruntime" else zs.floor_divide
        with pytest.raises(ZeroDivisionError):
            op(*(np.array([5, 0], np.int32), np.array([1, 0], np.int32)), engine=engine)

    @pytest.mark.parametrize("name", ["maximum", "minimum"])
    def test_nan_follows_the_engine(self, name):
        op = getattr(zs, name)
        for engine in ("onnxruntime", "torch", "jax", "tensorflow", "paddle", "numpy"):
            assert np.isnan(op(NAN_FIRST, NAN_SECOND, engine=engine)).all()
        for engine in ("openvino", "mnn"):
            np.testing.assert_array_equal(op(NAN_FIRST, NAN_SECOND, engine=engine), [2, np.nan])

    @pytest.mark.parametrize("engine", ["onnxruntime", "openvino", "tensorflow", "paddle", "mnn"])
    def test_unequal_dtypes_are_refused(self, engine):
        a, b = np.ones(2, "f"), np.ones(2, np.int32)
        with pytest.raises(zs.BroadcastError, match="equal dtypes") as caught:
            zs.add(a, b, engine=engine)
        assert caught.value.reason == "dtype"
        with pytest.raises(zs.BroadcastError, match="equal dtypes"):
            zs.add(b, 2.5, engine=engine)
        assert zs.add(a, 2, engine=engine).dtype == np.float32
        assert zs.add(b, a, engine=engine, dtype="f").dtype == np.float32

    def test_onnx_pow_takes_the_base_dtype(self):
        result = zs.pow(np.array([3], np.int32), np.array([-1.0], "f"), engine="onnxruntime")
        assert result.tolist() == [0]
        assert result.dtype == np.int32

    @pytest.mark.parametrize("engine", ["torch", "jax"])
    def test_dtypes_combine_by_category(self, engine):
        a, b = np.ones(2, np.int32), np.ones(2, np.float16)
        assert zs.add(a, b, engine=engine).dtype == np.float16
        assert zs.add(a, 2.5, engine=engine).dtype == np.float32
        assert zs.add(b, np.ones(2, "f"), engine=engine).dtype == np.float32

    def test_torch_rank_0_has_lower_priority(self):
        assert zs.add(np.ones(2, "f"), np.array(1.0), engine="torch").dtype == np.float32
        assert zs.add(np.ones(2, int), np.array(1.0), engine="torch").dtype == np.float64

    def test_op_computes_in_a_smaller_dtype(self):
        big = np.array([2**40])
        assert zs.add(big, 1, engine="openvino").tolist() == [1]
        assert zs.add(big, 1, engine="openvino").dtype == np.int64
        assert zs.add(big, 1, engine="jax").dtype == np.int32
        assert zs.less(big, big, engine="openvino").dtype == bool
        narrow = np.array([127, -128], np.int8)
        assert zs.add(narrow, narrow, engine="openvino").tolist() == [127, -128]
        assert zs.add(narrow, narrow, engine="onnxruntime").tolist() == [-2, 0]

    @pytest.mark.parametrize(
        ("name", "engine", "dtype"),
        [
            ("add", "ncnn", "i4"),
            ("add", "ncnn", "f8"),
            ("add", "mnn", "i8"),
            ("add", "openvino", "?"),
            ("logical_and", "onnxruntime", "i4"),
            ("remainder", "onnxruntime", "f4"),
            ("bitwise_left_shift", "onnxruntime", "i4"),
            ("bitwise_right_shift", "torch", "?"),
            ("fmod", "torch", "?"),
            ("pow", "torch", "?"),
            ("pow", "tensorflow", "u1"),
            ("pow", "onnxruntime", "u1"),
            ("maximum", "onnxruntime", "i2"),
            ("squared_difference", "tensorflow", "i2"),
            ("less", "onnxruntime", "?"),
            ("greater_equal", "tensorflow", "?"),
        ],
    )
    def test_unsupported_dtypes_are_refused(self, name, engine, dtype):
        x = np.ones(2, dtype)
        with pytest.raises(zs.BroadcastError, match="does not take") as caught:
            getattr(zs, name)(x, x, engine=engine)
        assert caught.value.reason == "dtype"

    @pytest.mark.parametrize(
        ("name", "engine"), [("logical_and", "ncnn"), ("atan2", "openvino"), ("logaddexp", "mnn")]
    )
    def test_missing_ops_are_refused(self, name, engine):
        with pytest.raises(zs.BroadcastError, match="has no op") as caught:
            getattr(zs, name)(np.ones(2, "f"), np.ones(2, "f"), engine=engine)
        assert caught.value.reason == "no_op"

    @pytest.mark.parametrize("engine", ["torch", "jax"])
    def test_float_functions_take_integers_as_float32(self, engine):
        result = zs.sqrt(np.array([4, 2]), engine=engine)
        np.testing.assert_array_equal(result, np.sqrt(np.float32([4, 2])))
        assert result.dtype == np.float32

    def test_nan_is_handled_where_the_limit_is_a_number(self):
        x = np.array([-np.inf, 1], "f")
        assert zs.swish(x)[0] == 0
        for engine in ("onnxruntime", "torch", "paddle", "jax"):
            assert np.isnan(zs.swish(x, engine=engine)[0])
        assert np.isnan(zs.softsign(-x, engine="torch")[0])

    def test_nan_is_handled_in_unary_functions(self):
        nan = np.array([np.nan], "f")
        assert zs.sign(nan, engine="torch") == 0
        assert zs.relu(nan, engine="openvino") == 0
        assert zs.clip(nan, 1, 2, engine="openvino") == 1
        assert zs.heaviside(nan, nan, engine="paddle") == 0
        for engine in ("onnxruntime", "jax", "numpy"):
            assert np.isnan(zs.sign(nan, engine=engine))

    @pytest.mark.parametrize("engine", ["onnxruntime", "openvino", "ncnn", "torch", "jax"])
    def test_engines_need_numbers_as_limits(self, engine):
        x = np.array([-1, 2, 9], "f")
        np.testing.assert_array_equal(zs.clip(x, 0, np.float32(5), engine=engine), [0, 2, 5])
        np.testing.assert_array_equal(zs.clip(x, high=5, engine=engine), [-1, 2, 5])

    def test_ncnn_and_mnn_have_their_edge_values(self):
        assert np.isnan(zs.log(np.zeros(1, "f"), engine="ncnn"))
        halves = np.array([0.5, 1.5, -2.5], "f")
        np.testing.assert_array_equal(zs.round(halves, engine="mnn"), [1, 2, -3])
        np.testing.assert_array_equal(zs.round(halves, engine="torch"), [0, 2, -2])

    def test_unmeasured_values_are_not_computed(self):
        with pytest.raises(zs.BroadcastError, match="is not known; it is not NumPy's") as caught:
            zs.exp(np.ones(2, np.int32), engine="openvino")
        assert caught.value.reason == "dtype"
        with pytest.raises(zs.BroadcastError, match="does not take int32"):
            zs.exp(np.ones(2, np.int32), engine="onnxruntime")
        with pytest.raises(zs.BroadcastError, match="has no op for shrink"):
            zs.shrink(np.ones(2, "f"), engine="torch")

    def test_parameters_are_passed_to_an_engine(self):
        x = np.array([-1, 2], "f")
        expected = zs.elu(x, 2)
        np.testing.assert_allclose(zs.elu(x, 2, engine="onnxruntime"), expected, rtol=1e-6)
        assert zs.elu(x, 2.5, engine="onnxruntime").dtype == np.float32
        with pytest.raises(zs.BroadcastError, match="swish has alpha = 1"):
            zs.swish(x, 2.0, engine="ncnn")
        np.testing.assert_allclose(zs.swish(x, engine="ncnn"), zs.swish(x), rtol=1e-6)

    def test_undocumented_unary_ops_are_refused_on_some_targets(self):
        assert zs.supports("litert", "exp").reason == "nothing was read about exp on litert"
        assert zs.supports("ncnn", "exp").ok
        assert zs.supports("ncnn", "erf").ok
        assert not zs.supports("onnxruntime", "exp", "int32").ok

    def test_out_receives_the_result(self):
        out = np.empty(4, np.int32)
        assert zs.divide(*INTEGERS, engine="onnxruntime", out=out) is out
        assert out.tolist() == [3, -3, -3, 3]


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("power", [-1, np.int8(-1), [2, -1]])
def test_integers_have_no_negative_powers(dtype, power):
    base = np.array([2, 3], dtype)
    exponent = np.array(power, dtype) if isinstance(power, list) else power
    with pytest.raises(ValueError, match="negative integer powers"):
        zs.pow(base, exponent)
    assert zs.pow(base, 2).tolist() == [4, 9]


def test_docstring_names_the_engines_that_have_the_same_name():
    assert "Elsewhere: the same name on torch, jax.\n" in zs.hypot.__doc__
