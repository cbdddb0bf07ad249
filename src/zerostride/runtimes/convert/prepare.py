"""A model that a converter refuses, as another that means the same: the second try.

The sizes of its inputs become numbers, ONNX Runtime computes what depends on no input, and ops that
the converter lacks become other ops. What comes of it is proven on the engine, as everything is.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from ...errors import ModelError
from ...models.formats.child import ask
from ...models.formats.onnx.prepared import RULES
from ..task import Array

#: Writes the model, and answers with the ops that were rewritten. ONNX Runtime computes what is
#: constant, and leaves the ops of the standard.
_PREPARE = """
load_package()
import pathlib
import shutil
from zerostride.models.formats.onnx.prepared import rewritten, with_functions, with_shapes
model, sized, goal = map(pathlib.Path, sys.argv[1:4])
shapes, lacking, folds = map(json.loads, sys.argv[4:7])
with_shapes(model, sized, shapes)
ops = with_functions(sized, frozenset(lacking))
if folds:
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.graph_optimization_level = level
    options.optimized_model_filepath = str(goal)
    onnxruntime.InferenceSession(str(sized), options, providers=["CPUExecutionProvider"])
else:
    shutil.copyfile(sized, goal)
answer.write(json.dumps([*ops, *rewritten(goal, frozenset(lacking))]).encode())
"""
#: Ops that pnnx writes so that ncnn does not load them, in some forms or in all.
_LEFT_BY_PNNX = (RULES.keys() - {"Pad"}) | {"Celu", "Mish", "RMSNormalization", "Swish"}
#: A name of an op in a converter's message.
_OP = re.compile(r"[A-Z]\w+")


def prepared(
    converter: str, said: str, model: Path, goal: Path, inputs: Mapping[str, Array], seconds: float
) -> tuple[str, ...]:
    """Writes the model for a second try, in a child process; the ops that were rewritten.

    Args:
        converter: its name.
        said: why it refused the model, with the names of ops that it lacks.
        model: an ONNX model.
        goal: the file to write.
        inputs: arrays of the model's inputs, for their shapes.
        seconds: the longest time.

    Raises:
        ModelError: the model cannot be written so.
    """
    lacking = sorted({*_OP.findall(said), *(_LEFT_BY_PNNX if converter == "pnnx" else ("Where",))})
    shapes = {name: array.shape for name, array in inputs.items()}
    failure: str | None = None
    for folds in (True, False) if find_spec("onnxruntime") is not None else (False,):
        with tempfile.TemporaryDirectory(prefix="zerostride-") as place:
            files = str(model.absolute()), str(Path(place, "sized.onnx")), str(goal.absolute())
            words = map(json.dumps, (shapes, lacking, folds))
            output, failure = ask(_PREPARE, *files, *words, seconds=seconds)
        if failure is None:
            return tuple(json.loads(output))
    raise ModelError(f"{model}: it cannot be written with other ops: {failure}")


__all__ = ["prepared"]
