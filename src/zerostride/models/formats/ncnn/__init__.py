"""ncnn's .param files, with or without their .bin.

`text` reads lines of layers. `reader` builds a graph. `inference` finds shapes by the table
`layers`. `sites` finds broadcasts. `lower` translates layers to ONNX. `editor` and `program` change
a file. `weights` reads a .bin.
In: a file. Out: Graph, Site, a changed file.
"""

from __future__ import annotations

from .editor import edit
from .lower import lower
from .reader import read_ncnn as read
from .reader import read_ncnn as read_sized
from .sites import find_site

__all__ = ["edit", "find_site", "lower", "read", "read_sized"]
