"""TensorFlow on the CPU, eager."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..case import Array, Shape
from . import Attrs, Perform, Runner


def load() -> Runner:
    """Imports TensorFlow, kept off accelerators: the CPU kernels are what the table describes."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    tf: Any = importlib.import_module("tensorflow")

    def tensors(function: Callable[..., Any]) -> Perform:
        def perform(attrs: Attrs, operands: Sequence[Array], target: Shape) -> Array:
            return np.asarray(function(*map(tf.constant, operands)))

        return perform

    def broadcast_to(attrs: Attrs, operands: Sequence[Array], target: Shape) -> Array:
        shape = tf.constant(target, tf.int32, shape=(len(target),))
        return np.asarray(tf.broadcast_to(tf.constant(operands[0]), shape))

    return Runner(
        str(tf.__version__),
        {
            "add": tensors(tf.add),
            "subtract": tensors(tf.subtract),
            "greater": tensors(tf.greater),
            "where": tensors(tf.where),
            "broadcast_to": broadcast_to,
        },
        (
            tf.errors.InvalidArgumentError,
            tf.errors.UnimplementedError,
        ),
    )
