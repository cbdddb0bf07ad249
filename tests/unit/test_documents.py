"""Every example and row of the rules' documents, by shape and by value.

The data are in `documents/`; expected values come from the loops in `oracles`.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import oracles
import pytest

import zerostride as zs

HERE = Path(__file__).parent / "documents"


def load(name: str) -> Any:
    return json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))


ELEMENTWISE = load("openvino_elementwise")
BROADCAST_3 = load("openvino_broadcast3")
NCNN = load("ncnn_binaryop")
MNN = load("mnn_broadcast")

Row = dict[str, Any]


def name_row(row: Any) -> str:
    words = [
        f"{key}={row[key]}" for key in ("kind", "mode", "a", "b", "data", "axis") if key in row
    ]
    return " ".join(words).replace(" ", "")


def rows(table: list[Row]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("row", table, ids=name_row)


def check_refusal(error: zs.BroadcastError, stated: Row) -> None:
    assert error.reason == stated["reason"]
    assert error.axis == stated["axis"]
    assert not error.silent  # a document's rule refuses aloud


def check_pair(row: Row, b_where: Any, **asked: Any) -> None:
    a, b = tuple(row["a"]), tuple(row["b"])
    if "refused" in row:
        with pytest.raises(zs.BroadcastError) as caught:
            zs.plan(a, b, **asked)
        check_refusal(caught.value, row["refused"])
        assert caught.value.shapes == (a, b)
        return
    plan = zs.plan(a, b, **asked)
    a_where = partial(oracles.right_aligned, a)
    oracles.check_values(plan, row["result"], (a_where, partial(b_where, b)))


# OpenVINO: element-wise rules.


@rows(ELEMENTWISE["none"])
def test_rule_none_matches_the_document(row: Row) -> None:
    check_pair(row, oracles.right_aligned, rule="none")


@rows(ELEMENTWISE["numpy"])
def test_rule_numpy_matches_the_document(row: Row) -> None:
    check_pair(row, oracles.right_aligned, rule="numpy")
    check_pair({**row, "a": row["b"], "b": row["a"]}, oracles.right_aligned)


@rows(ELEMENTWISE["pdpd"])
def test_rule_pdpd_matches_the_document(row: Row) -> None:
    for axis in row["axis"]:
        check_pair(row, oracles.starting_at(axis, len(row["a"])), rule="pdpd", axis=axis)


@rows(ELEMENTWISE["bidirectional"])
def test_bidirectional_matches_the_document(row: Row) -> None:
    data, target = tuple(row["a"]), tuple(row["b"])
    if "refused" in row:
        with pytest.raises(zs.BroadcastError) as caught:
            zs.plan_to(data, target, mode="bidirectional")
        check_refusal(caught.value, row["refused"])
        return
    plan = zs.plan_to(data, target, mode="bidirectional")
    oracles.check_values(plan, row["result"], (partial(oracles.right_aligned, data),))
    (array,) = oracles.probes([data])
    assert np.array_equal(plan.views(array)[0], array * np.ones(target, dtype=int))


def test_all_examples_of_the_documents_are_listed() -> None:
    examples = {
        part: [row for row in ELEMENTWISE[part] if "states" not in row]
        for part in ("numpy", "pdpd", "bidirectional")
    }
    assert {part: len(rows_here) for part, rows_here in examples.items()} == {
        "numpy": 11,
        "pdpd": 7,
        "bidirectional": 5,
    }
    assert ELEMENTWISE["editions"] == ["en", "ja"]  # both have these examples, in this order


def test_trailing_ones_are_ignored() -> None:
    trimmed = zs.plan((2, 3, 4), (3, 1), rule="pdpd", axis=1)
    assert trimmed == zs.plan((2, 3, 4), (3,), rule="pdpd", axis=1)
    assert trimmed.axes_mapping[1] == (1, None)


# OpenVINO: Broadcast-3.


@rows(BROADCAST_3["layers"])
def test_broadcast3_layer_matches_the_document(row: Row) -> None:
    data, target = tuple(row["data"]), tuple(row["target"])
    plan = zs.plan_to(data, target, mode=row["mode"], axes_mapping=row.get("axes_mapping"))
    assert plan.operands == (data,)
    assert plan.axes_mapping == (tuple(row["lands_on"]),)
    where = partial(oracles.placed_at(row["lands_on"]), data)
    oracles.check_values(plan, row["result"], (where,))


@rows(BROADCAST_3["stated"])
def test_broadcast3_refuses_as_the_document(row: Row) -> None:
    with pytest.raises(zs.BroadcastError) as caught:
        zs.plan_to(
            row["data"], row["target"], mode=row["mode"], axes_mapping=row.get("axes_mapping")
        )
    assert caught.value.reason == row["reason"]


def test_numpy_is_the_default_mode() -> None:
    row = BROADCAST_3["layers"][0]
    assert zs.plan_to(row["data"], row["target"]) == zs.plan_to(
        row["data"], row["target"], mode="numpy"
    )


# ncnn: every alternative of every cell, in both operand orders.


def ncnn_cells() -> list[Any]:
    return [
        pytest.param(row, alternative, swapped, id=f"{name_row(row)}-{alternative}-{swapped}")
        for row in NCNN["rows"]
        for alternative in row["b"]
        for swapped in (False, True)
    ]


@pytest.mark.parametrize(("row", "alternative", "swapped"), ncnn_cells())
def test_ncnn_matches_the_document(row: Row, alternative: Any, swapped: bool) -> None:
    a, b = row["a"], [] if alternative == "scalar" else alternative
    pair = (b, a) if swapped else (a, b)
    plan = zs.plan(*map(zs.whdc, pair), rule="ncnn")
    assert zs.whdc(plan.shape) == tuple(row["c"])

    def where(own: list[int], other: list[int]) -> oracles.Where:
        return lambda index: zs.whdc(oracles.ncnn(own, other, zs.whdc(index)))

    oracles.check_values(plan, zs.whdc(row["c"]), (where(*pair), where(*pair[::-1])))


def test_ncnn_document_has_39_rows() -> None:
    assert len(NCNN["rows"]) == 39
    assert len(ncnn_cells()) == 2 * (35 + 2 + 3 + 4 + 5)


@rows(NCNN["stated"])
def test_ncnn_tie_is_aligned_as_in_the_document(row: Row) -> None:
    plan = zs.plan(zs.whdc(row["a"]), zs.whdc(row["b"]), rule="ncnn")
    rank = len(row["a"])
    assert plan.axes_mapping[1] == tuple(rank - 1 - place for place in row["places"])


# MNN.


@pytest.mark.parametrize("constant", MNN["subtraction"]["constants"], ids=str)
def test_mnn_subtracts_a_constant(constant: Any) -> None:
    a, b = np.array(MNN["subtraction"]["a"]), np.array(constant)
    plan = zs.plan(a.shape, b.shape, rule="mnn")
    x, y = plan.views(a, b)
    assert (x - y).tolist() == MNN["subtraction"]["result"]


@rows(MNN["pairs"])
def test_mnn_pairs_match_the_document(row: Row) -> None:
    check_pair(row, oracles.right_aligned, rule="mnn")
    check_pair({**row, "a": row["b"], "b": row["a"]}, oracles.right_aligned, rule="mnn")


def test_mnn_allows_six_axes() -> None:
    most = MNN["most_axes"]
    shape = (2, 1) * (most // 2)
    plan = zs.plan(shape, (3,), rule="mnn")
    where = [partial(oracles.right_aligned, s) for s in (shape, (3,))]
    oracles.check_values(plan, (*shape[:-1], 3), where)
    for shapes in (((1, *shape), (3,)), ((3,), (1, *shape))):
        with pytest.raises(zs.BroadcastError) as caught:
            zs.plan(*shapes, rule="mnn")
        assert caught.value.reason == "rank_limit"


# The comparison itself.


def test_comparison_finds_a_wrong_place_or_shape() -> None:
    plan = zs.plan((2, 2), (2,))
    rows_of = partial(oracles.placed_at((0,)), (2,))
    every = partial(oracles.right_aligned, (2, 2))
    with pytest.raises(AssertionError):
        oracles.check_values(plan, (2, 2), (every, rows_of))
    with pytest.raises(AssertionError):
        oracles.check_values(plan, (2, 1), (every, partial(oracles.right_aligned, (2,))))
