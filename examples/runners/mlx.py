# /// script
# dependencies = ["mlx[cpu]"]
# ///
"""MLX on the CPU (PyPI: mlx; on Linux mlx[cpu])."""

import mlx.core as mx
import numpy as np

NAME = "mlx"
DISTRIBUTION = "mlx"

#: Names that are not the array API's.
OWN = {
    "pow": "power",
    "atan2": "arctan2",
    "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift",
}

mx.set_default_device(mx.cpu)


def run(op, arrays, target=None):
    """One op; without its type, MLX would make float32 of a float64 array."""
    operands = [mx.array(array, dtype=getattr(mx, array.dtype.name, mx.bool_)) for array in arrays]
    if op == "broadcast_to":
        return np.array(mx.broadcast_to(operands[0], target))
    return np.array(getattr(mx, OWN.get(op, op))(*operands))
