"""The optimisers that are installed, and their passes: each makes a model of a model."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import onnx

Optimise = Callable[[onnx.ModelProto], onnx.ModelProto]

#: ONNX Runtime's levels whose models can be written and read.
LEVELS = {
    "onnxruntime basic": "ORT_ENABLE_BASIC",
    "onnxruntime extended": "ORT_ENABLE_EXTENDED",
}
#: A part of onnxslim that is no pattern of its registry.
SHAPE_INFERENCE = "shape inference"


def optimisers(*, passes: bool = False) -> Iterator[tuple[str, Optimise]]:
    """Yield each installed optimiser by name; with `passes` also each pass of onnxoptimizer."""
    if find_spec("onnxsim") is not None:
        yield "onnxsim", _onnxsim
    if find_spec("onnxslim") is not None:
        yield "onnxslim", _onnxslim
    if find_spec("onnxscript") is not None:
        yield "onnxscript", _onnxscript
    if find_spec("onnxoptimizer") is not None:
        yield "onnxoptimizer", _onnxoptimizer(*_passes())
        for name in _passes() if passes else ():
            yield f"onnxoptimizer:{name}", _onnxoptimizer(name)
    if find_spec("onnxruntime") is not None:
        for name, level in LEVELS.items():
            yield name, _onnxruntime(level)


def without(tool: str, name: str) -> Optimise | None:
    """An installed optimiser with all of its passes but one; None where it cannot leave it out."""
    if tool == "onnxsim":
        return partial(_onnxsim, skipped_optimizers=[name])
    if tool == "onnxslim" and name == SHAPE_INFERENCE:
        return partial(_onnxslim, no_shape_infer=True)
    if tool == "onnxslim":
        return partial(_onnxslim, skip_fusion_patterns=[name])
    if tool == "onnxoptimizer":
        return _onnxoptimizer(*(one for one in _passes() if one != name))
    if tool in LEVELS:
        return _onnxruntime(LEVELS[tool], [name])
    return None


def alone(tool: str, name: str) -> Optimise | None:
    """One pass of an installed optimiser; None where it cannot run one alone."""
    if tool == "onnxoptimizer":
        return _onnxoptimizer(name)
    if tool == "onnxscript":
        return partial(_onnxscript_rule, name)
    if tool == "onnxslim":
        return partial(_onnxslim_alone, name)
    return None


def _onnxsim(model: onnx.ModelProto, **options: Any) -> onnx.ModelProto:
    import onnxsim

    result: onnx.ModelProto = onnxsim.simplify(model, check_n=0, **options)[0]
    return result


def _onnxslim(model: onnx.ModelProto, **options: Any) -> onnx.ModelProto:
    import onnxslim

    result: onnx.ModelProto = onnxslim.slim(_copy(model), **options)
    return result


def _onnxslim_alone(name: str, model: onnx.ModelProto) -> onnx.ModelProto:
    from onnxslim.core.optimization import OptimizationSettings
    from onnxslim.core.pattern.registry import DEFAULT_FUSION_PATTERNS

    others = [key for key in OptimizationSettings.keys() if key != "graph_fusion"]  # noqa: SIM118
    patterns = [pattern for pattern in DEFAULT_FUSION_PATTERNS if pattern != name]
    return _onnxslim(model, skip_optimizations=others, skip_fusion_patterns=patterns)


def _onnxscript(model: onnx.ModelProto) -> onnx.ModelProto:
    from onnxscript import optimizer

    result: onnx.ModelProto = optimizer.optimize(_copy(model))
    return result


def _onnxscript_rule(name: str, model: onnx.ModelProto) -> onnx.ModelProto:
    from onnxscript.rewriter import rewrite
    from onnxscript.rewriter.rules import common

    rules = getattr(common, name).commute()
    result: onnx.ModelProto = rewrite(_copy(model), pattern_rewrite_rules=rules)
    return result


def _passes() -> list[str]:
    import onnxoptimizer

    names: list[str] = onnxoptimizer.get_fuse_and_elimination_passes()
    return names


def _onnxoptimizer(*names: str) -> Optimise:
    def optimise(model: onnx.ModelProto) -> onnx.ModelProto:
        import onnxoptimizer

        result: onnx.ModelProto = onnxoptimizer.optimize(model, list(names))
        return result

    return optimise


def _onnxruntime(level: str, disabled: Sequence[str] = ()) -> Optimise:
    def optimise(model: onnx.ModelProto) -> onnx.ModelProto:
        import onnxruntime

        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder, "optimised.onnx")
            options: Any = onnxruntime.SessionOptions()
            options.optimized_model_filepath = str(output)
            options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
            options.log_severity_level = 4
            onnxruntime.InferenceSession(
                model.SerializeToString(),
                options,
                providers=["CPUExecutionProvider"],
                disabled_optimizers=list(disabled),
            )
            return onnx.load(str(output))

    return optimise


def _copy(model: onnx.ModelProto) -> onnx.ModelProto:
    twin = onnx.ModelProto()
    twin.CopyFrom(model)
    return twin
