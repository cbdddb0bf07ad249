"""Random cases of an op, by kind of op. The ops: execute_rows.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Rng = np.random.Generator
#: Attributes and operands of one case; None is an operand that is left out.
Made = tuple[Mapping[str, Any], list[Any]]


def shape_of(rng: Rng, low: int = 0, high: int = 4) -> tuple[int, ...]:
    return tuple(rng.integers(1, 5, rng.integers(low, high + 1)).tolist())


def floats(rng: Rng, shape: Any, low: float = -3, high: float = 3) -> Any:
    return np.asarray(rng.uniform(low, high, shape).astype(np.float32))


def one(low: float = -3, high: float = 3) -> Callable[[Rng], Made]:
    return lambda rng: ({}, [floats(rng, shape_of(rng), low, high)])


def real(**limits: tuple[float, float]) -> Callable[[Rng], Made]:
    """A tensor, and now and then attributes within limits."""

    def make(rng: Rng) -> Made:
        chosen = {k: float(rng.uniform(*v)) for k, v in limits.items() if rng.integers(2)}
        return chosen, [floats(rng, shape_of(rng))]

    return make


def pair(rng: Rng) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shapes that broadcast."""
    full = shape_of(rng)
    cut = full[rng.integers(0, len(full) + 1) :]
    a, b = (tuple(1 if rng.integers(3) == 0 else size for size in s) for s in (full, cut))
    return (a, b) if rng.integers(2) else (b, a)


def both(kind: str, low: int = -5, high: int = 6) -> Callable[[Rng], Made]:
    def make(rng: Rng) -> Made:
        shapes = pair(rng)
        if kind == "float":
            return {}, [floats(rng, shape) for shape in shapes]
        if kind == "bool":
            return {}, [np.asarray(rng.integers(0, 2, shape)).astype(bool) for shape in shapes]
        numbers = [np.asarray(rng.integers(low, high, shape)) for shape in shapes]
        numbers[1] = np.where(numbers[1] == 0, 1, numbers[1])
        return {}, [n.astype(kind) for n in numbers]

    return make


def several(rng: Rng) -> Made:
    first, second = pair(rng)
    more = [first, second, ()][: rng.integers(1, 4)]
    return {}, [floats(rng, shape) for shape in more]


def powers(rng: Rng) -> Made:
    a, b = pair(rng)
    if rng.integers(2):
        return {}, [floats(rng, a, 0.2, 3), floats(rng, b)]
    base = np.asarray(rng.integers(-4, 5, a)).astype(np.int64)
    return {}, [base, np.asarray(rng.integers(0, 4, b)).astype(np.int32)]


def shifts(rng: Rng) -> Made:
    a, b = pair(rng)
    x = np.asarray(rng.integers(0, 255, a)).astype(np.uint32)
    way = ("LEFT", "RIGHT")[rng.integers(2)]
    return {"direction": way}, [x, np.asarray(rng.integers(0, 8, b)).astype(np.uint32)]


def mods(rng: Rng) -> Made:
    if rng.integers(2):
        return {"fmod": 1}, both("float")(rng)[1]
    return {"fmod": int(rng.integers(2))}, both("int32")(rng)[1]


def choice(rng: Rng) -> Made:
    a, b = pair(rng)
    c = np.asarray(rng.integers(0, 2, b)).astype(bool)
    return {}, [c, floats(rng, a), floats(rng, ())]


def reshapes(rng: Rng) -> Made:
    x = floats(rng, shape_of(rng, 1))
    order = list(x.shape)
    rng.shuffle(order)
    if rng.integers(2):
        order[rng.integers(len(order))] = -1
    return {}, [x, np.array(order, np.int64)]


def with_axis(low: int = 1, **more: Any) -> Callable[[Rng], Made]:
    def make(rng: Rng) -> Made:
        x = floats(rng, shape_of(rng, low))
        axis = int(rng.integers(-x.ndim, x.ndim))
        return {"axis": axis, **{k: int(rng.integers(2)) for k in more}}, [x]

    return make


def squeezes(rng: Rng) -> Made:
    x = floats(rng, tuple(rng.choice([1, 1, 3], rng.integers(1, 5)).tolist()))
    ones = [k for k, size in enumerate(x.shape) if size == 1]
    axes = [k - x.ndim * int(rng.integers(2)) for k in ones if rng.integers(2)]
    return {}, [x, np.array(axes, np.int64)] if axes else [x]


def unsqueezes(rng: Rng) -> Made:
    x = floats(rng, shape_of(rng, 0, 3))
    count = int(rng.integers(1, 3))
    return {}, [x, np.array(rng.permutation(x.ndim + count)[:count], np.int64)]


def transposes(rng: Rng) -> Made:
    x = floats(rng, shape_of(rng, 1))
    perm = rng.permutation(x.ndim).tolist()
    return ({"perm": perm} if rng.integers(3) else {}), [x]


def concats(rng: Rng) -> Made:
    shape = shape_of(rng, 1)
    axis = int(rng.integers(-len(shape), len(shape)))
    parts = []
    for _ in range(rng.integers(1, 4)):
        sizes = list(shape)
        sizes[axis] = int(rng.integers(0, 4))
        parts.append(floats(rng, sizes))
    return {"axis": axis}, parts


def slices(rng: Rng) -> Made:
    x = floats(rng, shape_of(rng, 1))
    axes = rng.permutation(x.ndim)[: rng.integers(1, x.ndim + 1)]
    count = len(axes)
    numbers = [rng.integers(-7, 8, count), rng.integers(-7, 8, count), axes]
    steps = rng.choice([-2, -1, 1, 2, 3], count)
    return {}, [x, *(n.astype(np.int64) for n in (*numbers, steps))]


def gathers(rng: Rng) -> Made:
    x = floats(rng, shape_of(rng, 1))
    axis = int(rng.integers(-x.ndim, x.ndim))
    size = x.shape[axis]
    return {"axis": axis}, [x, np.asarray(rng.integers(-size, size, shape_of(rng, 0, 2)))]


def elements(rng: Rng) -> Made:
    x = floats(rng, shape_of(rng, 1))
    axis = int(rng.integers(-x.ndim, x.ndim))
    size = x.shape[axis]
    shape = tuple(int(rng.integers(1, s + 1)) for s in x.shape)
    return {"axis": axis}, [x, np.asarray(rng.integers(-size, size, shape))]


def scatters(rng: Rng) -> Made:
    attributes, (x, _) = elements(rng)
    axis = attributes["axis"]
    # Each place once: which of two writes wins is nobody's promise.
    order = rng.permuted(np.broadcast_to(
        np.arange(x.shape[axis]).reshape([-1 if k == axis % x.ndim else 1 for k in range(x.ndim)]),
        x.shape), axis=axis)  # fmt: skip
    return attributes, [x, order.astype(np.int64), floats(rng, x.shape)]


def deep(rng: Rng) -> Made:
    x = floats(rng, shape_of(rng, 1))
    depth = int(rng.integers(1, x.ndim + 1))
    outer = shape_of(rng, 0, 2)
    parts = [rng.integers(-x.shape[k], x.shape[k], outer) for k in range(depth)]
    return {}, [x, np.stack(parts, -1).astype(np.int64)]


def scatters_deep(rng: Rng) -> Made:
    x = floats(rng, shape_of(rng, 1))
    rows = rng.permutation(x.shape[0])[: rng.integers(1, x.shape[0] + 1)]
    return {}, [x, rows[:, None].astype(np.int64), floats(rng, (len(rows), *x.shape[1:]))]


def tiles(rng: Rng) -> Made:
    x = floats(rng, shape_of(rng, 1, 3))
    return {}, [x, rng.integers(1, 3, x.ndim).astype(np.int64)]


def pads(rng: Rng) -> Made:
    x = floats(rng, shape_of(rng, 1, 3))
    widths = rng.integers(0, 3, 2 * x.ndim).astype(np.int64)
    if rng.integers(2):
        return {"mode": "edge"}, [x, widths]
    return {}, [x, widths, np.array(2.5, np.float32)][: int(rng.integers(2, 4))]  # type: ignore[return-value]


def ranges(rng: Rng) -> Made:
    if rng.integers(2):
        return {}, [
            np.array(n, np.int64) for n in (*rng.integers(-9, 9, 2), rng.choice([-3, -1, 1, 2]))
        ]
    return {}, [
        np.array(n, np.float32) for n in (*rng.integers(-9, 9, 2), rng.choice([-0.5, 0.5, 2]))
    ]


def reduces(kind: str = "float") -> Callable[[Rng], Made]:
    def make(rng: Rng) -> Made:
        shape = shape_of(rng, 1)
        x = floats(rng, shape, 0.1, 3) if kind == "float" else rng.integers(-9, 9, shape)
        x = np.asarray(x, np.float32 if kind == "float" else np.int64)
        attributes = {"keepdims": int(rng.integers(2))}
        axes = rng.permutation(x.ndim)[: rng.integers(0, x.ndim + 1)]
        if not len(axes):
            attributes["noop_with_empty_axes"] = int(rng.integers(2))
            return attributes, [x]
        return attributes, [x, (axes - x.ndim * int(rng.integers(2))).astype(np.int64)]

    return make


def old_reduces(rng: Rng) -> Made:
    attributes, (x, *axes) = reduces()(rng)
    attributes = {"keepdims": attributes["keepdims"]}
    return attributes | ({"axes": axes[0].tolist()} if axes else {}), [x]


def sums(rng: Rng) -> Made:
    x = floats(rng, shape_of(rng, 1))
    flags = {name: int(rng.integers(2)) for name in ("exclusive", "reverse")}
    return flags, [x, np.array(rng.integers(-x.ndim, x.ndim), np.int64)]


def products(rng: Rng) -> Made:
    (a, b), (m, k, n) = pair(rng), rng.integers(1, 5, 3).tolist()
    left = (*a, m, k) if rng.integers(4) or b else (k,)
    return {}, [floats(rng, left), floats(rng, (*b, k, n))]


def gemms(rng: Rng) -> Made:
    m, k, n = rng.integers(1, 5, 3).tolist()
    a, b = (bool(rng.integers(2)) for _ in range(2))
    c = [(), (n,), (m, 1), (1, n), (m, n), (1,)][rng.integers(6)]
    factors = {"alpha": 0.5, "beta": 1.5} if rng.integers(2) else {}
    operands = [floats(rng, (k, m) if a else (m, k)), floats(rng, (n, k) if b else (k, n))]
    return {"transA": int(a), "transB": int(b), **factors}, [*operands, floats(rng, c)]


def channels(count: int, **more: Any) -> Callable[[Rng], Made]:
    def make(rng: Rng) -> Made:
        x = floats(rng, (2, 4, *rng.integers(2, 4, rng.integers(1, 3))))
        return more, [x, *(floats(rng, (4,), 0.5, 2) for _ in range(count))]

    return make


def layer_norms(rng: Rng) -> Made:
    x = floats(rng, shape_of(rng, 2))
    axis = int(rng.integers(-x.ndim, x.ndim))
    shape = x.shape[axis:]
    return {"axis": axis}, [x, floats(rng, shape), floats(rng, shape)]


def quantised(rng: Rng) -> Made:
    x = np.asarray(rng.integers(-40, 40, (3, 4))).astype(np.float32)
    return {"axis": 1}, [x, (2.0 ** rng.integers(-1, 2, 4)).astype(np.float32),
                         rng.integers(0, 9, 4).astype(np.uint8)]  # fmt: skip


def dequantised(rng: Rng) -> Made:
    _, (_, scale, zero) = quantised(rng)
    return {"axis": 1}, [rng.integers(0, 255, (3, 4)).astype(np.uint8), scale, zero]


def quantised_by_range(rng: Rng) -> Made:
    """Data of both signs, of one, or all 0."""
    low, high = ((-3, 5), (1, 2), (-2, -1), (0, 0))[rng.integers(4)]
    return {}, [rng.uniform(low, high, shape_of(rng)).astype(np.float32)]


def casts(rng: Rng) -> Made:
    import onnx

    kinds = ("float32", "float64", "int32", "int64", "uint8", "bool", "float16")
    to = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kinds[rng.integers(len(kinds))]))
    x = floats(rng, shape_of(rng), 0, 9).astype(kinds[rng.integers(len(kinds))])
    return {"to": to}, [x]


def clips(rng: Rng) -> Made:
    return {}, [floats(rng, shape_of(rng)), np.float32(-1.0), np.float32(rng.uniform(-1, 2))]


def blocks(op: str) -> Callable[[Rng], Made]:
    def make(rng: Rng) -> Made:
        x = floats(rng, (2, 8, 2, 4))
        mode = {"mode": ("DCR", "CRD")[rng.integers(2)]} if op == "depth" else {}
        return {"blocksize": 2, **mode}, [x]

    return make


def top_k(rng: Rng) -> Made:
    x = np.asarray(rng.integers(0, 5, shape_of(rng, 1))).astype(np.float32)
    axis = int(rng.integers(-x.ndim, x.ndim))
    k = np.array([rng.integers(1, x.shape[axis] + 1)], np.int64)
    return {"axis": axis, "largest": int(rng.integers(2))}, [x, k]


def expands(rng: Rng) -> Made:
    a, b = pair(rng)
    return {}, [floats(rng, a), np.array(b, np.int64)]


def one_hots(rng: Rng) -> Made:
    values = np.array([-1, 5], np.float32)
    return {"axis": -1}, [rng.integers(-6, 6, shape_of(rng, 1, 2)), np.array(5), values]


def bits(rng: Rng) -> Made:
    return {}, [np.asarray(rng.integers(-99, 99, shape_of(rng)).astype(np.int32))]


def flags(rng: Rng) -> Made:
    return {}, [np.asarray(rng.integers(0, 2, shape_of(rng))).astype(bool)]


def special(rng: Rng) -> Made:
    x = rng.choice([0, 1, -1, np.inf, -np.inf, np.nan], shape_of(rng))
    return {}, [np.asarray(x, np.float32)]


def not_zero(rng: Rng) -> Made:
    # Of rank 0 the document says (0, N), and ONNX Runtime gives (1, N).
    return {}, [np.asarray(rng.integers(0, 2, shape_of(rng, 1)))]


def equations(rng: Rng) -> Made:
    a, b, c = rng.integers(1, 4, 3).tolist()
    equation, shapes = [
        ("ij,jk->ik", ((a, b), (b, c))),
        ("...ij,...jk->...ik", ((2, a, b), (2, b, c))),
        ("ii->i", ((a, a),)),
        ("bij->bj", ((a, b, c),)),
    ][rng.integers(4)]
    return {"equation": equation}, [floats(rng, shape) for shape in shapes]


def sequences(rng: Rng) -> Made:
    x = floats(rng, rng.integers(1, 5, int(rng.integers(2, 5))))
    time = int(rng.integers(2))
    lengths = rng.integers(1, x.shape[time] + 1, x.shape[1 - time])
    return {"time_axis": time, "batch_axis": 1 - time}, [x, lengths.astype(np.int64)]


def squares(rng: Rng) -> Made:
    size = int(rng.integers(1, 4))
    return {}, [floats(rng, (*shape_of(rng, 0, 2), size, size))]


def small_products(rng: Rng) -> Made:
    m, k, n = rng.integers(1, 5, 3).tolist()
    kind = (np.uint8, np.int8)[rng.integers(2)]
    a, b = (rng.integers(0, 100, shape).astype(kind) for shape in ((m, k), (k, n)))
    # Scales of which products are exact.
    half, one_, two = (np.float32(2.0 ** rng.integers(-1, 2)) for _ in range(3))
    zero = [kind(rng.integers(0, 9)) for _ in range(3)]
    return {}, [a, half, zero[0], b, one_, zero[1], two, zero[2]]


def recurrent(gates: int) -> Callable[[Rng], Made]:
    """Layers of RNN (1), GRU (3) or LSTM (4), by their gates."""

    def make(rng: Rng) -> Made:
        steps, batch, width, hidden = rng.integers(1, 5, 4).tolist()
        way = ("forward", "reverse", "bidirectional")[rng.integers(3)]
        each = 2 if way == "bidirectional" else 1
        drawn: dict[str, Any] = {"direction": way, "hidden_size": hidden}
        if gates == 3:
            drawn["linear_before_reset"] = int(rng.integers(2))
        operands: list[Any] = [
            floats(rng, (steps, batch, width)),
            floats(rng, (each, gates * hidden, width), -1, 1),
            floats(rng, (each, gates * hidden, hidden), -1, 1),
            floats(rng, (each, 2 * gates * hidden)),
            rng.integers(1, steps + 1, batch).astype(np.int32) if rng.integers(2) else None,
            floats(rng, (each, batch, hidden)),
        ]
        if gates == 4:
            operands += [floats(rng, (each, batch, hidden)), floats(rng, (each, 3 * hidden))]
        return drawn, operands[: int(rng.integers(3, len(operands) + 1))]

    return make


def attentions(rng: Rng) -> Made:
    """Attention as ONNX Runtime computes it, too: docs/attention.md says where it does not.

    A mask has all queries and keys and leaves one key to each query; a single query with past keys
    is not causal; and masked scores, which have -inf in the document and the least float there, are
    no result.
    """
    batch, kv, query, key, past = rng.integers(1, 4, 5).tolist()
    group, features = int(rng.integers(1, 4)), rng.integers(1, 6, 2).tolist()
    if rng.integers(2):
        past = 0
    shapes = [(batch, kv * group, query, features[0]), *((batch, kv, key, n) for n in features)]
    attributes: dict[str, Any] = {"qk_matmul_output_mode": int(rng.choice([0, 1, 3]))}
    if query > 1 or not past:
        attributes["is_causal"] = int(rng.integers(2))
    attributes |= {"softcap": 2.0} if rng.integers(2) else {}
    attributes |= {"scale": 0.5} if rng.integers(2) else {}
    arrays = [floats(rng, shape) for shape in shapes]
    if rng.integers(2):
        attributes |= {"q_num_heads": kv * group, "kv_num_heads": kv}
        arrays = [x.swapaxes(1, 2).reshape(batch, x.shape[2], -1) for x in arrays]
    arrays.append(_attention_mask(rng, (batch, kv * group, query, past + key)))
    arrays += [floats(rng, (batch, kv, past, n)) if past else None for n in features]
    while arrays[-1] is None:
        arrays.pop()
    return attributes, arrays


def _attention_mask(rng: Rng, scores: tuple[int, ...]) -> Any:
    outer = tuple(1 if rng.integers(2) else size for size in scores[:2])
    shape = (*outer[rng.integers(3) :], *scores[2:])
    if not rng.integers(3):
        return None
    if rng.integers(2):
        return floats(rng, shape)
    kept = rng.integers(0, 2, shape).astype(bool)
    kept[..., 0] = True
    return kept
