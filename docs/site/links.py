"""Checks a built site: every internal link has a target, and no page loads other sites.

Links to other sites are looked at, not followed: the build needs no network.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Attributes that make a browser load something by itself, and the tags that have them.
LOADED = {
    ("script", "src"),
    ("img", "src"),
    ("source", "src"),
    ("iframe", "src"),
    ("link", "href"),
    ("object", "data"),
    ("use", "href"),
}
LINKED = LOADED | {("a", "href"), ("area", "href"), ("form", "action")}
#: Kinds of <link> that load nothing.
SAID = {"canonical", "author", "license", "next", "prev", "index", "search", "alternate"}


@dataclass
class Page(HTMLParser):
    """A page's links, the files that it loads, and its anchors."""

    links: list[tuple[str, bool, int]] = field(default_factory=list)
    places: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collects a tag's links and anchors."""
        values = {name: value or "" for name, value in attrs}
        self.places |= {values[name] for name in ("id", "name") if name in values}
        for name, value in values.items():
            if (tag, name) in LINKED:
                loads = (tag, name) in LOADED and values.get("rel") not in SAID
                self.links.append((value, loads, self.getpos()[0]))


def read(path: Path) -> Page:
    """A page's links and anchors."""
    page = Page()
    page.feed(path.read_text("utf-8"))
    return page


def faults(folder: Path) -> Iterator[str]:
    """The faults of the links in a folder's HTML pages, one line each."""
    root = folder.resolve()
    pages = {path.resolve(): read(path) for path in sorted(folder.rglob("*.html"))}
    if not pages:
        yield f"{folder}: there are no pages"
    for path, page in pages.items():
        for link, loads, line in page.links:
            problem = _problem(link, loads, path, root, pages)
            if problem:
                yield f"{path.relative_to(root)}:{line}: {link!r} {problem}"


def _problem(link: str, loads: bool, path: Path, root: Path, pages: dict[Path, Page]) -> str:
    try:
        parts = urlsplit(link)
    except ValueError as error:
        return f"is no address: {error}"
    if parts.scheme in ("data", "mailto"):
        return "" if parts.path else "leads nowhere"
    if parts.scheme or parts.netloc:
        return _elsewhere(link, loads)
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if parts.path.startswith("/"):
        return "is absolute: the site may stand in any folder"
    if not target.is_relative_to(root):
        return "leads out of the site"
    if target.is_dir():
        target /= "index.html"
    if not target.is_file():
        return "does not exist"
    place = unquote(parts.fragment)
    if "=" in place:
        return ""  # a question to the playground, not a place of the page
    if place and target in pages and place not in pages[target].places:
        return "names no place of that page"
    return ""


def _elsewhere(link: str, loads: bool) -> str:
    """The fault in the form of another site's address, or ""; the site is not contacted."""
    parts = urlsplit(link)
    if loads:
        return "is loaded from another site"
    if parts.scheme not in ("http", "https"):
        return f"has the scheme {parts.scheme!r}"
    host = parts.hostname or ""
    if "." not in host.strip(".") or any(c.isspace() or c in '<>"' for c in link):
        return "is no address"
    return ""


def main(folder: Path) -> int:
    """Prints the faults; the exit status."""
    problems = list(faults(folder))
    print("\n".join(problems) or f"{folder}: all links lead somewhere")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
