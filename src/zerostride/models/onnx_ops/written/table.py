"""A rule for each compound op that is written out."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ...ir.graph import Node
from .calls import CompoundCall, Form, NotWritten, WrittenOp
from .group_query import check_group_query, group_query
from .multi_head import check_multi_head, check_projected, multi_head, projected
from .rotary import check_contributed, check_rotary, contributed, rotary

#: By domain and op.
WRITTEN: Mapping[tuple[str, str], WrittenOp] = MappingProxyType(
    {
        ("", "RotaryEmbedding"): WrittenOp(check_rotary, rotary),
        ("com.microsoft", "Attention"): WrittenOp(check_projected, projected),
        ("com.microsoft", "GroupQueryAttention"): WrittenOp(check_group_query, group_query),
        ("com.microsoft", "MultiHeadAttention"): WrittenOp(check_multi_head, multi_head),
        ("com.microsoft", "RotaryEmbedding"): WrittenOp(check_contributed, contributed),
    }
)
#: All ops that are written out, by domain and op; `formats.onnx.prepared` has Attention's rule.
COMPOUNDS = frozenset({("", "Attention"), *WRITTEN})


def written(call: CompoundCall) -> tuple[str, ...]:
    """Writes a call of an op of the table; the names of its results.

    Raises:
        NotWritten: its form is not written out.
    """
    row = WRITTEN[call.domain, call.op]
    row.check(call)
    return row.rule(call)


def not_written(node: Node) -> str | None:
    """Why a node's form is not written out, whatever its sizes; None if it is, or of other ops."""
    row = WRITTEN.get((node.domain, node.op))
    if row is None:
        return None
    names = tuple("" if value is None else value.name or "unnamed" for value in node.inputs)
    outputs = tuple(bool(value.name) for value in node.outputs)
    try:
        row.check(Form(node.op, node.domain, names, outputs, node.attributes))
    except NotWritten as error:
        return str(error)
    return None
