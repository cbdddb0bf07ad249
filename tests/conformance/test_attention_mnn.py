"""MNN's op Attention: what it does with operands that its row calls faults, and verdicts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from campaigns.attention.draw import Call, draw
from campaigns.attention.runners import run_mnn
from campaigns.models.mnn_writer import attention as mnn_attention

import zerostride as zs
from zerostride.attention.rows import find_rule
from zerostride.models.execute.run import execute
from zerostride.models.formats import read_model

pytest.importorskip("MNN", reason="asks the real MNN")
sys.path.insert(0, str(Path(__file__).parents[1] / "models"))

pytestmark = pytest.mark.conformance
ROW = find_rule("mnn", "Attention")


def drawn(*shapes: tuple[int, ...]) -> dict[str, Any]:
    """Random query, key, value and mask."""
    rng = np.random.default_rng(0)
    names = ("query", "key", "value", "mask")
    return {name: rng.normal(size=s).astype("f4") for name, s in zip(names, shapes, strict=False)}


def run(arrays: dict[str, Any]) -> Any:
    return run_mnn(Call(0, arrays, {"engine": "mnn", "op": "Attention", "causal": False}))


def meant(arrays: dict[str, Any], **how: Any) -> Any:
    """By the rule of ONNX, whose heads lie before the lengths."""
    order = ("query", "key", "value")
    operands = [arrays[name].swapaxes(1, 2) for name in order]
    operands += [arrays["mask"]] if "mask" in arrays else []
    plan = zs.plan_attention(*(array.shape for array in operands), **how)
    result = plan.compute(*operands).swapaxes(1, 2)
    return result.reshape(*result.shape[:2], -1)


def refusal(arrays: dict[str, Any]) -> str:
    with pytest.raises(zs.BroadcastError) as info:
        zs.plan_attention(*(a.shape for a in arrays.values()), engine="mnn", op="Attention")
    assert info.value.silent
    return str(info.value.detail)


def test_it_is_causal_without_a_mask_and_not_with_one() -> None:
    plain = drawn((1, 3, 4, 8), (1, 3, 2, 8), (1, 3, 2, 8))
    np.testing.assert_allclose(run(plain), meant(plain, causal=True), atol=1e-5)
    masked = drawn((1, 3, 4, 8), (1, 3, 2, 8), (1, 3, 2, 8), (3, 3))
    np.testing.assert_allclose(run(masked), meant(masked), atol=1e-5)
    assert np.abs(run(masked) - meant(masked, causal=True)).max() > 0.1


def test_it_computes_the_first_sample_alone() -> None:
    arrays = drawn((2, 3, 4, 8), (2, 3, 2, 8), (2, 3, 2, 8))
    assert refusal(arrays) == "it computes the first sample alone"
    result = run(arrays)
    expected = meant(arrays, causal=True)
    np.testing.assert_allclose(result[0], expected[0], atol=1e-5)
    assert not np.allclose(result[1], expected[1], atol=1e-3)


def test_it_reads_as_many_keys_as_there_are_queries() -> None:
    arrays = drawn((1, 3, 4, 8), (1, 5, 2, 8), (1, 5, 2, 8))
    assert refusal(arrays) == "it reads as many keys as there are queries"
    first = arrays | {name: arrays[name][:, :3] for name in ("key", "value")}
    np.testing.assert_allclose(run(arrays), meant(first, causal=True), atol=1e-5)


def test_it_reads_a_mask_as_one_of_queries_and_keys() -> None:
    arrays = drawn((1, 3, 4, 8), (1, 3, 2, 8), (1, 3, 2, 8), (1, 4, 3, 3))
    assert refusal(arrays) == "it reads a mask as one of queries and keys alone"
    assert np.abs(run(arrays) - meant(arrays)).max() > 0.1


@pytest.mark.slow
def test_run_computes_what_mnn_computes(tmp_path: Path) -> None:
    """Files of random calls, by `zerostride run`."""
    count = 0
    for number in range(120):
        call = draw(ROW, number, 8)
        try:
            call.plan()
        except zs.BroadcastError:
            continue
        arrays = {name: array for name, array in call.arrays.items() if array.size}
        if "sink" in call.beside:
            arrays.setdefault("mask", np.zeros((), np.float32))
            arrays["sink"] = call.beside["sink"]
        path = tmp_path / "m.mnn"
        path.write_bytes(mnn_attention({name: array.shape for name, array in arrays.items()}))
        if arrays.get("mask", np.ones(1)).shape == ():
            continue  # whether it is a mask is known of a constant alone
        (result,) = execute(read_model(path), arrays).values()
        np.testing.assert_allclose(result, run_mnn(call), atol=1e-4, err_msg=str(call.shapes()))
        count += 1
    assert count > 40


def test_truth_values_of_a_mask_are_read_as_floats() -> None:
    """Whole numbers of a mask are bytes of tiny floats: no key is masked."""
    from MNN import expr, nn
    from mnn_files import Model, Scalar

    arrays = drawn((1, 3, 4, 8), (1, 3, 2, 8), (1, 3, 2, 8))
    model = Model()
    for name, array in arrays.items():
        model.input(name, *array.shape)
    model.input("mask", 3, 3, dtype="int32")
    names = [*arrays, "mask"]
    model.op("Attention", " ".join(names), "y", "AttentionParam", {0: Scalar("B", 0)})
    import tempfile

    with tempfile.NamedTemporaryFile(suffix=".mnn") as file:
        file.write(model.data("y"))
        file.flush()
        (finding,) = zs.audit(file.name, "mnn").findings
        net = nn.load_module_from_file(file.name, names, ["y"])
        mask = np.tril(np.ones((3, 3), np.int32))
        feeds = [expr.const(array, list(array.shape), expr.NCHW) for array in arrays.values()]
        feeds.append(expr.const(mask, [3, 3], expr.NCHW, expr.int))
        result = np.array(net.forward(feeds)[0].read())
    assert (finding.verdict, finding.reason) == ("unknown", "not_modelled")
    assert "a mask of int32, whose bytes MNN reads as floats" in finding.message
    np.testing.assert_allclose(result.reshape(1, 3, 32), meant(arrays), atol=1e-5)
