"""Whole nets on the real ncnn, in a separate process that may crash.

As a script it is that process; :class:`Net` asks it.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from asked import Asked, serve

SECONDS = 30.0


class Net(Asked):
    """Answers of the real ncnn. Use as a context manager."""

    def __init__(self) -> None:
        super().__init__([sys.executable, __file__], SECONDS)

    def ask(
        self,
        text: str,
        inputs: Mapping[str, Any],
        blobs: Sequence[str],
        weights: bytes | None = None,
        *,
        packing: bool = True,
        light: bool = True,
    ) -> tuple[str, Any]:
        """("result", {blob: array or status}), ("refused", words) or ("crashed", exit status)."""
        return self.answer((text, dict(inputs), list(blobs), weights, packing, light))


def feeds(shapes: Sequence[Sequence[int]], seed: int) -> dict[str, Any]:
    """Numbers for the inputs of a drawn layer."""
    rng = np.random.default_rng(seed)
    return {f"in{k}": rng.uniform(0.5, 1.5, s).astype(np.float32) for k, s in enumerate(shapes)}


def run(question: Any) -> tuple[str, Any]:
    """One net, and the blobs that are asked for."""
    import ncnn

    text, inputs, blobs, weights, packing, light = question
    net = ncnn.Net()
    net.opt.num_threads = 1
    net.opt.use_fp16_storage = net.opt.use_fp16_packed = net.opt.use_fp16_arithmetic = False
    net.opt.use_packing_layout = packing
    net.opt.lightmode = light
    if net.load_param_mem(text) != 0:
        return "refused", "the text was not taken"
    if weights is None:
        status = net.load_model(ncnn.DataReaderFromEmpty())
    else:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "weights.bin")
            file.write_bytes(weights)
            status = net.load_model(str(file))
    if status != 0:
        return "refused", "the weights were not taken"
    table: dict[str, Any] = {}
    for name in blobs:
        extractor = net.create_extractor()
        for blob, array in inputs.items():
            extractor.input(blob, ncnn.Mat(np.ascontiguousarray(array)).clone())
        status, blob = extractor.extract(name)
        table[name] = np.array(blob) if status == 0 else status
    return "result", table


def load() -> Callable[[Any], tuple[str, Any]]:
    """What answers, where ncnn is."""
    import ncnn  # noqa: F401

    return run


if __name__ == "__main__":
    serve(load)
