"""The call of a compound op, and the writer of the ops that stand for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ...ir.graph import Array

Shape = tuple[int, ...]


class NotWritten(Exception):  # noqa: N818 - an answer, not a fault
    """A form of an op that is not written out; the message is the reason."""


class Writer(Protocol):
    """Adds ops of the standard; tensors have names."""

    def shape(self, name: str) -> Shape | None:
        """A tensor's sizes, if all are known."""

    def dtype(self, name: str) -> str | None:
        """NumPy's name of a tensor's element type, if it is known."""

    def array(self, name: str) -> Array | None:
        """A constant's numbers; None for another tensor."""

    def constant(self, array: Any) -> str:
        """A new constant."""

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        """A new op of one result; the result's name."""

    def largest(self, name: str) -> str:
        """The largest number of each row, as a row of one."""

    def as_float(self, name: str) -> str:
        """The same numbers as 32-bit floats."""

    def as_kind(self, name: str, kind: str) -> str:
        """Whole numbers of floats, in another element type by NumPy's name."""


@dataclass(frozen=True, slots=True)
class Form:
    """The form of a compound op: which operands, results and attributes it has.

    Attributes:
        op, domain: which op it is.
        inputs: the names of the operands; "" for one that is left out.
        outputs: whether each result is wanted.
        attributes: of the node.
    """

    op: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[bool, ...]
    attributes: Mapping[str, Any]

    def input(self, position: int) -> str:
        """An operand's name; "" if it is left out."""
        return self.inputs[position] if position < len(self.inputs) else ""

    def wants(self, position: int) -> bool:
        """Whether a result is wanted."""
        return position < len(self.outputs) and self.outputs[position]

    def number(self, name: str, default: int = 0) -> int:
        """An attribute that is a whole number."""
        value = self.attributes.get(name, default)
        return value if isinstance(value, int) else default

    def real(self, name: str, default: float = 0.0) -> float:
        """An attribute that is a number."""
        value = self.attributes.get(name, default)
        return float(value) if isinstance(value, int | float) else default

    def refuse(self, *reasons: tuple[Any, str]) -> None:
        """Raises NotWritten with the first reason whose condition holds."""
        for condition, reason in reasons:
            if condition:
                raise NotWritten(reason)


@dataclass(frozen=True, slots=True)
class CompoundCall(Form):
    """A compound op whose operands have sizes.

    Attributes:
        writer: takes the ops that are written for it.
    """

    writer: Writer

    def sizes(self, position: int, *ranks: int) -> Shape:
        """The sizes of an operand of one of these ranks.

        Raises:
            NotWritten: it is left out or of another rank, or a size is open.
        """
        name = self.input(position)
        shape = self.writer.shape(name) if name else ()
        if shape is None:
            raise NotWritten(f"sizes of operand {position} are not known")
        if len(shape) not in ranks:
            raise NotWritten(f"operand {position} has the shape {shape}")
        return shape

    def fits(self, position: int, *shape: int) -> str:
        """The operand of this shape.

        Raises:
            NotWritten: it has another shape.
        """
        if self.sizes(position, len(shape)) != shape:
            raise NotWritten(f"operand {position} is not of the shape {shape}")
        return self.input(position)

    def kind(self, position: int) -> str:
        """An operand's element type.

        Raises:
            NotWritten: it is not known.
        """
        kind = self.writer.dtype(self.input(position))
        if kind is None:
            raise NotWritten(f"the element type of operand {position} is not known")
        return kind

    # Ops of constant parameters.

    def reshaped(self, name: str, *sizes: int) -> str:
        """A Reshape."""
        return self.writer.add("Reshape", name, self.writer.constant(np.array(sizes, np.int64)))

    def transposed(self, name: str, *order: int) -> str:
        """A Transpose."""
        return self.writer.add("Transpose", name, perm=list(order))

    def part(self, name: str, axis: int, start: int, end: int) -> str:
        """A Slice of one axis."""
        words = (np.array([number], np.int64) for number in (start, end, axis))
        return self.writer.add("Slice", name, *map(self.writer.constant, words))

    def joined(self, names: Sequence[str], axis: int) -> str:
        """A Concat, or the one tensor."""
        return self.writer.add("Concat", *names, axis=axis) if len(names) > 1 else names[0]

    def with_number(self, op: str, name: str, number: Any) -> str:
        """A tensor and a constant of floats."""
        return self.writer.add(op, name, self.writer.constant(np.asarray(number, np.float32)))

    def bounded(self, name: str) -> str:
        """Numbers below 0 become 0, and those above 1 become 1."""
        bounds = (self.writer.constant(np.float32(bound)) for bound in (0, 1))
        return self.writer.add("Clip", name, *bounds)


@dataclass(frozen=True, slots=True)
class WrittenOp:
    """A row: how an op is written out.

    Attributes:
        check: raises NotWritten for a form that is not written out, whatever its sizes.
        rule: writes a call; the names of its results, at least of those that are wanted.
    """

    check: Callable[[Form], None]
    rule: Callable[[CompoundCall], tuple[str, ...]]
