"""python -m benchmarks cores: a call on more processors than this machine has, by simulation.

What one and two processors take is measured here: bytes a second from the caches and from memory, a
line of memory that goes from one processor to another, a sleeping thread that is woken. From that a
simulation of the pool (`simulated`) says what a call takes with up to 64 processors in one or two
sockets. Its figures for one and two threads stand beside measured calls of the engine.
"""

from __future__ import annotations

import argparse
import ctypes
import datetime
import shlex
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console

import zerostride as zs

from . import compiled, machine, simulated
from .peers import Call as TimedCall
from .printing import markdown, seconds_text
from .rows import Operand, Row, make_task
from .simulated import NOW, Call, Design, Machine
from .stream import sampler as streamed
from .timing import loop, settle

PAGE = Path(__file__).with_name("CORES.md")
#: Elements of the calls: from where the engine calls other threads to far beyond the caches.
SIZES = (32_768, 131_072, 1_048_576, 16_777_216)
#: Bytes that a sum of float32 reads and writes for each element.
_BYTES = 12
#: Processors of the table; from this many on they are in two sockets.
CORES = (1, 2, 4, 8, 16, 32, 64)
_TWO_SOCKETS = 64
#: Turns of the line between two processors, calls to sleepers, samples of a call.
_TURNS, _WAKES, _SAMPLES = 100_000, 200, 200
_CALLS = 20
#: Elements of the arrays from which the bytes a second come: in a second cache, the last, memory.
_OWN, _LAST, _MEMORY = 1 << 16, 1 << 20, 1 << 25
#: Elements of bytes for which the engine calls another thread, and takes next to no time.
_FEW = 32_768
#: Assumed of sockets, for want of a machine with two: bytes a second of one socket's memory, and
#: between two sockets; how many times as long a line takes between them.
_SOCKET, _LINK, _FARTHER = 300e9, 100e9, 2.5
#: The engine as it was, and as it is.
DESIGNS = {"before": Design(each=1, reads_first=False, wakes=0), "as it is": NOW}


_CHECK_HEAD = ["elements", "1: simulated", "1: measured", "2: simulated", "2: measured"]
_HEAD = ["elements", "threads are", "design", *(f"{n} core{'s' * (n > 1)}" for n in CORES)]
_PLACE_HEAD = ["elements", "each thread's pages in its own socket", "all pages in one socket"]


def measured() -> Machine:
    """The constants of this machine."""
    library = compiled.library("cores.c")
    if library is None:
        raise RuntimeError("the constants of this machine need a C compiler")
    library.transfer_seconds.restype = ctypes.c_double
    two = (ctypes.c_double * 2)()
    wakes = []
    for _ in range(_WAKES):
        library.wake_seconds(two)
        wakes.append((two[0], two[1]))
    return Machine(
        own=_rate(_OWN),
        last=_rate(_LAST),
        memory=_rate(_MEMORY),
        transfer=library.transfer_seconds(_TURNS),
        enter=max(0.0, _seconds(_FEW, 2, "uint8") - _seconds(_FEW, 1, "uint8") / 2),
        ring=statistics.median(ring for ring, _ in wakes),
        wake=statistics.median(wake for _, wake in wakes),
        call=_seconds(1, 1),
        socket=_SOCKET,
        link=_LINK,
        farther=_FARTHER,
    )


def _rate(elements: int) -> float:
    """Bytes a second that one thread reads and writes."""
    row = Row("rate", (Operand((elements,)), Operand((elements,))))
    sample = streamed(make_task(row, 1))
    assert sample is not None
    return _BYTES * elements / statistics.median(sample() for _ in range(_CALLS))


def _seconds(elements: int, threads: int, dtype: str = "float32") -> float:
    """The engine's sum of so many numbers, over and over: the median."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 100, elements).astype(dtype) for _ in range(2))
    out = np.empty_like(a)
    zs.set_num_threads(threads)
    try:
        settle()
        zs.add(a, b, out=out)
        timer = loop(TimedCall(zs.add, (a, b), {"out": out}))
        return statistics.median(timer.timeit(_CALLS) / _CALLS for _ in range(_SAMPLES))
    finally:
        zs.set_num_threads(machine.processors())


def rows(constants: Machine) -> Iterator[list[str]]:
    """The table of times: a row for each size, state of the threads, and design."""
    for elements in SIZES:
        for asleep in (False, True):
            call = Call(elements, _BYTES, asleep=asleep)
            for name, design in DESIGNS.items():
                times = [simulated.seconds(_with(constants, n), call, n, design) for n in CORES]
                state = "asleep" if asleep else "awake"
                yield [f"{elements:,}", state, name, *map(seconds_text, times)]


def _with(constants: Machine, cores: int) -> Machine:
    return replace(constants, sockets=2 if cores >= _TWO_SOCKETS else 1)


def checks(constants: Machine) -> Iterator[list[str]]:
    """Simulated and measured: one and two threads on this machine."""
    for elements in SIZES:
        call = Call(elements, _BYTES)
        cells = [f"{elements:,}"]
        for threads in (1, 2):
            cells.append(seconds_text(simulated.seconds(constants, call, threads, NOW)))
            cells.append(seconds_text(_seconds(elements, threads)))
        yield cells


def placements(constants: Machine) -> Iterator[list[str]]:
    """64 processors in two sockets: pages where their threads are, and all in one socket."""
    two = replace(constants, sockets=2)
    for elements in SIZES:
        call = Call(elements, _BYTES)
        near = simulated.seconds(two, call, CORES[-1], NOW)
        far = simulated.seconds(two, replace(call, one_socket=True), CORES[-1], NOW)
        yield [f"{elements:,}", seconds_text(near), seconds_text(far)]


_ABOUT = """\
One sum of two float32 arrays into a third, by more processors than this machine has. **Not
measured**: a simulation (`simulated.py`) of the engine's pool, piece by piece, from what one and
two processors take here:
"""
_DESIGNS = f"""\
*Before*: every call asks for all threads; the caller wakes those that sleep; a thread whose share
is used up takes from each other share in turn, also from one that is used up. *As it is*: a call
asks for no more threads than it has {NOW.each} elements for each; a thread that comes wakes
{NOW.wakes} more; a thread reads whether a share is used up before it takes.
"""
_PLACES = f"""\
{CORES[-1]} processors in two sockets. A new result's pages are placed by the threads that first
write them, and a thread begins with the same share in every call, so they are near in calls that
follow. Pages that one thread wrote (a file that was read, NumPy's own results) all lie in its
socket.
"""


def page(constants: Machine, command: str) -> str:
    """The page of the simulation."""
    here = machine.describe()
    place = f"{here.short_name}, {here.cores} cores, load {here.load}"
    rates = [f"{rate / 1e9:.0f} GB/s" for rate in (constants.own, constants.last, constants.memory)]
    socket, link = (f"{rate / 1e9:.0f} GB/s" for rate in (constants.socket, constants.link))
    transfer, enter, ring, wake, call = map(
        seconds_text,
        (constants.transfer, constants.enter, constants.ring, constants.wake, constants.call),
    )
    return "\n".join(
        [
            "# More processors, by simulation",
            "",
            f"Made by `{command}` on {datetime.date.today()} ({place}); not edited by hand.",
            "",
            _ABOUT,
            f"- one processor: {rates[0]} in its own caches, {rates[1]} in the last, {rates[2]} in"
            " memory;",
            f"- a line of memory from one processor to another: {transfer};",
            f"- a call that two threads share, beside half of its work: {enter};",
            f"- a call that wakes a thread: {ring}, and {wake} until it runs;",
            f"- a call of one element: {call}.",
            "",
            f"Taken of sockets, which are not here: {socket} of memory each, {link} between two, a"
            f" line {constants.farther} times as long between two. From {_TWO_SOCKETS} processors"
            " on there are two.",
            "",
            "## The simulation beside the engine, where both can be had",
            "",
            *markdown([_CHECK_HEAD, *checks(constants)]),
            "",
            "## Times",
            "",
            *markdown([_HEAD, *rows(constants)]),
            "",
            _DESIGNS,
            "## Where the pages lie",
            "",
            _PLACES,
            *markdown([_PLACE_HEAD, *placements(constants)]),
            "",
        ]
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks cores", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    options = parser.parse_args(arguments)
    words = ["python", "-m", "benchmarks", "cores", *(["--write"] if options.write else [])]
    text = page(measured(), shlex.join(words))
    if options.write:
        PAGE.write_text(text, "utf-8")
    Console().print(text, markup=False, highlight=False)
    return 0
