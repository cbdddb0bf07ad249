"""A plan as the .xml file of an OpenVINO model: its layers, and the numbers of its .bin file.

Open sizes are left to the runtime, as in :mod:`.graph`. Source: OpenVINO, 'Intermediate
Representation and operation sets'; Reshape-1, Broadcast-3.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from ...core.plan import Plan
from ...sizes import Shape
from ..explain.facts import broadcasts_to
from .graph import check_one_way, comments, dynamic, placing


@dataclass(slots=True)
class _Net:
    """A model under construction: layers, edges, and the bytes of its constant shapes."""

    layers: list[str] = field(default_factory=list)
    edges: list[str] = field(default_factory=list)
    data: bytes = b""

    def layer(
        self,
        name: str,
        kind: str,
        opset: str,
        attributes: str,
        inputs: Sequence[tuple[int, Shape, str]] = (),
        output: tuple[Shape, str] | None = None,
    ) -> int:
        """Adds a layer that reads others by their numbers; returns its number."""
        number = len(self.layers)
        text = [f'    <layer id="{number}" name="{name}" type="{kind}" version="{opset}">']
        text += [f"      <data {attributes}/>"] * bool(attributes)
        ports = [_port(k, shape, dtype) for k, (_, shape, dtype) in enumerate(inputs)]
        text += ["      <input>", *ports, "      </input>"] if ports else []
        if output is not None:
            # Tensors have separate names, by which a request finds inputs.
            attribute = f' names="{name}"'
            text += ["      <output>", _port(len(inputs), *output, attribute), "      </output>"]
        self.layers.append("\n".join([*text, "    </layer>"]))
        for port, (source, _, _) in enumerate(inputs):
            at = self.layers[source].count("<port ") - 1  # a layer's last port is its output
            self.edges.append(
                f'    <edge from-layer="{source}" from-port="{at}"'
                f' to-layer="{number}" to-port="{port}"/>'
            )
        return number

    def numbers(self, name: str, numbers: Shape) -> tuple[int, Shape, str]:
        """Adds a constant vector."""
        data = struct.pack(f"<{len(numbers)}q", *numbers)
        shape = (len(numbers),)
        attributes = (
            f'element_type="i64" shape="{len(numbers)}"'
            f' offset="{len(self.data)}" size="{len(data)}"'
        )
        self.data += data
        return self.layer(name, "Const", "opset1", attributes, (), (shape, "I64")), shape, "I64"


def ir_source(plan: Plan, names: Sequence[str]) -> str:
    """The text of the .xml file of a model with one output an operand, `name.broadcast`.

    Target shapes are constants, whose bytes are in the .bin file. A comment in the text gives them
    in hexadecimal.
    """
    if plan.open is not None:
        return _open_source(plan, names)
    net = _Net()
    result = (plan.shape, "FP32")
    inputs = []
    for name, shape in zip(names, plan.operands, strict=True):
        attributes = f'shape="{",".join(map(str, shape))}" element_type="f32"'
        inputs.append(net.layer(name, "Parameter", "opset1", attributes, (), (shape, "FP32")))
    for name, shape, aligned, number in zip(
        names, plan.operands, plan.aligned, inputs, strict=True
    ):
        value = (number, shape, "FP32")
        if (1,) * (plan.rank - len(shape)) + shape != aligned:
            value = _reshaped(net, name, value, aligned)
        if value[1] != plan.shape:
            target = net.numbers(f"{name}.shape", plan.shape)
            layer = net.layer(
                f"{name}.whole", "Broadcast", "opset3", 'mode="numpy"', (value, target), result
            )
            value = (layer, *result)
        net.layer(f"{name}.broadcast", "Result", "opset1", "", (value,))
    shapes = ", ".join(f"{n}: {shape}" for n, shape in zip(names, plan.operands, strict=True))
    return _text(net, [f"{shapes} to {plan.shape}"])


def _text(net: _Net, comments: Sequence[str]) -> str:
    """The text of the file; comments must not contain a double hyphen or end with a hyphen."""
    lines = ['<?xml version="1.0"?>']
    for line in comments:
        comment = "".join(c if c.isprintable() else "?" for c in line.replace("->", "to"))
        lines.append(f"<!-- {re.sub('-(?=-)', '- ', comment)} -->")
    if net.data:
        lines.append(f"<!-- the .bin file, in hexadecimal: {net.data.hex()} -->")
    lines += ['<net name="broadcast" version="11">', "  <layers>", *net.layers, "  </layers>"]
    return "\n".join([*lines, "  <edges>", *net.edges, "  </edges>", "</net>"])


def _open_source(plan: Plan, names: Sequence[str]) -> str:
    """The same for open sizes; see :func:`.graph.openvino_code`."""
    check_one_way(plan, "openvino-ir")
    net = _Net()
    shapes: list[Shape] = [tuple(dynamic(shape)) for shape in plan.operands]
    kinds = ["f32"] * len(shapes)
    entries = list(names)
    if broadcasts_to(plan):
        entries, shapes, kinds = [*names, "target"], [*shapes, (plan.rank,)], [*kinds, "i64"]
    inputs = []
    for name, shape, kind in zip(entries, shapes, kinds, strict=True):
        sizes = ",".join("?" if size == -1 else str(size) for size in shape)
        attributes = f'shape="{sizes}" element_type="{kind}"'
        precision = "FP32" if kind == "f32" else "I64"
        layer = net.layer(name, "Parameter", "opset1", attributes, (), (shape, precision))
        inputs.append((layer, shape, precision))
    placed = [_placed(net, plan, k, name, inputs[k]) for k, name in enumerate(names)]
    for k, name in enumerate(names):
        value = placed[k]
        if broadcasts_to(plan):
            targets = [inputs[1]]
        else:
            targets = [_shape_of(net, name, n, x) for n, x in enumerate(placed) if n != k]
        for n, shape_of in enumerate(targets):
            whole: tuple[Shape, str] = ((-1,) * plan.rank, "FP32")
            attributes = 'mode="bidirectional"'
            layer = net.layer(
                f"{name}.whole{n}", "Broadcast", "opset3", attributes, (value, shape_of), whole
            )
            value = (layer, *whole)
        net.layer(f"{name}.broadcast", "Result", "opset1", "", (value,))
    return _text(net, comments(plan, names))


def _placed(
    net: _Net, plan: Plan, k: int, name: str, value: tuple[int, Shape, str]
) -> tuple[int, Shape, str]:
    """An operand with the result's axes."""
    dropped, added = placing(plan, k)
    if dropped:
        axes = net.numbers(f"{name}.dropped", tuple(dropped))
        shape = tuple(size for axis, size in enumerate(value[1]) if axis not in dropped)
        layer = net.layer(
            f"{name}.squeezed", "Squeeze", "opset1", "", (value, axes), (shape, "FP32")
        )
        value = (layer, shape, "FP32")
    if added:
        axes = net.numbers(f"{name}.added", tuple(added))
        rest = iter(value[1])
        shape = tuple(1 if axis in added else next(rest) for axis in range(plan.rank))
        layer = net.layer(
            f"{name}.unsqueezed", "Unsqueeze", "opset1", "", (value, axes), (shape, "FP32")
        )
        value = (layer, shape, "FP32")
    return value


def _shape_of(
    net: _Net, name: str, position: int, value: tuple[int, Shape, str]
) -> tuple[int, Shape, str]:
    output: tuple[Shape, str] = ((len(value[1]),), "I64")
    title, attributes = f"{name}.by{position}", 'output_type="i64"'
    return net.layer(title, "ShapeOf", "opset3", attributes, (value,), output), *output


def _reshaped(
    net: _Net, name: str, value: tuple[int, Shape, str], aligned: Shape
) -> tuple[int, Shape, str]:
    """The operand at the result's rank; at rank 0 by Squeeze: a constant must have bytes."""
    if aligned:
        words = net.numbers(f"{name}.aligned", aligned)
        kind, attributes = "Reshape", 'special_zero="false"'
    else:
        words = net.numbers(f"{name}.axes", tuple(range(len(value[1]))))
        kind, attributes = "Squeeze", ""
    output = (aligned, "FP32")
    return net.layer(
        f"{name}.{kind.lower()}d", kind, "opset1", attributes, (value, words), output
    ), *output


def _port(number: int, shape: Shape, dtype: str, names: str = "") -> str:
    sizes = "".join(f"<dim>{size}</dim>" for size in shape)
    return f'        <port id="{number}" precision="{dtype}"{names}>{sizes}</port>'
