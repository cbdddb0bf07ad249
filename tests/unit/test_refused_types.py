"""Element types that engines refuse, or compute wrongly, by op."""

from __future__ import annotations

import numpy as np
import pytest

import zerostride as zs
from zerostride.engines import find_engine
from zerostride.engines.supports import dtype_limit

BITS = ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift")


@pytest.mark.parametrize(
    "engine", ["numpy", "torch", "tensorflow", "jax", "onnxruntime", "openvino"]
)
@pytest.mark.parametrize("op", BITS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_floats_have_no_bits(engine: str, op: str, dtype: str) -> None:
    assert not zs.supports(engine, op, dtype)


@pytest.mark.parametrize("engine", ["numpy", "torch", "jax"])
def test_truth_values_are_not_subtracted(engine: str) -> None:
    assert not zs.supports(engine, "subtract", "bool")
    assert zs.supports(engine, "add", "bool")


@pytest.mark.parametrize("op", ["fmax", "fmin", "heaviside"])
def test_torch_has_no_kernels_for_long_unsigned_integers(op: str) -> None:
    assert not zs.supports("torch", op, "uint16")
    assert zs.supports("torch", op, "uint8")


def test_torch_has_no_prelu_of_truth_values() -> None:
    assert not zs.supports("torch", "prelu", "bool")


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_openvino_computes_a_wrong_squared_difference_of_bytes(dtype: str) -> None:
    limit = dtype_limit(find_engine("openvino"), "squared_difference", dtype)
    assert limit is not None
    assert limit.effect is zs.Reason.WRONG_RESULT


def test_tensorflow_has_no_fmod_of_float16() -> None:
    assert not zs.supports("tensorflow", "fmod", "float16")
    assert zs.supports("tensorflow", "fmod", "float32")


@pytest.mark.parametrize("op", ["subtract", "divide", "squared_difference"])
def test_litert_computes_some_float16_by_its_delegate_alone(op: str) -> None:
    assert zs.supports("litert", op, "float16", [(2,) * 6, (2,)])
    assert not zs.supports("litert", op, "float16", [(2,) * 7, (2,)])
    assert not zs.supports("litert", op, "float16", [(0,), ()])
    assert zs.supports("litert", op, "float32", [(2,) * 7, (2,)])


def test_litert_truncates_quotients_of_integers() -> None:
    result = zs.divide(np.array([-1, 7], "int32"), np.array([2, 2], "int32"), engine="litert")
    assert result.tolist() == [0, 3]
    assert result.dtype == np.int32


def test_litert_takes_the_second_operand_beside_nan() -> None:
    nan = np.array([np.nan], "float32")
    one = np.ones(1, "float32")
    assert zs.maximum(nan, one, engine="litert").tolist() == [1.0]
    assert np.isnan(zs.minimum(one, nan, engine="litert")).all()


def test_openvino_has_kernels_of_twelve_axes() -> None:
    twelve, more = [(2,) * 12, (2,)], [(2,) * 12 + (3, 2), (2,)]
    for op, dtype in (("less", "float32"), ("logical_and", "bool"), ("add", "int32")):
        assert zs.supports("openvino", op, dtype, twelve)
        assert zs.supports("openvino", op, dtype, [(2,) * 14, (2,)])
        assert not zs.supports("openvino", op, dtype, more)
    assert zs.supports("openvino", "add", "float32", more)


@pytest.mark.parametrize("op", ["fmax", "hypot", "copysign", "bitwise_left_shift"])
def test_executorch_lowers_the_core_of_pytorch(op: str) -> None:
    assert zs.supports("torch", op)
    assert not zs.supports("executorch", op)
    assert zs.supports("executorch", "maximum")
