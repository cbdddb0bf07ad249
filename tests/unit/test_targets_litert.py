"""LiteRT's row: measured limits by rank, op and dtype."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import zerostride as zs
from zerostride.engines import find_engine

ROW = find_engine("litert")
SIX = (10, 6, 6, 4, 4, 1), (10, 1, 6, 1, 4, 5)


def reason_of(*shapes: Any, **asked: Any) -> tuple[str, bool]:
    with pytest.raises(zs.BroadcastError) as caught:
        zs.plan(*shapes, engine="litert", **asked)
    return caught.value.reason, caught.value.silent


def test_pairs_refused_by_tensorflow_are_supported() -> None:
    """tensorflow#14924 and #17762: TensorFlow's kernels stop at 5 runs of axes, LiteRT's do not."""
    pairs = [
        SIX,
        ((1, 2, 1, 1, 2, 2, 2, 2), (2, 2, 2, 2, 1, 2, 2, 1)),
        ((2, 2, 2, 2, 1, 2), (1, 2, 1, 2, 2, 2)),
    ]
    for pair in pairs:
        assert zs.plan(*pair, engine="litert") == zs.plan(*pair)
    assert not zs.supports("tensorflow", "Mul", "float32", SIX)
    assert zs.supports("litert", "MUL", "float32", SIX)


@pytest.mark.parametrize("op", ["SUB", "DIV", "MAXIMUM", "POW", "FLOOR_DIV", "LESS", "LOGICAL_OR"])
def test_eight_axes_stretch_and_nine_crash(op: str) -> None:
    assert zs.plan((2,) * 8, (2,), engine="litert", op=op).rank == 8
    assert reason_of((2,) * 9, (2,), op=op) == ("rank_limit", True)
    assert zs.plan((2,) * 12, (2,) * 12, engine="litert", op=op).rank == 12
    assert reason_of((2,) * 9, (1, *(2,) * 8), op=op) == ("rank_limit", True)


def test_select_refuses_where_other_ops_crash() -> None:
    three = (2,) * 9, (2,), (2,) * 9
    assert reason_of(*three, op="SELECT_V2") == ("rank_limit", False)
    assert zs.plan(*[(2,) * 9] * 3, engine="litert", op="where").rank == 9
    assert zs.plan((1,) * 9, (1,), (), engine="litert", op="where").rank == 9


def _five_loops(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """By trying every cut of the axes into: equal, one's ones, equal, the other's ones, equal."""
    axes = list(zip(a, b, strict=True))[::-1]
    fits = (
        lambda pair: pair[0] == pair[1],
        lambda pair: pair[0] == 1,
        lambda pair: pair[0] == pair[1],
        lambda pair: pair[1] == 1,
        lambda pair: pair[0] == pair[1],
    )
    for cuts in itertools.combinations_with_replacement(range(len(axes) + 1), 4):
        parts = [axes[i:j] for i, j in itertools.pairwise((0, *cuts, len(axes)))]
        for turn in (parts, [[(y, x) for x, y in part] for part in parts]):
            if all(all(map(fit, part)) for fit, part in zip(fits, turn, strict=True)):
                return True
    return False


def test_add_and_multiply_allow_axes_that_merge_into_five_loops() -> None:
    entries = set()
    for kinds in itertools.product("=ab", repeat=5):
        a = (*(1 if kind == "a" else 2 for kind in kinds), 2, 3, 2, 3)
        b = (*(1 if kind == "b" else 2 for kind in kinds), 2, 3, 2, 3)
        for op in ("add", "MUL"):
            carried = zs.supports("litert", op, "float32", [a, b]).ok
            assert carried == _five_loops(a, b), (a, b)
            # Of other dtypes there are no five loops; shapes without ones need none.
            whole = a == b
            assert zs.supports("litert", op, "int32", [a, b]).ok == whole, (a, b)
            entries.add((carried, whole))
    assert entries == {(True, True), (True, False), (False, False)}


def test_atan2_does_not_broadcast() -> None:
    assert zs.plan((2, 3), (2, 3), engine="litert", op="atan2").shape == (2, 3)
    assert reason_of((2, 3), (3,), op="atan2") == ("rank", False)
    assert reason_of((2, 3), (2, 1), op="atan2") == ("not_identical", True)


def test_prelu_is_one_way() -> None:
    assert zs.plan((2, 3, 4), (3, 1), engine="litert", op="PRELU").shape == (2, 3, 4)
    assert reason_of((2, 1), (2, 3), op="prelu") == ("one_way", False)
    assert reason_of((3,), (2, 3), op="prelu") == ("rank", False)


def test_broadcast_to_is_one_way_without_a_limit_of_axes() -> None:
    assert zs.plan_to((3, 1), (2,) * 10 + (3, 5), engine="litert").rank == 12
    with pytest.raises(zs.BroadcastError):
        zs.plan_to((2, 3), (2, 1), engine="litert")


#: op, dtype, a word of the reason: three rows of what was run for each way to fail.
REFUSED = [
    ("POW", "float16", "no kernel"),
    ("DIV", "int64", "no kernel"),
    ("LESS", "bool", "no kernel"),
    ("LOGICAL_AND", "float32", "no kernel"),
    ("PRELU", "float16", "no kernel"),
    ("ADD", "int8", "SIGABRT"),
    ("SUB", "int16", "SIGABRT"),
    ("EQUAL", "uint8", "SIGABRT"),
    ("MUL", "int8", "wrong"),
    ("DIV", "int16", "wrong"),
    ("NOT_EQUAL", "int16", "wrong"),
]
TAKEN = [("ADD", "int16"), ("MAXIMUM", "int8"), ("MUL", "uint32"), ("EQUAL", "bool")]


@pytest.mark.parametrize(("op", "dtype", "word"), REFUSED)
def test_unsupported_dtype_has_its_reason(op: str, dtype: str, word: str) -> None:
    answer = zs.supports("litert", op, dtype, [(2, 3), (3,)])
    assert not answer.ok
    assert word in answer.reason
    assert dtype in answer.reason
    assert "run" in answer.source
    assert zs.supports("litert", op, dtype).ok is False  # without shapes too


@pytest.mark.parametrize(("op", "dtype"), TAKEN)
def test_supported_dtypes_are_accepted(op: str, dtype: str) -> None:
    assert zs.supports("litert", op, dtype, [(2, 3), (3,)]).ok


def test_every_op_has_its_dtypes() -> None:
    from zerostride.ops import OPS

    ops = {op.name for op in OPS.values() if "litert" in op.names}
    told = set().union(*(row.ops for row in ROW.divergences if row.dtypes))
    assert ops - told == {"where"}, "SELECT_V2 takes them all"
    assert all(zs.supports("litert", "where", d).ok for d in ("int8", "float64", "bool"))


def test_mixed_dtypes_and_values_are_judged() -> None:
    import numpy as np

    a, b = np.array([[1.0], [2.0]], "f4"), np.array([1.0, 2.0], "f4")
    np.testing.assert_array_equal(zs.add(a, b, engine="litert"), a + b)
    with pytest.raises(zs.BroadcastError) as caught:
        zs.add(a, b.astype("i4"), engine="litert")
    assert caught.value.reason == "dtype"
