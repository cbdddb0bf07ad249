"""Paddle on the CPU: functions, and operators of old static programs, which have an `axis`."""

from __future__ import annotations

import contextlib
import importlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..task import Array, Form
from . import Absent, Attrs, Function, ModelFile, Runner, Shape, by_table, epsilon_of, own_names

#: Operators whose results are truth values.
_COMPARISONS = frozenset(
    ("equal", "not_equal", "less_than", "less_equal", "greater_than", "greater_equal")
)
#: Inputs and output of operators that have other names than X, Y and Out.
_SLOTS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "atan2": (("X1", "X2"), "Out"),
    "bitwise_left_shift": (("x", "y"), "out"),
    "bitwise_right_shift": (("x", "y"), "out"),
}


class _Paddle:
    """Paddle, loaded."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.paddle: Any = importlib.import_module("paddle")
            self.nn: Any = importlib.import_module("paddle.nn.functional")
        # Paddle 2 has no other intermediate representation.
        self.old_representation = getattr(
            self.paddle.pir_utils, "OldIrGuard", contextlib.nullcontext
        )
        self.executor = self.paddle.static.Executor(self.paddle.CPUPlace())
        # The operators `prelu` and `where` take fewer shapes than the functions.
        self.functions = {
            "add": self.paddle.add,
            "subtract": self.paddle.subtract,
            "prelu": self.nn.prelu,
            "where": self.paddle.where,
        }
        self.spreads: Mapping[str, Callable[..., Any]] = {
            "expand": self.paddle.expand,
            "broadcast_to": self.paddle.broadcast_to,
        }

    def call(self, name: str, attrs: Attrs, arrays: Sequence[Array], target: Shape) -> Array:
        if name in self.functions:
            return np.asarray(self.functions[name](*map(self.paddle.to_tensor, arrays)).numpy())
        if name in self.spreads:
            return np.asarray(
                self.spreads[name](self.paddle.to_tensor(arrays[0]), list(target)).numpy()
            )
        if name == "expand_v2":
            attrs = {"shape": list(target)}
        self.paddle.enable_static()
        try:
            with self.old_representation():
                program = self.paddle.static.Program()
                with self.paddle.static.program_guard(program, self.paddle.static.Program()):
                    return self._one_operator(program, name, attrs, arrays)
        finally:
            self.paddle.disable_static()

    def _one_operator(
        self, program: Any, name: str, attrs: Attrs, arrays: Sequence[Array]
    ) -> Array:
        """Runs one operator of the old intermediate representation, which alone has `axis`."""
        slots, out = _SLOTS.get(name, (("X", "Y"), "Out"))
        feed = dict(zip(slots, arrays, strict=False))
        block = program.global_block()
        variables = {}
        for slot, array in feed.items():
            variable = block.create_var(name=slot, shape=list(array.shape), dtype=str(array.dtype))
            variable.desc.set_need_check_feed(False)
            variables[slot] = [variable]
        dtype = "bool" if name in _COMPARISONS else str(arrays[-1].dtype)
        result = block.create_var(name="result", dtype=dtype)
        block.append_op(type=name, inputs=variables, outputs={out: [result]}, attrs=dict(attrs))
        return np.asarray(self.executor.run(program, feed=feed, fetch_list=[result.name])[0])

    def open_file(self, path: str, _: Sequence[str]) -> ModelFile:
        """A model by Paddle's predictor, without its fusions; it hands out the outputs alone."""
        inference: Any = importlib.import_module("paddle.inference")
        config = inference.Config(path, str(Path(path).with_suffix(".pdiparams")))
        config.disable_gpu()
        config.disable_glog_info()
        config.disable_mkldnn()  # its kernels refuse some normalisations
        config.switch_ir_optim(False)
        config.set_cpu_math_library_num_threads(1)
        predictor = inference.create_predictor(config)
        names, results = predictor.get_input_names(), predictor.get_output_names()

        def compute(feeds: Mapping[int, Array], wanted: Sequence[int | str]) -> Sequence[Array]:
            for name in wanted:
                if isinstance(name, str):
                    raise Absent(f"Paddle's predictor does not hand out {name!r}, no output")
            for k, array in feeds.items():
                handle = predictor.get_input_handle(names[k])
                handle.reshape(list(array.shape))
                handle.copy_from_cpu(np.ascontiguousarray(array))
            predictor.run()
            every = [predictor.get_output_handle(name).copy_to_cpu() for name in results]
            return [np.asarray(every[k]) for k in wanted if isinstance(k, int)]

        return ModelFile([(name,) for name in names], [(name,) for name in results], compute)

    def compounds(self) -> Mapping[str, Function]:
        """Functions by ONNX op."""
        return {
            "Gemm": lambda attrs, x: self.paddle.addmm(x[2], x[0], x[1]),
            "MatMul": lambda attrs, x: self.paddle.matmul(*x),
            "Clip": lambda attrs, x: self.paddle.clip(*x),
            "BatchNormalization": lambda attrs, x: self.nn.batch_norm(
                x[0], x[3], x[4], x[1], x[2], epsilon=epsilon_of(attrs)
            ),
            "InstanceNormalization": lambda attrs, x: self.nn.instance_norm(
                x[0], weight=x[1], bias=x[2], eps=epsilon_of(attrs)
            ),
            "GroupNormalization": lambda attrs, x: self.nn.group_norm(
                x[0], attrs["num_groups"], epsilon=epsilon_of(attrs), weight=x[1], bias=x[2]
            ),
            "LayerNormalization": lambda attrs, x: self.nn.layer_norm(
                x[0], list(x[0].shape[attrs.get("axis", -1) :]), *x[1:], epsilon=epsilon_of(attrs)
            ),
            "PRelu": lambda attrs, x: self.nn.prelu(*x),
        }


def load() -> Runner:
    """Imports Paddle."""
    engine = _Paddle()
    return Runner(
        str(engine.paddle.__version__),
        engine.call,
        # Paddle's checks surface as these; AssertionError is raised by its Python layers.
        (ValueError, RuntimeError, OSError, AssertionError),
        own_names("paddle"),
        "broadcast_to",
        {Form.COMPOUND: by_table(engine.compounds(), engine.paddle.to_tensor, np.asarray)},
        engine.open_file,
    )
