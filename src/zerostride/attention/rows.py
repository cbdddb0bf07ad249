"""The rows: what documents say, and what releases do.

Every row that was run is checked by tests/conformance/test_attention_engines.py: plan and numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain
from types import MappingProxyType
from typing import Any

from ..errors import BroadcastError, Reason
from ..system.spelling import ENGINES, near
from . import faults
from .rules import AttentionRule, Causal, EmptyRow, Fault, Mask, Softcap


def _layouts(*layouts: str) -> Mapping[int, tuple[str, ...]]:
    """The layouts by their rank."""
    ranks: dict[int, tuple[str, ...]] = {}
    for layout in layouts:
        rank = len(layout.replace("(hd)", "x"))
        ranks[rank] = (*ranks.get(rank, ()), layout)
    return MappingProxyType(ranks)


def _masks(**masks: Mapping[int, Mask]) -> Mapping[tuple[str, int], Mask]:
    """The masks by type and rank; `both` is of either type."""
    return MappingProxyType(
        {
            (kind, rank): mask
            for name, rows in masks.items()
            for kind in (("float", "bool") if name == "both" else (name,))
            for rank, mask in rows.items()
        }
    )


def _empty(bool_: EmptyRow, infinite: EmptyRow, lowest: EmptyRow) -> Mapping[str, EmptyRow]:
    return MappingProxyType({"bool": bool_, "-inf": infinite, "lowest": lowest})


def _right(stretch: str, *ranks: int) -> Mapping[int, Mask]:
    """Masks that lie on the last axes of the scores."""
    return dict.fromkeys(ranks, Mask("", stretch))


_ZERO, _NAN, _MEAN, _UNMASKED, _UNUSED = EmptyRow
#: The least number of float32.
_LOWEST = -3.4028234663852886e38
_ONNX = _layouts("bhsd", "bs(hd)")
#: What version 25 of ONNX's Attention has more.
_WINDOWED: Mapping[str, Any] = MappingProxyType(
    {"op": "Attention-25", "window": True, "ahead": True}
)


_OPENVINO_ONNX = AttentionRule(
    "Attention",
    "openvino",
    "OpenVINO 2026.4.1, CPU, its ONNX frontend, opset 24",
    _ONNX,
    _masks(both=_right("bhs", 2, 3, 4)),
    short_keys=True,
    softcap=Softcap.BEFORE_MASK,
    causal_past=Causal.END,
    ragged=True,
    past=True,
    empty=_empty(_ZERO, _ZERO, _MEAN),
    faults=(Fault(faults.no_length, "lengths of 0 fail in some of its ways", Reason.NO_OP),),
)

_MULTI_HEAD = AttentionRule(
    "MultiHeadAttention",
    "onnxruntime",
    "ONNX Runtime 1.32.0, CPU, com.microsoft.MultiHeadAttention",
    _layouts("bs(hd)"),
    _masks(
        float=_right("bh", 4),
        bool={1: Mask("b", "", lengths=True), 2: Mask("bt", ""), 3: Mask("bst", "")},
    ),
    grouping="",
    past=True,
    empty=_empty(_UNMASKED, _NAN, _MEAN),
    causal_fill=_LOWEST,
    faults=(
        Fault(faults.value_features, "past values have as many features as keys", Reason.NO_OP),
        Fault(
            faults.beyond_past,
            "its causal mask covers as many keys as there are queries and past keys: the last "
            "query sees every key",
        ),
    ),
)

_PROJECTED = Fault(faults.across, "keys and values come from the query's input", Reason.NO_OP)
_OPENVINO_MULTI_HEAD = replace(
    _MULTI_HEAD,
    engine="openvino",
    source="OpenVINO 2026.4.1, CPU, its ONNX frontend, com.microsoft.MultiHeadAttention",
    masks=_masks(
        float=_right("bhst", 4),
        bool={1: Mask("b", "b", lengths=True), 2: Mask("bt", "bt"), 3: Mask("bst", "bst")},
    ),
    causal_past=Causal.END,
    causal_fill=-10000.0,
    faults=(Fault(faults.no_length, "lengths of 0 fail in some of its ways", Reason.NO_OP),),
)

_NARROW_ROOM = Fault(
    faults.narrow_room, "the past of a window has room for the window", Reason.NO_OP
)
_GROUP_QUERY = AttentionRule(
    "GroupQueryAttention",
    "onnxruntime",
    "ONNX Runtime 1.32.0, CPU, com.microsoft.GroupQueryAttention",
    _layouts("bs(hd)"),
    _masks(float=_right("bh", 4)),
    always_causal=True,
    softcap=Softcap.BEFORE_MASK,
    window=True,
    past=True,
    sink=True,
    stores=True,
    empty=_empty(_ZERO, _ZERO, _ZERO),
    empty_plain=_empty(_NAN, _NAN, _MEAN),
    faults=(
        Fault(faults.beyond_past, "it takes as many keys as queries", Reason.NO_OP),
        Fault(faults.no_query, "it refuses queries of length 0", Reason.NO_OP),
        Fault(faults.odd_features, "the features of a head are a multiple of 8", Reason.NO_OP),
        Fault(faults.odd_rotation, "features that are turned are a multiple of 16", Reason.NO_OP),
        _NARROW_ROOM,
        Fault(
            faults.odd_stored,
            "features in a quantised past of a window are a multiple of 128 bits",
            Reason.NO_OP,
        ),
    ),
)

#: The form of GroupQueryAttention whose queries see later keys, too.
_ALL_KEYS: Mapping[str, Any] = MappingProxyType(
    {
        "op": "GroupQueryAttention(causal=0)",
        "always_causal": False,
        "causal": None,
        "window": False,
        "empty": _empty(_NAN, _NAN, _MEAN),
        "empty_plain": None,
    }
)
_OPENVINO_GROUP_QUERY = replace(
    _GROUP_QUERY,
    engine="openvino",
    source="OpenVINO 2026.4.1, CPU, its ONNX frontend, com.microsoft.GroupQueryAttention",
    masks=_masks(float=_right("bhst", 4)),
    softcap=None,
    empty=_empty(_NAN, _NAN, _MEAN),
    empty_plain=None,
    empty_room=_empty(_UNUSED, _UNUSED, _UNUSED),
    causal_fill=_LOWEST,
    faults=(
        Fault(faults.samples, "it takes one sample", Reason.NO_OP),
        Fault(faults.beyond_past, "it takes as many keys as queries", Reason.NO_OP),
        _NARROW_ROOM,
        Fault(faults.one_key, "a mask of one key is not repeated"),
        Fault(
            faults.queries_as_heads,
            "it turns queries wrongly where there are as many as heads, and fewer key heads "
            "or a quantised past",
        ),
    ),
)

_TORCH = AttentionRule(
    "scaled_dot_product_attention",
    "torch",
    "PyTorch 2.13.0, CPU, torch.nn.functional.scaled_dot_product_attention",
    _layouts("bhsd", "bsd", "sd"),
    _masks(both=_right("bhst", 2, 3, 4)),
    grouping="",
    stretches="bh",
    empty=_empty(_ZERO, _ZERO, _MEAN),
    faults=(Fault(faults.two_masks, "a mask and is_causal exclude each other", Reason.NO_OP),),
)

_DOCUMENT = AttentionRule(
    "Attention",
    "",
    "ONNX operators, Attention, since version 24",
    _ONNX,
    _masks(both=_right("bhs", 2, 3, 4)),
    short_keys=True,
    softcap=Softcap.BEFORE_MASK,
    ragged=True,
    past=True,
    empty=_empty(_ZERO, _ZERO, _MEAN),
    run=False,
)

_SDPA = AttentionRule(
    "SDPA",
    "ncnn",
    "ncnn 1.0.20261020, CPU, layer SDPA",
    _layouts("hsd"),
    _masks(float=_right("h", 2, 3)),
    causal=None,
    empty=_empty(_ZERO, _ZERO, _MEAN),
    unchecked=True,
    faults=(
        Fault(faults.no_query, "it fails without a query", Reason.NO_OP),
        Fault(faults.no_key, "it fails without a key", Reason.NO_OP),
    ),
)

_REFERENCE = (
    AttentionRule(
        "Attention",
        "onnx.reference",
        "onnx 1.23.2, ReferenceEvaluator, opsets 23 and 24",
        _ONNX,
        _masks(both=_right("bhs", 1, 2, 3, 4)),
        stretches="bhm",
        short_keys=True,
        softcap=Softcap.BEFORE_MASK,
        ragged=True,
        past=True,
        empty=_empty(_ZERO, _ZERO, _MEAN),
        faults=(
            Fault(faults.no_key_at_all, "it has no maximum of no keys, and fails", Reason.NO_OP),
            Fault(faults.no_query_packed, "it fails without a query", Reason.NO_OP),
            Fault(
                faults.fewer_samples, "a query has a sample for each number of keys", Reason.NO_OP
            ),
            Fault(faults.heads_apart, "grouped keys and values have the same heads", Reason.NO_OP),
            Fault(
                faults.vector_and_causal,
                "beside a causal mask a mask has two axes or more",
                Reason.NO_OP,
            ),
            Fault(
                faults.one_row,
                "its causal mask has the mask's one row: each query sees as the first",
            ),
        ),
    ),
)
_ROWS = (
    _DOCUMENT,
    replace(
        _DOCUMENT,
        op="Attention-23",
        source="ONNX operators, Attention, version 23",
        masks=_masks(both=_right("bhst", 2, 3, 4)),
        short_keys=False,
        ragged=False,
    ),
    replace(_DOCUMENT, **_WINDOWED, source="ONNX operators, Attention, version 25"),
    *_REFERENCE,
    replace(_REFERENCE[0], **_WINDOWED, source="onnx 1.23.2, ReferenceEvaluator, opset 25"),
    AttentionRule(
        "Attention",
        "onnxruntime",
        "ONNX Runtime 1.32.0, CPU, opsets 23 and 24",
        _ONNX,
        _masks(both=_right("bh", 2, 3, 4)),
        softcap=Softcap.BEFORE_MASK,
        ragged=True,
        past=True,
        empty=_empty(_ZERO, _ZERO, _ZERO),
        faults=(
            Fault(faults.no_key, "it refuses keys of length 0", Reason.NO_OP),
            Fault(faults.no_query, "it refuses queries of length 0", Reason.NO_OP),
            Fault(
                faults.one_query,
                "a single query sees every key, though it is causal and has a past",
            ),
        ),
    ),
    replace(
        _DOCUMENT,
        **_WINDOWED,
        engine="onnxruntime",
        source="ONNX Runtime 1.32.0, CPU, opset 25, by the ops of its function",
        masks=_masks(both=_right("bhs", 1, 2, 3, 4)),
        stretches="bhm",
        faults=(
            Fault(
                faults.no_length_packed,
                "heads side by side have lengths of 1 and more",
                Reason.NO_OP,
            ),
            Fault(faults.no_key_at_all, "it fails without a key", Reason.NO_OP),
            Fault(faults.more_values, "values have no more heads than keys", Reason.NO_OP),
            Fault(faults.fewer_queries, "a query has as many heads as the keys", Reason.NO_OP),
            Fault(faults.one_sample, "a query has as many samples as the keys", Reason.NO_OP),
        ),
        run=True,
    ),
    _MULTI_HEAD,
    _GROUP_QUERY,
    replace(_GROUP_QUERY, **_ALL_KEYS),
    replace(
        _MULTI_HEAD,
        op="com.microsoft.Attention",
        source="ONNX Runtime 1.32.0, CPU, com.microsoft.Attention",
        masks=_masks(
            float=_right("bh", 4),
            bool={1: Mask("b", "", lengths=True), 2: Mask("bt", "bt"), 3: Mask("bst", "")},
        ),
        faults=(
            _PROJECTED,
            Fault(faults.value_features, "past values have as many features as keys", Reason.NO_OP),
            Fault(faults.bias_and_past, "it refuses attention_bias beside a past", Reason.NO_OP),
            Fault(faults.dummy, "it does not read a mask of one number for all keys of a sample"),
            Fault(faults.one_for_all, "a mask has as many rows as there are samples", Reason.NO_OP),
        ),
    ),
    _TORCH,
    replace(
        _TORCH,
        op="scaled_dot_product_attention(enable_gqa=True)",
        layouts=_layouts("bhsd", "hsd"),
        grouping="interleaved",
        stretches="bv",
    ),
    AttentionRule(
        "ScaledDotProductAttention",
        "openvino",
        "OpenVINO 2026.4.1, CPU, opset 13",
        _layouts("bhsd", "bsd"),
        _masks(both=_right("bhst", 2, 3, 4)),
        grouping="",
        stretches="bhm",
        causal_alone=True,
        sink=True,
        empty=_empty(_NAN, _NAN, _MEAN),
        faults=(
            Fault(faults.sink_beside_one, "a sink repeats no query", Reason.NO_OP),
            Fault(faults.no_key_alone, "without keys it corrupts memory", Reason.CRASH),
            Fault(
                faults.no_causal_query,
                "without a query its causal mask corrupts memory",
                Reason.CRASH,
            ),
            Fault(
                faults.more_axes, "the result has the axes of a mask that has more than the query"
            ),
        ),
    ),
    _OPENVINO_ONNX,
    replace(
        _OPENVINO_ONNX,
        op="Attention-23",
        source="OpenVINO 2026.4.1, CPU, its ONNX frontend, opset 23",
        masks=_masks(both=_right("bhst", 2, 3, 4)),
        short_keys=False,
        ragged=False,
    ),
    replace(
        _OPENVINO_ONNX,
        **_WINDOWED,
        source="OpenVINO 2026.4.1, CPU, its ONNX frontend, opset 25",
        windows_unread=True,
    ),
    _OPENVINO_MULTI_HEAD,
    _OPENVINO_GROUP_QUERY,
    replace(_OPENVINO_GROUP_QUERY, **_ALL_KEYS),
    replace(
        _OPENVINO_MULTI_HEAD,
        op="com.microsoft.Attention",
        source="OpenVINO 2026.4.1, CPU, its ONNX frontend, com.microsoft.Attention",
        masks=_masks(
            float=_right("bhst", 4),
            bool={1: Mask("b", "", lengths=True), 2: Mask("bt", "bt"), 3: Mask("bst", "bst")},
        ),
        causal_fill=-10000.0,
        causal_replaces=True,
        faults=(
            _PROJECTED,
            Fault(faults.no_length, "lengths of 0 fail in some of its ways", Reason.NO_OP),
            Fault(faults.value_features, "past values have as many features as keys", Reason.NO_OP),
            Fault(faults.one_pair_and_past, "beside a past it repeats the query of such a mask"),
            Fault(
                faults.pairs_and_past, "beside a past a mask has no axis of queries", Reason.NO_OP
            ),
            Fault(faults.scaled, "it does not read scale"),
            Fault(faults.one_key_of_pairs, "a mask of queries and one key is not repeated"),
            Fault(faults.one_query_of_pairs, "a mask of one query and keys masks no key"),
        ),
    ),
    _SDPA,
    replace(
        _SDPA,
        op="MultiHeadAttention",
        source="ncnn 1.0.20261020, CPU, layer MultiHeadAttention",
        layouts=_layouts("s(hd)"),
        grouping="",
        empty=_empty(_NAN, _NAN, _MEAN),
        faults=(
            *_SDPA.faults,
            Fault(faults.other_values, "values are as wide as the query", Reason.NO_OP),
        ),
    ),
    AttentionRule(
        "Attention",
        "mnn",
        "MNN 3.6.1, CPU, op Attention",
        _layouts("bshd"),
        _masks(float=_right("bh", 2, 3, 4)),
        result="bs(hd)",
        causal=Causal.END,
        causal_unmasked=True,
        sink=True,
        empty=_empty(_NAN, _NAN, _MEAN),
        unchecked=True,
        faults=(
            Fault(faults.no_length, "it takes no length of 0", Reason.CRASH),
            Fault(faults.fewer_keys, "it reads memory behind the keys", Reason.CRASH),
            Fault(faults.samples, "it computes the first sample alone"),
            Fault(faults.across, "it reads as many keys as there are queries"),
            Fault(faults.other_values, "it reads values as if they were as wide as the query"),
            Fault(faults.mask_of_heads, "it reads a mask as one of queries and keys alone"),
        ),
    ),
)


#: The rows by engine ("" for the document), in the order of the table.
ROWS: Mapping[str, tuple[AttentionRule, ...]] = MappingProxyType(
    {
        engine: tuple(row for row in _ROWS if row.engine == engine)
        for engine in dict.fromkeys(row.engine for row in _ROWS)
    }
)


def find_rule(engine: Any, op: Any) -> AttentionRule:
    """The row of an engine's op; the first of an engine if no op is named.

    Raises:
        BroadcastError: lists the engines, or the engine's ops.
    """
    name = "" if engine is None else engine
    rows = ROWS.get(name, ()) if isinstance(name, str) else ()
    if not rows:
        known = [row for row in ROWS if row]
        close = near(engine, known, others=ENGINES)
        raise BroadcastError(
            f"no attention is known of an engine {engine!r}",
            reason=Reason.UNKNOWN_ENGINE,
            hint=f"did you mean {close[0]}?" if close else f"one of {', '.join(known)}",
        )
    if op is None:
        return rows[0]
    for row in rows if name else chain.from_iterable(ROWS.values()):
        if row.op == op:
            return row
    raise BroadcastError(
        f"{name or 'ONNX'} has no attention op {op!r}",
        reason=Reason.UNKNOWN_OP,
        hint=f"one of {', '.join(row.op for row in rows)}",
    )
