"""Writes the ONNX file of one architecture: ``python -m campaigns.architectures.export NAME FILE``.

It needs PyTorch, onnxscript and the architecture's library. The last line of the error output says
why PyTorch exports none.
"""

from __future__ import annotations

import importlib
import sys
from functools import partial
from typing import Any

from .zoo import ARCHITECTURES, INPUTS, Architecture

#: Where a model's result lies.
_RESULTS = ("logits", "last_hidden_state", "sample")


def built(row: Architecture, attention: str) -> Any:
    """A module with random weights, of a seed."""
    torch = importlib.import_module("torch")
    library = importlib.import_module(row.library)
    torch.manual_seed(0)
    if row.library == "timm":
        return library.create_model(row.maker, pretrained=False).eval()
    if row.library == "diffusers":
        return getattr(library, row.maker)(**row.options).eval()
    config = getattr(library, row.maker)(**row.options)
    config._attn_implementation = attention
    if hasattr(config, "use_cache"):
        config.use_cache = False
    return library.AutoModel.from_config(config).eval()


def export(name: str, file: str, attention: str) -> None:
    """Writes the file with PyTorch's exporter."""
    torch = importlib.import_module("torch")

    class OneResult(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self, module: Any) -> None:
            super().__init__()
            self.module = module

        def forward(self, *inputs: Any) -> Any:
            result = self.module(*inputs)
            if isinstance(result, torch.Tensor):
                return result
            named = (getattr(result, key, None) for key in _RESULTS)
            return next((tensor for tensor in named if tensor is not None), result[0])

    row = ARCHITECTURES[name]
    if row.library == "attention":
        module, inputs = importlib.import_module(f"{__package__}.attentions").attention(row.maker)
        torch.onnx.export(module, inputs, file, dynamo=True, external_data=False, verbose=False)
        return
    draw = partial(torch.randn, generator=torch.Generator().manual_seed(1))
    inputs = INPUTS[row.inputs](torch, draw, row.options.get("image_size", 224))
    module = OneResult(built(row, attention)).eval()
    with torch.no_grad():
        module(*inputs)
    torch.onnx.export(module, inputs, file, dynamo=True, external_data=False, verbose=False)


def main(name: str, file: str) -> None:
    """Writes the file; a second try is with the attention of plain products."""
    try:
        export(name, file, "sdpa")
    except Exception:  # PyTorch has no class for what it does not export
        if ARCHITECTURES[name].library != "transformers":
            raise
        export(name, file, "eager")


if __name__ == "__main__":
    main(*sys.argv[1:])
