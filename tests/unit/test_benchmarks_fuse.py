"""The benchmark of fused functions: its rows, its libraries, and its output."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

# The benchmarks are run from a checkout, and are no part of the package.
sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks import compare, exact, fuse, printing, sums
from benchmarks.check import difference, unequal
from benchmarks.fused import first, goals, loops, peak
from benchmarks.fused import printing as fused_printing
from benchmarks.fused.first import First
from benchmarks.fused.namespaces import float32
from benchmarks.fused.peers import PEERS
from benchmarks.fused.results import FusedResults, memory_bound
from benchmarks.fused.rows import FusedRow, choose, make_task
from benchmarks.fused.tape import with_buffers
from benchmarks.machine import describe
from benchmarks.memory import Use
from benchmarks.peers import BASELINE, Call, LeftOut, Prepared
from benchmarks.results import Results, RowResult, Timing
from benchmarks.rows import Operand
from benchmarks.timing import Rounds

import zerostride as zs

LIGHT = [PEERS[BASELINE], PEERS["numpy"]]
ROUNDS = Rounds(most=3, least=3)
LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux resets the peak")
#: Extents in place of the table's: as many as loops of every kind need, and no more.
_SMALL = {8: 2, 64: 5, 56: 4, 12: 3, 128: 17, 1024: 33, 4096: 12, 2048: 35, 2000: 9, 1080: 6}
_SMALL |= {1920: 7, 1 << 22: 101, 1 << 20: 67, 32: 5, 96: 5, 240: 7, 256: 10, 4: 3, 288: 11}


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Threads are as many afterwards, and the process keeps its processors."""
    monkeypatch.setattr(fuse, "pin", lambda threads: None)
    threads = zs.get_num_threads()
    yield
    zs.set_num_threads(threads)


def small(row: FusedRow) -> FusedRow:
    def less(shape: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(_SMALL.get(extent, extent) for extent in shape)

    operands = tuple(dataclasses.replace(o, shape=less(o.shape)) for o in row.operands)
    return dataclasses.replace(row, operands=operands, shape=less(row.shape))


ROWS = {row.name: small(row) for row in choose("")}
by_row = pytest.mark.parametrize("name", list(ROWS))


@by_row
def test_numpy_and_zerostride_match_float64(name: str) -> None:
    task = make_task(ROWS[name], 1)
    for peer in LIGHT:
        assert difference(peer.prepare(task), task) is None, peer.name


@pytest.mark.parametrize("name", ["dequantized_rows", "dequantized_int8", "dequantized_int4"])
@pytest.mark.parametrize("full", [False, True])
def test_onnx_runtime_dequantises_the_same(name: str, full: bool) -> None:
    """Of small operands, and of 64 rows as long as those of the table."""
    pytest.importorskip("onnxruntime", reason="the peer is not installed")
    row = ROWS[name]
    if full:
        (row,) = choose(name)
        rows = [dataclasses.replace(o, shape=(64, *o.shape[1:])) for o in row.operands[:2]]
        operands = (*rows, *row.operands[2:])
        row = dataclasses.replace(row, operands=operands, shape=(64, *row.shape[1:]))
    task = make_task(row, 1)
    assert difference(PEERS["onnxruntime"].prepare(task), task) is None
    assert task.out is not None
    task.out[...] = 0  # the next call writes all of it
    assert difference(PEERS["onnxruntime"].prepare(task), task) is None


def test_onnx_runtime_leaves_other_rows_out() -> None:
    pytest.importorskip("onnxruntime", reason="the peer is not installed")
    with pytest.raises(LeftOut, match="DequantizeLinear"):
        PEERS["onnxruntime"].prepare(make_task(ROWS["affine"], 1))


@by_row
def test_hand_written_loops_match(name: str) -> None:
    """As plain Python, whether or not Numba is there."""
    if loops.njit.__module__.startswith("numba") and name == "residual_rms_norm":
        pytest.skip("its parts are compiled, and compiling takes seconds")
    task = make_task(ROWS[name], 1)
    with np.errstate(over="ignore"):
        getattr(loops, name)(*loops.arguments(task))
    assert unequal(task.out, task.expected, task.row.tolerance) is None


@by_row
def test_wrong_row_is_found(name: str) -> None:
    task = make_task(ROWS[name], 1)
    assert task.out is not None
    for spoil in (lambda x: x.flat[-1] + x.dtype.type(1), lambda x: x.flat[-1] * 0 + 3):
        wrong = task.expected.copy()
        wrong.flat[-1] = spoil(wrong)
        call = Call(lambda result=wrong: result)
        if not np.array_equal(wrong, task.expected):
            assert difference(Prepared((call,)), task) is not None


def test_table_has_the_required_rows() -> None:
    rows = choose("")
    assert len(rows) == len({row.name for row in rows}) == 30
    for row in rows:
        assert math.prod(row.shape) >= (512 if row.name.startswith("model_") else 2048)
        assert row.formula in row.title
    assert [row.name for row in choose("soft*,layer*")] == ["softmax", "layer_norm"]
    with pytest.raises(ValueError, match="no row is called 'nothing'"):
        choose("nothing")


def test_buffers_are_reused_only_after_their_last_reader() -> None:
    x = np.linspace(-2, 2, 64, dtype=np.float32).reshape(8, 8)

    def function(xp: Any, x: Any) -> Any:
        kept = x + 1
        other = xp.exp(kept) * kept - kept
        total = xp.sum(other * other, axis=-1, keepdims=True)
        return xp.where(x > 0, other / total, kept)

    out = np.empty_like(x)
    run = with_buffers(function, (x,), out)
    for _ in range(2):
        out[...] = np.nan
        assert run() is out
        np.testing.assert_allclose(out, function(float32, x), rtol=1e-6)


def test_task_without_a_judge_has_shape_and_dtype() -> None:
    for row in ROWS.values():
        judged, bare = make_task(row, 1), make_task(row, 1, judged=False)
        assert bare.expected.shape == judged.expected.shape
        assert bare.expected.dtype == judged.expected.dtype
        assert all(np.array_equal(a, b) for a, b in zip(bare.inputs, judged.inputs, strict=True))


def test_one_row_runs_with_the_light_peers() -> None:
    result = compare.run_task(make_task(ROWS["affine"], 1), LIGHT, ROUNDS)
    assert not result.wrong
    assert not result.left_out
    assert set(result.timings) == {BASELINE, "numpy"}
    assert result.best == "numpy"


@pytest.mark.slow
def test_command_measures_all_parts_of_a_small_row(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--rows", "small_chain", "--peers", "numpy", "--rounds", "3", "--threads", "1"]
    parts = "hot,first,peak" if sys.platform.startswith("linux") else "hot,first"
    assert fuse.main([*arguments, "--quick", "--parts", parts, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in data["hot"]["rows"]] == ["small_chain"]
    times = data["first"]["small_chain"]
    assert 0 < times["numpy"]["first"] < 1
    assert 0 < times[BASELINE]["early"] < times[BASELINE]["first"]
    assert times[BASELINE]["first"] < data["cold"]["small_chain"]["first"]
    if "peak" in parts:
        assert data["peak"]["small_chain"]["result"] == 32 * 64 * 4
    assert {goal["text"][:5] for goal in data["goals"]} >= {"level", "geome", "a fir"}


def test_wrong_options_are_usage_errors(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--rows", "x"], ["--peers", "x"], ["--parts", "x"], ["--threads", "0"]):
        with pytest.raises(SystemExit):
            fuse.main(words)
        assert "error" in capsys.readouterr().err


def test_list_names_rows_and_peers(capsys: pytest.CaptureFixture[str]) -> None:
    assert fuse.main(["--list"]) == 0
    output = capsys.readouterr().out
    assert all(name in output for name in (*ROWS, *PEERS))


def row_result(name: str, **timings: Timing) -> RowResult:
    return RowResult(name, name, "float32", 1 << 20, 3, 1e9, timings)


def results_of(*rows: RowResult, **more: Any) -> FusedResults:
    versions = {"zerostride": "1", "numpy": "2"}
    hot = Results(describe(), "2026-01-01", "python", 1, "loop", "native", versions, rows)
    return FusedResults(hot, "", **more)


def use(first: int) -> Use:
    return Use("a", "a", "float32", 4, 4, first, 0, peak.ALLOWED)


def test_goals_are_reached_or_short() -> None:
    own = Timing(1.0, 1.0, 1.0, 0.95)
    good = results_of(
        row_result("a", zerostride=own, numpy=Timing(2.0, 2.0, 1.9, 0.5)),
        first={"a": {BASELINE: First(1.001, 1.0, 0.8)}},
        peak={"a": use(100)},
    )
    assert len(goals.judge(good)) == 6
    assert all(goal.reached for goal in goals.judge(good))
    slow = Timing(1.0, 1.0, 1.0, 0.6)
    bad = results_of(
        row_result("a", zerostride=slow, numpy=Timing(0.9, 0.9, 0.9, 0.7)),
        first={"a": {BASELINE: First(1.006, 1.0, 0.7)}},
        peak={"a": use(3 << 20)},
    )
    assert not any(goal.reached for goal in goals.judge(bad))
    assert "a: 6.00 ms" in goals.judge(bad)[4].short


def test_compute_bound_rows_are_not_compared_with_memory() -> None:
    idle = row_result("a", zerostride=Timing(1.0, 1.0, 1.0, 0.3), numpy=Timing(2.0, 2.0, 2.0, 0.2))
    assert not memory_bound(idle)
    assert memory_bound(row_result("a", numpy=Timing(1.0, 1.0, 1.0, 0.6)))
    assert all("limit" not in goal.text for goal in goals.judge(results_of(idle)))


def test_page_names_missing_peers() -> None:
    row = dataclasses.replace(
        row_result("a", zerostride=Timing(1.0, 1.0, 1.0, 0.95)), left_out={"numpy": "no such op"}
    )
    results = results_of(
        row,
        first={"a": {BASELINE: First(1e-3, 1.0, 0.8), "numpy": "it broke"}},
        cold={"a": First(2e-3, 1.0, None)},
        kept={"a": First(5e-4, 1.0, None)},
        peak={"a": "no peak"},
    )
    text = fused_printing.as_markdown(results, "By hand.")
    assert "numpy: no such op (a)" in text
    assert "peak memory: no peak (a)" in text
    assert "| a | 1.00 ms | 2.00 ms | 500 µs | 0.80 | · | · | · |" in text
    assert "By hand." in text
    assert json.loads(fused_printing.as_json(results))["goals"]
    fused_printing.print_results(results)


def test_failing_child_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any) -> Any:
        raise RuntimeError("it fell over")

    monkeypatch.setattr(first, "in_fresh_process", failing)
    monkeypatch.setattr(peak, "in_fresh_process", failing)
    assert first.in_child(ROWS["affine"], "numpy", 1, "first", once=True) == "it fell over"
    if peak.RESET.exists():
        assert peak.in_child(ROWS["affine"], 1) == "it fell over"


def test_given_tolerance_applies_to_cancelling_results() -> None:
    right = np.array([1.0, 1e-9], np.float32)
    assert unequal(right + np.float32(1e-6), right) is not None
    assert unequal(right + np.float32(1e-6), right, 1e-5) is None
    assert unequal(right + np.float32(1e-4), right, 1e-5) is not None


def test_operands_are_drawn_between_their_limits() -> None:
    row = dataclasses.replace(ROWS["polynomial"], operands=(Operand((101,), low=-3.0, high=-1.0),))
    (drawn,) = make_task(row, 1).inputs
    assert -3 <= drawn.min() < -2.5
    assert -1.5 < drawn.max() <= -1


# Errors of reductions


def test_exact_reductions_are_exact() -> None:
    values = np.array([[1e16, 1.0, -1e16, 2.0**-60]])
    assert exact.total(values) == [Fraction(1) + Fraction(2) ** -60]
    assert exact.mean(values) == [(Fraction(1) + Fraction(2) ** -60) / 4]
    assert exact.variance(np.array([[1.0, 2.0], [0.5, 0.5]])) == [Fraction(1, 4), Fraction(0)]
    assert exact.product(np.array([[3.0, -0.25, 2.0**-1000]])) == [Fraction(-3, 4) / 2**1000]
    (total,) = exact.logsumexp(np.array([[0.0, 0.0]]))
    assert abs(total - Fraction(math.log(2))) < Fraction(2) ** -52


def test_long_products_are_truncated_below_the_last_place() -> None:
    values = np.full((1, 5000), 1.5)
    (product,) = exact.product(values)
    error = exact.relative_error(np.array([1.0]), [product / Fraction(3, 2) ** 5000])
    assert error < 2.0**-200


def test_relative_errors_are_found() -> None:
    right = [Fraction(1), Fraction(3)]
    assert exact.relative_error(np.array([1.0, 3.0]), right) == 0
    assert exact.relative_error(np.array([1.0, 3.75]), right) == 0.25
    assert exact.relative_error(np.array([1.0, np.nan]), right) == math.inf
    assert exact.relative_error(np.array([1e-300]), [Fraction(0)]) == math.inf


@pytest.mark.parametrize("name", list(sums.REDUCTIONS))
def test_errors_of_a_small_table_are_measured(name: str) -> None:
    for dtype in sums.ROUNDING:
        kind = sums.REDUCTIONS[name].data[0]
        rows = sums.measure(name, dtype, kind, ["zerostride", "numpy"], size=24)
        assert set(rows.errors["zerostride"]) == set(sums.AXES)
        # 576 numbers of one sign: whoever loses more than this computes something else.
        assert max(rows.errors["zerostride"].values()) < 40, rows


def test_command_prints_the_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sums, "LIBRARIES", ("zerostride", "numpy"))
    monkeypatch.setattr(sums.measure, "__defaults__", (16,))
    assert sums.main(["--only", "mean", "--dtypes", "float32", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["data"] for row in rows] == ["positive", "mixed signs"]
    assert rows[1]["condition"] > rows[0]["condition"] >= 1
    assert printing.NONE not in sums._table([sums.Errors(**row) for row in rows], ["numpy"])[1]
