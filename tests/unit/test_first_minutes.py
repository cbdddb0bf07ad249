"""What somebody meets who tries the package for the first time: names, objects, messages."""

from __future__ import annotations

import html
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import zerostride as zs
from zerostride.errors import ArgumentError
from zerostride.system.spelling import near

MODEL = Path(__file__).parents[2] / "examples" / "tiny_vision.onnx"


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda: zs.plan((2, 3), (3,), engine="NCNN"), "did you mean ncnn?"),
        (lambda: zs.plan((2, 3), (3,), engine="pnnx"), "did you mean ncnn?"),
        (lambda: zs.plan((2, 3), (3,), engine="pytorch"), "did you mean torch?"),
        (lambda: zs.plan((2, 3), (3,), rule="nump"), "did you mean numpy?"),
        (lambda: zs.compare((2, 3), (3,), reference="Onnx"), "did you mean onnxruntime?"),
        (lambda: zs.plan_attention(*[(1, 1, 2, 2)] * 3, engine="ORT"), "did you mean onnxruntime?"),
    ],
)
def test_a_name_that_is_nearly_one_is_proposed(call: Callable[[], Any], hint: str) -> None:
    with pytest.raises(zs.BroadcastError) as caught:
        call()
    assert caught.value.hint == hint


def test_long_names_are_compared_by_their_beginnings() -> None:
    assert near("a" * 10_000, ["a" * 9_000, "b"]) == ["a" * 9_000]


def test_an_array_in_the_place_of_the_target_is_explained() -> None:
    with pytest.raises(ArgumentError, match=r"example inputs are args=\(x,\)"):
        zs.audit(MODEL, [1.0], target="ncnn")  # type: ignore[call-arg]


def test_a_url_keeps_its_slashes() -> None:
    with pytest.raises(
        zs.ModelError, match=r"^https://example\.org/m\.onnx: a URL, .* download it"
    ):
        zs.audit("https://example.org/m.onnx", target="ncnn")


def test_a_report_is_short_in_a_console_and_a_page_in_a_notebook() -> None:
    pytest.importorskip("onnx", reason="reads an ONNX file")
    report = zs.audit(MODEL, target="ncnn")
    assert len(repr(report)) < 200 + len(str(MODEL))
    assert f"{len(report.findings)} findings, ok=False" in repr(report)
    page = report._repr_html_()
    assert page.startswith("<iframe srcdoc=")
    assert html.escape(report.to_html()) in page


def test_a_comparison_is_short_in_a_console() -> None:
    comparison = zs.compare((5, 5), (5,))
    words = f"<Comparison: (5, 5) and (5,), {len(comparison.rows)} rows; print it to read them>"
    assert repr(comparison) == words


def test_the_names_of_the_package_are_its_own() -> None:
    assert not {"Any", "annotations", "import_module"} & {*dir(zs)}
    assert {"plan", "audit", "strict"} <= {*dir(zs)}
