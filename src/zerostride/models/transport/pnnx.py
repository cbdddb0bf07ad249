"""Broadcasts as the converter pnnx writes them for ncnn.

Its pass `insert_reshape_numpy_binaryop_broadcast` (tools/pnnx/src/pass_ncnn in Tencent/ncnn) puts
ones in front of the operand of lower rank, so that the meaning is NumPy's. It infers the batch axis
from the ops around a tensor, such as a convolution; without such an op, all axes stay.
tests/conformance/test_pnnx.py converts small models and compares the numbers.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from ...core.alignment import Rule, resolve
from ...core.plan import Plan
from ...core.rules import NCNN_RANK, RULES
from ...derive.size_traps import Side
from ...engines.model import Engine
from ...engines.rows import frozen
from ...errors import Reason
from ...sizes import Asker
from ..ir.site import Kind, Site
from .pnnx_types import check_types
from .ways import NotJudged, refusal, transport

_SOURCE = "pnnx 20261020, run on generated models; insert_reshape_numpy_binaryop_broadcast.cpp"
#: NumPy's alignment, up to the rank of ncnn's blobs.
RULE = replace(
    RULES["numpy"],
    summary="pnnx reshapes the operand of lower rank, so that NumPy's alignment holds.",
    source=_SOURCE,
    max_rank=NCNN_RANK,
)
#: The rule of an Expand: pnnx writes a Tile for it.
TILED = replace(RULES["bidirectional"], max_rank=NCNN_RANK, source=_SOURCE)
#: ONNX's ops that become BinaryOp layers, several of them for more than two operands.
BINARY = frozenset({"Add", "Sub", "Mul", "Div", "Max", "Min", "Mod", "Pow", "Sum"})
#: Ops whose forms of op sets before 7 pnnx's own copy of ONNX Runtime lacks: pnnx crashes then.
_SINCE_7 = frozen("Add Sub Mul Div Pow And Or Xor Equal Greater Less PRelu Gemm BatchNormalization")
#: Ops whose layers hold a scale along the normalised axes.
_LAYER_NORMS = frozenset({"LayerNormalization", "RMSNormalization"})
_RANK = frozenset({Reason.RANK_LIMIT})
#: Ops that it writes with their first two operands alone.
_OF_TWO = frozenset({"Max", "Min"})
#: Ops of one operand that it gets wrong, and how: a Max becomes a reduction over all axes.
OF_ONE: Mapping[str, tuple[Reason, str]] = MappingProxyType(
    {
        "Max": (Reason.WRONG_RESULT, "pnnx makes the largest number of a Max of one operand"),
        "Min": (Reason.WRONG_RESULT, "pnnx makes the least number of a Min of one operand"),
        "Sum": (Reason.CRASH, "pnnx ends with a segmentation fault on a Sum of one operand"),
        "Mean": (Reason.NO_OP, "pnnx writes a layer Mean, which ncnn does not have"),
    }
)


def reshaped(plan: Plan) -> Plan:
    """The plan of the operands as pnnx leaves them, all of one rank."""
    every = (tuple(range(plan.rank)),) * len(plan.aligned)
    return Plan(plan.shape, plan.aligned, every, plan.rule)


def batches_by_pnnx(site: Site, axes: Sequence[int | None]) -> Sequence[int | None]:
    """The batch axes of a site's operands as pnnx sees them.

    If an operand of full rank carries the batch, one of lower rank has none: pnnx puts ones in
    front of it. If only an operand of lower rank carries it, pnnx gives up.

    Raises:
        BroadcastError: pnnx writes a wrong layer for want of the axis.
    """
    if site.kind is Kind.EXPAND:
        _check_tile(site, axes)
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
    if site.node.op in _SINCE_7 and site.node.domain == "" and site.node.version < 7:
        detail = f"pnnx ends with a segmentation fault on {site.node.op} of op sets before 7"
        hint = "convert the model to opset 13 first"
        raise refusal(site, detail, Reason.CRASH, silent=True, hint=hint)
    if len(site.operands) == 1 and site.node.op in OF_ONE:
        reason, detail = OF_ONE[site.node.op]
        hint = "leave the node out: it hands on its operand"
        raise refusal(site, detail, reason, silent=reason is not Reason.NO_OP, hint=hint)
    if site.node.op in _LAYER_NORMS:
        _check_scale(site)
    if site.kind is Kind.EXPAND:
        return Side(_tiled(site), {}, engine.title)
    lacking = OF_ONE["Mean"][1] if site.node.op == "Mean" else _as_linear(site)
    if lacking is not None:
        raise refusal(site, lacking, Reason.NO_OP)
    direct = transport(site, engine)
    of_two = site.node.op in _OF_TWO
    check_types(site, site.operands[:2] if of_two else site.operands)
    if of_two and len(site.operands) > 2:
        detail = f"pnnx keeps the first two operands of a {site.node.op}, and leaves out the others"
        raise refusal(site, detail, Reason.WRONG_RESULT, silent=True)
    data = site.operands[0].shape
    if site.node.op == "InstanceNormalization" and data is not None and len(data) == 3:
        detail = (
            "pnnx writes nn.InstanceNorm1d, a layer that ncnn does not have (of a GroupNorm that "
            "PyTorch exported, unless pnnx is told all sizes)"
        )
        raise refusal(site, detail, Reason.NO_OP)
    if site.kind is not Kind.ELEMENTWISE:
        return replace(direct, rule=_unchecked(direct.rule))
    if site.node.op not in BINARY:
        raise NotJudged(f"what pnnx makes of {site.node.op} is not known to work")
    return Side(_unchecked(_on_release(engine, direct.rule)), {}, engine.title, direct.op)


def _tiled(site: Site) -> Rule:
    """The rule of the Tile that an Expand becomes."""
    shapes = [part.shape for part in site.operands]
    sizes = [size for shape in shapes for size in shape or ()]
    if None in shapes or not all(isinstance(size, int) for size in sizes):
        detail = (
            "pnnx writes a layer Expand, which ncnn does not have, where it does not know all "
            "sizes; of sizes that it is given (inputshape=) it makes a Tile"
        )
        raise refusal(site, detail, Reason.NO_OP)
    check_types(site, [part for part in site.operands[:1] if not part.constant])
    # It leaves out a fifth axis of 1; of another size ncnn does not load the Tile.
    return _unchecked(TILED) if (shapes[1] or (0,))[0] == 1 else TILED


def _unchecked(rule: Rule) -> Rule:
    """The rule: nothing checks the number of axes but whoever feeds an input."""
    return replace(rule, silent=rule.silent | _RANK)


def _check_scale(site: Site) -> None:
    """Refuses a scale that stretches along the normalised axes: pnnx writes it as it is."""
    data, scale = (part.shape for part in site.operands[:2])
    if data is None or scale is None:
        return
    first = int(site.node.attributes.get("axis", -1))
    normalised = data[first:] if first else data
    wanted, given = (
        [size for size in shape if isinstance(size, int)] for shape in (normalised, scale)
    )
    if len(wanted) + len(given) < len(normalised) + len(scale):
        return
    tensor = site.operands[1].tensor
    doubles = tensor is not None and tensor.constant and tensor.computed_type == "float64"
    if doubles and 2 * math.prod(given) == math.prod(wanted):
        detail = "pnnx writes a scale of float64 as it is, and ncnn reads each number as two"
        raise refusal(site, detail, Reason.WRONG_RESULT, silent=True)
    if math.prod(given) != math.prod(wanted):
        detail = (
            f"ncnn does not load the layer that pnnx writes of a scale {scale} where "
            f"{normalised} is normalised"
        )
        raise refusal(site, detail, Reason.EXTENT_MISMATCH, hint="store the scale in full")


def _check_tile(site: Site, axes: Sequence[int | None]) -> None:
    """Refuses an Expand that becomes a wrong Tile (run: tests/conformance/test_pnnx.py).

    Of data that lose their batch axis pnnx leaves out the target's first number, whatever axis it
    is of. ncnn puts the fourth axis of a Tile behind the first one of three.
    """
    data, target = (part.shape or () for part in site.operands)
    if not data and any(size != 1 for size in target):
        detail = f"pnnx makes one number of an Expand of one number to {target}"
        raise refusal(site, detail, Reason.WRONG_RESULT, silent=True)
    if axes[0] is None:
        if len(data) == 3 and len(target) == NCNN_RANK and data[0] != 1:
            detail = f"ncnn puts the new axis of {target} behind the first axis of {data}"
            raise refusal(site, detail, Reason.WRONG_RESULT, silent=True)
        return
    if 0 < len(target) < len(data) - 1 and target[0] != 1 == data[-len(target)]:
        detail = (
            f"pnnx leaves out the first number of the target {target}, as if it were of the batch "
            "axis, which the data lose"
        )
        raise refusal(site, detail, Reason.WRONG_RESULT, silent=True)


def _as_linear(site: Site) -> str | None:
    """A Gemm of which pnnx makes PyTorch's function, in words.

    A layer of ncnn becomes of constant weights with a constant bias of one axis, and of a product
    at run time without transB (run: every kind of C, both transpositions, constants and inputs).
    """
    if site.kind is not Kind.GEMM:
        return None
    node, bias = site.node, site.operands[1]
    weights = node.inputs[1]
    columns = (site.operands[0].shape or (None, None))[-1]
    if weights is None or columns is None or bias.shape is None:
        return None
    if weights.constant:
        layer = bias.constant and (bias.shape or (1,)) == (columns,)
        how = "a constant bias of one axis"
    else:
        layer = not node.attributes.get("transB")
        how = "weights that are not transposed"
    return None if layer else f"pnnx writes F.linear, which ncnn does not have, but of {how}"


def _on_release(engine: Engine, rule: Rule) -> Rule:
    """The rule of pnnx, with what an older release of ncnn makes of operands of one rank."""
    if not engine.newest:
        return RULE
    check = functools.partial(_checked_by, rule)
    return replace(RULE, operands=(2, 2), check=check, silent=RULE.silent | rule.silent)


def _checked_by(rule: Rule, plan: Plan, asker: Asker) -> None:
    alignment = rule.align(asker, plan.aligned, {})
    resolve(asker, plan.aligned, alignment, rule)
    if rule.check is not None:
        rule.check(reshaped(plan), asker)
