"""How a function packs its results: a single one, or a tuple, a list or a dict of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ...compute.foreign import is_foreign
from ...compute.semantics import WEAK
from ...errors import TraceError

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Structure:
    """A result, or a container of them.

    Attributes:
        kind: None for one result; otherwise the container's type: tuple, named tuple, list or dict.
        keys: of a dict.
        parts: the structures of the container's items.
    """

    kind: type[Any] | None = None
    keys: tuple[Any, ...] = ()
    parts: tuple[Structure, ...] = ()

    @property
    def count(self) -> int:
        """The number of results."""
        return 1 if self.kind is None else sum(part.count for part in self.parts)

    @property
    def is_plain_tuple(self) -> bool:
        """Whether it is an unnamed tuple of results, without containers in it."""
        return self.kind is tuple and all(part.kind is None for part in self.parts)

    def pack(self, results: Sequence[Any]) -> Any:
        """The results as the function returns them.

        >>> Structure(tuple, (), (Structure(), Structure())).pack([1, 2])
        (1, 2)
        """
        return self._pack(iter(results))

    def _pack(self, results: Iterator[Any]) -> Any:
        if self.kind is None:
            return next(results)
        parts = [part._pack(results) for part in self.parts]
        if self.kind is dict:
            return dict(zip(self.keys, parts, strict=True))
        make = getattr(self.kind, "_make", self.kind)  # a named tuple's
        return make(parts)

    def unpack(self, packed: Any, what: str) -> list[Any]:
        """The leaves of an object that is packed in the same way, None for missing ones.

        Raises:
            TypeError: it is packed in another way.

        >>> Structure(tuple, (), (Structure(), Structure())).unpack(None, "out")
        [None, None]
        """
        if packed is None:
            return [None] * self.count
        if self.kind is None:
            if type(packed) is tuple and len(packed) == 1:  # as NumPy's ufuncs take it
                (packed,) = packed
            return [packed]
        parts = self._parts(packed, what)
        return [
            leaf
            for part, item in zip(self.parts, parts, strict=True)
            for leaf in part.unpack(item, what)
        ]

    def named_outs(self) -> list[str]:
        """How a caller writes the parts of an `out` that is packed in the same way.

        >>> Structure(dict, ("a",), (Structure(list, (), (Structure(), Structure())),)).named_outs()
        ["out['a'][0]", "out['a'][1]"]
        """
        return self._named("out")

    def _named(self, name: str) -> list[str]:
        if self.kind is None:
            return [name]
        keys = self.keys if self.kind is dict else range(len(self.parts))
        pairs = zip(keys, self.parts, strict=True)
        return [leaf for key, part in pairs for leaf in part._named(f"{name}[{key!r}]")]

    def _parts(self, packed: Any, what: str) -> list[Any]:
        if self.kind is dict:
            if isinstance(packed, dict) and {*packed} <= {*self.keys}:
                return [packed.get(key) for key in self.keys]
        elif isinstance(packed, tuple | list) and len(packed) == len(self.parts):
            return list(packed)
        raise TypeError(f"{what} is packed as the results are, {self}; not {_named(packed)}")

    def __str__(self) -> str:
        if self.kind is None:
            return "an array"
        if self.kind is dict:
            return f"a dict of {', '.join(map(repr, self.keys))}"
        return f"a {self.kind.__name__} of {len(self.parts)}"


def structure_of(
    returned: Any, lift: Callable[[Any], _T], place: str = ""
) -> tuple[Structure, list[_T]]:
    """The structure of results, and each result through `lift`; `place` is the function's place.

    Raises:
        TraceError: the function returns an object that is not an array.
    """
    leaves: list[_T] = []

    def visit(part: Any) -> Structure:
        if isinstance(part, dict):
            keys = tuple(part)
            return Structure(dict, keys, tuple(visit(part[key]) for key in keys))
        if isinstance(part, tuple | list):
            return Structure(type(part), (), tuple(map(visit, part)))
        if not _is_array(part):
            raise TraceError(
                f"a fused function returns arrays, or tuples, lists or dicts of them; "
                f"not {_named(part)}",
                place,
                "return the arrays, and do the rest outside of the function",
            )
        leaves.append(lift(part))
        return Structure()

    return visit(returned), leaves


def _is_array(part: Any) -> bool:
    return (
        type(part) in WEAK
        or isinstance(part, np.ndarray | np.generic)
        or hasattr(type(part), "__zerostride_trace__")
        or is_foreign(part)
    )


def _named(packed: Any) -> str:
    if isinstance(packed, tuple | list | dict):
        return f"a {type(packed).__name__} of {len(packed)}"
    return "None" if packed is None else f"{type(packed).__name__}"
