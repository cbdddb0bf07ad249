"""A culprit as numbers, a script, and a model file of its own."""

from __future__ import annotations

import numpy as np

from ...errors import ModelError
from ..ir.graph import Array
from .result import Repro
from .walk import Fault

#: Operands of more bytes are not kept.
_MOST_BYTES = 2**26
_SCRIPT = '''"""Compares the two results of node {node} ({op}): {detail}"""
import numpy as np

data = np.load("repro.npz")
expected, actual = data["expected"], data["actual"]
for name in data.files:
    print(name, data[name].shape, data[name].dtype)
error = np.abs(expected.astype(float) - actual.astype(float))
print("largest difference", error.max(), "at", np.unravel_index(error.argmax(), error.shape))
'''


def repro(fault: Fault) -> Repro | None:
    """The numbers of a fault; None without both results, or where they are too many."""
    if fault.expected is None or fault.actual is None:
        return None
    arrays: dict[str, Array] = {
        value.name: np.array(fault.values[id(value)]) for value in fault.part.operands
    }
    for node in fault.part.nodes:
        for value in node.inputs:
            if value is not None and value.constant and value.name not in arrays:
                try:
                    arrays[value.name] = value.data()
                except ModelError:
                    continue  # computed from shapes, not of the file
    arrays |= {"expected": np.array(fault.expected), "actual": np.array(fault.actual)}
    if sum(array.nbytes for array in arrays.values()) > _MOST_BYTES:
        return None
    node = fault.part.nodes[-1]
    return Repro(arrays, _SCRIPT.format(node=node.path, op=node.op, detail=fault.judged.detail))
