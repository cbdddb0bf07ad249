"""Models that differ, though their nodes look alike: none of these pairs may be called equal."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import parser

import zerostride as zs
from zerostride.models.equivalence import Sameness

HEAD = '<ir_version: 8, opset_import: ["" : 18, "com.microsoft" : 1]> g '
SEQUENCE = (
    "(float[N,3] x) => (float[N,3] o) {{ s = SequenceConstruct(x,x) q = SequenceMap(s)"
    "<body = b (float[N,3] v) => (float[N,3] w) {{ {} }}> i = Constant<value_int=0>()"
    " o = SequenceAt(q,i) }}"
)
BRANCHES = (
    "(float[N,3] x) => (float[] o) <float k={{1000}}, int64[1] z={{0}}>"
    " {{ s0 = ReduceMax<keepdims=0>(x) c = Less(s0,k) r = If(c)<then_branch = th ()"
    " => (float[P,Q] t) {{ t = Identity(x) }}, else_branch = el () => (float[A,B,C] e)"
    " {{ e = Unsqueeze(x,z) }}> q = Softmax<axis={}>(r) w = Mul(q,r)"
    " o = ReduceSum<keepdims=0>(w) }}"
)
MASKED = (
    "(float[N,4] x) => (float[N,4] o) <float[4] c={{{}}}> {{ a = Add(x,c)"
    " o = Softmax<axis=-1>(a) }}"
)
ABOVE = "(float[N,2] x) => (bool[N,2] o) <float[2] c={{{}}}> {{ o = Greater(x,c) }}"
EQUALS = (
    "(float[N] x, float[N] y, float[N] z, float[N] w) => (bool[N] o)"
    " {{ a = Equal(x,{}) b = Equal({},w) o = Equal(a,b) }}"
)
LOOP = (
    "(float[N,2] x) => (float[N,2] o) <int64 n={{0}}, bool t={{1}}> {{ o = Loop(n,t,x)<body = b"
    " (int64 i, bool c, float[N,2] v) => (bool d, float[N,2] vo) {{ d = Identity(c)"
    " u = Constant<value_floats=[1.0,2.0,3.0]>() w = Add(v,u) vo = {}(v) }}> }}"
)

DIFFERENT = {
    "a chain of Equal": (EQUALS.format("y", "z"), EQUALS.format("z", "y")),
    "the body of a sequence": (
        SEQUENCE.format("kk = Constant<value_float=1000.0>() w = Min(v,kk)"),
        SEQUENCE.format("w = Identity(v)"),
    ),
    "a loop that fails if it runs": (LOOP.format("Neg"), LOOP.format("Abs")),
    "branches of two ranks": (BRANCHES.format(-1), BRANCHES.format(1)),
    "a mask with infinity": (MASKED.format("-inf,0,0,-9"), MASKED.format("-inf,0,0,-6")),
    "a mask of large numbers": (
        MASKED.format("-1000000000,0,0,-9"),
        MASKED.format("-1000000000,0,0,-6"),
    ),
    "infinity for a number": (ABOVE.format("inf,300"), ABOVE.format("500,300")),
    "a small number beside a large one": (
        ABOVE.format("1000000000,300"),
        ABOVE.format("1000000000,100"),
    ),
    "another factor": (
        "(float[N] x) => (float[N] o) <float k={2}> { o = Mul(x,k) }",
        "(float[N] x) => (float[N] o) <float k={2.00018}> { o = Mul(x,k) }",
    ),
    "a bias of two axes": (
        "(float[N,1,4] x) => (float[a,b,c] o) <float[2,1,1] w={1,2}, float[2] c={3,4}>"
        " { o = Conv(x,w,c) }",
        "(float[N,1,4] x) => (float[a,b,c] o) <float[2,1,1] w={1,2}, float[2,1] c={3,4}>"
        " { o = Conv(x,w,c) }",
    ),
    "another element type": (
        "(float[N] x) => (int64[1] o) { o = Shape(x) }",
        "(float[N] x) => (int32[1] o) { a = Shape(x) o = Cast<to=6>(a) }",
    ),
}


@pytest.mark.parametrize(("one", "other"), DIFFERENT.values(), ids=DIFFERENT)
def test_no_such_pair_is_equal(one: str, other: str) -> None:
    models = [parser.parse_model(HEAD + text) for text in (one, other)]
    result = zs.equivalent(*models).equivalence
    assert result is not None
    assert result.verdict not in (Sameness.EQUAL, Sameness.ROUNDED)


ROUNDED = {
    "three operands in another order": (
        "(float[N] x, float[N] y, float[N] z) => (float[N] o) { o = Sum(x,y,z) }",
        "(float[N] x, float[N] y, float[N] z) => (float[N] o) { o = Sum(z,y,x) }",
    ),
    "an inverse of an inverse": (
        "(float[N] x) => (float[N] o) { a = Reciprocal(x) o = Reciprocal(a) }",
        "(float[N] x) => (float[N] o) { o = Identity(x) }",
    ),
}


@pytest.mark.parametrize(("one", "other"), ROUNDED.values(), ids=ROUNDED)
def test_what_rounds_is_not_called_equal(one: str, other: str) -> None:
    models = [parser.parse_model(HEAD + text) for text in (one, other)]
    result = zs.equivalent(*models).equivalence
    assert result is not None
    assert result.verdict is Sameness.ROUNDED


def test_inputs_of_two_element_types_are_refused() -> None:
    one = parser.parse_model(HEAD + "(float[N] a) => (float[N] o) { o = Neg(a) }")
    other = parser.parse_model(HEAD + "(double[N] a) => (double[N] o) { o = Neg(a) }")
    with pytest.raises(zs.ModelError, match=r"'a' is of float32 in .* and of float64 in"):
        zs.equivalent(one, other)


def test_facts_that_the_second_model_contradicts_are_refused() -> None:
    one = parser.parse_model(HEAD + "(float[N,2] a) => (float[N,2] o) { o = Neg(a) }")
    other = parser.parse_model(HEAD + "(float[1,2] a) => (float[1,2] o) { o = Neg(a) }")
    with pytest.raises(zs.ModelError, match="no size that is given works in both"):
        zs.equivalent(one, other, facts="N >= 5")


def test_bisect_says_that_the_other_works_for_fewer_sizes(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="bisect runs both files on it")
    texts = (
        "(float[N,2] x) => (float[N,2] o) { o = Neg(x) }",
        "(float[N,2] x) => (float[N,2] o) <int64[2] s={1,2}> { r = Reshape(x,s) o = Neg(r) }",
    )
    files = [tmp_path / "one.onnx", tmp_path / "other.onnx"]
    for file, text in zip(files, texts, strict=True):
        onnx.save(parser.parse_model(HEAD + text), file)
    notes = zs.bisect(*files).notes
    words = "proven: other.onnx means the same where it works, which is not for every size"
    assert words in notes


def test_the_node_that_reads_two_inputs_is_named() -> None:
    texts = [f"(float[N] x, float[N] y) => (float[N] o) {{ o = Sub({a}) }}" for a in ("x,y", "y,x")]
    result = zs.equivalent(*(parser.parse_model(HEAD + text) for text in texts)).equivalence
    assert result is not None
    region = result.outputs[0].region
    assert region is not None
    assert region.first == ("Sub_0",)
    assert set(result.regions) == {"first.onnx", "second.onnx"}
