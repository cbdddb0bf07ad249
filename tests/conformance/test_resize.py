"""The nearest elements that Resize takes, compared with ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from zerostride.models.execute import execute
from zerostride.models.formats.onnx.reader import read_onnx

onnx = pytest.importorskip("onnx", reason="writes the models")
ort = pytest.importorskip("onnxruntime", reason="is what is compared with")

pytestmark = pytest.mark.conformance

PLACES = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric")
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
#: Scales whose positions come near integers and halves.
SCALES = (1.1, 2.7, 0.5, 0.3, 1 / 3, 0.6, 0.7, 1.25, 1.5, 2, 3)


@pytest.mark.parametrize("by", ["scales", "sizes"])
@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("place", PLACES)
def test_nearest_elements_match_onnx_runtime(
    place: str, rounding: str, by: str, tmp_path: Path
) -> None:
    if by == "scales" and place == "align_corners":
        pytest.skip("ONNX Runtime rounds the resized length down; ONNX does not")
    names = ["x", "", "by"] if by == "scales" else ["x", "", "", "by"]
    modes = {"coordinate_transformation_mode": place, "nearest_mode": rounding}
    match(onnx.helper.make_node("Resize", names, ["y"], mode="nearest", **modes), by, 19, tmp_path)


def test_nearest_elements_of_op_set_10_match_onnx_runtime(tmp_path: Path) -> None:
    node = onnx.helper.make_node("Resize", ["x", "by"], ["y"], mode="nearest")
    match(node, "scales", 10, tmp_path)


def match(node: Any, by: str, version: int, folder: Path) -> None:
    """Compares a node's results for many scales and sizes."""
    kinds = {"scales": onnx.TensorProto.FLOAT, "sizes": onnx.TensorProto.INT64}
    values = [
        onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 1, 1, "n"]),
        onnx.helper.make_tensor_value_info("by", kinds[by], [4]),
    ]
    result = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    graph = onnx.helper.make_graph([node], "g", values, [result])
    imports = [onnx.helper.make_opsetid("", version)]
    model = onnx.helper.make_model(
        graph, opset_imports=imports, ir_version=5 if version < 11 else 9
    )
    onnx.save(model, folder / "m.onnx")
    options = ort.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = ort.InferenceSession(model.SerializeToString(), options)
    own = read_onnx(folder / "m.onnx")

    @settings(max_examples=100)
    @given(scale=st.one_of(st.sampled_from(SCALES), st.floats(0.1, 4)), size=st.integers(1, 40))
    def compare(scale: float, size: int) -> None:
        x = np.arange(size, dtype=np.float32).reshape(1, 1, 1, size)
        length = int(size * float(np.float32(scale)))
        # ONNX Runtime computes a size in 32 bits, and copies a tensor whose sizes stay.
        if length in (0, size) or length != int(np.float32(size) * np.float32(scale)):
            return
        ends: dict[str, Any] = {
            "scales": np.array([1, 1, 1, scale], np.float32),
            "sizes": np.array([1, 1, 1, length]),
        }
        inputs = {"x": x, "by": ends[by]}
        (expected,) = session.run(None, inputs)
        np.testing.assert_array_equal(execute(own, inputs)["y"], expected)

    for scale in (1.1, 2.7):
        for size in range(1, 41):
            compare = example(scale=scale, size=size)(compare)
    compare()
