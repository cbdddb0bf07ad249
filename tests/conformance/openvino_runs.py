"""OpenVINO's results for an IR, and IRs that its converter makes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np


def cpu() -> Any:
    """OpenVINO, computing in float32: on CPUs with bfloat16 it computes in that by default."""
    import openvino as ov

    core = ov.Core()
    core.set_property("CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return core


def infer(core: Any, path: Path, arrays: Sequence[Any]) -> list[Any]:
    """The outputs that OpenVINO computes."""
    compiled = core.compile_model(core.read_model(path), "CPU")
    given = compiled(list(arrays))
    return [np.array(given[port]) for port in compiled.outputs]


def converted(core: Any, path: Path, folder: Path) -> Path:
    """An ONNX model through OpenVINO's converter."""
    import openvino as ov

    file = folder / f"{path.stem}.xml"
    ov.save_model(ov.convert_model(path), file)
    return file
