"""Files of a project that the pytest plugin watches."""

from __future__ import annotations

LOSS = """
import numpy as np

def squared(pred, target):
    error = pred - target
    return error ** 2
"""
ARRAYS = "column, vector = np.ones((3, 1)), np.ones(3)"


def module_of(*bodies: str) -> str:
    """A module of tests, one a body; `column` is (3, 1) and `vector` (3,)."""
    lines = ["import numpy as np, pytest", "import threading", "import zerostride as zs", ARRAYS]
    lines += ["from zerostride.pytest_plugin import allowed"]
    for k, body in enumerate(bodies):
        lines += [f"def test_{k}():", *("    " + line for line in body.splitlines())]
    return "\n".join(lines) + "\n"
