"""One question to an engine and its answer, as plain data that processes exchange."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import ZerostrideError

Array = NDArray[Any]
Shape = tuple[int, ...]


class BadInput(ZerostrideError):  # noqa: N818 - said to a person, not raised at a caller
    """The command line has an unusable argument; the message is one line."""


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


class Answer(StrEnum):
    """The outcome of a case on an engine."""

    RESULT = "result"
    REFUSED = "refused"  # it refused, in any way of the engine
    CRASHED = "crashed"  # the process died, or did not answer in time
    BROKEN = "broken"  # the runner failed: a bug here, not the engine's answer


@dataclass(frozen=True, slots=True)
class EngineOutcome:
    """An engine's answer.

    Attributes:
        answer: see :class:`Answer`.
        shape: the result's shape; None without one.
        values: the elements of the result, one row a pass over the case; None without.
        message: the engine's message, or how its process ended.
    """

    answer: Answer
    shape: Shape | None = None
    values: Array | None = None
    message: str = ""

    def describe(self) -> str:
        """A phrase for messages."""
        if self.answer is Answer.RESULT:
            return f"gave {self.shape}"
        return f"{self.answer.value}: {self.message}" if self.message else self.answer.value


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


def as_values(results: Sequence[Array]) -> tuple[Shape, Array]:
    """The shape that the passes' results share, and their elements, one row a pass.

    Raises ValueError where they differ in shape. Rows, because a stack of arrays of the highest
    rank would have one axis too many.
    """
    shape = results[0].shape
    if any(result.shape != shape for result in results):
        raise ValueError(f"results of one case differ in shape: {[r.shape for r in results]}")
    return shape, np.array([np.asarray(r, np.float64).reshape(-1) for r in results])
