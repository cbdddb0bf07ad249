"""Models in the forms that exporters write: audits decide them, and the engines agree."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from sampled import few

onnx = pytest.importorskip("onnx", reason="writes the models")

from campaigns.models.exporter_forms import FORMS, write_form  # noqa: E402

import zerostride as zs  # noqa: E402
from zerostride.engines.table import ENGINES  # noqa: E402

#: Findings that stay open, by form: the reason, and words of the message that say what is missing.
OPEN = {
    "branches": ("unknown_shape", "whose branches give other shapes"),
    "masked_encoder": ("unknown_shape", "beyond what is decided here"),
    "quantised_image": ("not_measured", "right on mnn as the weights of a convolution"),
    "sequences": ("unknown_shape", "from SplitToSequence"),
}
SEEDS = (0, 1, 2)


def _written(name: str, seed: int, folder: Path, *, fixed: bool = False) -> Path:
    path = folder / f"{name}_{seed}.onnx"
    onnx.save(write_form(name, seed, fixed=fixed), path)
    return path


@pytest.mark.parametrize("seed", few(1, SEEDS))
@pytest.mark.parametrize("name", FORMS)
def test_every_target_is_decided(name: str, seed: int, tmp_path: Path) -> None:
    path = _written(name, seed, tmp_path)
    for target, via in [*((engine, None) for engine in ENGINES.own), ("ncnn", "pnnx")]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            report = zs.audit(path, target=target, via=via)
            if seed or target == "ncnn":
                assert zs.audit(path, target=target, via=via).to_json() == report.to_json()
        for finding in report.findings:
            if finding.verdict == "unknown":
                reason, words = OPEN.get(name, ("", ""))
                what = f"{finding.node} ({finding.op}) to {target}: {finding.message}"
                assert finding.reason == reason, what
                assert words in finding.message, what


@pytest.mark.conformance
@pytest.mark.parametrize("name", FORMS)
def test_engines_deny_no_verdict(name: str, tmp_path: Path) -> None:
    engines = ("onnxruntime", "openvino", "ncnn")
    for engine in engines:
        pytest.importorskip(engine, reason="runs the models")
    for seed in SEEDS[:2]:
        path = _written(name, seed, tmp_path, fixed=True)
        for engine in engines:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                report = zs.verify(path, engine, cache=False)
            wrong = [note for note in report.notes if note.startswith("WRONG VERDICT")]
            assert not wrong, wrong
            outcomes = {str(check.outcome) for check in report.checks}
            assert engine != "onnxruntime" or outcomes <= {"agrees", "not_run"}, outcomes


@pytest.mark.parametrize("name", FORMS)
def test_forms_are_valid_models(name: str, tmp_path: Path) -> None:
    ort = pytest.importorskip("onnxruntime", reason="reads the models")
    for seed in SEEDS:
        ort.InferenceSession(_written(name, seed, tmp_path), providers=["CPUExecutionProvider"])
