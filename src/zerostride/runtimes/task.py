"""One computation for an engine, and its answer, as plain data that processes exchange."""

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
    """A way to carry out a task."""

    CALL = "call"  # an op by the engine's own name
    OP = "op"  # an op of the op table, by its name there; more operands than two, two by two
    TO = "to"  # the first operand broadcast to `target`
    COMPOUND = "compound"  # an op of ONNX for which the engine has a function or a layer
    NODE = "node"  # a model of one ONNX node
    LAYER = "layer"  # a layer of a file in the engine's own format
    FILE = "file"  # tensors of a model file


@dataclass(frozen=True, slots=True)
class Task:
    """A computation.

    Attributes:
        form: see :class:`Form`.
        op: the op; a file's path under FILE.
        attributes: the op's attributes; under LAYER its "version", its "data", and "numbers" by
            position, operands that are no tensors of the task; under FILE see `files`.
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
        fields = {name: getattr(self, name) for name in self.__slots__}
        return {**fields, "attributes": dict(self.attributes)}

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


class ReplyKind(StrEnum):
    """An engine's answer."""

    RESULT = "result"
    REFUSED = "refused"  # it refused, in any way of the engine
    CRASHED = "crashed"  # its process died, or did not answer in time
    ABSENT = "absent"  # it cannot be called for this
    BROKEN = "broken"  # the runner failed: a bug here, not the engine's answer


@dataclass(frozen=True, slots=True)
class Reply:
    """An engine's answer.

    Attributes:
        kind: see :class:`ReplyKind`.
        message: the engine's message, or how its process ended.
        arrays: the results; none unless the kind is RESULT.
    """

    kind: ReplyKind
    message: str = ""
    arrays: tuple[Array, ...] = ()

    def describe(self) -> str:
        """A phrase for messages."""
        if self.kind is ReplyKind.RESULT:
            return f"gave {', '.join(str(array.shape) for array in self.arrays[:1])}"
        return f"{self.kind}: {self.message}" if self.message else str(self.kind)


def key_of(task: Task) -> str:
    """The identity of a task; equal keys on equal operands get equal answers from one engine."""
    return json.dumps(task.as_dict(), default=str, sort_keys=True)


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
        part = np.frombuffer(payload, dtype, count, start)
        arrays.append(part.reshape(shape).copy())
        start += count * dtype.itemsize
    return arrays
