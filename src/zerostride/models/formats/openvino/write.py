"""Writes IR files of a few layers, to test the engine with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...ir.graph import Array
from . import splice
from .tensors import TYPES, port_name

_BLANKS = "\t\t"
#: NumPy's name of an element type to OpenVINO's.
_KINDS = {row.dtype: name for name, row in TYPES.items() if row.dtype is not None}


@dataclass(frozen=True, slots=True)
class Port:
    """An output: its layer and number, precision and shape."""

    layer: int
    number: int
    precision: str
    shape: splice.Sizes


class IrWriter:
    """Builds a net, each layer after those that feed it.

    >>> net = IrWriter()
    >>> x = net.parameter("x", (2, 3), "float32")
    >>> net.result(net.layer("y", "Relu", "opset1", {}, [x], "float32"))
    >>> [line.split()[3] for line in net.text.splitlines() if "<layer " in line]
    ['type="Parameter"', 'type="Relu"', 'type="Result"']
    """

    def __init__(self) -> None:
        self.weights = bytearray()
        self._layers: list[str] = []
        self._edges: list[str] = []

    def parameter(self, name: str, shape: Sequence[int], dtype: str) -> Port:
        """An input."""
        attributes = {"shape": ",".join(map(str, shape)), "element_type": _KINDS[dtype]}
        return self.layer(name, "Parameter", "opset1", attributes, (), dtype, tuple(shape))

    def constant(self, name: str, array: Array) -> Port:
        """A constant; its numbers are in `weights`."""
        data = np.ascontiguousarray(array).tobytes()
        dtype = str(array.dtype)
        attributes = {
            "element_type": _KINDS[dtype],
            "shape": ", ".join(map(str, array.shape)),
            "offset": len(self.weights),
            "size": len(data),
        }
        self.weights += data
        return self.layer(name, "Const", "opset1", attributes, (), dtype, array.shape)

    def layer(
        self,
        name: str,
        kind: str,
        version: str,
        attributes: Mapping[str, Any],
        inputs: Sequence[Port],
        dtype: str,
        shape: splice.Sizes = None,
    ) -> Port:
        """A layer of one output; OpenVINO infers its shape itself."""
        number, precision = len(self._layers), port_name(_KINDS[dtype])
        ports = [(port.precision, port.shape) for port in inputs]
        output = (precision, shape)
        self._layers.append(
            splice.layer(number, name, kind, version, attributes, ports, output, _BLANKS)
        )
        self._edges += [self._edge(port, (number, k)) for k, port in enumerate(inputs)]
        return Port(number, len(inputs), precision, shape)

    def result(self, port: Port) -> None:
        """An output of the net."""
        number = len(self._layers)
        head = f'{_BLANKS}<layer id="{number}" name="result_{number}" type="Result" '
        inner = splice.port(0, port.precision, port.shape, f"{_BLANKS}\t\t")
        self._layers.append(
            f'{head}version="opset1">\n{_BLANKS}\t<input>\n{inner}{_BLANKS}\t</input>\n'
            f"{_BLANKS}</layer>\n"
        )
        self._edges.append(self._edge(port, (number, 0)))

    @staticmethod
    def _edge(source: Port, target: tuple[int, int]) -> str:
        return f"{_BLANKS}{splice.edge((source.layer, source.number), target)}\n"

    @property
    def text(self) -> str:
        """The .xml."""
        return (
            '<?xml version="1.0"?>\n<net name="net" version="11">\n\t<layers>\n'
            f"{''.join(self._layers)}\t</layers>\n\t<edges>\n{''.join(self._edges)}"
            "\t</edges>\n\t<rt_info />\n</net>\n"
        )
