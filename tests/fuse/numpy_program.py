"""Runs a program phase by phase with NumPy; `lower` is compared with it, without the engine."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zerostride.compute.kernels import KERNELS
from zerostride.compute.special import cast
from zerostride.fusion.schedule.program import Phase, Program, Slot, Walk, value_dtype

Array = NDArray[Any]
#: Where a piece of a batch begins and ends, along the leading axes.
Piece = tuple[slice, ...]

_ALL_BITS = np.full(8, 0xFF, "uint8")
#: What sums and products are taken in.
_WIDER: Mapping[str, np.dtype[Any]] = {
    "float32": np.dtype(np.float64),
    "float64": np.dtype(np.longdouble),
}


def evaluate_program(program: Program, arrays: Sequence[Any], piece: int = 3) -> list[Array]:
    """The results of a program.

    Args:
        program: what to run.
        arrays: the operands.
        piece: how many indices of the last batch axis are taken at once.

    Returns:
        An array for each output.

    Raises:
        AssertionError: the program is not as `program` promises.
    """
    _check(program)
    memory = [_memory(slot, arrays) for slot in program.slots]
    batched = range(program.first, program.last)
    with np.errstate(all="ignore"):
        for k, phase in enumerate(program.phases):
            if k not in batched:
                _run(program, phase, memory, ())
            elif k == program.first:
                for part in _pieces(phase.shape[: program.batch], piece):
                    for one in batched:
                        _run(program, program.phases[one], memory, part)
                    _forget(program, memory)
    outputs = [one for one in zip(program.slots, memory, strict=True) if one[0].kind == "output"]
    return [array for _, array in sorted(outputs, key=lambda one: one[0].index)]


def _memory(slot: Slot, arrays: Sequence[Any]) -> Array:
    if slot.kind == "input":
        return np.asarray(arrays[slot.index], slot.dtype).reshape(slot.shape)
    memory = np.empty(slot.shape, slot.dtype)
    _spoil(memory)
    return memory


def _spoil(memory: Array) -> None:
    """What was never stored is no number that one expects."""
    memory[...] = True if memory.dtype == "bool" else _ALL_BITS.view(memory.dtype)[0]


def _forget(program: Program, memory: Sequence[Array]) -> None:
    for slot, array in zip(program.slots, memory, strict=True):
        if slot.kind == "piece":
            _spoil(array)


def _pieces(shape: tuple[int, ...], length: int) -> Iterator[Piece]:
    starts = [range(extent) for extent in shape[:-1]] + [range(0, shape[-1], length)]
    for start in itertools.product(*starts):
        ends = (*(place + 1 for place in start[:-1]), start[-1] + length)
        yield tuple(itertools.starmap(slice, zip(start, ends, strict=True)))


def _check(program: Program) -> None:
    """What holds of every program."""
    stored: dict[int, int] = {}
    walks: dict[int, Walk] = {}
    batched = range(program.first, program.last)
    assert (program.batch > 0) == bool(batched)
    for k, phase in enumerate(program.phases):
        for load in phase.loads:
            slot = program.slots[load.slot]
            assert slot.kind == "input" or stored[load.slot] < k
            assert slot.kind == "input" or slot.dtype not in ("float16", "bfloat16")
            _check_walk(load.walk, phase, slot, stretches=True)
            if slot.kind != "input" and k in batched and stored[load.slot] in batched:
                assert load.walk[: program.batch] == walks[load.slot][: program.batch]
        for step in phase.steps:
            assert all(map(_is_same, step.dtypes, (value_dtype(phase, a) for a in step.args)))
        for store in phase.stores:
            slot = program.slots[store.slot]
            assert slot.kind != "input"
            assert store.slot not in stored
            stored[store.slot] = k
            walks[store.slot] = store.walk
            assert store.fold is not None or -1 not in store.walk
            _check_walk(store.walk, phase, slot, stretches=False)
            _check_dtype(phase, store.value, store.fold, slot)
            assert k not in batched or -1 not in store.walk[: program.batch]
            if slot.kind == "piece":
                assert store.walk[: program.batch] == tuple(range(program.batch))
        if k in batched:
            first = program.phases[program.first]
            assert phase.shape[: program.batch] == first.shape[: program.batch]
    used = {load.slot for phase in program.phases for load in phase.loads}
    for index, slot in enumerate(program.slots):
        assert slot.kind == "input" or index in stored
        if slot.kind == "piece":
            users = {k for k, phase in enumerate(program.phases) if _uses(phase, index)}
            assert index in used
            assert users <= set(batched)


def _uses(phase: Phase, slot: int) -> bool:
    return slot in [load.slot for load in phase.loads] + [store.slot for store in phase.stores]


def _is_same(one: str, other: str) -> bool:
    assert one == other, (one, other)
    return True


def _check_dtype(phase: Phase, value: int, fold: str | None, slot: Slot) -> None:
    dtype = value_dtype(phase, value)
    if fold in ("argmin", "argmax"):
        dtype = "int64"
    assert dtype == slot.dtype or (dtype == "float32" and slot.dtype in ("float16", "bfloat16"))


def _check_walk(walk: Walk, phase: Phase, slot: Slot, *, stretches: bool) -> None:
    assert len(walk) == len(phase.shape)
    walked = [axis for axis in walk if axis >= 0]
    assert len(set(walked)) == len(walked)
    for axis, extent in enumerate(slot.shape):
        assert axis in walked or extent == 1
    for axis, extent in zip(walk, phase.shape, strict=True):
        fits = axis < 0 or slot.shape[axis] == extent
        assert fits or (stretches and slot.shape[axis] == 1)


# A phase


def _run(program: Program, phase: Phase, memory: Sequence[Array], part: Piece) -> None:
    values: list[Any] = []
    for load in phase.loads:
        laid = np.broadcast_to(_laid(memory[load.slot], load.walk), phase.shape)[part]
        values.append(np.asarray(cast(laid, np.dtype(load.dtype))))
    values += [np.asarray(one.value, one.dtype) for one in phase.literals]
    for step in phase.steps:
        args = [values[arg] for arg in step.args]
        if step.op == "convert":
            values.append(np.asarray(cast(args[0], np.dtype(step.dtypes[-1]))))
        else:
            values.append(np.asarray(KERNELS[step.op](*args)))
        assert values[-1].dtype == step.dtypes[-1], step
    for store in phase.stores:
        target = _laid(memory[store.slot], store.walk)[(*part, ...)]
        shape = np.broadcast_to(np.empty((), "bool"), phase.shape)[part].shape
        value = np.broadcast_to(values[store.value], shape)
        if store.fold is None:
            target[...] = value
        else:
            target[...] = _fold(store.fold, value, store.walk, target.dtype).reshape(target.shape)


def _laid(array: Array, walk: Walk) -> Array:
    """A view with an axis for each of the walk: of extent 1 where the array has none."""
    named = [axis for axis in walk if axis >= 0]
    rest = [axis for axis in range(array.ndim) if axis not in named]
    index = [None if axis < 0 else slice(None) for axis in walk] + [0] * len(rest)
    view: Array = array.transpose(*named, *rest)[(*index, ...)]  # of rank 0, too
    return view


def _fold(fold: str, value: Array, walk: Walk, dtype: np.dtype[Any]) -> Array:
    over = [axis for axis, to in enumerate(walk) if to < 0]
    kept = [axis for axis, to in enumerate(walk) if to >= 0]
    rows = tuple(value.shape[axis] for axis in kept)
    flat = value.transpose(*kept, *over).reshape(*rows, math.prod(value.shape[a] for a in over))
    if not math.prod(rows):
        return np.empty(rows, dtype)
    return np.asarray(FOLDS[fold](flat)).astype(dtype)


def _total(of: np.ufunc) -> Callable[[Array], Any]:
    def total(rows: Array) -> Any:
        return of.reduce(rows, axis=-1, dtype=_WIDER.get(rows.dtype.name, rows.dtype))

    return total


#: By name, of the last axis.
FOLDS: Mapping[str, Callable[[Array], Any]] = {
    "sum": _total(np.add),
    "prod": _total(np.multiply),
    "min": lambda rows: rows.min(axis=-1),
    "max": lambda rows: rows.max(axis=-1),
    "any": lambda rows: rows.any(axis=-1),
    "all": lambda rows: rows.all(axis=-1),
    "argmin": lambda rows: rows.argmin(axis=-1),
    "argmax": lambda rows: rows.argmax(axis=-1),
}
