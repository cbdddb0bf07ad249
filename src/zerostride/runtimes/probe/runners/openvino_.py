"""OpenVINO's CPU plugin, one op a model, static shapes, values fed at run time."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..case import Array, Shape
from . import Attrs, Perform, Runner

#: The attribute that holds the axis of pdpd; in an IR a plain `axis` is ignored.
_AXIS = "auto_broadcast.auto_broadcast_axis"


def load() -> Runner:
    """Imports OpenVINO."""
    ov: Any = importlib.import_module("openvino")
    ops: Any = importlib.import_module("openvino.opset13")
    core = ov.Core()

    def compute(node: Any, parameters: list[Any], operands: Sequence[Array]) -> Array:
        compiled = core.compile_model(ov.Model([node], parameters), "CPU")
        return np.array(compiled(list(operands))[0])

    def parameters_for(operands: Sequence[Array]) -> list[Any]:
        return [ops.parameter(list(array.shape), array.dtype) for array in operands]

    def elementwise(make: Callable[..., Any]) -> Perform:
        def perform(attrs: Attrs, operands: Sequence[Array], target: Shape) -> Array:
            inputs = parameters_for(operands)
            rule = attrs["auto_broadcast"]
            if rule != "pdpd":
                return compute(make(*inputs, auto_broadcast=rule), inputs, operands)
            # Made with the numpy rule on shapes that fit, then told its rule and axis: a node
            # under pdpd is checked as soon as it is made, and only an attribute has the axis.
            fitting = [ops.parameter([], array.dtype) for array in operands]
            node = make(*fitting)
            node.set_attribute("auto_broadcast", "pdpd")
            if "axis" in attrs:
                node.set_attribute(_AXIS, attrs["axis"])
            for k, parameter in enumerate(inputs):
                node.input(k).replace_source_output(parameter.output(0))
            node.validate_and_infer_types()
            return compute(node, inputs, operands)

        return perform

    def prelu(attrs: Attrs, operands: Sequence[Array], target: Shape) -> Array:
        inputs = parameters_for(operands)
        return compute(ops.prelu(*inputs), inputs, operands)

    def broadcast(attrs: Attrs, operands: Sequence[Array], target: Shape) -> Array:
        inputs = parameters_for(operands)
        shape = ops.constant(np.array(target, np.int64).reshape(len(target)))
        more = {}
        if "axes_mapping" in attrs:
            axes = np.array(attrs["axes_mapping"], np.int64).reshape(-1)
            more["axes_mapping"] = ops.constant(axes)
        node = ops.broadcast(inputs[0], shape, broadcast_spec=attrs["mode"].upper(), **more)
        return compute(node, inputs, operands)

    return Runner(
        str(ov.__version__),
        {
            "Add": elementwise(ops.add),
            "Subtract": elementwise(ops.subtract),
            "Maximum": elementwise(ops.maximum),
            "Divide": elementwise(ops.divide),
            "Greater": elementwise(ops.greater),
            "PRelu": prelu,
            "Broadcast-3": broadcast,
        },
        (RuntimeError,),
    )
