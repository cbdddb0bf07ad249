"""Floor 6: a report put before a reader: plain text, a page for a browser, Markdown.

What a machine reads is `Report.to_json`. What is written here is made of findings and plans alone,
and asks no rule anything but what a fix has already been checked to give.
"""

from .comment import markdown
from .page import html
from .plain import finding_text, overview, text
from .words import LONGEST_NAME, MARKS, MOST_NOTES, headline, notes, readable, shown

__all__ = [
    "LONGEST_NAME",
    "MARKS",
    "MOST_NOTES",
    "finding_text",
    "headline",
    "html",
    "markdown",
    "notes",
    "overview",
    "readable",
    "shown",
    "text",
]
