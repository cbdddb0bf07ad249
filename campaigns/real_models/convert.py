"""Converts an ONNX model with the real converters: OpenVINO's IR, ncnn's files, MNN's file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from zerostride import ModelError, ZerostrideError
from zerostride.models.findings import Outcome
from zerostride.models.formats import read_model
from zerostride.runtimes.convert.converters import SECONDS, converter_to, load, run_converter

#: Converter to its engine, and the end of the file that it writes here.
CONVERTERS: Mapping[str, tuple[str, str]] = {
    "openvino": ("openvino", ".xml"),
    "pnnx": ("ncnn", ".pnnx.param"),
    "mnnconvert": ("mnn", ".mnn"),
}


def convert(model: Path, converter: str, inputs: tuple[str, ...], folder: Path) -> Path | str:
    """The file that a converter makes of a model, or the reason of its failure.

    A file that is there is not made again. Files that ncnn itself does not load, because pnnx left
    layers in them that ncnn lacks, count as failures.
    """
    engine, suffix = CONVERTERS[converter]
    folder.mkdir(parents=True, exist_ok=True)
    goal = folder.resolve() / f"{model.stem}{suffix}"
    try:
        row = converter_to(engine)
        failed: tuple[Outcome, str] | None
        if goal.is_file():
            failed = load(row, goal, SECONDS)
        else:
            types = {value.name: value.dtype or "float32" for value in read_model(model).inputs}
            pairs = [text.rpartition("=") for text in inputs]
            arrays = {name: _empty(sizes, types[name]) for name, _, sizes in pairs}
            failed = run_converter(row, model.resolve(), goal, arrays, SECONDS)
    except (ModelError, ZerostrideError) as error:
        return str(error)
    return goal if failed is None else failed[1]


def _empty(sizes: str, dtype: str) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    """An array of this shape and type that takes no memory."""
    shape = tuple(map(int, sizes.split(","))) if sizes else ()
    return np.broadcast_to(np.zeros((), dtype), shape)
