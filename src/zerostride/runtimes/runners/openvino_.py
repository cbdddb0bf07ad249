"""OpenVINO's CPU plugin: static shapes, values fed at run time, in single precision."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...models.formats.openvino.write import IrWriter
from ..task import Array, Form, Task
from . import Attrs, ModelFile, Runner, Shape, own_names
from .onnx_node import fed, one_node

#: The attribute that holds the axis of pdpd; in an IR a plain `axis` is ignored.
_AXIS = "auto_broadcast.auto_broadcast_axis"
#: Modes of Broadcast other than NumPy's.
_MODES = ("bidirectional", "explicit")


class _OpenVino:
    """OpenVINO's CPU plugin, loaded."""

    def __init__(self) -> None:
        self.ov: Any = importlib.import_module("openvino")
        self.ops = _newest_ops()
        name = self.ops.__name__.rpartition(".")[2]
        inner: Any = importlib.import_module(f"{self.ops.__name__}.ops")
        self.factory = inner.__dict__[f"_get_node_factory_{name}"]()
        self.core = self.ov.Core()
        self.core.set_property("CPU", {"INFERENCE_PRECISION_HINT": "f32"})

    def _compute(self, model: Any, feeds: Any) -> Array:
        return np.array(self.core.compile_model(model, "CPU")(feeds)[0])

    def call(self, name: str, attrs: Attrs, arrays: Sequence[Array], target: Shape) -> Array:
        inputs = [self.ops.parameter(list(array.shape), dtype=array.dtype) for array in arrays]
        if name == "Broadcast-3":
            node = self._broadcast(inputs[0], attrs, target)
        elif attrs.get("auto_broadcast") == "pdpd":
            node = self._under_pdpd(name, attrs, inputs, arrays)
        else:
            rule = attrs.get("auto_broadcast")
            node = self.factory.create(
                name, inputs, {"auto_broadcast": rule.upper()} if rule else {}
            )
        return self._compute(self.ov.Model([node], inputs), list(arrays))

    def _under_pdpd(
        self, name: str, attrs: Attrs, inputs: Sequence[Any], arrays: Sequence[Array]
    ) -> Any:
        # Made with the numpy rule on shapes that fit, then told its rule and axis: a node
        # under pdpd is checked as soon as it is made, and only an attribute has the axis.
        fitting = [self.ops.parameter([], dtype=array.dtype) for array in arrays]
        node = self.factory.create(name, fitting)
        node.set_attribute("auto_broadcast", "pdpd")
        if "axis" in attrs:
            node.set_attribute(_AXIS, attrs["axis"])
        for k, parameter in enumerate(inputs):
            node.input(k).replace_source_output(parameter.output(0))
        node.validate_and_infer_types()
        return node

    def _broadcast(self, data: Any, attrs: Attrs, target: Shape) -> Any:
        shape = self.ops.constant(np.array(target, np.int64).reshape(len(target)))
        more = {}
        if "axes_mapping" in attrs:
            axes = np.array(attrs["axes_mapping"], np.int64).reshape(-1)
            more["axes_mapping"] = self.ops.constant(axes)
        mode = attrs["mode"] if attrs["mode"] in _MODES else "numpy"
        return self.ops.broadcast(data, shape, broadcast_spec=mode.upper(), **more)

    def node(self, task: Task, arrays: Sequence[Array]) -> Sequence[Array]:
        return [self._compute(self.core.read_model(one_node(task, arrays)), fed(task, arrays))]

    def layer(self, task: Task, arrays: Sequence[Array]) -> Sequence[Array]:
        text, weights, feeds = _one_layer(task, arrays)
        return [self._compute(self.core.read_model(text, weights), feeds)]

    def open_file(self, path: str, _: Sequence[str]) -> ModelFile:
        model = self.core.read_model(path)
        inputs = [[*port.get_names(), port.get_node().get_friendly_name()] for port in model.inputs]
        outputs = [list(port.get_names()) for port in model.outputs]
        ports_of = _by_layer(model.get_ordered_ops()) if path.endswith(".xml") else {}
        return ModelFile(inputs, outputs, partial(self._tensors, model, ports_of))

    def _tensors(
        self,
        model: Any,
        ports_of: Mapping[str, tuple[str, int]],
        feeds: Mapping[int, Array],
        wanted: Sequence[int | str],
    ) -> Sequence[Array]:
        """The wanted tensors of a model that is read, computed."""
        # A port's own index is that of its node's output; the position in the list counts.
        model.reshape({model.inputs[k]: list(array.shape) for k, array in feeds.items()})
        inner = [name for name in wanted if isinstance(name, str)]
        # A result of its own for each: a compiled model merges ports, and forgets names.
        added = model.add_outputs([ports_of.get(name, name) for name in inner])
        if len(inner) == len(wanted):
            # A result that nobody asked for would be computed too, and may crash.
            used = {model.get_result_index(port) for port in added}
            for k, result in enumerate(model.get_results()):
                if k not in used:
                    model.remove_result(result)
        compiled = self.core.compile_model(model, "CPU")
        results = compiled(dict(feeds))
        places = dict(zip(inner, (model.get_result_index(port) for port in added), strict=True))
        return [
            np.array(results[places[name] if isinstance(name, str) else name]) for name in wanted
        ]


def load() -> Runner:
    """Imports OpenVINO."""
    engine = _OpenVino()
    return Runner(
        str(engine.ov.__version__),
        engine.call,
        (RuntimeError,),
        own_names("openvino"),
        "Broadcast-3",
        {Form.NODE: engine.node, Form.LAYER: engine.layer},
        engine.open_file,
    )


def _newest_ops() -> Any:
    """The newest whole op set up to 15; before 2024.6 it lies in `openvino.runtime`."""
    for name in ("openvino.opset15", "openvino.runtime.opset15", "openvino.runtime.opset14"):
        try:
            ops = importlib.import_module(name)
        except ModuleNotFoundError:
            continue
        if hasattr(ops, "broadcast"):  # an op set that is begun has few
            return ops
    raise ImportError("an OpenVINO without opset14")


def _by_layer(layers: Iterable[Any]) -> dict[str, tuple[str, int]]:
    """The tensors by the names of the layers that make them, as the reader of IR names them."""
    ports = {}
    for layer in layers:
        name, count = layer.get_friendly_name(), layer.get_output_size()
        for k in range(count):
            ports[name if count == 1 else f"{name}.{layer.get_input_size() + k}"] = (name, k)
    return ports


def _one_layer(task: Task, arrays: Sequence[Array]) -> tuple[bytes, bytes, list[Array]]:
    """An IR of one layer, its weights, and the data of its inputs, in order."""
    net, ports, feeds, left = IrWriter(), [], [], list(zip(arrays, task.constant, strict=True))
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
            feeds.append(array)
    data, version = task.attributes["data"], task.attributes["version"]
    dtype = str(arrays[0].dtype) if arrays else "float32"
    net.result(net.layer("y", task.op, version, data, ports, dtype))
    return net.text.encode(), bytes(net.weights), feeds
