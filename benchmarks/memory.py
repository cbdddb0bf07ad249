"""python -m benchmarks memory: the memory of a call beyond its operands and its result.

Each row is computed by a process of its own (`--child`) that has its operands, and nothing of
zerostride's but the imported package: what is measured is the growth of the peak of its resident
memory over the first call, code pages, threads and scratch included, and over the second, while the
first result is kept. Linux only, where the peak can be reset; it counts in lots of pages, so that
256 KiB (`COARSE`) either way mean nothing.
"""

from __future__ import annotations

import argparse
import ctypes
import datetime
import json
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from . import machine, rows
from .children import in_fresh_process
from .printing import markdown, new_console, new_table
from .rows import Row

#: What a call may need beyond its operands and its result.
ALLOWED = 1 << 20
#: What the system's count of resident memory may be off by.
COARSE = 256 << 10
#: Small rows say nothing: their results come from memory that the process has.
_ROWS = (
    "same_4m,scalar,row_bias,column,channel_*,by_3,by_7,outer,alternating,mask,transposed,strided,"
    "negative,materialised,comparison,where,row_bias_*,pow,exp,beyond_*"
)
#: What is freed goes back to the system at once, and is no room for a later result.
FREED_AT_ONCE = {"MALLOC_MMAP_THRESHOLD_": "65536"}
_LIBC = ctypes.CDLL(None)
_STATUS = Path("/proc/self/status")
RESET = Path("/proc/self/clear_refs")
#: Written there, it sets the peak to what is resident now.
_RESET_PEAK = "5"


@dataclass(frozen=True)
class Use:
    """Bytes of one row."""

    row: str
    title: str
    dtype: str
    operands: int
    result: int
    #: Growth of the peak over the first call, and over another, less the result.
    first: int
    again: int
    #: Bytes beyond these that are allowed.
    allowed: int = ALLOWED

    @property
    def fits(self) -> bool:
        """Whether the aim is reached."""
        return max(self.first, self.again) <= self.allowed


def _status(field: str) -> int:
    found = re.search(rf"^{field}:\s*(\d+) kB$", _STATUS.read_text(), re.MULTILINE)
    assert found is not None, field
    return int(found[1]) << 10


def growth(function: Any) -> tuple[int, Any]:
    """By how many bytes a call raises the peak of resident memory beyond its result; the result."""
    if hasattr(_LIBC, "malloc_trim"):
        _LIBC.malloc_trim(0)
    RESET.write_text(_RESET_PEAK)
    before = _status("VmRSS")
    result = function()
    return _status("VmHWM") - before - int(result.nbytes), result


def child(row: Row, threads: int) -> Use:
    """Measures a row in this process."""
    import zerostride as zs

    bases, inputs = rows.make_operands(row)
    zs.set_num_threads(threads)
    if row.op == "broadcast":
        arguments: tuple[Any, ...] = (*inputs, row.target)
        keywords: dict[str, Any] = {"copy": True}
    else:
        arguments, keywords = inputs, row.keywords
    function = getattr(zs, row.op)

    def call() -> Any:
        return function(*arguments, **keywords)

    return use_of(row, bases, call)


def use_of(
    row: Row, bases: Sequence[rows.Array], call: Callable[[], Any], allowed: int = ALLOWED
) -> Use:
    """Measures the first call and another."""
    (first, result), (again, _) = growth(call), growth(call)
    operands = sum(base.nbytes for base in bases)
    return Use(row.name, row.title, row.dtype, operands, result.nbytes, first, again, allowed)


def in_child(row: Row, threads: int) -> Use:
    """Has a row measured by a process of its own."""
    arguments = ["memory", "--child", row.name, "--threads", str(threads)]
    return Use(**in_fresh_process(arguments, FREED_AT_ONCE))


def cells(use: Use) -> list[str]:
    """A row of the table, in MiB."""

    def mib(size: int) -> str:
        return f"{size / (1 << 20):.2f}"

    figures = (use.operands, use.result, use.first, use.again)
    dtype = "" if use.dtype == "float32" else f" {use.dtype}"
    return [use.title + dtype, *map(mib, figures), "yes" if use.fits else "no"]


def head(allowed: int = ALLOWED) -> list[str]:
    """The table's."""
    last = f"≤ {allowed >> 20} MiB"
    return ["row", "operands", "result", "beyond, first call", "beyond, next call", last]


def main(arguments: Sequence[str]) -> int:
    """The command: 1 if a row needs more than is allowed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks memory", description=__doc__)
    parser.add_argument("--rows", default=_ROWS, help="names or patterns, separated by commas")
    parser.add_argument("--threads", type=int, default=machine.processors())
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true", help="write MEMORY.md beside this file")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if not RESET.exists():
        parser.error("only Linux lets a process reset the peak of its memory")
    here = machine.describe()
    if options.child:
        (row,) = rows.choose(options.child, here.last_cache)
        print(json.dumps(asdict(child(row, options.threads))))
        return 0
    try:
        chosen = rows.choose(options.rows, here.last_cache)
    except ValueError as error:
        parser.error(str(error))
    uses = [in_child(row, options.threads) for row in chosen]
    if options.json:
        print(json.dumps([asdict(use) for use in uses], indent=1))
    else:
        _print(uses)
    if options.write:
        command = shlex.join(["python", "-m", "benchmarks", "memory", *arguments])
        (Path(__file__).parent / "MEMORY.md").write_text(_page(uses, here, command), "utf-8")
    return 0 if all(use.fits for use in uses) else 1


def _print(uses: Sequence[Use]) -> None:
    table = new_table(head())
    for use in uses:
        table.add_row(*cells(use), style=None if use.fits else "yellow")
    new_console().print("MiB", table)


def _page(uses: Sequence[Use], here: machine.Machine, command: str) -> str:
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    lines = [
        "# Peak memory",
        "",
        f"Made by `{command}` on {date} ({here.processor}, {here.cores} cores; {here.system}); not"
        " edited by hand. MiB: what a call that allocates its result adds to the peak of a process"
        " that has the operands, less the result. The first call brings in code and threads, too.",
        "",
        *markdown([head(), *map(cells, uses)]),
    ]
    return "\n".join(lines) + "\n"
