"""The site's sources, without a build: links of the repository's pages, generated pages."""

from __future__ import annotations

import doctest
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import zerostride as zs
from zerostride.core.rules import RULES
from zerostride.derive.scoreboard import PATTERNS
from zerostride.engines import ENGINES

ROOT = Path(__file__).parents[2]
FENCED = re.compile(r"^(```+|~~~+).*?^\1 *$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r'\]\(([^)\s]+)\)|\b(?:src|href)="([^"]+)"')
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
PAGES = [
    path
    for pattern in ("*.md", "docs/**/*.md", "benchmarks/**/*.md", "native/*.md", "examples/**/*.md")
    for path in sorted(ROOT.glob(pattern))
]


def places(text: str) -> set[str]:
    """The anchors of a page, as GitHub names them."""
    headings = HEADING.findall(FENCED.sub("", text))
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


def broken(page: Path) -> list[str]:
    """The links of a page without a target. Only the form of links to other sites is checked."""
    dead = []
    for pair in LINK.findall(re.sub(r"`[^`\n]*`", "", FENCED.sub("", page.read_text("utf-8")))):
        link = pair[0] or pair[1]
        parts = urlsplit(link)
        if parts.scheme:
            ok = parts.scheme in ("http", "https", "mailto") and "." in (parts.netloc or link)
        else:
            target = page.parent / unquote(parts.path) if parts.path else page
            ok = target.exists() and (
                not parts.fragment or parts.fragment in places(target.read_text("utf-8"))
            )
        dead += [] if ok else [link]
    return dead


@pytest.fixture(autouse=True)
def site_modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Makes the scripts of docs/site importable; they are not a package."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "site"))
    yield
    for name in set(sys.modules) - before:
        path = getattr(sys.modules[name], "__file__", None)
        if path and Path(path).is_relative_to(ROOT / "docs"):
            del sys.modules[name]  # `links` may be another module elsewhere


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_pages_have_targets(page: Path) -> None:
    assert broken(page) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_blocks_of_pages_are_closed(page: Path) -> None:
    text = page.read_text("utf-8")
    assert "```" not in FENCED.sub("", text)
    assert not any(re.search(r"\n```\w", block[0]) for block in FENCED.finditer(text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_headings_of_pages_descend_by_one_level(page: Path) -> None:
    text = FENCED.sub("", page.read_text("utf-8"))
    levels = [len(marks) for marks in re.findall(r"^(#+) ", text, re.MULTILINE)]
    assert page.name in ("NOTES.md", "FUSE_NOTES.md") or levels[:1] == [1]
    assert levels.count(1) <= 1
    assert all(below <= above + 1 for above, below in pairwise(levels))


def test_site_pages_keep_the_repositorys_links(tmp_path: Path) -> None:
    stage = import_module("stage")
    known = {"tour.md", "rules.md", "rules/pdpd.md", "howto/index.md", "examples/index.md"}
    lines = {
        "[a](../tour.md#one) `[b](../tour.md)`": "[a](../tour.md#one) `[b](../tour.md)`",
        "[a](../rules.md#pdpd)": "[a](../rules/pdpd.md)",
        "[a](../../examples/README.md), [b](README.md)": "[a](../examples/index.md), [b](index.md)",
        "[a](../../examples/)": "[a](../examples/index.md)",
        "[a](../../native/kernels)": "a",
        "[`a`](../../LICENSE)": "[`a`](../LICENSE)",
        "begun above](../rules.md#pdpd)": "begun above](../rules/pdpd.md)",
        "[a](../../LICENSE)": "[a](../LICENSE)",
        "[a](../nowhere.md)": "[a](../nowhere.md)",
        "[a](https://example.org/x.md)": "[a](https://example.org/x.md)",
    }
    page = ROOT / "docs" / "howto" / "axis.md"
    for line, expected in lines.items():
        name = page.relative_to(ROOT).as_posix()
        assert stage.rewritten(line, name, known, tmp_path) == expected
    assert (tmp_path / "LICENSE").is_file()


def test_broken_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("# A title, *so*\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](there.md) [b](there.md#a-title-so) [c](nowhere.md) [d](there.md#else) [e](#none)\n"
        '[f](https://example.org/x) [g](https://nohost) `[h](no.md)` <img src="no.svg">\n'
        "```\n[i](no.md)\n```\n"
    )
    assert broken(page) == ["nowhere.md", "there.md#else", "#none", "https://nohost", "no.svg"]


def test_every_rule_and_engine_has_a_page_with_a_drawing_and_a_source() -> None:
    pages = import_module("tables").pages()
    for rule in RULES.values():
        page = pages[f"rules/{rule.name}.md"]
        assert "<svg" in page
        assert rule.source.split(",")[0] in page.replace("\\", "")
        assert "## Engines" in page
    for engine in ENGINES.values():
        page = pages[f"engines/{engine.name}.md"].replace("\\", "")
        assert engine.release in page
        assert ("not run" in page) == (not engine.run)
        for row in engine.divergences:
            assert re.sub(r"`[^`]*`", "", row.text)[:40] in page


def test_engine_pages_link_to_pages_of_rules() -> None:
    pages = import_module("tables").pages()
    for engine in ENGINES.values():
        links = re.findall(r"\]\(\.\./(rules/[^)#]+)\)", pages[f"engines/{engine.name}.md"])
        assert links, engine.name
        assert set(links) <= pages.keys(), engine.name


def test_silent_divergences_are_listed_with_wrong_results() -> None:
    pages = import_module("tables").pages()
    for engine, text, silent in (
        ("ncnn", "sizes that do not combine are not refused", True),
        ("mnn", "PReLU with another number of slopes", True),
        ("paddle", "an operand that sticks out beyond the last axis", True),
        ("litert", "of more than 8 axes, end the process", True),
        ("litert", "POW with an exponent", False),
        ("tensorflow", "where (SelectV2) refuses more than 8 axes", False),
    ):
        page = pages[f"engines/{engine}.md"].replace("\\", "")
        wrong, told, rest = page.partition("Refusals and limits:")
        if not told:
            wrong, rest = page, ""
        assert (text in wrong.partition("Wrong results and crashes")[2]) is silent, text
        assert (text in rest) is not silent, text


def test_engine_pages_agree_with_the_planner() -> None:
    """(5,5) and (5,) are where ncnn parts from NumPy."""
    pages = import_module("tables").pages()
    row = next(line for line in pages["engines/ncnn.md"].splitlines() if "`(5,5) + (5,)`" in line)
    assert "**different**" in row
    row = next(line for line in pages["engines/numpy.md"].splitlines() if "`(5,5) + (5,)`" in line)
    assert row.endswith("| same |")


def test_heat_map_opens_pairs_in_the_playground() -> None:
    pages = import_module("tables").pages()
    row = next(line for line in pages["engines.md"].splitlines() if 'title="ncnn' in line)
    cells = re.findall(r'class="heat (\w+)" href="playground.html#([^"]+)"', row)
    assert cells[3] == ("different", "s=5,5&amp;s=5")
    assert len(cells) == sum(one.op == "add" and not one.to_target for one in PATTERNS)
    assert 'href="../playground.html#s=5,5' in pages["engines/ncnn.md"]


def test_drawings_use_the_sites_colours() -> None:
    drawings = import_module("drawings")
    assert "<style" not in drawings.inline(zs.plan((2, 3), (3,)).svg())
    css = drawings.stylesheet()
    for word in ("card", "text", "box", "wide", "result"):
        assert f'body[data-theme="dark"] .zs-{word}{{' in css
        assert f'body:not([data-theme="light"]) .zs-{word}{{' in css
        assert re.search(rf"(^|\}}|\n)\.zs-{word}\{{", css)


def test_every_public_name_is_on_one_page_of_the_reference() -> None:
    reference = import_module("reference")
    text = "\n".join(
        page
        for name, page in reference.pages().items()
        if name not in {f"api/{subject.page}.rst" for subject in reference.MODULES}
    )
    entries = re.findall(r"^\.\. (?:autofunction|autoclass|function):: (\w+)", text, re.M)
    assert sorted(entries) == sorted(zs.__all__)


def test_every_page_of_the_repository_is_in_the_navigation() -> None:
    stage, nav = import_module("stage"), import_module("nav")
    names = {stage.page_of(name).rpartition(".")[0] for name in stage.sources()}
    placed = [page for part in nav.parts(names) for page in part.pages]
    placed += [page for parent in nav.CHILDREN for page in nav.children(parent, names)]
    assert sorted(placed) == sorted(names - {"index"})
    assert {"tour", "rules", "engines", "howto/index", "changelog"} <= set(placed)


@pytest.mark.parametrize("module", ["nav", "stage", "drawings", "tables", "tabular"])
def test_docstring_examples_pass(module: str) -> None:
    result = doctest.testmod(import_module(module))
    assert result.attempted
    assert not result.failed


@pytest.mark.parametrize(
    ("link", "right"),
    [
        ("other.html", True),
        ("other.html#place", True),
        ("#here", True),
        ("folder/", True),
        ("https://example.org/a?b#c", True),
        ("mailto:somebody@example.org", True),
        ("other.html#nowhere", False),
        ("#nowhere", False),
        ("missing.html", False),
        ("folder/missing.png", False),
        ("/other.html", False),
        ("../outside.html", False),
        ("https://example", False),
        ("http://exa mple.org", False),
        ("javascript:alert(1)", False),
        ("https://[half", False),
    ],
)
def test_links_of_a_built_site_are_checked(link: str, right: bool, tmp_path: Path) -> None:
    (tmp_path / "outside.html").write_text("outside")
    site = tmp_path / "site"
    (site / "folder").mkdir(parents=True)
    (site / "folder" / "index.html").write_text("<p>")
    (site / "other.html").write_text('<h1 id="place">other</h1>')
    (site / "index.html").write_text(f'<p id="here"><a href="{link}">link</a>')
    faults = list(import_module("links").faults(site))
    assert (faults == []) == right, faults
    assert right or faults[0].startswith("index.html:1: ")


@pytest.mark.parametrize(
    "tag",
    [
        '<script src="https://cdn.example.org/x.js"></script>',
        '<link rel="stylesheet" href="//fonts.example.org/x.css">',
        '<img src="https://example.org/x.png">',
    ],
)
def test_built_site_loads_no_other_sites(tag: str, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(tag)
    (fault,) = import_module("links").faults(tmp_path)
    assert fault.endswith("is loaded from another site")


def test_foreign_folder_is_not_emptied(tmp_path: Path) -> None:
    stage = import_module("stage")
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(SystemExit, match="was not made by docs/site"):
        stage.fresh(tmp_path)
    assert (tmp_path / "thesis.txt").exists()
    folder = stage.fresh(tmp_path / "new")
    (folder / "page.md").write_text("old")
    assert not (stage.fresh(folder) / "page.md").exists()
