"""Random calls of ONNX Runtime's attentions and of both RotaryEmbeddings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

Array = NDArray[Any]


@dataclass
class Case:
    """A call of an op.

    Attributes:
        op, domain: which op it is.
        attributes: of the node.
        arrays: its operands in order; None for one that is left out.
        held: the operands that are numbers of the file.
        outputs: how many results it has.
        tolerance: of the results.
        rows: how many rows of the present each sample has; those behind are not defined.
    """

    op: str
    domain: str
    attributes: dict[str, Any]
    arrays: dict[str, Array | None]
    held: set[str] = field(default_factory=set)
    outputs: int = 1
    tolerance: float = 2e-5
    rows: tuple[int, ...] = ()

    def model(self) -> onnx.ModelProto:
        """The model of one node."""
        names = [name if array is not None else "" for name, array in self.arrays.items()]
        while not names[-1]:
            names.pop()
        results = [f"y{number}" for number in range(self.outputs)]
        node = helper.make_node(
            self.op, names, results, "compound", domain=self.domain, **self.attributes
        )
        infos = [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in self.feeds().items()
        ]
        graph = helper.make_graph(
            [node],
            "g",
            infos,
            [
                helper.make_tensor_value_info(name, self._kind(number), None)
                for number, name in enumerate(results)
            ],
            [
                onnx.numpy_helper.from_array(array, name)
                for name, array in self.arrays.items()
                if name in self.held and array is not None
            ],
        )
        opsets = [helper.make_opsetid("", 17 if self.domain else 23)]
        if self.domain:
            opsets.append(helper.make_opsetid(self.domain, 1))
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)

    def _kind(self, number: int) -> int:
        """The element type of a result; that of the present is the past's."""
        past = self.arrays.get("past_key")
        return helper.np_dtype_to_tensor_dtype(past.dtype) if past is not None and number else 1

    def defined(self, number: int, result: Array) -> Array:
        """The numbers of a result that are defined; 0 elsewhere."""
        if not number or not self.rows:
            return result
        there = np.arange(result.shape[2])[:, None] < np.reshape(self.rows, (-1, 1, 1, 1))
        return np.where(there, result, 0)

    def feeds(self) -> dict[str, Array]:
        """The arrays of the inputs."""
        return {
            name: array
            for name, array in self.arrays.items()
            if array is not None and name not in self.held
        }

    def __str__(self) -> str:
        shapes = {n: (a.shape, str(a.dtype)) for n, a in self.arrays.items() if a is not None}
        return f"{self.domain}:{self.op} {self.attributes} {shapes} held {sorted(self.held)}"


class Draw:
    """Random sizes and numbers of one case."""

    def __init__(self, op: str, number: int) -> None:
        self.rng = np.random.default_rng([number, *op.encode()])

    def one(self, *options: Any) -> Any:
        """One of the options."""
        return options[int(self.rng.integers(len(options)))]

    def often(self, part: float) -> bool:
        """True for this part of the cases."""
        return bool(self.rng.random() < part)

    def floats(self, *shape: int) -> Array:
        """Floats around 0."""
        return (self.rng.standard_normal(shape) * 1.5).astype(np.float32)

    def bias(self, *shape: int) -> Array:
        """A mask of floats that is added; some are -inf or the least float."""
        bias = self.floats(*shape)
        if self.often(0.5):
            least = self.one(-np.inf, np.finfo(np.float32).min, -5000.0)
            bias[self.rng.random(shape) < 0.3] = least
            if self.often(0.5):
                bias[..., 0, :] = least
        return bias


def rotary(domain: str, number: int) -> Case:
    """RotaryEmbedding of a domain."""
    draw = Draw(f"{domain}rotary", number)
    local, packed, partial = bool(domain), draw.often(0.5), draw.often(0.4)
    batch, heads, length = (int(size) for size in draw.rng.integers(1, 5, 3))
    half = int(draw.rng.integers(1, 5))
    features = 2 * half + (2 * draw.one(1, 2) if partial else 0)
    attributes: dict[str, Any] = {"interleaved": draw.one(0, 1)}
    if partial:
        attributes["rotary_embedding_dim"] = 2 * half
    if (packed and (not local or draw.often(0.5))) or (local and partial):
        attributes["num_heads"] = heads
    shape = (batch, length, heads * features) if packed else (batch, heads, length, features)
    ids: Array | None = draw.rng.integers(0, 8, (batch, length))
    cache: tuple[int, ...] = (12, half)
    if local and draw.often(0.4):
        ids = np.array([draw.one(0, 1, 3)])
    elif not local and draw.often(0.5):
        ids, cache = None, (batch, length, half)
    angles = {"cos": draw.floats(*cache), "sin": draw.floats(*cache)}
    arrays: dict[str, Array | None] = {"x": draw.floats(*shape)}
    arrays |= {"ids": ids, **angles} if local else {**angles, "ids": ids}
    held = {name for name in ("cos", "sin", "ids") if draw.often(0.3)}
    return Case("RotaryEmbedding", domain, attributes, arrays, held)


def multi_head(number: int) -> Case:
    """MultiHeadAttention of com.microsoft."""
    draw = Draw("multi_head", number)
    batch, heads = draw.one(1, 2, 3), draw.one(1, 2, 4, 8)
    length, keys = draw.one(1, 2, 3, 5), draw.one(1, 2, 4, 7)
    if draw.often(0.3):
        keys = length
    features = draw.one(4, 8)
    value_features = draw.one(features, features, 4)
    past = draw.one(1, 3) if draw.often(0.35) else 0
    if past:
        value_features = features
    apart = not past and value_features == features and draw.often(0.3)
    key = (batch, heads, keys) if apart else (batch, keys)
    every = 1 if apart else heads
    arrays: dict[str, Array | None] = {
        "query": draw.floats(batch, length, heads * features),
        "key": draw.floats(*key, every * features),
        "value": draw.floats(*key, every * value_features),
        "bias": None,
    }
    if not apart and draw.often(0.3):
        arrays["bias"] = draw.floats(heads * (2 * features + value_features))
    arrays["padding"] = _padding(draw, batch, length, past + keys) if draw.often(0.5) else None
    outer = draw.one(1, batch), draw.one(1, heads)
    added = draw.often(0.4)
    arrays["added"] = draw.bias(*outer, length, past + keys) if added else None
    for name, last in (("past_key", features), ("past_value", value_features)):
        arrays[name] = draw.floats(batch, heads, past, last) if past else None
    attributes = {"num_heads": heads, **_options(draw)}
    return Case(
        "MultiHeadAttention",
        "com.microsoft",
        attributes,
        arrays,
        set(),
        3 if past else 1,
        _tolerance(arrays["padding"]),
    )


def projected(number: int) -> Case:
    """Attention of com.microsoft."""
    draw = Draw("projected", number)
    batch, heads, length = draw.one(1, 2, 3), draw.one(1, 2, 4, 8), draw.one(1, 2, 3, 5)
    features, width = draw.one(4, 8), draw.one(6, 8)
    past = draw.one(1, 3) if draw.often(0.4) else 0
    value_features = features if past else draw.one(features, features, 4)
    sizes = [heads * features, heads * features, heads * value_features]
    arrays: dict[str, Array | None] = {
        "input": draw.floats(batch, length, width),
        "weights": draw.floats(width, sum(sizes)) / 2,
        "bias": draw.floats(sum(sizes)) if draw.often(0.8) else None,
        "mask": _padding(draw, batch, length, past + length, 0) if draw.often(0.6) else None,
        "past": draw.floats(2, batch, heads, past, features) if past else None,
        "added": None,
    }
    if not past and draw.often(0.4):
        arrays["added"] = draw.bias(draw.one(1, batch), draw.one(1, heads), length, length)
    attributes = {"num_heads": heads, **_options(draw)}
    if sizes[0] != sizes[2] or draw.often(0.2):
        attributes["qkv_hidden_sizes"] = sizes
    held = {"weights", "bias"} if draw.often(0.7) else set()
    return Case(
        "Attention",
        "com.microsoft",
        attributes,
        arrays,
        held,
        2 if past else 1,
        _tolerance(arrays["mask"]),
    )


def _padding(draw: Draw, batch: int, length: int, keys: int, *more: int) -> Array:
    """A mask of each rank: lengths, keys, or queries and keys; 0: ends and starts, or one key."""
    rank = draw.one(1, 2, 3, *more)
    if rank == 0:
        bounds = draw.rng.integers(1, keys + 1, batch), draw.rng.integers(0, keys, batch)
        return np.concatenate(bounds).astype(np.int32)
    if rank == 1:
        return draw.rng.integers(0 if draw.often(0.1) else 1, keys + 1, batch).astype(np.int32)
    if more and draw.often(0.1):
        rank, keys = 2, 1
    shape = (batch, keys) if rank == 2 else (batch, length, keys)
    return (draw.rng.random(shape) < 0.7).astype(np.int32)


def _tolerance(padding: Array | None) -> float:
    """The tolerance: scores beside -10000 are multiples of 0.001, and decide where no key is kept.

    A causal mask, too, may leave a query no other key.
    """
    return 2e-5 if padding is None or (padding.ndim > 1 and padding.all()) else 5e-3


def _options(draw: Draw) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if draw.often(0.4):
        options["unidirectional"] = 1
    if draw.often(0.3):
        options["scale"] = draw.one(0.25, 0.5, 1.0)
    if draw.often(0.3):
        options["mask_filter_value"] = draw.one(-1.0, -100.0, float(np.finfo(np.float32).min))
    return options


def group_query(number: int) -> Case:
    """GroupQueryAttention of com.microsoft: prompts and steps, with pasts and buffers."""
    draw = Draw("group_query", number)
    key_heads, ratio = draw.one(1, 2, 3), draw.one(1, 2, 3, 4, 8)
    heads, features = key_heads * ratio, draw.one(8, 16, 32)
    batch, new, past = draw.one(1, 2, 3), draw.one(1, 2, 3, 5), draw.one(1, 2, 4)
    form = draw.one(
        "prompt", "padded", "padded", "buffer", "step", "step", "ragged", "more", "room",
        "window", "window", "window",
    )  # fmt: skip
    buffer: int | None = None
    window, rows = 0, ()
    if form in ("prompt", "padded"):
        total, lengths = new, [new] * batch
        if form == "padded":
            lengths = [int(draw.rng.integers(1, new + 1)) for _ in range(batch)]
    elif form == "buffer":
        buffer, total, lengths = new + draw.one(0, 2), new, [new] * batch
    elif form == "window":
        window = draw.one(1, 2, 3, 4)
        buffer = window + draw.one(0, 0, 1, 2, 4)
        total = new + draw.one(0, 0, 1, 2, 3, 5, 6, 8, 11)
        if total != new and batch > 1:
            new, total = 1, max(2, total - new + 1)
        lengths = [total] * batch
        if draw.often(0.5) and total != new:
            lengths = [int(draw.rng.integers(1, total + 1)) if new == 1 else total] * batch
            if batch > 1:
                lengths = [int(draw.rng.integers(1, total + 1)) for _ in range(batch)]
        step = buffer - window + 1
        rows = tuple(n - step * max(0, -(-(n - buffer) // step)) for n in lengths)
    elif form in ("step", "ragged"):
        buffer, new, total = past, 1, past + 1
        lengths = [total] * batch
        if form == "ragged":
            buffer += draw.one(0, 0, 1, 3)
            lengths = [int(draw.rng.integers(1, total + 1)) for _ in range(batch)]
    else:
        batch, buffer, total = 1, past, past + new
        lengths = [total]
        if form == "room":
            buffer = total + draw.one(0, 2)
    room = max(total, buffer or 0)
    if window and draw.often(0.5):
        features = 32  # a window's past of 4 bits has a multiple of it, one of 8 bits of 16
    packed = draw.often(0.3)
    widths = [heads * features, key_heads * features]
    arrays: dict[str, Array | None] = {
        "query": draw.floats(batch, new, sum(widths) + widths[1] if packed else widths[0]),
        **{
            name: None if packed else draw.floats(batch, new, widths[1])
            for name in ("key", "value")
        },
        **{
            name: None if buffer is None else draw.floats(batch, key_heads, buffer, features)
            for name in ("past_key", "past_value")
        },
        "lengths": np.array(lengths, np.int32) - 1,
        "total": np.array([total], np.int32),
        **dict.fromkeys(("cos", "sin", "places", "added")),
    }
    attributes: dict[str, Any] = {"num_heads": heads, "kv_num_heads": key_heads}
    if features % 16 == 0 and draw.often(0.6):
        attributes |= {"do_rotary": 1, "rotary_interleaved": draw.one(0, 1)}
        half = draw.one(8, features // 2)
        arrays |= {"cos": draw.floats(room + 4, half), "sin": draw.floats(room + 4, half)}
        if draw.often(0.3):
            arrays["places"] = draw.rng.integers(0, room, (batch, new))
    if draw.often(0.35) and not (window and len({*lengths}) > 1):
        arrays["added"] = draw.bias(draw.one(1, batch), draw.one(1, heads), new, total)
    tolerance = 2e-5
    if buffer is not None and draw.often(0.5):
        tolerance = _quantised(draw, attributes, arrays, 8 if window and features < 32 else None)
    if draw.often(0.4):
        attributes["softcap"] = draw.one(1.0, 2.5)
    if draw.often(0.3):
        attributes["scale"] = draw.one(0.25, 0.5)
    if draw.often(0.7 if form == "padded" else 0.35):
        attributes["local_window_size"] = draw.one(1, 2, 3)
    if window:
        attributes |= {"local_window_size": window, "sliding_window_cache": 1}
    held = {"lengths"} if draw.often(0.4) or (window and arrays["added"] is not None) else set()
    if buffer is not None or draw.often(0.3):
        held.add("total")
    domain = "com.microsoft"
    return Case("GroupQueryAttention", domain, attributes, arrays, held, 3, tolerance, rows)


def _quantised(
    draw: Draw, attributes: dict[str, Any], arrays: dict[str, Array | None], bits: int | None
) -> float:
    """Makes the past of a call a quantised one; the tolerance of its results."""
    bits, kind = bits or draw.one(4, 8), draw.one("PER_TENSOR", "PER_CHANNEL")
    attributes |= {"kv_cache_bit_width": bits, "k_quant_type": kind, "v_quant_type": kind}
    arrays["sink"] = None
    for name, scale in (("past_key", "k_scale"), ("past_value", "v_scale")):
        past = arrays[name]
        assert past is not None
        batch, heads, room, features = past.shape
        whole = draw.rng.integers(0, 256, (batch, heads, room, features * bits // 8))
        arrays[name] = whole.astype(np.uint8) if bits == 4 else (whole - 128).astype(np.int8)
        sizes = (1, heads, 1, features) if kind == "PER_CHANNEL" else draw.one((1,), (1, 1, 1, 1))
        numbers = draw.rng.uniform(0.01, 0.03, sizes) * (1 if bits == 8 else 16)
        arrays[scale] = numbers.astype(np.float32)
    return 2e-4


#: The cases of each op by number.
CASES: Mapping[str, Callable[[int], Case]] = MappingProxyType(
    {
        "ai.onnx.RotaryEmbedding": lambda number: rotary("", number),
        "RotaryEmbedding": lambda number: rotary("com.microsoft", number),
        "Attention": projected,
        "MultiHeadAttention": multi_head,
        "GroupQueryAttention": group_query,
    }
)
