"""Attention that is written out is recognised, and its nodes say their parts."""

from __future__ import annotations

from pathlib import Path

import pytest

import zerostride as zs
from zerostride.models.formats import read_model
from zerostride.models.onnx_ops.attention_patterns import attention_roles, written_attentions

onnx = pytest.importorskip("onnx", reason="it writes the models")

HEAD = """
<ir_version: 10, opset_import: ["" : 20]>
g (float[2,4,6,8] q, float[2,2,6,8] k, float[2,2,6,8] v, {mask} m) => (float[2,4,6,8] y)
<int64[5] five = {{2,2,2,6,8}}, int64[4] four = {{2,4,6,8}}, int64[1] two = {{2}},
 float scale = {{0.5}}, float low = {{-1e9}}>
{{
"""
HEADS = """
k5 = Unsqueeze (k, two)
k6 = Expand (k5, five)
k4 = Reshape (k6, four)
v5 = Unsqueeze (v, two)
v6 = Expand (v5, five)
v4 = Reshape (v6, four)
t = Transpose <perm = [0,1,3,2]> (k4)
s = MatMul (q, t)
"""


def file_of(folder: Path, mask: str, body: str) -> Path:
    """A model with named nodes."""
    model = onnx.parser.parse_model(HEAD.format(mask=mask) + body + "}")
    for node in model.graph.node:
        node.name = node.output[0]
    onnx.save(model, folder / "m.onnx")
    return folder / "m.onnx"


@pytest.mark.parametrize(
    ("mask", "ways", "node", "role"),
    [
        ("float[6,6]", "a = Mul (s, scale)\nb = Add (a, m)\n", "b", "it adds its mask of (6,6)"),
        (
            "bool[2,1,1,6]",
            "a = Div (s, scale)\nb = Where (m, a, low)\n",
            "b",
            "it chooses by its mask of (2,1,1,6)",
        ),
    ],
)
def test_the_parts_of_an_attention_are_named(
    mask: str, ways: str, node: str, role: str, tmp_path: Path
) -> None:
    end = "w = Softmax <axis = -1> (b)\ny = MatMul (w, v4)\n"
    file = file_of(tmp_path, mask, HEADS + ways + end)
    roles = attention_roles(read_model(file))
    assert roles == {
        "s": "in the attention of 'w': it computes its scores, query by key",
        node: f"in the attention of 'w': {role}",
        "k6": "in the attention of 'w': it repeats each key head for 2 query heads",
        "v6": "in the attention of 'w': it repeats each value head for 2 query heads",
        "y": "in the attention of 'w': it multiplies its weights by the values",
    }
    finding = next(f for f in zs.audit(file, "ncnn").findings if f.node == "k6")
    assert finding.notes[-1] == roles["k6"]


#: Scores by key head and group, as models reshape queries: (sample, key head, group, query, key).
GROUPED = """
q5 = Reshape (q, five)
k5 = Unsqueeze (k, two)
v5 = Unsqueeze (v, two)
t = Transpose <perm = [0,1,2,4,3]> (k5)
s = MatMul (q5, t)
b = Add (s, m)
w = Softmax <axis = -1> (b)
z = MatMul (w, v5)
y = Reshape (z, four)
"""


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        ("float[6,6]", "(6,6)"),
        ("float[1,1,6,6]", "(1,1,6,6)"),
        ("float[2,6,6]", "(2,6,6), whose first axis lies on the query heads of a key head; "),
        ("float[2,1,6,6]", "(2,1,6,6), whose first axis lies on the key heads; "),
        ("float[2,1,1,6,6]", "(2,1,1,6,6)"),
    ],
)
def test_a_mask_for_each_sample_that_meets_the_heads_is_named(
    mask: str, words: str, tmp_path: Path
) -> None:
    """Silent where there are as many: https://github.com/ml-explore/mlx-lm/pull/1903."""
    file = file_of(tmp_path, mask, GROUPED)
    role = attention_roles(read_model(file))["b"]
    assert f"adds its mask of {words}" in f"{role}; "
    assert ("as many samples" in role) == ("lies" in words)


def test_a_softmax_without_two_products_is_no_attention(tmp_path: Path) -> None:
    only_before = "w = Softmax <axis = -1> (s)\nz = MatMul (v4, k4)\ny = Add (z, w)\n"
    only_after = "w = Softmax <axis = -1> (q)\nz = Add (t, m)\ny = MatMul (w, z)\n"
    as_values = "w = Softmax <axis = -1> (s)\ny = MatMul (q, w)\n"
    for body in (only_before, only_after, as_values):
        graph = read_model(file_of(tmp_path, "float[1]", HEADS + body))
        assert not list(written_attentions(graph)), body
