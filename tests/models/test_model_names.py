"""Models are given by file; other objects are refused with a way to save them."""

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
def test_loaded_model_object_is_refused_with_the_way_to_save_it(
    call: Callable[[Any], Any],
) -> None:
    with pytest.raises(TypeError, match=r"not given as ModelProto; onnx\.save\(model, "):
        call(onnx.load(CLEAN))
    for other in (None, b"clean.onnx", 3):
        with pytest.raises(TypeError, match="a model is named by its file"):
            call(other)


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_folder_is_refused(call: Callable[[Any], Any]) -> None:
    with pytest.raises(zs.ModelError, match="a folder; name a model in it"):
        call(CLEAN.parent)


def test_path_objects_and_strings_are_equal() -> None:
    assert path_of(str(CLEAN)) == path_of(CLEAN) == CLEAN
