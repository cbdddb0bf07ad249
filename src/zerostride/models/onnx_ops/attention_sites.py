"""The sites of attention: a call of `zerostride.attention` in place of one broadcast rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from ...attention.plan import Asked
from ...attention.rows import find_rule
from ..ir.graph import Node, Value
from ..ir.site import BOTH_WAYS, AttentionCall, Kind, Site, input_at, operand_of
from ..ir.site import not_modelled as unknown

#: The last op set in which a mask's last axis is as long as the keys.
_WHOLE_MASKS = 23


def _attention(node: Node) -> Site | None:
    """Attention of ai.onnx; no site if nothing can repeat and no key is masked."""
    return None if _plain(node) else attention(node)


def attention(node: Node) -> Site:
    """The site of any Attention of ai.onnx.

    Sequence lengths of samples (`nonpad_kv_seqlen`) and windows are not modelled.
    """
    if input_at(node, 6) is not None or _windowed(node):
        return unknown(node)
    return _site(node, standard_call(node), mask=input_at(node, 3), past=input_at(node, 4))


def standard_call(node: Node) -> AttentionCall:
    """What an Attention of ai.onnx asks by its attributes."""
    op = "Attention-23" if node.version <= _WHOLE_MASKS else "Attention"
    heads = _number(node, "q_num_heads"), _number(node, "kv_num_heads")
    return _call(
        node,
        "",
        op,
        heads=(heads[0], heads[1]) if heads[0] else None,
        causal=bool(_number(node, "is_causal")),
    )


def _plain(node: Node) -> bool:
    """Whether nothing can repeat: no mask, and as many heads of keys as of the query."""
    heads = _number(node, "q_num_heads"), _number(node, "kv_num_heads")
    if heads[0] != heads[1] or _number(node, "is_causal"):
        return False
    query, key, value = (input_at(node, k) for k in range(3))
    if (
        input_at(node, 3) is not None
        or input_at(node, 6) is not None
        or None in (query, key, value)
    ):
        return False
    shapes = [None if x is None or x.shape is None else x.shape for x in (query, key, value)]
    packed = all(shape is not None and len(shape) == 3 for shape in shapes)
    outer = {(None,) if shape is None else shape[: 1 if packed else 2] for shape in shapes}
    return len(outer) == 1 and all(None not in sizes for sizes in outer)


def _windowed(node: Node) -> bool:
    return any(side is not None for side in windows_of(node))


def windows_of(node: Node) -> tuple[int | None, int | None]:
    """The most keys to the left and to the right of a query's own place; None: no limit."""
    sides = (node.attributes.get(f"{side}_window_size") for side in ("left", "right"))
    left, right = (size if isinstance(size, int) and size != -1 else None for size in sides)
    return left, right


def _multi_head(node: Node) -> Site:
    """MultiHeadAttention of com.microsoft, with query, key and value apart."""
    key, value = input_at(node, 1), input_at(node, 2)
    padding, bias = input_at(node, 4), input_at(node, 5)
    if key is None or value is None or (padding is not None and bias is not None):
        return unknown(node)
    heads = _number(node, "num_heads")
    call = _call(
        node,
        "onnxruntime",
        "MultiHeadAttention",
        heads=(heads, heads),
        causal=bool(_number(node, "unidirectional")),
    )
    mask = padding if bias is None else bias
    return _site(node, call, mask=mask, past=input_at(node, 6))


def _call(
    node: Node,
    engine: str,
    op: str,
    *,
    heads: tuple[int, int | None] | None,
    causal: bool,
    window: int | None = None,
) -> AttentionCall:
    """The call without shapes, past and mask."""
    asked = Asked(
        shapes=(),
        causal=causal,
        heads=heads,
        past=0,
        scale=_real(node, "scale") or None,
        softcap=abs(_real(node, "softcap")),
        window=window,
        mask_type="float",
        facts=None,
    )
    return AttentionCall(find_rule(engine, op), asked)


def _site(node: Node, call: AttentionCall, *, mask: Value | None, past: Value | None) -> Site:
    values = [*(input_at(node, k) for k in range(3)), mask]
    present = [value for value in values if value is not None]
    if any(value is None for value in values[:3]):
        return unknown(node)
    operands = tuple(map(operand_of, present))
    before: Any = 0
    if past is not None:
        if past.shape is None or None in past.shape:
            unsized = replace(operand_of(past), shape=None)
            return Site(node, Kind.ATTENTION, (*operands, unsized), BOTH_WAYS, {})
        if len(past.shape) != 4:
            return unknown(node)
        before = past.shape[2]
    kind = "float" if mask is None or "float" in (mask.dtype or "float") else "bool"
    call = replace(call, asked=replace(call.asked, past=before, mask_type=kind))
    return Site(node, Kind.NOT_MODELLED, operands, BOTH_WAYS, {}, call=call)


def _number(node: Node, name: str) -> int:
    value = node.attributes.get(name)
    return value if isinstance(value, int) else 0


def _real(node: Node, name: str) -> float:
    value = node.attributes.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


Builder = Callable[[Node], "Site | None"]
#: Ops of ai.onnx.
ROWS: Mapping[str, Builder] = MappingProxyType({"Attention": _attention})
#: Ops of com.microsoft.
CONTRIB: Mapping[str, Builder] = MappingProxyType({"MultiHeadAttention": _multi_head})
