"""Keys and values that are stored quantised, and pasts that hold a window alone.

A scale is a broadcast over the keys and values. ONNX Runtime 1.32.0's CPU stores them so in
com.microsoft.GroupQueryAttention; run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..errors import Misfit, Reason

_KINDS = ("NONE", "PER_TENSOR", "PER_CHANNEL")


class Stored(NamedTuple):
    """How keys and values are stored.

    Attributes:
        bits: 8, as int8; or 4, two in a byte, each with 8 added.
        by_feature: the scale has a number for each head and feature; else it is one number.
    """

    bits: int
    by_feature: bool

    @property
    def dtype(self) -> str:
        """The element type of the past."""
        return "int8" if self.bits == 8 else "uint8"

    @property
    def bias(self) -> int:
        """The number that is added before storing."""
        return 0 if self.bits == 8 else 8

    @property
    def ends(self) -> tuple[int, int]:
        """The lowest and the highest number."""
        return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1

    def width(self, features: int) -> int:
        """How many elements store the features of one key.

        >>> Stored(4, by_feature=True).width(16)
        8
        """
        return features if self.bits == 8 else (features + 1) // 2

    def __str__(self) -> str:
        axes = "batch and key" if self.by_feature else "all axes"
        return f"{self.bits} bits, with a scale that repeats along {axes}: stride 0"


def resident(total: int, room: int, window: int) -> int:
    """The keys that the past of a window holds after `total` keys.

    It has room for C keys; a query sees the last W. With G = C - W + 1, `total` keys T
    leave T - G * ceil((T - C) / G), or T where that is no more than C.
    Source: ONNX Runtime's schema of com.microsoft.GroupQueryAttention, "Windowed KV Cache"; run.

    >>> [resident(total, 6, 4) for total in (3, 6, 7, 8, 9, 10)]
    [3, 6, 4, 5, 6, 4]
    """
    step = room - window + 1
    return total - step * max(0, -(-(total - room) // step))


def stored_as(attributes: Mapping[str, Any]) -> Stored | None:
    """How the attributes of a GroupQueryAttention say that keys and values are stored.

    Raises:
        Misfit: ONNX Runtime's CPU refuses them.

    >>> print(stored_as({"kv_cache_bit_width": 4, "k_quant_type": "PER_TENSOR",
    ...                  "v_quant_type": "PER_TENSOR"}))
    4 bits, with a scale that repeats along all axes: stride 0
    """
    kinds = [_word(attributes.get(f"{part}_quant_type", "NONE")) for part in ("k", "v")]
    bits = attributes.get("kv_cache_bit_width", 0)
    for kind in kinds:
        if kind not in _KINDS:
            raise Misfit(
                Reason.ATTRIBUTE, f"a quant_type is one of {', '.join(_KINDS)}, not {kind}"
            )
    if kinds[0] != kinds[1]:
        raise Misfit(
            Reason.ATTRIBUTE, f"keys are {kinds[0]}, and values {kinds[1]}; they are alike"
        )
    if kinds[0] == "NONE":
        if bits:
            raise Misfit(
                Reason.ATTRIBUTE, f"kv_cache_bit_width is {bits}, and nothing is quantised"
            )
        return None
    if bits not in (4, 8):
        raise Misfit(Reason.ATTRIBUTE, f"kv_cache_bit_width is {bits}; quantised, it is 4 or 8")
    return Stored(bits, kinds[0] == "PER_CHANNEL")


def _word(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
