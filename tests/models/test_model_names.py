"""Models named by files, and objects that are no models."""

from __future__ import annotations

from pathlib import Path

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
    "verify against": lambda model: zs.verify(CLEAN, engine="onnxruntime", against=model),
    "bisect": lambda model: zs.bisect(model, CLEAN),
    "bisect other": lambda model: zs.bisect(CLEAN, model),
    "equivalent": lambda model: zs.equivalent(model, CLEAN),
    "equivalent other": lambda model: zs.equivalent(CLEAN, model),
    "convert": lambda model: zs.convert(model, "ncnn", "absent"),
}
#: Where None stands for the model itself.
OPTIONAL = {"verify against", "bisect other"}


class ModelProto:
    """A class of the name of onnx's that is not onnx's."""


@pytest.mark.parametrize("name", CALLS)
def test_other_objects_are_refused_with_the_kinds_that_are_taken(name: str) -> None:
    for other in (None, 3, ["clean.onnx"], {"model": 1}, ModelProto(), ModelProto):
        if other is None and name in OPTIONAL:
            continue
        with pytest.raises(TypeError, match=r"a model is the path of a file, .* not ") as caught:
            CALLS[name](other)
        assert "onnx.ModelProto" in str(caught.value)
        assert str(caught.value).endswith(f"; not {type(other).__name__}")


def test_parts_of_models_are_refused_with_the_way_to_a_model() -> None:
    with pytest.raises(TypeError, match=r"not GraphProto: onnx\.helper\.make_model\(graph\) is"):
        zs.audit(onnx.load(CLEAN).graph, target="ncnn")


@pytest.mark.parametrize("name", CALLS)
def test_a_path_in_bytes_is_refused(name: str) -> None:
    for path in (b"clean.onnx", b""):
        with pytest.raises(TypeError, match=r"no ONNX or \.tflite model; a path is text"):
            CALLS[name](path)


# (An engine refuses a folder that it is to run.)
@pytest.mark.parametrize("name", sorted(CALLS.keys() - {"verify against"}))
def test_folder_is_refused(name: str) -> None:
    with pytest.raises(zs.ModelError, match="a folder; name a model in it"):
        CALLS[name](CLEAN.parent)


def test_path_objects_and_strings_are_equal() -> None:
    assert path_of(str(CLEAN)) == path_of(CLEAN) == CLEAN
