"""Reports of every command, with hostile names: the page, Markdown, text."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from reports import (
    HOSTILE,
    KINDS,
    ROWS,
    audit_report,
    audited,
    equivalent_reports,
    port_report,
    verify_report,
)

from sampled import few
from zerostride.errors import ZerostrideError
from zerostride.models.bisection import Bisection
from zerostride.models.findings import Known, Report, Unread, Verdict
from zerostride.report import (
    FORMS,
    finding_text,
    form_of,
    html,
    json_text,
    markdown,
    rendered,
    text,
)
from zerostride.report.comment import LIMIT
from zerostride.report.markup import asset, page
from zerostride.report.words import after_fix


class Reader(HTMLParser):
    """A page as a browser takes it: tags with attributes, and the text of each element."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.code = ""
        self._inside = ""
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside in ("script", "style"):
            self.code += data
        else:
            self.words.append(data)

    @property
    def text(self) -> str:
        return "".join(self.words)

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)


# The page.


@pytest.mark.parametrize("kind", KINDS)
def test_page_loads_nothing_and_runs_only_its_own_script(kind: str) -> None:
    source = html(KINDS[kind]())
    read = Reader(source)
    policy = next(
        attrs["content"]
        for tag, attrs in read.tags
        if attrs.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    for name in ("page.css", "page.js"):
        digest = b64encode(hashlib.sha256(asset(name).encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
        assert asset(name) in source
    assert read.count("script") == read.count("style") == 1
    for tag, attrs in read.tags:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "image")
        assert not any(name.startswith("on") or name == "style" for name in attrs), (tag, attrs)
        assert (attrs.get("href") or "#").startswith("#")
    assert "http:" not in asset("page.css") + asset("page.js")
    assert "url(" not in asset("page.css")


def test_page_has_every_finding_with_drawings_numbers_fix_and_source() -> None:
    report = audit_report()
    read = Reader(html(report))
    for finding in report.findings:
        assert finding.node in read.text
        if finding.verdict is Verdict.SAME:
            continue
        assert finding.reason in read.text
        if finding.fix is not None:
            assert "After the fix" in read.text
        if finding.when is not None:
            assert str(finding.when) in read.text
    assert "reshape y1 to (1, 5)" in read.text
    assert "result[0, 1] is 6.0 in the model, 5.0 on the target" in read.text
    assert "1→5" in read.text
    assert "20,000 generated cases by value" in read.text
    targets = {attrs.get("id") for _, attrs in read.tags}
    links = [attrs["href"] for tag, attrs in read.tags if tag == "a"]
    assert links
    assert all(link is not None and link[1:] in targets for link in links), "a link leads nowhere"


def test_drawing_after_the_fix_equals_the_models_plan() -> None:
    fixed = [finding for finding in audit_report().findings if finding.fix is not None]
    assert len(fixed) > 3
    for finding in fixed:
        assert after_fix(finding) == finding.source
    merged = audited(("merged", "Add", ((1, 2, 3, 4, 5, 6), (5, 6)))).findings[0]
    plan = after_fix(merged)
    assert merged.fix is not None
    assert plan is not None
    assert plan.shape == merged.fix.result_shape


def test_findings_that_differ_only_in_names_share_a_drawing() -> None:
    rows = [(f"node_{k}", "Add", ((5, 5), (5,))) for k in range(50)]
    read = Reader(html(audited(*rows)))
    assert read.count("table") == 3  # the model's plan, the target's, and after the fix
    assert all(f"node_{k}" in read.text for k in range(50))
    other = Reader(html(audited(*rows, ("other", "Add", ((6, 6), (6,))))))
    assert other.count("table") == 6


def test_many_different_findings_stay_small(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(f"node_{k}", "Add", ((k, k), (k,))) for k in range(2, 202)]
    report = audited(*rows)
    drawn = html(report)
    monkeypatch.setattr("zerostride.report.page._DRAWN", 10)
    plain = html(report)
    assert len(plain) < len(drawn)
    read = Reader(plain)
    assert read.count("table") == 30
    for k in range(2, 202):
        assert f"reshape y{k - 2} to (1, {k})" in read.text
    assert f"{201:>3} {201}\n" in read.text, "text has the drawing as well"


def test_filters_offer_present_values_and_need_the_script() -> None:
    read = Reader(html(audit_report()))
    forms = [attrs for tag, attrs in read.tags if tag == "form"]
    assert len(forms) == 1
    assert "hidden" in forms[0]
    chips = [attrs["data-v"] for tag, attrs in read.tags if tag == "button" and "data-v" in attrs]
    assert chips == ["different", "refused", "same_here", "same"]
    options = [attrs.get("value") for tag, attrs in read.tags if tag == "option"]
    assert options[: options.index("", 1)] == ["", "Add", "Greater", "Mul"]
    rows = [attrs for _, attrs in read.tags if "f" in (attrs.get("class") or "").split()]
    assert sum(int(attrs.get("data-n") or 1) for attrs in rows) == len(audit_report().findings)


def test_a_page_without_findings_has_no_tiles_of_them() -> None:
    report = audit_report()
    bisected = replace(report, command="bisect", findings=(), bisection=Bisection((), ()))
    assert ["tiles" in html(one).partition("<main>")[2] for one in (report, bisected)] == [
        True,
        False,
    ]


def test_three_findings_are_open_at_first() -> None:
    read = Reader(html(audit_report()))
    rows = [attrs for tag, attrs in read.tags if tag == "details" and attrs.get("class") == "f"]
    assert len(rows) > 3
    assert ["open" in attrs for attrs in rows] == [place < 3 for place in range(len(rows))]


def test_strip_shows_the_verdicts_in_the_models_order() -> None:
    report = audit_report()
    strip = html(report).partition('<figure class="along">')[2].partition("</figure>")[0]
    bars = re.findall(r'<rect class="(\w+)" x="(\d+)" width="(\d+)"', strip)
    verdicts = [kind for kind, _, width in bars for _ in range(int(width))]
    assert verdicts == [finding.verdict for finding in report.findings]
    assert f"{len(report.findings)} broadcasts" in strip
    # A column of a long model shows its worst finding.
    worse = replace(report, findings=(report.findings[0],) * 4000 + report.findings)
    strip = html(worse).partition('<figure class="along">')[2].partition("</figure>")[0]
    assert 'viewBox="0 0 1000 1"' in strip
    assert 'class="different"' in strip


def test_port_shows_lines_before_and_after_and_the_computed_numbers() -> None:
    report = port_report()
    read = Reader(html(report))
    for change in report.changes:
        for line in (*change.before, *change.after, change.words, change.by):
            assert line in read.text
    assert "25 numbers, equal" in read.text
    assert "fixed.onnx" in read.text
    assert "The findings before the port" in read.text
    none = replace(report, changes=(), output=None)
    assert "Nothing was rewritten" in Reader(html(none)).text


def test_verification_is_a_table_with_disagreements_first() -> None:
    report = verify_report()
    read = Reader(html(report))
    table = read.text[read.text.index("What the engine answered") :]
    places = [table.index(check.node) for check in report.checks]
    assert places[0] == max(places), "agreement comes last"
    assert "SIGSEGV" in read.text
    assert "5.0e-01" in read.text
    assert "the engine says: <no>" in read.text


def test_many_models_have_a_table_and_a_section_each() -> None:
    reports = [audit_report("a.onnx"), Unread("b.onnx", "b.onnx: truncated"), verify_report()]
    read = Reader(html(reports))
    assert "By model" in read.text
    assert "Not read: b.onnx: truncated" in read.text
    assert {"m1", "m2", "m3"} <= {attrs.get("id") for _, attrs in read.tags}
    assert html([]).startswith("<!doctype html>")
    assert "2 models" in Reader(html([audit_report(), audit_report()])).text


def test_baseline_marks_accepted_findings() -> None:
    report = replace(audit_report(), baseline=Known(frozenset({1}), ("old.onnx: gone",)))
    read = Reader(html(report))
    assert read.text.count(" known") >= 1
    assert "old.onnx: gone" in read.text
    assert "1 known, 4 new" in text(report)
    assert "wrong  [" not in text(report)
    assert "wrong_again  [" in text(report)


# Names that are attacks.


def hostile(kind: str, name: str) -> Report:
    if kind == "audit":
        report = audited((name, "Add", ((5, 5), (5,))), path=f"{name}.onnx")
        (finding,) = report.findings
        names = tuple((f"{name}{k}", shape) for k, (_, shape) in enumerate(finding.operands))
        finding = replace(finding, op=name, operands=names, message=name, notes=(name,))
        return replace(report, findings=(finding,), notes=(name,))
    return {"port": port_report, "verify": verify_report}[kind](name)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_names_are_only_text_on_the_page(kind: str, name: str) -> None:
    source = html(hostile(kind, name))
    tame = Reader(html(hostile(kind, "tame")))
    read = Reader(source)
    assert [tag for tag, _ in read.tags] == [tag for tag, _ in tame.tags]
    assert [sorted(a) for _, a in read.tags] == [sorted(a) for _, a in tame.tags]
    assert read.code == tame.code, "nothing from a file is in the script"
    assert all(line.isprintable() for line in read.text.split("\n"))
    rendered("x.html", hostile(kind, name)).decode("utf-8")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_names_are_only_code_in_markdown(kind: str, name: str) -> None:
    source = markdown(hostile(kind, name))
    tame = markdown(hostile(kind, "tame"))
    outside = without_code(source)
    for sign in ("<script", "<img", "@someone", "](", "http:", "https:", "www.", "onerror="):
        assert sign not in outside
    # Every row has the cells of its header: no name has ended one.
    rows = [line for line in outside.splitlines() if line.startswith("| ")]
    assert len({line.replace("\\|", "").count("|") for line in rows}) == 1
    assert outside.count("<details>") == outside.count("</details>") == tame.count("<details>")
    assert len(source.encode("utf-8", "backslashreplace")) <= LIMIT


def without_code(source: str) -> str:
    """Markdown without fenced blocks, code between backticks, and code of entities."""
    source = re.sub(r"(?ms)^(`{3,})text\n.*?^\1$", "", source)
    source = re.sub(r"<code>[A-Za-z0-9 &#;]*</code>", "", source)
    return re.sub(r"`[^`|\\]*`", "", source)


def test_check_of_markdown_can_fail() -> None:
    assert "<img" in without_code("| `a` | <img src=x> |")
    assert "<img" not in without_code("| `<img src=x>` |\n```text\n<img>\n```\n")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_names_in_text_move_no_cursor(kind: str, name: str) -> None:
    for line in text(hostile(kind, name)).split("\n"):
        assert line.isprintable()
        assert len(line) < 6000


# Markdown.


def test_markdown_has_a_headline_a_table_and_details() -> None:
    said = markdown(audit_report())
    lines = said.splitlines()
    assert lines[0].startswith("### ❌")
    assert "| different | `wrong` | `Add` | `(5,5) (5)` |" in said
    assert "`fine`" not in said
    assert said.count("<details>") == len(audit_report().worst())
    assert finding_text(audit_report().worst()[0]) in said
    fine = audited(("fine", "Add", ((2, 5), (2, 5))))
    assert markdown(fine).startswith("### ✅")
    assert "|" not in markdown(fine)
    assert markdown(verify_report()).count("| differs |") == 1
    assert "other_alignment" not in markdown(verify_report())
    agrees = replace(verify_report(), checks=verify_report().checks[:1])
    assert markdown(agrees).startswith("### ✅")
    assert "reshape_constant" in markdown(port_report())
    many = markdown([audit_report("a.onnx"), Unread("b.onnx", "b.onnx: truncated")])
    assert "| not read | `b.onnx` |" in many
    assert "| different | `a.onnx` |" in many


def test_markdown_counts_the_findings_left_out() -> None:
    rows = [(f"node_{k}", "Add", ((k, k), (k,))) for k in range(2, 1200)]
    report = audited(*rows)
    said = markdown(report)
    assert len(said.encode()) <= LIMIT
    found = re.search(r"Left out for want of room: ([0-9,]+) more rows and ([0-9,]+) more", said)
    assert found is not None
    shown = sum(line.startswith("| different") for line in said.splitlines())
    assert shown > 100
    assert int(found[1].replace(",", "")) == len(report.findings) - shown
    folded = said.count("<details>")
    assert folded > 10
    assert int(found[2].replace(",", "")) == len(report.findings) - folded
    assert len(markdown(report, limit=3000).encode()) <= 3000
    assert "Left out" not in markdown(audit_report())


def test_page_and_comment_show_the_run_of_a_difference_and_where_it_begins() -> None:
    reports = equivalent_reports("different", "undecided", "equal")
    report = reports["different"]
    (output,) = report.equivalence.outputs
    read = Reader(report.to_html())
    badges = [attrs for _, attrs in read.tags if "badge" in (attrs.get("class") or "")]
    assert [badge["class"] for badge in badges] == ["badge different"]
    for form in (read.text, report.to_markdown(), str(report)):
        assert output.difference.detail in form
        assert "equal in both: x" in form
    assert report.to_markdown().startswith("### ❌ Equivalence")
    assert "| different |" in report.to_markdown()
    assert "| undecided |" in reports["undecided"].to_markdown()
    assert "|" not in reports["equal"].to_markdown()


@pytest.mark.parametrize("name", few(3, HOSTILE[:11]))  # names that ONNX stores
def test_names_of_outputs_are_only_text(name: str) -> None:
    report, tame = (
        equivalent_reports("different", name=word)["different"] for word in (name, "tame")
    )
    read = Reader(report.to_html())
    assert [tag for tag, _ in read.tags] == [tag for tag, _ in Reader(tame.to_html()).tags]
    assert read.code == Reader(tame.to_html()).code
    assert all(line.isprintable() for line in str(report).split("\n"))
    outside = without_code(report.to_markdown())
    for sign in ("<script", "<img", "@someone", "](", "http:", "https:", "onerror="):
        assert sign not in outside
    rows = [line for line in outside.splitlines() if line.startswith("| ")]
    assert len({line.replace("\\|", "").count("|") for line in rows}) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_report_gives_its_forms(kind: str) -> None:
    report = KINDS[kind]()
    assert report.to_html() == html(report)
    assert report.to_markdown() == markdown(report)
    assert str(report) == text(report)
    assert rendered("x.JSON", report).decode() == json_text(report)
    assert set(FORMS) == {".html", ".json", ".md", ".sarif", ".txt"}
    with pytest.raises(ZerostrideError, match=r"report.pdf: .*\.html \.json \.md \.sarif \.txt"):
        form_of("report.pdf")


# Text.


def test_text_is_printed_for_every_command() -> None:
    port = text(port_report())
    assert "1 change, written to fixed.onnx" in port
    assert "\n  - out0 = Add(x0 (5,5), y0 (5)) <wrong>\n" in port
    assert "computed before and after: 25 numbers, equal" in port
    nothing = replace(port_report(), changes=(), output=None, before=())
    assert "nothing to change; 1 broadcast: 1 same" in text(nothing)
    verify = text(verify_report())
    assert "5 checks: 1 differs, 1 crashed, 1 refused, 1 agrees, 1 not run" in verify
    row = r"^DIFFERS  different  wrong_differs  Add  \(5,5\) \(5\)  25 "
    assert re.search(row, verify, re.MULTILINE)
    assert "in the model:" not in verify
    assert "in the model:" in text(verify_report(), full=True)
    whole = replace(verify_report(), findings=())
    assert "different" not in text(whole)
    many = text([audit_report("a.onnx"), Unread("b.onnx", "b.onnx: no")])
    assert many.splitlines()[-1].endswith("NOT READ")
    assert "2 models, 1 not read: 1 same, 2 same here, 2 different, 1 refused" in many


def test_names_in_sentences_are_the_nodes_names() -> None:
    """Findings are judged once for all nodes alike, under stand-ins for names."""
    for finding in audited(*ROWS, *ROWS).findings:
        assert "\\x00" not in finding_text(finding)


def test_page_escapes_its_title() -> None:
    assert Reader(page("<b>", "<p>x")).text == "<b>x\n"
