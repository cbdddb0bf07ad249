"""Floor 3: the op table. One row an op: what computes it, and what each engine calls it.

Names are the Python array API's. :func:`find_op` understands every name in the table.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from .errors import BroadcastError, Reason

Names = Mapping[str, tuple[str | int, ...]]


@dataclass(frozen=True, slots=True)
class Op:
    """A row of the op table.

    Attributes:
        name: the array API's name.
        operands: how many operands it takes.
        numpy: the NumPy function that defines its values.
        names: engine (onnx, openvino, ncnn, mnn, paddle) to its names or numbers for the op.
        reversed_names: the same, for ops that take the operands the other way round.
        swap: the op that gives the same with operands exchanged, or None.
    """

    name: str
    operands: int
    numpy: str
    names: Names
    reversed_names: Names = field(default_factory=dict)
    swap: str | None = None


def _row(
    name: str,
    numpy: str,
    names: dict[str, str],
    *,
    operands: int = 2,
    reversed_names: dict[str, str] | None = None,
    swap: str | None = None,
) -> Op:
    return Op(name, operands, numpy, _split(names), _split(reversed_names or {}), swap)


def _split(names: dict[str, str]) -> Names:
    return MappingProxyType(
        {
            engine: tuple(int(word) if word.isdigit() else word for word in words.split())
            for engine, words in names.items()
        }
    )


OPS: Mapping[str, Op] = MappingProxyType(
    {
        op.name: op
        for op in (
            _row(
                "add",
                "add",
                {
                    "onnx": "Add",
                    "openvino": "Add",
                    "ncnn": "0",
                    "mnn": "ADD",
                    "paddle": "elementwise_add",
                },
                swap="add",
            ),
            _row(
                "subtract",
                "subtract",
                {
                    "onnx": "Sub",
                    "openvino": "Subtract",
                    "ncnn": "1",
                    "mnn": "SUB",
                    "paddle": "elementwise_sub",
                },
                reversed_names={"ncnn": "7"},
            ),
            _row(
                "multiply",
                "multiply",
                {
                    "onnx": "Mul",
                    "openvino": "Multiply",
                    "ncnn": "2",
                    "mnn": "MUL",
                    "paddle": "elementwise_mul",
                },
                swap="multiply",
            ),
            _row(
                "where",
                "where",
                {"onnx": "Where", "openvino": "Select", "mnn": "Select", "paddle": "where"},
                operands=3,
            ),
            _row(
                "prelu",
                "",
                {
                    "onnx": "PRelu",
                    "openvino": "PRelu",
                    "ncnn": "PReLU",
                    "mnn": "PReLU",
                    "paddle": "prelu",
                },
            ),
        )
    }
)

_BY_NAME = {
    str(word).lower(): op
    for op in OPS.values()
    for words in ((op.name,), *op.names.values())
    for word in words
    if isinstance(word, str)
}


def find_op(name: str) -> Op:
    """The row of an op by any engine's name for it, in any case; BroadcastError if there is none.

    >>> find_op("elementwise_sub").name
    'subtract'
    """
    op = _BY_NAME.get(str(name).lower())
    if op is None:
        close = difflib.get_close_matches(str(name).lower(), _BY_NAME, 3)
        raise BroadcastError(
            f"there is no op {name!r}",
            reason=Reason.UNKNOWN_OP,
            hint=f"did you mean {' or '.join(close)}?" if close else f"one of {', '.join(OPS)}",
        )
    return op
