"""HTML from untrusted text, and the page around it."""

from __future__ import annotations

import functools
import hashlib
from base64 import b64encode
from html import escape
from importlib import resources

from ..errors import cut, printable


def esc(words: object, *, lines: bool = False) -> str:
    """Text for the page or an attribute in double quotes: no markup, no control characters, no
    endless lines.

    >>> esc('<b title="x">\\x1b')
    '&lt;b title=&quot;x&quot;&gt;\\\\x1b'
    """
    text = str(words)
    if lines:
        return "\n".join(map(esc, text.split("\n")))
    return escape(printable(cut(text)), quote=False).replace('"', "&quot;")


@functools.cache
def asset(name: str) -> str:
    """A file of the package: the page's style or its script."""
    return resources.files(__package__).joinpath(name).read_text("utf-8").strip()


def page(title: str, body: str) -> str:
    """A whole document with its style and script, which loads nothing else.

    The policy allows exactly this style and this script, by their hashes. So injected markup could
    load and run nothing.
    """
    style, script = asset("page.css"), asset("page.js")
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        '<meta name="referrer" content="no-referrer">'
        f"<title>{esc(title)}</title><style>{style}</style></head>"
        f'<body>{body}<script type="text/javascript">{script}</script></body></html>\n'
    )


def _hash(code: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(code.encode()).digest()).decode()}'"
