"""Rows of older releases: names, what they plan, and when an answer changed."""

from __future__ import annotations

from pathlib import Path

import pytest

import zerostride as zs
from zerostride.engines import ENGINES, find_engine
from zerostride.engines.changes import MEASURED
from zerostride.engines.releases import release_before, release_note, releases_of, title_of
from zerostride.report import headline


def test_name_without_a_release_is_the_newest_row() -> None:
    assert find_engine("ncnn") is ENGINES["ncnn"]
    assert find_engine("ncnn@20261020") is ENGINES["ncnn"]
    assert find_engine("ncnn@1.0.20261020") is ENGINES["ncnn"]


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
    assert title_of(ncnn, "1.0.20261020") == "ncnn"
    assert title_of(ncnn, "1.0.20250428") == "ncnn@20250503"  # the next measured one
    assert title_of(ncnn, "1.0.20990101") == "ncnn"
    assert title_of(ncnn, "1.0.20990101rc1") == "ncnn"


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
