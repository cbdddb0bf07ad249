"""The site's navigation: the place of each page. An unlisted page is among the guides.

Pages are named as in the built site, without ending. A page that does not exist (yet) is left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the navigation: a caption and its pages, or patterns of pages, in order."""

    caption: str
    pages: tuple[str, ...]


#: The children of a page, in order.
CHILDREN = {
    "howto/index": (
        "howto/wrong-numbers",
        "howto/find-the-node",
        "howto/rank-limit",
        "howto/outer-products",
        "howto/normalise",
        "howto/*",
    ),
    "rules": ("rules/*",),
    "engines": ("engines/*",),
    "reasons": ("reasons/*",),
    "bugs": ("bugs/*",),
    "api/index": ("api/plans", "api/elementwise", "api/reductions", "api/fuse", "api/*"),
    "benchmarks/index": (
        "benchmarks/RESULTS",
        "benchmarks/results/*",
        "benchmarks/SCALING",
        "benchmarks/*",
        "accuracy",
    ),
}

GUIDES = "Guides"
PARTS = (
    Part("Start", ("tour", "playground", "notebook", "howto/index")),
    Part(
        GUIDES,
        (
            *("compute", "fuse", "arrays", "torch", "jax", "dask"),
            *("attention", "quantisation", "symbols", "strict", "code"),
        ),
    ),
    Part("Models", ("models", "equivalent", "learn", "report", "ci", "backend", "cli")),
    Part("Reference", ("rules", "engines", "reasons", "bugs", "api/index", "glossary")),
    Part(
        "Results",
        (
            *(
                "benchmarks/index",
                "real_models",
                "optimisers",
                "optimiser_bugs",
                "conversions",
                "strict_alarms",
                "evidence",
            ),
            "conformance",
        ),
    ),
    Part(
        "Project",
        (
            "design",
            "calls",
            "native/index",
            "extend",
            "contributing",
            "changelog",
            "security",
            "examples/*",
        ),
    ),
)
#: Pages that are reached by links, not by the navigation.
UNLISTED = ("index",)


def parts(pages: Collection[str]) -> list[Part]:
    """The navigation of a site with these pages; every page is listed once.

    >>> [part for part in parts({"index", "tour", "new", "howto/index", "howto/b", "howto/a"})]
    [Part(caption='Start', pages=('tour', 'howto/index')), Part(caption='Guides', pages=('new',))]
    """
    below = {page for parent in CHILDREN for page in children(parent, pages)}
    listed = {part.caption: list(_matching(part.pages, pages)) for part in PARTS}
    placed = {*UNLISTED, *below, *(page for part in listed.values() for page in part)}
    listed[GUIDES] += sorted(set(pages) - placed)
    return [Part(caption, tuple(names)) for caption, names in listed.items() if names]


def children(parent: str, pages: Collection[str]) -> list[str]:
    """The children of a page; none if the page does not exist."""
    if parent not in pages:
        return []
    return [page for page in _matching(CHILDREN.get(parent, ()), pages) if page != parent]


def _matching(patterns: tuple[str, ...], pages: Collection[str]) -> Iterator[str]:
    """The pages of the patterns, each once; the pages of one pattern in alphabetical order."""
    seen: set[str] = set()
    for pattern in patterns:
        for page in sorted(pages):
            if page not in seen and fnmatchcase(page, pattern):
                seen.add(page)
                yield page
