"""One question to an engine, and verified cases of a file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...errors import BadInput

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """One question: an op of an engine, with its attributes, on operands of these shapes.

    Attributes:
        engine: the engine's name.
        op: the op as the engine calls it ("Add-14", "elementwise_sub", "broadcast_in_dim").
        a: shape of the first operand (of the data, for ops that broadcast to a target).
        b: shape of the second operand, or the target shape.
        c: shape of the third operand, for ops that have one.
        attrs: the op's attributes.
        dtype: the operands' dtype.
    """

    engine: str
    op: str
    a: Shape
    b: Shape
    c: Shape | None = None
    attrs: Mapping[str, Any] = field(default_factory=dict)
    dtype: str = "float32"

    def to_json(self) -> dict[str, Any]:
        """As a line of a cases file, without the answer."""
        row: dict[str, Any] = {"engine": self.engine, "op": self.op, "attrs": dict(self.attrs)}
        row |= {"a": list(self.a), "b": list(self.b)}
        if self.c is not None:
            row["c"] = list(self.c)
        if self.dtype != "float32":
            row["dtype"] = self.dtype
        return row

    @staticmethod
    def from_json(row: Mapping[str, Any]) -> Case:
        """The case of one line; raises KeyError, TypeError or ValueError where it is malformed."""
        third = row.get("c")
        return Case(
            str(row["engine"]),
            str(row["op"]),
            _shape(row["a"]),
            _shape(row["b"]),
            None if third is None else _shape(third),
            dict(row.get("attrs", {})),
            str(row.get("dtype", "float32")),
        )


def _shape(sizes: Iterable[Any]) -> Shape:
    return tuple(int(size) for size in sizes)


@dataclass(frozen=True, slots=True)
class Recorded:
    """A verified case of a cases file: the case, its result, and where the axes landed.

    `result` None means refused. `maps` has, for each operand, the result axis of each of its axes,
    −1 for a dropped axis of extent 1.
    """

    case: Case
    result: Shape | None
    maps: tuple[Shape, ...] | None
    line: int

    def aligned(self) -> tuple[Shape, ...]:
        """The operands' shapes at the result's rank, aligned by the recorded axes."""
        assert self.result is not None
        assert self.maps is not None
        rows = []
        for shape, axes in zip((self.case.a, self.case.b), self.maps, strict=True):
            sizes = [1] * len(self.result)
            for size, axis in zip(shape, axes, strict=True):
                if axis >= 0:
                    sizes[axis] = size
            rows.append(tuple(sizes))
        return tuple(rows)


def read_cases(path: str | Path) -> Iterator[Recorded]:
    """The verified cases of a JSON-lines file; BadInput names the line that is wrong."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"cannot read cases from {path}: {error}") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            result = None if row["result"] is None else _shape(row["result"])
            maps = None
            if result is not None and row["map_a"] is not None and row["map_b"] is not None:
                maps = (_shape(row["map_a"]), _shape(row["map_b"]))
            yield Recorded(Case.from_json(row), result, maps, number)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            detail = f"lacks {error}" if isinstance(error, KeyError) else str(error)
            raise BadInput(f"{path}:{number} is not a case: {detail}") from error
