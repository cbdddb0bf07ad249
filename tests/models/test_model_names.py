"""A model is named by its file: what else one may think of giving is told how it becomes one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest

import zerostride as zs
from zerostride.models.formats import path_of

CLEAN = Path(__file__).parents[2] / "examples" / "clean.onnx"
CALLS = {
    "audit": lambda model: zs.audit(model, target="ncnn"),
    "port": lambda model: zs.port(model, target="ncnn", dry_run=True),
    "shapes": lambda model: zs.shapes(model),
    "verify": lambda model: zs.verify(model, engine="numpy"),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_a_model_that_was_read_already_is_told_how_it_becomes_a_file(
    call: Callable[[Any], Any],
) -> None:
    with pytest.raises(TypeError, match=r"not given as ModelProto; onnx\.save\(model, "):
        call(onnx.load(CLEAN))
    for other in (None, b"clean.onnx", 3):
        with pytest.raises(TypeError, match="a model is named by its file"):
            call(other)


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_a_folder_is_told_from_a_file(call: Callable[[Any], Any]) -> None:
    with pytest.raises(zs.ModelError, match="a folder; name a model in it"):
        call(CLEAN.parent)


def test_paths_are_paths() -> None:
    assert path_of(str(CLEAN)) == path_of(CLEAN) == CLEAN
