"""Drawings of plans inside pages, in the colours of the reader's theme."""

from __future__ import annotations

import re

import zerostride as zs

_STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)
_DARK = re.compile(r"@media \(prefers-color-scheme:dark\)\{(.*)\}\s*$", re.DOTALL)


def inline(svg: str) -> str:
    """A drawing as HTML without its own style; the site's stylesheet has the style.

    >>> "<style>" in inline(zs.plan((2, 3), (3,)).svg())
    False
    """
    drawing = _STYLE.sub("", svg)
    return f'<div class="zs-drawing">{drawing}</div>'.replace("\n\n", "\n")


def stylesheet() -> str:
    """The drawings' style for the light and the dark theme."""
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
