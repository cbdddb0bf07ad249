"""Result sizes of ops without an ONNX equivalent.

Sources: Paddle's inference of shapes (phi/infermeta), and runs of Paddle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from ...onnx_ops.sizes.facts import Fact, OpCall, Results, Unclear
from .schema import OLD


def _as_first(call: OpCall) -> Results:
    """The shape of the first operand."""
    return Fact(call.fact(0).shape)


def _adaptive_pool(call: OpCall) -> Results:
    """Adaptive pooling makes as many parts of each axis as the window has numbers."""
    shape = call.shape(0)
    kernel = call.fixed(1, "kernel_size")
    if not call.attributes.get("adaptive") or kernel is None or len(kernel) != len(shape) - 2:
        raise Unclear("the windows' sizes are not followed")
    fact = Fact((*shape[:2], *kernel))
    return (fact,) * call.outputs


_KEEP = (
    "softshrink thresholded_relu stanh increment cumprod logcumsumexp roll fill_diagonal scatter "
    "scatter_nd_add index_add put_along_axis digamma lgamma erfinv i0 i1 angle conj logit frac "
    "exponential bernoulli dropout nan_to_num"
)
_ROWS: Mapping[str, Callable[[OpCall], Results]] = {
    **dict.fromkeys(_KEEP.split(), _as_first),
    **dict.fromkeys(
        ("pool2d", "pool3d", "max_pool2d_with_index", "max_pool3d_with_index"), _adaptive_pool
    ),
}
#: Op to the row of its results' sizes: by PIR's names, with and without the underscore of an op
#: that reuses its operand's memory, and by those of old programs.
SIZES: Mapping[str, Callable[[OpCall], Results]] = MappingProxyType(
    {
        **{old: _ROWS[row.op] for old, row in OLD.items() if row.op in _ROWS},
        **{f"{name}_": row for name, row in _ROWS.items()},
        **_ROWS,
    }
)
