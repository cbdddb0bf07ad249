"""OpenVINO's IR (.xml, with or without .bin), versions 10 and 11.

:mod:`.markup` reads the XML. :mod:`.reader` builds a graph. :mod:`.sites` finds broadcasts and
their rules. :mod:`.lowering` translates layers to ONNX. :mod:`.editor` changes a file.
:mod:`.fragments` reads single layers as in documents.
In: a file. Out: Graph, Site, a changed file.
"""

from collections.abc import Mapping
from typing import Any

from ...ir.graph import Node
from .editor import edit
from .lowering.elements import lower
from .reader import read
from .sites import AXIS, find_site


def explicit(node: Node) -> Mapping[str, Any] | None:
    """The attribute changes after which a layer with pdpd follows NumPy's rule; None for others."""
    if node.attributes.get("auto_broadcast") != "pdpd":
        return None
    return {"auto_broadcast": "numpy", AXIS: None}


__all__ = ["edit", "explicit", "find_site", "lower", "read"]
