"""MNN files (.mnn): read and judged; not written.

`reader` builds a graph. `sites` finds broadcasts. `lowering` translates ops to ONNX.
In: a file. Out: Graph, Site.
"""

from __future__ import annotations

from pathlib import Path

from ....errors import ModelError
from ...ir.rewrite import Editor
from .lowering import lower
from .reader import read
from .sites import find_site
from .sizes import SIZES


def edit(path: Path) -> Editor:
    """Raises: .mnn files are not written.

    Raises:
        ModelError: always.
    """
    raise ModelError(
        f"{path}: .mnn files are not written; port the model before it is converted "
        "(the ONNX file, say), and convert it again"
    )


__all__ = ["SIZES", "edit", "find_site", "lower", "read"]
