"""Scales that optimisers move: taken out of sums, bounds, slopes and weights."""

from __future__ import annotations

import pytest
from onnx import parser

import zerostride as zs
from zerostride.models.equivalence import Sameness

HEAD = '<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]> g '

SAME = {
    "a scale before and after a product": (
        "(float[N,4] x, float[5,4] k) => (float[a,b] y) <float s={0.5}, float[4] b={1,2,3,4}> "
        "{ q=Add(x,b) t=Transpose(k) p=MatMul(q,t) y=Mul(p,s) }",
        "(float[N,4] x, float[5,4] k) => (float[a,b] y) <float s={0.5}, float[4] b={1,2,3,4}> "
        "{ q=Add(x,b) t=Transpose(k) r=Mul(q,s) y=MatMul(r,t) }",
    ),
    "gelu of a sum with its bias": (
        "(float[N,4] x) => (float[a,b] y) <float r2={1.4142135}, float one={1}, float "
        "h={0.5}, float[4] b={1,2,3,4}> { z=Add(x,b) d=Div(z,r2) e=Erf(d) f=Add(e,one) "
        "g=Mul(z,f) y=Mul(g,h) }",
        "(float[N,4] x) => (float[a,b] y) <float[4] b={1,2,3,4}> { y=com.microsoft.BiasGelu(x,b) }",
    ),
    "gelu of a sum": (
        "(float[N,4] x) => (float[a,b] y) <float r2={1.4142135}, float one={1}, float "
        "h={0.5}, float[4] b={1,2,3,4}> { z=Add(x,b) d=Div(z,r2) e=Erf(d) f=Add(e,one) "
        "zz=Mul(z,h) y=Mul(zz,f) }",
        "(float[N,4] x) => (float[a,b] y) <float[4] b={1,2,3,4}> { z=Add(x,b) "
        "y=com.microsoft.Gelu(z) }",
    ),
    "hard swish, divided at the end": (
        "(float[N,4] x) => (float[a,b] y) <float three={3}, float zero={0}, float six={6}> { "
        "p=Add(x,three) c=Clip(p,zero,six) m=Mul(x,c) y=Div(m,six) }",
        "(float[N,4] x) => (float[a,b] y) { y=HardSwish(x) }",
    ),
    "hard swish, divided before": (
        "(float[N,4] x) => (float[a,b] y) <float three={3}, float zero={0}, float six={6}> { "
        "p=Add(x,three) c=Clip(p,zero,six) d=Div(c,six) y=Mul(x,d) }",
        "(float[N,4] x) => (float[a,b] y) { y=HardSwish(x) }",
    ),
    "a line between two bounds": (
        "(float[N,4] x) => (float[a,b] y) <float three={3}, float zero={0}, float six={6}> { "
        "p=Add(x,three) c=Clip(p,zero,six) y=Div(c,six) }",
        "(float[N,4] x) => (float[a,b] y) { y=HardSigmoid<alpha=0.16666667,beta=0.5>(x) }",
    ),
    "gelu by tanh": (
        "(float[N,4] x) => (float[a,b] y) <float c3={3}, float c={0.044715}, float "
        "k={0.7978845608}, float one={1}, float h={0.5}, float[4] b={1,2,3,4}> { z=Add(x,b) "
        "p=Pow(z,c3) q=Mul(p,c) r=Add(z,q) s=Mul(r,k) t=Tanh(s) u=Add(t,one) v=Mul(z,u) "
        "y=Mul(v,h) }",
        "(float[N,4] x) => (float[a,b] y) <float[4] b={1,2,3,4}> { y=com.microsoft.FastGelu(x,b) }",
    ),
    "scales of both operands": (
        "(float[N,4] x, float[4,5] k) => (float[a,b] y) <float s={0.5}, float t={8}> { "
        "q=Mul(x,s) kk=Div(k,t) y=MatMul(q,kk) }",
        "(float[N,4] x, float[4,5] k) => (float[a,b] y) { "
        "y=com.microsoft.FusedMatMul<alpha=0.0625>(x,k) }",
    ),
    "a scale of a product of a sum": (
        "(float[N,4] x, float[4,5] k, float[5] b) => (float[a,b] y) <float s={0.5}, float "
        "t={8}> { q=Mul(x,s) kk=Add(k,b) z=MatMul(q,kk) y=Div(z,t) }",
        "(float[N,4] x, float[4,5] k, float[5] b) => (float[a,b] y) { kk=Add(k,b) "
        "y=com.microsoft.FusedMatMul<alpha=0.0625>(x,kk) }",
    ),
    "the sign of a constant": (
        "(float[N,4] x) => (float[a,b] y) <float[4,2] w={0,-1,3,-3,0.5,1,2,1}, float m={-1}> "
        "{ n=Mul(w,m) y=MatMul(x,n) }",
        "(float[N,4] x) => (float[a,b] y) <float[4,2] w={0,-1,3,-3,0.5,1,2,1}> "
        "{ y=com.microsoft.FusedMatMul<alpha=-1.0>(x,w) }",
    ),
    "a sum before a product with constants": (
        "(float[N,4] x) => (float[a,b] y) <float[4] c={1,2,3,4}, float[4,2] "
        "w={1,2,3,4,5,6,7,8}> { s=Add(x,c) y=MatMul(s,w) }",
        "(float[N,4] x) => (float[a,b] y) <float[2] c={50,60}, float[4,2] "
        "w={1,2,3,4,5,6,7,8}> { p=MatMul(x,w) y=Add(p,c) }",
    ),
    "a column before a product with constants": (
        "(float[3,4] x) => (float[a,b] y) <float[3,1] c={1,2,3}, float[4,2] "
        "w={0.5,2,3,4,5,6,7,8}> { s=Add(x,c) y=MatMul(s,w) }",
        "(float[3,4] x) => (float[a,b] y) <float[3,2] c={15.5,20,31,40,46.5,60}, float[4,2] "
        "w={0.5,2,3,4,5,6,7,8}> { p=MatMul(x,w) y=Add(p,c) }",
    ),
    "an affine map before a convolution of one point": (
        "(float[N,2,H,W] x) => (float[a,b,c,d] y) <float k={2}, float c={0.5}, float[3,2,1,1] "
        "w={1,2,3,4,5,6}, float[3] b={1,1,1}> { m=Mul(x,k) s=Add(m,c) y=Conv(s,w,b) }",
        "(float[N,2,H,W] x) => (float[a,b,c,d] y) <float[3,2,1,1] w={2,4,6,8,10,12}, float[3] "
        "b={2.5,4.5,6.5}> { y=Conv(x,w,b) }",
    ),
}


@pytest.mark.parametrize(("one", "other"), SAME.values(), ids=SAME)
def test_a_scale_that_moved_is_equal_but_for_rounding(one: str, other: str) -> None:
    models = [parser.parse_model(HEAD + text) for text in (one, other)]
    result = zs.equivalent(*models).equivalence
    assert result is not None
    assert result.verdict is Sameness.ROUNDED


CHANGES = (("0.5", "0.25"), ("six={6}", "six={5}"), ("{1,2,3,4}", "{1,2,3,5}"))
CHANGED = [(name, change) for name in SAME for change in CHANGES if change[0] in SAME[name][0]]


@pytest.mark.parametrize(("name", "change"), CHANGED)
def test_another_number_is_not(name: str, change: tuple[str, str]) -> None:
    one, other = SAME[name]
    models = [parser.parse_model(HEAD + text) for text in (one.replace(*change), other)]
    result = zs.equivalent(*models).equivalence
    assert result is not None
    assert result.verdict not in (Sameness.EQUAL, Sameness.ROUNDED)
