"""Reductions and normalisations: the same over axes that are joined, turned or taken one by one."""

from __future__ import annotations

import random

import onnx
import pytest
from onnx import parser

import zerostride as zs
from zerostride.models.equivalence import Sameness

PROVEN = (Sameness.EQUAL, Sameness.ROUNDED)


def model(text: str, version: int = 18) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["" : {version}]> g {text}')


def verdict(first: onnx.ModelProto, second: onnx.ModelProto) -> Sameness:
    """Of the output, wherever both work."""
    result = zs.equivalent(first, second).equivalence
    assert result is not None
    (output,) = result.outputs
    return output.verdict


KINDS = ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSumExp")
NAMES = ("N", "C", "H", "W")


def drawn(seed: int) -> tuple[str, str, str]:
    """A reduction; the same over turned and joined axes, or step by step; and another."""
    numbers = random.Random(seed)
    kind, sizes = numbers.choice(KINDS), list(NAMES)
    if numbers.random() < 0.3:
        sizes = ["2", "3", "4", "5"]
    reduced = sorted(numbers.sample(range(1, 4), numbers.choice([2, 3])))
    kept = [axis for axis in range(4) if axis not in reduced]
    head = f"(float[{','.join(sizes)}] x) => (float[{','.join(NAMES[: len(kept)])}] y)"

    def folding(axes: list[int]) -> str:
        listed = ",".join(map(str, axes))
        return (
            f"{head} <int64[{len(axes)}] a={{{listed}}}> {{ y = Reduce{kind}<keepdims=0>(x, a) }}"
        )

    turned = numbers.sample(reduced, len(reduced))
    nested = kind in ("Sum", "Mean", "Max", "Min", "Prod") and numbers.random() < 0.4
    if nested:
        order = sorted(turned, reverse=True)
        steps = [f"t{k} = Reduce{kind}<keepdims=0>(t{k - 1}, a{a})" for k, a in enumerate(order, 1)]
        constants = ", ".join(f"int64[1] a{axis}={{{axis}}}" for axis in order)
        body = " ".join(["t0 = Identity(x)", *steps, f"y = Identity(t{len(order)})"])
    else:
        zeros = ",".join("0" * len(kept))
        constants = f"int64[{len(kept) + 1}] s={{{zeros},-1}}, int64[1] a={{-1}}"
        perm = ",".join(map(str, [*kept, *turned]))
        body = (
            f"t = Transpose<perm=[{perm}]>(x) u = Reshape(t, s) y = Reduce{kind}<keepdims=0>(u, a)"
        )
    # Another axis is left, or the first, which no draw reduces, is not.
    wrong = sorted([0, *reduced[1:]])
    return folding(reduced), f"{head} <{constants}> {{ {body} }}", folding(wrong)


@pytest.mark.parametrize("seed", range(30))
def test_a_reduction_is_the_same_whichever_way_its_axes_lie(seed: int) -> None:
    first, second, wrong = map(model, drawn(seed))
    assert verdict(first, second) in PROVEN
    assert verdict(wrong, second) not in PROVEN


PARAMETERS = (
    "<float[4] s={1,2,3,4}, float[4] b={1,0,-1,2}, float[2] one={1,1}, float[2] zero={0,0}, "
    "int64[3] r={0,2,-1}, float[4,1,1] s3={1,2,3,4}, float[4,1,1] b3={1,0,-1,2}, "
    "float[2] gs={2,3}, float[2] gb={0.5,1}, int64[2] a={2,3}, float e={0.00001}>"
)
HEAD = f"(float[N,4,H,W] x) => (float[P,Q,R,S] y) {PARAMETERS}"
IN_GROUPS = "t=Reshape(x,r) i=InstanceNormalization(t,{},{}) sh=Shape(x) u=Reshape(i,sh)"
NORMAL = {
    "groups, a scale a channel": (
        21,
        "y=GroupNormalization<num_groups=2>(x,s,b)",
        IN_GROUPS.format("one", "zero") + " m=Mul(u,s3) y=Add(m,b3)",
    ),
    "groups, a scale a group": (
        18,
        "y=GroupNormalization<num_groups=2>(x,gs,gb)",
        IN_GROUPS.format("gs", "gb") + " y=Identity(u)",
    ),
    "instances": (
        18,
        "y=InstanceNormalization(x,s,b)",
        "m=ReduceMean(x,a) d=Sub(x,m) q=Mul(d,d) v=ReduceMean(q,a) w=Add(v,e) k=Sqrt(w) n=Div(d,k)"
        " p=Mul(n,s3) y=Add(p,b3)",
    ),
    "an average of all": (
        18,
        "y=GlobalAveragePool(x)",
        "sh=Constant<value_ints=[0,0,-1]>() t=Reshape(x,sh) l=Constant<value_ints=[2]>()"
        " m=ReduceMean(t,l) o=Constant<value_ints=[0,0,1,1]>() y=Reshape(m,o)",
    ),
}
CHANGES = (
    ("gs,gb", "gb,gs"),
    ("s,b", "b,s"),
    ("one,zero", "zero,one"),
    ("=2>", "=4>"),
    ("l)", ")"),
)


@pytest.mark.parametrize(("version", "one", "other"), NORMAL.values(), ids=NORMAL)
def test_a_normalisation_is_what_it_is_written_out(version: int, one: str, other: str) -> None:
    first, second = (model(f"{HEAD} {{ {body} }}", version) for body in (one, other))
    assert verdict(first, second) in PROVEN
    for old, new in CHANGES:
        for k, body in enumerate((one, other)):
            if old in body:
                mutant = model(f"{HEAD} {{ {body.replace(old, new)} }}", version)
                assert verdict(mutant, (second, first)[k]) not in PROVEN
