"""Broadcasts as the converter pnnx writes them for ncnn.

Its pass `insert_reshape_numpy_binaryop_broadcast` (tools/pnnx/src/pass_ncnn in Tencent/ncnn) puts
ones in front of the operand of lower rank, so that the meaning is NumPy's. It infers the batch axis
from the ops around a tensor, such as a convolution; without such an op, all axes stay.
tests/conformance/test_pnnx.py converts small models and compares the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from ...core.plan import Plan
from ...core.rules import RULES
from ...derive.size_traps import Side
from ...engines.model import Engine
from ..formats.onnx.sites import Kind, Site
from .ways import NotJudged, transport

_SOURCE = "pnnx 20261020, run on generated models; insert_reshape_numpy_binaryop_broadcast.cpp"
#: NumPy's alignment, up to the rank of ncnn's blobs.
RULE = replace(
    RULES["numpy"],
    summary="pnnx reshapes the operand of lower rank, so that NumPy's alignment holds.",
    source=_SOURCE,
    operands=(2, 2),
    max_rank=4,
)
#: ONNX's ops that become BinaryOp layers, with the most operands they may have there.
BINARY: Mapping[str, int] = MappingProxyType(
    {**dict.fromkeys(("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow"), 2), "Sum": 16}
)


def reshaped(plan: Plan) -> Plan:
    """The plan of the operands as pnnx leaves them, all of one rank."""
    every = (tuple(range(plan.rank)),) * len(plan.aligned)
    return Plan(plan.shape, plan.aligned, every, plan.rule)


def carried(site: Site, axes: Sequence[int | None]) -> Sequence[int | None]:
    """The batch axes of a site's operands as pnnx sees them.

    If an operand of full rank carries the batch, one of lower rank has none: pnnx puts ones in
    front of it. If only an operand of lower rank carries it, pnnx gives up.
    """
    ranks = [len(part.shape or ()) for part in site.operands]
    full = [rank == max(ranks, default=0) for rank in ranks]
    if site.kind is not Kind.ELEMENTWISE or all(
        axis is None for axis, whole in zip(axes, full, strict=False) if whole
    ):
        return axes
    return [axis if whole else None for axis, whole in zip(axes, full, strict=False)]


def pnnx_transport(site: Site, engine: Engine) -> Side:
    """The rule that holds on ncnn after pnnx; as `transport` for ops that it leaves alone.

    Raises:
        BroadcastError: ncnn has no such op.
        NotJudged: nothing is known about it.
    """
    direct = transport(site, engine)
    if site.kind is not Kind.ELEMENTWISE:
        return direct
    if len(site.operands) > BINARY.get(site.node.op, 0):
        many = f" of {len(site.operands)} operands" if site.node.op in BINARY else ""
        raise NotJudged(f"what pnnx makes of {site.node.op}{many} is not known to work")
    return Side(RULE, {}, engine.name, direct.op)
