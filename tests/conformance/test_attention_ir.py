"""ScaledDotProductAttention of IR files: the numbers of its plan, and verdicts, on OpenVINO."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zerostride as zs
from zerostride.attention.compute import attention
from zerostride.attention.plan import AttentionPlan
from zerostride.attention.planning import plan_asked
from zerostride.errors import Reason
from zerostride.models.execute.run import execute
from zerostride.models.formats import read_model
from zerostride.models.formats.openvino.sites import find_site

ov = pytest.importorskip("openvino", reason="asks the real OpenVINO")
sys.path.insert(0, str(Path(__file__).parents[1] / "models"))

from ir_models import Ir  # noqa: E402

pytestmark = pytest.mark.conformance
OP = "ScaledDotProductAttention"
FLOAT32 = {"INFERENCE_PRECISION_HINT": "f32"}


def drawn(rng: np.random.Generator) -> tuple[list[Any], bool]:
    """Operands of 3 and 4 axes, some of size 1, and whether they are causal."""

    def outer(ranks: tuple[int, ...]) -> list[int]:
        full = [int(rng.choice([1, 2, 3])), int(rng.choice([1, 2]))]
        return [1 if rng.random() < 0.2 else size for size in full][-int(rng.choice(ranks)) :]

    common = outer((2,))
    shapes = []
    for last in ((5, 8), (7, 8), (7, 6)):
        own = common if rng.random() < 0.7 else outer((1, 2))
        shapes.append((*own[-int(rng.choice([2, 2, 2, 1])) :], *last))
    arrays: list[Any] = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    if rng.random() < 0.3:
        return arrays, bool(rng.random() < 0.6)
    mask = rng.normal(size=(*outer((1, 2)), 5, 7)[-int(rng.choice([2, 3, 4])) :])
    kept = mask > -1
    arrays.append(kept if rng.random() < 0.3 else mask.astype(np.float32))
    if rng.random() < 0.5:
        arrays.append(np.array(rng.choice([0.25, 1.0]), np.float32))
        if rng.random() < 0.6:
            sizes = [size if rng.random() < 0.6 else 1 for size in shapes[0][:-1]]
            heads = [1] * len(sizes)
            heads[-2:] = [sizes[-2], 1] if len(sizes) > 2 else heads[-2:]
            arrays.append(rng.normal(size=(*heads, 1)).astype(np.float32))
    return arrays, bool(rng.random() < 0.3)


def saved(path: Path, arrays: list[Any], causal: bool) -> Path:
    """The file of a call; the scale is a constant."""
    model = Ir()
    operands = []
    for number, array in enumerate(arrays):
        if array.ndim == 0:
            operands.append(model.constant("scale", array))
            continue
        kind = "boolean" if array.dtype == bool else "f32"
        operands.append(model.parameter(f"x{number}", array.shape, kind))
    rank = max(array.ndim for array in arrays)
    causal_ = f'causal="{str(causal).lower()}"'
    model.result(model.layer("site", OP, operands, ("?",) * rank, causal_, "opset13"))
    return model.save(path)


def planned(path: Path) -> AttentionPlan | None:
    """The plan of the file's site; None if nothing can repeat."""
    site = find_site(read_model(path).nodes[-1])
    if site is None:
        return None
    assert site.call is not None, site.lacks
    shapes: Any = tuple(part.shape for part in site.operands)
    from dataclasses import replace

    return plan_asked(site.call.rule, replace(site.call.asked, shapes=shapes))


def computed(plan: AttentionPlan, arrays: list[Any]) -> Any:
    """The numbers of a plan, whose operands have axes before those of the arrays."""
    sink = arrays[5].reshape(-1) if len(arrays) > 5 else 0.0
    shaped = [
        array.reshape(operand.shape)
        for array, operand in zip(arrays[:4], plan.operands, strict=False)
    ]
    return attention(plan, shaped, sink=sink)


def called(rng: np.random.Generator) -> tuple[list[Any], bool]:
    """Operands that OpenVINO takes: other head ratios, masks of each rank, lengths of 0 and 1."""
    query = int(rng.choice([0, 1, 2, 5], p=[0.1, 0.3, 0.3, 0.3]))
    keys = query if query and rng.random() < 0.3 else int(rng.choice([1, 2, 3, 7]))
    heads = int(rng.choice([1, 2, 4]))
    outer = [int(rng.choice([1, 3])), heads][-int(rng.choice([1, 2, 2, 2])) :]
    shared = outer if rng.random() < 0.5 else [*outer[:-1], 1]
    value = outer if rng.random() < 0.3 else shared
    shapes = ((*outer, query, 8), (*shared, keys, 8), (*value, keys, int(rng.choice([4, 8]))))
    arrays: list[Any] = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    causal = bool(query and rng.random() < 0.5)
    if rng.random() < 0.4:
        return arrays, causal
    full = [*outer, query, keys]
    sizes = full[-int(rng.integers(2, len(full) + 1)) :]
    sizes = [1 if rng.random() < 0.2 and size != 0 else size for size in sizes]
    mask = rng.normal(size=sizes)
    kept = mask > -0.5
    if rng.random() < 0.4:
        arrays.append(kept)
    else:
        arrays.append(np.where(kept | (rng.random() < 0.5), mask, -np.inf).astype(np.float32))
    if rng.random() < 0.5:
        arrays.append(np.array(rng.choice([0.25, 1.0]), np.float32))
        if rng.random() < 0.5:
            arrays.append(rng.normal(size=([1] * (len(outer) - 1) + [heads, 1, 1])).astype("f4"))
    return arrays, causal


@pytest.mark.slow
def test_run_computes_what_openvino_computes(tmp_path: Path) -> None:
    """Every file that OpenVINO computes, and no number is another one."""
    core, rng, counts = ov.Core(), np.random.default_rng(11), Counter[str]()
    for number in range(300):
        arrays, causal = called(rng)
        if arrays[0].shape[-2] == 0 and len(arrays) > 3 and 1 in arrays[3].shape[-2:-1]:
            continue  # a mask of one row for no query
        path = saved(tmp_path / f"{number}.xml", arrays, causal)
        feeds = [array for array in arrays if array.ndim]
        words = f"{[(array.shape, str(array.dtype)) for array in arrays]} causal={causal}"
        try:
            real = core.compile_model(core.read_model(path), "CPU", FLOAT32)(feeds)[0]
        except RuntimeError:
            counts["refused"] += 1
            continue
        names = [f"x{k}" for k, array in enumerate(arrays) if array.ndim]
        with np.errstate(all="ignore"):
            results = execute(read_model(path), dict(zip(names, feeds, strict=True)))
        (result,) = results.values()
        assert result.shape == real.shape, words
        np.testing.assert_allclose(result, real, atol=1e-4, err_msg=words)
        counts["causal" if causal else "plain"] += 1
        counts["masked"] += len(arrays) > 3
        counts["sink"] += len(arrays) > 5
        counts["empty"] += 0 in real.shape
        counts["NaN"] += bool(np.isnan(real).any())
    assert min(counts[kind] for kind in ("causal", "plain", "masked")) > 60, counts
    assert min(counts[kind] for kind in ("sink", "empty", "NaN")) > 3, counts


@pytest.mark.slow
def test_an_attention_of_a_file_means_what_openvino_computes(tmp_path: Path) -> None:
    """Every file is planned and computed, or refused by both."""
    core, rng, counts = ov.Core(), np.random.default_rng(3), Counter[str]()
    for number in range(200):
        arrays, causal = drawn(rng)
        path = saved(tmp_path / f"{number}.xml", arrays, causal)
        feeds = [array for array in arrays if array.ndim]
        words = f"{[array.shape for array in arrays]} causal={causal}"
        try:
            plan = planned(path)
        except zs.BroadcastError as error:
            counts["refused"] += 1
            if error.reason is not Reason.CRASH:
                with pytest.raises(RuntimeError):
                    core.compile_model(core.read_model(path), "CPU", FLOAT32)(feeds)
            continue
        try:
            real = core.compile_model(core.read_model(path), "CPU", FLOAT32)(feeds)[0]
        except RuntimeError:
            real = None
        if plan is None:
            counts["alone"] += 1
            assert real is not None, words
            continue
        (finding,) = zs.audit(path, "openvino").findings
        if real is None:
            assert finding.verdict == "refused", words
            counts["refused"] += 1
            continue
        assert finding.verdict == "same", (words, finding.message)
        counts["computed"] += 1
        np.testing.assert_allclose(real, computed(plan, arrays), atol=1e-4, err_msg=words)
    assert counts["computed"] > 100 < 10 * counts["refused"], counts
