"""Gathers the sources of the site: the repository's pages and the generated pages.

`docs/X.md` becomes the page X; pages elsewhere keep their folder, `README.md` is the index of its
folder. Links between pages are rewritten to match, files that pages link to are copied beside them.
What a link names and the repository lacks is left as it is: the build then fails and names it.
"""

from __future__ import annotations

import os
import posixpath
import re
import shutil
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path, PurePosixPath

from drawings import inline
from tabular import shown

ROOT = Path(__file__).parents[2]
#: The repository's pages, in the order in which the results are listed.
SOURCES = (
    "docs/*.md",
    "docs/howto/*.md",
    "docs/reasons/*.md",
    "docs/bugs/*.md",
    "benchmarks/*.md",
    "benchmarks/results/*/*.md",
    "native/README.md",
    "examples/README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
)
#: Names of files that are parts of pages.
LEFT_OUT = frozenset({"NOTES.md", "FUSE_NOTES.md"})
#: Pages that stand for another file in links.
INSTEAD = {"README.md": "docs/index.md"}

_LINK = re.compile(r"(?P<text>\]\()(?P<to>[^)\s]+)(?P<end>\))")
_FOLDER = re.compile(r"\[(?P<text>[^\]\n]*)\]\((?P<to>[^):#\s]+)\)")
_SRC = re.compile(r'(?P<text>\b(?:src|href)=")(?P<to>[^"]+)(?P<end>")')
_FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
_DRAWING = re.compile(
    r'<img [^>]*?src="(?P<to>[^"]+/pictures/[^"]+\.svg|pictures/[^"]+\.svg)"[^>]*>'
)
_ONE = re.compile(r"^docs/(rules|engines)\.md#(.+)$")


def sources() -> Iterator[str]:
    """The repository's pages of the site, as paths in the repository."""
    for pattern in SOURCES:
        for path in sorted(ROOT.glob(pattern)):
            name = path.relative_to(ROOT).as_posix()
            if path.name not in LEFT_OUT:
                yield name


def page_of(path: str) -> str:
    """The page of a file of the repository.

    >>> page_of("docs/howto/README.md"), page_of("benchmarks/RESULTS.md"), page_of("SECURITY.md")
    ('howto/index.md', 'benchmarks/RESULTS.md', 'security.md')
    """
    place = PurePosixPath(path.removeprefix("docs/"))
    if place.name == "README.md" and len(place.parts) > 1:
        place = place.with_name("index.md")
    if len(PurePosixPath(path).parts) == 1 and place.suffix == ".md":
        place = place.with_name(place.name.lower())
    return place.as_posix()


def stage(folder: Path, made: dict[str, str]) -> list[str]:
    """Writes all sources into an empty folder. Returns the pages' names without endings.

    Args:
        folder: where they go.
        made: the generated pages by their place in the site; they replace pages of the repository.
    """
    wanted = list(sources())
    known = {page_of(name) for name in wanted} | set(made)
    for name in wanted:
        if page_of(name) not in made:
            _write(folder / page_of(name), page(name, known, folder))
    for name, text in made.items():
        _write(folder / name, text)
    return sorted(posixpath.splitext(name)[0] for name in known)


def page(name: str, known: set[str], folder: Path) -> str:
    """A page of the repository in the site's form; the files that it links to are copied."""
    lines, fence = [], ""
    written = (ROOT / name).read_text("utf-8").splitlines(keepends=True)
    for number, line in enumerate(written):
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            if fence and lines[-1] == "\n":
                lines.pop()  # it ends a doctest
            fence = "" if fence else mark[1]
        elif line.strip() == "<BLANKLINE>":
            line = "\n"  # how doctests write one
        elif not fence:
            line = _DRAWING.sub(lambda match: _drawing(match, name), line)
            if line.startswith("|") and not (lines and lines[-1].startswith(("|", "{"))):
                rows = takewhile(lambda row: row.startswith("|"), written[number:])
                lines.append(shown(list(rows)))
            line = rewritten(line, name, known, folder)
        lines.append(line)
    return "".join(lines)


def rewritten(line: str, name: str, known: set[str], folder: Path) -> str:
    """A line of a page with links to the site's pages; code in it is not changed."""
    line = _FOLDER.sub(lambda match: _without_folder(match, name), line)
    parts = re.split(r"(`[^`]*`)", line)
    for number in range(0, len(parts), 2):
        for pattern in (_LINK, _SRC):
            parts[number] = pattern.sub(
                lambda match: _rewritten(match, name, known, folder), parts[number]
            )
    return "".join(parts)


def _without_folder(match: re.Match[str], name: str) -> str:
    """A link, or only its text if it leads to a folder without a page."""
    target = ROOT / _target(name, match["to"])
    return match["text"] if target.is_dir() and not (target / "README.md").exists() else match[0]


def _target(name: str, to: str) -> str:
    """The target of a page's relative link, in the repository."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), to))


def _drawing(match: re.Match[str], name: str) -> str:
    """A drawing of a plan as part of the page, so that the page's colours apply to it."""
    path = ROOT / _target(name, match["to"])
    return inline(path.read_text("utf-8")) if path.is_file() else match[0]


def _rewritten(match: re.Match[str], name: str, known: set[str], folder: Path) -> str:
    to = match["to"]
    if re.match(r"[a-z][a-z0-9+.-]*:|#|/", to):
        return match[0]
    path, mark, place = to.partition("#")
    target = _target(name, path)
    target = INSTEAD.get(target, target)
    one = _ONE.match(f"{target}#{place}") if mark else None
    if one and f"{one[1]}/{one[2]}.md" in known:
        site, mark, place = f"{one[1]}/{one[2]}.md", "", ""
    else:
        site = page_of(target)
    if site not in known:
        source = ROOT / target
        if (source / "README.md").is_file():
            site = page_of(f"{target}/README.md")
        elif source.is_file():
            copy(source, folder / site)
        else:
            return match[0]
    here = posixpath.dirname(page_of(name)) or "."
    return f"{match['text']}{posixpath.relpath(site, here)}{mark}{place}{match['end']}"


def copy(source: Path, to: Path) -> None:
    """Copies a file; makes the target's folder."""
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, to)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def fresh(folder: Path) -> Path:
    """Makes an empty folder. Deletes an existing one only if this script made it."""
    mark = folder / ".made-by-docs-site"
    if folder.exists() and os.listdir(folder):
        if not mark.exists():
            raise SystemExit(f"{folder} is not empty, and was not made by docs/site")
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    mark.touch()
    return folder
