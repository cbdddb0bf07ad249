"""A model that a converter refuses, as another that means the same: the second try.

The sizes of its inputs become numbers, ONNX Runtime computes what depends on no input, and ops that
the converter lacks become other ops. What comes of it is proven on the engine, as everything is.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

from ...models.formats.child import ask
from ...models.formats.onnx.prepared import rewritten, with_shapes
from ..task import Array

#: Computes what is constant, and leaves the ops of the standard.
_FOLD = """
import onnxruntime
options = onnxruntime.SessionOptions()
options.log_severity_level = 4
level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
options.graph_optimization_level = level
options.optimized_model_filepath = sys.argv[2]
onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
"""
#: What a converter lacks, or writes so that the engine does not load it; run with the releases of
#: `tests/conformance/releases.txt` on ONNX's own tests of each op.
_LACKING: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "ovc": frozenset({"STFT"}),
        "mnnconvert": frozenset({"IsNaN", "STFT", "Where"}),
        "pnnx": frozenset(
            {
                *("IsNaN", "ReduceMax", "ReduceMin", "ReduceSumSquare", "STFT", "Slice", "Split"),
                "Where",
            }
        ),
    }
)


def prepared(
    converter: str, model: Path, goal: Path, inputs: Mapping[str, Array], seconds: float
) -> tuple[str, ...]:
    """Writes the model for a second try; the ops that were rewritten.

    Args:
        converter: its name.
        model: an ONNX model.
        goal: the file to write.
        inputs: arrays of the model's inputs, for their shapes.
        seconds: the longest time.

    Raises:
        ModelError: the model cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="zerostride-") as place:
        sized = Path(place, "sized.onnx")
        with_shapes(model, sized, {name: array.shape for name, array in inputs.items()})
        folded = find_spec("onnxruntime") is not None
        if folded and ask(_FOLD, str(sized), str(goal), seconds=seconds).failure is not None:
            folded = False
        if not folded:
            goal.write_bytes(sized.read_bytes())
        return rewritten(goal, _LACKING.get(converter, frozenset()))


__all__ = ["prepared"]
