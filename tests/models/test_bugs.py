"""`compare` and `audit` find every reported bug that can be written as two shapes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import small

import zerostride as zs
from zerostride.engines import ENGINES
from zerostride.engines.changes import CHANGES
from zerostride.engines.releases import past_notes
from zerostride.sizes import Asker

EXAMPLES = Path(__file__).parents[2] / "examples"
BUGS = json.loads((EXAMPLES / "bugs.json").read_text("utf-8"))["bugs"]
NCNN = [bug for bug in BUGS if bug["target"] == "ncnn"]


def names(notes: tuple[str, ...], bug: dict[str, Any]) -> bool:
    return any(reference in note for note in notes for reference in bug["references"])


def shapes_of(bug: dict[str, Any]) -> list[tuple[int, ...]]:
    return [tuple(shape) for shape in bug.get("target_shapes", bug["shapes"])]


@pytest.mark.parametrize("bug", NCNN, ids=lambda bug: bug["id"])
def test_comparison_finds_the_bug(bug: dict[str, Any]) -> None:
    comparison = zs.compare(*shapes_of(bug))
    (row,) = (row for row in comparison.rows if (row.kind, row.name) == ("engine", "ncnn"))
    wrong_today = row.silent or row.verdict == "same_here"
    assert wrong_today or names(row.notes, bug)
    assert wrong_today == (bug["today"] != "same")
    assert all(note in str(comparison) for note in row.notes)
    written = comparison.as_dict()["rows"][comparison.rows.index(row)]
    assert (written["name"], written["notes"]) == ("ncnn", list(row.notes))


@pytest.mark.parametrize("bug", NCNN, ids=lambda bug: bug["id"])
def test_audit_finds_the_bug(bug: dict[str, Any]) -> None:
    # Reports without a batch axis hold what ncnn got.
    options = {} if "target_shapes" in bug else {"batch_axis": -1}
    content = (EXAMPLES / "bugs" / f"{bug['id']}.onnx").read_bytes()
    report = small.audit(content, "ncnn", "none", **options)
    (finding,) = report.findings
    assert finding.verdict in ("different", "same_here") or names(finding.notes, bug)
    assert (finding.verdict == "same") == (bug["today"] == "same")
    assert finding.as_dict()["notes"] == finding.notes
    assert all(note in report.to_html() for note in finding.notes)


@pytest.mark.parametrize("bug", [b for b in BUGS if b["source"] == "none"], ids=lambda b: b["id"])
def test_unintended_broadcast_differs_from_rule_none(bug: Any) -> None:
    rows = zs.compare(*shapes_of(bug), reference="none").rows
    assert {row.verdict for row in rows if row.name == bug["target"]} == {"only_here"}


# What older releases of ncnn did, on every pattern of ones of ranks 1 to 4.

DATA = json.loads((Path(__file__).parents[1] / "data" / "ncnn_history.json").read_text("utf-8"))


def patterns() -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    entries = []
    for rank in (1, 2, 3, 4):
        full = (2, 3, 4, 5)[:rank]
        for code in range(3**rank):
            who = [code // 3**axis % 3 for axis in range(rank)]  # neither, the first, the second
            a = tuple(1 if w == 1 else n for w, n in zip(who, full, strict=True))
            b = tuple(1 if w == 2 else n for w, n in zip(who, full, strict=True))
            if a != b:
                entries.append((a, b))
    return entries


@pytest.mark.parametrize(
    ("release", "fixed_in"),
    [
        ("20221128", {"20230816", "20230223"}),
        ("20230223", {"20230816"}),
        ("20230517", {"20230816"}),
    ],
)
def test_history_matches_the_old_releases(release: str, fixed_in: set[str]) -> None:
    wrong = {tuple(map(tuple, pair)) for pair in DATA[release]}
    rows = [row for row in CHANGES["ncnn"] if row.until in fixed_in]
    told = {
        pair
        for pair in patterns()
        if any(row.strikes(zs.plan(*pair, engine="ncnn"), Asker()) for row in rows)
    }
    assert told == wrong
    assert DATA["20230816"] == []


def test_changes_are_complete() -> None:
    assert CHANGES.keys() <= ENGINES.keys()
    for engine, rows in CHANGES.items():
        order = [tuple(map(int, row.until.split("."))) for row in rows]
        assert order == sorted(order, reverse=True)
        for row in rows:
            assert all(re.search(r"[\w-]+/[\w-]+#\d+$", reference) for reference in row.references)
            assert row.references or row.run
            assert row.note(engine).startswith(f"{engine} before {row.until} ")


def test_shapes_without_a_history_have_no_note() -> None:
    assert past_notes(ENGINES["ncnn"], zs.plan((2, 3), (2, 3), engine="ncnn")) == ()
    assert past_notes(ENGINES["torch"], zs.plan((17, 1, 128), (1, 2, 128))) == ()


def add_of(*shapes: tuple[int, ...]) -> Any:
    nodes = [small.helper.make_node("Add", ["a", "b"], ["y"])]
    return small.model(nodes, dict(zip("ab", shapes, strict=True)))


@pytest.mark.parametrize(
    ("via", "words"), [("none", []), ("pnnx", ["judged as pnnx writes it"])], ids=["none", "pnnx"]
)
def test_audit_for_a_release_says_where_it_was_mended(via: str, words: list[str]) -> None:
    model = add_of((17, 1, 128), (1, 2, 128))
    report = small.audit(model, "ncnn@20230517", batch_axis=-1, via=via)
    (finding,) = report.findings
    assert (report.target, report.release) == ("ncnn@20230517", "20230517")
    assert finding.verdict == "different"
    (note,) = (note for note in finding.notes if note.startswith("ncnn: was mended in 20230816;"))
    assert "Tencent/ncnn#4803" in note
    assert [note.partition(" (")[0] for note in report.notes] == words
    (later,) = small.audit(model, "ncnn@20230816", batch_axis=-1, via=via).findings
    assert later.verdict == "same"
    assert note in later.notes
    (newest,) = small.audit(model, "ncnn", batch_axis=-1, via=via).findings
    assert note in newest.notes


@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("ncnn", "ncnn: became wrong in 20260114; ncnn before 20260114 refuses an empty operand"),
        ("ncnn@20250503", "ncnn: is refused since 20240820"),
        ("ncnn@20250503", "ncnn: became wrong in 20260114"),
        ("ncnn@20230517", "ncnn: is refused since 20240820; ncnn before 20240820 reads an empty"),
        ("onnxruntime", ""),
        ("openvino", ""),
    ],
)
def test_audit_says_when_an_answer_changed(target: str, told: str) -> None:
    (finding,) = small.audit(add_of((0, 3), (3,)), target, batch_axis=-1, via="none").findings
    assert [note for note in finding.notes if note.startswith(told or "when")] or not told
    assert bool(told) is any("ncnn" in note for note in finding.notes)


def test_audit_between_releases_says_which_row_it_used() -> None:
    report = small.audit(add_of((5, 5), (5,)), "ncnn@20230601", "none", batch_axis=-1)
    assert any("the row of 20230517" in note for note in report.notes)
    (finding,) = report.findings  # the newest release reads it as this one does
    assert finding.verdict == "different"
    assert not any("mended" in note for note in finding.notes)


def test_port_for_a_release_is_right_there(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(add_of((5, 2), (2,)).SerializeToString())
    options: dict[str, Any] = {"target": "ncnn@20230517", "via": "none", "batch_axis": -1}
    assert zs.port(path, output=tmp_path / "p.onnx", **options).ok
    assert zs.audit(tmp_path / "p.onnx", **options).ok
