"""A model that a converter refuses, as another that means the same: the second try.

The sizes of its inputs become numbers, ONNX Runtime computes what depends on no input, and ops that
the converter lacks become other ops. What comes of it is proven on the engine, as everything is.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from ...models.formats.child import ask
from ...models.formats.onnx.prepared import RULES, rewritten, with_functions, with_shapes
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
#: Ops that pnnx writes so that ncnn does not load them, in some forms or in all.
_LEFT_BY_PNNX = (RULES.keys() - {"Pad"}) | {"Celu", "Mish", "RMSNormalization", "Swish"}
#: A name of an op in a converter's message.
_OP = re.compile(r"[A-Z]\w+")


def prepared(
    converter: str, said: str, model: Path, goal: Path, inputs: Mapping[str, Array], seconds: float
) -> tuple[str, ...]:
    """Writes the model for a second try; the ops that were rewritten.

    Args:
        converter: its name.
        said: why it refused the model, with the names of ops that it lacks.
        model: an ONNX model.
        goal: the file to write.
        inputs: arrays of the model's inputs, for their shapes.
        seconds: the longest time.

    Raises:
        ModelError: the model cannot be read.
    """
    lacking = frozenset(_OP.findall(said)) | (_LEFT_BY_PNNX if converter == "pnnx" else {"Where"})
    with tempfile.TemporaryDirectory(prefix="zerostride-") as place:
        sized = Path(place, "sized.onnx")
        with_shapes(model, sized, {name: array.shape for name, array in inputs.items()})
        inlined = with_functions(sized, lacking)
        folds = find_spec("onnxruntime") is not None
        if not folds or ask(_FOLD, str(sized), str(goal), seconds=seconds).failure is not None:
            shutil.copyfile(sized, goal)
        return (*inlined, *rewritten(goal, lacking))


__all__ = ["prepared"]
