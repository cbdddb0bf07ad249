"""The tensors and operators that an edit adds to a subgraph of a .tflite file."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from ..flatbuffer import Table

#: Numbers, expressions, or None.
Sizes = tuple[Any, ...] | None


def open_sizes(shape: tuple[Any, ...]) -> list[Any]:
    """The sizes that are not numbers."""
    return [size for size in shape if not isinstance(size, int)]


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor that a step reads or makes: its number, and what the file says of it.

    Attributes:
        number: in the subgraph.
        shape: its sizes.
        type: the number of its element type.
        like: the old tensor whose quantisation it has; None without one.
    """

    number: int
    shape: Sizes
    type: int
    like: Table | None = None


@dataclass(frozen=True, slots=True)
class NewTensor:
    """A tensor to write.

    Attributes:
        tensor: its number, sizes and type.
        name: its name.
        content: the bytes of a new constant.
        buffer: the number of an old buffer that it reads.
        axis: the axis of its scales, if a reshape moves it.
    """

    tensor: Tensor
    name: str
    content: bytes | None = None
    buffer: int = 0
    axis: int | None = None


@dataclass(frozen=True, slots=True)
class NewOp:
    """An operator to write: a builtin op, or an old operator with other tensors.

    Attributes:
        op: the builtin op; "" for the old operator.
        inputs, outputs: numbers of tensors.
        squeezed: the axes of a SQUEEZE.
        old: the old operator.
    """

    op: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    squeezed: tuple[int, ...] = ()
    old: int | None = None


@dataclass(slots=True)
class Subgraph:
    """The changes of one subgraph.

    Attributes:
        table: the old subgraph.
        ops: the operators that replace one, by its position.
        added: the new tensors, numbered after the old ones.
        resized: old tensors replaced by their number.
        reads: how often operators and outputs read a tensor.
        made: which operator makes a tensor.
        shared: new tensors by what they are: constants of other shapes, moved tensors.
    """

    table: Table
    ops: dict[int, list[NewOp]] = field(default_factory=dict)
    added: list[NewTensor] = field(default_factory=list)
    resized: dict[int, NewTensor] = field(default_factory=dict)
    reads: dict[int, int] = field(default_factory=dict)
    made: dict[int, int] = field(default_factory=dict)
    shared: dict[Any, Tensor] = field(default_factory=dict)
    tensors: tuple[Table, ...] = ()
    old_ops: tuple[Table, ...] = ()

    def __post_init__(self) -> None:
        self.tensors, self.old_ops = self.table.tables(0), self.table.tables(3)
        for position, op in enumerate(self.old_ops):
            for number in op.numbers(1, "int32"):
                self.reads[number] = self.reads.get(number, 0) + 1
            self.made |= dict.fromkeys(op.numbers(2, "int32"), position)
        for number in (*self.table.numbers(1, "int32"), *self.table.numbers(2, "int32")):
            self.reads[number] = self.reads.get(number, 0) + 1

    def add(self, new: NewTensor) -> Tensor:
        """A new tensor, numbered."""
        tensor = replace(new.tensor, number=len(self.tensors) + len(self.added))
        self.added.append(replace(new, tensor=tensor))
        return tensor
