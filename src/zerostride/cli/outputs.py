"""The word after -o, which is a model's file for some commands and a folder for others."""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import Any

import click

from ..errors import ModelError, ZerostrideError
from ..report import FORMS
from .options import Parsed


class _Folder(click.Path):
    """The path of a folder, which may be new."""

    def __init__(self) -> None:
        super().__init__(file_okay=False)

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The path, if it may be a folder's."""
        path = os.fspath(value)
        if _is_report(path):
            words = "which gets a report.html; another report: --report FILE"
            self.fail(f"{path}: -o names the folder, {words}", param, ctx)
        if os.path.isfile(path) or _is_model(path):
            words = "not a file; the files in it are named after MODEL"
            self.fail(f"{path}: -o names the folder, {words}", param, ctx)
        return super().convert(value, param, ctx)


def _model_file(path: str) -> str:
    """The path, if it may be a model's file."""
    if _is_report(path):
        raise ZerostrideError(f"{path}: -o names the ported model; a report: --report FILE")
    if os.path.isdir(path):
        raise ZerostrideError(f"{path} is a folder; -o names the file of the ported model")
    return path


def _is_report(path: str) -> bool:
    suffix = PurePath(path).suffix.lower()
    return suffix in FORMS and not _is_model(path) and not os.path.isdir(path)


def _is_model(path: str) -> bool:
    from ..models.formats import format_of

    if os.path.isdir(path):
        return False
    try:
        format_of(path)
    except ModelError:
        return False
    return True


folder = _Folder()
model_file = Parsed("file", _model_file)
