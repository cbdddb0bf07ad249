"""Attention as a broadcast: places, masks, offsets, and their meaning."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import zerostride as zs
from zerostride.attention.compute import attention
from zerostride.attention.planning import plan_asked
from zerostride.attention.rows import ROWS
from zerostride.attention.rules import Softcap

SELF = ((2, 4, 3, 8), (2, 4, 3, 8), (2, 4, 3, 8))


def by_hand(q: Any, k: Any, v: Any, keep: Any = True, add: Any = 0.0) -> NDArray[Any]:
    """Attention of heads that are repeated by hand, in float64."""
    q, k, v = (np.asarray(x, np.float64) for x in (q, k, v))
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]) + add
    powers = np.where(keep, np.exp(scores - scores.max(-1, keepdims=True)), 0.0)
    return powers / powers.sum(-1, keepdims=True) @ v


def drawn(*shapes: tuple[int, ...], seed: int = 0) -> list[NDArray[Any]]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape) for shape in shapes]


@given(
    st.integers(1, 3), st.integers(1, 3), st.sampled_from([1, 2, 4]), st.integers(1, 4),
    st.integers(1, 4), st.booleans(),
)  # fmt: skip
def test_the_numbers_are_those_of_repeated_heads(
    batch: int, heads: int, group: int, query: int, keys: int, causal: bool
) -> None:
    shapes = (batch, heads * group, query, 4), (batch, heads, keys, 4), (batch, heads, keys, 6)
    plan = zs.plan_attention(*shapes, causal=causal)
    q, k, v = drawn(*shapes)
    keep = np.tri(query, keys, dtype=bool) if causal else True
    np.testing.assert_allclose(plan.compute(q, k, v), by_hand(q, k, v, keep), atol=1e-12)
    assert plan.shape == (batch, heads * group, query, 6)


def test_views_have_stride_0_where_an_operand_repeats() -> None:
    shapes = (2, 4, 3, 8), (2, 2, 5, 8), (2, 2, 5, 6), (3, 5)
    plan = zs.plan_attention(*shapes)
    q, k, v, mask = plan.views(*drawn(*shapes))
    assert q.shape == k.shape == (2, 2, 2, 3, 5, 8)
    assert v.shape == (2, 2, 2, 3, 5, 6)
    assert [stride // 8 for stride in k.strides] == [80, 40, 0, 0, 8, 1]
    assert [stride // 8 for stride in mask.strides[:5]] == [0, 0, 0, 5, 1]
    assert not k.flags.writeable


def test_heads_side_by_side_are_the_same_attention() -> None:
    q, k, v = drawn((2, 3, 32), (2, 5, 16), (2, 5, 16))
    packed = zs.plan_attention(q.shape, k.shape, v.shape, heads=4)
    apart = [x.reshape(2, -1, n, 8).swapaxes(1, 2) for x, n in ((q, 4), (k, 2), (v, 2))]
    plan = zs.plan_attention(*(x.shape for x in apart))
    assert packed.space == plan.space
    np.testing.assert_allclose(
        packed.compute(q, k, v), plan.compute(*apart).swapaxes(1, 2).reshape(2, 3, 32)
    )


def test_a_sink_is_a_score_without_a_value() -> None:
    """It is as one more key, whose value is 0."""
    q, k, v = drawn((1, 4, 3, 8), (1, 2, 5, 8), (1, 2, 5, 8))
    sink = np.array([0.5, -1.0, 2.0, 0.0])
    plan = zs.plan_attention(q.shape, k.shape, v.shape, engine="onnxruntime")
    plan = plan_asked(replace(plan.rule, sink=True), replace(plan.asked, sink=True))
    more = np.zeros((1, 2, 1, 8))
    bias = np.concatenate([np.zeros((1, 4, 1, 5)), sink.reshape(1, 4, 1, 1)], 3)
    wide = [np.concatenate([x, more], 2) for x in (k, v)]
    np.testing.assert_allclose(
        attention(plan, [q, k, v], sink=sink), by_hand(q, *wide, add=bias), atol=1e-12
    )
    with pytest.raises(zs.BroadcastError, match="torch scaled_dot_product_attention has no sink"):
        plan_asked(ROWS["torch"][0], plan.asked)


@pytest.mark.parametrize(
    ("reference", "shapes", "others"),
    [
        ("ncnn", ((4, 3, 8), (4, 5, 8), (4, 5, 8), (3, 5)), ("", "openvino", "onnxruntime")),
        ("ncnn", ((4, 3, 8), (2, 5, 8), (2, 5, 8), (4, 3, 5)), ("", "onnxruntime")),
        ("torch", ((2, 3, 8), (2, 5, 8), (2, 5, 8), (2, 3, 5)), ("", "openvino", "onnxruntime")),
        ("openvino", ((2, 3, 8), (2, 5, 8), (2, 5, 8)), ("", "torch", "ncnn", "onnxruntime")),
    ],
)
def test_three_axes_are_heads_or_samples(reference: str, shapes: Any, others: Any) -> None:
    """The first axis is the heads of one sample on ncnn, and samples of one head on others."""
    table = zs.compare_attention(*shapes, reference=reference)
    firsts = {engine: rows[0].op for engine, rows in ROWS.items()}
    for row in table.rows:
        if row.rule.engine in others and row.rule.op == firsts[row.rule.engine]:
            assert row.verdict in ("same", "same_here"), (row.rule.name, row.differences)


def test_operands_that_repeat_along_samples_differ_without_samples() -> None:
    shapes = (1, 2, 3, 8), (4, 2, 5, 8), (4, 2, 5, 8)
    row, _ = zs.compare_attention(*shapes, reference="torch", engine="ncnn").rows
    assert [each.code for each in row.differences] == ["shape"]


def test_equality_is_meaning() -> None:
    plan = zs.plan_attention(*SELF, causal="top_left")
    assert plan == zs.plan_attention(*SELF, causal="bottom_right")  # as many keys as queries
    assert hash(plan) == hash(zs.plan_attention(*SELF, causal=True, engine="torch"))
    cross = (2, 4, 3, 8), (2, 4, 5, 8), (2, 4, 5, 8)
    left, right = (zs.plan_attention(*cross, causal=c) for c in ("top_left", "bottom_right"))
    assert left != right
    assert [difference.code for difference in left.differences(right)] == ["causal"]


@pytest.mark.parametrize("softcap", [0.0, 2.0])
@pytest.mark.parametrize("lowest", [-np.inf, np.finfo(np.float32).min])
def test_a_query_without_a_key_gives_what_the_row_says(lowest: float, softcap: float) -> None:
    shapes = (1, 1, 2, 8), (1, 1, 3, 8), (1, 1, 3, 8), (2, 3)
    q, k, v, mask = (x.astype(np.float32) for x in drawn(*shapes))
    mask[0] = lowest
    kind = "-inf" if np.isinf(lowest) else "lowest"
    for rules in ROWS.values():
        for rule in rules:
            if "bhsd" not in rule.layouts.get(4, ()) or (softcap and rule.softcap is None):
                continue
            how = {"engine": rule.engine or None, "op": rule.op, "softcap": softcap}
            plan = zs.plan_attention(*shapes, **how)
            first = plan.compute(q, k, v, mask)[0, 0, 0]
            words = dict(plan.empty)[kind].value
            expected = {"zeros": np.zeros(8), "NaN": np.full(8, np.nan)}
            np.testing.assert_allclose(first, expected.get(words, v[0, 0].mean(0)), rtol=1e-5)


def test_a_mask_of_one_key_is_short_in_onnx_and_stretches_in_torch() -> None:
    shapes = (1, 1, 2, 4), (1, 1, 3, 4), (1, 1, 3, 4), (2, 1)
    q, k, v, mask = drawn(*shapes)
    onnx, torch = (zs.plan_attention(*shapes, engine=name) for name in (None, "torch"))
    np.testing.assert_allclose(onnx.compute(q, k, v, mask)[0, 0], [v[0, 0, 0]] * 2)
    np.testing.assert_allclose(torch.compute(q, k, v, mask), by_hand(q, k, v))
    assert [each.code for each in onnx.differences(torch)] == ["mask"]


def test_past_keys_stand_before_the_others() -> None:
    q, k, v, old_k, old_v = drawn(*[(1, 2, 3, 4)] * 3, *[(1, 2, 2, 4)] * 2)
    plan = zs.plan_attention(q.shape, k.shape, v.shape, causal=True, past=2)
    every_k, every_v = (np.concatenate(pair, 2) for pair in ((old_k, k), (old_v, v)))
    np.testing.assert_allclose(
        plan.compute(q, k, v, past_key=old_k, past_value=old_v),
        by_hand(q, every_k, every_v, np.tri(3, 5, 2, dtype=bool)),
    )
    assert plan.causal == "top left and bottom right"
    with pytest.raises(zs.BroadcastError, match="pass past_key"):
        plan.compute(q, k, v)


def test_open_sizes_are_bound() -> None:
    shapes = ("B", 8, "S", 64), ("B", 2, "T", 64), ("B", 2, "T", 64), ("B", 1, "S", "T")
    plan = zs.plan_attention(*shapes, causal="bottom_right")
    assert str(plan.offset) == "-S + T"
    bound = plan.bind(B=2, S=3, T=5)
    numbers = (2, 8, 3, 64), (2, 2, 5, 64), (2, 2, 5, 64), (2, 1, 3, 5)
    assert bound == zs.plan_attention(*numbers, causal="bottom_right")
    with pytest.raises(zs.BroadcastError, match="bind the sizes"):
        plan.views()
    with pytest.raises(zs.BroadcastError, match="there is no size 'Q'"):
        plan.bind(Q=1)


def test_open_sizes_that_must_agree_are_conditions() -> None:
    plan = zs.plan_attention(("B", 2, 3, 4), ("C", 2, "T", 4), ("C", 2, "U", 4))
    assert str(plan.conditions) in ("B == C and T == U", "C == B and U == T", "C == B and T == U")
    with pytest.raises(zs.BroadcastError, match="no sizes fulfil"):
        zs.plan_attention(("B", 2, 3, 4), ("C", 2, 5, 4), ("C", 2, 5, 4), facts="B >= C + 1")


@pytest.mark.parametrize(
    ("shapes", "how", "words", "hint"),
    [
        (((1, 3, 2, 4), (1, 2, 2, 4), (1, 2, 2, 4)), {}, "2 key heads do not divide", None),
        (((1, 2, 12), (1, 2, 12), (1, 2, 12)), {}, "say how many, heads=N", None),
        ((*SELF, (2, 3, 3)), {}, "the mask's head axis", "reshape the mask to (2, 1, 3, 3)"),
        ((*SELF, (2, 3)), {}, "the mask's query axis", "reshape the mask to (2, 1, 1, 3)"),
        (
            ((1, 4, 2, 8), (1, 2, 2, 8), (1, 2, 2, 8)),
            {"engine": "torch"},
            "different numbers of heads",
            "use op='scaled_dot_product_attention(enable_gqa=True)'",
        ),
        (SELF, {"engine": "ncnn"}, "takes a query of 3 axes", None),
        (SELF, {"engine": "openvnio"}, "no attention is known", "did you mean openvino?"),
        (SELF, {"op": "Attend"}, "has no attention op", None),
        (SELF, {"causal": "left"}, "causal is True, False", None),
        (SELF, {"heads": 0}, "heads is the number", None),
        (SELF, {"softcap": "x"}, "softcap is a number", None),
        (SELF, {"window": 0}, "window is a whole number", None),
        (SELF, {"mask_type": "text"}, "mask_type is", None),
        (SELF, {"engine": "torch", "softcap": 1.0}, "has no softcap", None),
        (SELF, {"engine": "torch", "past": 1}, "takes no past keys", None),
        (((2, 4, 3, 8), (2, 4, 3, 8), (2, 4, 4, 8)), {}, "different lengths", None),
        (((2, 4, 3, 8), (2, 4, 3, 6), (2, 4, 3, 8)), {}, "the features of query and key", None),
        (([1.5, 4, 3, 8], (2, 4, 3, 6), (2, 4, 3, 8)), {}, "whole number", None),
    ],
)
def test_bad_calls_say_what_is_wrong(
    shapes: Any, how: dict[str, Any], words: str, hint: str | None
) -> None:
    with pytest.raises(zs.BroadcastError, match=words.replace("(", r"\(")) as caught:
        zs.plan_attention(*shapes, **how)
    assert hint is None or caught.value.hint == hint


def test_an_engine_that_goes_wrong_says_nothing() -> None:
    shapes = (1, 2, 4), (1, 3, 4), (1, 3, 4)
    with pytest.raises(zs.BroadcastError) as caught:
        zs.plan_attention(
            *shapes, causal=True, heads=1, engine="onnxruntime", op="MultiHeadAttention"
        )
    assert caught.value.silent
    assert "the last query sees every key" in str(caught.value)


def test_a_comparison_has_every_row() -> None:
    table = zs.compare_attention((2, 4, 3, 8), (2, 2, 5, 8), (2, 2, 5, 8), (3, 5), causal=True)
    verdicts = {(row.rule.engine, row.rule.op): row.verdict for row in table.rows}
    assert len(verdicts) == sum(map(len, ROWS.values()))
    assert verdicts["", "Attention"] == "same"
    assert verdicts["onnxruntime", "Attention"] == "same_here"  # the lowest float
    assert verdicts["openvino", "ScaledDotProductAttention"] == "refused"  # grouped heads
    assert json.loads(table.to_json())["rows"][0]["verdict"] == "same"
    assert "! silent" in str(zs.compare_attention(*SELF, (3, 3), causal=True))
    assert {row.rule.engine for row in zs.plan_attention(*SELF).compare("torch").rows} == {"torch"}


def test_a_plan_is_data() -> None:
    plan = zs.plan_attention(("B", 4, 3, 8), ("B", 2, 5, 8), ("B", 2, 5, 8), (3, 5), causal=True)
    data = json.loads(json.dumps(plan.as_dict()))
    assert data["operands"]["key"]["repeats"] == ["group", "query"]
    assert data["causal"] == "top left"
    assert data["space"]["batch"] == "B"
    assert repr(plan).startswith("<AttentionPlan")
    assert "causal from the top left: query i sees keys to i + 0" in str(plan)


@pytest.mark.parametrize("softcap_at", list(Softcap))
@pytest.mark.parametrize("grouping", ["interleaved", "tiled"])
def test_a_row_says_which_heads_are_served_and_when_scores_are_capped(
    grouping: str, softcap_at: Softcap
) -> None:
    shapes = (1, 4, 3, 8), (1, 2, 5, 8), (1, 2, 5, 8), (3, 5)
    q, k, v, mask = drawn(*shapes)
    asked = zs.plan_attention(*shapes, softcap=2.0).asked
    rule = replace(ROWS[""][0], grouping=grouping, softcap=softcap_at)
    plan = plan_asked(rule, asked)
    heads = [0, 0, 1, 1] if grouping == "interleaved" else [0, 1, 0, 1]
    scores = q @ k[:, heads].swapaxes(-1, -2) / np.sqrt(8)
    early = softcap_at is Softcap.BEFORE_MASK
    scores = 2 * np.tanh(scores / 2) + mask if early else 2 * np.tanh((scores + mask) / 2)
    powers = np.exp(scores)
    expected = powers / powers.sum(-1, keepdims=True) @ v[:, heads]
    np.testing.assert_allclose(plan.compute(q, k, v, mask), expected)
    same = zs.plan_attention(*shapes, softcap=2.0)
    assert (plan == same) is (grouping == "interleaved" and early)


def test_lengths_and_a_mask_in_their_place_are_not_one_plan() -> None:
    shapes = (2, 1, 8), (2, 1, 8), (2, 1, 8)
    how: dict[str, Any] = {"engine": "onnxruntime", "op": "MultiHeadAttention", "heads": 1}
    lengths, mask = (
        zs.plan_attention(*shapes, size, mask_type="bool", **how) for size in ((2,), (2, 1))
    )
    assert lengths.lengths
    assert lengths != mask
    q, k, v = drawn(*shapes)
    np.testing.assert_allclose(lengths.compute(q, k, v, np.array([1, 1])), v)


def test_the_picture_shows_what_repeats_and_what_each_query_sees() -> None:
    plan = zs.plan_attention((1, 4, 3, 8), (1, 2, 5, 8), (1, 2, 5, 8), causal="bottom_right")
    picture = plan.svg()
    ElementTree.fromstring(picture)
    assert picture.count('class="zs-hatch"') == 4  # key and value, along groups and queries
    assert picture.count('class="zs-result"') == 3 + 4 + 5
    assert "may hide more" not in picture
    assert picture in plan._repr_html_()
    options: dict[str, Any] = {"engine": "onnxruntime", "op": "GroupQueryAttention", "heads": 1}
    window = zs.plan_attention(*[(1, 4, 8)] * 3, (1, 1, 4, 4), window=2, **options).svg()
    assert window.count('class="zs-result"') == 1 + 2 + 2 + 2
    assert "may hide more" in window
    large = zs.plan_attention(*[(1, 1, 41, 8)] * 3, causal=True)
    opened = zs.plan_attention(*[("B", 2, "S", 8)] * 3, causal=True)
    assert not any('class="zs-result"' in plan.svg() for plan in (large, opened))
