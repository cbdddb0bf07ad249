"""Translates layers to ONNX nodes of exactly the same meaning: one row per op.

A layer without an equivalent, or with one only for known sizes, stays a layer. Its sizes then come
from its site's rule or from the file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from ...ir.graph import Body, Node, Value
from ..onnx.sites import Kind
from . import lower_layout, lower_windows
from .opsets import NEWEST, canonical
from .sites import NAMES, find_site, mode_of
from .words import VERSION, NoWords, Words

Row = Callable[[Words], tuple[Node, ...]]


def lower(node: Node) -> tuple[Node, ...] | None:
    """A layer as ONNX nodes, or None without an equivalent."""
    if node.domain == "":
        return (node,)
    if node.domain != "openvino" or not 1 <= node.version <= NEWEST:
        return None
    row = ROWS.get(canonical(node.op))
    if row is None:
        return None
    try:
        return row(Words(node))
    except NoWords:
        return None


# Ops that broadcast.


def _combine(words: Words) -> tuple[Node, ...]:
    """Element-wise ops: unchanged for NumPy's rule, else with operands reshaped by the plan.

    A Divide of whole numbers becomes ONNX's Div, which rounds to zero. OpenVINO's CPU plugin does
    so for any `m_pythondiv` (run: tests/conformance/test_ir_words.py). The document rounds down.
    """
    node = words.node
    site = find_site(node)
    if site is None or site.kind in (Kind.NOT_MODELLED, Kind.CUSTOM):
        raise NoWords
    operands = [words.input(position) for position in range(len(node.inputs))]
    if site.kind is Kind.PRELU or mode_of(node) != "numpy":
        aligned = words.plan().aligned
        operands = [words.reshaped(v, s) for v, s in zip(operands, aligned, strict=True)]
    name = NAMES.get(words.op, words.op)
    result = node.outputs[0].shape if node.outputs else None
    if words.op == "NotEqual":
        return words.last("Not", words.make("Equal", *operands, dtype="bool", shape=result))
    if words.op == "SquaredDifference":
        difference = words.make("Sub", *operands, shape=result)
        return words.last("Mul", difference, difference)
    if words.op in ("Mod", "FloorMod"):
        whole = words.dtype.startswith(("int", "uint"))
        if words.op == "FloorMod" and not whole:
            raise NoWords  # ONNX's Mod of floats is C's fmod
        return words.last("Mod", *operands, fmod=int(words.op == "Mod"))
    if words.op in ("BitwiseLeftShift", "BitwiseRightShift"):
        if not words.dtype.startswith("uint"):
            raise NoWords
        direction = "LEFT" if words.op == "BitwiseLeftShift" else "RIGHT"
        return words.last("BitShift", *operands, direction=direction)
    return words.last(name, *operands)


def _broadcast(words: Words) -> tuple[Node, ...]:
    """Expand if bidirectional; else, for known sizes, with data reshaped by the plan."""
    node = words.node
    data, target = words.input(0), words.input(1)
    if node.version >= 3 and len(node.inputs) == 2 and words.text("mode") == "bidirectional":
        return words.last("Expand", data, target)
    plan = words.plan()
    return words.last("Expand", words.reshaped(data, plan.aligned[0]), words.ints(plan.shape))


def _product(words: Words) -> tuple[Node, ...]:
    """MatMul, after a Transpose of transposed operands."""
    operands = []
    for position, name in enumerate(("transpose_a", "transpose_b")):
        value = words.input(position)
        if words.flag(name):
            rank = words.rank(position)
            if rank > 1:
                order = (*range(rank - 2), rank - 1, rank - 2)
                sizes = value.shape or ()
                turned = tuple(sizes[axis] for axis in order)
                value = words.make("Transpose", value, shape=turned, perm=order)
        operands.append(value)
    return words.last("MatMul", *operands)


def _attention(words: Words) -> tuple[Node, ...]:
    """ScaledDotProductAttention: two products, and a softmax of the first, masked."""
    if words.flag("causal"):
        raise NoWords
    query, key, value = map(words.input, range(3))
    mask, scale = words.optional(3), words.optional(4)
    if scale is None:
        width = (query.shape or (None,))[-1]
        if not isinstance(width, int):
            raise NoWords
        scale = words.number(width**-0.5, words.dtype)
    rank = words.rank(1)
    turned = words.make("Transpose", key, perm=(*range(rank - 2), rank - 1, rank - 2))
    scores = words.make("MatMul", words.make("Mul", query, scale, shape=query.shape), turned)
    if mask is not None and mask.dtype == "bool":
        scores = words.make(
            "Where", mask, scores, words.number(-math.inf, words.dtype), dtype=words.dtype
        )
    elif mask is not None:
        scores = words.make("Add", scores, mask)
    return words.last("MatMul", words.make("Softmax", scores, axis=-1), value)


def _lstm(words: Words) -> tuple[Node, ...]:
    """LSTMSequence: batch first, gates in the order f, i, c, o, and one row of biases."""
    node, direction = words.node, words.text("direction")
    usual = words.text("activations", "sigmoid, tanh, tanh").replace(" ", "")
    if usual != "sigmoid,tanh,tanh" or words.real("clip", 0.0) or len(node.outputs) != 3:
        raise NoWords
    if len(node.inputs) != 7 or words.flag("input_forget"):
        raise NoWords
    hidden = words.integer("hidden_size")
    data, *states = (words.make("Transpose", words.input(k), perm=(1, 0, 2)) for k in range(3))
    lengths = words.make("Cast", words.input(3), to=6, dtype="int32")
    weights = [_as_iofc(words, words.input(k), hidden) for k in (4, 5, 6)]
    biases = words.make("Concat", weights[2], words.make("Sub", weights[2], weights[2]), axis=1)
    operands = (data, weights[0], weights[1], biases, lengths, *states)
    every, last, cell = words.several("LSTM", *operands, hidden_size=hidden, direction=direction)
    words.hand_out(0, "Transpose", every, perm=(2, 1, 0, 3))
    words.hand_out(1, "Transpose", last, perm=(1, 0, 2))
    return words.hand_out(2, "Transpose", cell, perm=(1, 0, 2))


def _as_iofc(words: Words, value: Value, hidden: int) -> Value:
    """Rows of four gates in ONNX's order."""
    rows = [
        words.make("Slice", value, words.ints((k * hidden,)), words.ints(((k + 1) * hidden,)), axis)
        for axis in (words.ints((1,)),)
        for k in (1, 3, 0, 2)
    ]
    return words.make("Concat", *rows, axis=1)


# Ops of one tensor.

_SAME = (
    "Abs Acos Acosh Asin Asinh Atan Atanh Cos Cosh Erf Exp Floor Identity Log Mish Relu Sigmoid "
)
_SAME += "Sign Sin Sinh Sqrt Tan Tanh BitwiseNot IsNaN"
#: Op to ONNX's name, for ops of one operand and no attributes.
_UNARY: Mapping[str, str] = MappingProxyType(
    {
        **{name: name for name in _SAME.split()},
        "Ceiling": "Ceil",
        "Negative": "Neg",
        "LogicalNot": "Not",
        "SoftPlus": "Softplus",
        "SoftSign": "Softsign",
        "HSwish": "HardSwish",
    }
)


def _unary(words: Words) -> tuple[Node, ...]:
    return words.last(_UNARY[words.op], words.input(0))


def _elu(words: Words) -> tuple[Node, ...]:
    return words.last("Elu", words.input(0), alpha=words.real("alpha"))


def _h_sigmoid(words: Words) -> tuple[Node, ...]:
    return words.last("HardSigmoid", words.input(0), alpha=1 / 6, beta=0.5)


def _hard_sigmoid(words: Words) -> tuple[Node, ...]:
    """By simple ops, since slope and offset are operands."""
    data = words.input(0)
    sloped = words.make("Mul", data, words.input(1), shape=data.shape)
    moved = words.make("Add", sloped, words.input(2), shape=data.shape)
    low, high = (words.number(end, words.dtype) for end in (0.0, 1.0))
    return words.last("Clip", moved, low, high)


def _gelu(words: Words) -> tuple[Node, ...]:
    mode = {"erf": "none", "tanh": "tanh"}.get(words.text("approximation_mode", "erf"))
    if mode is None:
        raise NoWords
    return words.last("Gelu", words.input(0), approximate=mode)


def _swish(words: Words) -> tuple[Node, ...]:
    data, beta = words.input(0), words.optional(1)
    scaled = data if beta is None else words.make("Mul", data, beta, shape=data.shape)
    return words.last("Mul", data, words.make("Sigmoid", scaled, shape=data.shape))


def _clamp(words: Words) -> tuple[Node, ...]:
    ends = [words.real(name) for name in ("min", "max")]
    if not words.dtype.startswith("float") and not all(end.is_integer() for end in ends):
        raise NoWords  # limits of whole numbers are rounded
    low, high = (words.number(end, words.dtype) for end in ends)
    return words.last("Clip", words.input(0), low, high)


def _round(words: Words) -> tuple[Node, ...]:
    if words.text("mode", "half_to_even") != "half_to_even":
        raise NoWords
    return words.last("Round", words.input(0))


def _softmax(words: Words) -> tuple[Node, ...]:
    default = -1 if words.op == "LogSoftmax" else 1
    return words.last(words.op, words.input(0), axis=words.integer("axis", default))


def _cum_sum(words: Words) -> tuple[Node, ...]:
    sides = {name: int(words.flag(name)) for name in ("exclusive", "reverse")}
    return words.last("CumSum", words.input(0), words.input(1), **sides)


def _mvn(words: Words) -> tuple[Node, ...]:
    """MVN-6: minus the mean, divided by the deviation, with eps inside or outside the root."""
    if words.node.version < 6:
        raise NoWords
    data, axes = words.input(0), words.ints(words.numbers(1))
    mean = words.make("ReduceMean", data, axes, keepdims=1, noop_with_empty_axes=1)
    if not words.flag("normalize_variance"):
        return words.last("Sub", data, mean)
    centred = words.make("Sub", data, mean, shape=data.shape)
    square = words.make("Mul", centred, centred, shape=data.shape)
    variance = words.make("ReduceMean", square, axes, keepdims=1, noop_with_empty_axes=1)
    eps = words.number(words.real("eps"), words.dtype)
    if words.text("eps_mode") == "inside_sqrt":
        scale = words.make("Sqrt", words.make("Add", variance, eps))
    else:
        scale = words.make("Add", words.make("Sqrt", variance), eps)
    return words.last("Div", centred, scale)


def _normalize(words: Words) -> tuple[Node, ...]:
    """NormalizeL2: divided by the root of the sum of squares, with eps added or as minimum."""
    data, axes = words.input(0), words.ints(words.numbers(1))
    if not axes.content:
        raise NoWords
    total = words.make("ReduceSum", words.make("Mul", data, data), axes, keepdims=1)
    eps = words.number(words.real("eps"), words.dtype)
    mode = {"add": "Add", "max": "Max"}.get(words.text("eps_mode"))
    if mode is None:
        raise NoWords
    return words.last("Div", data, words.make("Sqrt", words.make(mode, total, eps)))


# Bodies.

_BRANCHES = (("then_body", "then_branch"), ("else_body", "else_branch"))


def _if(words: Words) -> tuple[Node, ...]:
    """If: the operands passed to its bodies become Identity nodes at their beginning."""
    node = words.node
    bodies = {body.name: body for body in node.bodies}
    branches = []
    for own, name in _BRANCHES:
        if own not in bodies:
            raise NoWords
        body = bodies[own]
        feeds = node.attributes.get(f"{own}_inputs", ())
        gives = node.attributes.get(f"{own}_outputs", ())
        if -1 in feeds or -1 in gives or len(feeds) != len(body.inputs):
            raise NoWords
        scope = body.nodes[0].scope if body.nodes else (*node.scope, node.name, own)
        heads = tuple(
            Node(value.name, "Identity", "", VERSION, (words.input(k),), (value,), {}, scope)
            for value, k in zip(body.inputs, feeds, strict=True)
        )
        inner: list[Node] = []
        for nested in body.nodes:
            inner += lower(nested) or (nested,)
        outputs = tuple(body.outputs[k] for k in gives)
        branches.append(Body(name, (), outputs, (*heads, *inner)))
    changed = replace(
        node, op="If", domain="", version=VERSION, inputs=(words.input(0),), attributes={},
        bodies=tuple(branches),
    )  # fmt: skip
    return (changed,)


def _rows(row: Row, names: str) -> dict[str, Row]:
    return dict.fromkeys(names.split(), row)


#: Op to row.
ROWS: Mapping[str, Row] = MappingProxyType(
    {
        **_rows(
            _combine,
            "Add Subtract Multiply Divide Maximum Minimum Power Mod FloorMod SquaredDifference "
            "Equal NotEqual Greater GreaterEqual Less LessEqual LogicalAnd LogicalOr LogicalXor "
            "Xor BitwiseAnd BitwiseOr BitwiseXor BitwiseLeftShift BitwiseRightShift Select PRelu",
        ),
        **_rows(_broadcast, "Broadcast"),
        **_rows(_product, "MatMul"),
        **_rows(_attention, "ScaledDotProductAttention"),
        **_rows(_lstm, "LSTMSequence"),
        **_rows(_unary, " ".join(_UNARY)),
        **_rows(_elu, "Elu"),
        **_rows(_h_sigmoid, "HSigmoid"),
        **_rows(_hard_sigmoid, "HardSigmoid"),
        **_rows(_gelu, "Gelu"),
        **_rows(_swish, "Swish"),
        **_rows(_clamp, "Clamp"),
        **_rows(_round, "Round"),
        **_rows(_softmax, "Softmax LogSoftmax"),
        **_rows(_cum_sum, "CumSum"),
        **_rows(_mvn, "MVN"),
        **_rows(_normalize, "NormalizeL2"),
        **_rows(_if, "If"),
        **lower_layout.ROWS,
        **lower_windows.ROWS,
    }
)
