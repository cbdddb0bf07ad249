"""The engine table: one row an engine, each fact with the release it was measured on.

`rules` has what documents say. Rows start from those rules and name only what differs; they are
written in the modules `rows_*`. Here they are put in order: those that were run, then those that
were read.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ..errors import BroadcastError, Reason
from .model import Engine
from .rows_arrays import JAX, NUMPY, TENSORFLOW, TORCH
from .rows_litert import LITERT
from .rows_openvino import OPENVINO
from .rows_read import COREML, LITERT_GPU, STABLEHLO, TENSORRT, TOSA
from .rows_runtimes import MNN, NCNN, ONNXRUNTIME, PADDLE

_RUN = (NUMPY, TORCH, TENSORFLOW, JAX, ONNXRUNTIME, OPENVINO, PADDLE, NCNN, MNN, LITERT)
_READ = (TENSORRT, COREML, LITERT_GPU, TOSA, STABLEHLO)

ENGINES: Mapping[str, Engine] = MappingProxyType({row.name: row for row in (*_RUN, *_READ)})


def find_engine(name: Any) -> Engine:
    """The row of an engine; a BroadcastError lists the names otherwise."""
    engine = ENGINES.get(name) if isinstance(name, str) else None
    if engine is None:
        close = difflib.get_close_matches(str(name), ENGINES, 1)
        raise BroadcastError(
            f"there is no engine {name!r}",
            reason=Reason.UNKNOWN_ENGINE,
            hint=f"did you mean {close[0]}?" if close else f"one of {', '.join(ENGINES)}",
        )
    return engine
