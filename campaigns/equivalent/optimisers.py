"""The optimisers that are installed, and their passes: each makes a model of a model."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import onnx

Optimise = Callable[[onnx.ModelProto], onnx.ModelProto]


def optimisers(*, passes: bool = False) -> Iterator[tuple[str, Optimise]]:
    """Yield each installed optimiser by name; with `passes` also each pass of onnxoptimizer."""
    if find_spec("onnxsim") is not None:
        yield "onnxsim", _onnxsim
    if find_spec("onnxslim") is not None:
        yield "onnxslim", _onnxslim
    if find_spec("onnxscript") is not None:
        yield "onnxscript", _onnxscript
    if find_spec("onnxoptimizer") is not None:
        yield "onnxoptimizer", _onnxoptimizer(None)
        for name in _passes() if passes else ():
            yield f"onnxoptimizer:{name}", _onnxoptimizer(name)
    if find_spec("onnxruntime") is not None:
        yield "onnxruntime basic", _onnxruntime("ORT_ENABLE_BASIC")
        yield "onnxruntime extended", _onnxruntime("ORT_ENABLE_EXTENDED")


def _onnxsim(model: onnx.ModelProto) -> onnx.ModelProto:
    import onnxsim

    result: onnx.ModelProto = onnxsim.simplify(model, check_n=0)[0]
    return result


def _onnxslim(model: onnx.ModelProto) -> onnx.ModelProto:
    import onnxslim

    result: onnx.ModelProto = onnxslim.slim(_copy(model))
    return result


def _onnxscript(model: onnx.ModelProto) -> onnx.ModelProto:
    from onnxscript import optimizer

    result: onnx.ModelProto = optimizer.optimize(_copy(model))
    return result


def _passes() -> list[str]:
    import onnxoptimizer

    names: list[str] = onnxoptimizer.get_fuse_and_elimination_passes()
    return names


def _onnxoptimizer(name: str | None) -> Optimise:
    def optimise(model: onnx.ModelProto) -> onnx.ModelProto:
        import onnxoptimizer

        names = _passes() if name is None else [name]
        result: onnx.ModelProto = onnxoptimizer.optimize(model, names)
        return result

    return optimise


def _onnxruntime(level: str) -> Optimise:
    def optimise(model: onnx.ModelProto) -> onnx.ModelProto:
        import onnxruntime

        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder, "optimised.onnx")
            options: Any = onnxruntime.SessionOptions()
            options.optimized_model_filepath = str(output)
            options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
            options.log_severity_level = 4
            onnxruntime.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
            return onnx.load(str(output))

    return optimise


def _copy(model: onnx.ModelProto) -> onnx.ModelProto:
    twin = onnx.ModelProto()
    twin.CopyFrom(model)
    return twin
