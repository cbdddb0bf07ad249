"""RotaryEmbedding on engines: numbers by the plan of its site, and the verdicts on OpenVINO."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zerostride as zs
from zerostride.models.formats.onnx.reader import read_onnx
from zerostride.models.onnx_ops.sites import find_site

onnx = pytest.importorskip("onnx", reason="writes the models")
ort = pytest.importorskip("onnxruntime", reason="is what is compared with")

pytestmark = pytest.mark.conformance

CASES = 300


def draw(number: int) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """The domain of a call, its attributes, and its arrays by name in the op's order."""
    rng = np.random.default_rng(number)
    local, packed, partial = (bool(rng.integers(2)) for _ in range(3))
    batch, heads, length = rng.integers(1, 4, 3).tolist()
    half = int(rng.integers(1, 4))
    features = 2 * half + (2 if partial else 0)
    attributes: dict[str, Any] = {"interleaved": int(rng.integers(2))}
    if local and not rng.integers(4):
        attributes = {}
    if partial:
        attributes["rotary_embedding_dim"] = 2 * half
    if packed or (local and partial):
        attributes["num_heads"] = heads
    shape = (batch, length, heads * features) if packed else (batch, heads, length, features)
    arrays: dict[str, Any] = {"x": rng.standard_normal(shape).astype(np.float32)}
    ids: Any = rng.integers(0, 8, (batch, length))
    cache: tuple[int, ...] = (12, half)
    if local and not rng.integers(3):
        ids = np.array([int(rng.integers(5))])
    elif not local and rng.integers(2):
        ids, cache = None, (batch, length, half)
    cos, sin = (rng.standard_normal(cache).astype(np.float32) for _ in range(2))
    if local:
        arrays |= {"ids": ids, "cos": cos, "sin": sin}
    else:
        arrays |= {"cos": cos, "sin": sin} | ({} if ids is None else {"ids": ids})
    return ("com.microsoft" if local else ""), attributes, arrays


def model_of(domain: str, attributes: dict[str, Any], arrays: dict[str, Any]) -> Any:
    helper = onnx.helper
    node = helper.make_node("RotaryEmbedding", list(arrays), ["y"], domain=domain, **attributes)
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in arrays.items()
    ]
    result = helper.make_tensor_value_info("y", 1, None)
    opsets = [helper.make_opsetid("", 23)]
    if domain:
        opsets.append(helper.make_opsetid(domain, 1))
    graph = helper.make_graph([node], "g", infos, [result])
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def rotated(plan: zs.Plan, attributes: dict[str, Any], arrays: dict[str, Any]) -> Any:
    """The result by views of the angles over half of the features of every head."""
    x, ids = arrays["x"], arrays.get("ids")
    angles = [arrays["cos"], arrays["sin"]]
    if ids is not None and ids.ndim == 1:
        angles = [cache[ids[0] : ids[0] + plan.operands[1][0]] for cache in angles]
    elif ids is not None:
        angles = [cache[ids] for cache in angles]
    half = int(plan.shape[-1])
    by_head = x.reshape(*plan.shape[:3], -1).copy()
    first = slice(0, half)
    second = slice(half, 2 * half)
    if attributes.get("interleaved"):
        first, second = slice(0, 2 * half, 2), slice(1, 2 * half, 2)
    real, imaginary = by_head[..., first].copy(), by_head[..., second].copy()
    real, cos, sin = plan.views(real, *angles)
    by_head[..., first] = real * cos - imaginary * sin
    by_head[..., second] = real * sin + imaginary * cos
    return by_head.reshape(x.shape)


def on_openvino(content: bytes, arrays: dict[str, Any]) -> Any:
    ov = pytest.importorskip("openvino", reason="an engine is an extra, not a test need")
    core = ov.Core()
    compiled = core.compile_model(
        core.read_model(content), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
    )
    return np.array(compiled(arrays)[0])


@pytest.mark.slow
def test_angles_repeat_along_heads(tmp_path: Path) -> None:
    """On ONNX Runtime by the plan, on OpenVINO as the audit says."""
    seen = Counter[str]()
    for number in range(CASES):
        domain, attributes, arrays = draw(number)
        content = model_of(domain, attributes, arrays).SerializeToString()
        path = tmp_path / "rotary.onnx"
        path.write_bytes(content)
        (node,) = read_onnx(path).nodes
        site = find_site(node)
        assert site is not None
        shapes: Any = tuple(part.shape for part in site.operands)
        meant = rotated(site.plan(shapes), attributes, arrays)
        options = ort.SessionOptions()
        options.log_severity_level, options.intra_op_num_threads = 4, 1
        (result,) = ort.InferenceSession(content, options).run(None, arrays)
        where = f"{number}: {domain} {attributes} {[a.shape for a in arrays.values()]}"
        np.testing.assert_allclose(result, meant, atol=1e-5, err_msg=where)
        (finding,) = zs.audit(str(path), target="onnxruntime").findings
        assert finding.verdict == "same", where
        (finding,) = zs.audit(str(path), target="openvino").findings
        seen[finding.verdict] += 1
        try:
            other = on_openvino(content, arrays)
        except RuntimeError:
            assert finding.verdict == "refused", where
            continue
        assert (finding.verdict == "same") == np.allclose(meant, other, atol=1e-4), where
    assert min(seen[verdict] for verdict in ("same", "different", "refused")) > 10
