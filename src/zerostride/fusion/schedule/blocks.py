"""Arrays larger than memory: a program run in blocks, along the axis that the disk reads in order.

A mapped file is read where it is touched. All threads work on one block, so one part of each file
is read and written at a time, from beginning to end. The caller can be told the progress.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .program import Load, Phase, Program, Slot, Store

#: Called with the elements done and the total.
Progress = Callable[[int, int], object]
#: Bytes of a block's operands and results together: a block takes far longer than a call's
#: overhead, and a few blocks fit any memory.
BLOCK_BYTES = 64 << 20


def wants_blocks(arrays: Sequence[Any], progress: Progress | None) -> bool:
    """Whether a call should run in blocks: it has a progress callback, or a file is mapped."""
    return progress is not None or any(mapping(array) is not None for array in arrays)


def mapping(array: Any) -> np.memmap[Any, Any] | None:
    """The mapped file that an array lies in.

    >>> mapping(np.ones(3)) is None
    True
    """
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap) and not isinstance(array.base, np.ndarray):
            return array
        array = array.base
    return None


def run_in_blocks(
    program: Program,
    make: Callable[[Program], Any],
    operands: Sequence[Any],
    outs: Sequence[NDArray[Any] | None],
    progress: Progress | None = None,
) -> list[Any] | None:
    """The results of a program, computed block by block.

    Args:
        program: the program.
        make: makes a program ready to run.
        operands: of the program's shapes and dtypes.
        outs: for each output an array of its shape, or None.
        progress: called after each block.

    Returns:
        The results; None where the program has no axis to cut: its results depend on all of the
        operands, or an output overlaps memory that a later block reads.
    """
    arrays = _arrays(program, operands, outs)
    largest = _axis(program, arrays)
    cut = None if largest is None else cuts(program, *largest)
    if cut is None or not _safe(program, cut, operands, outs):
        return None
    results = [
        out if out is not None else np.empty(slot.shape, slot.dtype)
        for slot, out in zip(_outputs(program), outs, strict=True)
    ]
    total = max(result.size for result in results)
    first = next(iter(cut.items()))
    extent = program.slots[first[0]].shape[first[1]]
    runnables: dict[int, Any] = {}
    for begin, end in _ranges(program, cut, extent):
        if end - begin not in runnables:
            runnables[end - begin] = make(cut_to(program, cut, end - begin))
        pieces = [_piece(program, cut, "input", k, x, begin, end) for k, x in enumerate(operands)]
        places = [_piece(program, cut, "output", k, x, begin, end) for k, x in enumerate(results)]
        _read_ahead(operands, program, cut, end)
        runnables[end - begin].run(tuple(pieces), tuple(places))
        if progress is not None:
            progress(total * end // extent, total)
    return results


def cuts(program: Program, slot: int, axis: int) -> Mapping[int, int] | None:
    """The axis of each slot that is cut together with this one; None if it cannot be cut.

    All outputs have to be cut: a fold over the axis needs all of it.

    >>> slots = (Slot("input", 0, "float32", (4, 3)), Slot("output", 0, "float32", (4,)))
    >>> sums = Store(0, 1, (0, -1), "sum")
    >>> phase = Phase((4, 3), (Load(0, (0, 1), "float32"),), (), (), (sums,))
    >>> cuts(Program(slots, (phase,)), 0, 0), cuts(Program(slots, (phase,)), 0, 1)
    ({0: 0, 1: 0}, None)
    """
    cut = {slot: axis}
    boxes: dict[int, int] = {}
    grown = True
    while grown:
        before = len(cut), len(boxes)
        for number, phase in enumerate(program.phases):
            if not _reach(program, number, phase, cut, boxes):
                return None
        grown = before != (len(cut), len(boxes))
    whole = any(entry.kind == "output" and k not in cut for k, entry in enumerate(program.slots))
    return None if whole else cut


def _reach(
    program: Program, number: int, phase: Phase, cut: dict[int, int], boxes: dict[int, int]
) -> bool:
    """Follows a cut through a phase. False if two of its axes would be cut, or one is folded."""
    items: tuple[Load | Store, ...] = (*phase.loads, *phase.stores)
    for item in items:
        if item.slot in cut:
            axis = cut[item.slot]
            if axis not in item.walk:
                return False
            at = item.walk.index(axis)
            if phase.shape[at] != program.slots[item.slot].shape[axis]:
                return False
            if boxes.setdefault(number, at) != at:
                return False
    if number not in boxes:
        return True
    at = boxes[number]
    for item in items:
        axis = item.walk[at]
        stretched = axis == -1 or program.slots[item.slot].shape[axis] != phase.shape[at]
        if stretched and isinstance(item, Store):
            return False
        if stretched and item.slot in cut:
            return False
        if not stretched and cut.setdefault(item.slot, axis) != axis:
            return False
    return True


def cut_to(program: Program, cut: Mapping[int, int], extent: int) -> Program:
    """The program on a block of `extent` indices."""

    def shortened(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
        return (*shape[:axis], extent, *shape[axis + 1 :])

    slots = tuple(
        replace(slot, shape=shortened(slot.shape, cut[k])) if k in cut else slot
        for k, slot in enumerate(program.slots)
    )
    phases = []
    for phase in program.phases:
        items: tuple[Load | Store, ...] = (*phase.loads, *phase.stores)
        at = {item.walk.index(cut[item.slot]) for item in items if item.slot in cut}
        phases.append(replace(phase, shape=shortened(phase.shape, at.pop())) if at else phase)
    return replace(program, slots=slots, phases=tuple(phases))


def _outputs(program: Program) -> list[Slot]:
    outputs = [slot for slot in program.slots if slot.kind == "output"]
    return sorted(outputs, key=lambda slot: slot.index)


def _arrays(
    program: Program, operands: Sequence[Any], outs: Sequence[NDArray[Any] | None]
) -> dict[int, NDArray[Any]]:
    """The arrays of a call by their slots."""
    places = {"input": operands, "output": outs}
    arrays = {
        k: places[slot.kind][slot.index]
        for k, slot in enumerate(program.slots)
        if slot.kind in places
    }
    return {k: array for k, array in arrays.items() if isinstance(array, np.ndarray)}


def _axis(program: Program, arrays: Mapping[int, NDArray[Any]]) -> tuple[int, int] | None:
    """The slot of the largest array, mapped ones first, and its outermost axis in memory."""
    order = sorted(arrays, key=lambda k: (mapping(arrays[k]) is not None, arrays[k].nbytes))
    for k in reversed(order):
        array = arrays[k]
        axes = [axis for axis in range(array.ndim) if array.shape[axis] > 1 and array.strides[axis]]
        if axes and array.shape == program.slots[k].shape:
            return k, max(axes, key=lambda axis: abs(array.strides[axis]))
    return None


def _ranges(program: Program, cut: Mapping[int, int], extent: int) -> Iterator[tuple[int, int]]:
    """Blocks of about BLOCK_BYTES, in order."""
    per_index = sum(
        math.prod(slot.shape) // extent * np.dtype(slot.dtype).itemsize
        for slot in (program.slots[k] for k in cut)
        if slot.kind in ("input", "output")
    )
    step = max(1, BLOCK_BYTES // max(per_index, 1))
    for begin in range(0, extent, step):
        yield begin, min(begin + step, extent)


def _piece(
    program: Program,
    cut: Mapping[int, int],
    kind: str,
    index: int,
    array: Any,
    begin: int,
    end: int,
) -> Any:
    """A block's part of an operand or of a result."""
    for k, slot in enumerate(program.slots):
        if slot.kind == kind and slot.index == index and k in cut:
            return array[(slice(None),) * cut[k] + (slice(begin, end),)]
    return array


def _safe(
    program: Program,
    cut: Mapping[int, int],
    operands: Sequence[Any],
    outs: Sequence[NDArray[Any] | None],
) -> bool:
    """Whether no block writes memory that a later one reads."""
    places = {(program.slots[k].kind, program.slots[k].index): axis for k, axis in cut.items()}
    for i, out in enumerate(outs):
        for k, operand in enumerate(operands):
            if out is None or not isinstance(operand, np.ndarray):
                continue
            if not np.may_share_memory(out, operand):
                continue
            same = out.__array_interface__["data"][0] == operand.__array_interface__["data"][0]
            alike = out.shape == operand.shape and out.strides == operand.strides
            along = places.get(("input", k)) == places.get(("output", i))
            if not (same and alike and along and out.dtype == operand.dtype):
                return False
    return True


def _read_ahead(
    operands: Sequence[Any], program: Program, cut: Mapping[int, int], begin: int
) -> None:
    """Asks the system to read the next block's parts of mapped files."""
    for k, axis in cut.items():
        slot = program.slots[k]
        if slot.kind != "input" or begin >= slot.shape[axis]:
            continue
        array = operands[slot.index]
        whole = mapping(array)
        file = None if whole is None else getattr(whole, "_mmap", None)
        if whole is None or not isinstance(file, mmap.mmap) or array.strides[axis] <= 0:
            continue
        at = array.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
        start = at + whole.offset % mmap.ALLOCATIONGRANULARITY + begin * array.strides[axis]
        start -= start % mmap.PAGESIZE
        length = min(BLOCK_BYTES, len(file) - start)
        if length > 0:
            file.madvise(mmap.MADV_WILLNEED, start, length)
