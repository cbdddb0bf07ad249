"""Two models compared for every size: what is equal, what differs and by which run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

import zerostride as zs
from zerostride.models.equivalence import Equivalence, Sameness

EQUAL, ROUNDED, DIFFERENT = Sameness.EQUAL, Sameness.ROUNDED, Sameness.DIFFERENT
HEAD = '<ir_version: 8, opset_import: ["" : 17]> g '


def model(text: str) -> onnx.ModelProto:
    """The model of a graph as onnx writes it, without its head."""
    return parser.parse_model(HEAD + text)


def compared(one: str, other: str) -> Equivalence:
    result = zs.equivalent(model(one), model(other)).equivalence
    assert result is not None
    return result


#: Pairs that mean the same, with what changed.
SAME = {
    "space to depth by slices": (
        "(float[N,C,8,6] x) => (float[a,b,c,d] y) <int64[2] s00={0,0}, int64[2] s10={1,0},"
        " int64[2] s01={0,1}, int64[2] s11={1,1}, int64[2] e={100,100}, int64[2] k={2,3},"
        " int64[2] t={2,2}> { p = Slice(x,s00,e,k,t) q = Slice(x,s01,e,k,t)"
        " r = Slice(x,s10,e,k,t) u = Slice(x,s11,e,k,t) y = Concat<axis=1>(p,q,r,u) }",
        "(float[N,C,8,6] x) => (float[a,b,c,d] y) { y = SpaceToDepth<blocksize=2>(x) }",
        EQUAL,
    ),
    "channels gathered in blocks": (
        "(float[N,12] x) => (float[a,b] y) <int64[12] i={0,1,2,6,7,8,3,4,5,9,10,11}>"
        " { y = Gather<axis=1>(x, i) }",
        "(float[N,12] x) => (float[a,b] y) <int64[4] s={-1,2,2,3}, int64[2] f={-1,12}>"
        " { r = Reshape(x, s) t = Transpose<perm=[0,2,1,3]>(r) y = Reshape(t, f) }",
        EQUAL,
    ),
    "a pad in a convolution": (
        "(float[N,1,H,W] x) => (float[a,b,c,d] y) <int64[8] p={0,0,1,2,0,0,3,0},"
        " float[1,1,2,2] w={1,2,3,4}> { t = Pad(x,p) y = Conv<pads=[1,1,1,1]>(t,w) }",
        "(float[N,1,H,W] x) => (float[a,b,c,d] y) <float[1,1,2,2] w={1,2,3,4}>"
        " { y = Conv<pads=[2,3,4,1]>(x,w) }",
        EQUAL,
    ),
    "a convolution of one point": (
        "(float[N,2,L] x) => (float[a,b,c] y) <float[3,2,1] w={1,2,3,4,5,6}> { y = Conv(x,w) }",
        "(float[N,2,L] x) => (float[a,b,c] y) <float[3,2] w={1,2,3,4,5,6}> { y = MatMul(w, x) }",
        ROUNDED,
    ),
    "a sum of parts": (
        "(float[N,M] x, float[N,M] z) => (float[a,b] y) <int64[1] k={0}> { p = Unsqueeze(x, k)"
        " q = Unsqueeze(z, k) r = Concat<axis=0>(p, q) y = ReduceSum<keepdims=0>(r, k) }",
        "(float[N,M] x, float[N,M] z) => (float[a,b] y) { y = Add(z, x) }",
        ROUNDED,
    ),
    "the most of parts": (
        "(float[N,M] x, float[N,K] z) => (float[a] y) { r = Concat<axis=1>(x, z)"
        " y = ReduceMax<axes=[1], keepdims=0>(r) }",
        "(float[N,M] x, float[N,K] z) => (float[a] y) { p = ReduceMax<axes=[1], keepdims=0>(x)"
        " q = ReduceMax<axes=[1], keepdims=0>(z) y = Max(q, p) }",
        EQUAL,
    ),
    "transposes": (
        "(float[N,M,4] x) => (float[a,b,c] y) { t = Transpose<perm=[1,2,0]>(x)"
        " y = Transpose<perm=[2,0,1]>(t) }",
        "(float[N,M,4] x) => (float[a,b,c] y) { y = Identity(x) }",
        EQUAL,
    ),
    "reshapes": (
        "(float[N,6] x) => (float[a,b] y) <int64[3] s={0,2,3}, int64[2] r={0,-1}>"
        " { t = Reshape(x, s) y = Reshape(t, r) }",
        "(float[N,6] x) => (float[a,b] y) { y = Identity(x) }",
        EQUAL,
    ),
    "reshape of the batch": (
        "(float[N,M,4] x) => (float[a,b,c] y) <int64[2] s={-1,4}>"
        " { k = Shape(x) t = Reshape(x, s) r = Relu(t) y = Reshape(r, k) }",
        "(float[N,M,4] x) => (float[a,b,c] y) { y = Relu(x) }",
        EQUAL,
    ),
    "transpose through an op": (
        "(float[N,4,M] x) => (float[a,b,c] y) { t = Transpose<perm=[0,2,1]>(x)"
        " s = Softmax<axis=-1>(t) y = Transpose<perm=[0,2,1]>(s) }",
        "(float[N,4,M] x) => (float[a,b,c] y) { y = Softmax<axis=1>(x) }",
        EQUAL,
    ),
    "ones in and out": (
        "(float[N,M] x) => (float[a,b] y) <int64[1] k={1}>"
        " { t = Unsqueeze(x, k) u = Abs(t) y = Squeeze(u, k) }",
        "(float[N,M] x) => (float[a,b] y) { y = Abs(x) }",
        EQUAL,
    ),
    "cut and joined": (
        "(float[N,6] x) => (float[a,b] y) <int64[1] z={0}, int64[1] c={2}, int64[1] e={99},"
        " int64[1] k={1}> { p = Slice(x, z, c, k) q = Slice(x, c, e, k)"
        " y = Concat<axis=1>(p, q) }",
        "(float[N,6] x) => (float[a,b] y) { y = Identity(x) }",
        EQUAL,
    ),
    "an Expand that the op repeats": (
        "(float[N,4] x, float[N,1] z) => (float[a,b] y)"
        " { s = Shape(x) e = Expand(z, s) y = Add(x, e) }",
        "(float[N,4] x, float[N,1] z) => (float[a,b] y) { y = Add(x, z) }",
        EQUAL,
    ),
    "neutral numbers": (
        "(float[N,4] x) => (float[a,b] y) <float o={1}, float z={0}>"
        " { t = Mul(x, o) u = Add(z, t) v = Div(u, o) y = Sub(v, z) }",
        "(float[N,4] x) => (float[a,b] y) { y = Identity(x) }",
        EQUAL,
    ),
    "Gemm for MatMul and Add": (
        "(float[N,2] x) => (float[a,b] y) <float[2,3] w={1,2,3,4,5,6}, float[3] c={1,2,3}>"
        " { t = MatMul(x, w) y = Add(t, c) }",
        "(float[N,2] x) => (float[a,b] y) <float[3,2] w={1,4,2,5,3,6}, float[3] c={1,2,3}>"
        " { y = Gemm<transB=1>(x, w, c) }",
        EQUAL,
    ),
    "a mean with and without its axis": (
        "(float[N,M,4] x) => (float[a,b,c] y) { m = ReduceMean<axes=[2], keepdims=0>(x)"
        " s = Shape(x) k = Constant<value_ints=[2]>() u = Unsqueeze(m, k) y = Sub(x, u) }",
        "(float[N,M,4] x) => (float[a,b,c] y) { m = ReduceMean<axes=[-1]>(x) y = Sub(x, m) }",
        EQUAL,
    ),
    "an average over the image": (
        "(float[N,3,H,W] x) => (float[a,b,c,d] y) { y = GlobalAveragePool(x) }",
        "(float[N,3,H,W] x) => (float[a,b,c,d] y) { y = ReduceMean<axes=[2,3]>(x) }",
        EQUAL,
    ),
    "a batch norm in the weights": (
        "(float[N,2,H,W] x) => (float[a,b,c,d] y) <float[2,2,1,1] w={1,2,3,4}, float[2] s={2,4},"
        " float[2] b={1,1}, float[2] m={3,5}, float[2] v={0.25,4}>"
        " { t = Conv(x, w) y = BatchNormalization<epsilon=0.0>(t, s, b, m, v) }",
        "(float[N,2,H,W] x) => (float[a,b,c,d] y) <float[2,2,1,1] w={4,8,6,8}, float[2] b={-11,-9}>"
        " { y = Conv(x, w, b) }",
        ROUNDED,
    ),
    "constants of a sum": (
        "(float[N,2] x) => (float[a,b] y) <float p={0.1}, float[2] q={0.2,0.7}>"
        " { t = Add(x, p) y = Add(q, t) }",
        "(float[N,2] x) => (float[a,b] y) <float[2] q={0.3,0.8}> { y = Add(x, q) }",
        ROUNDED,
    ),
    "a square and a root": (
        "(float[N,4] x) => (float[a,b] y) <float two={2}> { t = Pow(x, two) y = Sqrt(t) }",
        "(float[N,4] x) => (float[a,b] y) { t = Mul(x, x) y = Sqrt(t) }",
        ROUNDED,
    ),
    "a branch that is the same twice": (
        "(float[N,4] x, bool c) => (float[a,b] y) { y = If(c) <then_branch = t () => (float[a,b] p)"
        " { p = Relu(x) }, else_branch = e () => (float[a,b] q) { q = Relu(x) }> }",
        "(float[N,4] x, bool c) => (float[a,b] y) { y = Relu(x) }",
        EQUAL,
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_the_same_for_every_size(name: str) -> None:
    one, other, verdict = SAME[name]
    result = compared(one, other)
    assert [output.verdict for output in result.outputs] == [verdict]
    assert result.ok
    assert len(result.tried) > 1


@pytest.mark.parametrize("name", SAME)
def test_the_other_way_round(name: str) -> None:
    one, other, verdict = SAME[name]
    assert [output.verdict for output in compared(other, one).outputs] == [verdict]


#: Pairs that differ, though their shapes are the same.
APART = {
    "another order of axes": (
        "(float[N,4,4] x) => (float[a,b,c] y) { y = Transpose<perm=[0,2,1]>(x) }",
        "(float[N,4,4] x) => (float[a,b,c] y) { y = Identity(x) }",
    ),
    "a reshape that is no transpose": (
        "(float[N,4,4] x) => (float[a,b,c] y) <int64[3] s={4,-1,4}> { y = Reshape(x, s) }",
        "(float[N,4,4] x) => (float[a,b,c] y) { y = Transpose<perm=[1,0,2]>(x) }",
    ),
    "another axis": (
        "(float[N,4,5] x) => (float[a,b,c] y) { y = Softmax<axis=1>(x) }",
        "(float[N,4,5] x) => (float[a,b,c] y) { y = Softmax<axis=2>(x) }",
    ),
    "a scale that lies along the other axis": (
        "(float[N,3,3] x) => (float[a,b,c] y) <float[3] w={1,2,3}> { y = Mul(x, w) }",
        "(float[N,3,3] x) => (float[a,b,c] y) <float[3,1] w={1,2,3}> { y = Mul(x, w) }",
    ),
    "halves in the other order": (
        "(float[N,4] x) => (float[a,b] y) { p, q = Split<axis=1>(x) y = Concat<axis=1>(q, p) }",
        "(float[N,4] x) => (float[a,b] y) { y = Identity(x) }",
    ),
    "what only small numbers show": (
        "(float[N,4] x) => (float[a,b] y) <float e={0.00000001}>"
        " { r = Relu(x) t = Add(r, e) y = Log(t) }",
        "(float[N,4] x) => (float[a,b] y) { r = Relu(x) y = Log(r) }",
    ),
}


@pytest.mark.parametrize("name", APART)
def test_a_run_shows_the_difference(name: str) -> None:
    result = compared(*APART[name])
    (output,) = result.outputs
    assert output.verdict is DIFFERENT
    assert not result.ok
    assert output.difference is not None
    assert output.difference.error > 1e-3
    ours, theirs = result.arrays["output y"], result.arrays["other y"]
    assert ours.shape != theirs.shape or not np.allclose(ours, theirs, equal_nan=True)


def test_the_difference_begins_at_a_node() -> None:
    """The nodes before it are the same, and those after it follow from it."""
    one = "(float[N,4] x) => (float[a,b] y) { t = Relu(x) u = Exp(t) v = Neg(u) y = Abs(v) }"
    result = compared(one, one.replace("Exp", "Sigmoid"))
    region = result.outputs[0].region
    assert region is not None
    assert region.begins == ("t",)
    assert region.count == 1
    assert region.first == ("Exp_1",)


def test_a_model_that_takes_fewer_sizes() -> None:
    """x of (1, 4) is stretched, too; a file that fixes 3 rows refuses it."""
    text = "(float[N,4] x) => (float[3,4] y) <int64[2] s={3,4}> { y = Expand(x, s) }"
    result = compared(text, text.replace("[N,4]", "[3,4]"))
    assert result.narrower is not None
    assert result.narrower.sizes == {"N": 1}
    assert [output.verdict for output in result.outputs] == [EQUAL]
    assert result.verdict is DIFFERENT


def test_a_model_that_takes_more_sizes() -> None:
    text = "(float[N,4] x) => (float[a,b] y) { y = Relu(x) }"
    result = compared(text.replace("[N,4]", "[3,4]"), text)
    assert result.ok
    assert "x[0]=3" in result.only_theirs


def test_what_is_not_proven_and_does_not_differ_is_undecided() -> None:
    """The order of a sum's terms is not followed into a cumulative sum."""
    one = (
        "(float[N,4] x) => (float[a,b] y) <int64 k={1}>"
        " { t = CumSum(x, k) u = Sin(t) v = Cos(t) p = Mul(u, u) q = Mul(v, v) y = Add(p, q) }"
    )
    other = (
        "(float[N,4] x) => (float[a,b] y) <float o={1}> { t = Abs(x) z = Sub(t, t) y = Add(z, o) }"
    )
    result = compared(one, other)
    assert result.verdict is Sameness.UNDECIDED
    assert not result.ok
    assert result.outputs[0].region is not None
    assert result.outputs[0].region.why


def test_models_of_other_inputs_are_refused() -> None:
    one = "(float[N,4] x) => (float[a,b] y) { y = Relu(x) }"
    with pytest.raises(zs.ModelError, match=r"5.*4|4.*5"):
        compared(one, one.replace("[N,4]", "[N,5]"))
    with pytest.raises(zs.ModelError, match="axes"):
        compared(one, one.replace("[N,4]", "[N,4,4]"))


def test_random_numbers_of_two_nodes_are_not_equal() -> None:
    """Asked for the same distribution, two nodes draw other numbers."""
    text = (
        "(float[N,4] x) => (float[a,b] y) { p = RandomUniformLike(x) q = RandomUniformLike(x)"
        " y = Sub(p, q) }"
    )
    other = "(float[N,4] x) => (float[a,b] y) { p = RandomUniformLike(x) y = Sub(p, p) }"
    assert compared(text, other).verdict is not EQUAL


def test_the_command(tmp_path: Path) -> None:
    one, other, _ = SAME["transposes"]
    wrong = APART["another order of axes"][0]
    files = [tmp_path / f"{name}.onnx" for name in ("one", "other", "wrong")]
    for file, text in zip(files, (one, other, wrong), strict=True):
        onnx.save(model(text), file)
    command = [sys.executable, "-m", "zerostride", "equivalent"]
    done = subprocess.run([*command, *files[:2]], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "EQUAL  y: equal for every size" in done.stdout
    witness = tmp_path / "witness.npz"
    words = [*command, files[2], files[2], "--json", "--witness", witness]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert json.loads(done.stdout)["equivalence"]["verdict"] == "equal"
    assert not witness.exists()
    onnx.save(model(APART["another order of axes"][1]), files[1])
    words = [*command, files[2], files[1], "--witness", witness]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "DIFFERENT  y" in done.stdout
    assert sorted(np.load(witness)) == ["input x", "other y", "output y"]


def test_an_output_is_never_left_out() -> None:
    one = "(float[N,4] x) => (float[a,b] y, float[a,b] z) { y = Relu(x) z = Abs(x) }"
    other = "(float[N,4] x) => (float[a,b] y) { y = Relu(x) }"
    for pair in ((one, other), (other, one)):
        with pytest.raises(zs.ModelError, match="outputs of"):
            compared(*pair)


def test_an_input_that_nothing_reads_may_be_left_out() -> None:
    one = "(float[N,4] x, float[N] z) => (float[a,b] y) { y = Relu(x) }"
    other = "(float[N,4] x) => (float[a,b] y) { y = Relu(x) }"
    assert compared(one, other).ok
    with pytest.raises(zs.ModelError, match="inputs of"):
        compared(other, one)


def test_sizes_are_tried_for_each_way_in_which_the_condition_holds() -> None:
    """A gain along the rows is one along the columns for one row, not for 4 rows of 4."""
    one = "(float[N,4] x, float[N] g) => (float[a,b] y) { y = Mul(x, g) }"
    other = (
        "(float[N,4] x, float[N] g) => (float[a,b] y) <int64[1] k={1}>"
        " { u = Unsqueeze(g, k) y = Mul(x, u) }"
    )
    result = compared(one, other)
    assert {"N": 4} in result.tried
    assert result.outputs[0].verdict is DIFFERENT


@pytest.mark.parametrize("op", ["Concat<axis=0>", "Add", "Mul", "Max"])
def test_operands_that_double_forty_times_end(op: str) -> None:
    """As one sum of all of them it would have 2**40 operands."""
    lines = [f"t{k + 1} = {op}(t{k}, t{k})" for k in range(40)]
    body = f"t0 = Relu(x) {' '.join(lines)} y = ReduceMax<axes=[0]>(t40)"
    text = f"(float[N] x) => (float[a] y) {{ {body} }}"
    result = compared(text, text)
    assert result.outputs[0].verdict in (EQUAL, ROUNDED)


def test_facts_hold_in_every_run() -> None:
    text = "(float[N,4] x) => (float[a,b] y) { y = Relu(x) }"
    result = zs.equivalent(model(text), model(text), facts="N >= 5").equivalence
    assert result is not None
    assert result.condition == "N >= 5"
    assert result.tried
    assert all(sizes["N"] >= 5 for sizes in result.tried)


def test_constants_that_an_op_does_not_take_are_no_fault() -> None:
    """NumPy does not subtract truth values; the node fails where it runs."""
    text = (
        "(float[N] x) => (float[a] y) <bool[2] p={1,0}, bool[2] q={1,1}> "
        "{ d = Sub(p, q) f = Cast<to=1>(d) y = Mul(x, f) }"
    )
    result = compared(text, text)
    assert result.verdict is not DIFFERENT
