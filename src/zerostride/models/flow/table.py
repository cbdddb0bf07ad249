"""The op table of the flow: the row that computes the facts of an op's results.

To add an op, write a function in one of the modules of rows, and a row there. Ops of other domains
and ops without a row go to :mod:`.fallback`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from . import elementwise, indexing, movement, windows
from .facts import Fact, OpCall, Results, Unclear

Row = Callable[[OpCall], Results]

#: Ops of the ai.onnx domain.
ROWS: Mapping[str, Row] = MappingProxyType(
    {**elementwise.ROWS, **movement.ROWS, **indexing.ROWS, **windows.ROWS}
)


def _fused_product(call: OpCall) -> Results:
    """FusedMatMul: a MatMul, unless it transposes."""
    if any(call.integer(name) for name in ("transA", "transB", "transBatchA", "transBatchB")):
        raise Unclear("which axes it transposes is not followed")
    return elementwise.matmul(call)


def _pair(call: OpCall) -> Results:
    """QLinearAdd, QLinearMul: two tensors, by their site's rule."""
    site = elementwise.site_of(call)
    if site is None:
        return Fact()
    return Fact(elementwise.planned(site, call))


def _as_first(call: OpCall) -> Results:
    """The shape of the first operand."""
    return Fact(call.fact(0).shape)


def _each(row: Row, names: str) -> dict[str, Row]:
    return dict.fromkeys(names.split(), row)


#: Ops of com.microsoft, ONNX Runtime's own.
CONTRIB: Mapping[str, Row] = MappingProxyType(
    {
        **_each(_fused_product, "FusedMatMul"),
        **_each(elementwise.matmul, "DynamicQuantizeMatMul MatMulIntegerToFloat"),
        **_each(elementwise.gemm, "FusedGemm"),
        **_each(windows.convolution, "FusedConv"),
        **_each(indexing.recurrent, "DynamicQuantizeLSTM"),
        **_each(_pair, "QLinearAdd QLinearMul"),
        **_each(
            _as_first,
            "BiasGelu FastGelu Gelu QuickGelu QLinearLeakyRelu QLinearSigmoid QLinearSoftmax "
            "SimplifiedLayerNormalization SkipLayerNormalization SkipSimplifiedLayerNormalization",
        ),
    }
)
