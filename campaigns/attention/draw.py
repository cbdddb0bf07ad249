"""Random calls of attention, with arrays that cannot hide a mistake."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

import zerostride as zs
from zerostride.attention.compute import attention, steps
from zerostride.attention.plan import UNASKED
from zerostride.attention.planning import plan_asked
from zerostride.attention.rows import find_rule
from zerostride.attention.rules import AttentionRule
from zerostride.attention.stored import Stored

#: Lengths of queries and keys.
_LENGTHS = (1, 2, 3, 4, 5, 7)


@dataclass(frozen=True, slots=True)
class Call:
    """A call.

    Attributes:
        number: its number.
        arrays: the operands by name.
        arguments: those of :func:`zerostride.plan_attention`.
        beside: the sink of each head, the angles of each position, the lengths of samples, and the
            scales and numbers of a quantised past, by name.
        parts: of the call, that :func:`zerostride.plan_attention` does not ask for.
        neighbours: neighbouring features are turned, not features that are half apart.
    """

    number: int
    arrays: dict[str, NDArray[Any]]
    arguments: dict[str, Any]
    beside: dict[str, NDArray[Any]] = field(default_factory=dict)
    parts: dict[str, Any] = field(default_factory=dict)
    neighbours: bool = False

    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Of query, key, value, and the mask if there is one."""
        names = ("query", "key", "value", "mask")
        return tuple(self.arrays[name].shape for name in names if name in self.arrays)

    def plan(self) -> zs.AttentionPlan:
        """What the call means."""
        asked = {name: value for name, value in self.arguments.items() if name not in _RULE}
        parts = self.parts | {"shapes": self.shapes()}
        parts |= {part: name in self.beside for part, name in _BESIDE.items()}
        rule = find_rule(*(self.arguments[name] for name in _RULE))
        return plan_asked(rule, replace(UNASKED, **asked, **parts))

    def without_key(self, plan: zs.AttentionPlan) -> NDArray[Any]:
        """Whether a result is that of a query whose every key is masked."""
        names = ("query", "key", "value", "mask")
        operands = [self.arrays[name] for name in names if name in self.arrays]
        pasts = (self.arrays.get(name) for name in ("past_key", "past_value"))
        scores = next(islice(steps(plan, operands, *pasts), 2, None))
        batch, heads, group, query, _ = scores.shape
        empty = (scores.max(-1) < -1e37).reshape(batch, heads * group, query).swapaxes(1, 2)
        return np.asarray(np.repeat(empty, plan.shape[2] // empty.shape[2], 2))

    def compute(self, plan: zs.AttentionPlan) -> NDArray[Any]:
        """The numbers of the call."""
        names = ("query", "key", "value", "mask")
        read = {name: self.arrays[name] for name in names if name in self.arrays}
        if "angles" in self.beside:
            for name, heads in zip(("query", "key"), self.arguments["heads"], strict=True):
                read[name] = self._turned(read[name], heads)
        if self.parts.get("stored"):
            for name in ("key", "value"):
                read[name] = self._rounded(read[name], name)
        key, value = (self.arrays.get(name) for name in ("past_key", "past_value"))
        operands = list(read.values())[: len(plan.operands)]
        beside = self.beside.get("sink", 0.0), self.beside.get("lengths")
        result = attention(plan, operands, key, value, *beside)
        if plan.layout == "s(hd)":  # the next product spreads a NaN over all features
            result[np.isnan(result).any(-1)] = np.nan
        return result

    def _rounded(self, array: NDArray[Any], name: str) -> NDArray[Any]:
        """New keys or values as they are read, after they are stored."""
        scale = self.beside[f"{name}_scale"].swapaxes(1, 2)  # of (batch, length, head, feature)
        by_head = array.reshape(*array.shape[:2], self.arguments["heads"][1], -1)
        codes = quantised(by_head, scale, self.parts["stored"])
        return np.asarray(codes * scale).reshape(array.shape)

    def _turned(self, array: NDArray[Any], heads: int) -> NDArray[Any]:
        """The first features of each head, turned by the angles of their place."""
        batch, length, width = array.shape
        past, angles = self.arguments.get("past", 0), self.beside["angles"]
        half = angles.shape[1]
        by_head = array.reshape(batch, length, heads, width // heads).copy()
        first, second = slice(half), slice(half, 2 * half)
        if self.neighbours:
            first, second = slice(0, 2 * half, 2), slice(1, 2 * half, 2)
        turn = np.exp(1j * angles[past : past + length])[:, None]
        pairs = (by_head[..., first] + 1j * by_head[..., second]) * turn
        by_head[..., first], by_head[..., second] = pairs.real, pairs.imag
        return by_head.reshape(array.shape)


#: The arguments that name the row, and the parts of a call whose numbers are beside it.
_RULE = ("engine", "op")
_BESIDE = {"rotated": "angles", "sink": "sink", "ragged": "lengths"}


def quantised(array: NDArray[Any], scale: NDArray[Any], stored: Stored) -> NDArray[Any]:
    """The whole numbers that stand for an array, as floats."""
    return np.clip(np.rint(array * (1 / scale)), *stored.ends).astype(np.float32)


def draw(rule: AttentionRule, number: int, seed: int) -> Call:
    """The call of a number; most of them are such as the row takes."""
    rng = np.random.default_rng([seed, number, len(rule.op)])
    rank = int(rng.choice(sorted(rule.layouts)))
    layout = str(rng.choice(rule.layouts[rank]))
    sizes = _sizes(rule, rng)
    arrays = _operands(layout, sizes, _asked_to_stretch(rule), rng)
    arguments: dict[str, Any] = {"engine": rule.engine or None, "op": rule.op}
    if "(hd)" in layout:
        arguments["heads"] = (sizes["h"], sizes["k"])
    if rule.past and sizes["p"]:
        arguments["past"] = sizes["p"]
        heads = (sizes["b"], sizes["k"], sizes["p"])
        arrays["past_key"] = _floats(rng, (*heads, sizes["d"]))
        arrays["past_value"] = _floats(rng, (*heads, sizes["v"]))
    optional = rule.causal and not rule.always_causal and not rule.causal_unmasked
    arguments["causal"] = bool(optional and rng.random() < 0.4)
    if rng.random() < 0.3 and rule.engine != "mnn":
        arguments["scale"] = float(np.float32(rng.choice([0.25, 0.5, 1.0])))
    if rule.softcap and rng.random() < 0.3:
        arguments["softcap"] = float(rng.choice([1.0, 2.5]))
    if rule.window and rng.random() < 0.2:
        arguments["window"] = int(rng.integers(1, 5 if _grouped(rule) else 4))
    if rule.masks and rng.random() < 0.75:
        arrays["mask"], arguments["mask_type"] = _mask(rule, layout, sizes, rng)
    beside, neighbours = _beside(rule, layout, sizes, rng)
    call = Call(number, arrays, arguments, beside, {}, neighbours)
    _add_parts(rule, call, sizes, rng)
    return call


def _add_parts(
    rule: AttentionRule, call: Call, sizes: dict[str, int], rng: np.random.Generator
) -> None:
    """Later keys in a window, lengths of samples, quantised keys, and the past of a window."""
    if rule.ahead and rng.random() < 0.15:
        call.parts["ahead"] = int(rng.integers(0, 3))
    if (
        rule.ragged
        and sizes["b"]
        and (not sizes["p"] or rng.random() < 0.1)
        and rng.random() < 0.45
    ):
        lengths = rng.integers(0, sizes["t"] + 1, sizes["b"])
        call.beside["lengths"] = lengths.astype(np.int64)
    if "window" in call.arguments and _grouped(rule) and rng.random() < 0.5:
        room = call.arguments["window"] + int(rng.choice([-1, 0, 0, 1, 2, 4]))
        call.parts["room"] = max(1, room)
    if rule.stores and rng.random() < 0.4:
        _store(call, sizes, rng)


def _store(call: Call, sizes: dict[str, int], rng: np.random.Generator) -> None:
    """Makes the keys and values quantised ones."""
    stored = Stored(int(rng.choice([4, 8])), bool(rng.integers(2)))
    call.parts["stored"] = stored
    for name in ("key", "value"):
        shape = (1, sizes["k"], 1, sizes["d"]) if stored.by_feature else (1, 1, 1, 1)
        scale = (rng.uniform(0.01, 0.03, shape) * (16 if stored.bits == 4 else 1)).astype("f4")
        call.beside[f"{name}_scale"] = scale
        if f"past_{name}" in call.arrays:
            codes = quantised(call.arrays[f"past_{name}"], scale, stored)
            call.beside[f"{name}_codes"] = codes
            call.arrays[f"past_{name}"] = codes * scale


def _beside(
    rule: AttentionRule, layout: str, sizes: dict[str, int], rng: np.random.Generator
) -> tuple[dict[str, NDArray[Any]], bool]:
    """A sink and angles, where the op takes them, and whether neighbours are turned."""
    beside = {}
    if rule.sink and rng.random() < 0.3:
        beside["sink"] = _floats(rng, (sizes["h"] if "h" in layout else 1,)) * int(
            rng.integers(2)
        )  # zeros: smooth
    if _grouped(rule) and (sizes["d"] > 8 or rng.random() < 0.1):
        half = int(rng.choice([8, sizes["d"] // 2])) if sizes["d"] > 16 else sizes["d"] // 2
        beside["angles"] = rng.random((64, half)).astype(np.float32) * 6
    return beside, _grouped(rule) and bool(rng.random() < 0.5)


def _asked_to_stretch(rule: AttentionRule) -> bool:
    """Whether a batch or heads of 1 are drawn beside more, and lengths of 0.

    OpenVINO's frontend takes some of them, by the way that it writes the op, and not others. MNN
    checks none of them.
    """
    return bool(rule.stretches) or rule.engine not in ("openvino", "mnn")


def _grouped(rule: AttentionRule) -> bool:
    """Whether it is a GroupQueryAttention, which has as many keys as queries."""
    return rule.op.startswith("GroupQueryAttention")


def _sizes(rule: AttentionRule, rng: np.random.Generator) -> dict[str, int]:
    kv = int(rng.integers(1, 4))
    ratio = int(rng.choice([1, 2, 3, 4, 8])) if rule.grouping and rng.random() < 0.6 else 1
    feature = int(rng.choice([4, 8, 8, 8]))
    past = int(rng.choice([0, 0, 1, 3])) if rule.past else 0
    empty = [0] if _asked_to_stretch(rule) else []
    query = int(rng.choice([*empty, *_LENGTHS] if rng.random() < 0.1 else _LENGTHS))
    keys = int(rng.choice([*empty, *_LENGTHS] if rng.random() < 0.1 else _LENGTHS))
    sizes = {"b": int(rng.integers(1, 4)), "k": kv, "h": kv * ratio, "s": query, "t": keys}
    if rng.random() < 0.3:
        sizes["t"] = sizes["s"]
    if _grouped(rule) and rng.random() < 0.5:
        feature = int(rng.choice([16, 32]))  # of angles
        if rng.random() < 0.2:
            sizes["s"] = sizes["h"]
    if _grouped(rule) or rule.op == "com.microsoft.Attention":
        sizes["t"] = sizes["s"]
    if rule.engine == "mnn" and rng.random() < 0.85:
        sizes |= {"t": sizes["s"], "b": 1}
    if past and _grouped(rule):
        sizes["b"] = 1
    sizes |= {"d": feature, "v": feature, "p": past}
    if rng.random() < 0.3 and not _grouped(rule):
        sizes["v"] = int(rng.choice([4, 8]))
    if rule.engine == "mnn" and rng.random() < 0.85:
        sizes["v"] = feature
    return sizes


def _operands(
    layout: str, sizes: dict[str, int], may_stretch: bool, rng: np.random.Generator
) -> dict[str, NDArray[Any]]:
    arrays = {}
    for name in ("query", "key", "value"):
        own = dict(sizes)
        if name != "query":
            own |= {"h": sizes["k"], "s": sizes["t"]}
        if name == "value":
            own["d"] = sizes["v"]
        if (
            "(hd)" not in layout
            and may_stretch
            and not sizes["p"]
            and sizes["s"]
            and rng.random() < 0.04
        ):
            own[str(rng.choice(["b", "h"]))] = 1
        shape = [
            own["h"] * own["d"] if letter == "x" else own[letter]
            for letter in layout.replace("(hd)", "x")
        ]
        arrays[name] = _floats(rng, tuple(shape))
    return arrays


def _floats(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[Any]:
    return (rng.standard_normal(shape) * 1.5).astype(np.float32)


def _mask(
    rule: AttentionRule, layout: str, sizes: dict[str, int], rng: np.random.Generator
) -> tuple[NDArray[Any], str]:
    """A mask of a random place, some of them of sizes that do not fit, and its type."""
    kinds = sorted({kind for kind, _ in rule.masks})
    kind = str(rng.choice(kinds))
    scores = {"sd": "st", "hsd": "hst", "bsd": "bst", "s(hd)": "hst"}.get(layout, "bhst")
    rows = [(rank, row.layout) for (name, rank), row in rule.masks.items() if name == kind]
    layouts = {letters or scores[-rank:] for rank, letters in rows}
    if rng.random() < 0.15 and rule.engine not in ("torch", "openvino", "mnn"):
        layouts |= {"st", "hst", "bst", "bhst"} | ({"t"} if "b" not in layouts else set())
    layout = str(rng.choice(sorted(layouts)))
    total = sizes["t"] + sizes["p"]
    full = {"b": sizes["b"], "h": sizes["h"], "s": sizes["s"], "t": total}
    if "h" in layout and rng.random() < 0.5:
        full["h"] = 1
    for letter in layout:
        if rng.random() < 0.15:
            full[letter] = 1
    if rule.short_keys and total > 1 and rng.random() < 0.2:
        full["t"] = int(rng.integers(1, total))
    shape = tuple(full[letter] for letter in layout)
    if kind == "bool":
        row = rule.masks.get(("bool", len(layout)))
        if row is not None and row.lengths:
            return rng.integers(1, max(total, 1) + 1, shape).astype(np.int32), "bool"
        mask = rng.random(shape) < 0.6
        if mask.ndim > 1 and mask.size and rng.random() < 0.4:
            mask[..., :1, :] = False
        return mask, "bool"
    mask = _floats(rng, shape)
    if rng.random() < 0.5:
        mask[rng.random(shape) < 0.3] = -np.inf
    if mask.ndim > 1 and mask.size and rng.random() < 0.4:
        mask[..., :1, :] = rng.choice(np.array([-np.inf, np.finfo(np.float32).min]))
    return mask, "float"
