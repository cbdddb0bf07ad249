"""TensorFlow on the CPU, eager."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from . import Attrs, Runner, Shape, epsilon_of, library, own_names
from .written_out import normalisations


def load() -> Runner:
    """Imports TensorFlow, kept off accelerators: the CPU kernels are what the table describes."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    tf: Any = importlib.import_module("tensorflow")

    def function_of(name: str) -> Callable[..., Any]:
        if name == "truncatemod":  # has no public name outside raw_ops
            return lambda x, y: tf.raw_ops.TruncateMod(x=x, y=y)
        home = next(home for home in (tf, tf.math, tf.bitwise) if hasattr(home, name))
        function: Callable[..., Any] = getattr(home, name)
        return function

    def broadcast_to(x: Any, target: Shape, attrs: Attrs) -> Any:
        return tf.broadcast_to(x, tf.constant(target, tf.int32, (len(target),)))

    def batch_norm(attrs: Attrs, x: Any) -> Any:
        data, scale, bias, mean, variance = x
        return tf.nn.batch_normalization(data, mean, variance, bias, scale, epsilon_of(attrs))

    return library(
        str(tf.__version__),
        (tf.errors.InvalidArgumentError, tf.errors.UnimplementedError),
        functions=function_of,
        spreads={"broadcast_to": broadcast_to},
        compounds={
            "Gemm": lambda attrs, x: tf.linalg.matmul(x[0], x[1]) + x[2],
            "MatMul": lambda attrs, x: tf.linalg.matmul(*x),
            "Clip": lambda attrs, x: tf.clip_by_value(*x, *[x[0].dtype.max][len(x) - 2 :]),
            "BatchNormalization": batch_norm,
            **normalisations(tf.constant),
        },
        enter=tf.constant,
        leave=np.asarray,
        named=own_names("tensorflow"),
    )
