"""Conversions of stretched tensors: no culprit in a right one, and a misread one is named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from sampled import few

pytest.importorskip("onnx", reason="the models are made with the onnx package")
pytest.importorskip("onnxruntime", reason="runs the model")

from campaigns.models.bisect_graphs import saved
from campaigns.models.stretch_graphs import READERS, stretched
from campaigns.real_models.convert import convert

import zerostride as zs
from zerostride.runtimes.process import engines_kept

pytestmark = pytest.mark.conformance

#: A converter, and the module that it needs.
CONVERTERS = {"openvino": "openvino", "pnnx": "pnnx", "mnnconvert": "MNN"}
SEEDS = range(12)
#: Ops that a converter misreads by itself: pnnx sums over all axes instead of one.
MISREAD = {"pnnx": {"ReduceSum"}}


@pytest.fixture(autouse=True, scope="module")
def _kept() -> Iterator[None]:
    with engines_kept():
        yield


def bisected(
    folder: Path, converter: str, seed: int, *, misread: bool, late: bool = False
) -> zs.Report:
    """The report of a model and of what a converter makes of it or of its misread form."""
    pytest.importorskip(CONVERTERS[converter], reason="the converter is an extra")
    readers = tuple(op for op in READERS if op not in MISREAD.get(converter, ()))
    model = stretched(seed, readers=readers)
    other = stretched(seed, misread=misread, readers=readers)
    shape = tuple(d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim)
    x = np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)
    sizes = (f"x={','.join(map(str, shape))}",)
    place = convert(saved(other, folder / "b.onnx"), converter, sizes, folder / converter)
    if isinstance(place, str):
        pytest.skip(f"{converter} does not convert it: {place}")
    if late:  # as OpenVINO 2026.4 names the operand of an Expand that it takes away
        place.write_text(place.read_text().replace('names="s"', 'names="s,e"'))
    return zs.bisect(saved(model, folder / "a.onnx"), place, inputs={"x": x})


@pytest.mark.parametrize("seed", few(3, SEEDS))
@pytest.mark.parametrize("converter", CONVERTERS)
def test_a_conversion_has_no_culprit(tmp_path: Path, converter: str, seed: int) -> None:
    report = bisected(tmp_path, converter, seed, misread=False)
    assert report.ok, report.bisection.culprits


@pytest.mark.parametrize("seed", few(3, SEEDS))
@pytest.mark.parametrize("converter", CONVERTERS)
def test_a_misread_tensor_is_a_culprit(tmp_path: Path, converter: str, seed: int) -> None:
    report = bisected(tmp_path, converter, seed, misread=True)
    assert not report.ok
    assert "n_p" in report.culprit.nodes


@pytest.mark.parametrize("misread", [False, True])
def test_an_operand_may_have_the_name_of_the_stretched_tensor(
    tmp_path: Path, *, misread: bool
) -> None:
    report = bisected(tmp_path, "openvino", 6, misread=misread, late=True)
    layouts = {stage.tensor: stage.layout for stage in report.bisection.stages}
    assert layouts["e"] == "not yet stretched"
    assert [culprit.node for culprit in report.bisection.culprits] == ["n_p"] * misread
