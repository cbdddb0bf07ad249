"""Reports of attention that went wrong: what zerostride says, what engines do today."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from campaigns.attention.draw import Call
from campaigns.attention.runners import RUNNERS
from numpy.typing import NDArray

import zerostride as zs
from zerostride.attention.planning import plan_asked
from zerostride.attention.rules import Softcap

pytestmark = pytest.mark.conformance

#: The engines with ONNX's op, which the package `onnx` writes.
ENGINES = ("onnxruntime", "openvino", "onnx.reference")


def arrays_of(**shapes: tuple[int, ...]) -> dict[str, NDArray[Any]]:
    rng = np.random.default_rng(0)
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def run(engine: str, arrays: dict[str, NDArray[Any]], **arguments: Any) -> NDArray[Any]:
    """ONNX's Attention on an engine."""
    pytest.importorskip("onnx", reason="writes the model")
    pytest.importorskip(engine.partition(".")[0], reason="an engine is an extra, not a test need")
    arguments = {"engine": engine, "op": "Attention", "causal": False} | arguments
    return RUNNERS[engine](Call(1, arrays, arguments))  # of an odd number: op set 24


def plan_of(arrays: dict[str, NDArray[Any]], **arguments: Any) -> zs.AttentionPlan:
    """The plan by ONNX's document."""
    shapes: list[Any] = [array.shape for array in arrays.values()]
    return zs.plan_attention(*shapes, **arguments)


def assert_alike(a: NDArray[Any], b: NDArray[Any]) -> None:
    np.testing.assert_allclose(a, b, atol=1e-4)


def assert_other(a: NDArray[Any], b: NDArray[Any]) -> None:
    assert abs(a - b).max() > 0.05


@pytest.mark.parametrize("engine", [*ENGINES, "torch"])
def test_a_key_head_serves_neighbouring_query_heads(engine: str) -> None:
    """https://github.com/onnx/onnx/pull/7274

    The function in ONNX's document tiled key heads, where PyTorch repeats each in its place.
    """
    arrays = arrays_of(query=(1, 4, 3, 8), key=(1, 2, 5, 8), value=(1, 2, 5, 8))
    plan = plan_of(arrays)
    tiled = plan_asked(replace(plan.rule, grouping="tiled"), plan.asked)
    assert plan.query.strides[1:3] == (48, 24)  # a key head, and the next query head beside it
    assert [each.code for each in plan.differences(tiled)] == ["heads"]
    op = "scaled_dot_product_attention(enable_gqa=True)" if engine == "torch" else "Attention"
    result = run(engine, arrays, op=op)
    assert_alike(result, plan.compute(*arrays.values()))
    assert_other(result, tiled.compute(*arrays.values()))


@pytest.mark.parametrize("engine", [*ENGINES, "torch"])
def test_a_mask_of_three_axes_has_heads_and_no_batch(engine: str) -> None:
    """https://github.com/microsoft/onnxruntime/pull/27464

    The first axis of a mask of three axes was taken for the batch. With as many samples as heads no
    size tells the two apart.
    """
    arrays = arrays_of(query=(2, 2, 3, 8), key=(2, 2, 5, 8), value=(2, 2, 5, 8), mask=(2, 3, 5))
    plan = plan_of(arrays)
    assert plan.mask is not None
    assert plan.mask.strides == (0, 15, 0, 5, 1, 0)
    by_sample = {**arrays, "mask": arrays["mask"][:, None]}
    other = plan_of(by_sample)
    assert "mask" in [each.code for each in plan.differences(other)]
    op = "scaled_dot_product_attention" if engine == "torch" else "Attention"
    result = run(engine, arrays, op=op)
    assert_alike(result, plan.compute(*arrays.values()))
    assert_other(result, other.compute(*by_sample.values()))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_softcap_comes_before_the_mask(engine: str) -> None:
    """https://github.com/microsoft/onnxruntime/pull/28379

    A softcap after the mask makes -inf a finite number, and masked keys get weights.
    """
    arrays = arrays_of(query=(1, 2, 3, 8), key=(1, 2, 5, 8), value=(1, 2, 5, 8), mask=(3, 5))
    arrays["mask"][:, 2:] = -np.inf
    plan = plan_of(arrays, softcap=2.0)
    late = plan_asked(replace(plan.rule, softcap=Softcap.AFTER_MASK), plan.asked)
    assert [each.code for each in plan.differences(late)] == ["softcap"]
    result = run(engine, arrays, softcap=2.0)
    assert_alike(result, plan.compute(*arrays.values()))
    assert_other(result, late.compute(*arrays.values()))
    masked = arrays | {"value": arrays["value"].copy()}
    masked["value"][:, :, 2:] = 1e6  # no trace of masked keys
    assert_alike(run(engine, masked, softcap=2.0), result)


@pytest.mark.parametrize("engine", [*ENGINES, "torch"])
def test_a_causal_mask_begins_at_the_top_left(engine: str) -> None:
    """https://github.com/microsoft/onnxruntime/issues/29020

    One query, more keys and no past: the CPU let it see every key, other devices the first alone.
    """
    arrays = arrays_of(query=(1, 2, 1, 8), key=(1, 2, 5, 8), value=(1, 2, 5, 8))
    plan = plan_of(arrays, causal=True)
    other = plan_of(arrays, causal="bottom_right")
    assert (plan.offset, other.offset) == (0, 4)
    assert [each.code for each in plan.differences(other)] == ["causal"]
    op = "scaled_dot_product_attention" if engine == "torch" else "Attention"
    result = run(engine, arrays, causal=True, op=op)
    assert_alike(result, arrays["value"][:, :, :1])
    assert_alike(result, plan.compute(*arrays.values()))
    assert_other(result, other.compute(*arrays.values()))


def test_a_single_query_with_a_past_sees_every_key_in_onnxruntime() -> None:
    """https://github.com/microsoft/onnxruntime/issues/29020

    The same with past keys and several new ones is not repaired: the call is refused as silent.
    """
    arrays = arrays_of(query=(1, 2, 1, 8), key=(1, 2, 3, 8), value=(1, 2, 3, 8))
    past = arrays_of(past_key=(1, 2, 2, 8), past_value=(1, 2, 2, 8))
    plan = plan_of(arrays, causal=True, past=2)
    every = plan_of(arrays, past=2)
    with pytest.raises(zs.BroadcastError, match="sees every key") as caught:
        plan_of(arrays, causal=True, past=2, engine="onnxruntime")
    assert caught.value.silent
    result = run("onnxruntime", arrays | past, causal=True, past=2)
    assert_alike(result, every.compute(*arrays.values(), **past))
    assert_other(result, plan.compute(*arrays.values(), **past))
    exact = run("onnx.reference", arrays | past, causal=True, past=2)
    assert_alike(exact, plan.compute(*arrays.values(), **past))
