"""Targets that were only read about: documented facts, marked as not run."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

import zerostride as zs
from zerostride.engines import ENGINES, find_engine, versions
from zerostride.engines.planning import plan

READ = ("tensorrt", "coreml", "litert-gpu", "tosa", "stablehlo")
#: A document or a thread with a place in it.
SOURCE = re.compile(r"reference|specification|#\d+|\.(py|cc|xml)")


def answer(engine: str, *shapes: Any, op: str | None = None) -> Any:
    """The result's shape, or the reason and whether it is silent."""
    try:
        return zs.plan(*shapes, engine=engine, op=op).shape
    except zs.BroadcastError as error:
        return str(error.reason), error.silent


def test_read_engines_have_rows_at_the_end() -> None:
    assert tuple(name for name, row in ENGINES.items() if not row.run) == READ
    assert tuple(ENGINES.own)[-len(READ) :] == READ  # those that were run come first


@pytest.mark.parametrize("name", READ)
def test_every_read_fact_has_a_source(name: str) -> None:
    row = find_engine(name)
    rules = (row.elementwise, row.to_target, row.constants, *row.ops.values())
    sources = [row.source, *(rule.source for group in rules for rule in group.values())]
    sources += [divergence.source for divergence in row.divergences]
    for source in sources:
        assert source.endswith("read")
        assert SOURCE.search(source), source
    assert not any(divergence.run for divergence in row.divergences)


@pytest.mark.parametrize("name", READ)
def test_no_installed_package_counts_as_a_read_engine(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "installed", lambda distribution: "99")
    assert versions.was_measured(find_engine(name)) is None


# Limits and alignment.

EQUAL_RANKS = [
    ("tensorrt", 8),
    ("tosa", 6),
]


@pytest.mark.parametrize(("engine", "most"), EQUAL_RANKS)
def test_ranks_must_be_equal_and_both_may_stretch(engine: str, most: int) -> None:
    assert answer(engine, (2, 1, 4), (1, 3, 4)) == (2, 3, 4)
    assert answer(engine, (2, 3), (3,)) == ("rank", False)
    assert answer(engine, (2, 3), ()) == ("rank", False)  # no exception for scalars
    assert answer(engine, (2,) * most, (1,) * most) == (2,) * most
    assert answer(engine, (2,) * (most + 1), (1,) * (most + 1)) == ("rank_limit", False)
    assert answer(engine, (2, 1), (1, 3), (1, 1), op="where") == (2, 3)
    assert answer(engine, (2, 1), (3,), (1, 1), op="where") == ("rank", False)


def test_core_ml_has_numpys_rule_up_to_five_axes() -> None:
    assert answer("coreml", (5, 4, 3, 2, 1), (2, 6)) == (5, 4, 3, 2, 6)
    assert answer("coreml", (1,) * 6, (2,)) == ("rank_limit", False)


def test_litert_gpu_lays_out_each_operand_by_its_own_rank() -> None:
    """LiteRT#8980: the scores of Whisper's decoder and their mask."""
    scores, mask = (20, 128, 128), (1, 1, 128, 128)
    assert answer("litert-gpu", scores, mask) == (20, 1, 128, 128)
    assert zs.plan(scores, mask).shape == (1, 20, 128, 128)
    assert answer("litert-gpu", (1, 20, 128, 128), mask) == (1, 20, 128, 128)
    fixed = zs.plan(scores, mask).express("litert-gpu")
    assert fixed.describe(("scores", "mask")) == "reshape scores to (1, 20, 128, 128)"
    swapped = zs.plan((2, 1, 4), (2, 3, 4)).express("litert-gpu")
    assert swapped.describe() == "swap the operands"


def test_litert_gpu_allows_four_axes_and_stretches_the_second() -> None:
    assert answer("litert-gpu", (1,) * 5, (1,) * 5) == ("rank_limit", False)
    assert answer("litert-gpu", (2, 3, 4), (2, 1, 4)) == (2, 3, 4)
    assert answer("litert-gpu", (2, 1, 4), (2, 3, 4)) == ("one_way", True)
    assert answer("litert-gpu", (2, 1), (1, 3)) == ("one_way", True)
    with pytest.raises(zs.BroadcastError) as caught:
        zs.plan_to((3,), (2, 3), engine="litert-gpu")
    assert caught.value.reason == "no_op"  # LiteRT#9191


SELECTS: list[tuple[Any, Any]] = [
    (((2, 3, 5), (2, 3, 5), ()), (2, 3, 5)),
    (((2, 3, 1), (2, 3, 5), (1,)), (2, 3, 5)),  # five channels: two slices
    (((2, 3, 1), (2, 3, 4), (1,)), ("wrong_result", True)),  # four: read as one
    (((1, 1, 1), (2, 3, 4), (1,)), (2, 3, 4)),  # one truth value
    (((2, 3, 4), (2, 1, 4), ()), ("one_way", False)),
    (((2, 3, 4), (3, 4), ()), ("rank", False)),
    (((3, 4), (3, 4), ()), ("rank", False)),
    (((3, 4), (), ()), (3, 4)),
    (((3, 4), (2, 3, 4), ()), ("extent_mismatch", True)),  # 3 lands on the batch
    (((1,) * 5, (1,) * 5, ()), ("rank_limit", False)),
]


@pytest.mark.parametrize(("shapes", "support"), SELECTS)
def test_litert_gpu_stretches_only_the_condition_of_a_select(shapes: Any, support: Any) -> None:
    assert answer("litert-gpu", *shapes, op="where") == support


def test_stablehlo_stretches_nothing_and_maps_axes() -> None:
    assert answer("stablehlo", (2, 3), (2, 3)) == (2, 3)
    assert answer("stablehlo", (2, 3), (1, 3)) == ("not_identical", False)
    assert answer("stablehlo", (2, 3), (3,)) == ("rank", False)
    assert answer("stablehlo", (), (2, 3), (2, 3), op="where") == (2, 3)
    assert answer("stablehlo", (2, 1), (2, 3), (2, 3), op="where") == ("not_identical", False)
    laid = zs.plan_to((3,), (3, 4), mode="explicit", axes_mapping=[0], engine="stablehlo")
    assert laid.aligned == ((3, 1),)
    with pytest.raises(zs.BroadcastError) as caught:
        zs.plan_to((2, 3), (3, 2), mode="explicit", axes_mapping=[1, 0], engine="stablehlo")
    assert caught.value.reason == "transposes"


def test_undocumented_ops_are_not_supported() -> None:
    for engine, op in (("coreml", "prelu"), ("tosa", "fmod"), ("tensorrt", "atan2")):
        support = zs.supports(engine, op)
        assert not support.ok
        assert "nothing was read" in support.reason
        assert answer(engine, (2,), (2,), op=op) == ("no_op", False)


TYPES = [
    ("add", "int32", True),
    ("add", "int8", False),
    ("mul", "int8", True),
    ("pow", "int32", False),
    ("logical_and", "bool", True),
    ("logical_and", "int32", False),
    ("where", "float64", False),
    ("divide", "int32", True),  # INTDIV; of floats it has RECIPROCAL
    ("divide", "float32", False),
    ("less", "float32", True),  # GREATER, operands exchanged
]


@pytest.mark.parametrize(("op", "dtype", "taken"), TYPES)
def test_tosa_has_its_types(op: str, dtype: str, taken: bool) -> None:
    support = zs.supports("tosa", op, dtype, [(2, 3)] * (3 if op == "where" else 2))
    assert support.ok == taken
    assert taken or "tosa.xml" in support.source


# Fixes.


def test_fix_makes_ranks_equal() -> None:
    for engine, op in (("tensorrt", None), ("tosa", None), ("jax", "lax.add")):
        fix = zs.plan((2, 3, 4), (3, 1)).express(None, engine=engine, op=op)  # type: ignore[arg-type]
        assert fix.shapes == ((2, 3, 4), (1, 3, 1))
        assert not fix.merged_axes
        assert plan(*fix.shapes, engine=engine, op=op) == zs.plan((2, 3, 4), (3, 1))


def test_fix_merges_axes_under_a_rank_limit() -> None:
    meant = zs.plan((2, 3, 4, 5, 6, 7), (4, 5, 1, 1))
    fix = meant.express("coreml")
    assert fix.merged_axes == ((0,), (1,), (2,), (3,), (4, 5))
    a, b = (np.arange(np.prod(shape)).reshape(shape) for shape in meant.operands)
    x, y = (z.reshape(s) for z, s in zip((a, b), fix.shapes, strict=True))
    np.testing.assert_array_equal(zs.add(x, y).reshape(meant.shape), zs.add(a, b))
    with pytest.raises(zs.NotExpressible) as caught:
        zs.plan((2, 1, 2, 1, 2, 1), (1, 3, 1, 3, 1, 3)).express("coreml")
    assert caught.value.reason == "rank_limit"


def test_stablehlo_fix_has_explicit_broadcasts() -> None:
    fix = zs.plan((5, 1), (5,)).express("stablehlo")
    assert fix.explicit == ((0, 1), (1,))
    assert fix.shapes == ((5, 5), (5, 5))
    words = "broadcast x to (5, 5) with axes_mapping=[0, 1], "
    assert fix.describe() == words + "broadcast y to (5, 5) with axes_mapping=[1]"
    assert json.loads(json.dumps(fix.as_dict()))["explicit"] == [[0, 1], [1]]
    assert zs.plan((2, 3), (2, 3)).express("stablehlo").describe() == "nothing to change"
    assert zs.plan((2, 3), (2, 3)).express("stablehlo").explicit == ()
    with pytest.raises(zs.NotExpressible):
        zs.plan((2, 3), (3,)).express("none")  # a rule has no Broadcast op beside it


# Where engines are listed.


def test_comparisons_mark_read_engines() -> None:
    comparison = zs.compare((2, 3), (3,))
    rows = {row.name: row for row in comparison.rows if row.kind == "engine"}
    for name, row in rows.items():
        assert row.run == (name not in READ)
        assert row.as_dict()["run"] == row.run
    lines = [line for line in str(comparison).splitlines() if "read, not run" in line]
    assert len(lines) == len(READ)


def test_drawings_mark_read_engines() -> None:
    for name, row in ENGINES.items():
        drawn = zs.plan((2, 3), (2, 3), engine=name).explain().splitlines()[0]
        assert ("(read, not run)" in drawn) == (not row.run)


def test_values_of_read_engines_are_not_computed() -> None:
    with pytest.raises(zs.BroadcastError, match="read about, not run"):
        zs.add(np.ones((2, 3)), np.ones((2, 3)), engine="tosa")
