"""LiteRT files (.tflite), formerly TensorFlow Lite.

`reader` builds a graph. `sites` finds broadcasts. `lowering` translates ops to ONNX.
`editor` changes a file.
In: a file. Out: Graph, Site, a changed file.
"""

from __future__ import annotations

from .editor import edit
from .lowering import lower
from .reader import read, read_sized
from .sites import find_site
from .sizes import SIZES

__all__ = ["SIZES", "edit", "find_site", "lower", "read", "read_sized"]
