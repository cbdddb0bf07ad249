"""Engines that run graphs: ONNX Runtime and OpenVINO, on the CPU."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ....models.formats.openvino.write import Writer
from ....ops import Op
from ..task import Array, Form, Task
from . import Perform, Runner, by_op

#: ONNX attributes for ops that have their own names in the op table.
_MORE: Mapping[str, Mapping[str, Any]] = {
    "fmod": {"fmod": 1},
    "bitwise_left_shift": {"direction": "LEFT"},
    "bitwise_right_shift": {"direction": "RIGHT"},
}
#: The default op set of a task, and the file version for op sets up to 23.
_OPSET, _IR_VERSION = 21, 10


def one_node(task: Task, arrays: Sequence[Array]) -> bytes:
    """A model of one ONNX node; operands are inputs or weights, the result has any type."""
    helper: Any = importlib.import_module("onnx.helper")
    numpy_helper: Any = importlib.import_module("onnx.numpy_helper")
    names = [f"x{k}" for k in range(len(arrays))]
    fixed = task.constant or (False,) * len(arrays)
    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a, constant in zip(names, arrays, fixed, strict=True)
        if not constant
    ]
    weights = [
        numpy_helper.from_array(a, n)
        for n, a, constant in zip(names, arrays, fixed, strict=True)
        if constant
    ]
    left_out = {int(position) for position in task.attributes.get("", ())}
    placed = iter(names)
    count = len(names) + len(left_out)
    operands = ["" if k in left_out else next(placed) for k in range(count)]
    attributes = {key: value for key, value in task.attributes.items() if key}
    node = helper.make_node(task.op, operands, ["y"], **attributes)
    result = helper.make_empty_tensor_value_info("y")
    graph = helper.make_graph([node], "node", inputs, [result], weights)
    opset = helper.make_opsetid("", task.opset or _OPSET)
    ir = max(_IR_VERSION, helper.find_min_ir_version_for([opset], ignore_unknown=True))
    model = helper.make_model(graph, opset_imports=[opset], ir_version=ir)
    content: bytes = model.SerializeToString()
    return content


def one_layer(task: Task, arrays: Sequence[Array]) -> tuple[bytes, bytes, list[Array]]:
    """An IR of one layer, its weights, and the data of its inputs, in order."""
    net, ports, fed, left = Writer(), [], [], list(zip(arrays, task.constant, strict=True))
    numbers = task.attributes["numbers"]
    for k in range(len(arrays) + len(numbers)):
        if str(k) in numbers:
            listed = numbers[str(k)]
            array, constant = np.array(listed, np.int64).reshape(len(listed)), True
        else:
            array, constant = left.pop(0)
        if constant:
            ports.append(net.constant(f"x{k}", array))
        else:
            ports.append(net.parameter(f"x{k}", array.shape, str(array.dtype)))
            fed.append(array)
    data, version = task.attributes["data"], task.attributes["version"]
    dtype = str(arrays[0].dtype) if arrays else "float32"
    net.result(net.layer("y", task.op, version, data, ports, dtype))
    return net.text.encode(), bytes(net.weights), fed


def _fed(task: Task, arrays: Sequence[Array]) -> dict[str, Array]:
    fixed = task.constant or (False,) * len(arrays)
    return {
        f"x{k}": array
        for k, (array, constant) in enumerate(zip(arrays, fixed, strict=True))
        if not constant
    }


def load_onnxruntime() -> Runner:
    """ONNX Runtime, and onnx to write its models."""
    ort: Any = importlib.import_module("onnxruntime")
    importlib.import_module("onnx")
    ort.set_default_logger_severity(4)

    def session(model: bytes | str) -> Any:
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def node(task: Task, arrays: Sequence[Array]) -> Sequence[Array]:
        return [np.asarray(session(one_node(task, arrays)).run(None, _fed(task, arrays))[0])]

    def call(op: Op, arrays: Sequence[Array], attrs: Mapping[str, Any]) -> Array:
        task = Task(Form.NODE, str(op.names["onnx"][0]), _MORE.get(op.name, {}))
        return node(task, arrays)[0]

    def to(task: Task, arrays: Sequence[Array]) -> Sequence[Array]:
        target = np.array(task.target, np.int64).reshape(len(task.target))
        return node(Task(Form.NODE, "Expand"), [arrays[0], target])

    def file(task: Task, arrays: Sequence[Array]) -> Sequence[Array]:
        run = session(task.op)
        feeds = _named(task, [entry.name for entry in run.get_inputs()], arrays)
        names = [entry.name for entry in run.get_outputs()]
        results = dict(zip(names, run.run(None, feeds), strict=True))
        return [np.asarray(results[name]) for name in _in_order(task, names)]

    forms: Mapping[Form, Perform] = {
        Form.OP: by_op(call),
        Form.TO: to,
        Form.NODE: node,
        Form.FILE: file,
    }
    return Runner(str(ort.__version__), forms)


def _named(task: Task, names: Sequence[str], arrays: Sequence[Array]) -> dict[str, Array]:
    """The arrays by the names of the file's inputs; in order if the names differ."""
    inputs = list(task.attributes["inputs"])
    if set(names) <= set(inputs):
        return {name: arrays[inputs.index(name)] for name in names}
    if len(names) != len(inputs):
        raise ValueError(f"the file has the inputs {list(names)}; the model {inputs}")
    return dict(zip(names, arrays, strict=True))


def _in_order(task: Task, names: Sequence[str]) -> list[str]:
    """The file's outputs in the model's order."""
    wanted = list(task.attributes["outputs"])
    if set(wanted) <= set(names):
        return wanted
    if len(names) != len(wanted):
        raise ValueError(f"the file has the outputs {list(names)}; the model {wanted}")
    return list(names)


def load_openvino() -> Runner:
    """OpenVINO's CPU plugin, static shapes, in single precision."""
    ov: Any = importlib.import_module("openvino")
    ops: Any = importlib.import_module("openvino.opset15")
    inner: Any = importlib.import_module("openvino.opset15.ops")
    factory = inner.__dict__["_get_node_factory_opset15"]()
    core = ov.Core()
    core.set_property("CPU", {"INFERENCE_PRECISION_HINT": "f32"})

    def compute(node: Any, inputs: Sequence[Any], arrays: Sequence[Array]) -> Array:
        return np.array(core.compile_model(ov.Model([node], list(inputs)), "CPU")(list(arrays))[0])

    def call(op: Op, arrays: Sequence[Array], attrs: Mapping[str, Any]) -> Array:
        inputs = [ops.parameter(list(array.shape), dtype=array.dtype) for array in arrays]
        return compute(factory.create(op.names["openvino"][0], inputs), inputs, arrays)

    def to(task: Task, arrays: Sequence[Array]) -> Sequence[Array]:
        if task.attributes.get("onnx"):
            shape = np.array(task.target, np.int64).reshape(len(task.target))
            return node(Task(Form.NODE, "Expand", constant=(False, True)), [*arrays, shape])
        inputs = [ops.parameter(list(arrays[0].shape), dtype=arrays[0].dtype)]
        target = ops.constant(np.array(task.target, np.int64).reshape(len(task.target)))
        both = task.attributes.get("mode") == "bidirectional"
        mode = "BIDIRECTIONAL" if both else "NUMPY"
        broadcast = ops.broadcast(inputs[0], target, broadcast_spec=mode)
        return [compute(broadcast, inputs, arrays[:1])]

    def node(task: Task, arrays: Sequence[Array]) -> Sequence[Array]:
        compiled = core.compile_model(core.read_model(one_node(task, arrays)), "CPU")
        return [np.array(compiled(_fed(task, arrays))[0])]

    def layer(task: Task, arrays: Sequence[Array]) -> Sequence[Array]:
        text, weights, fed = one_layer(task, arrays)
        compiled = core.compile_model(core.read_model(text, weights), "CPU")
        return [np.array(compiled(fed)[0])]

    def file(task: Task, arrays: Sequence[Array]) -> Sequence[Array]:
        model = core.read_model(task.op)
        inputs = list(task.attributes["inputs"])
        # A port's own index is that of its parameter's output, so the position in the list counts.
        places = {
            name: k
            for k, port in enumerate(model.inputs)
            for name in (*port.get_names(), port.get_node().get_friendly_name())
        }
        named = len(inputs) == len({places.get(name) for name in inputs} - {None})
        order = [places[name] for name in inputs] if named else list(range(len(arrays)))
        if len(model.inputs) != len(arrays):
            raise ValueError(f"the file has {len(model.inputs)} inputs, the model {len(arrays)}")
        fed = dict(zip(order, arrays, strict=True))
        model.reshape({model.inputs[k]: list(array.shape) for k, array in fed.items()})
        compiled = core.compile_model(model, "CPU")
        results = compiled(fed)
        names = {name: port for port in compiled.outputs for name in port.get_names()}
        wanted = list(task.attributes["outputs"])
        ports = [names[n] for n in wanted] if set(wanted) <= set(names) else compiled.outputs
        if len(ports) != len(wanted):
            raise ValueError(f"the file has {len(ports)} outputs, the model {len(wanted)}")
        return [np.array(results[port]) for port in ports]

    forms: Mapping[Form, Perform] = {
        Form.OP: by_op(call),
        Form.TO: to,
        Form.NODE: node,
        Form.LAYER: layer,
        Form.FILE: file,
    }
    return Runner(str(ov.__version__), forms)
