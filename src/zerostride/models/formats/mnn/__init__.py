"""MNN files (.mnn): read, judged, said in ONNX's words; not written."""

from __future__ import annotations

from pathlib import Path

from ....errors import ModelError
from ...ir.rewrite import Editor
from .broadcasts import find_site
from .lowering import lower
from .reader import read
from .sizes import SIZES


def edit(path: Path) -> Editor:
    """Nothing: .mnn files are not written.

    Raises:
        ModelError: always.
    """
    raise ModelError(
        f"{path}: .mnn files are not written; port the model before it is converted "
        "(the ONNX file, say), and convert it again"
    )


__all__ = ["SIZES", "edit", "find_site", "lower", "read"]
