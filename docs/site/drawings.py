"""Drawings of plans in pages: part of the page, in the colours of the theme that a reader chose."""

from __future__ import annotations

import re

import zerostride as zs

_STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)
_DARK = re.compile(r"@media \(prefers-color-scheme:dark\)\{(.*)\}\s*$", re.DOTALL)


def inline(svg: str) -> str:
    """A drawing as part of a page: the site's stylesheet has its style, for light and dark.

    >>> "<style>" in inline(zs.plan((2, 3), (3,)).svg())
    False
    """
    drawing = _STYLE.sub("", svg)
    return f'<div class="zs-drawing">{drawing}</div>'.replace("\n\n", "\n")


def stylesheet() -> str:
    """The drawings' own style, told by the theme that a reader has chosen."""
    style = _STYLE.search(zs.plan((1,), (1,)).svg())
    dark = _DARK.search(style[1]) if style else None
    if style is None or dark is None:
        raise SystemExit(
            "drawings have another style than this page knows: see derive/explain/picture.py"
        )
    light = style[1][: dark.start()]
    return "\n".join(
        (
            light.strip(),
            _prefixed(dark[1], 'body[data-theme="dark"] '),
            "@media (prefers-color-scheme:dark){",
            _prefixed(dark[1], 'body:not([data-theme="light"]) '),
            "}\n",
        )
    )


def _prefixed(rules: str, prefix: str) -> str:
    return "\n".join(
        f"{prefix}{selector.strip()}{{{body}}}"
        for selector, body in re.findall(r"([^{}]+)\{([^{}]*)\}", rules)
    )
