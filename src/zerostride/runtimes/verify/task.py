"""One computation for an engine, as plain data that processes exchange."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Form(StrEnum):
    """How a task is carried out."""

    OP = "op"  # an op of the op table, by its name there; more operands than two, two by two
    TO = "to"  # the first operand broadcast to `target`
    COMPOUND = "compound"  # an op of ONNX for which the engine has a function or a layer
    NODE = "node"  # a model of one ONNX node
    LAYER = "layer"  # a layer of a file in the engine's own format
    FILE = "file"  # a whole model file


@dataclass(frozen=True, slots=True)
class Task:
    """A computation.

    Attributes:
        form: see :class:`Form`.
        op: the op; a file's path under FILE.
        attributes: the op's attributes; under LAYER its "version", its "data", and "numbers" by
            position, operands that are no tensors of the task; under FILE "inputs" and "outputs" by
            name.
        target: the shape to broadcast to.
        constant: for each operand whether it is a weight of the model.
        opset: the op set of a node.
    """

    form: Form
    op: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    target: tuple[int, ...] = ()
    constant: tuple[bool, ...] = ()
    opset: int = 0

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "form": self.form,
            "op": self.op,
            "attributes": dict(self.attributes),
            "target": self.target,
            "constant": self.constant,
            "opset": self.opset,
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Task:
        """The task of a message."""
        return Task(
            Form(data["form"]),
            str(data["op"]),
            dict(data["attributes"]),
            tuple(map(int, data["target"])),
            tuple(map(bool, data["constant"])),
            int(data["opset"]),
        )


def key_of(task: Task, arrays: Sequence[Array]) -> str:
    """The identity of a task; equal keys get equal answers from one engine."""
    operands = [(array.shape, str(array.dtype)) for array in arrays]
    return json.dumps([task.as_dict(), operands], default=str, sort_keys=True)


def pack(arrays: Sequence[Array]) -> tuple[list[dict[str, Any]], bytes]:
    """Headers of arrays, and their bytes; types that NumPy lacks become floats."""
    plain = [a if a.dtype.kind in "biufc" else a.astype(np.float32) for a in arrays]
    headers = [{"shape": array.shape, "dtype": array.dtype.str} for array in plain]
    return headers, b"".join(np.ascontiguousarray(array).tobytes() for array in plain)


def unpack(headers: Sequence[Mapping[str, Any]], payload: bytes) -> list[Array]:
    """The arrays of a message."""
    arrays, start = [], 0
    for entry in headers:
        dtype, shape = np.dtype(entry["dtype"]), tuple(map(int, entry["shape"]))
        count = math.prod(shape)
        part = payload[start : start + count * dtype.itemsize]
        arrays.append(np.frombuffer(part, dtype).reshape(shape).copy())
        start += count * dtype.itemsize
    return arrays
