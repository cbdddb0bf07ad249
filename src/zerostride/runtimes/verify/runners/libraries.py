"""Engines that are libraries of functions: NumPy, PyTorch, JAX, TensorFlow, Paddle."""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ....compute.kernels import KERNELS
from ....ops import Op
from ..task import Array, Form, Task
from . import Function, Perform, Runner, by_op, by_table, epsilon_of
from .written_out import normalisations

Attrs = Mapping[str, Any]
Table = Mapping[str, Function]
COMPARISONS = frozenset({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"})


def _scaled(attrs: Attrs, x: Sequence[Any]) -> Any:
    """A batch normalisation written out; NumPy's rule places the vectors."""
    data, scale, bias, mean, variance = x
    return (data - mean) / (variance + epsilon_of(attrs)) ** 0.5 * scale + bias


def _to(function: Callable[[Array, tuple[int, ...]], Any]) -> Perform:
    def perform(task: Task, arrays: Sequence[Array]) -> Sequence[Array]:
        return [np.array(function(arrays[0], task.target))]

    return perform


def load_numpy() -> Runner:
    """NumPy, which is always installed."""
    table: Table = {
        "Gemm": lambda attrs, x: np.matmul(x[0], x[1]) + x[2],
        "MatMul": lambda attrs, x: np.matmul(*x),
        "Clip": lambda attrs, x: np.clip(*x, *[None] * (3 - len(x))),
        "BatchNormalization": _scaled,
        **normalisations(np.asarray),
    }
    return Runner(
        np.__version__,
        {
            Form.OP: by_op(lambda op, arrays, _: np.asarray(KERNELS[op.name](*arrays))),
            Form.TO: _to(np.broadcast_to),
            Form.COMPOUND: by_table(table, np.asarray, np.asarray),
        },
    )


def load_torch() -> Runner:
    """PyTorch on the CPU, eager."""
    torch: Any = importlib.import_module("torch")
    nn: Any = importlib.import_module("torch.nn.functional")

    def shape_of(attrs: Attrs, data: Any) -> list[int]:
        return list(data.shape[attrs.get("axis", -1) :])

    table: Table = {
        "Gemm": lambda attrs, x: torch.addmm(x[2], x[0], x[1]),
        "MatMul": lambda attrs, x: torch.matmul(*x),
        "Clip": lambda attrs, x: torch.clamp(*x),
        "BatchNormalization": lambda attrs, x: nn.batch_norm(
            x[0], x[3], x[4], x[1], x[2], eps=epsilon_of(attrs)
        ),
        "InstanceNormalization": lambda attrs, x: nn.instance_norm(
            x[0], None, None, x[1], x[2], eps=epsilon_of(attrs)
        ),
        "GroupNormalization": lambda attrs, x: nn.group_norm(
            x[0], attrs["num_groups"], x[1], x[2], epsilon_of(attrs)
        ),
        "LayerNormalization": lambda attrs, x: nn.layer_norm(
            x[0], shape_of(attrs, x[0]), *x[1:], eps=epsilon_of(attrs)
        ),
        "RMSNormalization": lambda attrs, x: nn.rms_norm(
            x[0], shape_of(attrs, x[0]), x[1], eps=epsilon_of(attrs)
        ),
        "PRelu": lambda attrs, x: nn.prelu(*x),
    }

    def call(op: Op, arrays: Sequence[Array], attrs: Attrs) -> Array:
        name = str(op.names["torch"][0])
        result: Array = getattr(torch, name)(*map(torch.from_numpy, arrays)).numpy()
        return result

    return Runner(
        str(torch.__version__),
        {
            Form.OP: by_op(call),
            Form.TO: _to(lambda data, target: torch.broadcast_to(torch.from_numpy(data), target)),
            Form.COMPOUND: by_table(table, torch.from_numpy, lambda result: np.array(result)),
        },
    )


def load_jax() -> Runner:
    """JAX on the CPU, with its defaults."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    jax: Any = importlib.import_module("jax")
    jnp: Any = importlib.import_module("jax.numpy")
    table: Table = {
        "Gemm": lambda attrs, x: jnp.matmul(x[0], x[1]) + x[2],
        "MatMul": lambda attrs, x: jnp.matmul(*x),
        "Clip": lambda attrs, x: jnp.clip(*x),
        "BatchNormalization": _scaled,
        **normalisations(jnp.asarray),
    }

    def call(op: Op, arrays: Sequence[Array], attrs: Attrs) -> Array:
        return np.asarray(getattr(jnp, str(op.names["jax"][0]))(*map(jnp.asarray, arrays)))

    return Runner(
        str(jax.__version__),
        {
            Form.OP: by_op(call),
            Form.TO: _to(lambda data, target: jnp.broadcast_to(jnp.asarray(data), target)),
            Form.COMPOUND: by_table(table, jnp.asarray, np.asarray),
        },
    )


def load_tensorflow() -> Runner:
    """TensorFlow on the CPU, eager."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    tf: Any = importlib.import_module("tensorflow")

    def batch_norm(attrs: Attrs, x: Any) -> Any:
        data, scale, bias, mean, variance = x
        return tf.nn.batch_normalization(data, mean, variance, bias, scale, epsilon_of(attrs))

    table: Table = {
        "Gemm": lambda attrs, x: tf.linalg.matmul(x[0], x[1]) + x[2],
        "MatMul": lambda attrs, x: tf.linalg.matmul(*x),
        "Clip": lambda attrs, x: tf.clip_by_value(*x, *[x[0].dtype.max][len(x) - 2 :]),
        "BatchNormalization": batch_norm,
        **normalisations(tf.constant),
    }

    def call(op: Op, arrays: Sequence[Array], attrs: Attrs) -> Array:
        name = str(op.names["tensorflow"][0])
        if name == "truncatemod":  # has no public name outside raw_ops
            return np.asarray(tf.raw_ops.TruncateMod(x=arrays[0], y=arrays[1]))
        home = next(home for home in (tf, tf.math, tf.bitwise) if hasattr(home, name))
        return np.asarray(getattr(home, name)(*map(tf.constant, arrays)))

    def to(data: Array, target: tuple[int, ...]) -> Any:
        return tf.broadcast_to(tf.constant(data), tf.constant(target, tf.int32, (len(target),)))

    return Runner(
        str(tf.__version__),
        {
            Form.OP: by_op(call),
            Form.TO: _to(to),
            Form.COMPOUND: by_table(table, tf.constant, np.asarray),
        },
    )


#: Inputs and output of Paddle's ops that have other names than X, Y and Out.
_SLOTS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "atan2": (("X1", "X2"), "Out"),
    "bitwise_left_shift": (("x", "y"), "out"),
    "bitwise_right_shift": (("x", "y"), "out"),
}


def load_paddle() -> Runner:
    """Paddle on the CPU: element-wise ops as operators of a program, others as functions."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        paddle: Any = importlib.import_module("paddle")
        nn: Any = importlib.import_module("paddle.nn.functional")
    executor = paddle.static.Executor(paddle.CPUPlace())

    def call(op: Op, arrays: Sequence[Array], attrs: Attrs) -> Array:
        if op.name in ("prelu", "where"):  # the operators take fewer shapes than the functions
            function = nn.prelu if op.name == "prelu" else paddle.where
            return np.asarray(function(*map(paddle.to_tensor, arrays)).numpy())
        ins, out = _SLOTS.get(op.name, (("X", "Y"), "Out"))
        paddle.enable_static()
        try:
            with paddle.pir_utils.OldIrGuard():
                program = paddle.static.Program()
                with paddle.static.program_guard(program, paddle.static.Program()):
                    return one_op(program, op, (ins, out), arrays, attrs)
        finally:
            paddle.disable_static()

    def one_op(
        program: Any,
        op: Op,
        slots: tuple[tuple[str, ...], str],
        arrays: Sequence[Array],
        attrs: Attrs,
    ) -> Array:
        ins, out = slots
        block = program.global_block()
        variables = {
            slot: [paddle.static.data(slot, array.shape, str(array.dtype))]
            for slot, array in zip(ins, arrays, strict=True)
        }
        dtype = "bool" if op.name in COMPARISONS else str(arrays[-1].dtype)
        result = block.create_var(name="result", dtype=dtype)
        block.append_op(
            type=str(op.names["paddle"][0]),
            inputs=variables,
            outputs={out: [result]},
            attrs=dict(attrs),
        )
        feed = dict(zip(ins, arrays, strict=True))
        return np.asarray(executor.run(program, feed=feed, fetch_list=[result])[0])

    table: Table = {
        "Gemm": lambda attrs, x: paddle.addmm(x[2], x[0], x[1]),
        "MatMul": lambda attrs, x: paddle.matmul(*x),
        "Clip": lambda attrs, x: paddle.clip(*x),
        "BatchNormalization": lambda attrs, x: nn.batch_norm(
            x[0], x[3], x[4], x[1], x[2], epsilon=epsilon_of(attrs)
        ),
        "InstanceNormalization": lambda attrs, x: nn.instance_norm(
            x[0], weight=x[1], bias=x[2], eps=epsilon_of(attrs)
        ),
        "GroupNormalization": lambda attrs, x: nn.group_norm(
            x[0], attrs["num_groups"], epsilon=epsilon_of(attrs), weight=x[1], bias=x[2]
        ),
        "LayerNormalization": lambda attrs, x: nn.layer_norm(
            x[0], list(x[0].shape[attrs.get("axis", -1) :]), *x[1:], epsilon=epsilon_of(attrs)
        ),
        "PRelu": lambda attrs, x: nn.prelu(*x),
    }
    return Runner(
        str(paddle.__version__),
        {
            Form.OP: by_op(call),
            Form.TO: _to(
                lambda data, target: paddle.broadcast_to(
                    paddle.to_tensor(data), list(target)
                ).numpy()
            ),
            Form.COMPOUND: by_table(table, paddle.to_tensor, lambda result: np.asarray(result)),
        },
    )
