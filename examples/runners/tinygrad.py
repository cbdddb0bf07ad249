# /// script
# dependencies = ["tinygrad"]
# ///
"""tinygrad on the CPU (PyPI: tinygrad): methods of its tensors.

DEV=CPU needs clang. Without it, DEV=PYTHON computes the same in Python.
"""

import os
import shutil

os.environ.setdefault("DEV", "CPU" if shutil.which("clang") else "PYTHON")

from tinygrad import Tensor

NAME = "tinygrad"
DISTRIBUTION = "tinygrad"

OWN = {
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "remainder": "mod",
    "floor_divide": "__floordiv__",
    "equal": "eq",
    "not_equal": "ne",
    "greater": "__gt__",
    "less": "__lt__",
    "greater_equal": "__ge__",
    "less_equal": "__le__",
    "bitwise_left_shift": "lshift",
    "bitwise_right_shift": "rshift",
    "broadcast_to": "expand",
}


def run(op, arrays, target=None):
    """One method; `target` is the shape, for broadcast_to."""
    first, *others = map(Tensor, arrays)
    if op == "broadcast_to":
        others = [target]
    return getattr(first, OWN.get(op, op))(*others).numpy()
