"""Writes small OpenVINO IR files, as text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

_TYPES = {"float32": "f32", "float16": "f16", "int64": "i64", "int32": "i32", "bool": "boolean"}
_PORTS = {"f32": "FP32", "f16": "FP16", "i64": "I64", "i32": "I32", "boolean": "BOOL"}

Sizes = Sequence[Any]


def dims(shape: Sizes) -> str:
    """The sizes of a port, open ones as -1."""
    return "".join(f"<dim>{s if isinstance(s, int) else -1}</dim>" for s in shape)


def port(number: int, shape: Sizes, kind: str = "f32") -> str:
    """A port."""
    return f'<port id="{number}" precision="{_PORTS[kind]}">{dims(shape)}</port>'


class Ir:
    """An IR as it grows. Layers are called by their ids; a layer has one output."""

    def __init__(self, version: int = 11) -> None:
        self.version = version
        self.layers: list[str] = []
        self.edges: list[str] = []
        self.weights = bytearray()
        self.outputs: list[tuple[int, Sizes, str]] = []

    def parameter(self, name: str, shape: Sizes, kind: str = "f32") -> int:
        """An input; sizes are numbers or text such as "?" and "1..10"."""
        sizes = ",".join(map(str, shape))
        data = f'<data shape="{sizes}" element_type="{kind}" />'
        return self._add(name, "Parameter", data, (), shape, kind)

    def constant(self, name: str, values: Any) -> int:
        """A constant of an array's numbers."""
        array = np.asarray(values)
        kind = _TYPES[str(array.dtype)]
        sizes = ", ".join(map(str, array.shape))
        data = (
            f'<data element_type="{kind}" shape="{sizes}" offset="{len(self.weights)}" '
            f'size="{array.nbytes}" />'
        )
        self.weights += array.tobytes()
        return self._add(name, "Const", data, (), array.shape, kind)

    def layer(
        self,
        name: str,
        op: str,
        inputs: Sequence[int],
        shape: Sizes,
        data: str = "",
        version: str = "opset1",
        kind: str | None = None,
        inside: str = "",
    ) -> int:
        """A layer of any op; `data` are the attributes of its data element as text."""
        data = f"<data {data} />" if data else ""
        return self._add(name, op, data + inside, inputs, shape, kind, version)

    def result(self, source: int, name: str = "") -> int:
        """A Result of a layer."""
        return self._add(name or f"result_{source}", "Result", "", (source,), None, None)

    def _add(
        self,
        name: str,
        op: str,
        data: str,
        inputs: Sequence[int],
        shape: Sizes | None,
        kind: str | None,
        version: str = "opset1",
    ) -> int:
        number = len(self.layers)
        sources = [self.outputs[name] for name in inputs]
        kind = kind or (sources[0][2] if sources else "f32")
        ports = "".join(port(k, size, what) for k, (_, size, what) in enumerate(sources))
        parts = [f'\t\t<layer id="{number}" name="{name}" type="{op}" version="{version}">\n']
        parts += [f"\t\t\t{data}\n"] if data else []
        parts += [f"\t\t\t<input>{ports}</input>\n"] if inputs else []
        if shape is not None:
            parts.append(f"\t\t\t<output>{port(len(sources), shape, kind)}</output>\n")
        self.layers.append("".join(parts) + "\t\t</layer>\n")
        for k, one in enumerate(inputs):
            source = self.outputs[one]
            self.edges.append(
                f'\t\t<edge from-layer="{one}" from-port="{source[0]}" '
                f'to-layer="{number}" to-port="{k}" />\n'
            )
        self.outputs.append((len(sources), shape or (), kind))
        return number

    @property
    def text(self) -> str:
        """The .xml."""
        return (
            f'<?xml version="1.0"?>\n<net name="model" version="{self.version}">\n\t<layers>\n'
            + "".join(self.layers)
            + "\t</layers>\n\t<edges>\n"
            + "".join(self.edges)
            + "\t</edges>\n\t<rt_info />\n</net>\n"
        )

    def save(self, path: Path) -> Path:
        """Writes the .xml, and the .bin if there are constants."""
        path.write_text(self.text)
        if self.weights:
            path.with_suffix(".bin").write_bytes(self.weights)
        return path


def binary(
    op: str, a: Sizes, b: Sizes, data: str = "", version: int = 11, result: Sizes = ()
) -> Ir:
    """A model of one op of two inputs."""
    ir = Ir(version)
    inputs = ir.parameter("a", a), ir.parameter("b", b)
    ir.result(ir.layer("op", op, inputs, result, data))
    return ir


def broadcast(
    data: Sizes,
    target: Sequence[int],
    mode: str | None = None,
    axes: Sequence[int] | None = None,
    version: str = "opset3",
    result: Sizes = (),
) -> Ir:
    """A model of one Broadcast."""
    ir = Ir()
    inputs = [ir.parameter("a", data), ir.constant("target", np.array(target, np.int64))]
    if axes is not None:
        inputs.append(ir.constant("axes", np.array(axes, np.int64)))
    attribute = "" if mode is None else f'mode="{mode}"'
    ir.result(ir.layer("op", "Broadcast", inputs, result, attribute, version))
    return ir
