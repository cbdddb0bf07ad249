"""The bytes that a program reads and writes, and the registers of its steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from heapq import heappop, heappush

from .phases import itemsize
from .program import Phase, Program, Slot


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes of memory.

    Attributes:
        moved: read and written: each array once in each pass over memory. Phases that run piece by
            piece are one pass together; registers and pieces are not counted.
        necessary: each operand and each result once.
        temporaries: of the whole arrays between phases.
        pieces: of the pieces between the phases of a batch, for one index of its last axis.
    """

    moved: int
    necessary: int
    temporaries: int
    pieces: int


def slot_bytes(slot: Slot) -> int:
    """The bytes of an array."""
    return math.prod(slot.shape) * itemsize(slot.dtype)


def traffic(program: Program) -> Traffic:
    """The bytes that a program moves.

    >>> from .program import Load, Store
    >>> slots = Slot("input", 0, "float32", (8,)), Slot("output", 0, "float32", (8,))
    >>> copy = Phase((8,), (Load(0, (0,), "float32"),), (), (), (Store(0, 1, (0,)),))
    >>> traffic(Program(slots, (copy,)))
    Traffic(moved=64, necessary=64, temporaries=0, pieces=0)
    """
    sizes = [slot_bytes(slot) for slot in program.slots]
    kinds = [slot.kind for slot in program.slots]
    batch = program.phases[program.first : program.last]
    passes = [[phase] for phase in program.phases[: program.first]]
    passes += [list(batch)] if batch else []
    passes += [[phase] for phase in program.phases[program.last :]]
    moved = 0
    for phases in passes:
        stored = {store.slot for phase in phases for store in phase.stores}
        loaded = {load.slot for phase in phases for load in phase.loads} - stored
        moved += sum(sizes[slot] for slot in stored | loaded if kinds[slot] != "piece")
    used = {load.slot for phase in program.phases for load in phase.loads}
    pieces = (slot for slot in program.slots if slot.kind == "piece")
    return Traffic(
        moved,
        sum(
            size
            for k, size in enumerate(sizes)
            if kinds[k] == "output" or (kinds[k] == "input" and k in used)
        ),
        sum(size for k, size in enumerate(sizes) if kinds[k] == "temp"),
        sum(math.prod(piece.shape[program.batch :]) * itemsize(piece.dtype) for piece in pieces),
    )


def registers(phase: Phase) -> tuple[int, ...]:
    """The register in which each step leaves its value: a block of elements in the first cache.

    A register is free again after the last step or store that reads it; that step may write to it.

    >>> from .program import Load, Step, Store
    >>> x, add, square = Load(0, (0,), "int8"), ("int8",) * 3, ("int8",) * 2
    >>> steps = Step("add", (0, 0), add), Step("square", (1,), square), Step("add", (1, 2), add)
    >>> registers(Phase((2,), (x,), (), steps, (Store(3, 1, (0,)),)))
    (0, 1, 0)
    """
    first = len(phase.loads) + len(phase.literals)
    last = {arg: k for k, step in enumerate(phase.steps) for arg in step.args}
    last |= {store.value: len(phase.steps) for store in phase.stores}
    assigned: list[int] = []
    free: list[int] = []
    count = 0
    for k, step in enumerate(phase.steps):
        for register in {
            assigned[arg - first] for arg in step.args if arg >= first and last[arg] == k
        }:
            heappush(free, register)
        if not free:
            free.append(count)
            count += 1
        assigned.append(heappop(free))
    return tuple(assigned)
