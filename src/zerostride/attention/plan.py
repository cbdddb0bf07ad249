"""The plan of an attention: every operand in one space of six axes, with strides of 0.

The scores are a product over (batch, kv head, group, query, key, feature). A key has no axis for
groups and queries, a query none for keys: there it repeats, with a stride of 0. Key heads that
serve several query heads are the axis `group`; a mask repeats wherever it has size 1 or no axis.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import BroadcastError, Reason
from ..sizes import Shape
from .rules import AttentionRule, Causal, EmptyRow, Softcap
from .stored import Stored

if TYPE_CHECKING:
    from ..sizes.condition import Condition
    from ..sizes.dim import Number
    from .methods import AttentionMethods
else:
    AttentionMethods = object  # attached when the room is loaded

#: The axes on which every operand lands, outermost first.
AXES = ("batch", "kv head", "group", "query", "key", "feature")


class Space(NamedTuple):
    """The sizes of the axes; `value_feature` is the size of a value's last axis."""

    batch: Number
    kv_head: Number
    group: Number
    query: Number
    key: Number
    feature: Number
    value_feature: Number


@dataclass(frozen=True, slots=True)
class Operand:
    """Where an operand lands.

    Attributes:
        name: query, key, value or mask.
        shape: its sizes as written.
        strides: its step along each of `AXES`, in elements; 0 where it repeats.
        sizes: its size along each of `AXES`; 1 where it repeats.
    """

    name: str
    shape: Shape
    strides: tuple[Number, ...]
    sizes: tuple[Number, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """What :func:`zerostride.plan_attention` was asked, checked; see there."""

    shapes: tuple[Shape, ...]
    causal: bool | Causal
    heads: tuple[int, int | None] | None
    past: Number
    scale: float | None
    softcap: float
    window: int | None
    mask_type: str
    facts: Any
    rotated: bool = False  # query and key are turned by their positions before
    sink: bool = False  # one more score of each head, without a value
    ahead: int | None = None  # the most keys behind its own place that a query sees
    ragged: bool = False  # each sample has its own number of keys, the last of its queries' own
    stored: Stored | None = None  # keys and values are quantised
    room: int | None = None  # the keys that the past of a window has room for


#: A call without shapes that asks for nothing more.
UNASKED = Asked((), False, None, 0, None, 0.0, None, "float", None)


class Difference(NamedTuple):
    """One way in which two plans differ.

    Attributes:
        code: heads, mask, causal, window, softcap, scale, empty_row or shape.
        left: what the first one means, in words.
        right: what the second one means.
    """

    code: str
    left: str
    right: str

    def __str__(self) -> str:
        return f"{self.code.replace('_', ' ')}: {self.left}, against {self.right}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AttentionPlan(AttentionMethods):
    """How a query, keys, values and a mask become one result.

    Made by :func:`zerostride.plan_attention`. Frozen; equal and hashed by what is computed: the
    places of all operands, the mask's meaning, the causal offset, window, scale, softcap, and what
    a row without a key gives. The op and the engine are provenance.

    Attributes:
        shape: the result's sizes, in the query's layout.
        space: the sizes of (batch, kv head, group, query, key, feature, value feature).
        operands: query, key, value, and the mask if there is one.
        mask_type: "float" (added to the scores), "bool" (true keeps a key); None without a mask.
        mask_keys: the keys that the mask speaks of; those behind are masked.
        past: the number of past keys, which stand before the keys of `key`.
        offset: query i sees the keys up to i + offset; None if it sees all. Where each sample has
            its own number of keys, this is so of one that has all of them.
        own: the key of query 0's own place, from which a window counts; None without a window.
        window: the most keys that a query sees, its own included; None: all.
        scale: the factor of the scores; None is 1/sqrt(feature).
        softcap: scores are bounded to ±softcap by a tanh; 0: they are not.
        softcap_at: before or after the mask; None if it does not matter.
        empty: what a query gives whose every key is masked, by how they are masked ("bool", or an
            added "-inf" or "lowest"); empty if no query can lack all keys.
        rule: the row it came from.
        asked: the call, checked.
        conditions: what has to hold for open sizes.

    >>> import zerostride as zs
    >>> p = zs.plan_attention((2, 8, 5, 64), (2, 2, 7, 64), (2, 2, 7, 64), causal=True)
    >>> p.space.kv_head, p.space.group, p.offset
    (2, 4, 0)
    >>> p.key.strides
    (896, 448, 0, 0, 64, 1)
    """

    shape: Shape
    space: Space
    operands: tuple[Operand, ...]
    mask_type: str | None
    mask_keys: Number | None
    past: Number
    offset: Number | None
    own: Number | None
    window: int | None
    scale: float | None
    softcap: float
    softcap_at: Softcap | None
    empty: tuple[tuple[str, EmptyRow], ...]
    rule: AttentionRule
    asked: Asked
    conditions: Condition | tuple[()] = field(default=())

    @property
    def query(self) -> Operand:
        """The place of the query."""
        return self.operands[0]

    @property
    def key(self) -> Operand:
        """The place of the key."""
        return self.operands[1]

    @property
    def value(self) -> Operand:
        """The place of the value."""
        return self.operands[2]

    @property
    def mask(self) -> Operand | None:
        """The place of the mask, or None."""
        return self.operands[3] if len(self.operands) > 3 else None

    @property
    def layout(self) -> str:
        """The axes of the query, as the row writes them."""
        layouts = self.rule.layouts[len(self.query.shape)]
        packed = self.asked.heads is not None and any("(hd)" in layout for layout in layouts)
        return next(layout for layout in layouts if ("(hd)" in layout) is packed)

    @property
    def lengths(self) -> bool:
        """Whether the mask is a vector of the number of keys that each sample has."""
        row = self.rule.masks.get((self.mask_type or "", len(self.asked.shapes[-1])))
        return self.mask is not None and row is not None and row.lengths

    @property
    def causal_fill(self) -> float:
        """What is added to the score of a later key; -inf where that cannot be told from less."""
        both = self.mask is not None and self.offset is not None
        plain = self.asked.room is None or self.rule.empty_room is None
        return self.rule.causal_fill if both and plain else -math.inf

    @property
    def causal(self) -> str | None:
        """Where the causal mask begins: "top left", "bottom right", both, or None without one."""
        if self.offset is None:
            return None
        words = []
        if self.offset == self.past:
            words.append(Causal.PAST.value)
        if self.offset == self.space.key - self.space.query:
            words.append(Causal.END.value)
        return " and ".join(words) or f"from key {self.offset}"

    @property
    def factor(self) -> float | None:
        """The factor of the scores; None where it depends on an open size."""
        if self.scale is not None:
            return self.scale
        feature = self.space.feature
        return 1 / math.sqrt(feature) if isinstance(feature, int) and feature else None

    def _meaning(self) -> tuple[Any, ...]:
        places = tuple((operand.strides, operand.sizes) for operand in self.operands)
        keys = self.mask_keys if self.mask_type else None
        fill = self.causal_fill, self.rule.causal_replaces and self.causal_fill > -math.inf
        masked = (self.mask_type, self.lengths, keys, self.empty, fill)
        asked = self.asked
        beside = asked.rotated, asked.sink, asked.ragged, asked.stored
        seen = self.offset, self.own, self.window
        scores = (*seen, self.factor, self.softcap, self.softcap_at, beside)
        return (self.shape, self.space, self.past, places, masked, scores)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AttentionPlan):
            return NotImplemented
        return self._meaning() == other._meaning()

    def __hash__(self) -> int:
        return hash(self._meaning())

    def __repr__(self) -> str:
        shapes = ", ".join(str(operand.shape) for operand in self.operands)
        return f"<AttentionPlan {shapes} -> {self.shape} by {self.rule.name}>"

    def __str__(self) -> str:
        return self.explain()

    def need_numbers(self, what: str) -> None:
        """Raises BroadcastError if a size is open; `what` begins the message."""
        if any(not isinstance(size, int) for size in (*self.space, self.past)):
            raise BroadcastError(
                f"{what} needs all sizes as numbers",
                reason=Reason.UNKNOWN_SIZE,
                rule=self.rule.name,
                shapes=[operand.shape for operand in self.operands],
                hint="bind the sizes first: plan.bind(N=4)",
            )


def contiguous(sizes: Sequence[Number]) -> Iterator[Number]:
    """The steps of an array whose last axis is the fastest, in elements, outermost first.

    >>> list(contiguous((2, 3, 4)))
    [12, 4, 1]
    """
    steps: list[Number] = []
    step: Number = 1
    for size in reversed(sizes):
        steps.append(step)
        step = step * size
    return reversed(steps)
