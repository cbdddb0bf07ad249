"""How a fused function computes operands of some shapes: its phases, registers and bytes moved.

The drawing is like a plan's: the operands of a phase in columns over the box that it walks, a dot
where an operand has no axis (it stretches, or a result is folded), `1→5` where an extent of 1
stretches.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..compute import native
from ..derive.explain.facts import listing, plural, runs
from ..errors import columns
from .calls import described
from .jit import tier as jit
from .schedule.bytes_moved import registers, slot_bytes, traffic
from .schedule.program import Literal, Load, Phase, Program, Slot, Walk
from .trace.graph import Constant, Graph, Input, View, arguments

if TYPE_CHECKING:
    from .function import Fused


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a fused function computes. Its text is for reading, `as_dict` for programs.

    Attributes:
        name: the function's.
        operands: the names of its operands, captured arrays last.
        graph: what it computes.
        program: the engine's program; None where the reference computes.
        backend: "native" with its instruction set, or "reference".
        reason: why the reference computes; "" where the engine does.
        tier: "interpreted" (kernels, one after another, on blocks), or what has been compiled; ""
            where the reference computes.
    """

    name: str
    operands: tuple[str, ...]
    graph: Graph
    program: Program | None
    backend: str
    reason: str
    tier: str

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    __repr__ = __str__

    def as_dict(self) -> dict[str, Any]:
        """The same as plain data, ready for JSON."""
        return _as_dict(self)

    def to_json(self, indent: int | None = 2) -> str:
        """As JSON."""
        return json.dumps(self.as_dict(), indent=indent)

    def _repr_html_(self) -> str:
        return html(self)


def explain(fused: Fused, operands: Sequence[Any], more: Mapping[str, Any]) -> Explanation:
    """Explains how a fused function computes these operands. Nothing is computed.

    Args:
        fused: the function.
        operands: as for a call; without any, those of the signature that was traced last.
        more: the call's keyword arguments.

    Raises:
        TraceError, BroadcastError, TypeError: as a call does.

    >>> import numpy as np
    >>> import zerostride as zs
    >>> add = zs.fuse(lambda x, y: x + y)
    >>> add.explain(np.ones((2, 3)), np.ones(3)).operands
    ('x', 'y')
    """
    latest = None if operands or more else fused.latest
    named: Sequence[str] = ()
    if latest is not None:
        compiled = latest
        count = compiled.graph.inputs - len(compiled.sources)
    else:
        call = described(operands, more)
        compiled, count, named = fused.compiled(call), len(operands), call.named
    names = _operand_names(fused, count, named, len(compiled.sources))
    prepared = compiled.ready
    by_engine = prepared.engine is not None
    return Explanation(
        str(getattr(fused, "__name__", "function")),
        names,
        prepared.graph,
        prepared.program if by_engine else None,
        native.backend() if by_engine else "reference",
        prepared.reason,
        jit.describe(prepared.engine) if prepared.engine is not None else "",  # type: ignore[arg-type]
    )


def _operand_names(
    fused: Fused, count: int, named: Sequence[str], captured: int
) -> tuple[str, ...]:
    try:
        parameters = list(inspect.signature(fused.__wrapped__).parameters.values())  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        parameters = []
    names = [
        parameter.name
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    rest = [
        parameter.name for parameter in parameters if parameter.kind is parameter.VAR_POSITIONAL
    ] or ["operand"]
    names += [f"{rest[0]}{k}" for k in range(count - len(names))]
    return (*names[:count], *named, *(f"captured{k}" for k in range(captured)))


# The explanation as text


class PhaseRow(NamedTuple):
    """A line of a phase's drawing: an array over the box."""

    name: str
    cells: tuple[str | None, ...]


def _lines(explanation: Explanation) -> Iterator[str]:
    yield headline(explanation)
    yield from (f"  {fact}" for fact in facts(explanation))
    if explanation.program is None:
        yield from (f"    {line}" for line in _graph_lines(explanation))
        return
    names = slot_names(explanation)
    for k, phase in enumerate(explanation.program.phases):
        yield f"  {phase_title(explanation.program, k)}"
        rows = phase_rows(explanation.program, phase, names)
        drawn = columns([row.name for row in rows], [row.cells for row in rows])
        stretches = stretch_lines(explanation.program, phase, names)
        yield from (f"    {line}" for line in (*drawn, *step_lines(phase, names), *stretches))


def headline(explanation: Explanation) -> str:
    """One line: the function and its backend."""
    by = f"the native engine ({explanation.backend.split()[-1]})"
    if explanation.program is None:
        by = f"the reference, node by node: {explanation.reason}"
    return f"{explanation.name}({', '.join(explanation.operands)}) is computed by {by}"


def facts(explanation: Explanation) -> Iterator[str]:
    """Facts about the whole program."""
    program = explanation.program
    if program is None:
        return
    phases = len(program.phases)
    yield f"{phases} {plural('phase', 'phases', program.phases)}, {explanation.tier}"
    if program.batch:
        whole = program.last - program.first == phases
        which = "all" if whole else f"phases {program.first + 1} to {program.last}"
        axes = list(range(program.batch))
        along = f"{plural('axis', 'axes', axes)} {listing(list(map(str, axes)))} of the boxes"
        yield f"{which} piece by piece along {along}: what is read again is still in the caches"
    memory = traffic(program)
    yield f"{written(memory.moved)} moved, {written(memory.necessary)} necessary"
    if memory.temporaries:
        yield f"{written(memory.temporaries)} of temporaries"
    if memory.pieces:
        yield f"{written(memory.pieces)} of temporaries for each index of a piece"


def phase_title(program: Program, k: int) -> str:
    """One line for a phase: its number, its box, and the bytes that it touches."""
    phase = program.phases[k]
    read, stored = phase_bytes(program, phase)
    over = " ".join(map(str, phase.shape)) or "one element"
    number = f"phase {k + 1}: " if len(program.phases) > 1 else ""
    return f"{number}over {over}, reads {written(read)}, stores {written(stored)}"


def phase_bytes(program: Program, phase: Phase) -> tuple[int, int]:
    """The bytes of the arrays that a phase loads, and of those that it stores."""
    loaded, stored = {load.slot for load in phase.loads}, {store.slot for store in phase.stores}
    read, kept = (sum(slot_bytes(program.slots[k]) for k in slots) for slots in (loaded, stored))
    return read, kept


def written(count: int) -> str:
    """A number of bytes in readable units.

    >>> written(16 << 20), written(1000)
    ('16.0 MiB', '1000 B')
    """
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"


def slot_names(explanation: Explanation) -> tuple[str, ...]:
    """The names of a program's arrays."""
    assert explanation.program is not None
    slots = explanation.program.slots
    results = sum(slot.kind == "output" for slot in slots)
    numbers = iter(range(len(slots)))
    return tuple(
        explanation.operands[slot.index]
        if slot.kind == "input"
        else f"t{next(numbers)}"
        if slot.kind != "output"
        else f"result{slot.index}"
        if results > 1
        else "result"
        for slot in slots
    )


def phase_rows(program: Program, phase: Phase, names: Sequence[str]) -> list[PhaseRow]:
    """The rows of a phase's drawing: its loads, the box, and its stores."""
    loads = [
        PhaseRow(name, _cells(program.slots[load.slot], load.walk, phase))
        for name, load in zip(_load_names(program, phase, names), phase.loads, strict=True)
    ]
    box = PhaseRow("box", tuple(map(str, phase.shape)))
    stores = [
        PhaseRow(
            f"{names[store.slot]} {program.slots[store.slot].dtype}",
            _cells(program.slots[store.slot], store.walk, phase),
        )
        for store in phase.stores
    ]
    return [*loads, box, *stores]


def _load_names(program: Program, phase: Phase, names: Sequence[str]) -> list[str]:
    texts = []
    for label, load in zip(value_names(phase, names), phase.loads, strict=False):
        stored = program.slots[load.slot].dtype
        texts.append(f"{label} {stored}" + (f"→{load.dtype}" if load.dtype != stored else ""))
    return texts


def _cells(slot: Slot, walk: Walk, phase: Phase) -> tuple[str | None, ...]:
    return tuple(
        None if axis < 0 else str(full) if slot.shape[axis] == full else f"1→{full}"
        for axis, full in zip(walk, phase.shape, strict=True)
    )


def value_names(phase: Phase, names: Sequence[str]) -> list[str]:
    """The names of a phase's values: arrays, numbers, registers."""
    called: list[str] = []
    for load in phase.loads:
        again = sum(earlier.slot == load.slot for earlier in phase.loads[: len(called)])
        called.append(names[load.slot] + "'" * again)  # the same array, aligned otherwise
    called += [_number(literal) for literal in phase.literals]
    return called + [f"r{register}" for register in registers(phase)]


def _number(literal: Literal) -> str:
    single = literal.dtype == "float32"  # 0.1, not 0.10000000149
    return str(np.float32(literal.value) if single else literal.value)


def step_lines(phase: Phase, names: Sequence[str]) -> Iterator[str]:
    """The steps with their registers, and the stores."""
    called = value_names(phase, names)
    first = len(called) - len(phase.steps)
    for k, step in enumerate(phase.steps, first):
        args = ", ".join(called[arg] for arg in step.args)
        op = step.dtypes[-1] if step.op == "convert" else step.op
        yield f"{called[k]} = {op}({args})"
    for store in phase.stores:
        value = called[store.value]
        over = [axis for axis, to in enumerate(store.walk) if to < 0]
        if store.fold:
            axes = f"{plural('axis', 'axes', over)} {listing(list(map(str, over)))}"
            value = f"{store.fold} of {value} over {axes}"
        yield f"{names[store.slot]} = {value}"


def stretch_lines(program: Program, phase: Phase, names: Sequence[str]) -> Iterator[str]:
    """The axes along which operands stretch, and operands whose axes are in another order."""
    for name, load in zip(value_names(phase, names), phase.loads, strict=False):
        axes = stretched(program.slots[load.slot], load, phase)
        if axes:
            lands = [axis for axis, to in enumerate(load.walk) if to >= 0]
            text = listing([_run_text(phase, absent, run) for absent, run in runs(axes, lands)])
            yield f"{name} stretches along {plural('axis', 'axes', axes)} {text}"
        order = [to for to in load.walk if to >= 0]
        if order != sorted(order):
            yield f"{name} is read along its axes {listing(list(map(str, order)))}, in this order"


def _run_text(phase: Phase, absent: bool, run: tuple[int, ...]) -> str:
    axes = str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}"
    sizes = "×".join(str(phase.shape[axis]) for axis in run)
    return f"{axes} ({'absent' if absent else 1}→{sizes})"


def stretched(slot: Slot, load: Load, phase: Phase) -> list[int]:
    """The axes of a box along which a load has one element."""
    return [
        axis
        for axis, (to, full) in enumerate(zip(load.walk, phase.shape, strict=True))
        if (to < 0 or slot.shape[to] == 1) and full != 1
    ]


def _graph_lines(explanation: Explanation) -> Iterator[str]:
    """A graph that the reference evaluates, a node a line."""
    called: list[str] = []
    for k, node in enumerate(explanation.graph.nodes):
        if isinstance(node, Input):
            called.append(explanation.operands[node.index])
            continue
        called.append(str(node.value) if isinstance(node, Constant) else f"v{k}")
        if not isinstance(node, Constant):
            args = ", ".join(called[arg] for arg in arguments(node))
            op = "view" if isinstance(node, View) else node.op
            shape = " ".join(map(str, node.shape))
            yield f"v{k} = {op}({args})  {shape or 'one element'}  {node.dtype}"
    results = ", ".join(called[k] for k in explanation.graph.outputs)
    yield f"result = {results}"


# Data


def _as_dict(explanation: Explanation) -> dict[str, Any]:
    data: dict[str, Any] = {
        "function": explanation.name,
        "operands": list(explanation.operands),
        "backend": explanation.backend,
        "reason": explanation.reason,
        "tier": explanation.tier,
        "program": None,
    }
    if explanation.program is None:
        return data
    program, names = explanation.program, slot_names(explanation)
    memory = traffic(program)
    data["program"] = {
        "batch": program.batch,
        "batched_phases": [program.first, program.last],
        "bytes": {
            "moved": memory.moved,
            "necessary": memory.necessary,
            "temporaries": memory.temporaries,
            "for_each_index": memory.pieces,
        },
        "slots": [
            {"name": name, "kind": slot.kind, "dtype": slot.dtype, "shape": list(slot.shape)}
            for name, slot in zip(names, program.slots, strict=True)
        ],
        "phases": [_phase_dict(program, phase) for phase in program.phases],
    }
    return data


def _phase_dict(program: Program, phase: Phase) -> dict[str, Any]:
    read, stored = phase_bytes(program, phase)
    return {
        "shape": list(phase.shape),
        "bytes": {"read": read, "stored": stored},
        "loads": [
            {
                "slot": load.slot,
                "axes": list(load.walk),
                "dtype": load.dtype,
                "stretched": stretched(program.slots[load.slot], load, phase),
            }
            for load in phase.loads
        ],
        # JSON has no infinities.
        "numbers": [
            {"value": str(literal.value), "dtype": literal.dtype} for literal in phase.literals
        ],
        "steps": [
            {
                "op": step.op,
                "values": list(step.args),
                "dtype": step.dtypes[-1],
                "register": register,
            }
            for step, register in zip(phase.steps, registers(phase), strict=True)
        ],
        "stores": [
            {
                "value": store.value,
                "slot": store.slot,
                "axes": list(store.walk),
                "fold": store.fold,
            }
            for store in phase.stores
        ],
    }


# For notebooks


def html(explanation: Explanation) -> str:
    """The explanation as a fragment of HTML, without scripts and styles of a page.

    >>> import numpy as np
    >>> import zerostride as zs
    >>> html(zs.fuse(lambda x: x + 1).explain(np.ones(3))).count("<table")
    1
    """
    parts = [f"<p><b>{escape(headline(explanation))}</b></p>", _list(facts(explanation))]
    if explanation.program is None:
        return "".join(["<div>", *parts, _list(_graph_lines(explanation)), "</div>"])
    names = slot_names(explanation)
    for k, phase in enumerate(explanation.program.phases):
        rows = "".join(map(_html_row, phase_rows(explanation.program, phase, names)))
        lines = (*step_lines(phase, names), *stretch_lines(explanation.program, phase, names))
        parts.append(f"<p>{escape(phase_title(explanation.program, k))}</p><table>{rows}</table>")
        parts.append(_list(lines))
    return "".join(["<div>", *parts, "</div>"])


def _html_row(row: PhaseRow) -> str:
    cells = "".join(f"<td>{'·' if cell is None else escape(cell)}</td>" for cell in row.cells)
    return f"<tr><th style='text-align:left'>{escape(row.name)}</th>{cells}</tr>"


def _list(lines: Iterable[str]) -> str:
    return "".join(["<ul>", *(f"<li>{escape(line)}</li>" for line in lines), "</ul>"])
