"""The time of a node from its op's row, so that a unit of work is a fixed time."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.graph import Array
from ..onnx_ops.table import op_row

#: Nanoseconds of a unit of work.
UNIT = 100_000
#: 16-bit floats have no arithmetic of the processor's: at least that for each.
_HALVES = 9


def nanoseconds(op: str, operands: Sequence[Array | None], results: Sequence[Array]) -> int:
    """The approximate time of a node."""
    inputs = [array for array in operands if array is not None]
    row = op_row(op)
    making, reading = row.making, row.reading
    if making > 0 and any(
        array.dtype.itemsize == 2 and array.dtype.kind != "u" for array in inputs
    ):
        making, reading = max(making, _HALVES), 3 * reading
    written, read = (sum(array.size for array in arrays) for arrays in (results, inputs))
    return making * written + reading * read
