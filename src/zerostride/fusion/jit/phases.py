"""A phase's steps as one function in LLVM's intermediate representation.

native/fused/body.h runs a phase by this function, on rows of elements:

    void body(const void* const* in, void* const* out, int64 n, char* scratch,
              int64 rows, const int64* steps, int64 past)

It computes `rows` rows of n elements. `steps` gives the bytes from one row to the next, of the
inputs and then of the outputs; they are not read for a single row. Rows may be short, and a call
for each would take longer than its elements. `past` asks for stores past the caches, of a function
that was written for it.

Most steps are written here (`ops`, `vmath`), as vectors of the processor's width that stay in
registers from load to store; other steps are calls of the engine's kernels on blocks of elements,
so loops and calls alternate. Vectors are written explicitly, not left to a vectoriser: the text
compiles in milliseconds, and every loop is certain to be vectorised. (Measured on five chains:
LLVM's passes over this text, or vectors of two and four registers, gain nothing.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ...compute.limits import BLOCK_BYTES, LEAST_BLOCK, MOST_BLOCK
from ..schedule.program import Phase, Step
from .instruction_sets import InstructionSet
from .loops import LINE, METADATA, NONTEMPORAL, Turns
from .ops import byte, convert
from .partition import Body, KernelCall, Loop, pieces
from .values import BYTES, TYPES, Code, Emitted
from .vmath import emitters

#: Addresses of a kernel's forms (0 if missing) by op and dtype, as `_native.kernel_forms`.
Forms = Callable[[str, str], Sequence[int]]

#: Bytes of the smallest vector that is stored past the caches.
_LEAST_PAST = 16
#: A single loop stores no intermediate values, so a row is one block.
_WHOLE_ROW = 1 << 62
#: Values, and characters of text, beyond which the interpreter keeps a body. LLVM takes 20 ms for
#: 60 values; the slowest body within these bounds (8-bit shifts without AVX2) took 2 s, and the end
#: of a process or a fork would wait for it.
MOST_VALUES = 128
MOST_TEXT = 400_000
#: Steps that a row written without a loop has at most, and the steps that a function counts for.
_MOST_UNROLLED, _LONG = 64, 16


@dataclass(frozen=True, slots=True)
class Function:
    """A written function.

    Attributes:
        text: its text.
        scratch: the bytes of scratch it needs.
        past: whether it takes `past`.
        calls: whether it has addresses of this process: of kernels that it calls.
    """

    text: str
    scratch: int
    past: bool = False
    calls: bool = False


def write(
    phase: Phase,
    results: Sequence[int],
    splats: int,
    target: InstructionSet,
    forms: Forms,
    streamed: bool = False,
    row: int = 0,
    divides: bool = False,
) -> Function | None:
    """Writes the function that computes a phase's values `results`.

    Args:
        phase: its loads are the inputs, each a row of its dtype's elements or, where its bit in
            `splats` is set, one element; its shape and stores are not read.
        results: values, one for each output.
        splats: bit k is set if load k is one element.
        target: the instruction set.
        forms: gives the kernels' addresses.
        streamed: the result is so large that it is stored past the caches, if possible.
        row: the elements of every row, if they are few; 0 for any number.
        divides: as in Code.

    Returns:
        None where the interpreter keeps the phase: it would consist of kernels' calls only, or
        LLVM would take too long.
    """
    body = Body(phase, tuple(results), splats, emitters(target.functions))
    if len(body.uniform) > MOST_VALUES or not any(map(body.is_written, body.rows())):
        return None
    writer = _Writer(body, target, forms, streamed, row)
    writer.code.divides = divides
    function = writer.function()
    return function if len(function.text) <= MOST_TEXT else None


class _Writer:
    """Writes one function."""

    def __init__(
        self, body: Body, target: InstructionSet, forms: Forms, streamed: bool, row: int
    ) -> None:
        self.body, self.target, self.forms = body, target, forms
        self.pieces = pieces(body)
        self.code = Code(1, target.rounds, target.halves, target.functions == "fused")
        self.values: dict[int, Emitted] = {}  # numbers, and values that are the same for a row
        self.entry: list[str] = []  # before the rows: stack cells, addresses of the first row
        self.bases: list[str] = []  # addresses that advance from row to row
        self.lines: list[str] = []  # the blocks after the first
        self.pointers: list[str] = []  # addresses of a block's first elements
        self.place: dict[int, str] = {}  # addresses of values' elements in this block
        self.offsets: dict[int, int] = {}  # of values in scratch
        self.cells: dict[int, str] = {}
        self.scratch = 0
        self.block = self._block() if len(self.pieces) > 1 else _WHOLE_ROW
        self.streamed, self.past, self.calls = streamed, False, False
        self.row = row if self._fits(row) else 0

    def function(self) -> Function:
        self._read_operands()
        self._compute_once()
        self._find_places()
        for number, piece in enumerate(self.pieces):
            if isinstance(piece, Loop):
                self._loop(f"p{number}", piece.steps, self._stores(piece))
            else:
                self._call(piece.step)
        self._loop("rest", (), self._copies())
        return Function(self._text(), self.scratch, self.past, self.calls)

    def _fits(self, row: int) -> bool:
        """Whether a whole row is written without a loop."""
        if not row or len(self.pieces) > 1:
            return False
        rows = [*self.body.rows()]
        turns = -(-row // self._lanes([*rows, *self._operands(rows, [])]))
        work = sum(_LONG if self.body.is_function(value) else 1 for value in rows)
        return turns * work <= _MOST_UNROLLED

    # Before the loop

    def _read_operands(self) -> None:
        once = self.code.once
        for name, count in (("in", len(self.body.phase.loads)), ("out", len(self.body.results))):
            for k in range(count):
                base = f"%{name}.{k}"
                self.entry.append(f"  {base}.at = getelementptr ptr, ptr %{name}, i64 {k}")
                self.entry.append(f"  {base}.first = load ptr, ptr {base}.at, align 8")
                self.bases.append(base)
        for k, load in enumerate(self.body.phase.loads):
            if k in self.body.needed and self.body.uniform[k]:
                scalar, size = TYPES[load.dtype], BYTES[load.dtype]
                once.append(f"  %one.{k} = load {scalar}, ptr %in.{k}, align {size}")
                self.values[k] = Emitted(self.code, f"%one.{k}", load.dtype, "once")
                self.cells[k] = f"%in.{k}"
        for k, literal in enumerate(self.body.phase.literals, len(self.body.phase.loads)):
            self.values[k] = self.code.number(literal.dtype, literal.value)

    def _compute_once(self) -> None:
        for value in range(self.body.first, len(self.body.uniform)):
            if value in self.body.needed and self.body.uniform[value]:
                step = self.body.step(value)
                if self.body.is_written(value):
                    self.values[value] = self._written(value, self.values)
                else:
                    self._call_once(value, step)

    def _written(self, value: int, values: dict[int, Emitted]) -> Emitted:
        """A step's result, computed from `values`."""
        step = self.body.step(value)
        args = [values[arg] for arg in step.args]
        if step.op == "convert":
            return convert(args[0], step.dtypes[-1])
        result = self.body.emitters[step.op, step.dtypes[-2]](*args)
        return result if result.dtype != "mask" or step.dtypes[-1] == "bool" else byte(result)

    def _call_once(self, value: int, step: Step) -> None:
        dtype = step.dtypes[-1]
        cell = self._new_cell(dtype)
        at = [self._cell(arg) for arg in step.args]
        self._write_call(self.code.once, self.forms(step.op, step.dtypes[-2])[0], at, cell, "1")
        name = self.code.name()
        self.code.once.append(f"  {name} = load {TYPES[dtype]}, ptr {cell}, align {BYTES[dtype]}")
        self.values[value] = Emitted(self.code, name, dtype, "once")
        self.cells[value] = cell

    def _new_cell(self, dtype: str) -> str:
        name = self.code.name()
        self.entry.append(f"  {name} = alloca {TYPES[dtype]}, align 8")
        return name

    def _cell(self, value: int) -> str:
        """The address of a single-element value."""
        if value not in self.cells:
            scalar = byte(self.values[value])
            cell = self.cells[value] = self._new_cell(self.body.dtype(value))
            self.code.once.append(
                f"  store {TYPES[scalar.dtype]} {scalar.at(1)}, ptr {cell}, align 8"
            )
        return self.cells[value]

    # The values' places

    def _block(self) -> int:
        rows = [k for k in range(len(self.body.phase.loads)) if not self.body.uniform[k]]
        between = [value for piece in self.pieces for value in self._leaves(piece)]
        element = sum(BYTES[self.body.dtype(value)] for value in [*rows, *between])
        fits = BLOCK_BYTES // max(element, 1) // LINE * LINE
        return min(max(fits, LEAST_BLOCK), MOST_BLOCK)

    @staticmethod
    def _leaves(piece: Loop | KernelCall) -> tuple[int, ...]:
        return piece.leaves if isinstance(piece, Loop) else (piece.step,)

    def _find_places(self) -> None:
        """Places computed results in outputs, other values that pieces exchange in scratch."""
        first = "0" if self.row else "%done"
        for k, load in enumerate(self.body.phase.loads):
            if not self.body.uniform[k]:
                self._point(k, f"%in.{k}", first, BYTES[load.dtype])
        for j, value in enumerate(self.body.results):
            dtype = self.body.dtype(value)
            self._point(-1 - j, f"%out.{j}", first, BYTES[dtype])
            if value >= self.body.first and not self.body.uniform[value]:
                self.place.setdefault(value, self.place[-1 - j])
        last = self._last_reads()
        free: list[tuple[int, int]] = []
        for number, piece in enumerate(self.pieces):
            for value in self._leaves(piece):
                if value not in self.place:
                    self._take(value, free)
            done = [value for value in self.offsets if last[value] == number]
            free += [(self.offsets[value], BYTES[self.body.dtype(value)]) for value in done]
            for value in done:
                last[value] = -1

    def _last_reads(self) -> dict[int, int]:
        last: dict[int, int] = {}
        for number, piece in enumerate(self.pieces):
            for value in piece.steps if isinstance(piece, Loop) else (piece.step,):
                last.update(dict.fromkeys(self.body.step(value).args, number))
                last.setdefault(value, number)
        return last

    def _take(self, value: int, free: list[tuple[int, int]]) -> None:
        size = BYTES[self.body.dtype(value)]
        room = next((candidate for candidate in free if candidate[1] >= size), None)
        if room is None:
            room = (self.scratch, size)
            # One more line, because rows 4 KB apart collide in the cache.
            self.scratch += self.block * size + LINE
        else:
            free.remove(room)
        self.offsets[value] = room[0]
        self._point(value, "%scratch", str(room[0]), 1)

    def _point(self, value: int, base: str, index: str, size: int) -> None:
        name = self.place[value] = self.code.name()
        self.pointers.append(f"  {name} = getelementptr [{size} x i8], ptr {base}, i64 {index}")

    # Loops

    def _stores(self, piece: Loop) -> list[tuple[int, str]]:
        return [(value, self.place[value]) for value in piece.leaves]

    def _copies(self) -> list[tuple[int, str]]:
        """Results that are copied to their outputs: operands, splats, and repeated results."""
        outputs = [(value, self.place[-1 - j]) for j, value in enumerate(self.body.results)]
        return [(value, to) for value, to in outputs if self.place.get(value) != to]

    def _loop(self, label: str, steps: Sequence[int], stores: Sequence[tuple[int, str]]) -> None:
        if not stores:
            return
        read = self._operands(steps, stores)
        lanes = self._lanes([*steps, *read, *(value for value, _ in stores)])
        if any(map(self.body.is_function, steps)):
            lanes *= 2  # interleaves the instructions of two registers: a fifth less time
        turns = Turns(label, lanes, self.target.masked, self._turn(steps, stores, read))
        size = self._past_size(stores, lanes)
        if self.row:
            self.lines += turns.one_row(self.row)
        elif size:
            self.past = True
            self.lines += turns.past(stores[0][1], size)
        else:
            self.lines += turns.plain()

    def _past_size(self, stores: Sequence[tuple[int, str]], lanes: int) -> int:
        """Bytes of the result's elements, if this loop may store them past the caches; else 0."""
        if not self.streamed or self.row or len(self.pieces) > 1 or len(self.body.results) > 1:
            return 0
        value = self.body.results[0]
        size = BYTES[self.body.dtype(value)]
        # With masks, the partial vector before the first whole line is one turn.
        least = LINE if self.target.masked else _LEAST_PAST
        return size if stores == [(value, self.place[-1])] and lanes * size >= least else 0

    def _operands(self, steps: Sequence[int], stores: Iterable[tuple[int, str]]) -> list[int]:
        """Rows that a loop loads."""
        inside = set(steps)
        read = {arg for value in steps for arg in self.body.step(value).args}
        read |= {value for value, _ in stores}
        return sorted(v for v in read if v not in inside and not self.body.uniform[v])

    def _lanes(self, values: Iterable[int]) -> int:
        widest = max(BYTES[self.body.dtype(value)] for value in values)
        return max(self.target.vector // widest, 2)

    def _turn(
        self, steps: Sequence[int], stores: Sequence[tuple[int, str]], read: Sequence[int]
    ) -> Callable[[int, str, str | None, bool, str], tuple[list[str], str]]:
        """A function that writes a turn of a loop: loads, steps, stores."""
        code = self.code

        def write(
            lanes: int, i: str, mask: str | None, past: bool, block: str
        ) -> tuple[list[str], str]:
            code.lanes, code.body, code.block = lanes, [], block
            values = dict(self.values)
            for value in read:
                values[value] = self._load(value, i, mask)
            for value in steps:
                values[value] = self._written(value, values)
            results = [(byte(values[value]), to) for value, to in stores]
            for result, to in results:
                self._store(result, to, i, mask, past)
            return code.body, code.block

        return write

    def _address(self, base: str, dtype: str, i: str) -> str:
        name = self.code.name()
        self.code.body.append(f"  {name} = getelementptr {TYPES[dtype]}, ptr {base}, i64 {i}")
        return name

    def _load(self, value: int, i: str, mask: str | None) -> Emitted:
        code, dtype = self.code, self.body.dtype(value)
        at, name, row = self._address(self.place[value], dtype, i), code.name(), ""
        row, size = code.type(dtype, code.lanes), BYTES[dtype]
        if mask is None:
            code.body.append(f"  {name} = load {row}, ptr {at}, align {size}")
        else:
            function = f"@llvm.masked.load.v{code.lanes}{_suffix(dtype)}.p0"
            taken = f"<{code.lanes} x i1>"
            code.declared.add(f"declare {row} {function}(ptr, i32, {taken}, {row})")
            code.body.append(
                f"  {name} = call {row} {function}(ptr {at}, i32 {size}, {taken} {mask}, "
                f"{row} zeroinitializer)"
            )
        return Emitted(code, name, dtype, "row")

    def _store(self, value: Emitted, to: str, i: str, mask: str | None, past: bool) -> None:
        code, dtype = self.code, value.dtype
        at = self._address(to, dtype, i)
        row, size, text = code.type(dtype, code.lanes), BYTES[dtype], value.at(code.lanes)
        if mask is None:
            kind = f"{min(code.lanes * size, LINE)}, {NONTEMPORAL}" if past else str(size)
            code.body.append(f"  store {row} {text}, ptr {at}, align {kind}")
            return
        function = f"@llvm.masked.store.v{code.lanes}{_suffix(dtype)}.p0"
        taken = f"<{code.lanes} x i1>"
        code.declared.add(f"declare void {function}({row}, ptr, i32, {taken})")
        code.body.append(
            f"  call void {function}({row} {text}, ptr {at}, i32 {size}, {taken} {mask})"
        )

    # Kernels

    def _call(self, value: int) -> None:
        step = self.body.step(value)
        forms = self.forms(step.op, step.dtypes[-2])
        ones = sum(1 << k for k, arg in enumerate(step.args) if self.body.uniform[arg])
        having = [form for form in range(len(forms)) if forms[form] and form & ~ones == 0]
        form = max(having, key=int.bit_count)
        at = [
            self._cell(arg) if form >> k & 1 else self._row(arg) for k, arg in enumerate(step.args)
        ]
        self._write_call(self.lines, forms[form], at, self.place[value], "%count")

    def _row(self, value: int) -> str:
        """The address of a value's elements; a splat's are written for each block."""
        if value not in self.place:
            self._take(value, [])
            self._loop(f"w{value}", (), [(value, self.place[value])])
        return self.place[value]

    def _write_call(
        self, lines: list[str], address: int, at: Sequence[str], to: str, n: str
    ) -> None:
        self.calls = True
        array = self.code.name()
        self.entry.append(f"  {array} = alloca [{len(at)} x ptr], align 8")
        for k, pointer in enumerate(at):
            name = self.code.name()
            lines.append(f"  {name} = getelementptr ptr, ptr {array}, i64 {k}")
            lines.append(f"  store ptr {pointer}, ptr {name}, align 8")
        lines.append(f"  call void inttoptr (i64 {address} to ptr)(ptr {array}, ptr {to}, i64 {n})")

    def _steps(self) -> list[str]:
        """The lines that advance to the next row."""
        lines = []
        for k, base in enumerate(self.bases):
            lines.append(f"  {base}.step.at = getelementptr i64, ptr %steps, i64 {k}")
            lines.append(f"  {base}.step = load i64, ptr {base}.step.at, align 8")
            lines.append(f"  {base}.next = getelementptr i8, ptr {base}, i64 {base}.step")
        return lines

    def _whole_row(self) -> list[str]:
        """The lines that compute a row at once."""
        return [*self.pointers, *self.lines, "  br label %end"]

    def _blocks(self) -> list[str]:
        """The lines that compute a row block by block."""
        return [
            "  br label %blocks",
            "blocks:",
            "  %done = phi i64 [0, %row], [%reached, %next]",
            "  %left = sub i64 %n, %done",
            f"  %short = icmp slt i64 %left, {self.block}",
            f"  %count = select i1 %short, i64 %left, i64 {self.block}",
            *self.pointers,
            *self.lines,
            "  br label %next",
            "next:",
            "  %reached = add i64 %done, %count",
            "  %more = icmp slt i64 %reached, %n",
            "  br i1 %more, label %blocks, label %end",
        ]

    def _text(self) -> str:
        vector = 8 * self.target.vector
        return "\n".join(
            (
                *sorted(self.code.declared),
                "define void @body(ptr %in, ptr %out, i64 %n, ptr %scratch, "
                "i64 %rows, ptr %steps, i64 %past) #0 {",
                "entry:",
                *self.entry,
                "  br label %row",
                "row:",
                "  %row.i = phi i64 [1, %entry], [%row.next, %on]",
                *(f"  {at} = phi ptr [{at}.first, %entry], [{at}.next, %on]" for at in self.bases),
                *self.code.once,
                *(self._whole_row() if self.row else self._blocks()),
                "end:",
                "  %last = icmp sge i64 %row.i, %rows",
                "  br i1 %last, label %leave, label %on",
                "on:",
                "  %row.next = add i64 %row.i, 1",
                *self._steps(),
                "  br label %row",
                "leave:",
                "  ret void",
                "}",
                f'attributes #0 = {{ nounwind "prefer-vector-width"="{vector}" '
                f'"min-legal-vector-width"="{vector}" }}',
                METADATA,
                "",
            )
        )


def _suffix(dtype: str) -> str:
    return {"float": "f32", "double": "f64"}.get(TYPES[dtype], TYPES[dtype])
