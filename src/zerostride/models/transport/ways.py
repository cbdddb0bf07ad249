"""The rule by which an engine carries out a site, by kind of site.

The engine table has element-wise ops, Expand and PRelu; `compound_engines` has compounds (a Gemm, a
normalisation). An op without a row for the engine is not judged: its finding is `unknown`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ...core.alignment import Rule
from ...derive.size_traps import Side
from ...engines.changes import place_of
from ...engines.model import BROADCAST, Engine
from ...engines.planning import NAMELESS, has_op, rule_row, without_op
from ...engines.supports import typed_rule
from ...errors import BroadcastError, Reason
from ...ops import find_op
from ..ir.graph import FileShape
from ..ir.site import Kind, Site
from .absent_ops import ABSENT, LISTED
from .compound_engines import CARRIERS, MANY
from .compound_rows import AS_WRITTEN
from .node_limits import NotJudged as NotJudged

#: Kinds whose rule is a row of the engine table, where `compound_engines` has none.
_TABLED = frozenset({Kind.ELEMENTWISE, Kind.WHERE, Kind.PRELU})
#: The operand whose element type decides, where it is not the last.
_DECIDING = {Kind.PER_AXIS: 1, Kind.EXPAND: 0}


def transport(site: Site, engine: Engine, via: str = "") -> Side:
    """The rule and attributes of a site's node on an engine, op for op.

    Args:
        site: the broadcast.
        engine: the engine's row, or its row for a converter's output.
        via: the converter whose rows of `compound_engines` come before the engine's own.

    Raises:
        BroadcastError: the engine has no such op.
        NotJudged: nothing is known about it.
    """
    if site.node.domain == "com.microsoft":
        return _contributed(site, engine)
    own_rule = _own_rule(site, engine)
    if own_rule is not None:
        op = None if site.kind is Kind.EXPAND else canonical(site)
        return Side(own_rule, site.attributes, engine.title, op)
    many = MANY.get((engine.name, site.stands_for)) if len(site.operands) > 2 else None
    if many is not None:
        return Side(many.rule, {}, engine.name, canonical(site))
    if site.kind is Kind.EXPAND:
        if engine.broadcasts is None:
            raise NotJudged(f"nothing was read about broadcasting to a shape on {engine.name}")
        own = site.rule.name in engine.to_target  # OpenVINO's Broadcast has a mode for each rule
        row = rule_row(site.rule.name if own else None, engine=engine, to_target=True)
        row = typed_rule(engine, BROADCAST, element_type(site)) or row
        if own:
            return Side(row, site.attributes, engine.title)
        return Side(row, _last_axes(site) if "axes_mapping" in row.attributes else {}, engine.title)
    absent = (site.stands_for, engine.name) in ABSENT
    if site.kind in _TABLED and not absent and engine.name not in CARRIERS.get(site.stands_for, {}):
        op = canonical(site)
        if engine.name not in NAMELESS and engine.name != "onnxruntime":
            _check_has(engine, site, op)
        _check_opset(engine, site)
        row = rule_row(None, engine=engine, op=op)
        row = typed_rule(engine, op, element_type(site)) or row
        fixed = engine.constants and site.kind is not Kind.WHERE
        if fixed and _with_small_constant(site) and not _whole_constant(site, engine):
            row = engine.constants.get(op or "") or next(iter(engine.constants.values()))
        if op is not None and op in engine.dynamic and _compiled_open(site):
            row = next(iter(engine.dynamic[op].values()))
        kept = {k: v for k, v in site.attributes.items() if k in row.attributes and v is not None}
        return Side(row, kept, engine.title, op)
    return _compound(site, engine, via)


#: Ops of com.microsoft that OpenVINO's ONNX frontend carries as they are written.
CONTRIB_OPENVINO = frozenset(
    {
        "BiasGelu",
        "DynamicQuantizeLSTM",
        "FastGelu",
        "FusedGemm",
        "FusedMatMul",
        "MatMulIntegerToFloat",
        "RotaryEmbedding",
        "SimplifiedLayerNormalization",
        "SkipLayerNormalization",
        "SkipSimplifiedLayerNormalization",
    }
)

#: Ops of com.microsoft that it does not read.
UNREAD_OPENVINO = frozenset({"QGemm"})

#: Ops of com.microsoft that OpenVINO's frontend computes in float, then only casts (2026.4.1, run:
#: tests/conformance/test_quantised.py).
_CAST_ALONE = frozenset({"QLinearAdd", "QLinearMul"})


def _contributed(site: Site, engine: Engine) -> Side:
    """ONNX Runtime's own ops by its document; OpenVINO carries some of them."""
    op = site.node.op
    if engine.name == "onnxruntime" and op in _CAST_ALONE and _without_offset(site):
        detail = "onnxruntime infers no type where a zero point is left out, and does not load"
        raise refusal(site, detail, Reason.DTYPE)
    if engine.name == "openvino" and op in _CAST_ALONE:
        detail = "openvino: the result is cut off and wraps around, not rounded and saturated"
        raise refusal(site, detail, Reason.WRONG_RESULT, silent=True)
    if engine.name == "openvino" and op == "RotaryEmbedding":
        _check_rotary(site)
    if engine.name == "onnxruntime" or (engine.name == "openvino" and op in CONTRIB_OPENVINO):
        return Side(site.rule, site.attributes, engine.title, op)
    if engine.name == "openvino" and op in UNREAD_OPENVINO:
        raise refusal(site, f"openvino's ONNX frontend has no {op}", Reason.NO_OP)
    if engine.name == "openvino":
        raise NotJudged(f"{op} of com.microsoft on openvino has not been looked at")
    raise refusal(site, f"{op} is an op of ONNX Runtime; {engine.name} has none", Reason.NO_OP)


def _check_rotary(site: Site) -> None:
    """Raises where OpenVINO's frontend rotates otherwise than ONNX Runtime, or not at all.

    OpenVINO 2026.4.1, run: tests/conformance/test_rotary.py.
    """
    attributes, (data, ids) = site.node.attributes, site.node.inputs[:2]
    if "interleaved" not in attributes:
        detail = "openvino's ONNX frontend takes no RotaryEmbedding without `interleaved`"
        raise refusal(site, detail, Reason.ATTRIBUTE, hint="write interleaved=0")
    partial, shape = attributes.get("rotary_embedding_dim"), None if data is None else data.shape
    if isinstance(partial, int) and partial and shape is not None:
        width = shape[-1]
        if len(shape) != 3 or (isinstance(width, int) and width % partial):
            raise refusal(site, "openvino does not read rotary_embedding_dim", Reason.NO_OP)
        detail = "openvino takes rotary_embedding_dim for the size of a head"
        raise refusal(site, detail, Reason.WRONG_RESULT, silent=True)
    length = (site.operands[1].shape or (None,))[0]
    if ids is not None and ids.shape is not None and len(ids.shape) == 1 and length != 1:
        detail = "openvino: every place of a sequence gets the one position, not those behind it"
        raise refusal(site, detail, Reason.WRONG_RESULT, silent=True)


def _without_offset(site: Site) -> bool:
    """Whether a zero point of a QLinearAdd or QLinearMul has an empty name.

    The last one may be left out. ONNX Runtime 1.31.1, run: tests/conformance/test_quantised.py.
    """
    return any(value is None for value in site.node.inputs)


def _own_rule(site: Site, engine: Engine) -> Rule | None:
    """The engine's version of the rule that a file of its own format names, where it names one."""
    if site.node.domain != engine.name:
        return None
    _check_measured(site, engine)
    if engine.name == "litert" and site.kind in _TABLED:
        return site.rule  # a file names the op, and SELECT, for one, is not the row's SELECT_V2
    if site.kind is Kind.EXPAND:
        rows = engine.to_target
    elif site.kind is Kind.ELEMENTWISE:
        op = canonical(site) or ""
        rows = engine.ops.get(op, engine.elementwise)
        rows = engine.typed.get((op, element_type(site) or ""), rows)
    else:
        return None
    return next((row for row in rows.values() if row.name == site.rule.name), None)


def _check_measured(site: Site, engine: Engine) -> None:
    """Refuses a judgement where OpenVINO's CPU plugin depends on more than shapes and types."""
    if engine.name != "openvino" or site.rule.name not in ("none", "pdpd"):
        return
    if site.kind is Kind.WHERE and site.rule.name == "pdpd":
        raise NotJudged("Select with pdpd compiles for some shapes; which was not measured")
    single = [part.constant and _elements(part.shape) == 1 for part in site.operands]
    if any(single):
        few = all(_elements(part.shape) == 1 for part in site.operands)
        if few or (single[-1] and site.attributes.get("axis")):
            raise NotJudged("OpenVINO reshapes a constant of one number before it lays it out")


def _last_axes(site: Site) -> Mapping[str, Any]:
    """An Expand in explicit mode: the data's axes are the target's last ones."""
    data, target = (len(part.shape or ()) for part in site.operands)
    return {"axes_mapping": tuple(range(max(0, target - data), target))}


def _with_small_constant(site: Site) -> bool:
    """Whether an operand is a constant of no more elements than the others."""
    counts = [_elements(part.shape) for part in site.operands]
    if any(part.constant and n == 1 for part, n in zip(site.operands, counts, strict=True)):
        return True
    if None in counts:
        return False
    numbers = [count for count in counts if count is not None]
    return any(
        part.constant and count == min(numbers)
        for part, count in zip(site.operands, numbers, strict=True)
    )


def _whole_constant(site: Site, engine: Engine) -> bool:
    """Whether a constant is not a float: LiteRT's GPU stores it as a tensor, from the batch on.

    google-ai-edge/LiteRT#9664: read.
    """
    tensors = [part.tensor for part in site.operands if part.constant and part.shape]
    kinds = [value.computed_type for value in tensors if value is not None]
    return engine.name == "litert-gpu" and any(k and not k.startswith("float") for k in kinds)


def _elements(shape: FileShape) -> int | None:
    """The number of elements, if the shape has only numbers."""
    if shape is None or not all(isinstance(size, int) for size in shape):
        return None
    return math.prod(size for size in shape if isinstance(size, int))


def _compiled_open(site: Site) -> bool:
    """Whether the sizes that decide the axis of a vector slope are unknown to a compiler."""
    data, slope = (part.shape or () for part in site.operands[:2])
    return (
        len(data) > 1
        and len(slope) == 1
        and not (isinstance(data[1], int) and isinstance(slope[0], int))
    )


#: Engines that were run with a scale for each block of an axis.
_BLOCKED = frozenset({"mnn", "onnxruntime", "openvino"})


def _compound(site: Site, engine: Engine, via: str) -> Side:
    _check_opset(engine, site)
    name = site.stands_for
    if site.node.attributes.get("block_size") and engine.name not in _BLOCKED:
        raise NotJudged(f"scales of blocks on {engine.name} have not been looked at")
    carriers = CARRIERS.get(name, {})
    rows = carriers.get(via) or carriers.get(engine.name, ())
    weights = all(part.constant for part in site.operands[1:])
    release = place_of(engine.release)
    for row in rows:
        of_release = not row.until or release < place_of(row.until)
        if of_release and row.weights in (None, weights):
            for asked, word, reason in (
                (row.needs, " refuses", row.because),
                (row.crashes, "", Reason.CRASH),
                (row.wrong, "", Reason.WRONG_RESULT),
            ):
                detail = asked(site.node) if asked is not None else None
                if detail is not None:
                    silent = asked is row.wrong
                    raise refusal(site, f"{engine.name}{word}: {detail}", reason, silent=silent)
            kinds = [value.computed_type for value in site.node.inputs if value is not None]
            dtypes = tuple(kind for kind in kinds if kind is not None)
            if (
                row.types is not None
                and len(dtypes) == len(kinds)
                and (detail := row.types(dtypes))
            ):
                raise refusal(site, f"{engine.name} does not take {detail}", Reason.DTYPE)
            rule = site.rule if row.rule is AS_WRITTEN else row.rule
            return Side(rule, _attributes(site, rule), engine.title, name)
    if rows:
        detail = f"{engine.name}'s {name} takes constants only for all operands but the first"
        raise refusal(site, detail, Reason.NO_OP)
    absent = ABSENT.get((name, via)) or ABSENT.get((name, engine.name))
    if absent is not None:
        detail = f"{engine.name} has no {name}: {absent}"
        raise refusal(site, detail, Reason.NO_OP)
    raise NotJudged(f"{name} on {engine.name} has not been looked at")


def _attributes(site: Site, rule: Rule) -> Mapping[str, Any]:
    """The rule's attributes, from the site's or the node's."""
    if "axis" not in rule.attributes:
        return {}
    if "axis" in site.attributes:
        return site.attributes
    axis = int(site.node.attributes.get("axis", -1))
    # Counted from the last axis, so that dropping a batch axis does not change it.
    return {"axis": axis if axis < 0 else axis - len(site.operands[0].shape or ())}


def refusal(site: Site, detail: str, reason: Reason, **more: Any) -> BroadcastError:
    """The error of an engine or a converter that refuses a site, or silently goes wrong."""
    shapes = [part.shape for part in site.operands]
    return BroadcastError(detail, reason=reason, shapes=shapes, **more)


#: Element-wise ops of ONNX that broadcast like another op of the table.
_ALIKE = MappingProxyType({"Sum": "add", "Mean": "add"})
#: ONNX ops that are several ops of the table: the deciding attribute, and the op by its value.
_BY_ATTRIBUTE: Mapping[str, tuple[str, Mapping[Any, str]]] = MappingProxyType(
    {
        "Mod": ("fmod", {1: "fmod"}),
        "BitShift": ("direction", {"RIGHT": "bitwise_right_shift", "LEFT": "bitwise_left_shift"}),
    }
)


def element_type(site: Site) -> str | None:
    """The element type that decides how an engine computes a site, where the model says it.

    The first operand of a selection is the condition, so the last one decides. The base of a power
    decides, since converters convert the exponent; the scale of a quantisation.
    """
    if canonical(site) == "pow":
        part = site.operands[0]
    else:
        part = site.operands[_DECIDING.get(site.kind, -1)]
    return None if part.tensor is None else part.tensor.computed_type


def canonical(site: Site) -> str | None:
    """The op table's name for the site's op, or None where the table has no row."""
    if site.kind is Kind.WHERE:
        return "where"
    name = _ALIKE.get(site.stands_for, site.stands_for)
    if name in _BY_ATTRIBUTE:
        attribute, names = _BY_ATTRIBUTE[name]
        name = names.get(site.node.attributes.get(attribute), name)
    try:
        return find_op(name).name
    except BroadcastError:
        return None


def _check_has(engine: Engine, site: Site, op: str | None) -> None:
    if op is None:
        raise NotJudged(f"{site.stands_for} is not in the op table, so {engine.name} was not asked")
    if not has_op(engine, op):
        detail = without_op(engine, op)
        if engine.name in LISTED and not engine.has:
            detail = f"{engine.name} has no op for {op}: {LISTED[engine.name]}"
        elif not (engine.run or engine.has):
            raise NotJudged(detail)
        raise refusal(site, detail, Reason.NO_OP)


#: The first opset for which ONNX Runtime has a kernel, where that is not 7 (run: opsets 1 to 8).
_FIRST_KERNEL = MappingProxyType(
    {**dict.fromkeys(("Max", "Min", "Sum", "Mean", "InstanceNormalization"), 6), "MatMul": 1}
)


def _check_opset(engine: Engine, site: Site) -> None:
    node = site.node
    if node.domain:
        return
    if engine.name == "onnxruntime" and node.version < _FIRST_KERNEL.get(node.op, 7):
        detail = f"ONNX Runtime has no kernel for {node.op} of opset {node.version}"
        hint = "convert the model to opset 7 or later, operands reshaped"
        raise refusal(site, detail, Reason.NO_OP, hint=hint)
