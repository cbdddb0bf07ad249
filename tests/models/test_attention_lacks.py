"""Attentions of MNN and Paddle that are not judged: findings name what is not modelled."""

from __future__ import annotations

from typing import Any

import pytest

from zerostride.models.formats.mnn import sites as mnn
from zerostride.models.formats.paddle import sites as paddle
from zerostride.models.ir.graph import Node, Value
from zerostride.models.ir.site import Kind


@pytest.mark.parametrize(
    ("rows", "op", "words"),
    [
        (mnn.ROWS, "FmhaV2", "a fused attention"),
        (mnn.ROWS, "RoPE", "a rotation of query and key"),
        (paddle.ROWS, "flash_attn", "an attention, which was not run"),
        (paddle.ROWS, "fused_rotary_position_embedding", "a rotation of query and key"),
    ],
)
def test_attentions_that_are_not_judged_say_why(rows: Any, op: str, words: str) -> None:
    values = tuple(Value(name, (1, 3, 4, 8)) for name in "qkv")
    site = rows[op](Node("n", op, "other", 1, values, values[:1]))
    assert site.kind is Kind.NOT_MODELLED
    assert words in site.lacks
