"""What the converter pnnx makes of a broadcast on its way to ncnn.

Its pass `insert_reshape_numpy_binaryop_broadcast` (tools/pnnx/src/pass_ncnn in Tencent/ncnn) puts
ones in front of the operand of lower rank, so that the meaning is NumPy's. It does so for BinaryOp
layers with known shapes, the batch axis left out; at rank 5 and more it prints a line and goes on.
"""

from __future__ import annotations

from dataclasses import replace

from ..engines.model import Engine
from ..rules import RULES
from ..traps import Side
from .sites import Kind, Site
from .targets import transport

_SOURCE = "pnnx, insert_reshape_numpy_binaryop_broadcast.cpp, read and run on examples"
#: NumPy's alignment, as far as ncnn's blobs reach.
RULE = replace(
    RULES["numpy"],
    summary="pnnx reshapes the operand of lower rank, so that NumPy's alignment holds.",
    source=_SOURCE,
    operands=(2, 2),
    max_rank=4,
)


def pnnx_transport(site: Site, engine: Engine) -> Side:
    """The rule that holds on ncnn after pnnx; as `transport` for ops that it leaves alone."""
    direct = transport(site, engine)
    if site.kind is not Kind.ELEMENTWISE:
        return direct
    return Side(RULE, {}, engine.name, direct.op)
