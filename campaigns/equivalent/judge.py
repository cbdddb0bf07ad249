"""Verdicts on pairs of models beside what runs on ONNX Runtime show."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

import zerostride as zs
from zerostride.errors import ZerostrideError

from .draw import draw
from .mutate import mutate
from .optimisers import optimisers

#: Sizes of the runs, by name: unequal ones, ones, and none.
_SIZES = (
    *({"N": 2, "M": 3}, {"N": 5, "M": 2}, {"N": 1, "M": 4}, {"N": 3, "M": 1}),
    *({"N": 2, "M": 0}, {"N": 0, "M": 2}),
)
#: A difference that rounding does not make.
_FAR = 1e-3


@dataclass
class Tally:
    """The results of a campaign.

    Attributes:
        counts: by who made the second model, the verdict, and what runs show.
        faults: verdicts that runs contradict.
        undecided: pairs that are undecided, with the reason.
        different: differences in what an optimiser made.
    """

    counts: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    undecided: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)


def judge(
    cases: int, seed: int, first: int = 0, mutants: int = 4, *, passes: bool = False
) -> Iterator[Tally]:
    """Yield the tally after each case."""
    tally = Tally()
    every = dict(optimisers(passes=passes))
    for number in range(first, first + cases):
        model = draw(seed * 1_000_003 + number)
        for name, optimise in every.items():
            try:
                other = optimise(model)
            except Exception as error:  # noqa: BLE001 - whatever an optimiser raises
                tally.counts[name, "not made", type(error).__name__] += 1
                continue
            compare(tally, name, f"case {number}", model, other)
        for k in range(mutants):
            mutant = mutate(model, number * 101 + k)
            if mutant is not None:
                compare(tally, "mutant", f"case {number}.{k}: {mutant[1]}", model, mutant[0])
        yield tally


def compare(
    tally: Tally,
    name: str,
    case: str,
    model: onnx.ModelProto,
    other: onnx.ModelProto,
    *,
    runs: bool = True,
) -> None:
    """Counts the verdict of a pair, and with `runs` what runs of drawn models show."""
    shown = seen(model, other) if runs else "not run"
    if shown == "fails":
        tally.counts[name, "no model", shown] += 1
        return
    try:
        report = zs.equivalent(model, other)
    except ZerostrideError as error:
        tally.counts[name, "refused", shown] += 1
        if shown == "same":
            tally.faults.append(f"{name} {case}: refused: {error}")
        return
    result = report.equivalence
    assert result is not None
    verdict = str(result.verdict)
    tally.counts[name, verdict, shown] += 1
    equal = verdict in ("equal", "rounded")
    if (equal and shown == "differs") or (verdict == "different" and shown == "same"):
        tally.faults.append(f"{name} {case}: {verdict}, and runs show {shown}")
    elif verdict == "undecided":
        why = next((o.region.why for o in result.outputs if o.region is not None), "")
        tally.undecided.append(f"{name} {case}: runs show {shown}; {why}")
    elif verdict == "different" and name != "mutant":
        tally.different.append(f"{name} {case}")


def seen(model: onnx.ModelProto, other: onnx.ModelProto) -> str:
    """What runs show: "same", "differs", or "fails" where the first or the second does not run."""
    sessions = [_session(one) for one in (model, other)]
    if None in sessions:
        return "fails"
    ran = 0
    shape = [d.dim_param or d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    for sizes, seed in itertools.product(_SIZES, range(2)):
        numbers = np.random.default_rng(seed)
        x = numbers.uniform(-1.5, 1.5, [sizes.get(n, n) for n in shape]).astype(np.float32)
        results = [_run(session, x) for session in sessions]
        if results[0] is None:
            continue  # the second may work for more sizes
        if results[1] is None:
            return "differs"
        ran += 1
        if results[0].shape != results[1].shape:
            return "differs"
        scale = np.abs(results[0]).max(initial=1e-6)
        apart = np.abs(results[0] - results[1])
        if not np.array_equal(np.isnan(results[0]), np.isnan(results[1])):
            return "differs"
        if np.nan_to_num(apart).max(initial=0) > _FAR * scale:
            return "differs"
    return "same" if ran else "fails"


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


def _run(session: Any, x: Any) -> Any:
    try:
        return session.run(None, {session.get_inputs()[0].name: x})[0]
    except Exception:  # noqa: BLE001 - whatever the runtime raises
        return None
