"""The verdict on an attention: the model's plan of it beside the target's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from ...attention.compare import laid_for
from ...attention.plan import Asked, AttentionPlan, Difference
from ...attention.planning import plan_asked
from ...attention.rows import ROWS, find_rule
from ...attention.rules import AttentionRule
from ...attention.witness import first_difference
from ...derive.counterexample import Witness
from ...engines.model import Engine
from ...errors import BroadcastError, Reason
from ...sizes.condition import ne
from ...sizes.dim import Dim
from ..findings import Verdict
from ..ir.graph import Node
from ..ir.site import AttentionCall, Site, input_at
from ..onnx_ops.attention_sites import ATTENTIONS
from ..onnx_ops.written.table import not_written
from ..reasons import Cause
from ..transport.converters import Converter
from ..transport.node_limits import attention_ranks
from .judged_site import Judgement, sizes_of

#: Engines on which attention is written as products, a sum and a softmax, as documents say them.
_WRITTEN_OUT = frozenset(
    {"numpy", "jax", "tensorflow", "paddle", "litert", "litert-gpu", "tosa", "stablehlo", "coreml"}
    | {"executorch"}
)
#: Converters without attention, and what to do.
_LACK: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("mnnconvert", "pnnx"), "zerostride convert and port do so"),
        "onnx-parser": "onnx/onnx-tensorrt 10.1 takes op sets up to 20, so export one of them",
    }
)


def attended(site: Site, call: AttentionCall, engine: Engine, way: Converter) -> Judgement:
    """The judgement of an attention's site."""
    if call.unfit:
        return lacked(site.node, way) or _unfit(call)
    asked = replace(call.asked, shapes=tuple(map(sizes_of, site.operands)))
    try:
        source = plan_asked(call.rule, asked)
    except BroadcastError as error:
        message = f"the model itself does not attend here: {error.detail}"
        return Judgement(error, None, Verdict.REFUSED, Cause.INVALID, message)
    absent = lacked(site.node, way)
    if absent is not None:
        return replace(absent, source=source)
    if engine.name in _WRITTEN_OUT:
        message = f"means the same on {engine.name}, written as products, a sum and a softmax"
        return Judgement(source, source, Verdict.SAME, Cause.SAME_PLAN, message)
    detail = _without_room(site, source) if way.name == "onnx-frontend" else None
    if detail is not None:
        return Judgement(source, None, Verdict.REFUSED, Reason.NO_OP, f"{way.name}: {detail}")
    if engine.name == "openvino" and (site.node.domain, site.node.op) == _OWN:
        unfit = attention_ranks(site.node)
        if unfit is not None:
            return Judgement(source, None, Verdict.REFUSED, Reason.NO_OP, f"openvino: {unfit}")
    if way.name == "onnx-frontend" and _turned_by_size(site, source):
        message = "whether it turns queries wrongly, as it does in a file of fixed sizes, depends"
        message = f"{way.name}: {message} on values: there are as many queries as heads"
        return Judgement(source, None, Verdict.UNKNOWN, Cause.NOT_MEASURED, message)
    rules = tuple(_rules(call, engine, way))
    if not rules:
        message = f"{site.node.op} was not measured on {engine.name}"
        return Judgement(source, None, Verdict.UNKNOWN, Cause.NOT_MEASURED, message)
    judgement = _compared(source, asked, rules, engine.name)
    return replace(judgement, notes=(*judgement.notes, call.where)) if call.where else judgement


def _unfit(call: AttentionCall) -> Judgement:
    whose = f"{call.rule.engine}'s CPU refuses {call.unfit}"
    message = f"the model itself does not attend here: {whose}"
    return Judgement(None, None, Verdict.REFUSED, Cause.INVALID, message)


def lacked(node: Node, way: Converter) -> Judgement | None:
    """The judgement where a converter has no attention; None where it has, or of other ops."""
    if way.name == "onnx-frontend" and (node.domain, node.op) == (_LOCAL, "GroupQueryAttention"):
        lacks = ", ".join(_beyond_frontend(node))
        message = f"{way.name} refuses a {node.op} with {lacks}"
        return Judgement(None, None, Verdict.REFUSED, Reason.NO_OP, message) if lacks else None
    if way.name not in _LACK or node.op not in ATTENTIONS or node.domain not in ("", _LOCAL):
        return None
    whose = ", an op of ONNX Runtime" if node.domain == _LOCAL else ""
    message = f"{way.name} does not convert {node.op}{whose}"
    past = input_at(node, 3) if node.op == "GroupQueryAttention" else None
    if way.name == "pnnx" and past is not None and past.dtype in ("int8", "uint8"):
        message = f"{message}; ncnn has no op that reads the numbers of a quantised past"
    elif not_written(node) is None and not (whose and way.name == "onnx-parser"):
        same = "written out as MatMul, Add and Softmax it means the same"
        message = f"{message}; {same}: {_LACK[way.name]}"
    return Judgement(None, None, Verdict.REFUSED, Reason.NO_OP, message)


_LOCAL = "com.microsoft"
_OWN = "openvino", "ScaledDotProductAttention"


def _beyond_frontend(node: Node) -> Iterator[str]:
    """The parts of a GroupQueryAttention with which OpenVINO 2026.4.1 does not load it; run."""
    if input_at(node, 14) is not None or input_at(node, 15) is not None:
        yield "a normalised query and key"
    if input_at(node, 16) is not None:
        yield "query_seqlens"
    if node.attributes.get("qk_output"):
        yield "qk_output"


def _turned_by_size(site: Site, source: AttentionPlan) -> bool:
    """Whether OpenVINO's frontend may turn the queries of a GroupQueryAttention wrongly.

    It does where all sizes of the file are fixed: `attention.rows`. Where the past's are open, it
    does if the lengths are constants.
    """
    heads, group = source.space[1:3]
    as_many = source.asked.rotated and group != 1 and source.space.query == heads * group
    past = input_at(site.node, 3)
    sizes = None if past is None else past.shape
    return as_many and not (sizes and all(isinstance(size, int) for size in sizes))


def _without_room(site: Site, source: AttentionPlan) -> str | None:
    """The reason why OpenVINO's frontend does not take a GroupQueryAttention's past, or None.

    It writes the new keys into the tensor of the past. OpenVINO 2026.4.1, run.
    """
    if site.node.op != "GroupQueryAttention" or source.asked.room is not None:
        return None
    past = input_at(site.node, 3)
    if past is None:
        return "it takes no GroupQueryAttention without past keys"
    room = past.shape[2] if past.shape is not None and len(past.shape) == 4 else None
    if isinstance(room, int) and isinstance(source.space.key, int) and room < source.space.key:
        return f"the past has room for {room} keys, and there are {source.space.key} with the new"
    return None


def _rules(call: AttentionCall, engine: Engine, way: Converter) -> Iterator[AttentionRule]:
    """The rows of the ops by which a way carries the call, the one that is nearest first."""
    rows = ROWS.get(engine.name, ())
    if engine.name == "openvino":
        if way.name == "onnx-frontend":
            yield from (row for row in rows if row.op == call.rule.op)
        elif way.name == "none":
            yield find_rule("openvino", "ScaledDotProductAttention")
        return
    if call.rule.engine == engine.name:
        yield call.rule
    elif engine.name == "onnxruntime":
        windowed = call.rule.op == "Attention-25"  # its CPU has no kernel of it
        yield find_rule("onnxruntime", call.rule.op if windowed else "Attention")
    else:
        yield from rows


def _compared(
    source: AttentionPlan, asked: Asked, rules: tuple[AttentionRule, ...], name: str
) -> Judgement:
    """The best of the judgements by each rule: an engine's user takes the op that fits."""
    judgements = [_judgement(source, asked, rule, name) for rule in rules]
    return min(judgements, key=lambda judgement: _ORDER.index(judgement.verdict))


_ORDER = (Verdict.SAME, Verdict.SAME_HERE, Verdict.DIFFERENT, Verdict.REFUSED, Verdict.UNKNOWN)


def _judgement(source: AttentionPlan, asked: Asked, rule: AttentionRule, name: str) -> Judgement:
    try:
        target = plan_asked(rule, laid_for(rule, source))
    except BroadcastError as error:
        verdict = Verdict.DIFFERENT if error.silent else Verdict.REFUSED
        return Judgement(source, error, verdict, error.reason, error.detail)
    every = source.differences(target)
    differences = [each for each in every if each.code != "empty_row"]
    notes = tuple(
        f"{name} differs where a query lacks every key: {each.right}; in the model {each.left}"
        for each in every
        if each.code == "empty_row"
    )
    if not differences:
        message = f"means the same on {name}"
        return Judgement(source, target, Verdict.SAME, Cause.SAME_PLAN, message, notes=notes)
    words = "; ".join(map(_words, differences))
    when = None
    if {each.code for each in differences} == {"causal"} and source.offset is not None:
        pair = source.offset, target.offset
        if target.offset is not None and any(isinstance(size, Dim) for size in pair):
            when = ne(source.offset, target.offset)
    return Judgement(
        source,
        target,
        Verdict.DIFFERENT,
        Cause.OTHER_ATTENTION,
        f"{name} attends otherwise: {words}",
        witness=_witness(source, target),
        when=when,
        notes=notes,
    )


def _witness(source: AttentionPlan, target: AttentionPlan) -> Witness | None:
    """Numbers that show the difference, where the target takes the same operands."""
    if source.asked.rotated or source.asked.stored is not None:
        return None  # numbers of a query that is not turned, or of keys that are not rounded
    difference = first_difference(source, target)
    if difference is None:
        return None
    index, left, right = difference
    shapes: tuple[tuple[Any, ...], ...] = source.asked.shapes
    return Witness(shapes, "attention", index, left, right, "drawn with seed 0")


def _words(difference: Difference) -> str:
    return (
        f"{difference.code.replace('_', ' ')}: {difference.right}, in the model {difference.left}"
    )
