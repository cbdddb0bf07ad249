"""ncnn's .param files, with or without their .bin.

`layers` has one row for each type of layer: sizes, weights, broadcasts, ONNX nodes. `text` reads
lines of layers. `inference` finds shapes by `shapes`, `weights` reads a .bin, `reader` builds a
graph. `lowering` translates layers to ONNX. `editor` and `program` change a file.
In: a file. Out: Graph, Site, a changed file.
"""

from __future__ import annotations

from .editor import edit
from .layers import find_site, lower
from .reader import read_ncnn as read
from .reader import read_ncnn as read_sized

__all__ = ["edit", "find_site", "lower", "read", "read_sized"]
