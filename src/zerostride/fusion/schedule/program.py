"""Programs, which the engine runs: phases, each one pass over an iteration space.

A *slot* is an array: an operand of the call, a result, or a small array between phases. A *phase*
walks a box of extents. At each point it loads operands (slots laid over the box, stride 0 where
they stretch), computes steps on values, and stores some values in slots, element by element or
folded over the axes that the slot lacks. Values are numbered: the phase's operands first, then its
constants, then its steps, each of which reads lower numbers only.

The phases from `first` to before `last` have the same `batch` leading axes. The engine cuts the
last of these axes into pieces and runs all of those phases on one piece before the next, so that
the data of a piece stays in the caches. Other phases run one after another, over the whole box.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..trace.graph import Number

#: For each axis of the box, the axis of the slot that it walks, or -1 where the slot has none:
#: there an operand stretches and a store folds.
Walk = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Slot:
    """An array.

    Attributes:
        kind: "input" (operand `index` of the call), "output" (result `index`), "temp" (small, held
            as a whole) or "piece" (stored and loaded by batched phases only; it has the batch's
            leading axes, and one piece of it exists at a time).
        index: its number among slots of its kind.
        dtype: in memory.
        shape: of the whole array.
    """

    kind: str
    index: int
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Load:
    """An operand of a phase: a slot, the box's walk over it, and the dtype of the loaded values.

    A longer axis of the box may walk a slot's axis of extent 1: there the slot stretches. 16-bit
    floats become float32; any dtype may become any other, as by `cast`.
    """

    slot: int
    walk: Walk
    dtype: str


@dataclass(frozen=True, slots=True)
class Literal:
    """A number among a phase's values."""

    value: Number
    dtype: str


@dataclass(frozen=True, slots=True)
class Step:
    """An op on values. Dtypes are those in which the engine computes: no 16-bit floats.

    Attributes:
        op: a kernel's name (`_native.kernels()`), or "convert".
        args: the values it reads.
        dtypes: the arguments' dtypes, and the result's.
    """

    op: str
    args: tuple[int, ...]
    dtypes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Store:
    """A value that leaves a phase.

    Attributes:
        value: its number. Its dtype is the slot's, or float32 for a slot of 16-bit floats.
        slot: an output or a temporary. Each is stored once.
        walk: as a Load's; axes of -1 are folded, and need a `fold`.
        fold: None, "sum", "prod", "min", "max", "any", "all", "argmin" or "argmax". A fold's slot
            holds a sum's own dtype; "argmin" and "argmax" give int64 positions, counted in C order
            over the folded axes, the first of equal elements.
    """

    value: int
    slot: int
    walk: Walk
    fold: str | None = None


@dataclass(frozen=True, slots=True)
class Phase:
    """One pass over a box; see the module."""

    shape: tuple[int, ...]
    loads: tuple[Load, ...]
    literals: tuple[Literal, ...]
    steps: tuple[Step, ...]
    stores: tuple[Store, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """Phases in order; each may load what an earlier one stored.

    A fold in a batched phase keeps the batch's axes. Without a batch, `first` and `last` are 0.
    """

    slots: tuple[Slot, ...]
    phases: tuple[Phase, ...]
    batch: int = 0
    first: int = 0
    last: int = 0


def value_dtype(phase: Phase, value: int) -> str:
    """The dtype of a phase's value.

    >>> value_dtype(Phase((2,), (Load(0, (0,), "float32"),), (Literal(1, "int8"),), (), ()), 1)
    'int8'
    """
    for inputs in (phase.loads, phase.literals):
        if value < len(inputs):
            return inputs[value].dtype
        value -= len(inputs)
    return phase.steps[value].dtypes[-1]
