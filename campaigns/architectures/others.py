"""Whether a converted file agrees on other inputs, too: of other seeds, of another distribution."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import zerostride as zs
from zerostride.models.findings import Outcome
from zerostride.models.options import ModelOptions
from zerostride.runtimes.feeds import fed

#: The seeds after the one with which a file was proven.
SEEDS = (1, 2)
_SKEWED, _SKEWED_SEED = "skewed", 3
_WRONG = frozenset({Outcome.DIFFERS, Outcome.REFUSED, Outcome.CRASHED})


def disagreement(model: Path, engine: str, file: Path) -> str:
    """The first difference between a model and its conversion on other inputs; "" for none.

    Args:
        model: an ONNX file.
        engine: the engine that runs the conversion.
        file: the conversion, in the folder with the inputs that proved it.
    """
    with np.load(file.with_name("inputs.npz")) as arrays:
        shapes = {name: arrays[name].shape for name in arrays}
    for name, inputs, seed in _others(model, shapes):
        how: dict[str, Any] = {"inputs": inputs, "input_shapes": shapes, "seed": seed}
        report = zs.verify(str(model), engine, against=file, **how)
        if name == _SKEWED and any(check.outcome is Outcome.NOT_RUN for check in report.checks):
            continue  # some models make nothing but NaN of them, which says nothing
        for check in report.checks:
            if check.outcome in _WRONG:
                return f"{name}: {check.op} {check.node}: {check.detail}"[:200]
    return ""


def _others(
    model: Path, shapes: Mapping[str, tuple[int, ...]]
) -> Iterator[tuple[str, Mapping[str, Any] | None, int]]:
    """Other seeds, and floats of another distribution: half are 0, the others are skewed."""
    for seed in SEEDS:
        yield f"seed {seed}", None, seed
    rng = np.random.default_rng(_SKEWED_SEED)
    arrays = fed(ModelOptions(None, input_shapes=shapes), model, {}, _SKEWED_SEED).runs[0]
    skewed = {
        name: (array * abs(array) * (rng.random(array.shape) < 0.5)).astype(array.dtype)
        for name, array in arrays.items()
        if array.dtype.kind == "f"
    }
    yield _SKEWED, {**arrays, **skewed}, _SKEWED_SEED


if __name__ == "__main__":
    print(json.dumps(disagreement(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))))
