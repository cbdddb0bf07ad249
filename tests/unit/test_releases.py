"""Rows of older releases: names, what they plan, and when an answer changed."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import zerostride as zs
from zerostride.engines import ENGINES, find_engine, planning, table, versions
from zerostride.engines.changes import MEASURED
from zerostride.engines.releases import release_before, release_note, releases_of, title_of
from zerostride.report import headline
from zerostride.sizes import Asker, Shape


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str | None], None]]:
    """Pretends that one version of every engine is installed."""
    monkeypatch.setattr(table, "newest_wanted", lambda: False)

    def forget() -> None:
        for cached in (table._own_default, planning._cached, versions.warn_if_unmeasured):
            cached.cache_clear()

    def pretend(version: str | None) -> None:
        for module in (table, versions):
            monkeypatch.setattr(module, "installed", lambda _: version)
        forget()

    yield pretend
    forget()


Install = Callable[[str | None], None]


def test_newest_release_has_the_newest_row() -> None:
    for name in ("ncnn", "ncnn@20261020", "ncnn@1.0.20261020"):
        row = find_engine(name)
        assert replace(row, asked="") == ENGINES["ncnn"]
        assert find_engine(row.title) is row


@pytest.mark.parametrize(
    ("version", "release", "noted"),
    [
        (None, "1.0.20261020", ""),
        ("1.0.20261020", "1.0.20261020", ""),
        ("1.0.20990101", "1.0.20261020", ""),
        ("nightly", "1.0.20261020", ""),
        ("1.0.20230517", "20230517", "ncnn 20230517 is installed; the row of 20230517 is used"),
        ("1.0.20230601", "20230517", "ncnn 20230601 is installed, which was not measured; the"),
        ("1.0.20200101", "20230223", "ncnn 20200101 is installed, which was not measured; the"),
    ],
)
def test_name_without_a_release_is_the_installed_row(
    install: Install, version: str | None, release: str, noted: str
) -> None:
    install(version)
    row = find_engine("ncnn")
    assert (row.release, row.title) == (release, "ncnn")
    assert "".join(release_note(row)).startswith(noted)
    assert bool(release_note(row)) is bool(noted)
    assert find_engine("ncnn@20261020").release == "1.0.20261020"
    assert releases_of(row) == releases_of(ENGINES["ncnn"])


def test_answers_are_those_of_the_installed_release(install: Install) -> None:
    install("1.0.20230517")
    with pytest.raises(zs.BroadcastError, match="may not stretch"):
        zs.plan((17, 1, 128), (1, 2, 128), engine="ncnn")
    assert zs.plan((17, 1, 128), (1, 2, 128), engine="ncnn@20261020").shape == (17, 2, 128)
    rows = {row.name: row for row in zs.compare((17, 1, 128), (1, 2, 128)).rows}
    assert (rows["ncnn"].release, rows["ncnn"].silent) == ("20230517", True)
    file = Path(__file__).parents[2] / "examples/square_add.param"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = zs.audit(file, "ncnn")
    assert (report.target, report.place) == ("ncnn", "ncnn 20230517")
    assert any("ncnn@20261020 names that of the newest" in note for note in report.notes)


def test_unmeasured_release_is_told_once(install: Install) -> None:
    install("1.0.20230601")
    with pytest.warns(zs.EngineVersionWarning, match="the row of 20230517 is used"):
        zs.plan((2,), (2,), engine="ncnn")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        zs.plan((3,), (3,), engine="ncnn")


def test_release_before_all_changes_is_the_newest_row_under_its_number(install: Install) -> None:
    install("2.3.4")
    row = find_engine("numpy")
    assert (row.release, release_note(row)) == ("2.3", [])


@pytest.mark.parametrize(
    ("value", "release"), [("newest", "2.5"), ("installed", "2.2"), ("", "2.2"), ("x", "BadInput")]
)
def test_variable_chooses_between_installed_and_newest(value: str, release: str) -> None:
    code = (
        "import importlib.metadata as m; m.version = lambda name: '2.2.6'\n"
        "from zerostride.engines import find_engine\n"
        "print(find_engine('numpy').release)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "ZEROSTRIDE_RELEASES": value},
        capture_output=True,
        text=True,
    )
    assert release in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "release", "noted"),
    [
        ("ncnn@20230517", "20230517", False),
        ("ncnn@1.0.20230517", "20230517", False),
        ("ncnn@20230601", "20230517", True),
        ("numpy@2.4.1", "2.4", False),
    ],
)
def test_name_finds_the_row_of_a_release(name: str, release: str, noted: bool) -> None:
    row = find_engine(name)
    assert (row.name, row.release) == (name.partition("@")[0], release)
    assert bool(release_note(row)) is noted
    assert find_engine(row.title) is row


@pytest.mark.parametrize("name", ["ncnn@2019", "ncnn@20990101", "ncnn@x", "ncnn@", "torch@1.0"])
def test_unmeasured_release_is_refused_with_the_measured_ones(name: str) -> None:
    with pytest.raises(zs.BroadcastError, match="was not measured") as caught:
        zs.plan((2,), (2,), engine=name)
    assert ENGINES[name.partition("@")[0]].release.removeprefix("1.0.") in str(caught.value)


def test_unknown_engine_with_a_release_gets_a_near_name() -> None:
    with pytest.raises(zs.BroadcastError, match="did you mean ncnn"):
        zs.plan((2,), (2,), engine="ncn@20230517")


def test_installed_version_has_its_own_row() -> None:
    ncnn = ENGINES["ncnn"]
    assert title_of(ncnn, "1.0.20230517") == "ncnn@20230517"
    assert title_of(ncnn, "1.0.20261020") == "ncnn@20261020"
    assert title_of(ncnn, "1.0.20250428") == "ncnn@20250503"  # the next measured one
    assert title_of(ncnn, "1.0.20990101") == "ncnn@20261020"
    assert title_of(ncnn, "1.0.20990101rc1") == "ncnn@20261020"


@pytest.mark.parametrize("engine", MEASURED)
def test_measured_releases_are_in_order(engine: str) -> None:
    places = [tuple(map(int, one.split("."))) for one in releases_of(ENGINES[engine])]
    assert places == sorted(set(places))


def outcome(release: str, *shapes: tuple[int, ...], op: str | None = None) -> str:
    try:
        return str(zs.plan(*shapes, engine=f"ncnn@{release}", op=op).aligned)
    except zs.BroadcastError as error:
        return "silent" if error.silent else "refused"


@pytest.mark.parametrize(
    ("shapes", "op", "by_release"),
    [
        # Tencent/ncnn#4803: both operands stretch.
        (((17, 1, 128), (1, 2, 128)), None, {"20230517": "silent", "20230816": "((17,"}),
        # Tencent/ncnn#3924: a vector beside a matrix.
        (((5, 2), (2,)), None, {"20230517": "silent", "20230816": "((5, 2), (1, 2))"}),
        (((2, 5), (2,)), None, {"20230517": "((2, 5), (2, 1))", "20261020": "((2, 5), (2, 1))"}),
        (
            ((0, 3), (3, 3)),
            None,
            {"20240410": "silent", "20240820": "refused", "20250916": "refused", "20260114": "sil"},
        ),
        (((2, 3), (2, 3)), "fmod", {"20260114": "silent", "20260526": "((2, 3)"}),
        (((2, 3, 4, 5), (2,)), "prelu", {"20260114": "silent", "20260526": "((2, 3"}),
        (((2, 3, 4), (2,)), "prelu", {"20230223": "((2, 3", "20260526": "((2, 3"}),
        (((2, 3, 4, 1, 2), (2,)), None, {"20230517": "refused", "20260526": "refused"}),
        # Between axes that it fills; the middle of three had its own kernel.
        (((2, 3, 4, 5), (2, 1, 4, 1)), None, {"20230517": "silent", "20230816": "((2, 3"}),
        (((2, 3, 4), (1, 3)), None, {"20230517": "silent", "20230816": "((2, 3"}),
        (((2, 1, 4, 5), (2, 1, 4, 1)), None, {"20230517": "silent", "20230816": "((2, 1"}),
        (((4, 5, 1), (1, 5, 1)), None, {"20230517": "silent", "20230816": "((4, 5"}),
        (((2, 3, 4), (2, 1, 4)), None, {"20230517": "((2, 3", "20230816": "((2, 3"}),
    ],
)
def test_plans_follow_the_release(
    shapes: tuple[tuple[int, ...], ...], op: str | None, by_release: dict[str, str]
) -> None:
    for release, begins in by_release.items():
        assert outcome(release, *shapes, op=op).startswith(begins), release


def state(engine: str, *shapes: Shape, op: str | None = None, **more: Any) -> str:
    """ "right", "refused" or "silent": a plan, or its absence."""
    try:
        if "to" in more:
            zs.plan_to(*shapes, more["to"], engine=engine, op=op)
        else:
            zs.plan(*shapes, engine=engine, op=op, **more)
    except zs.BroadcastError as error:
        return "silent" if error.silent else "refused"
    return "right"


SEVEN, NINE, MANY = (2, 1) * 3 + (2,), (1, 2) * 4 + (1,), (1,) * 33


@pytest.mark.parametrize(
    ("engine", "shapes", "more", "by_release"),
    [
        ("numpy", (MANY, (2,)), {}, {"1.24": "refused", "1.26.4": "refused", "2.0": "right"}),
        ("numpy", ((2,),), {"to": (*MANY, 2)}, {"1.26": "refused", "2.0.2": "right"}),
        ("litert", ((1,) * 5, (2,)), {"op": "pow"}, {"1.4": "silent", "2.1": "right"}),
        ("litert", ((1,) * 4, (2,)), {"op": "pow"}, {"1.2": "right", "2.1": "right"}),
        ("litert", ((1,) * 6, (2,)), {"op": "divide"}, {"1.2": "right"}),
        ("litert", ((1,) * 6, (0,)), {"op": "divide"}, {"1.2": "silent", "2.1": "right"}),
        ("litert", ((1,) * 6, (2,), ()), {"op": "where"}, {"1.4": "silent", "2.1": "right"}),
        ("litert", ((1,) * 6, (1,), ()), {"op": "where"}, {"1.4": "right"}),
        ("litert", (SEVEN, (1, 2) * 3 + (1,)), {"op": "add"}, {"1.4": "silent", "2.1": "right"}),
        ("litert", ((1,) * 7, (2,)), {"op": "add"}, {"1.4": "right"}),
        ("litert", (NINE, (2,)), {"op": "subtract"}, {"2.1": "silent", "2.3": "silent"}),
        ("litert", ((2,),), {"to": (*NINE[:-1], 2)}, {"1.4": "refused", "2.1": "right"}),
        ("litert", ((1, 1),), {"to": (0, 5)}, {"1.4": "silent", "2.1": "right"}),
        ("litert", ((1, 5),), {"to": (0, 5)}, {"1.4": "right"}),
        ("paddle", ((4,),), {"to": ()}, {"3.2": "refused", "3.3": "right"}),
        ("paddle", ((2,),), {"to": (2,) * 7}, {"2.6": "refused", "3.0": "right"}),
        ("paddle", ((1,),), {"to": (4, 0)}, {"2.6": "refused", "3.0": "right"}),
        ("paddle", ((2,),), {"to": (2,) * 7, "op": "expand_v2"}, {"2.6": "refused", "3": "right"}),
        (
            "paddle",
            ((1,), (), (1, 2) * 4 + (1,)),
            {"op": "where"},
            {"2.6": "right", "3": "refused"},
        ),
        ("torch", (MANY, (2,)), {}, {"2.3": "right", "2.7": "right"}),
    ],
)
def test_rows_follow_their_release(
    engine: str, shapes: tuple[Shape, ...], more: dict[str, Any], by_release: dict[str, str]
) -> None:
    told = {release: state(f"{engine}@{release}", *shapes, **more) for release in by_release}
    assert told == by_release


def test_change_that_may_strike_is_a_divergence() -> None:
    plan = zs.plan((1, 0), (3, 1), engine="paddle@2.6")
    texts = {
        release: [
            row.text
            for row in find_engine(f"paddle@{release}").divergences
            if row.strikes is not None and row.strikes(plan, Asker())
        ]
        for release in ("2.6", "3.0", "3.2", "3.3")
    }
    assert [len(told) for told in texts.values()] == [1, 1, 0, 0]
    assert "until 3.2" in texts["3.0"][0]
    same = zs.plan((1, 0), (1, 0), engine="paddle@2.6")
    assert not any(
        row.strikes is not None and row.strikes(same, Asker())
        for row in find_engine("paddle@2.6").divergences
    )


def test_comparison_of_paddle_with_an_axis_beyond_its_rank_is_silent() -> None:
    with pytest.raises(zs.BroadcastError) as caught:
        zs.plan((4, 1, 1, 1, 1), (1, 4, 3), rule="paddle", axis=5, engine="paddle", op="greater")
    assert (caught.value.reason, caught.value.silent) == ("overrun", True)


def test_openvino_before_2026_2_refuses_a_slope_for_a_number() -> None:
    for release, silent in (("2026.0", False), ("2026.2.1", True), ("2026.4", True)):
        with pytest.raises(zs.BroadcastError) as caught:
            zs.plan((), (1,), engine=f"openvino@{release}", op="prelu")
        assert caught.value.silent is silent, release


@pytest.mark.parametrize("name", ["mnn@3.1", "onnxruntime@1.17", "openvino@2024.6"])
def test_prefix_of_a_release_names_it(name: str) -> None:
    row = find_engine(name)
    assert row.release.startswith(name.partition("@")[2])
    assert release_note(row) == []


def test_result_of_an_old_release_has_the_shape_of_one_operand() -> None:
    plan = zs.plan((1, 1, 1), (5,), engine="ncnn@20230517")
    assert (plan.shape, plan.axes_mapping) == ((5,), ((None, None, None), (0,)))
    assert zs.plan((1, 1, 1), (5,), engine="ncnn").shape == (1, 1, 5)


def test_comparison_of_releases_says_when_it_changed() -> None:
    table = zs.compare((5, 2), (2,), engine="ncnn", releases=True)
    assert [row.release.removeprefix("1.0.") for row in table.rows] == [
        *reversed(releases_of(ENGINES["ncnn"]))
    ]
    (note,) = [note for row in table.rows for note in row.notes]
    assert note.startswith("ncnn: was mended in 20230816")
    assert "Tencent/ncnn#3924" in note
    empty = zs.compare((0, 3), (3,), engine="ncnn", releases=True)
    notes = [note for row in empty.rows for note in row.notes]
    assert notes == ["ncnn: became wrong in 20260114", "ncnn: is refused since 20240820"]


def test_comparison_of_releases_needs_an_engine() -> None:
    with pytest.raises(zs.BroadcastError, match="releases are those of one engine"):
        zs.compare((2,), (2,), releases=True)


def test_open_sizes_follow_the_release() -> None:
    table = zs.compare(("N", "M"), ("M",), engine="ncnn@20230517")
    assert [row.verdict for row in table.rows] != ["same"]
    newest = zs.compare(("N", "M"), ("M",), engine="ncnn")
    assert table.rows[0].parts != newest.rows[0].parts


def test_express_and_code_take_a_release() -> None:
    wanted = zs.plan((17, 1, 128), (1, 2, 128))
    assert wanted.express("ncnn").shapes == ((17, 1, 128), (1, 2, 128))
    with pytest.raises(zs.NotExpressible):
        wanted.express("ncnn@20230517")
    fixed = zs.plan((5, 2), (2,)).express("ncnn@20230517")
    assert fixed.shapes == ((5, 2), (1, 2))


def test_report_names_the_release_once() -> None:
    file = Path(__file__).parents[2] / "examples/square_add.param"
    report = zs.audit(file, "ncnn@20230223")
    assert report.place == "ncnn 20230223"
    assert "on ncnn 20230223: 1 broadcast" in headline(report)


def test_builds_of_a_release_are_compared_without_their_names() -> None:
    assert release_before("2.12.1+cpu", "2.13.0+cpu")
    assert not release_before("2.13.0+cpu", "2.13.0")
