"""The types of a row: how one op of a document, or of an engine, means attention.

Layouts are words of letters, one for each axis: `b` batch, `h` head, `s` query or key, `t` key,
`d` feature, and `(hd)` for heads that lie side by side in one axis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING

from ..errors import Reason

if TYPE_CHECKING:
    from .plan import AttentionPlan


class EmptyRow(StrEnum):
    """The result of a query whose keys are all masked."""

    ZERO = "zeros"
    NAN = "NaN"
    MEAN = "the mean of the values"
    UNMASKED = "the attention without the mask"
    UNUSED = "values that it does not see, and those in unused rows of the past"


class Causal(StrEnum):
    """Which key the first query sees last."""

    PAST = "top left"  # the key of its own number, counted behind the past keys
    END = "bottom right"  # the last query sees the last key


class Softcap(StrEnum):
    """When scores are bounded by the softcap."""

    BEFORE_MASK = "before the mask"
    AFTER_MASK = "after the mask"


@dataclass(frozen=True, slots=True)
class Mask:
    """A mask that an op takes.

    Attributes:
        layout: its axes, of the letters b, h, s and t; "" for the last axes of the scores.
        stretch: the letters whose axis may have size 1 and repeat.
        lengths: a vector of the number of keys that each sample has, instead of a mask.
    """

    layout: str
    stretch: str = "bhst"
    lengths: bool = False


@dataclass(frozen=True, slots=True)
class Fault:
    """What a release does to some plans, against its document or any sane result.

    Attributes:
        strikes: tells whether it affects a plan of numbers.
        text: the behaviour, in a sentence.
        reason: WRONG_RESULT, CRASH, or NO_OP where it says so.
    """

    strikes: Callable[[AttentionPlan], bool]
    text: str
    reason: Reason = Reason.WRONG_RESULT


@dataclass(frozen=True, slots=True)
class AttentionRule:
    """One op that computes attention.

    Attributes:
        op: its name.
        engine: whose it is; "" for a document.
        source: document and section, or the release that was run.
        layouts: the layouts of the query by its rank; those of key and value are the same.
        result: the layout of the result, where it is not the query's.
        masks: by the mask's type ("float" is added, "bool" says which keys are kept) and rank.
        grouping: which query heads a key head serves where it serves several: neighbours
            ("interleaved"), or each n-th ("tiled"); "" where it serves one.
        stretches: which axes of query, key and value repeat if one of them is 1: "b", "h", or "v"
            for the heads of key and value alone; "m" if they repeat for a mask, too.
        causal: the meaning of its causal mask; None where it has none.
        causal_past: the same with past keys, where that differs.
        always_causal: it has no other.
        causal_alone: a mask is not read if it is causal.
        causal_unmasked: it is causal without a mask and a sink, and not with one of them.
        short_keys: a mask's last axis may be shorter than the keys; those behind are masked. One of
            size 1 is no exception, and does not stretch.
        softcap: None where it has none.
        window: whether it has a sliding window.
        windows_unread: windows are taken, and not read.
        ahead: whether a window may end behind a query's own place.
        ragged: whether each sample may have its own number of keys, in a vector.
        stores: whether keys and values may be quantised.
        past: whether it takes past keys and values.
        sink: whether its softmax may have one more score for each head, without a value.
        causal_fill: what is added to the score of a later key. If it is finite, a query whose other
            keys are masked sees the later ones.
        causal_replaces: the fill stands in the place of the score, which is not read.
        empty: what a row without a key gives, by how the keys are masked: "bool" or an added "-inf"
            or "lowest", the least float.
        empty_plain: the same with a softcap, or with one key, where that differs.
        empty_room: the same where the past holds a window alone, where that differs.
        unchecked: shapes that do not fit are not refused: it reads other memory.
        faults: see :class:`Fault`.
        run: whether it was run, or only read.
    """

    op: str
    engine: str
    source: str
    layouts: Mapping[int, tuple[str, ...]]
    masks: Mapping[tuple[str, int], Mask]
    result: str = ""
    grouping: str = "interleaved"
    stretches: str = ""
    causal: Causal | None = Causal.PAST
    causal_past: Causal | None = None
    always_causal: bool = False
    causal_alone: bool = False
    causal_unmasked: bool = False
    short_keys: bool = False
    softcap: Softcap | None = None
    window: bool = False
    windows_unread: bool = False
    ahead: bool = False
    ragged: bool = False
    stores: bool = False
    past: bool = False
    sink: bool = False
    causal_fill: float = -inf
    causal_replaces: bool = False
    empty: Mapping[str, EmptyRow] = field(default_factory=lambda: MappingProxyType({}))
    empty_plain: Mapping[str, EmptyRow] | None = None
    empty_room: Mapping[str, EmptyRow] | None = None
    unchecked: bool = False
    faults: tuple[Fault, ...] = ()
    run: bool = True

    @property
    def name(self) -> str:
        """Engine and op, as tables print them."""
        return f"{self.engine} {self.op}".strip()
