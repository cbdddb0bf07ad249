"""The adapter that Model Explorer loads: --extensions=zerostride_model_explorer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from model_explorer import Adapter, AdapterMetadata, ModelExplorerGraphs

from .graphs import graphs_of


class ZerostrideAdapter(Adapter):
    """Reads model files by zerostride's own readers."""

    metadata = AdapterMetadata(
        id="zerostride",
        name="zerostride",
        description="Models of ncnn, MNN, OpenVINO, ONNX and Paddle.",
        source_repo="",
        fileExts=["param", "mnn", "xml", "onnx", "pdmodel"],
    )

    def convert(self, model_path: str, settings: dict[str, Any]) -> ModelExplorerGraphs:
        """The graphs of a file; the main graph first.

        Raises:
            ModelError: the file cannot be read; Model Explorer shows the reason.
        """
        return {"graphs": graphs_of(Path(model_path))}
