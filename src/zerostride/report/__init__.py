"""A report as plain text, as a page for a browser, as Markdown, and as SARIF.

`plain`, `page`, `comment` and `sarif` are the forms; `sheet` has a finding's labelled parts;
`words`, `groups`, `drawing` and `markup` are shared. They use findings and plans only.
`Report.to_json` is for machines.
In: Report. Out: text, HTML, Markdown, SARIF.
"""

from .comment import markdown
from .files import FORMS, form_of, json_text, rendered
from .page import html
from .plain import finding_text, overview, text, unread_text
from .words import (
    LONGEST_NAME,
    MARKS,
    headline,
    notes,
    shapes_text,
    shown,
    told,
)

__all__ = [
    "FORMS",
    "LONGEST_NAME",
    "MARKS",
    "finding_text",
    "form_of",
    "headline",
    "html",
    "json_text",
    "markdown",
    "notes",
    "overview",
    "rendered",
    "shapes_text",
    "shown",
    "text",
    "told",
    "unread_text",
]
