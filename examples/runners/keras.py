# /// script
# dependencies = ["keras", "jax"]
# ///
"""Keras (PyPI: keras): `keras.ops` on the backend that KERAS_BACKEND names; without it, NumPy.

KERAS_BACKEND=tensorflow zerostride engines learn keras.py --name keras-tensorflow
"""

import os

os.environ.setdefault("KERAS_BACKEND", "numpy")

import keras

NAME = "keras"
DISTRIBUTION = "keras"
BACKEND = keras.backend.backend()
VERSION = keras.__version__

OWN = {
    "pow": "power",
    "atan2": "arctan2",
    "remainder": "mod",
    "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift",
}

if BACKEND == "jax":  # which narrows int64 and float64 unless told not to
    import jax

    jax.config.update("jax_enable_x64", True)


def run(op, arrays, target=None):
    """One op; `target` is the shape, for broadcast_to."""
    operands = [keras.ops.convert_to_tensor(array, dtype=array.dtype.name) for array in arrays]
    if op == "broadcast_to":
        operands.append(target)
    return keras.ops.convert_to_numpy(getattr(keras.ops, OWN.get(op, op))(*operands))
