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
from typing import NamedTuple

import numpy as np

from ...errors import ModelError
from ...models.formats.child import ask
from ...models.formats.onnx.prepared import COMPOUND_OPS, RULES
from ..task import Array

#: Writes the model, and answers with the ops that were rewritten, and the inputs that are floats
#: or have a number now. ONNX Runtime computes what is constant, and leaves the ops of the standard.
_PREPARE = """
load_package()
import pathlib
import shutil
from zerostride.models.formats.onnx import prepared
model, sized, goal = map(pathlib.Path, sys.argv[1:4])
shapes, lacking, folds, floats, numbers, ordered = map(json.loads, sys.argv[4:10])
lacking = frozenset(lacking)
prepared.with_shapes(model, sized, shapes)
held = prepared.with_decisions(sized, numbers)
ops = list(prepared.with_functions(sized, lacking))
if folds:
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.graph_optimization_level = level
    options.optimized_model_filepath = str(goal)
    # A Gemm between reshapes is a product again: onnx2tf takes even axes for others.
    left = ["MatMulAddFusion"] if ordered else None
    onnxruntime.InferenceSession(
        str(sized), options, providers=["CPUExecutionProvider"], disabled_optimizers=left)
else:
    shutil.copyfile(sized, goal)
ops += prepared.rewritten(goal, lacking)
inputs = prepared.with_floats(goal) if floats else None
if inputs is not None:
    ops += prepared.rewritten(goal, lacking)
if ordered:
    prepared.in_order(goal)
answer.write(json.dumps([list(dict.fromkeys(ops)), inputs, held]).encode())
"""
#: Ops that pnnx writes as they are where their sizes are numbers, whatever it says of open ones.
_BY_PNNX = frozenset({"Erf", "Pad"})
#: Ops that pnnx writes so that ncnn does not load them or takes them for others, in some forms or
#: in all.
_LEFT_BY_PNNX = (
    RULES.keys()
    | COMPOUND_OPS
    | {"Celu", "Mish", "RMSNormalization", "Swish"}
    | {"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp"}
)
#: Ops that are written as others in a second try, whatever a converter says of them: some masks
#: are none, and onnx2tf computes the norm of a line otherwise.
_ALWAYS = frozenset({"InstanceNormalization", "Where"})
#: A name of an op in a message; onnx2tf leaves those that LiteRT lacks to TensorFlow, as FlexErf.
_OP = re.compile(r"(?:Flex)?([A-Z]\w+)")


class Prepared(NamedTuple):
    """How a model was written for a second try.

    Attributes:
        ops: that were rewritten.
        floats: the inputs that are floats in place of whole numbers; None: none is, nor any number
            inside.
        held: the numbers of inputs that decide which branch of an If runs.
    """

    ops: tuple[str, ...]
    floats: list[str] | None
    held: Mapping[str, float]

    def inputs(self, arrays: Mapping[str, Array]) -> Mapping[str, Array]:
        """Arrays of the model's inputs, as the inputs of what was written."""
        floats = self.floats or ()
        return {
            name: array.astype(np.float32) if name in floats else array
            for name, array in arrays.items()
        }

    def __str__(self) -> str:
        what = [f"for {name}={number} alone" for name, number in self.held.items()]
        what += [f"{', '.join(self.ops)} as other ops"] if self.ops else []
        what += ["whole numbers as floats"] if self.floats is not None else []
        return ", and ".join(["with fixed sizes", *what])


def prepared(
    converter: str,
    named: str,
    model: Path,
    goal: Path,
    inputs: Mapping[str, Array],
    seconds: float,
    again: bool = True,
) -> Prepared:
    """Writes the model for a second try, in a child process; how.

    Args:
        converter: its name.
        named: why it refused the model, with the names of ops that it lacks.
        model: an ONNX model.
        goal: the file to write.
        inputs: arrays of the model's inputs, for their shapes.
        seconds: the longest time.
        again: whether the converter refused the model; otherwise no op is written as another one.

    Raises:
        ModelError: the model cannot be written so.
    """
    by_pnnx, ordered = converter == "pnnx", again and converter == "onnx2tf"
    ops = {*_OP.findall(named), *(_LEFT_BY_PNNX if by_pnnx else _ALWAYS if again else ())}
    lacking = sorted(ops - (_BY_PNNX if by_pnnx else frozenset()))
    floats = by_pnnx or ordered
    shapes = {name: array.shape for name, array in inputs.items()}
    single = {name: array.item() for name, array in inputs.items() if array.size == 1}
    failure: str | None = None
    for folds in (True, False) if find_spec("onnxruntime") is not None else (False,):
        with tempfile.TemporaryDirectory(prefix="zerostride-") as place:
            files = str(model.absolute()), str(Path(place, "sized.onnx")), str(goal.absolute())
            words = map(json.dumps, (shapes, lacking, folds, floats, single, ordered))
            output, failure = ask(_PREPARE, *files, *words, seconds=seconds)
        if failure is None:
            done, changed, held = json.loads(output)
            return Prepared(tuple(done), changed, {name: single[name] for name in held})
    raise ModelError(f"{model}: it cannot be written with other ops: {failure}")


__all__ = ["Prepared", "prepared"]
