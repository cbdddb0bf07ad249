"""The sites of attention: a call of `zerostride.attention` in place of one broadcast rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from ...attention.plan import Asked
from ...attention.rows import find_rule
from ...attention.stored import Stored, stored_as
from ...errors import Misfit
from ..ir.graph import Node, Value
from ..ir.site import BOTH_WAYS, AttentionCall, Kind, Operand, Site, input_at, operand_of
from ..ir.site import not_modelled as unknown

#: The row of each version; a newer one is as the newest.
_VERSIONS = {23: "Attention-23", 24: "Attention"}
_NEWEST = "Attention-25"


def _attention(node: Node) -> Site | None:
    """Attention of ai.onnx; no site if nothing can repeat and no key is masked."""
    return None if _plain(node) else attention(node)


def attention(node: Node) -> Site:
    """The site of any Attention of ai.onnx."""
    return _site(node, standard_call(node), mask=input_at(node, 3), past=input_at(node, 4))


def standard_call(node: Node) -> AttentionCall:
    """The call that the attributes of an Attention of ai.onnx describe."""
    op = row_of(node.version)
    heads = _number(node, "q_num_heads"), _number(node, "kv_num_heads")
    left, right = windows_of(node)
    call = _call(
        node,
        "",
        op,
        heads=(heads[0], heads[1]) if heads[0] else None,
        causal=bool(_number(node, "is_causal")),
        window=None if left is None else left + 1,
    )
    ragged = input_at(node, 6) is not None
    return replace(call, asked=replace(call.asked, ahead=right, ragged=ragged))


def row_of(version: int) -> str:
    """The name of the row of a version of Attention.

    >>> row_of(23), row_of(25)
    ('Attention-23', 'Attention-25')
    """
    return _VERSIONS.get(max(23, version), _NEWEST)


def _plain(node: Node) -> bool:
    """Whether nothing can repeat: no mask, and as many heads of keys as of the query."""
    heads = _number(node, "q_num_heads"), _number(node, "kv_num_heads")
    if heads[0] != heads[1] or _number(node, "is_causal") or windows_of(node) != (None, None):
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


def windows_of(node: Node) -> tuple[int | None, int | None]:
    """The most keys to the left and to the right of a query's own place; None: no limit."""
    sides = (node.attributes.get(f"{side}_window_size") for side in ("left", "right"))
    left, right = (size if isinstance(size, int) and size != -1 else None for size in sides)
    return left, right


def _multi_head(node: Node) -> Site:
    """MultiHeadAttention of com.microsoft, with query, key and value apart."""
    key, value = input_at(node, 1), input_at(node, 2)
    padding, bias = input_at(node, 4), input_at(node, 5)
    if key is None or value is None:
        return unknown(node, _PACKED)
    if padding is not None and bias is not None:
        return unknown(node, _TWO_MASKS)
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


_PACKED = "query, key and value in one tensor"
_TWO_MASKS = "a mask beside an added one"


def _group_query(node: Node) -> Site:
    """GroupQueryAttention of com.microsoft, where samples have all keys (ContribOperators.md)."""
    lacks = ", ".join(_beyond_group_query(node))
    if lacks:
        return unknown(node, lacks)
    window = _number(node, "local_window_size")
    causal = node.attributes.get("causal", 1) != 0
    call = _call(
        node,
        "onnxruntime",
        "GroupQueryAttention" if causal else "GroupQueryAttention(causal=0)",
        heads=(_number(node, "num_heads"), _number(node, "kv_num_heads")),
        causal=False,  # the row is always causal, or never
        window=window if window > 0 else None,
    )
    rotated = bool(_number(node, "do_rotary"))
    sink = _number(node, "smooth_softmax") == 1 or input_at(node, 11) is not None
    mask, past = input_at(node, 10), input_at(node, 3)
    stored, unfit = _stored(node)
    room: Any = None
    if _number(node, "sliding_window_cache") and past is not None and past.shape is not None:
        room = past.shape[2] if len(past.shape) == 4 else None
    asked = replace(call.asked, rotated=rotated, sink=sink, stored=stored, room=room)
    call = replace(call, asked=asked, unfit=unfit)
    site = _site(node, call, mask=mask, past=past)
    if site.call is None:
        return site
    asked, before = site.call.asked, _past_of_total(site, mask)
    if past is not None and before is not None:
        asked = replace(asked, past=before)
    where = "this is so where seqlens_k counts every key of every sample"
    if rotated and input_at(node, 9) is not None:
        where = f"{where}, and position_ids count upwards"
    return replace(site, call=replace(site.call, asked=asked, where=where))


def _beyond_group_query(node: Node) -> Iterator[str]:
    """The parts of a GroupQueryAttention that its row does not have."""
    if input_at(node, 16) is not None:
        yield "query_seqlens, a length for each sample"


def _stored(node: Node) -> tuple[Stored | None, str]:
    """How keys and values are stored, and why ONNX Runtime's CPU refuses the node; run."""
    try:
        stored = stored_as(node.attributes)
    except Misfit as misfit:
        return None, misfit.detail
    return stored, next(_refused(node, stored), "")


def _refused(node: Node, stored: Stored | None) -> Iterator[str]:
    """The reasons for which ONNX Runtime 1.32.0's CPU refuses a GroupQueryAttention."""
    past = input_at(node, 3)
    kinds = {value.dtype for value in (past, input_at(node, 4)) if value is not None}
    if input_at(node, 14) is not None or input_at(node, 15) is not None:
        yield "a normalised query and key"
    if _number(node, "sliding_window_cache"):
        if _number(node, "local_window_size") < 1:
            yield "sliding_window_cache without local_window_size"
        if past is None:
            yield "sliding_window_cache without past keys"
    if stored is None:
        yield from (f"a past of {kind} without a quant_type" for kind in kinds & _STORED)
        return
    if past is None:
        yield "quantised keys without past keys"
    yield from (
        f"a past of {kind} with {stored.bits} bits" for kind in kinds - {stored.dtype, None}
    )
    for position, name in ((12, "k_scale"), (13, "v_scale")):
        scale = input_at(node, position)
        if scale is None:
            yield f"a quantised past without {name}"
        elif not stored.by_feature and scale.shape is not None and set(scale.shape) - {1, None}:
            yield f"a {name} of {scale.shape} for a tensor"


#: The element types of pasts that are quantised.
_STORED = frozenset({"int8", "uint8", "float8_e4m3fn"})


def _past_of_total(site: Site, mask: Value | None) -> int | None:
    """The number of past keys by the number of all, where the file has it.

    The tensor of past keys may have room for more: its size does not tell.
    """
    shape, total = site.operands[1].shape, input_at(site.node, 6)
    every: Any = None
    if total is not None and total.content is not None and len(total.content) == 1:
        every = total.content[0]
    elif mask is not None and mask.shape is not None and len(mask.shape) == 4:
        every = mask.shape[3]
    if shape is None or len(shape) != 3:
        return None
    now = shape[1]
    return max(0, every - now) if isinstance(every, int) and isinstance(now, int) else None


def _projected(node: Node) -> Site:
    """Attention of com.microsoft: query, key and value are products of one input and weights."""
    mask, bias = input_at(node, 3), input_at(node, 5)
    if mask is not None and bias is not None:
        return unknown(node, _TWO_MASKS)
    if input_at(node, 6) is not None or _number(node, "past_present_share_buffer"):
        return unknown(node, "a past in the buffer of the present")
    data, weights = input_at(node, 0), input_at(node, 1)
    if data is None or weights is None:
        return unknown(node)
    if mask is not None and (mask.shape is None or len(mask.shape) not in (1, 2, 3)):
        return unknown(node, "a mask whose axes are not known, or are four")
    if mask is not None and mask.shape is not None and len(mask.shape) == 1:
        batch = None if data.shape is None else data.shape[0]
        if mask.shape != (batch,):
            return unknown(node, "a mask of starts and ends of samples")
    heads = _number(node, "num_heads")
    call = _call(
        node,
        "onnxruntime",
        "com.microsoft.Attention",
        heads=(heads, heads),
        causal=bool(_number(node, "unidirectional")),
    )
    before: Any = 0
    past = input_at(node, 4)
    if past is not None:
        if past.shape is None or len(past.shape) != 5 or past.shape[3] is None:
            return unknown(node, "a past of unknown length")
        before = past.shape[3]
    operands = tuple(_projections(node, data, weights))
    kind = "bool" if bias is None else "float"
    if mask is not None or bias is not None:
        operands = (*operands, operand_of(mask if bias is None else bias))  # type: ignore[arg-type]
    unfit = "do_rotary, a rotation of query and key" if _number(node, "do_rotary") else ""
    call = replace(call, asked=replace(call.asked, past=before, mask_type=kind), unfit=unfit)
    return Site(node, Kind.NOT_MODELLED, operands, BOTH_WAYS, {}, call=call)


def _packed(node: Node, whole: Operand) -> Iterator[Operand]:
    """Query, key and value of a GroupQueryAttention, side by side in one tensor."""
    heads, key_heads = _number(node, "num_heads"), _number(node, "kv_num_heads")
    shape, every = whole.shape, heads + 2 * key_heads
    width = shape[2] if shape is not None and len(shape) == 3 else None
    for part, count in (("query", heads), ("key", key_heads), ("value", key_heads)):
        sized = shape is not None and isinstance(width, int) and every > 0 and width % every == 0
        own = (*shape[:2], width // every * count) if sized else None  # type: ignore[index, operator]
        yield Operand(f"{whole.name}[{part}]", own, tensor=whole.tensor)


def _projections(node: Node, data: Value, weights: Value) -> Iterator[Operand]:
    """The query, key and value that the weights, side by side, take from the input."""
    sizes: Any = node.attributes.get("qkv_hidden_sizes")
    if not sizes and weights.shape is not None and len(weights.shape) == 2:
        width = weights.shape[1]
        sizes = (width // 3,) * 3 if isinstance(width, int) else None
    whole = isinstance(sizes, tuple | list) and all(isinstance(size, int) for size in sizes)
    known = data.shape is not None and len(data.shape) == 3 and whole and len(sizes) == 3
    for position, part in enumerate(("query", "key", "value")):
        shape = (*data.shape[:2], sizes[position]) if known and data.shape is not None else None
        yield Operand(f"{data.name}@{weights.name}[{part}]", shape, tensor=data)


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
    parts = [input_at(node, k) for k in range(3)]
    operands = tuple(operand_of(value) for value in parts if value is not None)
    if node.op == "GroupQueryAttention" and len(operands) == 1:
        operands = tuple(_packed(node, operands[0]))
    if len(operands) < 3:
        return unknown(node)
    if mask is not None:
        operands = (*operands, operand_of(mask))
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
CONTRIB: Mapping[str, Builder] = MappingProxyType(
    {
        "Attention": _projected,
        "GroupQueryAttention": _group_query,
        "MultiHeadAttention": _multi_head,
    }
)
#: The ops of both that are attention as a whole.
ATTENTIONS = frozenset({*ROWS, *CONTRIB})
