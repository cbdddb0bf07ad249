"""The formats of model files, and the lookup of a file's reader.

A format is a folder of this package with the four functions of `FormatModule`, and a row of
`FORMATS` (both in `..format_table`). To add one, copy `mnn/`. Other rooms call these functions and
read the row; a few ask whether a graph is ONNX's (to write shapes back) or its engine's own. Parts
that formats share:

- to read: `..ir.files` (untrusted bytes, sections of weights), `flatbuffer` and `schema_fields`
  (files with a flatbuffers schema), `Value.with_numbers` (numbers of small constants), `child`
  (asks a package in a child process), `ranks` (adds ranks and numbers that a file lacks).
- to find broadcasts: `..ir.site`, and `site_rows` for ops that broadcast like ONNX's.
- to translate: `lowering`, a table with a row per op type.
- to edit: `..ir.moves`, the shapes of a rewrite's steps.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from ...errors import ModelError
from ..format_table import FORMATS, OWN, Format, FormatModule, lowered, module_of
from ..ir.graph import Graph, bounded
from .other_files import advice_for

#: A Path would take one slash of it.
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
#: Every model that is taken, in words.
_TAKEN = (
    "a model is the path of a file, the bytes of an ONNX or .tflite file, an onnx.ModelProto, an "
    "onnx_ir.Model, a torch.onnx.ONNXProgram, an openvino.Model, or a module or program of PyTorch"
)
#: How other objects become a model, by the names of their classes.
_WAYS = {
    "GraphProto": ": onnx.helper.make_model(graph) is one",
    "Graph": ": onnx_ir.Model(graph, ir_version=10) is one",
    "CompiledModel": ": give the model that was compiled",
    "InferenceSession": ": give the file or the bytes that it was made from",
}


def path_of(model: object) -> Path:
    """The path that names a model.

    Raises:
        TypeError: the argument is not a path; the message says which models are taken.
        ModelError: it is a URL.
    """
    if isinstance(model, str | os.PathLike) and not isinstance(fspath := os.fspath(model), bytes):
        if _URL.match(fspath):
            raise ModelError(f"{fspath}: a URL, which is not read; download it, and name the file")
        return Path(fspath)
    kind = type(model).__name__
    raise TypeError(f"{_TAKEN}; not {kind}{_WAYS.get(kind, '')}")


def format_of(path: str | Path) -> Format:
    """The format of a file, by its suffix.

    Raises:
        ModelError: no format has that suffix; names the known ones.
        TypeError: the argument is not a path.
    """
    name = path_of(path).name.lower()
    own = (row for row in OWN if name.endswith(row.suffixes))
    own_row = next(own, None)
    if own_row is not None:
        return own_row
    for row in FORMATS.values():
        if name.endswith(row.suffixes):
            return row
    if name.endswith((".param.bin", ".ncnn.bin")):
        raise ModelError(f"{path}: a binary .param has no names; name the .param text itself")
    advice = advice_for(Path(path))
    if advice is not None:
        raise ModelError(f"{path}: {advice}")
    if str(path) in ("", "."):
        raise ModelError("no model is named: its path is empty, or the current folder")
    if Path(path).is_dir():
        raise ModelError(
            f"{path}: a folder; name a model in it, or audit them all by the command line"
        )
    formats = ", ".join(f"{' '.join(row.suffixes)} ({row.name})" for row in FORMATS.values())
    raise ModelError(f"{path}: its name does not end like a model's; known: {formats}")


def read_model(path: str | Path) -> Graph:
    """The graph of a model file of any format.

    Raises:
        ModelError: the file cannot be read; gives the reason.
    """
    return bounded(format_of(path).load().read(Path(path)))


__all__ = [
    "FORMATS",
    "Format",
    "FormatModule",
    "format_of",
    "lowered",
    "module_of",
    "path_of",
    "read_model",
]
