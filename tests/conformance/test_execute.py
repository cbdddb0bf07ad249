"""Every executed op, compared with ONNX Runtime. The onnx package's suite: test_backend.py."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from execute_cases import Made
from execute_rows import OLD, OPS

from zerostride.models.execute import execute
from zerostride.models.formats.onnx.reader import read_onnx
from zerostride.models.onnx_ops import table

onnx = pytest.importorskip("onnx", reason="writes the models")
ort = pytest.importorskip("onnxruntime", reason="is what is compared with")

pytestmark = pytest.mark.conformance

CASES = 150
#: Results of ops that have several.
RESULTS = {"TopK": 2, "DynamicQuantizeLinear": 3, "RNN": 2, "GRU": 2, "LSTM": 3, "Attention": 4}


def model_of(op: str, opset: int, attributes: Mapping[str, Any], arrays: Any, count: int) -> Any:
    names = ["" if array is None else f"x{k}" for k, array in enumerate(arrays)]
    infos = [
        onnx.helper.make_tensor_value_info(
            name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in zip(names, arrays, strict=True)
        if name
    ]
    outputs = [f"y{k}" for k in range(count)]
    node = onnx.helper.make_node(op, names, outputs, **attributes)
    results = [onnx.helper.make_empty_tensor_value_info(name) for name in outputs]
    graph = onnx.helper.make_graph([node], "g", infos, results)
    imports = [onnx.helper.make_opsetid("", opset)]
    return onnx.helper.make_model(graph, opset_imports=imports, ir_version=8 if opset < 21 else 10)


def compare(op: str, opset: int, model: Made, most: float, file: Path) -> bool:
    """False where ONNX Runtime does not take the case."""
    attributes, operands = model
    arrays = [None if array is None else np.asarray(array) for array in operands]
    content = model_of(op, opset, attributes, arrays, RESULTS.get(op, 1)).SerializeToString()
    given = {f"x{k}": array for k, array in enumerate(arrays) if array is not None}
    try:
        options = ort.SessionOptions()
        options.log_severity_level, options.intra_op_num_threads = 4, 1
        expected = ort.InferenceSession(content, options).run(None, given)
    except Exception:  # noqa: BLE001 - refusals of every kind
        return False
    file.write_bytes(content)
    outputs = list(execute(read_onnx(file), given).values())
    for a, b in zip(outputs, expected, strict=True):
        where = f"{op}-{opset} {attributes} {[x if x is None else x.shape for x in arrays]}"
        assert (a.shape, a.dtype) == (np.shape(b), np.asarray(b).dtype), where
        if most and a.dtype.kind == "f":
            np.testing.assert_allclose(a, b, rtol=most, atol=most, err_msg=where)
        else:
            np.testing.assert_array_equal(a, b, err_msg=where)
    return True


ROWS = [*((name, *row) for name, row in OPS.items()), *((name, *row) for name, row in OLD.items())]


@pytest.mark.parametrize(
    ("op", "opset", "make", "most"), ROWS, ids=[f"{r[0]}-{r[1]}" for r in ROWS]
)
def test_executed_op_matches_onnx_runtime(
    op: str, opset: int, make: Any, most: float, tmp_path: Path
) -> None:
    rng = np.random.default_rng(len(op) * 100 + opset)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ran = sum(compare(op, opset, make(rng), most, tmp_path / "m.onnx") for _ in range(CASES))
    assert ran >= CASES // 3, f"ONNX Runtime took {ran} cases"


def test_every_op_has_cases() -> None:
    """Ops of the table without random cases; the onnx package's suite has them."""
    left = {"Dropout", "ConstantOfShape", "EyeLike", "Trilu", "Compress", "CastLike", "Split",
            "MatMulInteger", "RMSNormalization", "Scatter", "Swish", "CumProd",
            "BitCast", "RotaryEmbedding", "SimplifiedLayerNormalization"}  # fmt: skip
    executed = {name for name, row in table.OPS.items() if row.kernel is not None}
    assert executed - OPS.keys() - OLD.keys() == left
