"""Keras: `keras.ops` on the backend that KERAS_BACKEND names (numpy, jax, torch, tensorflow)."""

import os

os.environ.setdefault("KERAS_BACKEND", "numpy")

import keras

BACKEND = keras.backend.backend()
NAME = f"keras-{BACKEND}"
DISTRIBUTION = "keras"

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
    tensors = [keras.ops.convert_to_tensor(array, dtype=array.dtype.name) for array in arrays]
    if op == "broadcast_to":
        return keras.ops.convert_to_numpy(keras.ops.broadcast_to(tensors[0], target))
    return keras.ops.convert_to_numpy(getattr(keras.ops, OWN.get(op, op))(*tensors))
