"""Objects packed in tuples, lists and dicts, as the results of a fused function may be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any


def leaves(packed: Iterable[Any]) -> Iterator[Any]:
    """The packed objects.

    >>> list(leaves([1, (2, {"a": 3})]))
    [1, 2, 3]
    """
    for item in packed:
        if isinstance(item, dict):
            yield from leaves(item.values())
        elif isinstance(item, tuple | list):
            yield from leaves(item)
        else:
            yield item


def mapped(packed: Any, function: Callable[[Any], Any]) -> Any:
    """The same structure with `function` of each object; None stays.

    >>> mapped((1, {"a": 2}, None), str)
    ('1', {'a': '2'}, None)
    """
    return zipped(packed, None, lambda item, _: None if item is None else function(item))


def zipped(packed: Any, other: Any, function: Callable[[Any, Any], Any]) -> Any:
    """The same structure with `function` of each object and the one at its place in `other`.

    >>> zipped([1, 2], [None, 3], lambda one, two: two or one)
    [1, 3]
    """
    if isinstance(packed, dict):
        beside = other or {}
        return {key: zipped(item, beside.get(key), function) for key, item in packed.items()}
    if isinstance(packed, tuple | list):
        beside = [None] * len(packed) if other is None else other
        parts = [zipped(item, to, function) for item, to in zip(packed, beside, strict=True)]
        return getattr(type(packed), "_make", type(packed))(parts)
    return function(packed, other)
