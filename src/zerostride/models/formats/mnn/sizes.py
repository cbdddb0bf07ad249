"""Result sizes of ops without an ONNX equivalent.

Sources: MNN's shape inference (source/shape), and runs of MNN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from ....sizes.dim import dim, plain
from ...onnx_ops.sizes.facts import Fact, OpCall, Open, Results, Size, Unclear, refuse


def _padded(call: OpCall) -> Results:
    """Padding: begin and end per axis. Numbers below 0 reduce the size.

    The elements differ from ONNX's: MNN 3.6 copies the operand from its start.
    """
    shape, pads = call.shape(0), call.whole(1)
    if pads is None:
        raise Unclear("the pads are left out")
    if len(pads) < 2 * len(shape):
        refuse(f"{len(pads)} pads for {len(shape)} axes")
    sizes: list[Size] = []
    for size, before, after in zip(shape, pads[::2], pads[1::2], strict=False):
        unclear = before is None or after is None
        sizes.append(Open() if unclear else plain(dim(size) + (before or 0) + (after or 0)))
    return Fact(tuple(sizes))


#: Op type to the row of its results' sizes.
SIZES: Mapping[str, Callable[[OpCall], Results]] = MappingProxyType({"Padding": _padded})
