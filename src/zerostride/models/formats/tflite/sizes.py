"""Result sizes of ops without an ONNX equivalent.

Sources: LiteRT's kernels (tflite/kernels), and runs of LiteRT.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from ....sizes.dim import dim, plain
from ...onnx_ops.sizes.facts import Fact, OpCall, Open, Results, Size, Unclear, refuse


def _as_first(call: OpCall) -> Results:
    """The shape of the first operand."""
    return Fact(call.fact(0).shape)


def _padded(call: OpCall) -> Results:
    """Padding: begin and end per axis."""
    shape, pads = call.shape(0), call.whole(1)
    if pads is None:
        raise Unclear("the pads are left out")
    if len(pads) != 2 * len(shape):
        refuse(f"{len(pads)} pads for {len(shape)} axes")
    sizes: list[Size] = []
    for size, before, after in zip(shape, pads[::2], pads[1::2], strict=True):
        unclear = before is None or after is None
        sizes.append(Open() if unclear else plain(dim(size) + (before or 0) + (after or 0)))
    return Fact(tuple(sizes))


def _gathered(call: OpCall) -> Results:
    """GATHER with batch axes: the indices take the place of one axis."""
    data, indices = call.shape(0), call.shape(1)
    axis, batch = call.integer("axis"), call.integer("batch_dims")
    axis += len(data) if axis < 0 else 0
    batch += len(indices) if batch < 0 else 0
    if not 0 <= batch <= min(axis, len(indices)) or axis >= len(data):
        refuse(f"axis {axis} and {batch} batch axes of data of rank {len(data)}")
    return Fact((*data[:axis], *indices[batch:], *data[axis + 1 :]))


_KEEP = (
    "FAKE_QUANT REVERSE_SEQUENCE MATRIX_SET_DIAG DYNAMIC_UPDATE_SLICE "
    "STABLEHLO_ABS STABLEHLO_CBRT STABLEHLO_CONVERT STABLEHLO_COSINE STABLEHLO_EXPONENTIAL "
    "STABLEHLO_FLOOR STABLEHLO_LOG STABLEHLO_LOGISTIC STABLEHLO_NEGATE STABLEHLO_RSQRT "
    "STABLEHLO_TANH STABLEHLO_DYNAMIC_UPDATE_SLICE IMAG REAL COMPLEX_ABS BUCKETIZE"
)
#: Builtin op to the row of its results' sizes.
SIZES: Mapping[str, Callable[[OpCall], Results]] = MappingProxyType(
    {
        **dict.fromkeys(_KEEP.split(), _as_first),
        "GATHER": _gathered,
        "MIRROR_PAD": _padded,
    }
)
