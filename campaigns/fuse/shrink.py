"""Shrinks programs and calls that differ: fewer steps, operands, elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from ..native.cases import Memory, Number, View, contiguous, dtype_of
from ..native.shrink import shrunk, smaller_views
from .cases import DrawnStep, FuseCase, FuseProgram


def shrink(case: FuseCase, fails: Callable[[FuseCase], bool], tries: int = 600) -> FuseCase:
    """A simpler case that still fails."""

    def still_fails(simpler: FuseCase) -> bool:
        try:
            return fails(simpler)
        except IndexError:  # a step's axes are no longer those of what it reads
            return False

    return shrunk(_tidy(case), lambda case: map(_tidy, _simpler(case)), still_fails, tries)


def _simpler(case: FuseCase) -> Iterator[FuseCase]:
    """Each with one thing less."""
    program = case.program
    for value in sorted({*program.outputs}):
        if len(program.outputs) > 1:
            yield _returning(case, (value,))
    for k in range(len(program.steps) - 1, -1, -1):
        value = program.operands + k
        # The step's value is a result itself; or one that it reads stands for it.
        if program.outputs != (value,):
            yield _returning(replace(case, outs=()), (value,))
        for arg in program.steps[k].args:
            if not isinstance(arg, Number):
                yield _bypassed(case, value, arg)
    if case.outs:
        yield replace(case, outs=())
        for k, out in enumerate(case.outs):
            if out is not None and len(case.outs) > 1:
                yield replace(case, outs=(*case.outs[:k], None, *case.outs[k + 1 :]))
    if program.dtype is not None:
        yield replace(case, program=replace(program, dtype=None))
    yield from _plainer_steps(case)
    views = [view for view in (*case.operands, *case.outs) if isinstance(view, View)]
    yield from (_mapped(case, change) for change in smaller_views(views))
    for k, operand in enumerate(case.operands):
        if isinstance(operand, View):
            yield from _plainer_operand(case, k, operand)


def _returning(case: FuseCase, outputs: tuple[int, ...]) -> FuseCase:
    outs = case.outs
    if outs:
        kept = [case.program.outputs.index(value) for value in outputs]
        outs = tuple(outs[k] for k in kept)
    return replace(case, program=replace(case.program, outputs=outputs), outs=outs)


def _bypassed(case: FuseCase, value: int, by: int) -> FuseCase:
    """Another value in place of a step's, wherever that is read or returned."""
    program = case.program

    def other(arg: Any) -> Any:
        return by if not isinstance(arg, Number) and arg == value else arg

    steps = tuple(replace(step, args=tuple(map(other, step.args))) for step in program.steps)
    outputs = tuple(map(other, program.outputs))
    outs = () if outputs != program.outputs else case.outs
    return replace(case, program=replace(program, steps=steps, outputs=outputs), outs=outs)


def _plainer_steps(case: FuseCase) -> Iterator[FuseCase]:
    """Without an option, or written as a function."""
    program = case.program
    for k, step in enumerate(program.steps):
        changed: list[DrawnStep] = []
        if step.kind in ("op", "reduce"):
            for name in step.options:
                changed.append(replace(step, options=_left(step.options, name)))
        if step.form != "zs" and step.kind not in ("view", "reduce"):
            changed.append(replace(step, form="zs"))
        for one in changed:
            steps = (*program.steps[:k], one, *program.steps[k + 1 :])
            yield replace(case, program=replace(program, steps=steps))


def _left(options: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    gone = {name} | ({"axis", "broadcast"} if name == "rule" else set())
    return MappingProxyType({key: value for key, value in options.items() if key not in gone})


def _mapped(case: FuseCase, change: Callable[[View], View]) -> FuseCase:
    operands: list[View | Number] = [
        change(operand) if isinstance(operand, View) else operand for operand in case.operands
    ]
    outs = tuple(None if out is None else change(out) for out in case.outs)
    return replace(case, operands=tuple(operands), outs=outs)


def _plainer_operand(case: FuseCase, k: int, view: View) -> Iterator[FuseCase]:
    """In memory of its own, in C order; of ordinary values."""
    size = dtype_of(view.dtype).itemsize
    elements = 1
    for n in view.shape:
        elements *= n
    plain = View(len(case.memories), view.dtype, 0, view.shape, contiguous(view.shape, size))
    given = case.memories[view.memory]
    for style in dict.fromkeys((given.style, "plain")):
        own = Memory(size * elements, view.dtype, style, 0)
        if given != own:
            yield replace(
                case,
                memories=(*case.memories, own),
                operands=(*case.operands[:k], plain, *case.operands[k + 1 :]),
            )


# Without what is not used


def _tidy(case: FuseCase) -> FuseCase:
    return _without_memories(_without_values(case))


def _without_values(case: FuseCase) -> FuseCase:
    """Without steps and operands that no result needs."""
    program = case.program
    needed = {*program.outputs}
    for k in range(len(program.steps) - 1, -1, -1):
        if program.operands + k in needed:
            needed |= {arg for arg in program.steps[k].args if not isinstance(arg, Number)}
    if not any(value < program.operands for value in needed):
        needed.add(0)
    number = {value: n for n, value in enumerate(sorted(needed))}
    kept = [k for k in range(program.operands) if k in needed]
    steps = tuple(
        replace(step, args=tuple(a if isinstance(a, Number) else number[a] for a in step.args))
        for k, step in enumerate(program.steps)
        if program.operands + k in needed
    )
    outputs = tuple(number[value] for value in program.outputs)
    smaller = FuseProgram(len(kept), steps, outputs, program.dtype)
    return replace(case, program=smaller, operands=tuple(case.operands[k] for k in kept))


def _without_memories(case: FuseCase) -> FuseCase:
    """Without memory that nothing lies in."""
    views = [view for view in (*case.operands, *case.outs) if isinstance(view, View)]
    used = sorted({view.memory for view in views})
    smaller = _mapped(case, lambda view: replace(view, memory=used.index(view.memory)))
    return replace(smaller, memories=tuple(case.memories[k] for k in used))
