"""The op table of the flow: which row says what comes out of an op.

To add an op: a function in one of the modules of rows, and a row there. Ops of other domains and
ops without a row are asked of :mod:`.fallback`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from . import elementwise, indexing, movement, windows
from .facts import Call, Results

Row = Callable[[Call], Results]

#: Ops of the ai.onnx domain.
ROWS: Mapping[str, Row] = MappingProxyType(
    {**elementwise.ROWS, **movement.ROWS, **indexing.ROWS, **windows.ROWS}
)
