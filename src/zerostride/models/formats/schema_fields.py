"""Tables of a flatbuffers schema: numbered names, and the fields of options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from .flatbuffer import Table


class Field(NamedTuple):
    """A field of a table.

    Attributes:
        name: its name in the schema.
        number: its number in the table.
        kind: a scalar's kind; "string"; or a scalar's kind and "s" for a list, as in "int32s".
        default: its value if a file leaves it out.
    """

    name: str
    number: int
    kind: str
    default: int


def counted(*runs: tuple[int, str]) -> Mapping[int, str]:
    """Numbers to names, from runs of consecutive numbers.

    >>> dict(counted((0, "a b"), (7, "c")))
    {0: 'a', 1: 'b', 7: 'c'}
    """
    pairs = (pair for start, words in runs for pair in enumerate(words.split(), start))
    return MappingProxyType(dict(pairs))


def fields(words: str) -> tuple[Field, ...]:
    """Fields from "axis:0", "keepDims:3:bool", "ceilModel:10:bool:1"; int32 by default."""
    parsed = []
    for word in words.split():
        name, number, *rest = word.split(":")
        kind, default = (*rest, *("int32", "0")[len(rest) :])
        parsed.append(Field(name, int(number), kind, int(default)))
    return tuple(parsed)


def read_fields(declared: Sequence[Field], table: Table | None) -> dict[str, Any]:
    """The values of fields by name; the default for a field that the file leaves out.

    A list that is left out differs from an empty one: `has_NAME` tells which it is.
    """
    values: dict[str, Any] = {}
    for field in declared:
        if field.kind.endswith("s"):
            kind = field.kind[:-1]
            vector = None if table is None else table.vector(field.number, kind)
            listed = table.numbers(field.number, kind) if table is not None and vector else ()
            values[field.name], values[f"has_{field.name}"] = listed, vector is not None
        elif field.kind == "string":
            values[field.name] = (None if table is None else table.text(field.number)) or ""
        else:
            values[field.name] = _number(field, table)
    return values


def _number(field: Field, table: Table | None) -> Any:
    kind = "uint8" if field.kind == "bool" else field.kind
    number = field.default if table is None else table.number(field.number, kind, field.default)
    if field.kind == "bool":
        return bool(number)
    return float(number) if field.kind == "float32" else number
