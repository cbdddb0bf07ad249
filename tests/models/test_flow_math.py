"""Rows of ops that combine tensors and move windows, compared with the reference evaluator."""

from __future__ import annotations

import numpy as np
import pytest
from bound import NC, NCH, Case, flowing, ints, judge, model, needs, node, shapes

from zerostride.models.flow.answers import ask
from zerostride.models.onnx_ops.sizes.facts import Fact, OpCall
from zerostride.models.onnx_ops.table import OPS
from zerostride.sizes.dim import Dim

UNARY = "Identity Neg Abs Floor Ceil Sign Relu Sigmoid Exp Tanh Erf Sqrt IsNaN"
ELEMENTWISE = [
    *(
        Case(
            node(op, "x z"),
            {"x": ("N", 1, 4), "z": ("M", 4)},
            "N, M, 4",
            kinds=dict.fromkeys("xz", kind),
        )
        for kind, ops in (
            ("float", "Add Sub Mul Div Pow Max Min Sum Equal Less Greater LessOrEqual"),
            ("float", "GreaterOrEqual"),
            ("bool", "And Or Xor"),
            ("int", "BitwiseAnd BitwiseOr BitwiseXor"),
        )
        for op in ops.split()
    ),
    Case(node("Add", "x z"), {"x": ("N", "C"), "z": ("C",)}, "N, C"),
    Case(
        node("Add", "x z"),
        {"x": ("N", 3), "z": ("M", 3)},
        "bcast(M, N), 3",
        ("M == N or N == 1 or M == 1",),
    ),
    Case(node("Add", "x z"), {"x": ("N",), "z": (4,)}, "4", ("N == 4 or N == 1",)),
    Case(
        node("Where", "c x z"),
        {"c": ("N", 1), "x": ("C",), "z": (1,)},
        "N, C",
        kinds={"c": "bool"},
    ),
    *(Case(node(op, "x"), NC, "N, C") for op in UNARY.split()),
    Case(node("Not", "x"), NC, "N, C", kinds={"x": "bool"}),
    Case(node("Cast", "x", to=7), NC, "N, C"),
    Case(node("Dropout", "x", "y z"), NC, "N, C"),
    Case(node("Softmax", "x", axis=-1), {"x": ("N", 3)}, "N, 3"),
    Case(node("CumSum", "x a"), NC, "N, C", (), {"a": np.array(0)}),
    Case(node("Trilu", "x"), NCH, "N, C, H", run=False),
    Case(node("Clip", "x a b"), NC, "N, C", (), {"a": np.float32(0), "b": np.float32(6)}),
    Case(
        node("PRelu", "x z"),
        {"x": ("N", "C"), "z": ("D",)},
        "N, C",
        ("C == D or D == 1",),
        strict=False,
    ),
    Case(node("MatMul", "x z"), {"x": ("N", "K"), "z": ("L", "M")}, "N, M", ("K == L",)),
    Case(
        node("MatMul", "x z"),
        {"x": ("A", 1, 2, "K"), "z": ("B", "K", "M")},
        "A, B, 2, M",
    ),
    Case(node("MatMul", "x z"), {"x": ("K",), "z": ("A", "K", "M")}, "A, M"),
    Case(node("MatMul", "x z"), {"x": ("A", "N", "K"), "z": ("K",)}, "A, N"),
    Case(
        node("Gemm", "x z c", transA=1),
        {"x": ("K", "N"), "z": ("K", "M"), "c": ("B",)},
        "N, M",
        ("B == M or B == 1",),
    ),
    Case(
        node("Einsum", "x z", equation="bij,bjk->bik"),
        {"x": ("N", 2, 3), "z": ("N", 3, "K")},
        "N, 2, K",
    ),
    Case(node("Einsum", "x z", equation="...i,...i->..."), {"x": ("N", 3), "z": (3,)}, "N"),
    Case(node("Shape", "x", start=1), NCH, "2"),
    Case(node("Size", "x"), NC, ""),
    Case(
        node("LayerNormalization", "x s", "y m v", axis=1),
        {"x": ("N", 3)},
        "N, 3",
        (),
        {"s": np.ones(3, np.float32)},
    ),
    Case(
        node("BatchNormalization", "x s b m v"),
        {"x": ("N", "C", "H")},
        "N, C, H",
        ("C == 3",),
        {k: np.ones(3, np.float32) for k in "sbmv"},
        strict=False,
    ),
    Case(
        node("InstanceNormalization", "x s b"),
        {"x": ("N", 3, "H")},
        "N, 3, H",
        (),
        {k: np.ones(3, np.float32) for k in "sb"},
    ),
    Case(
        node("GroupNormalization", "x s b", num_groups=2),
        {"x": ("N", 4, "H")},
        "N, 4, H",
        (),
        {k: np.ones(4, np.float32) for k in "sb"},
        run=False,
    ),
]
IMAGE = {"x": ("N", 3, "H", "W")}
KERNEL = {"w": np.ones((8, 3, 3, 3), np.float32)}
WINDOWS = [
    Case(
        node("Conv", "x w"), IMAGE, "N, 8, H - 2, W - 2", ("H >= 3", "W >= 3"), KERNEL, strict=False
    ),
    Case(
        node("Conv", "x w", strides=[2, 2], pads=[1, 1, 1, 1]),
        IMAGE,
        "N, 8, (H + 1) // 2, (W + 1) // 2",
        ("H >= 1", "W >= 1"),
        KERNEL,
        strict=False,
    ),
    Case(
        node("Conv", "x w", strides=[2, 1], auto_pad="SAME_UPPER"),
        IMAGE,
        "N, 8, (H + 1) // 2, W",
        (),
        KERNEL,
        run=False,
    ),
    Case(
        node("Conv", "x w", dilations=[2, 2]),
        {"x": ("N", "C", "H", 9)},
        "N, 8, H - 4, 5",
        ("C == 3", "H >= 5"),
        KERNEL,
        strict=False,
    ),
    Case(
        node("ConvTranspose", "x w", strides=[2, 2]),
        {"x": ("N", 8, "H", 4)},
        "N, 3, 2*H + 1, 9",
        (),
        KERNEL,
        run=False,
    ),
    Case(
        node("MaxPool", "x", kernel_shape=[2, 2], strides=[2, 2]),
        IMAGE,
        "N, 3, H // 2, W // 2",
        ("H >= 2", "W >= 2"),
        strict=False,
    ),
    Case(
        node("MaxPool", "x", kernel_shape=[3], strides=[2], ceil_mode=1),
        {"x": ("N", 3, "H")},
        "N, 3, H // 2",
        ("H >= 2",),
        strict=False,
    ),
    Case(
        node("AveragePool", "x", kernel_shape=[3], pads=[1, 1], strides=[2], ceil_mode=1),
        {"x": ("N", 3, "H")},
        "N, 3, (H // 2) + 1",
        strict=False,
        least=1,
    ),
    Case(node("GlobalAveragePool", "x"), {"x": (1, 3, "H", 2)}, "1, 3, 1, 1", run=False),
    Case(
        node("Resize", "x - s", mode="nearest"),
        IMAGE,
        "N, 3, 2*H, 3*W // 2",
        (),
        {"s": np.array([1, 1, 2, 1.5], np.float32)},
        run=False,
    ),
    Case(
        node("Resize", "x - - s", mode="nearest"),
        IMAGE,
        "2, 3, 8, 8",
        (),
        {"s": ints(2, 3, 8, 8)},
        run=False,
    ),
    Case(
        node("Upsample", "x s"),
        IMAGE,
        "N, 3, 2*H, 2*W",
        (),
        {"s": np.array([1, 1, 2, 2], np.float32)},
        opset=9,
        run=False,
    ),
    Case(
        node("LSTM", "x w r", "y h c", hidden_size=4, direction="bidirectional"),
        {"x": ("T", "N", 3)},
        "T, 2, N, 4",
        (),
        {"w": np.ones((2, 16, 3), np.float32), "r": np.ones((2, 16, 4), np.float32)},
        run=False,
    ),
    Case(
        node("GRU", "x w r", "y h", layout=1),
        {"x": ("N", "T", 3)},
        "N, T, 1, 4",
        (),
        {"w": np.ones((1, 12, 3), np.float32), "r": np.ones((1, 12, 4), np.float32)},
        run=False,
    ),
    Case(
        node("GridSample", "x g"),
        {"x": ("N", "C", 4, 4), "g": ("M", "H", "W", 2)},
        "N, C, H, W",
        ("M == N",),
        strict=False,
        run=False,
    ),
]
EVERY = [*ELEMENTWISE, *WINDOWS]


@pytest.mark.parametrize("case", EVERY, ids=[f"{k}-{c.node.op_type}" for k, c in enumerate(EVERY)])
def test_row_infers_its_cases(case: Case) -> None:
    judge(case)


SAME = (
    "LeakyRelu Elu Selu Celu Gelu Mish ThresholdedRelu HardSigmoid HardSwish Swish Softplus "
    "Softsign Reciprocal Log Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh Round "
    "IsInf BitwiseNot Shrink LRN BitCast Sqrt IsNaN EyeLike RandomNormalLike Bernoulli Hardmax"
)


@pytest.mark.parametrize("op", [name for name, row in sorted(OPS.items()) if row.sizes is not None])
def test_no_row_raises(op: str) -> None:
    # Whatever an operand is, a row has an answer: of ranks, or that it has none.
    for count in range(5):
        for rank in (None, 0, 1, 3, 4):
            fact = Fact(None if rank is None else tuple(map(Dim, "NCHW"[:rank])))
            answer = ask(OpCall(op, "", 21, (fact,) * count, {}, 2))
            assert len(answer.facts) == 2
            assert not any("object has no attribute" in note for note in answer.notes)


#: Attributes that an op must have.
NEEDED: dict[str, dict[str, int]] = {"LRN": {"size": 3}, "BitCast": {"to": 1}}


@pytest.mark.parametrize("op", SAME.split())
def test_unary_ops_keep_the_shape(op: str) -> None:
    flow = flowing(model([node(op, "x", **NEEDED.get(op, {}))], {"x": ("N", None)}))
    assert (shapes(flow)["y"], needs(flow)) == ("N, ?", [])
