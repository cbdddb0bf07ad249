"""Inference models of Paddle: read and judged; not written.

`.json` is a PIR program (:mod:`.pir`), `.pdmodel` a program of older releases (:mod:`.program`).
The weights are in the .pdiparams file beside it (:mod:`.weights`). `schema` gives both formats the
same words, `sites` finds broadcasts, `lowering` translates ops to ONNX.
In: a file. Out: Graph, Site.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ....errors import ModelError
from ...ir.graph import FileShape, Graph
from ...ir.rewrite import Editor
from ..ranks import ranked
from . import pir, program
from .lowering import lower
from .sites import find_site
from .sizes import SIZES


def read(path: Path) -> Graph:
    """The graph of a .json or .pdmodel file.

    Raises:
        ModelError: the file is not a valid model of Paddle; gives the reason.
    """
    return read_sized(path, {})


def read_sized(path: Path, shapes: Mapping[str, FileShape]) -> Graph:
    """The graph of a file whose inputs have these shapes, by name."""
    file = Path(path)
    reader = program if file.name.lower().endswith(".pdmodel") else pir
    return ranked(reader.read(file, shapes), lower)


def edit(path: Path) -> Editor:
    """Raises: models of Paddle are not written.

    Raises:
        ModelError: always; says how to port the model.
    """
    name = path.with_suffix("").name
    raise ModelError(
        f"{path}: models of Paddle are not written; convert the model and port the ONNX file: "
        f"paddle2onnx --model_dir . --model_filename {path.name} "
        f"--params_filename {name}.pdiparams --save_file {name}.onnx, "
        f"then zerostride port {name}.onnx"
    )


__all__ = ["SIZES", "edit", "find_site", "lower", "read", "read_sized"]
