"""A rule for each compound op that is written out."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .calls import WrittenRule
from .group_query import group_query
from .multi_head import multi_head, projected
from .rotary import contributed, rotary

#: By domain and op.
WRITTEN: Mapping[tuple[str, str], WrittenRule] = MappingProxyType(
    {
        ("", "RotaryEmbedding"): rotary,
        ("com.microsoft", "Attention"): projected,
        ("com.microsoft", "GroupQueryAttention"): group_query,
        ("com.microsoft", "MultiHeadAttention"): multi_head,
        ("com.microsoft", "RotaryEmbedding"): contributed,
    }
)
