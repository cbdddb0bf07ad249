"""OpenVINO's IR (.xml, with or without .bin), versions 10 and 11.

:mod:`.markup` reads the XML, :mod:`.reader` makes a graph of it, :mod:`.sites` says what broadcasts
and by which rule, :mod:`.lower` says layers in ONNX's words, :mod:`.editor` changes a file.
:mod:`.fragments` is about single layers as documents show them.
"""

from .editor import edit
from .lower import lower
from .reader import read
from .sites import find_site

__all__ = ["edit", "find_site", "lower", "read"]
