"""Programs in the native engine's form.

`_native.Program` is constructed from plain tuples, which this module builds:

    spec     (slots, phases, batch, first, last)
    slot     (kind, index, dtype, shape)
    phase    (shape, loads, literals, steps, stores)
    load     (slot, walk, dtype)
    literal  (bytes of one element, dtype)
    step     (op, args, dtypes)
    store    (value, slot, walk, fold or None)

`program.py` documents their meaning. The engine checks all of it.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ...compute import native
from ..jit import tier as jit
from .program import Literal, Phase, Program


class Runnable(Protocol):
    """A program that the engine runs; several threads may run it at once."""

    def run(
        self, operands: tuple[Any, ...], outs: tuple[Any, ...] | None = None, /
    ) -> tuple[Any, ...]:
        """The results: for each output the array in `outs`, a new one, or a scalar at rank 0.

        Args:
            operands: arrays of the slots' shapes and dtypes, with any strides; a number may stand
                for an operand of shape (). Operands that the program does not read are allowed.
            outs: for each output an array of its shape to which its dtype converts, or None. It may
                have any strides and may overlap what is read.

        Raises:
            TypeError: an operand or an output is not an array.
            ValueError: the number of arrays, a shape or a dtype differs; an output is read-only.
            MemoryError: a result cannot be allocated.
        """


def make(program: Program) -> Runnable:
    """The engine's version of a program.

    Raises:
        NotImplementedError: the engine has no such dtype or kernel, takes fewer operands in one
            phase, or is not in use; the reference computes then.
        ValueError: the program is wrong.

    >>> from zerostride.fusion.schedule.program import Load, Slot, Step, Store
    >>> slots = (Slot("input", 0, "float32", (3,)), Slot("output", 0, "float32", (3,)))
    >>> twice = Step("add", (0, 0), ("float32",) * 3)
    >>> phase = Phase((3,), (Load(0, (0,), "float32"),), (), (twice,), (Store(1, 1, (0,)),))
    >>> if native.backend() != "reference":
    ...     (result,) = make(Program(slots, (phase,))).run((np.ones(3, np.float32),))
    ...     assert result.tolist() == [2.0, 2.0, 2.0]
    """
    if native.backend() == "reference":
        raise NotImplementedError("the native engine is not in use")
    native.find_bfloat16()  # ml_dtypes may have been imported since
    native_program: Any = native._native.Program(spec_of(program))
    jit.attach(program, native_program)
    runnable: Runnable = native_program
    return runnable


def spec_of(program: Program) -> tuple[Any, ...]:
    """A program as plain tuples; see the module."""
    slots = tuple((slot.kind, slot.index, slot.dtype, slot.shape) for slot in program.slots)
    phases = tuple(map(_phase, program.phases))
    return slots, phases, program.batch, program.first, program.last


def _phase(phase: Phase) -> tuple[Any, ...]:
    return (
        phase.shape,
        tuple((load.slot, load.walk, load.dtype) for load in phase.loads),
        tuple((_bytes(literal), literal.dtype) for literal in phase.literals),
        tuple((step.op, step.args, step.dtypes) for step in phase.steps),
        tuple((store.value, store.slot, store.walk, store.fold) for store in phase.stores),
    )


def _bytes(literal: Literal) -> bytes:
    """A literal's bytes in memory.

    Raises:
        NotImplementedError: its dtype is not NumPy's own.
        ValueError: it is beyond the range of an integer dtype.
    """
    try:
        with np.errstate(all="ignore"):
            return np.array(literal.value, np.dtype(literal.dtype)).tobytes()
    except TypeError as error:
        raise NotImplementedError(f"a literal of {literal.dtype}") from error
    except OverflowError as error:
        raise ValueError(f"{literal.value} is beyond the range of {literal.dtype}") from error
