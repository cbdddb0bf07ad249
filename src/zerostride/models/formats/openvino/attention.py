"""The site of ScaledDotProductAttention: a call of `zerostride.attention`.

Its inputs are query, key, value, mask, scale and sink. Operands of fewer axes stand for those with
axes of size 1 before them (run: OpenVINO 2026.4.1, tests/conformance/test_attention_ir.py).
"""

from __future__ import annotations

from dataclasses import replace

from ....attention.plan import UNASKED
from ....attention.rows import find_rule
from ...ir.graph import Node, Value
from ...ir.site import (
    BOTH_WAYS,
    AttentionCall,
    Kind,
    Operand,
    Site,
    input_at,
    not_modelled,
    operand_of,
)

#: The most axes that attention is planned with.
_MOST_AXES = 4
_INPUTS = 6


def attention_site(node: Node, op: str) -> Site | None:
    """The site; None if nothing can repeat and no key is masked."""
    parts = [operand_of(value) for value in node.inputs[:3] if value is not None]
    mask, scale, sink = (input_at(node, position) for position in range(3, _INPUTS))
    if len(parts) < 3 or len(node.inputs) > _INPUTS:
        return not_modelled(node)
    if mask is not None and mask.shape == ():  # one number for all scores changes nothing
        if mask.dtype == "bool":
            return not_modelled(node, "a mask of one truth value")
        mask = None
    causal = node.attributes.get("causal") is True
    if mask is None and sink is None and not causal and _alike(parts):
        return None
    kind = "bool" if mask is not None and mask.dtype == "bool" else "float"
    if mask is not None:
        parts.append(operand_of(mask))
    lacks = _beyond(parts, sink)
    if lacks:
        return not_modelled(node, lacks)
    factor = scale.reals[0] if scale is not None and scale.reals else None
    asked = replace(UNASKED, causal=causal, scale=factor, mask_type=kind, sink=sink is not None)
    where = "" if scale is None or factor is not None else "its scale is computed in the model"
    call = AttentionCall(find_rule("openvino", "ScaledDotProductAttention"), asked, where)
    return Site(node, Kind.NOT_MODELLED, _padded(parts, causal), BOTH_WAYS, {}, op, call=call)


def _alike(parts: list[Operand]) -> bool:
    """Whether query, key and value have the same known axes before the last two."""
    outer = {(None,) if part.shape is None else part.shape[:-2] for part in parts}
    return len(outer) == 1 and None not in outer.pop()


def _beyond(parts: list[Operand], sink: Value | None) -> str | None:
    """The reason why operands of these axes are not planned, or None."""
    ranks = [len(part.shape) for part in parts if part.shape is not None]
    if max(ranks, default=0) > _MOST_AXES:
        return f"more than {_MOST_AXES} axes"
    if min((len(part.shape) for part in parts[:3] if part.shape is not None), default=3) < 3:
        return "a query, key or value of fewer than 3 axes"
    if sink is None or sink.shape is None or parts[0].shape is None:
        return None
    sizes = (*parts[0].shape[:-1], 1)
    fits = len(sink.shape) == len(sizes)
    if fits and all(own in (1, None, full) for own, full in zip(sink.shape, sizes, strict=True)):
        return None
    return "a sink of other axes than the query"


def _padded(parts: list[Operand], causal: bool) -> tuple[Operand, ...]:
    """The operands, with query, key and value of as many axes as the one that has most.

    A causal attention reads no mask.
    """
    if any(part.shape is None for part in parts):
        return tuple(parts)
    most = max(len(part.shape or ()) for part in (parts[:3] if causal else parts))
    padded = (
        replace(part, shape=((1,) * (most - len(part.shape or ())) + (part.shape or ())))
        for part in parts[:3]
    )
    return (*padded, *parts[3:])
