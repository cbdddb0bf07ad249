"""Shared fixtures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from zerostride.models.ir.graph import Graph


@pytest.fixture
def read(tmp_path: Path) -> Callable[[Any], Graph]:
    """Writes an ONNX model to a file and reads that."""
    from zerostride.models.formats.onnx.reader import read_onnx

    def read_file(content: Any) -> Graph:
        file = tmp_path / "model.onnx"
        file.write_bytes(content.SerializeToString())
        return read_onnx(file)

    return read_file
