"""Models whose branches depend on sizes, compared in each case of sizes."""

from __future__ import annotations

import pytest
from onnx import parser

import zerostride as zs
from zerostride.models.equivalence import Equivalence, Sameness
from zerostride.models.flow import flow
from zerostride.models.formats.model_file import model_file
from zerostride.models.options import ModelOptions

HEAD = '<ir_version: 8, opset_import: ["" : 17]> g '
#: A row or a matrix: the exporter of PyTorch writes squeeze so.
SQUEEZED = (
    "(float[N,T] x) => (float[] y) <int64 one={{1}}, int64 axis={{1}}, int64[1] axes={{1}}> {{"
    " s = Shape(x) t = Gather(s, axis) c = Equal(t, one) z = If(c) <"
    " then_branch = a () => (float[] p) {{ p = Squeeze(x, axes) }},"
    " else_branch = b () => (float[] q) {{ q = Identity(x) }} > {} }}"
)


def compared(one: str, other: str) -> Equivalence:
    first, second = (parser.parse_model(HEAD + text) for text in (one, other))
    result = zs.equivalent(first, second).equivalence
    assert result is not None
    return result


def test_ranks_are_known_in_each_case() -> None:
    """The rank of the result is 1 or 2, so that Shape of it is another tensor in each case."""
    one = SQUEEZED.format("u = Neg(z) n = Shape(u) v = Expand(u, n) y = Abs(v)")
    other = SQUEEZED.format("u = Neg(z) y = Abs(u)")
    assert compared(one, other).verdict is Sameness.EQUAL


def test_a_difference_in_one_case_is_seen() -> None:
    one = SQUEEZED.format("y = Neg(z)")
    other = one.replace("q = Identity(x)", "q = Abs(x)")
    result = compared(one, other)
    assert result.verdict is Sameness.DIFFERENT
    difference = result.outputs[0].difference
    assert difference is not None
    assert difference.sizes["T"] != 1
    swapped = one.replace("p = Squeeze(x, axes)", "a = Abs(x) p = Squeeze(a, axes)")
    result = compared(one, swapped)
    difference = result.outputs[0].difference
    assert difference is not None
    assert difference.sizes["T"] == 1


def test_a_case_in_which_both_fail_is_none() -> None:
    """A matrix times x has no meaning if x was squeezed to too few axes."""
    tail = "u = Transpose<perm=[1,0]>(z) y = {}(u)"
    one, other = (SQUEEZED.format(tail.format(op)) for op in ("Neg", "Abs"))
    assert compared(one, one).verdict is Sameness.EQUAL
    assert compared(one, other).verdict is Sameness.DIFFERENT


@pytest.mark.parametrize(
    ("words", "branches"),
    [
        ("c = Equal(t, one)", ["T == 1"]),
        ("d = Equal(t, one) c = Not(d)", ["T != 1"]),
        ("c = Less(t, one)", []),  # T is at least 1 where the other operand needs it
        ("d = Greater(t, one) e = Cast<to=7>(d) c = Cast<to=9>(e)", ["T >= 2"]),
        ("d = Greater(t, one) e = Less(t, five) c = And(d, e)", ["2 <= T <= 4"]),
    ],
)
def test_the_flow_knows_which_sizes_decide(words: str, branches: list[str]) -> None:
    text = (
        "(float[N,T] x) => (float[] y) <int64 one={1}, int64 five={5}, int64 axis={1},"
        f" int64[1] first={{0}}> {{ f = Gather<axis=1>(x, first) s = Shape(x) t = Gather(s, axis)"
        f" {words} y = If(c) < then_branch = a () => (float[] p) {{ p = Neg(x) }},"
        " else_branch = b () => (float[] q) { q = Identity(x) } > }"
    )
    with model_file(parser.parse_model(HEAD + text)) as file:
        found = flow(ModelOptions().read(file.path)).branches
    assert [str(branch) for branch in found] == branches


def test_a_known_branch_is_taken() -> None:
    """Facts decide the condition, and the result has the rank of the branch."""
    text = SQUEEZED.format("y = Neg(z)")
    with model_file(parser.parse_model(HEAD + text)) as file:
        for fact, rank in (("T == 1", 1), ("T >= 2", 2)):
            options = ModelOptions(facts=zs.Condition.parse(fact))
            graph = options.read(file.path)
            sizes = flow(graph, given=options.premises())
            shape = sizes.shape_of(graph.outputs[0])
            assert shape is not None
            assert len(shape) == rank
            assert not sizes.branches


def test_a_truth_that_a_loop_changes_decides_nothing() -> None:
    """The number is 0 in the first pass alone, so that the branch is not known."""
    text = (
        "(float[N] x) => (float[N] y) <int64 n={3}, bool t={1}, int64 zero={0}, int64 one={1},"
        " int64[1] axes={0}> { z, y = Loop(n, t, zero, x) < body = b (int64 i, bool k, int64 v,"
        " float[N] c) => (bool d, int64 w, float[N] o) { d = Identity(k) w = Add(v, one)"
        " e = Equal(v, zero) r = If(e) < then_branch = p () => (float[] q)"
        " { q = Unsqueeze(c, axes) }, else_branch = s () => (float[] u) { u = Identity(c) } >"
        " o = Reshape(r, last) } > }"
    ).replace("int64[1] axes", "int64[1] last={-1}, int64[1] axes")
    with model_file(parser.parse_model(HEAD + text)) as file:
        graph = ModelOptions().read(file.path)
        sizes = flow(graph)
    (branch,) = (node for node in graph.nodes if node.op == "If")
    assert sizes.shape_of(branch.outputs[0]) is None
