"""Reports as file contents; the end of the file's name chooses the form."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import PurePath

from ..errors import ZerostrideError
from ..models.findings import Report
from ..models.report_json import plain
from .comment import markdown
from .page import html
from .plain import text
from .sarif import sarif
from .words import Reports


def json_text(reports: Reports) -> str:
    """The reports as JSON, an object or a list; `docs/schema/report.schema.json` describes it."""
    if isinstance(reports, Report):
        return reports.to_json() + "\n"
    data = [plain(report.as_dict()) for report in reports]
    return json.dumps(data, indent=2, default=str, allow_nan=False) + "\n"


def _text(reports: Reports) -> str:
    return text(reports) + "\n"


#: The forms, by the end of the file's name.
FORMS: Mapping[str, Callable[[Reports], str]] = {
    ".html": html,
    ".json": json_text,
    ".md": markdown,
    ".sarif": sarif,
    ".txt": _text,
}


def form_of(path: str) -> Callable[[Reports], str]:
    """The form of a file of this name.

    Raises:
        ZerostrideError: the end of the name is unknown; lists the known ends.
    """
    form = FORMS.get(PurePath(path).suffix.lower())
    if form is None:
        raise ZerostrideError(f"{path}: a report's name ends in one of {' '.join(FORMS)}")
    return form


def rendered(path: str, reports: Reports) -> bytes:
    """The content of a report's file; lone surrogates in hostile names become escapes."""
    return form_of(path)(reports).encode("utf-8", "backslashreplace")
