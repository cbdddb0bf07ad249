# /// script
# dependencies = ["candle-nn"]
# ///
"""candle's Python package on the CPU (PyPI: candle-nn): operators and methods of its tensors.

These operators broadcast. Those of candle in Rust take equal shapes (huggingface/candle#478).
"""

import json
import tempfile
from pathlib import Path

import candle
import numpy as np

NAME = "candle-python"
DISTRIBUTION = "candle-nn"

OWN = {
    "add": "__add__",
    "subtract": "__sub__",
    "multiply": "__mul__",
    "divide": "__truediv__",
    "equal": "__eq__",
    "not_equal": "__ne__",
    "greater": "__gt__",
    "less": "__lt__",
    "greater_equal": "__ge__",
    "less_equal": "__le__",
    "where": "where_cond",
    "broadcast_to": "broadcast_as",
}
#: Types of a file of tensors. candle has no truth values; those of a condition are u8.
TYPES = {
    "float32": "F32",
    "float64": "F64",
    "float16": "F16",
    "int64": "I64",
    "uint32": "U32",
    "uint8": "U8",
}
KINDS = {str(getattr(candle, kind.lower())): name for name, kind in TYPES.items()}


def tensors(arrays):
    """Tensors of arrays. A file has any shape and value; nested lists end at rank 3."""
    head, content = {}, b""
    for k, array in enumerate(arrays):
        place = [len(content), len(content) + array.nbytes]
        kind = TYPES[array.dtype.name]
        head[f"x{k}"] = {"dtype": kind, "shape": array.shape, "data_offsets": place}
        content += array.tobytes()
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "operands.safetensors"
        path.write_bytes(len(text).to_bytes(8, "little") + text + content)
        loaded = candle.utils.load_safetensors(str(path))
    return [loaded[name] for name in head]


def run(op, arrays, target=None):
    """One method; `target` is the shape, for broadcast_to."""
    if op == "where":
        arrays = [arrays[0].view(np.uint8), *arrays[1:]]
    first, *others = tensors(arrays)
    if op == "broadcast_to":
        others = [target]
    result = getattr(first, OWN[op])(*others)
    values = result.flatten_all().values()
    return np.array(values, KINDS[str(result.dtype)]).reshape(result.shape)
