"""Rows of ops that move and pick elements, compared with the reference evaluator."""

from __future__ import annotations

import numpy as np
import pytest
from bound import NC, NCH, NCHW, Case, N, far, ints, judge, node

REDUCTIONS = ["Sum", "Mean", "Prod", "Max", "Min", "L1", "L2", "LogSum", "LogSumExp", "SumSquare"]
MOVEMENT = [
    Case(node("Reshape", "x t"), NCH, "N, C*H", ("N >= 1",), {"t": ints(0, -1)}, strict=False),
    Case(node("Reshape", "x t"), NCH, "C*H*N", (), {"t": ints(-1)}),
    Case(node("Reshape", "x t"), NC, "2, C*N // 2", ("C*N % 2 == 0",), {"t": ints(2, -1)}),
    Case(
        node("Reshape", "x t"),
        NC,
        "N, C // 4, 4",
        ("N >= 1", "C % 4 == 0"),
        {"t": ints(0, -1, 4)},
        strict=False,
    ),
    Case(node("Reshape", "x t"), NC, "4, 3", ("C*N == 12",), {"t": ints(4, 3)}),
    Case(node("Reshape", "x t", allowzero=1), NC, "0, 3", ("C*N == 0",), {"t": ints(0, 3)}),
    Case(node("Flatten", "x", axis=2), NCHW, "C*N, H*W", least=1),
    Case(node("Flatten", "x", axis=-1), NCH, "C*N, H", least=1),
    Case(node("Flatten", "x", axis=0), NC, "1, C*N"),
    Case(node("Squeeze", "x a"), NCH, "C, H", ("N == 1",), {"a": ints(0)}),
    Case(node("Squeeze", "x", axes=[-1]), NC, "N", ("C == 1",), opset=11),
    Case(node("Squeeze", "x"), {"x": (1, 3, 1)}, "3"),
    Case(node("Unsqueeze", "x a"), NC, "1, N, C, 1", (), {"a": ints(0, -1)}),
    Case(node("Unsqueeze", "x", axes=[1]), NC, "N, 1, C", opset=11),
    Case(node("Transpose", "x", perm=[2, 0, 1]), NCH, "H, N, C"),
    Case(node("Transpose", "x"), NCH, "H, C, N"),
    Case(
        node("Concat", "x z", axis=1),
        {"x": ("N", "C"), "z": ("M", "D")},
        "N, C + D",
        ("M == N",),
    ),
    Case(node("Concat", "x z", axis=-1), {"x": ("N", 3), "z": (2, 4)}, "2, 7", ("N == 2",)),
    Case(node("Split", "x s", "y z"), N, "2", ("N == 4",), {"s": ints(2, 2)}, strict=False),
    Case(node("Split", "x", "y z", axis=1, num_outputs=2), NC, "N, (C + 1) // 2", ()),
    Case(node("Split", "x", "y z"), N, "N // 2", ("N % 2 == 0",), opset=13, strict=False),
    Case(node("Tile", "x r"), NC, "2*N, 3*C", (), {"r": ints(2, 3)}),
    Case(node("Pad", "x p"), NC, "N + 3, C", (), {"p": ints(1, 0, 2, 0)}),
    Case(node("Pad", "x p"), N, "N - 1", ("N >= 1",), {"p": ints(-1, 0)}, run=False),
    Case(node("Pad", "x p - a"), NC, "N, C + 3", (), {"p": ints(1, 2), "a": ints(-1)}),
    Case(
        node("DepthToSpace", "x", blocksize=2),
        NCHW,
        "N, C // 4, 2*H, 2*W",
        ("C % 4 == 0",),
        strict=False,
    ),
    Case(
        node("SpaceToDepth", "x", blocksize=2),
        {"x": ("N", "C", "H", 4)},
        "N, 4*C, H // 2, 2",
        ("H % 2 == 0",),
        strict=False,
    ),
    Case(node("Expand", "x t"), NC, "2, N, 3", ("C == 3 or C == 1",), {"t": ints(2, 1, 3)}),
]

INDEXING = [
    Case(node("Slice", "x s e"), NC, "max(0, N - 1), C", (), {"s": ints(1), "e": ints(far)}),
    Case(node("Slice", "x s e"), N, "min(2, N)", (), {"s": ints(-2), "e": ints(far)}),
    Case(node("Slice", "x s e"), N, "min(3, N)", (), {"s": ints(0), "e": ints(3)}),
    Case(node("Slice", "x s e"), N, "max(0, N - 1)", (), {"s": ints(0), "e": ints(-1)}),
    Case(node("Slice", "x s e"), N, "max(0, N - 3)", (), {"s": ints(1), "e": ints(-2)}),
    Case(node("Slice", "x s e"), N, "max(0, min(4, N) - 1)", (), {"s": ints(1), "e": ints(4)}),
    Case(node("Slice", "x s e"), N, "min(2, max(0, N - 1))", (), {"s": ints(-3), "e": ints(-1)}),
    Case(node("Slice", "x s e"), N, "0", (), {"s": ints(3), "e": ints(2)}),
    Case(
        node("Slice", "x s e"),
        N,
        "max(-max(0, N - 2) + min(4, N), 0)",
        (),
        {"s": ints(-2), "e": ints(4)},
    ),
    Case(
        node("Slice", "x s e a t"),
        NC,
        "N, (C + 1) // 2",
        (),
        {"s": ints(0), "e": ints(far), "a": ints(-1), "t": ints(2)},
    ),
    Case(
        node("Slice", "x s e a t"),
        NC,
        "N, C",
        (),
        {"s": ints(-1), "e": ints(-far), "a": ints(1), "t": ints(-1)},
    ),
    Case(node("Slice", "x", starts=[1], ends=[far], axes=[1]), NC, "N, max(0, C - 1)", opset=9),
    Case(
        node("Gather", "x i", axis=1),
        {"x": ("N", 3, "H"), "i": ("K", "L")},
        "N, K, L, H",
        kinds={"i": "int"},
    ),
    Case(node("Gather", "x i", axis=-1), {"x": ("N", 3)}, "N", (), {"i": np.array(1)}),
    Case(
        node("GatherND", "x i", batch_dims=1),
        {"x": ("N", 3, "H"), "i": ("M", 1)},
        "M, H",
        ("M == N",),
        kinds={"i": "int"},
        strict=False,
    ),
    Case(
        node("GatherElements", "x i", axis=1),
        {"x": (3, 3), "i": (3, "K")},
        "3, K",
        kinds={"i": "int"},
    ),
    Case(
        node("ScatterElements", "x i u"),
        {"x": (3, "C"), "i": (2, "D"), "u": (2, "E")},
        "3, C",
        ("D == E",),
        kinds={"i": "int"},
        run=False,
    ),
    Case(
        node("ScatterND", "x i u"),
        {"x": (3, "C"), "i": ("K", 1), "u": ("L", "D")},
        "3, C",
        ("K == L", "C == D"),
        kinds={"i": "int"},
        strict=False,
    ),
    Case(
        node("Compress", "x c", axis=1), {"x": ("N", 3), "c": (3,)}, "N, 0..3", kinds={"c": "bool"}
    ),
    Case(node("NonZero", "x"), NC, "2, ?"),
    Case(
        node("OneHot", "x d v", axis=-1),
        N,
        "N, 5",
        (),
        {"d": ints(5), "v": ints(0, 1)},
        kinds={"x": "int"},
        run=False,
    ),
    Case(node("TopK", "x k", "y z", axis=1), NC, "N, 2", ("C >= 2",), {"k": ints(2)}, strict=False),
    Case(node("ArgMax", "x", axis=1), {"x": ("N", 3)}, "N, 1"),
    Case(node("ArgMin", "x", axis=0, keepdims=0), {"x": (2, "C")}, "C"),
    Case(node("Unique", "x"), N, "?"),
    *(
        Case(
            node(f"Reduce{name}", "x a", keepdims=keep), {"x": ("N", 3)}, shape, (), {"a": ints(-1)}
        )
        for name in [
            "Sum",
            "Mean",
            "Prod",
            "Max",
            "Min",
            "L1",
            "L2",
            "LogSum",
            "LogSumExp",
            "SumSquare",
        ]
        for keep, shape in ((1, "N, 1"), (0, "N"))
    ),
    Case(node("ReduceSum", "x", keepdims=0), NC, ""),
    Case(node("ReduceSum", "x", noop_with_empty_axes=1), NC, "N, C"),
    Case(node("ReduceMean", "x", axes=[0]), {"x": (2, "C")}, "1, C", opset=13),
]

EVERY = [*MOVEMENT, *INDEXING]


@pytest.mark.parametrize("case", EVERY, ids=[f"{k}-{c.node.op_type}" for k, c in enumerate(EVERY)])
def test_row_infers_its_cases(case: Case) -> None:
    judge(case)
