"""Verdicts on drawn models and mutants beside what runs on ONNX Runtime show."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from .draw import draw
from .mutate import mutants_of
from .optimisers import optimisers
from .result import NOT_MADE, UNCHANGED, Result
from .steps import compared, fingerprint, results
from .tally import MUTANT, NOT_RUN, Tally

#: Sizes of the runs, by name: unequal ones, ones, and none.
_SIZES = (
    *({"N": 2, "M": 3}, {"N": 5, "M": 2}, {"N": 1, "M": 4}, {"N": 3, "M": 1}),
    *({"N": 2, "M": 0}, {"N": 0, "M": 2}),
)
#: The largest numbers of the runs. Small ones and zeros show what is added to keep a root or a
#: logarithm finite.
_SCALES = (1.5, 3.0, 0.1, 0.0)
#: A difference that rounding does not make.
_FAR = 1e-3


def judge(
    cases: int, seed: int, first: int = 0, mutants: int = 4, *, passes: bool = False
) -> Iterator[Tally]:
    """Yield the tally after each case.

    Args:
        cases: how many models are drawn.
        seed: of the draws; the same seed draws the same models.
        first: the number of the first case.
        mutants: how many mutants each model has.
        passes: whether each pass of an optimiser is tried alone.
    """
    tally = Tally()
    every = optimisers().values()
    for number in range(first, first + cases):
        model = draw(seed * 1_000_003 + number)
        for optimiser in every:
            case = f"case {number}"
            one = [
                (result, _shown(result, model, other))
                for result, other in results(model, optimiser, compared, passes=passes)
            ]
            tally.add(optimiser.name, case, one)
        _judge_mutants(tally, model, number, mutants)
        yield tally


def _judge_mutants(tally: Tally, model: onnx.ModelProto, number: int, count: int) -> None:
    own = fingerprint(model)
    for k, (mutant, change) in enumerate(mutants_of(model, number * 101, count)):
        if fingerprint(mutant) != own:
            result = compared(model, mutant)
            shown = _shown(result, model, mutant)
            tally.add(MUTANT, f"case {number}.{k}: {change}", [(result, shown)])


def _shown(result: Result, model: onnx.ModelProto, other: onnx.ModelProto | None) -> str:
    if other is None or result.end in (UNCHANGED, NOT_MADE):
        return NOT_RUN
    return seen(model, other)


def seen(model: onnx.ModelProto, other: onnx.ModelProto) -> str:
    """The runs' result: "same", "differs", or "fails" if the first or the second does not run."""
    sessions = [_session(one) for one in (model, other)]
    if None in sessions:
        return "fails"
    ran = 0
    for sizes, scale in itertools.product(_SIZES, _SCALES):
        inputs = _inputs(model, sizes, np.random.default_rng(0), scale)
        ours, theirs = (_run(session, inputs) for session in sessions)
        if ours is None:
            continue  # the second may work for more sizes
        if theirs is None or _far(ours, theirs):
            return "differs"
        ran += 1
    return "same" if ran else "fails"


def _inputs(
    model: onnx.ModelProto, sizes: dict[str, int], numbers: np.random.Generator, scale: float
) -> dict[str, Any]:
    inputs: dict[str, Any] = {}
    for value in model.graph.input:
        tensor = value.type.tensor_type
        shape = [sizes.get(d.dim_param, d.dim_value) for d in tensor.shape.dim]
        if tensor.elem_type == TensorProto.BOOL:
            inputs[value.name] = numbers.integers(0, 2, shape).astype(bool)
        else:
            inputs[value.name] = (scale * numbers.uniform(-1, 1, shape)).astype(np.float32)
    return inputs


def _far(ours: Any, theirs: Any) -> bool:
    """Whether two results differ by more than rounding."""
    if ours.shape != theirs.shape or not np.array_equal(np.isnan(ours), np.isnan(theirs)):
        return True
    finite = np.where(np.isfinite(ours), ours, 0)
    scale = np.abs(finite).max(initial=1e-6)
    with np.errstate(invalid="ignore"):
        apart = np.where(ours == theirs, 0, np.abs(ours - theirs))
    return bool(np.nan_to_num(apart).max(initial=0) > _FAR * scale)


def _session(model: onnx.ModelProto) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        return onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception:  # noqa: BLE001 - whatever the runtime raises
        return None


def _run(session: Any, inputs: dict[str, Any]) -> Any:
    names = [one.name for one in session.get_inputs()]  # an optimiser may drop unread ones
    try:
        return session.run(None, {name: inputs[name] for name in names})[0]
    except Exception:  # noqa: BLE001 - whatever the runtime raises
        return None
