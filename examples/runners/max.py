# /// script
# dependencies = ["max"]
# ///
"""MAX on the CPU (PyPI: max): functions on its eager tensors.

The first call of an op on an element type compiles a kernel for up to a minute, which MAX keeps on
disk. `max warm-interpreter-cache` compiles all of them beforehand.
"""

from max.experimental import functional
from max.experimental.tensor import Tensor

NAME = "max"
DISTRIBUTION = "max"

OWN = {
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "maximum": "elementwise_max",
    "minimum": "elementwise_min",
    "remainder": "mod",
    "floor_divide": "floor_div",
}


def run(op, arrays, target=None):
    """One function; `target` is the shape, for broadcast_to."""
    operands = list(map(Tensor.from_dlpack, arrays))
    if op == "broadcast_to":
        operands.append(target)
    return getattr(functional, OWN.get(op, op))(*operands).to_numpy()
