"""A report as plain text, as a page, as Markdown, as SARIF, and for other programs.

`plain`, `page`, `comment`, `sarif`, `github_log`, `record` and `node_data` are the
forms; `sheet` has a
finding's labelled parts; `words`, `groups`, `drawing` and `markup` are shared. They use findings
and plans only; `node_data` also reads the model. `Report.to_json` is for machines.
In: Report. Out: text, HTML, Markdown, SARIF, GitHub's log lines, Model Explorer's node data.
"""

from .comment import markdown
from .files import FORMS, form_of, json_text, rendered
from .github_log import github_log
from .node_data import node_data
from .page import html
from .plain import finding_text, overview, text, unread_text
from .record import record
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
    "node_data",
    "notes",
    "overview",
    "record",
    "rendered",
    "shapes_text",
    "shown",
    "text",
    "told",
    "unread_text",
]
