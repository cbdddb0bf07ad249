"""Floor 6: a report put before a reader: plain text, a page for a browser, Markdown.

What a machine reads is `Report.to_json`. What is written here is made of findings and plans alone,
and asks no rule anything but what a fix has already been checked to give.
"""

from .comment import markdown
from .files import FORMS, document, form_of, json_text, rendered
from .page import html
from .plain import finding_text, overview, text, unread_text
from .words import (
    LONGEST_NAME,
    MARKS,
    MOST_NOTES,
    headline,
    notes,
    readable,
    shapes_text,
    shown,
    told,
)

__all__ = [
    "FORMS",
    "LONGEST_NAME",
    "MARKS",
    "MOST_NOTES",
    "document",
    "finding_text",
    "form_of",
    "headline",
    "html",
    "json_text",
    "markdown",
    "notes",
    "overview",
    "readable",
    "rendered",
    "shapes_text",
    "shown",
    "text",
    "told",
    "unread_text",
]
