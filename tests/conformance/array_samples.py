"""Shared samples of the tests of JAX's and PyTorch's arrays."""

from __future__ import annotations

import numpy as np

import zerostride as zs

#: A rule, two shapes and what else the rule wants.
UNDER = (
    ("numpy", (2, 3, 4), (3, 1), {}),
    ("pdpd", (2, 3, 4), (3,), {"axis": 1}),
    ("paddle", (2, 3, 4), (2, 3), {"axis": 0}),
    ("ncnn", (3, 4), (3,), {}),
    ("mnn", (2, 3, 4), (1, 4), {}),
    ("onnx6", (2, 3, 4), (3, 4), {"broadcast": 1}),
    ("none", (2, 3), (2, 3), {}),
)


@zs.fuse
def softmax(x, scale):
    e = np.exp((x - x.max(-1, keepdims=True)) * scale)
    return e / e.sum(-1, keepdims=True)
