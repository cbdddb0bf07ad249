"""The same op in files of two op sets."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

import zerostride as zs
from zerostride.models.equivalence import Sameness
from zerostride.models.equivalent.reading.opsets import document

OPS = {
    "LSTM": (
        "(float[T,B,2] x, float[1,12,2] w, float[1,12,3] r) => (float[T,1,B,3] o)"
        " {{ o = LSTM<hidden_size=3>(x,w,r) }}"
    ),
    "TopK": (
        "(float[N,4] x) => (float[N,K] o, int64[N,K] p) <int64[1] k={{2}}> {{ o, p = TopK(x,k) }}"
    ),
    "GatherND": ("(float[N,4] x, int64[M,1] i) => (float[M,4] o) {{ o = GatherND(x,i) }}"),
    "NonZero": "(float[N,4] x) => (int64[2,K] o) {{ o = NonZero(x) }}",
    "ScatterND": (
        "(float[N,4] x, int64[M,1] i, float[M,4] u) => (float[N,4] o) {{ o = ScatterND(x,i,u) }}"
    ),
}


def model(text: str, version: int) -> onnx.ModelProto:
    head = f'<ir_version: 8, opset_import: ["" : {version}]> g '
    return parser.parse_model(head + text.replace("{{", "{").replace("}}", "}"))


def verdict(first: onnx.ModelProto, second: onnx.ModelProto) -> Sameness:
    report = zs.equivalent(first, second)
    assert report.equivalence is not None
    return report.equivalence.verdict


@pytest.mark.parametrize("op", OPS)
def test_an_attribute_more_is_the_same_op(op: str) -> None:
    assert verdict(model(OPS[op], 12), model(OPS[op], 18)) == "equal"


def test_boxes_that_move_by_half_a_pixel_are_not_the_same() -> None:
    text = (
        "(float[N,1,6,6] x, float[M,4] r, int64[M] b) => (float[M,1,2,2] o)"
        " { o = RoiAlign<output_height=2,output_width=2>(x,r,b) }"
    )
    assert verdict(model(text, 12), model(text, 16)) != "equal"


def test_documents_are_the_same_from_a_version_on() -> None:
    assert document("LSTM", "", 7)[1] == document("LSTM", "", 22)[1] == 7
    assert document("LSTM", "", 7)[0]["layout"] == 0
    assert document("RoiAlign", "", 10)[1] == 10
    assert document("RoiAlign", "", 16)[1] == document("RoiAlign", "", 22)[1] == 16
    assert document("Softmax", "", 11)[1] < document("Softmax", "", 13)[1] == 13
    assert document("NoSuchOp", "", 13) == ({}, 0)
    assert document("LSTM", "com.example", 13) == ({}, 0)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [(0.0, None, True), (1.0, None, False), (0.0, 1.0, False)],
)
def test_a_state_of_zeros_is_a_state_left_out(
    first: float, second: float | None, same: bool
) -> None:
    one, other = (_network(value) for value in (first, second))
    assert (verdict(one, other) == "equal") is same


def _network(state: float | None) -> onnx.ModelProto:
    """A recurrent network of two directions with a first state, or none."""
    network = model(
        "(float[T,1,2] x, float[2,12,2] w, float[2,12,3] r) => (float[T,2,1,3] o)"
        ' { o = LSTM<hidden_size=3, direction="bidirectional">(x,w,r,b,,h) }',
        14,
    )
    bias = np.zeros((2, 24), np.float32)
    start = None if state is None else np.full((2, 1, 3), state, np.float32)
    for name, array in (("b", bias), ("h", start)):
        if array is not None:
            network.graph.initializer.append(numpy_helper.from_array(array, name))
    if state is None:
        del network.graph.node[0].input[3:]
        del network.graph.initializer[:]
    return network
