"""A report as plain text, as a page, as Markdown, as SARIF, and as lines of GitHub's logs.

`plain`, `page`, `comment`, `sarif` and `github_log` are the forms; `sheet` has a finding's labelled
parts; `words`, `groups`, `drawing` and `markup` are shared. They use findings and plans only.
`Report.to_json` is for machines.
In: Report. Out: text, HTML, Markdown, SARIF, GitHub's workflow commands.
"""

from .comment import markdown
from .files import FORMS, form_of, json_text, rendered
from .github_log import github_log
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
    "github_log",
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
