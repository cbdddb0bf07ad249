"""Writes an IR's layers as ONNX nodes of exactly the same meaning: one row per op.

A layer without an equivalent, or with one only for known sizes, stays a layer. Its sizes then come
from its site's rule or from the file.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ....ir.graph import Body, Node
from ....ir.site import Kind
from ...lowered_attention import causal, weights
from ...lowering import (
    ELEMENT_TYPES,
    VERSION,
    NoEquivalent,
    becomes,
    checked,
    choice,
    flag,
    lower_by,
    real,
    squared_difference,
    table,
    whole,
)
from ..opsets import NEWEST, canonical
from ..sites import NAMES, mode_of
from . import layout, windows
from .writer import IrWriter


def lower(node: Node) -> tuple[Node, ...] | None:
    """A layer as ONNX nodes, or None without an equivalent."""
    if node.domain == "":
        return (node,)
    if node.domain != "openvino" or not 1 <= node.version <= NEWEST:
        return None
    return lower_by(ROWS.get(canonical(node.op)), IrWriter(node))


# Ops that broadcast.


def _combine(w: IrWriter) -> None:
    """Element-wise ops: unchanged for NumPy's rule, else with operands reshaped by the plan.

    A Divide of whole numbers becomes ONNX's Div, which rounds to zero. OpenVINO's CPU plugin does
    so for any `m_pythondiv` (run: tests/conformance/test_ir_words.py). The document rounds down.
    """
    node, operands = w.node, w.inputs()
    if w.site().kind is Kind.PRELU or mode_of(node) != "numpy":
        operands = list(map(w.reshaped, operands, w.plan().aligned))
    name = NAMES.get(w.kind, w.kind)
    result = node.outputs[0].shape if node.outputs else None
    if w.kind == "NotEqual":
        return w.last("Not", w.op("Equal", *operands, dtype="bool", shape=result))
    if w.kind == "SquaredDifference":
        return squared_difference(w, operands[0], operands[1], result)
    if w.kind in ("Mod", "FloorMod"):
        whole = w.dtype().startswith(("int", "uint"))
        if w.kind == "FloorMod" and not whole:
            raise NoEquivalent  # ONNX's Mod of floats is C's fmod
        return w.last("Mod", *operands, fmod=int(w.kind == "Mod"))
    if w.kind in ("BitwiseLeftShift", "BitwiseRightShift"):
        if not w.dtype().startswith("uint"):
            raise NoEquivalent
        direction = "LEFT" if w.kind == "BitwiseLeftShift" else "RIGHT"
        return w.last("BitShift", *operands, direction=direction)
    return w.last(name, *operands)


def _broadcast(w: IrWriter) -> None:
    """Expand if bidirectional; else, for known sizes, with data reshaped by the plan."""
    node = w.node
    data, target = w.input(0), w.input(1)
    if node.version >= 3 and len(node.inputs) == 2 and w.text("mode") == "bidirectional":
        return w.last("Expand", data, target)
    plan = w.plan()
    return w.last("Expand", w.reshaped(data, plan.aligned[0]), w.ints(*plan.shape))


def _product(w: IrWriter) -> None:
    """MatMul, after a Transpose of transposed operands."""
    operands = w.inputs()
    for k, name in enumerate(("transpose_a", "transpose_b")):
        if w.flag(name) and w.rank(k) > 1:
            operands[k] = w.transposed(operands[k])
    w.last("MatMul", *operands)


def _attention(w: IrWriter) -> None:
    """ScaledDotProductAttention: two products, and a softmax of the first, masked.

    A causal one begins at the top left, and does not read its mask. A sink is one more score of
    each query, whose weight is dropped. (Run: tests/conformance/test_attention_ir.py.)
    """
    query, key, value = map(w.input, range(3))
    mask, scale = w.optional(3), w.optional(4)
    if scale is None:
        width = (query.shape or (None,))[-1]
        if not isinstance(width, int):
            raise NoEquivalent
        scale = w.number(width**-0.5, w.dtype())
    scores = w.op("MatMul", w.op("Mul", query, scale, shape=query.shape), w.transposed(key))
    if w.flag("causal"):
        scores = causal(w, scores)
    elif mask is not None and mask.dtype == "bool":
        scores = w.op("Where", mask, scores, w.number(-math.inf, w.dtype()), dtype=w.dtype())
    elif mask is not None:
        scores = w.op("Add", scores, mask)
    return w.last("MatMul", weights(w, scores, w.optional(5)), value)


def _lstm(w: IrWriter) -> None:
    """LSTMSequence: batch first, gates in the order f, i, c, o, and one row of biases."""
    node, direction = w.node, w.text("direction")
    usual = w.text("activations", "sigmoid, tanh, tanh").replace(" ", "")
    if usual != "sigmoid,tanh,tanh" or w.real("clip", 0.0) or len(node.outputs) != 3:
        raise NoEquivalent
    if len(node.inputs) != 7 or w.flag("input_forget"):
        raise NoEquivalent
    hidden = w.whole("hidden_size")
    data, *states = (w.op("Transpose", w.input(k), perm=(1, 0, 2)) for k in range(3))
    lengths = w.op("Cast", w.input(3), to=ELEMENT_TYPES["int32"])
    # ONNX's order of the four gates.
    weights = [w.blocks(w.input(k), 1, hidden, (1, 3, 0, 2)) for k in (4, 5, 6)]
    biases = w.op("Concat", weights[2], w.op("Sub", weights[2], weights[2]), axis=1)
    operands = (data, weights[0], weights[1], biases, lengths, *states)
    results = w.several("LSTM", 3, *operands, hidden_size=hidden, direction=direction)
    for k, value in enumerate(results):
        w.result(k, "Transpose", value, perm=(1, 0, 2) if k else (2, 1, 0, 3))


# Ops of one tensor.


def _hard_sigmoid(w: IrWriter) -> None:
    """By simple ops, since slope and offset are operands."""
    data = w.input(0)
    sloped = w.op("Mul", data, w.input(1), shape=data.shape)
    moved = w.op("Add", sloped, w.input(2), shape=data.shape)
    low, high = (w.number(end, w.dtype()) for end in (0.0, 1.0))
    return w.last("Clip", moved, low, high)


def _swish(w: IrWriter) -> None:
    data, beta = w.input(0), w.optional(1)
    scaled = data if beta is None else w.op("Mul", data, beta, shape=data.shape)
    return w.last("Mul", data, w.op("Sigmoid", scaled, shape=data.shape))


def _clamp(w: IrWriter) -> None:
    ends = [w.real(name) for name in ("min", "max")]
    if not w.dtype().startswith("float") and not all(end.is_integer() for end in ends):
        raise NoEquivalent  # limits of whole numbers are rounded
    low, high = (w.number(end, w.dtype()) for end in ends)
    return w.last("Clip", w.input(0), low, high)


def _to_even(w: IrWriter) -> None:
    if w.text("mode", "half_to_even") != "half_to_even":
        raise NoEquivalent


def _mvn(w: IrWriter) -> None:
    """MVN-6: minus the mean, divided by the deviation, with eps inside or outside the root."""
    if w.node.version < 6:
        raise NoEquivalent
    data, axes = w.input(0), w.ints(*w.content(1))
    mean = w.op("ReduceMean", data, axes, keepdims=1, noop_with_empty_axes=1)
    if not w.flag("normalize_variance"):
        return w.last("Sub", data, mean)
    centred = w.op("Sub", data, mean, shape=data.shape)
    square = w.op("Mul", centred, centred, shape=data.shape)
    variance = w.op("ReduceMean", square, axes, keepdims=1, noop_with_empty_axes=1)
    eps = w.number(w.real("eps"), w.dtype())
    if w.text("eps_mode") == "inside_sqrt":
        scale = w.op("Sqrt", w.op("Add", variance, eps))
    else:
        scale = w.op("Add", w.op("Sqrt", variance), eps)
    return w.last("Div", centred, scale)


def _normalize(w: IrWriter) -> None:
    """NormalizeL2: divided by the root of the sum of squares, with eps added or as minimum."""
    data, axes = w.input(0), w.ints(*w.content(1))
    if not axes.content:
        raise NoEquivalent
    total = w.op("ReduceSum", w.op("Mul", data, data), axes, keepdims=1)
    eps = w.number(w.real("eps"), w.dtype())
    mode = {"add": "Add", "max": "Max"}.get(w.text("eps_mode"))
    if mode is None:
        raise NoEquivalent
    return w.last("Div", data, w.op("Sqrt", w.op(mode, total, eps)))


# Bodies.

_BRANCHES = (("then_body", "then_branch"), ("else_body", "else_branch"))


def _if(w: IrWriter) -> None:
    """If: the operands passed to its bodies become Identity nodes at their beginning."""
    node = w.node
    bodies = {body.name: body for body in node.bodies}
    branches = []
    for own, name in _BRANCHES:
        if own not in bodies:
            raise NoEquivalent
        body = bodies[own]
        feeds = node.attributes.get(f"{own}_inputs", ())
        gives = node.attributes.get(f"{own}_outputs", ())
        if -1 in feeds or -1 in gives or len(feeds) != len(body.inputs):
            raise NoEquivalent
        scope = body.nodes[0].scope if body.nodes else (*node.scope, node.name, own)
        heads = tuple(
            Node(value.name, "Identity", "", VERSION, (w.input(k),), (value,), {}, scope)
            for value, k in zip(body.inputs, feeds, strict=True)
        )
        inner: list[Node] = []
        for nested in body.nodes:
            inner += lower(nested) or (nested,)
        outputs = tuple(body.outputs[k] for k in gives)
        branches.append(Body(name, (), outputs, (*heads, *inner)))
    changed = replace(
        node, op="If", domain="", version=VERSION, inputs=(w.input(0),), attributes={},
        bodies=tuple(branches),
    )  # fmt: skip
    w.nodes.append(changed)


#: The name in ONNX of ops of one operand without attributes.
_UNARY = {
    "Ceiling": "Ceil",
    "Negative": "Neg",
    "LogicalNot": "Not",
    "SoftPlus": "Softplus",
    "SoftSign": "Softsign",
    "HSwish": "HardSwish",
}
_SAME = (
    "Abs Acos Acosh Asin Asinh Atan Atanh Cos Cosh Erf Exp Floor Identity Log Mish Relu Sigmoid "
    "Sign Sin Sinh Sqrt Tan Tanh BitwiseNot IsNaN"
)
_COMBINED = (
    "Add Subtract Multiply Divide Maximum Minimum Power Mod FloorMod SquaredDifference "
    "Equal NotEqual Greater GreaterEqual Less LessEqual LogicalAnd LogicalOr LogicalXor "
    "Xor BitwiseAnd BitwiseOr BitwiseXor BitwiseLeftShift BitwiseRightShift Select PRelu"
)
#: Op to row.
ROWS = table(
    (_COMBINED, _combine),
    {name: name for name in _SAME.split()},
    _UNARY,
    {
        "Broadcast": _broadcast,
        "MatMul": _product,
        "ScaledDotProductAttention": _attention,
        "LSTMSequence": _lstm,
        "Elu": becomes("Elu", alpha=real("alpha")),
        "HSigmoid": becomes("HardSigmoid", alpha=1 / 6, beta=0.5),
        "HardSigmoid": _hard_sigmoid,
        "Gelu": becomes(
            "Gelu", approximate=choice("approximation_mode", {"erf": "none", "tanh": "tanh"}, "erf")
        ),
        "Swish": _swish,
        "Clamp": _clamp,
        "Round": checked(_to_even, "Round"),
        "Softmax": becomes("Softmax", axis=whole("axis", 1)),
        "LogSoftmax": becomes("LogSoftmax", axis=whole("axis", -1)),
        "CumSum": becomes("CumSum", 0, 1, exclusive=flag("exclusive"), reverse=flag("reverse")),
        "MVN": _mvn,
        "NormalizeL2": _normalize,
        "If": _if,
    },
    layout.ROWS,
    windows.ROWS,
)
