"""A culprit alone: its operands, a model file of its nodes, and a script that runs it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...errors import printable
from ...models.bisect.sides import Fault
from ...models.bisection import Repro
from ...models.execute.cut import Tensor, constants_of, cut_out

#: Operands of more bytes are not kept.
_MOST_BYTES = 2**26

#: How an engine computes the model file, as lines of a script.
_RUNS: Mapping[str, str] = {
    "onnxruntime": """\
    import onnxruntime
    return onnxruntime.InferenceSession("repro.onnx").run(None, feeds)[0]
""",
    "openvino": """\
    import openvino
    precision = {"INFERENCE_PRECISION_HINT": "f32"}
    return openvino.Core().compile_model("repro.onnx", "CPU", precision)(feeds)[0]
""",
    "ncnn": """\
    import ncnn, pnnx
    subprocess.run([pnnx.EXEC_PATH, "repro.onnx", "fp16=0"], stdout=subprocess.DEVNULL, check=True)
    net = ncnn.Net()
    net.load_param("repro.ncnn.param")
    net.load_model("repro.ncnn.bin")
    extractor = net.create_extractor()
    for k, x in enumerate(feeds.values()):  # without the batch axis
        sample = x[0] if x.ndim > 1 and len(x) == 1 else x
        extractor.input(f"in{k}", ncnn.Mat(np.ascontiguousarray(sample)).clone())
    return np.array(extractor.extract("out0")[1])
""",
    "mnn": """\
    import _tools, MNN.expr as expr, MNN.nn as nn  # the program mnnconvert installs packages
    words = ["-f", "ONNX", "--modelFile", "repro.onnx", "--MNNModel", "repro.mnn", "--bizCode", "z"]
    _tools.mnnconvert(["mnnconvert", *words])
    net = nn.load_module_from_file("repro.mnn", list(feeds), ["y"])
    variables = [expr.const(x, list(x.shape), expr.NCHW) for x in feeds.values()]
    (y,) = net.forward(variables)
    return np.array(expr.convert(y, expr.NCHW).read()).reshape(y.shape)
""",
}

#: Compares the numbers of the report, for engines that run no ONNX file.
_RECORDED = """\
    return data["actual"]
"""

_SCRIPT = '''"""{node} ({op}): {detail}

python repro.py [ENGINE]: computes repro.onnx on the operands of repro.npz, and compares.
"""
import subprocess, sys
import numpy as np

data = np.load("repro.npz")
feeds = {{name: data[name] for name in {inputs}}}
{functions}
engines = {{{table}}}
name = sys.argv[1] if len(sys.argv) > 1 else "{other}"
result, expected = np.asarray(engines[name](), float), data["expected"]
if result.size != expected.size:
    sys.exit(f"{{name}}: shape {{result.shape}}, expected {{expected.shape}}")
error = np.abs(result.reshape(expected.shape) - expected)
place = np.unravel_index(error.argmax(), error.shape)
first = result.flat[error.argmax()]
print(f"{{name}}: {{first}}, expected {{expected[place]}}, at", *map(int, place))
'''


def repro(fault: Fault, engine: str, other: str) -> Repro | None:
    """The repro of a fault; None without both results, or where they are too many numbers.

    Args:
        fault: the fault.
        engine, other: the engines of the model and of the other side.
    """
    if fault.expected is None or fault.actual is None:
        return None
    values = list(fault.part.operands)
    arrays = {f"x{k}": np.array(fault.values[id(value)]) for k, value in enumerate(values)}
    inputs = tuple(arrays)
    constants = constants_of(fault.part)
    arrays |= {f"c{k}": array for k, array in enumerate(constants.values())}
    arrays |= {"expected": np.array(fault.expected), "actual": np.array(fault.actual)}
    if sum(array.nbytes for array in arrays.values()) > _MOST_BYTES:
        return None
    model = None
    if fault.part.graph.format == "onnx":
        ends = {key: Tensor.of(arrays[key]) for key in inputs}
        model = cut_out(fault.part, ends, ("y", Tensor.of(arrays["expected"])))
    return Repro(arrays, _script(fault, inputs, (engine, other), model), model)


def _script(
    fault: Fault, inputs: tuple[str, ...], engines: tuple[str, str], model: bytes | None
) -> str:
    runs = {name: _RUNS.get(name, "") if model is not None else "" for name in engines}
    bodies = {name: body or _RECORDED for name, body in runs.items()}
    node = fault.part.nodes[-1]
    return _SCRIPT.format(
        node=printable(node.path).replace("\\", "/"),
        op=printable(node.op),
        detail=fault.judged.detail,
        inputs=list(inputs),
        functions="".join(f"\ndef {name}():\n{body}" for name, body in bodies.items()),
        table=", ".join(f'"{name}": {name}' for name in bodies),
        other=engines[1],
    )
