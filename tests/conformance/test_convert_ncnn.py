"""Small models that pnnx misreads, or writes as ncnn does not load them: converted and proven."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import zerostride as zs
from zerostride.models.findings import Outcome

onnx: Any = pytest.importorskip("onnx", reason="the models are made with the onnx package")

pytestmark = pytest.mark.conformance
HEAD = '<ir_version: 9, opset_import: ["" : 18]>\n'
#: A model, and the words of the note that says how it was converted.
MODELS = {
    "a mean over the axis of an operand": (
        """g (float[1,5,8] x) => (float[1,5,8] y) <int64[1] last = {-1}, float e = {0.001}> {
            s = Mul(x, x)
            m = ReduceMean(s, last)
            r = Add(m, e)
            q = Sqrt(r)
            y = Div(x, q)
        }""",
        "ReduceMean as other ops",
    ),
    "a mask of a length": (
        """g (float[1,6,4] x, int64[1] n) => (float[1,6,4] y, int64[1] h)
        <int64[6] places = {0, 1, 2, 3, 4, 5}, float none = {0}, int64 two = {2}> {
            inside = Less(places, n)
            shape = Constant<value = int64[3] {1, 6, 1}>()
            column = Reshape(inside, shape)
            y = Where(column, x, none)
            h = Div(n, two)
        }""",
        "whole numbers as floats",
    ),
    "blocks of an image": (
        """g (float[1,2,4,6] x) => (float[1,8,2,3] y) { y = SpaceToDepth<blocksize = 2>(x) }""",
        "SpaceToDepth as other ops",
    ),
    "windows": (
        """g (float[1,4,6,5] x) => (float[6,4,5] y) {
            six = Constant<value = int64[6] {1, 2, 2, 3, 2, 5}>()
            a = Reshape(x, six)
            b = Transpose<perm = [0, 1, 3, 2, 4, 5]>(a)
            three = Constant<value = int64[3] {6, 4, 5}>()
            c = Reshape(b, three)
            y = Sigmoid(c)
        }""",
        "Transpose",
    ),
    "a transform along an axis": (
        """g (float[1,6,4] x) => (float[1,6,4,2] y) {
            four = Constant<value = int64[4] {1, 6, 4, 1}>()
            a = Reshape(x, four)
            y = DFT<axis = 1>(a)
        }""",
        "DFT",
    ),
    "a line normalised": (
        """g (float[1,3,7] x) => (float[1,3,7] y)
        <float[3] a = {1, 2, 3}, float[3] b = {0.5, -1, 2}> {
            r = Sigmoid(x)
            y = InstanceNormalization(r, a, b)
        }""",
        "InstanceNormalization as other ops",
    ),
    "rows in another order": (
        """g (float[1,5,4] x) => (float[1,4,4] y) <int64[4] rows = {3, 0, 1, 3}> {
            r = Sigmoid(x)
            y = Gather<axis = 1>(r, rows)
        }""",
        "Gather as other ops",
    ),
    "a branch that a rate decides": (
        """g (float[1,5] x, int64 rate) => (float[1,5] y) <int64 k = {16000}> {
            same = Equal(rate, k)
            y = If(same) <
                then_branch = t () => (float[1,5] a) { a = Sigmoid(x) },
                else_branch = e () => (float[1,5] b) { b = Tanh(x) }
            >
        }""",
        "for rate=16000 alone",
    ),
    "a constant beside a result": (
        """g (float[1,5] x) => (float[1,5] y, int64[1] n) { y = Tanh(x)
            n = Constant<value = int64[1] {3000}>()
        }""",
        "whole numbers as floats",
    ),
    "the largest numbers of a mask": (
        """g (float[1,3,4] x) => (float[1,3,4] y)
        <float low = {-3.4028235e38}, float bound = {0.2}> {
            above = Greater(x, bound)
            s = Where(above, x, low)
            y = Softmax<axis = -1>(s)
        }""",
        "whole numbers as floats",
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_converted_as_another_that_means_the_same(name: str, tmp_path: Path) -> None:
    for package in ("pnnx", "ncnn", "onnxruntime"):
        pytest.importorskip(package, reason="pnnx converts, ncnn proves, ONNX Runtime folds")
    text, how = MODELS[name]
    onnx.save(onnx.parser.parse_model(HEAD + text), tmp_path / "m.onnx")
    report = zs.convert(tmp_path / "m.onnx", "ncnn", tmp_path / "out", seed=1)
    assert report.ok, report.checks
    assert any(how in note for note in report.notes), report.notes
    assert {check.outcome for check in report.checks} == {Outcome.AGREES}
    again = zs.verify(tmp_path / "m.onnx", "ncnn", against=report.output, seed=2)
    assert {check.outcome for check in again.checks} == {Outcome.AGREES}
