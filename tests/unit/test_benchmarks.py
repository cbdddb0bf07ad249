"""The benchmark: its tables and output; a wrong result is not timed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

# The benchmarks are run from a checkout, and are no part of the package.
sys.path.insert(0, str(Path(__file__).parents[2]))

import itertools

from benchmarks import __main__ as command
from benchmarks import compare, goals, memory, printing, scaling, stream
from benchmarks import peers as peer_table
from benchmarks.chart import Axis, Line, chart
from benchmarks.check import difference, unequal
from benchmarks.machine import describe
from benchmarks.peers import BASELINE, PEERS, Call, LeftOut, Peer, Prepared
from benchmarks.results import Results, RowResult, Timing, summarise
from benchmarks.rows import Task, choose, make_task
from benchmarks.timing import Rounds, in_turns, sampler

import zerostride as zs

CACHE = 1 << 20
ROOT = Path(__file__).resolve().parents[2]
ROUNDS = Rounds(most=3, least=3)
LIGHT = [PEERS[BASELINE], PEERS["numpy"]]


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Threads are as many afterwards, and the process keeps its processors."""
    monkeypatch.setattr(compare, "pin", lambda threads: None)
    threads = zs.get_num_threads()
    yield
    zs.set_num_threads(threads)


def rows_named(names: str) -> list[Any]:
    return choose(names, CACHE)


def results_of(rows: tuple[RowResult, ...]) -> Results:
    versions = {"zerostride": "1", "numpy": "2"}
    return Results(describe(), "2026-01-01", "python", 1, "loop", "reference", versions, rows)


def row_result(name: str, **timings: Timing) -> RowResult:
    return RowResult(name, name, "float32", 2 * CACHE, 3, 1e9, timings)


def peer(name: str, function: Any) -> Peer:
    def prepare(task: Task) -> Prepared:
        return Prepared((Call(function, task.inputs, {"out": task.out}),))

    return Peer(name, "numpy", prepare, "")


def test_two_rows_run_with_the_light_peers() -> None:
    for row in rows_named("small,tiny_new"):
        result = compare.run_row(row, LIGHT, 1, ROUNDS)
        assert not result.left_out
        assert not result.wrong
        assert set(result.timings) == {"zerostride", "numpy"}
        assert result.timings["zerostride"].ratio == 1.0
        assert result.timings["numpy"].seconds > 0
        assert result.best == "numpy"
        assert result.rounds == 3


def test_share_of_the_limit_is_measured_where_bytes_count() -> None:
    (row,) = rows_named("same_32k")
    result = compare.run_row(row, LIGHT, 1, ROUNDS)
    assert result.limit is not None
    assert result.limit > 0
    assert result.timings["numpy"].share is not None


def test_missing_compiler_measures_the_limit_by_copies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream, "library", lambda: None)
    (row,) = rows_named("same_32k")
    sample = stream.sampler(make_task(row, 2))
    assert sample is not None
    assert 0 < sample() < 1
    assert "np.copyto" in stream.how()


def test_wrong_peer_is_marked_and_not_timed() -> None:
    def off_by_one(a: Any, b: Any, out: Any) -> Any:
        return np.add(a, b + 1, out=out)

    def idle(a: Any, b: Any, out: Any) -> Any:
        return out

    (row,) = rows_named("small")
    result = compare.run_row(row, [*LIGHT, peer("off", off_by_one), peer("idle", idle)], 1, ROUNDS)
    assert set(result.wrong) == {"off", "idle"}
    assert "2,048 values differ" in result.wrong["off"]
    assert set(result.timings) == {"zerostride", "numpy"}
    text = printing.as_markdown(results_of((result,)))
    assert "WRONG, not timed" in text


def test_refused_row_is_left_out_with_the_librarys_message() -> None:
    def unable(task: Task) -> Prepared:
        raise LeftOut("no strides")

    def raising(a: Any, b: Any, out: Any) -> Any:
        raise TypeError("no such dtype\nand more")

    (row,) = rows_named("small")
    several = [*LIGHT, Peer("unable", "numpy", unable, ""), peer("raising", raising)]
    result = compare.run_row(row, several, 1, ROUNDS)
    assert result.left_out == {"unable": "no strides", "raising": "refused: no such dtype"}


@pytest.mark.parametrize("change", ["shape", "dtype", "value", "nan"])
def test_unequal_finds_each_kind_of_change(change: str) -> None:
    expected = np.arange(6, dtype=np.float32).reshape(2, 3)
    got = expected.copy()
    assert unequal(got, expected) is None
    if change == "shape":
        got = got.reshape(3, 2)
    elif change == "dtype":
        got = got.astype(np.float64)
    else:
        got[1, 2] = np.nan if change == "nan" else 5.001
    assert unequal(got, expected)


def test_in_place_call_is_checked_on_its_own_operands() -> None:
    (row,) = rows_named("by_3_in_place")
    task = make_task(row, 1)
    for one in LIGHT:
        assert difference(one.prepare(task), task) is None
        assert difference(one.prepare(task), task) is None


def test_every_row_is_right_on_the_light_peers() -> None:
    names = [row.name for row in rows_named("") if not row.name.startswith("beyond")]
    assert len(names) == len(set(names))
    light = "small,tiny*,number*,by_3_in_place,both_stretch,mask,where,model_*"
    for row in rows_named(light):
        task = make_task(row, 1)
        for one in LIGHT:
            assert difference(one.prepare(task), task) is None, (row.name, one.name)


def test_bounds_and_slopes_of_model_rows_matter() -> None:
    """Each result has values of every branch, so that a wrong branch is found."""
    for row in rows_named("model_clip,model_*relu"):
        task = make_task(row, 1)
        changed = task.expected != task.inputs[0]
        assert 0.2 < changed.mean() < 0.8, row.name
    assert rows_named("model_leaky_relu")[0].title == "leaky_relu((32,64,64), alpha=0.2)"


def test_rows_and_peers_are_chosen_by_pattern() -> None:
    assert [row.name for row in rows_named("tiny*")] == ["tiny", "tiny_new"]
    assert [one.name for one in peer_table.choose("num*")] == ["zerostride", "numpy", "numexpr"]
    with pytest.raises(ValueError, match="no row is called 'nothing'"):
        rows_named("nothing")
    with pytest.raises(ValueError, match="no peer is called 'nobody'"):
        peer_table.choose("nobody")


def test_rows_beyond_the_cache_exceed_it() -> None:
    for cache in (1 << 20, 260 << 20):
        for row in choose("beyond*", cache):
            elements = [int(np.prod(operand.shape)) for operand in row.operands]
            assert 4 * (sum(elements) + elements[0]) > 2 * cache


def test_ratios_are_of_pairs() -> None:
    times = {
        "zerostride": np.array([1.0, 2.0, 4.0]),
        "numpy": np.array([2.0, 2.0, 12.0]),
        "limit": np.array([0.5, 0.5, 4.0]),
    }
    timing = summarise(times, "limit")["numpy"]
    assert timing == Timing(seconds=2.0, ratio=2.0, quartile=1.5, share=0.25)


def test_goals_are_reached_or_short() -> None:
    own = Timing(1.0, 1.0, 1.0, 0.95)
    fast, slow = Timing(0.9, 0.9, 0.9, 0.99), Timing(2.0, 2.0, 1.9, 0.5)
    good = results_of((row_result("tiny", zerostride=own, numpy=slow),))
    assert all(goal.reached for goal in goals.judge(good))
    bad = results_of(
        (
            row_result("tiny", zerostride=own, numpy=fast),
            row_result("row", zerostride=own, numpy=Timing(1.1, 1.1, 0.9, 0.5)),
        )
    )
    assert not goals.judge(bad)[0].reached
    assert "tiny: 0.90 (0.90) of numpy" in goals.judge(bad)[0].short
    assert "row: 1.10 (0.90) of numpy" in goals.judge(bad)[0].short


def test_order_is_drawn_and_every_peer_has_every_round() -> None:
    order: list[str] = []

    def recording(name: str) -> Any:
        return lambda: order.append(name) or 1.0

    rounds = Rounds(20, float("inf"), 20)
    times = in_turns({name: recording(name) for name in "abc"}, rounds)
    turns = ["".join(order[k : k + 3]) for k in range(0, len(order), 3)]
    assert {"".join(sorted(turn)) for turn in turns} == {"abc"}
    assert len(set(itertools.pairwise(order))) >= 6  # anybody comes after anybody
    assert all(len(values) == 20 for values in times.values())


def test_fastest_of_equal_ways_is_timed() -> None:
    slow = Call(sum, (range(200_000),))
    fast = Call(sum, (range(10),))
    assert sampler((slow, fast))() < sampler((slow,))()


def test_command_writes_json(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--rows", "tiny", "--peers", "numpy", "--rounds", "3", "--threads", "1", "--json"]
    assert compare.main(arguments) == 0
    data = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in data["rows"]] == ["tiny"]
    assert {"zerostride", "numpy"} == set(data["rows"][0]["timings"])
    assert data["machine"]["cores"] >= 1
    assert data["goals"]


def test_wrong_name_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        compare.main(["--rows", "nothing"])
    assert "no row is called" in capsys.readouterr().err


def test_scripts_run_as_commands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", "symbolic", "--help"])
    with pytest.raises(SystemExit) as ended:
        command.main()
    assert ended.value.code == 0
    assert "symbolic" in capsys.readouterr().out


def test_sizes_range_from_one_element_to_the_largest() -> None:
    rows = scaling.size_rows(1e9)
    assert rows[0][0] == 12
    assert rows[-1][0] == pytest.approx(1e9, rel=0.01)
    assert len({row.name for _, row in rows}) == len(rows)


def test_ranks_have_one_size_and_axes_that_do_not_merge() -> None:
    for rank, row in scaling.rank_rows():
        first, second = (operand.shape for operand in row.operands)
        assert len(first) == len(second) == rank
        shape = np.broadcast_shapes(first, second)
        assert np.prod(shape) == 1 << 20
        assert all((a == 1) != (b == 1) for a, b in zip(first, second, strict=True))


def test_scaling_measures_each_number_of_threads() -> None:
    rows = scaling.rank_rows()[1:2]
    points = scaling.measure(rows, LIGHT, ROUNDS, "")
    threads = {1, describe().cores}
    assert {(p.peer, p.threads) for p in points} == {
        ("numpy", 1),
        *(("zerostride", count) for count in threads),
    }
    assert all(point.seconds > 0 for point in points)


def test_chart_is_xml_with_a_line_per_series() -> None:
    lines = [
        Line("a <1>", "a", [(10.0, 1e-6), (100.0, 1e-5)]),
        Line("b", "b", [(10.0, 2e-6), (100.0, 1e-5)], dashed=True),
    ]
    text = chart("times & sizes", lines, Axis("bytes", str), Axis("time", str))
    root = ElementTree.fromstring(text)
    named = "{http://www.w3.org/2000/svg}"
    assert len(root.findall(f"{named}polyline")) == 2
    places = [float(t.attrib["y"]) for t in root.findall(f"{named}text") if "style" in t.attrib]
    assert abs(places[0] - places[1]) >= 14


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak is reset on Linux alone")
def test_memory_growth_includes_temporaries() -> None:
    # In a process of its own: what earlier tests have freed may still be resident in this one.
    code = """
import numpy as np
from benchmarks import memory
ones = lambda: np.ones(1 << 21, np.float32)
print(memory.growth(lambda: (ones() + 1) * ones())[0] - memory.growth(ones)[0])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True)
    assert int(done.stdout) > 1 << 22


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak is reset on Linux alone")
def test_row_needs_little_memory_beyond_its_result() -> None:
    (row,) = rows_named("by_3")
    use = memory.in_child(row, 1)
    assert use.result == 3 << 22
    assert use.operands == use.result + 12
    assert use.first <= memory.ALLOWED + memory.COARSE
